/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Out-of-band exchange at start-up: who is in the job, and each process's published blob.
 */
#ifndef R2_OOB_H
#define R2_OOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/logger.h"
#include "r2/status.h"

#define R2_OOB_BLOB_MAX 16384 /* bytes one process may publish */

/** The exchange table. Drivers: pmix (a job), loop (many ranks in one process). */
typedef struct r2_oob_ops {
    const char *name;
    /** @param rank_p this process, @param size_p number of processes of the job. */
    r2_status_t (*identity)(void *oob, uint32_t *rank_p, uint32_t *size_p);
    /**
     * The job key, R2_JOB_KEY_BYTES, equal in all processes and secret to others. Rank 0 publishes
     * it with its blob; ask after the launcher's fence (first communicator), when it is here.
     * @return R2_OK, R2_ERR_NOT_FOUND (rank 0 does not run r2), R2_ERR_TIMEOUT.
     */
    r2_status_t (*job_key)(void *oob, uint8_t *key_p);
    /** Publishes this process's blob; visible to others after the launcher's fence at the
     * latest. */
    r2_status_t (*publish)(void *oob, const void *blob, size_t bytes);
    /**
     * Blob of another process. @param blob_p R2_OOB_BLOB_MAX bytes.
     * @return R2_OK, R2_ERR_NOT_FOUND: it published nothing, as all who ask are told; any other
     * error is of this process, and may be gone when it asks again.
     */
    r2_status_t (*lookup)(void *oob, uint32_t rank, void *blob_p, size_t *bytes_p);
    /** Name of the host that a process runs on; the text stays where it is not known. NULL: it
     * never is. */
    void (*host)(void *oob, uint32_t rank, char *text_p, size_t text_bytes);
    /** The launcher's fence, with data, for programs that are not MPI's. NULL: there is no
     * launcher. */
    r2_status_t (*fence)(void *oob);
} r2_oob_ops_t;

/** An exchange driver with its instance. */
typedef struct r2_oob {
    const r2_oob_ops_t *ops; /* borrowed: static */
    void *instance;          /* borrowed: outlives all users */
} r2_oob_t;

/** The PMIx driver. @return R2_OK, or R2_ERR_UNSUPPORTED when not launched by a PMIx server. */
r2_status_t r2_oob_pmix_create(r2_oob_t *oob_p);
void r2_oob_pmix_destroy(r2_oob_t *oob);

/**
 * The driver for two jobs that have met: this process's own, and another, by its PMIx name space.
 * Processes are numbered as in one job. lookup() and job_key() ask nobody: they know what
 * r2_oob_pair_keep() was given, and answer R2_ERR_NOT_FOUND without; the three belong to one thread
 * at a time.
 * @param other copied. @param log borrowed: outlives the driver; says once that the launcher is
 * late.
 * @return R2_OK, R2_ERR_UNSUPPORTED (no PMIx server), R2_ERR_NOT_FOUND (it knows no such job),
 * R2_ERR_PEER_GONE (the job has ended), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_oob_pair_create(const char *other, const r2_log_t *log, r2_oob_t *oob_p);
void r2_oob_pair_destroy(r2_oob_t *oob);
/** Number of rank 0 of the other job. */
uint32_t r2_oob_pair_first(const r2_oob_t *oob);
/** Is this process rank 0 of its own job? */
bool r2_oob_pair_leads(const r2_oob_t *oob);
/**
 * What a process of the other job has published for its own. Any thread; asks the launcher, which
 * may take seconds. @param rank in the other job.
 * @param blob_p R2_OOB_BLOB_MAX bytes. @return as lookup() of a job; R2_ERR_PEER_GONE: it has
 * published nothing, and it is dead or its job has ended; R2_ERR_AGAIN: nothing, and it seems about
 * to end.
 */
r2_status_t r2_oob_pair_home(const r2_oob_t *oob, uint32_t rank, void *blob_p, size_t *bytes_p);
/** What it has published for this job. @return as lookup() of a job. Else as
 * r2_oob_pair_home(). */
r2_status_t r2_oob_pair_ask(const r2_oob_t *oob, uint32_t rank, void *blob_p, size_t *bytes_p);
/** Has the other job ended, by the launcher's word? false also where the launcher does not tell
 * (all but PRRTE). Any thread. */
bool r2_oob_pair_other_ended(const r2_oob_t *oob);
/** The key of both jobs, of R2_JOB_KEY_BYTES. Else as r2_oob_pair_ask(). */
r2_status_t r2_oob_pair_ask_key(const r2_oob_t *oob, uint8_t *key_p);
/** Keeps the key for job_key(). */
void r2_oob_pair_keep_key(r2_oob_t *oob, const uint8_t *key);
/** Keeps a process's blob for lookup(). @param rank in the other job. @return R2_OK,
 * R2_ERR_NO_MEMORY. */
r2_status_t r2_oob_pair_keep(r2_oob_t *oob, uint32_t rank, const void *blob, size_t bytes);
/** Is there a process that lookup() did not know? Any thread. */
bool r2_oob_pair_lacks(const r2_oob_t *oob);
/** One of them, once. As lookup(). @param rank_p in the other job. @return false: none. */
bool r2_oob_pair_next_lack(r2_oob_t *oob, uint32_t *rank_p);

/** "4.2.2" style version of the PMIx library in use. */
const char *r2_oob_pmix_version(void);

#endif
