/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Persistent collectives are made in the same order on all ranks, and started in any, another one
 * on each rank (MPI-4, 6.13). Exact data. Output: TAP, from rank 0.
 */
#include "mixed.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    define INIT(Name) MPIX_##Name##_init
#endif

enum {
    REQUESTS = 4,
    ORDERS = 24,
    KINDS = 5,
    AHEAD = 40,
    MANY = 12,
    THREADS = 4,
    TURNS = 12,
    LIMIT_S = 90
};

static mix_comm_t comms[3]; /* the world, a copy, all ranks in reverse order */
static int me, size, number, tests_failed;
static const char *current = "start";

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, current, strlen(current));
    (void) !write(STDERR_FILENO, " hangs\n", 7);
    _exit(2);
}

static void verdict(const char *name, unsigned failures)
{
    unsigned all;

    MPI_Allreduce(&failures, &all, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    tests_failed += 0 != all;
    ++number;
    if (0 == me) {
        printf("%sok %d - %s\n", 0 == all ? "" : "not ", number, name);
        fflush(stdout);
    }
}

static void begin(const char *name)
{
    current = name;
    alarm(LIMIT_S);
}

/* The requests' kinds go round with `turn`; lengths from nothing to several messages. */
static void make(mix_call_t *calls, int count, int turn, int on_count)
{
    static const int lengths[] = {2, 300, 0, 20000, 1200, 4000, 10};

    memset(calls, 0, (size_t) count * sizeof(*calls));
    for (int i = 0; i < count; ++i) {
        const int draw = turn * count + i;

        calls[i].kind = (mix_kind_t) (draw * 5 % MIX_KIND_COUNT);
        if (MIX_NEIGHBOR_ALLTOALLV == calls[i].kind) {
            calls[i].kind = MIX_ALLREDUCE; /* on a communicator with a topology: see `mixed` */
        }
        calls[i].on = &comms[draw % on_count];
        calls[i].units = lengths[draw % 7];
        calls[i].root = draw / 3 % size;
        calls[i].in_place = 0 == draw % 5;
        calls[i].user_op = 0 == draw % 3;
        calls[i].mode = MIX_PERSISTENT;
        calls[i].salt = 77u * (uint32_t) draw;
        mix_call_start(&calls[i]);
    }
}

/* The n-th order of four. */
static void order_of(int n, int *order_p)
{
    int left[REQUESTS] = {0, 1, 2, 3}, base = ORDERS / REQUESTS;

    n %= ORDERS;
    for (int i = 0; i < REQUESTS; ++i) {
        const int at = n / base;

        order_p[i] = left[at];
        memmove(&left[at], &left[at + 1], (size_t) (REQUESTS - 1 - at) * sizeof(*left));
        n %= base;
        base /= REQUESTS - 1 - i > 0 ? REQUESTS - 1 - i : 1;
    }
}

static unsigned land(mix_call_t *calls, int count, bool again)
{
    unsigned failures = 0;

    for (int i = 0; i < count; ++i) {
        MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < count; ++i) {
        failures += mix_call_check(&calls[i]);
        if (again) {
            mix_call_refill(&calls[i]);
        }
    }
    return failures;
}

/* Every order on some rank with every other one on another. */
static unsigned all_orders(void)
{
    mix_call_t calls[REQUESTS];
    unsigned failures = 0;
    int order[REQUESTS];

    for (int turn = 0; turn < KINDS; ++turn) {
        make(calls, REQUESTS, turn, 3);
        for (int k = 0; k < ORDERS; ++k) {
            order_of(turn * me + k * (1 + 4 * me), order);
            for (int i = 0; i < REQUESTS; ++i) {
                MPI_Start(&calls[order[i]].request);
            }
            failures += land(calls, REQUESTS, true);
        }
        for (int i = 0; i < REQUESTS; ++i) {
            mix_call_end(&calls[i]);
        }
    }
    return failures;
}

/* A blocking call, and one that is waited for after the next one. @return failures. */
static unsigned pass(int turn, int *slot, MPI_Request *pending)
{
    int sum = 0, wrong;

    MPI_Allreduce(&turn, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong = sum != size * turn;
    MPI_Wait(pending, MPI_STATUS_IGNORE);
    wrong += *slot != turn - 1;
    *slot = me == turn % size ? turn : -1;
    MPI_Ibcast(slot, 1, MPI_INT, turn % size, MPI_COMM_WORLD, pending);
    return (unsigned) wrong;
}

/* Between other calls of the same communicator, elsewhere on each rank. */
static unsigned between_calls(void)
{
    mix_call_t calls[REQUESTS];
    MPI_Request pending = MPI_REQUEST_NULL;
    unsigned failures = 0;
    int slot = -1;

    for (int round = 0; round < TURNS; ++round) {
        make(calls, REQUESTS, round, 1);
        for (int turn = 0; turn < 3 * REQUESTS; ++turn) {
            const int due = (turn + round + 5 * me) % (3 * REQUESTS);

            if (due < REQUESTS) {
                MPI_Start(&calls[due].request);
            }
            failures += pass(round * 3 * REQUESTS + turn, &slot, &pending);
        }
        failures += land(calls, REQUESTS, false);
        for (int i = 0; i < REQUESTS; ++i) {
            mix_call_end(&calls[i]);
        }
    }
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    return failures;
}

/* The root of a bcast is done with many starts before others begin with the first. */
static unsigned root_ahead(void)
{
    int value = 0, word = 0;
    unsigned failures = 0;
    MPI_Request request;

    INIT(Bcast)(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (0 != me) {
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < AHEAD; ++i) {
        value = 0 == me ? 1000 + i : -1;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        failures += 1000 + i != value;
    }
    if (0 == me) { /* the request, too, is gone when they come */
        MPI_Request_free(&request);
        for (int i = 1; i < size; ++i) {
            MPI_Send(&word, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
        }
    } else {
        MPI_Request_free(&request);
    }
    return failures;
}

/* A rank is in the next start of one request before the others have ended the one before. */
static unsigned one_ahead(void)
{
    enum { COUNT = 30000 };
    int *in = calloc(COUNT, sizeof(int)), *out = calloc(COUNT, sizeof(int)), word = 0;
    unsigned failures = 0;
    MPI_Request request;

    INIT(Allreduce)(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int turn = 0; turn < TURNS; ++turn) {
        for (int i = 0; i < COUNT; ++i) {
            in[i] = me + turn + i;
        }
        MPI_Start(&request);
        if (turn % size == me && 0 < turn) { /* of this one, which is under way on this rank only */
            for (int i = 0; i < size; ++i) {
                MPI_Send(&word, i == me ? 0 : 1, MPI_INT, i == me ? MPI_PROC_NULL : i, turn,
                         MPI_COMM_WORLD);
            }
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; ++i) {
            failures += out[i] != size * (turn + i) + size * (size - 1) / 2;
        }
        if ((turn + 1) % size != me && turn + 1 < TURNS) {
            MPI_Recv(&word, 1, MPI_INT, (turn + 1) % size, turn + 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }
    MPI_Request_free(&request);
    free(in);
    free(out);
    return failures;
}

/* Half of them are never started; each rank frees in another order, and makes new ones meanwhile.
 * */
static unsigned never_started(void)
{
    mix_call_t old[MANY], new[MANY];
    unsigned failures = 0;

    make(old, MANY, 1, 2);
    for (int round = 2; round < 12; ++round) {
        for (int i = 0; i < MANY; ++i) {
            const int at = (i * 5 + me) % MANY;

            if (0 == at % 2) {
                MPI_Start(&old[at].request);
            }
        }
        make(new, MANY, round, 2);
        for (int i = 0; i < MANY; ++i) {
            const int at = (i * 7 + 3 * me) % MANY;

            if (0 == at % 2) {
                MPI_Wait(&old[at].request, MPI_STATUS_IGNORE);
                failures += mix_call_check(&old[at]);
            }
            mix_call_end(&old[at]);
        }
        memcpy(old, new, sizeof(old));
    }
    for (int i = 0; i < MANY; ++i) {
        mix_call_end(&old[i]);
    }
    return failures;
}

typedef struct worker {
    pthread_t thread;
    int rank, number;
    int in[1000], out[1000];
    MPI_Request request;
    unsigned failures;
} worker_t;

static void *work(void *arg)
{
    worker_t *w = arg;

    for (int turn = 0; turn < TURNS; ++turn) {
        for (int i = 0; i < 1000; ++i) {
            w->in[i] = w->rank + 10 * w->number + turn + i;
        }
        MPI_Start(&w->request);
        MPI_Wait(&w->request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 1000; ++i) {
            w->failures += w->out[i] != size * (10 * w->number + turn + i) + size * (size - 1) / 2;
        }
    }
    return NULL;
}

/* Each thread has a request of one communicator; nothing orders their starts. */
static unsigned many_threads(void)
{
    static worker_t workers[THREADS];
    unsigned failures = 0;

    for (int i = 0; i < THREADS; ++i) {
        worker_t *w = &workers[i];

        w->rank = me;
        w->number = i;
        INIT(Allreduce)(w->in, w->out, 1000, MPI_INT, MPI_SUM, comms[1].comm, MPI_INFO_NULL,
                        &w->request);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        failures += workers[i].failures;
        MPI_Request_free(&workers[i].request);
    }
    return failures;
}

/** What the last rank makes otherwise. */
typedef enum odd { ODD_ROOT, ODD_COUNT, ODD_OP, ODD_KIND, ODD_ORDER, ODD_NOTHING, ODD_FREED,
                  ODD_END } odd_t;

static void odd_make(odd_t odd, bool differs, int *in, int *out, MPI_Comm comm,
                     MPI_Request *requests)
{
    const int root = differs && ODD_ROOT == odd ? 1 : 0;
    const int count = !differs ? 20 : ODD_COUNT == odd ? 19 : ODD_NOTHING == odd ? 0 : 20;
    MPI_Op op = differs && ODD_OP == odd ? MPI_MAX : MPI_SUM;
    MPI_Request *first = &requests[0], *second = &requests[1];

    if (differs && ODD_ORDER == odd) {
        INIT(Alltoall)(in, 2, MPI_INT, out, 2, MPI_INT, comm, MPI_INFO_NULL, first);
        first = &requests[1];
        second = NULL;
    }
    if (differs && ODD_KIND == odd) {
        INIT(Barrier)(comm, MPI_INFO_NULL, first);
    } else if (ODD_ROOT == odd) {
        INIT(Reduce)(in, out, count, MPI_INT, op, root, comm, MPI_INFO_NULL, first);
    } else {
        INIT(Allreduce)(in, out, count, MPI_INT, op, comm, MPI_INFO_NULL, first);
    }
    if (NULL != second) {
        INIT(Alltoall)(in, 2, MPI_INT, out, 2, MPI_INT, comm, MPI_INFO_NULL, second);
    }
    if (differs && ODD_FREED == odd) { /* and the others start it */
        MPI_Request_free(&requests[0]);
    }
}

/* All ranks get an error, from this start or from a call after it, and none hangs. */
static unsigned odd_play(odd_t odd)
{
    int in[100] = {0}, out[100], class = MPI_SUCCESS, rc = MPI_SUCCESS;
    const double start = MPI_Wtime();
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    odd_make(odd, me == size - 1, in, out, comm, requests);
    if (MPI_REQUEST_NULL != requests[0]) {
        rc = MPI_Start(&requests[0]);
        rc = MPI_SUCCESS == rc ? MPI_Wait(&requests[0], MPI_STATUS_IGNORE) : rc;
    }
    while (MPI_SUCCESS == rc && MPI_Wtime() - start < LIMIT_S / 2) {
        rc = MPI_Barrier(comm);
    }
    MPI_Error_class(rc, &class);
    for (int i = 0; i < 2; ++i) {
        if (MPI_REQUEST_NULL != requests[i]) {
            MPI_Request_free(&requests[i]);
        }
    }
    MPI_Comm_free(&comm);
    return MPI_ERR_COUNT != class;
}

static unsigned mismatches(void)
{
    unsigned failures = 0;

    for (odd_t odd = 0; odd < ODD_END; ++odd) {
        const unsigned wrong = odd_play(odd);

        if (0 != wrong) {
            fprintf(stderr, "# rank %d: case %d was not noticed\n", me, (int) odd);
        }
        failures += wrong;
    }
    return failures;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        unsigned (*run)(void);
    } tests[] = {{"all orders", all_orders},
                 {"between other calls", between_calls},
                 {"a root that is ahead", root_ahead},
                 {"a rank that is one start ahead", one_ahead},
                 {"never started, freed in any order", never_started},
                 {"threads", many_threads},
                 {"other arguments", mismatches}};
    int level;
    MPI_Comm comm;

    signal(SIGALRM, hung);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* Open MPI 4: of all requests */
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mix_types_init();
    comms[0] = (mix_comm_t){.comm = MPI_COMM_WORLD, .rank = me, .size = size};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    comms[1] = (mix_comm_t){.comm = comm, .rank = me, .size = size};
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comm);
    comms[2] = (mix_comm_t){.comm = comm, .rank = size - 1 - me, .size = size};
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); ++i) {
        if (argc < 2 || 0 == strcmp(argv[1], tests[i].name)) {
            begin(tests[i].name);
            verdict(tests[i].name, tests[i].run());
        }
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    alarm(0);
    MPI_Comm_free(&comms[1].comm);
    MPI_Comm_free(&comms[2].comm);
    mix_types_free();
    MPI_Finalize();
    return 0 == tests_failed && 0 < number ? EXIT_SUCCESS : EXIT_FAILURE;
}
