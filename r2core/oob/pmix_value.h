/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Values of processes at the PMIx server. For oob/pmix*.c only.
 */
#ifndef R2_OOB_PMIX_VALUE_H
#define R2_OOB_PMIX_VALUE_H

#include <pmix.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oob/pmix_request.h"
#include "r2/status.h"
#include "rail/hello.h"

#define R2_PMIX_BLOB_KEY "r2.blob"
#define R2_PMIX_JOB_KEY  "r2.key"

/** A job: this one, or another that the server knows. */
typedef struct r2_pmix_job {
    pmix_nspace_t nspace;
    uint32_t size;
    char *locals;           /* owned: ranks on this host, "0,2"; NULL: not known */
    r2_pmix_asked_t *asked; /* owned: what the server has not answered yet */
} r2_pmix_job_t;

/**
 * @return R2_OK, R2_ERR_NOT_FOUND: the server does not know the job; R2_ERR_TIMEOUT: it is late,
 * or it is PRRTE, which never answers who asks for a job that it does not know: who calls again
 * waits for the same answer; R2_ERR_NO_MEMORY.
 * @param job zero at first. To be closed, whatever comes.
 */
r2_status_t r2_pmix_job_open(const char *nspace, r2_pmix_job_t *job);
void r2_pmix_job_close(r2_pmix_job_t *job);
/** Is it a process of this host? */
bool r2_pmix_is_local(const r2_pmix_job_t *job, uint32_t rank);

/**
 * Whether a process of another job lives, by this host's server. Of processes of other hosts it
 * may know that they were started.
 * @param job whose name space is set.
 * @param rank PMIX_RANK_WILDCARD: whether this launcher knows the job, whoever of it is dead.
 * @return R2_OK: it does; R2_ERR_PEER_GONE: it is dead, or its job has ended; R2_ERR_NOT_FOUND:
 * this launcher does not know the job, and did not start it: it may live under another one;
 * R2_ERR_AGAIN: none of these, as of a process that is about to end; R2_ERR_UNSUPPORTED: this
 * server does not tell; R2_ERR_TIMEOUT, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_pmix_ask_after(const r2_pmix_job_t *job, uint32_t rank);
/**
 * Who of another job is dead, by one table for all.
 * @param dead_p [bytes] bit r: rank r is; of more than R2_OOB_BLOB_MAX bytes the rest is unchanged.
 * @return as r2_pmix_ask_after() of PMIX_RANK_WILDCARD; R2_OK: dead_p is written.
 */
r2_status_t r2_pmix_ask_dead(const r2_pmix_job_t *job, uint8_t *dead_p, size_t bytes);

/**
 * A value of a process, after the launcher's fence. The fence normally brought it here; if not
 * (pmix_base_collect_data 0, another job), this host's server knows all about its own processes,
 * and the server of another host answers at once for its own. For a process of this host that has
 * no such value, a plain PMIx_Get() would wait for one until its timeout.
 * @return R2_OK, R2_ERR_NOT_FOUND, R2_ERR_WIRE (no bytes, or more than `space`), R2_ERR_TIMEOUT,
 * other errors of the way there.
 */
r2_status_t r2_pmix_get(const r2_pmix_job_t *job, uint32_t rank, const char *name, void *to,
                        size_t space, size_t *bytes_p);

/** Others see the value when this process, or its MPI, commits. @return R2_OK, R2_ERR_SYSTEM. */
r2_status_t r2_pmix_store(const char *name, const void *bytes_from, size_t bytes);

/** Publishes a value, and what was stored. @return R2_OK, R2_ERR_SYSTEM. */
r2_status_t r2_pmix_put(const char *name, const void *bytes_from, size_t bytes);

#endif
