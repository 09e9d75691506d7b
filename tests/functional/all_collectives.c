/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls every collective of MPI-3.1, and the persistent ones, on all sorts of communicators with
 * exact checks. Prints TAP: one test per collective and way to call it.
 */
#include "gpu_alloc.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_COMMS 8

static const int counts[] = {0, 1, 7, 1000};

/* The communicators under test. */
typedef struct comm_set {
    job_comm_t comms[MAX_COMMS];
    int count;
} comm_set_t;

static void comm_set_add(comm_set_t *set, const char *name, MPI_Comm comm, int side)
{
    job_comm_t *on = &set->comms[set->count++];
    int inter;

    on->name = name;
    on->comm = comm;
    MPI_Comm_rank(comm, &on->rank);
    MPI_Comm_size(comm, &on->size);
    MPI_Comm_test_inter(comm, &inter);
    on->inter = 0 != inter;
    on->side = on->inter ? side : 0;
    on->peers = on->size;
    if (on->inter) {
        MPI_Comm_remote_size(comm, &on->peers);
    }
}

/* Odd and even ranks, all ranks in reverse order, and (two ranks and up) the halves face to
 * face. */
static void comm_set_create(comm_set_t *set)
{
    MPI_Comm dup;
    MPI_Comm parity;
    MPI_Comm reverse;
    MPI_Comm half;
    MPI_Comm inter;
    int rank;
    int size;
    int side;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    set->count = 0;
    comm_set_add(set, "WORLD", MPI_COMM_WORLD, 0);
    comm_set_add(set, "SELF", MPI_COMM_SELF, 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    comm_set_add(set, "dup", dup, 0);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);
    comm_set_add(set, "parity", parity, 0);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
    comm_set_add(set, "reverse", reverse, 0);
    if (2 <= size && !buffer_is_gpus()) { /* these are not r2's, and others need host memory */
        side = rank < size / 2 ? 0 : 1;
        MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 0 == side ? size / 2 : 0, 1, &inter);
        MPI_Comm_free(&half);
        comm_set_add(set, "inter", inter, side);
    }
}

static void comm_set_free(comm_set_t *set)
{
    for (int i = 0; i < set->count; ++i) {
        MPI_Comm comm = set->comms[i].comm;

        if (MPI_COMM_WORLD != comm && MPI_COMM_SELF != comm) {
            MPI_Comm_free(&comm);
        }
    }
}

/* All counts, roots 0 and last, with and without MPI_IN_PLACE. @return failures on this rank. */
static unsigned case_run_on(const job_case_t *test, job_mode_t mode, const job_comm_t *on)
{
    unsigned failures = 0;
    size_t count_end = test->has_count ? sizeof(counts) / sizeof(counts[0]) : 1;
    /* The root's side of an intercommunicator is 0: its size is the remote size seen from side
     * 1. */
    int root_side_size = 1 == on->side ? on->peers : on->size;
    bool in_place = test->in_place && !on->inter && JOB_PERSISTENT != mode;

    for (size_t c = 0; c < count_end; ++c) {
        for (int k = 0; k < (in_place ? 2 : 1); ++k) {
            for (int last = 0; last < 2; ++last) {
                job_t job = {.on = on,
                             .mode = mode,
                             .in_place = 1 == k,
                             .count = counts[c],
                             .root = last ? root_side_size - 1 : 0,
                             .name = test->name};

                test->run(&job);
                failures += job.failures;
            }
        }
    }
    return failures;
}

static unsigned case_run(const job_case_t *test, job_mode_t mode, const comm_set_t *set)
{
    unsigned failures = 0;

    for (int i = 0; i < set->count; ++i) {
        if (!set->comms[i].inter || test->on_inter) {
            failures += case_run_on(test, mode, &set->comms[i]);
        }
    }
    return failures;
}

/* MPI_Reduce_local has no communicator, but goes through the collective component of SELF. */
static unsigned reduce_local_run(void)
{
    int in[3] = {1, 2, 3};
    int inout[3] = {10, 20, 30};

    MPI_Reduce_local(in, inout, 3, MPI_INT, MPI_SUM);
    return 11 == inout[0] && 22 == inout[1] && 33 == inout[2] ? 0 : 1;
}

/* Prints the TAP line of a test from the failures of all ranks. @return true if it passed. */
static bool report(int number, const char *mode, const char *name, unsigned failures)
{
    unsigned total = 0;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&failures, &total, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%sok %d - %s %s\n", 0 == total ? "" : "not ", number, mode, name);
        fflush(stdout);
    }
    return 0 == total;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"blocking", "nonblocking", "persistent"};
    const job_case_t *const tables[] = {job_cases_unrooted, job_cases_rooted, job_cases_neighbor};
    comm_set_t set;
    int number = 0;
    int size;
    bool passed = true;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (JOB_MAX_RANKS < size) {
        fprintf(stderr, "at most %d ranks\n", JOB_MAX_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    comm_set_create(&set);
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); ++t) {
        for (const job_case_t *test = tables[t]; NULL != test->name; ++test) {
            for (int mode = 0; mode < JOB_MODE_COUNT; ++mode) {
                unsigned failures = case_run(test, (job_mode_t) mode, &set);

                passed = report(++number, modes[mode], test->name, failures) && passed;
            }
        }
    }
    passed = report(++number, "blocking", "reduce_local", reduce_local_run()) && passed;
    comm_set_free(&set);
    MPI_Finalize();
    return passed ? 0 : 1;
}
