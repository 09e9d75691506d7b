/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * All differences between Open MPI versions that btl/r2 meets. Included before everything else.
 */
#ifndef MCA_BTL_R2_COMPAT_H
#define MCA_BTL_R2_COMPAT_H

#include "opal_config.h"

#include <stdint.h>
#include <string.h>

#include "opal/class/opal_bitmap.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#if OPAL_MAJOR_VERSION < 5
#    include "opal/mca/pmix/pmix.h"
#else
#    include "opal/mca/pmix/pmix-internal.h"
#endif
#include "opal/runtime/opal_progress.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/* Open MPI's names for its own package: ours follow. */
#undef PACKAGE_BUGREPORT
#undef PACKAGE_NAME
#undef PACKAGE_STRING
#undef PACKAGE_TARNAME
#undef PACKAGE_URL
#undef PACKAGE_VERSION
#include "r2_config.h"

/* Open MPI's list macros cast volatile away; unlike gcc, clang warns in the macros of system
 * headers. */
#ifdef __clang__
#    pragma clang diagnostic ignored "-Wcast-qual"
#endif

/*
 * What differs in osc/rdma. 4.1 takes a lock twice for dynamic windows, and gives this transport
 * an address of its own mapping for allocated windows of the same host. 5.0 has wrong atomic
 * operations where it makes them of messages.
 */
#if OPAL_MAJOR_VERSION < 5
#    define MCA_BTL_R2_OSC_DYNAMIC_LOCKS 1
#    define MCA_BTL_R2_OSC_ATOMICS_WRONG 0
#    define MCA_BTL_R2_OSC_OWN_MAPPING   1
#else
#    define MCA_BTL_R2_OSC_DYNAMIC_LOCKS 0
#    define MCA_BTL_R2_OSC_ATOMICS_WRONG 1
#    define MCA_BTL_R2_OSC_OWN_MAPPING   0
#endif

/* The unit of displacements in a window, as osc components are asked about it. */
#if OPAL_MAJOR_VERSION >= 6
typedef ptrdiff_t mca_btl_r2_disp_unit_t;
#else
typedef int mca_btl_r2_disp_unit_t;
#endif

/*
 * pml/ob1 of 5.0 sets a field of its longest header in shorter ones, too (those that tell of
 * communicators that come from sessions): behind the end of the message.
 */
typedef struct mca_btl_r2_room {
    char bytes[64];
} mca_btl_r2_room_t;

/** @return the message, in memory that pml/ob1 may write to. */
static inline void *mca_btl_r2_with_room(mca_btl_r2_room_t *room, const void *data, size_t bytes)
{
#if OPAL_MAJOR_VERSION >= 5
    if (bytes < sizeof(room->bytes)) {
        return memcpy(room->bytes, data, bytes);
    }
#endif
    (void) room;
    (void) bytes;
    return (void *) (uintptr_t) data;
}

#define MCA_BTL_R2_JOB_NAME_BYTES 256

/** The PMIx name space of a job. @return false: it is not known. */
static inline bool mca_btl_r2_job_name(opal_jobid_t id, char name_p[MCA_BTL_R2_JOB_NAME_BYTES])
{
#if OPAL_MAJOR_VERSION < 5
    const char *name = NULL == opal_pmix.get_nspace ? NULL : opal_pmix.get_nspace(id);

    if (NULL == name || strlen(name) >= MCA_BTL_R2_JOB_NAME_BYTES) {
        return false;
    }
    strcpy(name_p, name);
    return true;
#else
    _Static_assert(PMIX_MAX_NSLEN < MCA_BTL_R2_JOB_NAME_BYTES, "any name fits");
    return OPAL_SUCCESS == opal_pmix_convert_jobid(name_p, id);
#endif
}

/* Are processes of other jobs added when they are first sent to? 4.1 adds them on both sides when
 * jobs meet, where r2 need not look for communicators, which other threads may be freeing. */
#define MCA_BTL_R2_ADDS_LATE (OPAL_MAJOR_VERSION >= 5)

/* A put is complete when the data is in the peer's memory: 5.0 wants to know. */
#ifdef MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#    define MCA_BTL_R2_REMOTE_COMPLETION MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#else
#    define MCA_BTL_R2_REMOTE_COMPLETION 0
#endif

/* Gives a message to who registered for its tag. Version 3.3 passes one descriptor. */
static inline void mca_btl_r2_call(const mca_btl_active_message_callback_t *call,
                                   struct mca_btl_base_endpoint_t *endpoint, uint8_t tag,
                                   mca_btl_base_segment_t *segment)
{
    extern mca_btl_base_module_t mca_btl_r2_module;
#if defined(BTL_VERSION) && BTL_VERSION >= 330
    mca_btl_base_receive_descriptor_t descriptor = {.endpoint = endpoint,
                                                    .des_segments = segment,
                                                    .des_segment_count = 1,
                                                    .tag = tag,
                                                    .cbdata = call->cbdata};

    call->cbfunc(&mca_btl_r2_module, &descriptor);
#else
    mca_btl_base_descriptor_t descriptor = {.des_segments = segment, .des_segment_count = 1};

    (void) endpoint;
    call->cbfunc(&mca_btl_r2_module, tag, &descriptor, call->cbdata);
#endif
}

#endif
