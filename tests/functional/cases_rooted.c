/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives with a root.
 */
#include "job.h"

/* The side of the root's contribution: where leaves of an intercommunicator receive from. */
static void run_bcast(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, 0, count);
    for (size_t i = 0; job_is_root(job) && i < count; ++i) {
        job->recv[i] = job_value(0, job->root, i);
    }
    JOB_CALL(job, Bcast, bcast, job->recv, job->count, MPI_INT, job_root(job), on->comm);
    if (job_is_root(job) || job_is_leaf(job)) {
        for (size_t i = 0; i < count; ++i) {
            job_expect(job, i, job_value(0, job->root, i));
        }
    } else {
        job_expect_untouched(job, 0, count);
    }
    job_free(job);
}

/* In place concerns the root alone: its own block lies in recv already. */
static bool is_in_place_here(const job_t *job)
{
    return job->in_place && job_is_root(job);
}

static void run_gather(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count, count * (size_t) on->peers);
    for (size_t i = 0; is_in_place_here(job) && i < count; ++i) {
        job->recv[(size_t) on->rank * count + i] = job->send[i];
    }
    JOB_CALL(job, Gather, gather, is_in_place_here(job) ? MPI_IN_PLACE : job->send, job->count,
             MPI_INT, job->recv, job->count, MPI_INT, job_root(job), on->comm);
    if (job_is_root(job)) {
        for (int r = 0; r < on->peers; ++r) {
            job_expect_block(job, (size_t) r * count, r, 0, count);
        }
    } else {
        job_expect_untouched(job, 0, job->recv_count);
    }
    job_free(job);
}

static void run_gatherv(job_t *job)
{
    const job_comm_t *on = job->on;
    int counts[JOB_MAX_RANKS];
    int displs[JOB_MAX_RANKS];
    int total = job_uneven(job, on->peers, counts, displs);
    int mine = 0 == job->count ? 0 : job->count + on->rank % 3;

    job_alloc(job, (size_t) mine, (size_t) total);
    for (int i = 0; is_in_place_here(job) && i < mine; ++i) {
        job->recv[displs[on->rank] + i] = job->send[i];
    }
    JOB_CALL(job, Gatherv, gatherv, is_in_place_here(job) ? MPI_IN_PLACE : job->send, mine, MPI_INT,
             job->recv, counts, displs, MPI_INT, job_root(job), on->comm);
    for (int r = 0; job_is_root(job) && r < on->peers; ++r) {
        job_expect_block(job, (size_t) displs[r], r, 0, (size_t) counts[r]);
        job_expect_untouched(job, (size_t) (displs[r] + counts[r]), 1);
    }
    if (!job_is_root(job)) {
        job_expect_untouched(job, 0, job->recv_count);
    }
    job_free(job);
}

/* Rank r takes elements [r * count, (r + 1) * count) of the root. */
static void run_scatter(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count * (size_t) on->peers, count);
    JOB_CALL(job, Scatter, scatter, job->send, job->count, MPI_INT,
             is_in_place_here(job) ? MPI_IN_PLACE : job->recv, job->count, MPI_INT, job_root(job),
             on->comm);
    if (job_is_leaf(job) && !is_in_place_here(job)) {
        for (size_t i = 0; i < count; ++i) {
            job_expect(job, i, job_value(0, job->root, (size_t) on->rank * count + i));
        }
    } else {
        job_expect_untouched(job, 0, count);
    }
    job_free(job);
}

static void run_scatterv(job_t *job)
{
    const job_comm_t *on = job->on;
    int counts[JOB_MAX_RANKS];
    int displs[JOB_MAX_RANKS];
    int total = job_uneven(job, on->inter && 1 == on->side ? on->size : on->peers, counts, displs);
    int mine = 0 == job->count ? 0 : job->count + on->rank % 3;

    job_alloc(job, (size_t) total, (size_t) mine);
    JOB_CALL(job, Scatterv, scatterv, job->send, counts, displs, MPI_INT,
             is_in_place_here(job) ? MPI_IN_PLACE : job->recv, mine, MPI_INT, job_root(job),
             on->comm);
    if (job_is_leaf(job) && !is_in_place_here(job)) {
        for (size_t i = 0; i < (size_t) mine; ++i) {
            job_expect(job, i, job_value(0, job->root, (size_t) displs[on->rank] + i));
        }
    } else {
        job_expect_untouched(job, 0, (size_t) mine);
    }
    job_free(job);
}

static void run_reduce(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count, count);
    for (size_t i = 0; is_in_place_here(job) && i < count; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Reduce, reduce, is_in_place_here(job) ? MPI_IN_PLACE : job->send, job->recv,
             job->count, MPI_INT, MPI_SUM, job_root(job), on->comm);
    if (job_is_root(job)) {
        for (size_t i = 0; i < count; ++i) {
            job_expect(job, i, job_sum(job, on->peers, i));
        }
    }
    job_free(job);
}

const job_case_t job_cases_rooted[] = {
    {"bcast", run_bcast, true, false, true},    {"gather", run_gather, true, true, true},
    {"gatherv", run_gatherv, true, true, true}, {"reduce", run_reduce, true, true, true},
    {"scatter", run_scatter, true, true, true}, {"scatterv", run_scatterv, true, true, true},
    {NULL, NULL, false, false, false},
};
