/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives without a root, and the barrier.
 */
#include "job.h"

#include <time.h>
#include <unistd.h>

static void run_allgather(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count, count * (size_t) on->peers);
    for (size_t i = 0; job->in_place && i < count; ++i) {
        job->recv[(size_t) on->rank * count + i] = job->send[i];
    }
    JOB_CALL(job, Allgather, allgather, job->in_place ? MPI_IN_PLACE : job->send, job->count,
             MPI_INT, job->recv, job->count, MPI_INT, on->comm);
    for (int r = 0; r < on->peers; ++r) {
        job_expect_block(job, (size_t) r * count, r, 0, count);
    }
    job_free(job);
}

static void run_allgatherv(job_t *job)
{
    const job_comm_t *on = job->on;
    int counts[JOB_MAX_RANKS];
    int displs[JOB_MAX_RANKS];
    int total = job_uneven(job, on->peers, counts, displs);
    int mine = 0 == job->count ? 0 : job->count + on->rank % 3;

    job_alloc(job, (size_t) mine, (size_t) total);
    for (int i = 0; job->in_place && i < mine; ++i) {
        job->recv[displs[on->rank] + i] = job->send[i];
    }
    JOB_CALL(job, Allgatherv, allgatherv, job->in_place ? MPI_IN_PLACE : job->send, mine, MPI_INT,
             job->recv, counts, displs, MPI_INT, on->comm);
    for (int r = 0; r < on->peers; ++r) {
        job_expect_block(job, (size_t) displs[r], r, 0, (size_t) counts[r]);
        job_expect_untouched(job, (size_t) (displs[r] + counts[r]), 1);
    }
    job_free(job);
}

static void run_allreduce(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count, count);
    for (size_t i = 0; job->in_place && i < count; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Allreduce, allreduce, job->in_place ? MPI_IN_PLACE : job->send, job->recv,
             job->count, MPI_INT, MPI_SUM, on->comm);
    for (size_t i = 0; i < count; ++i) {
        job_expect(job, i, job_sum(job, on->peers, i));
    }
    job_free(job);
}

/* Block r of rank s is what s sends to r: elements [r * count, (r + 1) * count) of s. */
static void run_alltoall(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;
    size_t total = count * (size_t) on->peers;

    job_alloc(job, total, total);
    for (size_t i = 0; job->in_place && i < total; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Alltoall, alltoall, job->in_place ? MPI_IN_PLACE : job->send, job->count, MPI_INT,
             job->recv, job->count, MPI_INT, on->comm);
    for (int r = 0; r < on->peers; ++r) {
        job_expect_block(job, (size_t) r * count, r, (size_t) on->rank * count, count);
    }
    job_free(job);
}

/*
 * Between ranks a and b go count + (a + b) % 3 elements, so that the in-place form, which needs
 * equal counts both ways, works too. Each block to or from a rank starts at a multiple of `stride`.
 */
static void run_alltoallv(job_t *job)
{
    const job_comm_t *on = job->on;
    int stride = job->count + 3;
    int counts[JOB_MAX_RANKS];
    int displs[JOB_MAX_RANKS];

    for (int r = 0; r < on->peers; ++r) {
        counts[r] = 0 == job->count ? 0 : job->count + (on->rank + r) % 3;
        displs[r] = r * stride;
    }
    job_alloc(job, (size_t) (stride * on->peers), (size_t) (stride * on->peers));
    for (int r = 0; job->in_place && r < on->peers; ++r) {
        for (int i = 0; i < counts[r]; ++i) {
            job->recv[displs[r] + i] = job->send[displs[r] + i];
        }
    }
    JOB_CALL(job, Alltoallv, alltoallv, job->in_place ? MPI_IN_PLACE : job->send, counts, displs,
             MPI_INT, job->recv, counts, displs, MPI_INT, on->comm);
    for (int r = 0; r < on->peers; ++r) {
        job_expect_block(job, (size_t) displs[r], r, (size_t) (on->rank * stride),
                         (size_t) counts[r]);
        job_expect_untouched(job, (size_t) (displs[r] + counts[r]), (size_t) (stride - counts[r]));
    }
    job_free(job);
}

static void run_alltoallw(job_t *job)
{
    const job_comm_t *on = job->on;
    int stride = job->count + 3;
    int counts[JOB_MAX_RANKS];
    int displs_bytes[JOB_MAX_RANKS];
    MPI_Datatype types[JOB_MAX_RANKS];

    for (int r = 0; r < on->peers; ++r) {
        counts[r] = 0 == job->count ? 0 : job->count + (on->rank + r) % 3;
        displs_bytes[r] = r * stride * (int) sizeof(int);
        types[r] = MPI_INT;
    }
    job_alloc(job, (size_t) (stride * on->peers), (size_t) (stride * on->peers));
    for (int r = 0; job->in_place && r < on->peers; ++r) {
        for (int i = 0; i < counts[r]; ++i) {
            job->recv[r * stride + i] = job->send[r * stride + i];
        }
    }
    JOB_CALL(job, Alltoallw, alltoallw, job->in_place ? MPI_IN_PLACE : job->send, counts,
             displs_bytes, types, job->recv, counts, displs_bytes, types, on->comm);
    for (int r = 0; r < on->peers; ++r) {
        job_expect_block(job, (size_t) (r * stride), r, (size_t) (on->rank * stride),
                         (size_t) counts[r]);
        job_expect_untouched(job, (size_t) (r * stride + counts[r]), (size_t) (stride - counts[r]));
    }
    job_free(job);
}

