/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Out-of-band messages between the service threads of a job, beside the lanes.
 */
#ifndef R2_OOB_POST_H
#define R2_OOB_POST_H

#include <stddef.h>
#include <stdint.h>

#include "r2/nic.h"
#include "r2/status.h"

#define R2_POST_BYTES_MAX   1024 /* one message */
#define R2_POST_ADDRESS_MAX 256  /* where a process gets its messages, as published */

/** Upcall, made inside poll(), under the engine lock. The sender is authenticated as a process of
 * the job. */
typedef struct r2_post_upcalls {
    void (*received)(void *arg, uint32_t rank, const void *data, size_t bytes);
    /** The launcher says that a process of the job has died. NULL: nobody wants to know. */
    void (*died)(void *arg, uint32_t rank);
    void *arg; /* borrowed: outlives the driver */
} r2_post_upcalls_t;

/*
 * A driver may lose, delay, duplicate and reorder messages: whoever needs more acknowledges. It
 * keeps a bounded number of messages per peer and drops the oldest above that. Drivers: mesh
 * (authenticated TCP, connections opened on demand and closed when idle; management network first,
 * rails second), events (PMIx, where the launcher can carry them), both (these two at one time),
 * sim (many ranks in one process, with seeded loss, delay, duplicates and reordering).
 */
typedef struct r2_post_ops {
    const char *name;
    /** Before any other call. Copied. */
    void (*bind)(void *post, const r2_post_upcalls_t *upcalls);
    /** The job key (R2_JOB_KEY_BYTES, copied); before it messages wait and nobody is let in. NULL:
     * not needed. */
    void (*key)(void *post, const uint8_t *key);
    /** Never blocks. @return R2_OK (taken, may get lost), R2_ERR_PARAM, R2_ERR_NO_PATH,
     * R2_ERR_NO_MEMORY. */
    r2_status_t (*send)(void *post, uint32_t rank, const void *data, size_t bytes);
    /**
     * Since when the host of a process refuses its messages beside the rails, in a row up to now;
     * 0: it does not, or was not asked. NULL: not known.
     */
    uint64_t (*refused_ns)(void *post, uint32_t rank);
    /** A NIC has another address or was made anew; not all are the driver's. NULL: it does not
     * matter. */
    void (*nic)(void *post, const r2_nic_t *nic);
    /** One descriptor that is readable when poll() has something to do; -1: none (simulator). */
    int (*fd)(void *post);
    void (*poll)(void *post);
    /** When poll() must be called next for a timeout; R2_NEVER_NS: not at all. */
    uint64_t (*deadline_ns)(void *post);
} r2_post_ops_t;

/** A driver with its instance; ops NULL: there is no out-of-band path. */
typedef struct r2_post {
    const r2_post_ops_t *ops; /* borrowed: static */
    void *instance;           /* borrowed: outlives all users */
} r2_post_t;

#endif
