/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Many calls at once: in flight on several communicators, completed in any order, from threads, and
 * on communicators that come and go.
 */
#include "datatypes_groups.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHT_CALLS 24
#define THREADS      4

/* A random call, equal on all ranks of `on` but for what depends on the rank. */
static void random_call(dt_call_t *call, const dt_comm_t *on, uint64_t seed, uint64_t step,
                        uint64_t longest)
{
    uint64_t hash = dt_hash(seed, step, 11);
    size_t count;
    const dt_reduction_t *all = 0 == hash % 2 ? dt_predefined(&count) : dt_user(&count);
    uint64_t length = 1 + dt_hash(seed, step, 13) % (1 + (longest >> dt_hash(seed, step, 17) % 16));

    memset(call, 0, sizeof(*call));
    call->on = on;
    call->kind = (dt_kind_t) (dt_hash(seed, step, 19) % DT_KIND_COUNT);
    call->in_place = 0 == (hash >> 8) % 3 && DT_BCAST != call->kind && DT_BARRIER != call->kind;
    call->root = (int) ((hash >> 16) % (uint64_t) on->size);
    call->class = (dt_class_t) ((hash >> 24) % DT_CLASS_COUNT);
    call->variant = (unsigned) (hash >> 32) % 12;
    call->plain = 0 == (hash >> 40) % 3;
    call->salt = (uint32_t) (hash >> 44);
    call->reduction = &all[dt_hash(seed, step, 23) % count];
    call->count = (int) (length / call->reduction->type->bytes) + 1;
    call->units = (length / 48 + 1) * 12;
    call->nonblocking = DT_ALLREDUCE == call->kind || DT_ALLGATHER == call->kind ||
                        DT_BCAST == call->kind || DT_BARRIER == call->kind;
}

/* Completes calls in an order of this rank's own. */
static void complete(dt_call_t *calls, int count, uint64_t how)
{
    MPI_Request requests[FLIGHT_CALLS];

    for (int i = 0; i < count; ++i) {
        requests[i] = calls[i].request;
    }
    for (int left = count, flag, index; left > 0;) {
        switch (how % 4) {
        case 0:
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
            left = 0;
            break;
        case 1:
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
            left = MPI_UNDEFINED == index ? 0 : left;
            break;
        case 2:
            MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
            left = flag && MPI_UNDEFINED == index ? 0 : left;
            break;
        default: /* last to first */
            MPI_Wait(&requests[--left], MPI_STATUS_IGNORE);
            break;
        }
    }
}

/* One flight: calls on several communicators, some of them blocking, then completion. */
static unsigned flight(const dt_env_t *env, uint64_t seed)
{
    dt_call_t *calls = calloc(FLIGHT_CALLS, sizeof(*calls));
    uint64_t longest = env->thorough ? 1u << 20 : 200000;
    int count = 0;
    unsigned failures = 0;

    for (int i = 0; i < FLIGHT_CALLS; ++i) {
        size_t c = dt_hash(seed, (uint64_t) i, 29) % (uint64_t) env->comm_count;

        random_call(&calls[count], &env->comms[c], seed, (uint64_t) i, longest);
        if (calls[count].nonblocking) {
            dt_call_start(&calls[count++]);
        } else {
            failures += dt_call_run(&calls[count]);
        }
    }
    complete(calls, count, dt_hash(seed, (uint64_t) env->comms[0].rank, 31));
    for (int i = 0; i < count; ++i) {
        failures += dt_call_check(&calls[i]);
    }
    free(calls);
    return failures;
}

unsigned dt_group_inflight(const dt_env_t *env)
{
    unsigned failures = 0;

    for (int round = 0; round < (env->thorough ? 150 : 10); ++round) {
        failures += flight(env, env->seed * 1000u + (uint64_t) round);
    }
    return failures;
}

/* Communicators that are made, used and freed: context ids come back. */
unsigned dt_group_comms(const dt_env_t *env)
{
    unsigned failures = 0;

    for (int round = 0; round < (env->thorough ? 60 : 6); ++round) {
        dt_env_t inner = {.thorough = false, .seed = env->seed, .comm_count = DT_MAX_COMMS};
        int rank = env->comms[0].rank;

        for (int c = 0; c < DT_MAX_COMMS; ++c) {
            MPI_Comm comm;

            if (0 == c % 2) {
                MPI_Comm_dup(env->comms[(c + round) % env->comm_count].comm, &comm);
            } else {
                MPI_Comm_split(MPI_COMM_WORLD, (rank + round) % (1 + c), c % 3 ? -rank : rank,
                               &comm);
            }
            dt_comm_init(&inner.comms[c], comm, "temporary");
        }
        failures += flight(&inner, env->seed * 77u + (uint64_t) round);
        for (int c = 0; c < DT_MAX_COMMS; ++c) {
            MPI_Comm_free(&inner.comms[(c + round) % DT_MAX_COMMS].comm);
        }
    }
    return failures;
}

/* A communicator freed while its calls are in flight: they complete normally. */
unsigned dt_group_freed(const dt_env_t *env)
{
    unsigned failures = 0;

    for (uint64_t round = 0; round < (env->thorough ? 100u : 10u); ++round) {
        dt_comm_t on;
        dt_call_t calls[4];
        MPI_Comm comm;

        MPI_Comm_dup(env->comms[0].comm, &comm);
        dt_comm_init(&on, comm, "freed");
        for (uint64_t i = 0; i < 4; ++i) {
            uint64_t step = 0;

            do {
                random_call(&calls[i], &on, round * 4 + i, ++step, 100000);
            } while (!calls[i].nonblocking);
            dt_call_start(&calls[i]);
        }
        MPI_Comm_free(&comm);
        for (int i = 0; i < 4; ++i) {
            MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
            failures += dt_call_check(&calls[i]);
        }
    }
    return failures;
}

typedef struct thread_job {
    dt_comm_t on;
    uint64_t seed;
    int rounds;
    unsigned failures;
} thread_job_t;

static void *thread_main(void *arg)
{
    thread_job_t *job = arg;

    for (int i = 0; i < job->rounds; ++i) {
        dt_call_t call;

        random_call(&call, &job->on, job->seed, (uint64_t) i, 100000);
        job->failures += dt_call_run(&call);
    }
    return NULL;
}

/* Each thread on a communicator of its own. */
unsigned dt_group_threads(const dt_env_t *env)
{
    thread_job_t jobs[THREADS];
    pthread_t threads[THREADS];
    unsigned failures = 0;
    int level;

    MPI_Query_thread(&level);
    if (MPI_THREAD_MULTIPLE != level) {
        return 0;
    }
    for (int t = 0; t < THREADS; ++t) {
        MPI_Comm comm;

        MPI_Comm_dup(env->comms[0].comm, &comm);
        dt_comm_init(&jobs[t].on, comm, "thread");
        jobs[t].seed = env->seed + (uint64_t) t * 1000;
        jobs[t].rounds = env->thorough ? 400 : 40;
        jobs[t].failures = 0;
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_create(&threads[t], NULL, thread_main, &jobs[t]);
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(threads[t], NULL);
        failures += jobs[t].failures;
        MPI_Comm_free(&jobs[t].on.comm);
    }
    return failures;
}
