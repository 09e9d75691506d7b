/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One rank computes in the middle of collectives, the others wait for it: every element is checked,
 * and what became of lanes, connect requests and descriptors is printed.
 *
 * computing MS BYTES...: all kinds at once, for vectors of each length; the rank that computes is
 * another each time.
 */
#include "../open_files.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 10, COUNTERS = 2 };

static const char *const names[COUNTERS] = {"coll_r2_lanes_failed", "coll_r2_hellos_sent"};

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];

typedef struct call {
    long *in, *out;
    MPI_Request request;
} call_t;

static int rank, size;
static long count; /* elements of one rank, a multiple of its share */
static unsigned long wrong;

static long value(int from, long i)
{
    return from * 1000003l + i * 7;
}

static long sum(int ranks, long i)
{
    return ranks * (ranks - 1) / 2 * 1000003l + ranks * i * 7;
}

static void expect(long is, long should)
{
    wrong += is == should ? 0 : 1;
}

static void counters_open(void)
{
    int level, number;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNTERS; ++i) {
        int idx;

        if (MPI_SUCCESS != MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_GENERIC, &idx) ||
            MPI_SUCCESS != MPI_T_pvar_handle_alloc(session, idx, NULL, &handles[i], &number)) {
            fprintf(stderr, "no counter %s: does r2 run?\n", names[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

static void counters_read(unsigned long long *now)
{
    for (int i = 0; i < COUNTERS; ++i) {
        MPI_T_pvar_read(session, handles[i], &now[i]);
    }
}

static void compute(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/*
 * Descriptors, once sockets of a moment are gone: messages beside the lanes and probes have one
 * each, for milliseconds. What stays is named.
 */
static long files_left(long before)
{
    char link[64], what[256];
    long more = (long) open_files() - before;

    for (int i = 0; more > 0 && i < 50; ++i) {
        compute(100);
        more = (long) open_files() - before;
    }
    for (int fd = 0; more > 0 && fd < 1024; ++fd) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        const ssize_t bytes = readlink(link, what, sizeof(what) - 1);

        if (bytes > 0) {
            fprintf(stderr, "rank %d, descriptor %d: %.*s\n", rank, fd, (int) bytes, what);
        }
    }
    return more;
}

static void start(call_t *calls, int root)
{
    int share = (int) (count / size), n = (int) count;
    MPI_Comm world = MPI_COMM_WORLD;

    MPI_Iallreduce(calls[0].in, calls[0].out, n, MPI_LONG, MPI_SUM, world, &calls[0].request);
    for (long i = 0; i < count; ++i) {
        calls[1].out[i] = root == rank ? value(root, i) : -1;
    }
    MPI_Ibcast(calls[1].out, n, MPI_LONG, root, world, &calls[1].request);
    MPI_Igather(calls[2].in, share, MPI_LONG, calls[2].out, share, MPI_LONG, root, world,
                &calls[2].request);
    MPI_Ibarrier(world, &calls[3].request);
    MPI_Ialltoall(calls[4].in, share, MPI_LONG, calls[4].out, share, MPI_LONG, world,
                  &calls[4].request);
    MPI_Iallgather(calls[5].in, share, MPI_LONG, calls[5].out, share, MPI_LONG, world,
                   &calls[5].request);
    MPI_Ireduce(calls[6].in, calls[6].out, n, MPI_LONG, MPI_SUM, root, world, &calls[6].request);
    MPI_Iscatter(calls[7].in, share, MPI_LONG, calls[7].out, share, MPI_LONG, root, world,
                 &calls[7].request);
    MPI_Ireduce_scatter_block(calls[8].in, calls[8].out, share, MPI_LONG, MPI_SUM, world,
                              &calls[8].request);
    MPI_Iscan(calls[9].in, calls[9].out, n, MPI_LONG, MPI_SUM, world, &calls[9].request);
}

static void check(const call_t *calls, int root)
{
    long share = count / size;

    for (long i = 0; i < count; ++i) {
        expect(calls[0].out[i], sum(size, i));
        expect(calls[1].out[i], value(root, i));
        expect(calls[9].out[i], sum(rank + 1, i));
        if (root == rank) {
            expect(calls[6].out[i], sum(size, i));
        }
        if (i / share < size) {
            expect(calls[4].out[i], value((int) (i / share), rank * share + i % share));
            expect(calls[5].out[i], value((int) (i / share), i % share));
            expect(root == rank ? calls[2].out[i] : 0,
                   root == rank ? value((int) (i / share), i % share) : 0);
        }
        if (i < share) {
            expect(calls[7].out[i], value(root, rank * share + i));
            expect(calls[8].out[i], sum(size, rank * share + i));
        }
    }
}

static void run(long ms, long bytes, int late)
{
    call_t calls[KINDS];
    int root = (late + 1) % size;

    count = bytes / (long) sizeof(long) / size * size;
    count = count < size ? size : count;
    for (int k = 0; k < KINDS; ++k) {
        calls[k].in = malloc((size_t) count * sizeof(long));
        calls[k].out = calloc((size_t) count, sizeof(long));
        for (long i = 0; i < count; ++i) {
            calls[k].in[i] = value(rank, i);
        }
    }
    start(calls, 0 == late % 2 ? late : root); /* both a late root and another */
    if (late == rank) {
        compute(ms);
    }
    for (int k = 0; k < KINDS; ++k) {
        MPI_Wait(&calls[k].request, MPI_STATUS_IGNORE);
    }
    check(calls, 0 == late % 2 ? late : root);
    for (int k = 0; k < KINDS; ++k) {
        free(calls[k].in);
        free(calls[k].out);
    }
}

int main(int argc, char **argv)
{
    unsigned long long before[COUNTERS], after[COUNTERS];
    long mine[4], all[4];
    long fds;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3) {
        fprintf(stderr, "usage: computing MS BYTES...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    counters_open();
    run(0, 65536, 0); /* opens the links */
    compute(500);
    counters_read(before);
    fds = open_files();
    for (int i = 2; i < argc; ++i) {
        run(atol(argv[1]), atol(argv[i]), (i - 1) % size);
    }
    counters_read(after);
    mine[0] = (long) wrong;
    mine[1] = (long) after[0]; /* from the start */
    mine[2] = (long) (after[1] - before[1]);
    mine[3] = files_left(fds);
    MPI_Reduce(mine, all, 4, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%ld wrong, %ld lanes failed, %ld connect requests, %ld descriptors\n", all[0],
               all[1], all[2], all[3]);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
