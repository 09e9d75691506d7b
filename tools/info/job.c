/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A short job without MPI on the hosts that mpirun starts this program on: what it plans from.
 */
#include "r2_config.h"

#include "job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "info.h"
#include "r2/coll.h"

/*
 * Hello calls over a rail that drops everything in silence take two seconds to fail, and a verdict
 * half of one. More if ranks have not agreed by then, up to the second.
 */
#define JOB_LOAD_NS 3000000000u
#define JOB_WAIT_NS 8000000000u
/* Vectors grow until a call takes this long, so that fast rails are loaded and slow ones are not
 * for long. */
#define JOB_CALL_NS   20000000u
#define JOB_BYTES_MIN ((uint64_t) 64 << 10)
#define JOB_BYTES_MAX ((uint64_t) 16 << 20)
#define JOB_SHORT     50u /* calls of a few bytes: they show the latency */

/** All ranks of this job. */
typedef struct job {
    r2_ctx_t *ctx;   /* owned */
    r2_comm_t *comm; /* owned */
    float *in, *out; /* owned; JOB_BYTES_MAX */
} job_t;

static void job_add_floats(void *arg, const void *in, void *inout, size_t count)
{
    const float *from = in;
    float *to = inout;

    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        to[i] += from[i];
    }
}

static void job_add_words(void *arg, const void *in, void *inout, size_t count)
{
    const uint64_t *from = in;
    uint64_t *to = inout;

    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        to[i] += from[i];
    }
}

static r2_status_t job_allreduce(const job_t *job, r2_coll_args_t *args)
{
    r2_coll_t *coll;
    r2_status_t status;

    args->kind = R2_COLL_ALLREDUCE;
    args->commutative = true;
    args->blocking = true;
    status = r2_coll_post(job->comm, args, NULL, NULL, &coll);
    if (R2_OK == status) {
        status = r2_coll_wait(coll);
        r2_coll_release(coll);
    }
    return status;
}

/** All ranks get the number that rank 0 gives. */
static r2_status_t job_tell(const job_t *job, uint64_t *number)
{
    const uint64_t mine = 0 == r2_ctx_rank(job->ctx) ? *number : 0;
    r2_coll_args_t args = {.in = &mine,
                           .out = number,
                           .count = 1,
                           .element_bytes = sizeof(mine),
                           .reduce = job_add_words,
                           .exact = true};

    return job_allreduce(job, &args);
}

static r2_status_t job_move(const job_t *job, uint64_t bytes)
{
    r2_coll_args_t args = {.in = job->in,
                           .out = job->out,
                           .count = bytes / sizeof(float),
                           .element_bytes = sizeof(float),
                           .reduce = job_add_floats};

    return job_allreduce(job, &args);
}

/** Rank 0: do all ranks know what this one knows? */
static bool job_is_settled(const job_t *job)
{
    char *text = NULL;
    const r2_status_t status = r2_ctx_plan_text(job->ctx, &text);

    free(text);
    return R2_ERR_AGAIN != status;
}

static uint64_t job_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/** Moves data until all is known; rank 0 decides how much and how long. */
static r2_status_t job_load(const job_t *job)
{
    const uint64_t start_ns = job_now_ns();
    uint64_t bytes = JOB_BYTES_MIN, next;
    r2_status_t status = R2_OK;

    for (uint32_t i = 0; R2_OK == status && i < JOB_SHORT; ++i) {
        next = 0;
        status = job_tell(job, &next);
    }
    while (R2_OK == status) {
        const uint64_t now_ns = job_now_ns();

        next = now_ns - start_ns < JOB_LOAD_NS ||
                       (now_ns - start_ns < JOB_WAIT_NS && !job_is_settled(job))
                   ? bytes
                   : 0;
        status = job_tell(job, &next);
        if (R2_OK != status || 0 == next) {
            break;
        }
        status = job_move(job, next);
        if (job_now_ns() - now_ns < JOB_CALL_NS && bytes < JOB_BYTES_MAX) {
            bytes *= 2;
        }
    }
    return status;
}

static r2_status_t job_communicator(job_t *job)
{
    const uint32_t size = r2_ctx_size(job->ctx);
    uint32_t *ranks = calloc(size, sizeof(*ranks));
    r2_status_t status;

    if (NULL == ranks) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t rank = 0; rank < size; ++rank) {
        ranks[rank] = rank;
    }
    status = r2_comm_create(job->ctx, (r2_comm_id_t){0, 0}, ranks, (int32_t) size,
                            (int32_t) r2_ctx_rank(job->ctx), &job->comm);
    free(ranks);
    return status;
}

/** Between the launcher's fences. */
static r2_status_t job_work(job_t *job, char **text_p, char *error_p, size_t error_bytes)
{
    r2_status_t status = job_communicator(job);

    if (1 == r2_ctx_size(job->ctx)) {
        snprintf(error_p, error_bytes, "%s",
                 "a plan needs 2 hosts or more: give mpirun more, and --map-by node");
        status = R2_ERR_PARAM;
    }
    if (R2_OK == status) {
        status = job_load(job);
        if (R2_OK != status) {
            r2_ctx_error_text(job->ctx, error_p, error_bytes);
        }
    }
    if (R2_OK == status && 0 == r2_ctx_rank(job->ctx)) {
        status = r2_ctx_plan_text(job->ctx, text_p);
        status = R2_ERR_AGAIN == status ? R2_OK : status;
    }
    if (NULL != job->comm) {
        r2_comm_destroy(job->comm);
    }
    return status;
}

r2_status_t info_job_run(char **text_p, char *error_p, size_t error_bytes)
{
    static info_t info; /* strings of parameters live as long as the context */
    job_t job = {.in = calloc(1, JOB_BYTES_MAX), .out = calloc(1, JOB_BYTES_MAX)};
    r2_ctx_config_t config = {.params = &info.params};
    r2_status_t status = NULL == job.in || NULL == job.out ? R2_ERR_NO_MEMORY : R2_OK;

    *text_p = NULL;
    error_p[0] = '\0';
    info_collect(&info);
    if ('\0' != info.params_text[0]) {
        snprintf(error_p, error_bytes, "%s", info.params_text);
        status = R2_ERR_PARAM;
    }
    if (R2_OK == status) {
        status = r2_ctx_create(&config, &job.ctx, error_p, error_bytes);
    }
    if (R2_OK == status) {
        status = r2_ctx_fence(job.ctx);
    }
    if (R2_OK == status) {
        status = job_work(&job, text_p, error_p, error_bytes);
    }
    if (R2_OK == status) {
        status = r2_ctx_fence(job.ctx);
    }
    /* else others may still use what would be torn down: the launcher ends all */
    if (R2_OK == status) {
        r2_ctx_destroy(job.ctx);
        info_free(&info);
    }
    if (R2_OK != status && '\0' == error_p[0]) {
        snprintf(error_p, error_bytes, "%s", r2_status_string(status));
    }
    free(job.in);
    free(job.out);
    return status;
}
