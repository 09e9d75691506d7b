/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers, values and checks of one collective call.
 */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu_alloc.h"

#define JOB_GUARD_COUNT 8
#define JOB_GUARD       (-77)
#define JOB_MAX_REPORTS 3

static int *job_buffer(size_t count)
{
    int *buffer = buffer_alloc((count + JOB_GUARD_COUNT) * sizeof(int));

    if (NULL == buffer) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    for (size_t i = 0; i < count; ++i) {
        buffer[i] = JOB_UNTOUCHED;
    }
    for (size_t i = 0; i < JOB_GUARD_COUNT; ++i) {
        buffer[count + i] = JOB_GUARD;
    }
    return buffer;
}

int job_value(int side, int rank, size_t index)
{
    return 1 + (int) index + 10000 * (rank + 1) + 1000000 * side;
}

void job_alloc(job_t *job, size_t send_count, size_t recv_count)
{
    job->send_count = send_count;
    job->recv_count = recv_count;
    job->send = job_buffer(send_count);
    job->recv = job_buffer(recv_count);
    job->request = MPI_REQUEST_NULL;
    for (size_t i = 0; i < send_count; ++i) {
        job->send[i] = job_value(job->on->side, job->on->rank, i);
    }
}

void job_fail(job_t *job, const char *what)
{
    static const char *const modes[] = {"blocking", "nonblocking", "persistent"};

    if (JOB_MAX_REPORTS > job->failures++) {
        fprintf(stderr, "# %s %s on %s, rank %d, count %d, root %d%s: %s\n", modes[job->mode],
                job->name, job->on->name, job->on->rank, job->count, job->root,
                job->in_place ? ", in place" : "", what);
    }
}

void job_free(job_t *job)
{
    for (size_t i = 0; i < JOB_GUARD_COUNT; ++i) {
        if (JOB_GUARD != job->recv[job->recv_count + i]) {
            job_fail(job, "wrote behind the receive buffer");
        }
    }
    for (size_t i = 0; i < job->send_count; ++i) {
        if (job_value(job->on->side, job->on->rank, i) != job->send[i]) {
            job_fail(job, "wrote into the send buffer");
            break;
        }
    }
    buffer_free(job->send);
    buffer_free(job->recv);
    job->send = NULL;
    job->recv = NULL;
}

void job_complete(job_t *job)
{
    if (JOB_NONBLOCKING == job->mode) {
        MPI_Wait(&job->request, MPI_STATUS_IGNORE);
    } else if (JOB_PERSISTENT == job->mode) {
        int *keep = malloc((job->recv_count + 1) * sizeof(int));

        for (size_t i = 0; i < job->recv_count; ++i) {
            keep[i] = job->recv[i];
        }
        MPI_Start(&job->request);
        MPI_Wait(&job->request, MPI_STATUS_IGNORE);
        /* A second round from the same start: what the first one wrote must not be what passes. */
        for (size_t i = 0; i < job->recv_count; ++i) {
            job->recv[i] = keep[i];
        }
        MPI_Start(&job->request);
        MPI_Wait(&job->request, MPI_STATUS_IGNORE);
        MPI_Request_free(&job->request);
        free(keep);
    }
}

int job_peer_side(const job_t *job)
{
    return job->on->inter ? !job->on->side : 0;
}

int job_sum(const job_t *job, int count, size_t index)
{
    int sum = 0;

    for (int r = 0; r < count; ++r) {
        sum += job_value(job_peer_side(job), r, index);
    }
    return sum;
}

void job_expect(job_t *job, size_t index, int expected)
{
    if (expected != job->recv[index]) {
        char text[96];

        snprintf(text, sizeof(text), "element %zu is %d, expected %d", index, job->recv[index],
                 expected);
        job_fail(job, text);
    }
}

void job_expect_block(job_t *job, size_t at, int rank, size_t first, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        job_expect(job, at + i, job_value(job_peer_side(job), rank, first + i));
    }
}

void job_expect_untouched(job_t *job, size_t at, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        job_expect(job, at + i, JOB_UNTOUCHED);
    }
}

bool job_is_root(const job_t *job)
{
    return job->on->rank == job->root && (!job->on->inter || 0 == job->on->side);
}

bool job_is_leaf(const job_t *job)
{
    return !job->on->inter || 1 == job->on->side;
}

int job_root(const job_t *job)
{
    if (!job->on->inter || 1 == job->on->side) {
        return job->root;
    }
    return job_is_root(job) ? MPI_ROOT : MPI_PROC_NULL;
}

int job_uneven(const job_t *job, int ranks, int *counts, int *displs)
{
    int total = 0;

    for (int r = 0; r < ranks; ++r) {
        counts[r] = 0 == job->count ? 0 : job->count + r % 3;
        displs[r] = total;
        total += counts[r] + 1;
    }
    return total;
}