/* Both groups of an intercommunicator scatter the same number of elements: multiples of both
 * sizes. */
static void run_reduce_scatter(job_t *job)
{
    const job_comm_t *on = job->on;
    int counts[JOB_MAX_RANKS];
    size_t total = 0;
    size_t first = 0;

    for (int r = 0; r < on->size; ++r) {
        int base = on->inter ? job->count * on->peers : job->count;

        counts[r] = !on->inter && 0 < base ? base + r % 3 : base;
        first += r < on->rank ? (size_t) counts[r] : 0;
        total += (size_t) counts[r];
    }
    job_alloc(job, total, job->in_place ? total : (size_t) counts[on->rank]);
    for (size_t i = 0; job->in_place && i < total; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Reduce_scatter, reduce_scatter, job->in_place ? MPI_IN_PLACE : job->send,
             job->recv, counts, MPI_INT, MPI_SUM, on->comm);
    for (size_t i = 0; i < (size_t) counts[on->rank]; ++i) {
        job_expect(job, i, job_sum(job, on->peers, first + i));
    }
    job_free(job);
}

static void run_reduce_scatter_block(job_t *job)
{
    const job_comm_t *on = job->on;
    int count = on->inter ? job->count * on->peers : job->count;
    size_t total = (size_t) (count * on->size);

    job_alloc(job, total, job->in_place ? total : (size_t) count);
    for (size_t i = 0; job->in_place && i < total; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Reduce_scatter_block, reduce_scatter_block,
             job->in_place ? MPI_IN_PLACE : job->send, job->recv, count, MPI_INT, MPI_SUM,
             on->comm);
    for (size_t i = 0; i < (size_t) count; ++i) {
        job_expect(job, i, job_sum(job, on->peers, (size_t) (on->rank * count) + i));
    }
    job_free(job);
}

static void run_scan(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count, count);
    for (size_t i = 0; job->in_place && i < count; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Scan, scan, job->in_place ? MPI_IN_PLACE : job->send, job->recv, job->count,
             MPI_INT, MPI_SUM, on->comm);
    for (size_t i = 0; i < count; ++i) {
        job_expect(job, i, job_sum(job, on->rank + 1, i));
    }
    job_free(job);
}

/* The receive buffer of rank 0 is undefined, or unchanged in place: not checked. */
static void run_exscan(job_t *job)
{
    const job_comm_t *on = job->on;
    size_t count = (size_t) job->count;

    job_alloc(job, count, count);
    for (size_t i = 0; job->in_place && i < count; ++i) {
        job->recv[i] = job->send[i];
    }
    JOB_CALL(job, Exscan, exscan, job->in_place ? MPI_IN_PLACE : job->send, job->recv, job->count,
             MPI_INT, MPI_SUM, on->comm);
    for (size_t i = 0; 0 < on->rank && i < count; ++i) {
        job_expect(job, i, job_sum(job, on->rank, i));
    }
    job_free(job);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/*
 * Nobody leaves before everybody has entered: on one machine all ranks read the same clock. On
 * intercommunicators, which r2 leaves to Open MPI, the nonblocking and persistent barriers of
 * coll/libnbc (4.1.4) let some ranks out before the other group is complete: they only have to end.
 */
static void run_barrier(job_t *job)
{
    const job_comm_t *on = job->on;
    MPI_Request requests[2 * JOB_MAX_RANKS];
    double entered[JOB_MAX_RANKS];
    double mine;
    double left;

    job_alloc(job, 0, 0);
    if (on->size - 1 == on->rank) {
        usleep(2000);
    }
    mine = now_s();
    JOB_CALL(job, Barrier, barrier, on->comm);
    left = now_s();
    for (int r = 0; r < on->peers; ++r) {
        MPI_Irecv(&entered[r], 1, MPI_DOUBLE, r, 7, on->comm, &requests[2 * r]);
        MPI_Isend(&mine, 1, MPI_DOUBLE, r, 7, on->comm, &requests[2 * r + 1]);
    }
    MPI_Waitall(2 * on->peers, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < on->peers; ++r) {
        if (entered[r] > left && (!on->inter || JOB_BLOCKING == job->mode)) {
            job_fail(job, "left before all had entered");
        }
    }
    job_free(job);
}

const job_case_t job_cases_unrooted[] = {
    {"allgather", run_allgather, true, true, true},
    {"allgatherv", run_allgatherv, true, true, true},
    {"allreduce", run_allreduce, true, true, true},
    {"alltoall", run_alltoall, true, true, true},
    {"alltoallv", run_alltoallv, true, true, true},
    {"alltoallw", run_alltoallw, true, true, true},
    {"barrier", run_barrier, true, false, false},
    {"exscan", run_exscan, false, true, true},
    {"reduce_scatter", run_reduce_scatter, true, true, true},
    {"reduce_scatter_block", run_reduce_scatter_block, true, true, true},
    {"scan", run_scan, false, true, true},
    {NULL, NULL, false, false, false},
};
