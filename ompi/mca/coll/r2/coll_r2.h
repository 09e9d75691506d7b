/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The collective component r2: types and functions shared by its files.
 */
#ifndef MCA_COLL_R2_H
#define MCA_COLL_R2_H

#include "compat.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "opal/class/opal_free_list.h"
#include "r2/r2.h"

/** Call counts: one per collective that r2 takes. Written without lock, so approximate. */
typedef struct mca_coll_r2_calls {
#define MCA_COLL_R2_COLLECTIVE(name) uint64_t name;
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
} mca_coll_r2_calls_t;

/** The functions that were selected before ours, with the modules they belong to. */
typedef struct mca_coll_r2_saved {
#define MCA_COLL_R2_COLLECTIVE(name) \
    MCA_COLL_R2_FN(name) * name;     \
    mca_coll_base_module_t *name##_module; /* refcounted */
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
} mca_coll_r2_saved_t;

/** Above all that Open MPI has, hcoll's 90 too: ties are broken by the order of loading, which
 * ranks do not share. */
#define MCA_COLL_R2_PRIORITY 95

/** The component. Written at start and end only, but for the call counts. */
typedef struct mca_coll_r2_component {
    mca_coll_base_component_t super;
    mca_coll_r2_calls_t calls;
    r2_params_t params;
    int priority;
    char *fallback; /* owned by the MCA variable: components to select beside r2 */
    bool named;     /* the selection of coll or btl names r2 */
    bool params_ok; /* else why_not says what is wrong with them */
    r2_ctx_t *ctx;  /* refcounted; NULL: this process has no part in r2 */
    bool agreed;    /* all processes of the job use it */
    bool untold;    /* the others count on this process, and it cannot: why_not says why */
    char why_not[1024];
    bool p2p_cuda;              /* point-to-point takes memory of GPUs through r2 (p2p.c) */
    bool progressing;           /* our function is registered with opal_progress */
    _Atomic uint32_t under_way; /* requests */
    _Atomic uint32_t polls;     /* calls of that function with none; approximate */
    bool opened;                /* `requests` is constructed */
    opal_free_list_t requests;  /* of nonblocking and persistent calls */
    int proc_failed;            /* error code of calls that end because a process has died */
} mca_coll_r2_component_t;

OMPI_DECLSPEC extern mca_coll_r2_component_t mca_coll_r2_component;

/** One per communicator. Written by coll_module_enable() only, but for `told` and what is
 * behind it. */
typedef struct mca_coll_r2_module {
    mca_coll_base_module_t super;
    mca_coll_r2_saved_t saved;
    r2_comm_t *r2;                       /* owned */
    r2_comm_t *ids, *group_ids;          /* borrowed: sequences of r2 (ids.c); NULL: none */
    bool told;                           /* the user has heard that a call failed; atomic */
    struct ompi_communicator_t *watched; /* borrowed: which has this module; NULL: no ULFM */
    struct mca_coll_r2_module *next;     /* borrowed: of those watched; locked by ulfm.c */
    _Atomic bool word_missing;           /* the launcher has not told of a death in time */
} mca_coll_r2_module_t;

OBJ_CLASS_DECLARATION(mca_coll_r2_module_t);

/** The order of calls that make ids, for a new communicator: before its calls and other sequences,
 * since the first such call may come from the progress loop, too. @return as r2_sequence_open(). */
r2_status_t mca_coll_r2_ids_open(mca_coll_r2_module_t *module);

/** Registers every parameter and checks the values. @return OMPI_SUCCESS or OMPI_ERR_BAD_PARAM. */
int mca_coll_r2_params_register(void);

/** Makes the list of requests ready. @return OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE. */
int mca_coll_r2_requests_init(opal_free_list_t *list);

/** From here on point-to-point of this process takes memory of GPUs, if there is a driver and Open
 * MPI does not do it by itself. Its messages go by the selected PML as others do. */
void mca_coll_r2_p2p_begin(void);
void mca_coll_r2_p2p_end(void);

/** Registers r2core's counters as MPI_T performance variables. @return OMPI_SUCCESS or an error. */
int mca_coll_r2_pvars_register(void);

/** Makes the error classes known to MPI. Once, when r2 is agreed on: their numbers are the same on
 * all ranks. */
void mca_coll_r2_errors_init(void);

/**
 * Ends the job: this process failed where the others cannot know it, and would wait for them, or
 * they for it. Returns only if Open MPI does.
 */
void mca_coll_r2_abort(const char *what, r2_status_t status);

/** Do all processes of the job use r2? Not before the launcher's fence. If not, what this one has
 * of it is given back. */
bool mca_coll_r2_is_agreed(void);

/** @return the module for a communicator, NULL with priority 0 where r2 does not take part. */
mca_coll_base_module_t *mca_coll_r2_comm_query(struct ompi_communicator_t *comm, int *priority_p);

/* Entry points (entries.c). Signatures are Open MPI's. */
#define MCA_COLL_R2_COLLECTIVE(name) MCA_COLL_R2_FN(name) mca_coll_r2_##name;
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE

#endif
