/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Random collectives of all kinds, many under way at once, on several communicators, persistent
 * ones started again and again, on each rank in another order, with exact checks.
 *
 * mixed [--seed N] [--rounds N] [--seconds S]: rounds, or rounds until S seconds are over. Prints
 * TAP.
 */
#include "mixed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMS = 5, FLIGHT = 6, STARTS = 3, WATCHDOG_S = 100 };

/** The same numbers on all ranks. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (*state >> 33);
}

static mix_call_t flight[FLIGHT];
static bool started[FLIGHT];
static int flight_count;

/* A round that does not end: say what is under way, and stop the job. */
static void watchdog(int number)
{
    (void) number;
    for (int i = 0; i < flight_count; ++i) {
        const mix_call_t *call = &flight[i];

        fprintf(stderr, "# stuck: rank %d kind %d mode %d, %d units, root %d%s\n", call->on->rank,
                (int) call->kind, (int) call->mode, call->units, call->root,
                MPI_REQUEST_NULL == call->request ? ", complete" : "");
    }
    abort();
}

static void comm_init(mix_comm_t *on, MPI_Comm comm)
{
    on->comm = comm;
    MPI_Comm_rank(comm, &on->rank);
    MPI_Comm_size(comm, &on->size);
}

/** World, a copy, odd and even ranks, all in reverse order, a ring. */
static void comms_init(mix_comm_t *comms)
{
    const int periodic = 1;
    int rank, size;
    MPI_Comm comm;

    comm_init(&comms[0], MPI_COMM_WORLD);
    rank = comms[0].rank;
    size = comms[0].size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    comm_init(&comms[1], comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    comm_init(&comms[2], comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    comm_init(&comms[3], comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
    comm_init(&comms[4], comm);
}

/** Draws a call; ranks of communicators of different sizes must draw equally often. */
static void call_draw(mix_call_t *call, const mix_comm_t *comms, bool blocking, uint64_t *state)
{
    static const int lengths[] = {0, 2, 10, 300, 3000, 20000, 100000};
    const uint32_t kind = draw(state), comm = draw(state), units = draw(state), root = draw(state);
    const uint32_t flags = draw(state), salt = draw(state);

    call->kind = (mix_kind_t) (kind % MIX_KIND_COUNT);
    call->on = &comms[MIX_NEIGHBOR_ALLTOALLV == call->kind ? 4 : comm % COMMS];
    call->units = lengths[units % (sizeof(lengths) / sizeof(lengths[0]))];
    call->root = (int) (root % 1000) % call->on->size;
    call->in_place = 0 == flags % 4;
    call->user_op = 0 == flags / 4 % 2;
    call->mode = blocking ? MIX_BLOCKING : 0 == flags / 8 % 3 ? MIX_PERSISTENT : MIX_NONBLOCKING;
    call->salt = salt;
}

/** Waits in any order: each rank its own. @return failures. */
static unsigned flight_land(uint64_t *own)
{
    unsigned failures = 0;
    int order[FLIGHT], left = flight_count;

    for (int i = 0; i < left; ++i) {
        order[i] = i;
    }
    while (left > 0) {
        const int at = (int) (draw(own) % (uint32_t) left);
        mix_call_t *call = &flight[order[at]];

        MPI_Wait(&call->request, MPI_STATUS_IGNORE);
        failures += mix_call_check(call);
        order[at] = order[--left];
    }
    return failures;
}

/** Ends all calls, or all but the persistent ones, which keep their order. */
static void flight_end(bool persistent_too)
{
    int kept = 0;

    for (int i = 0; i < flight_count; ++i) {
        if (persistent_too || MIX_PERSISTENT != flight[i].mode) {
            mix_call_end(&flight[i]);
        } else {
            flight[kept++] = flight[i];
        }
    }
    flight_count = kept;
}

/** Starts the persistent calls that have not been, in any order: each rank its own. */
static void flight_go(uint64_t *own)
{
    MPI_Request requests[FLIGHT];
    int order[FLIGHT], left = 0;

    for (int i = 0; i < flight_count; ++i) {
        if (MIX_PERSISTENT == flight[i].mode && !started[i]) {
            order[left++] = i;
            started[i] = true;
        }
    }
    for (int i = 0, count = left; i < count; ++i) {
        const int at = (int) (draw(own) % (uint32_t) left);

        requests[i] = flight[order[at]].request;
        order[at] = order[--left];
        if (0 == left) {
            MPI_Startall(count, requests);
        }
    }
}

/** Starts the persistent calls again, with other data. */
static void flight_restart(uint64_t *own)
{
    for (int i = 0; i < flight_count; ++i) {
        mix_call_refill(&flight[i]);
        started[i] = false;
    }
    flight_go(own);
}

static unsigned round_run(const mix_comm_t *comms, uint64_t *state, uint64_t *own)
{
    const bool blocking = 0 == draw(state) % 3;
    unsigned failures = 0;

    alarm(WATCHDOG_S);
    for (int i = 0; i < FLIGHT; ++i) {
        memset(&flight[flight_count], 0, sizeof(flight[0]));
        started[flight_count] = false;
        call_draw(&flight[flight_count], comms, blocking, state);
        ++flight_count;
        mix_call_start(&flight[flight_count - 1]);
        if (blocking) {
            failures += flight_land(own);
            flight_end(true);
        } else if (0 == draw(own) % 3) {
            flight_go(own);
        }
    }
    flight_go(own);
    failures += flight_land(own);
    flight_end(false);
    for (int i = 1; i < STARTS && 0 < flight_count; ++i) {
        flight_restart(own);
        failures += flight_land(own);
    }
    flight_end(true);
    alarm(0);
    return failures;
}

static long option(int argc, char **argv, const char *name, long dflt)
{
    for (int i = 1; i + 1 < argc; ++i) {
        if (0 == strcmp(argv[i], name)) {
            return strtol(argv[i + 1], NULL, 10);
        }
    }
    return dflt;
}

int main(int argc, char **argv)
{
    const long seconds = option(argc, argv, "--seconds", 0);
    const long rounds = option(argc, argv, "--rounds", 0 < seconds ? 1000000000 : 100);
    uint64_t state = (uint64_t) option(argc, argv, "--seed", 1), own;
    mix_comm_t comms[COMMS];
    unsigned failures = 0, total = 0;
    long done = 0;
    double start;

    signal(SIGALRM, watchdog);
    MPI_Init(&argc, &argv);
    mix_types_init();
    comms_init(comms);
    own = state + (uint64_t) comms[0].rank * 977;
    start = MPI_Wtime();
    for (int go_on = 1; go_on && done < rounds; ++done) {
        failures += round_run(comms, &state, &own);
        go_on = 0 == seconds || MPI_Wtime() - start < (double) seconds;
        if (0 < seconds) {
            MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    MPI_Allreduce(&failures, &total, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    if (0 == comms[0].rank) {
        printf("%sok 1 - %ld calls in %.1f s, %u wrong\n1..1\n", 0 == total ? "" : "not ",
               done * FLIGHT, MPI_Wtime() - start, total);
    }
    for (int i = 1; i < COMMS; ++i) {
        MPI_Comm_free(&comms[i].comm);
    }
    mix_types_free();
    MPI_Finalize();
    return 0 == total ? EXIT_SUCCESS : EXIT_FAILURE;
}
