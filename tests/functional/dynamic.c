/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Dynamic processes: MPI_Comm_spawn, MPI_Comm_accept and MPI_Comm_connect (within a job and between
 * two), MPI_Comm_join. Everything that is exchanged is checked on both sides.
 *
 * By name alone: case "rails" has a line for each of many rounds, in which rails may fail; in
 * "ended" and "killed" spawned jobs are disconnected, and gone, before this one goes on.
 * Usage: dynamic [CASE...] [hosts=LIST] [program=FILE]. Words tell spawned processes what they
 * are: on these hosts (as MPI_Comm_spawn's "host"), one on each in turn; FILE starts this program.
 */
#include <arpa/inet.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN  3
#define LONG_INTS (1 << 20) /* longer than any eager message */
#define ROUNDS    50        /* of case "rails" */

static int rank, size;
static char *program;
static unsigned wrong;
static MPI_Info where = MPI_INFO_NULL; /* of spawned processes */

static void expect(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "# rank %d: %s is wrong\n", rank, what);
        ++wrong;
    }
}

static int value(int who, int i)
{
    return who * 1000003 + i * 31;
}

/* Each sends to each of the other group, short and long at once. */
static void talk(MPI_Comm inter, int mine, int count)
{
    int *out = malloc(sizeof(int) * LONG_INTS), *in = malloc(sizeof(int) * LONG_INTS);
    int there;

    MPI_Comm_remote_size(inter, &there);
    for (int i = 0; i < LONG_INTS; ++i) {
        out[i] = value(mine, i);
    }
    for (int peer = 0; peer < there; ++peer) {
        MPI_Request requests[2];
        bool same = true;
        int who = -1;

        memset(in, 0, sizeof(int) * LONG_INTS);
        MPI_Irecv(in, count, MPI_INT, peer, 1, inter, &requests[0]);
        MPI_Isend(out, count, MPI_INT, peer, 1, inter, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(&mine, 1, MPI_INT, peer, 2, &who, 1, MPI_INT, peer, 2, inter,
                     MPI_STATUS_IGNORE);
        for (int i = 0; i < count; ++i) {
            same = same && in[i] == value(who, i);
        }
        expect(same, "a message of the other group");
    }
    free(out);
    free(in);
}

/* Collectives of the communicator, checked by sums that each rank can know. */
static void reduce(MPI_Comm comm, int count, const char *what)
{
    int *in = malloc(sizeof(int) * (size_t) count), *out = malloc(sizeof(int) * (size_t) count);
    int me, all, sum = 0;
    bool same = true;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    for (int i = 0; i < count; ++i) {
        in[i] = me + i;
    }
    MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
    for (int r = 0; r < all; ++r) {
        sum += r;
    }
    for (int i = 0; i < count; ++i) {
        same = same && out[i] == sum + all * i;
    }
    expect(same, what);
    MPI_Barrier(comm);
    free(in);
    free(out);
}

/* One-sided, with 4.1 alone: a put to the next rank, and all count at rank 0. */
static void share(MPI_Comm comm)
{
    const long one = 1;
    long *memory, mine, before = 0;
    int me, all;
    MPI_Win win;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, comm, &memory, &win);
    memory[0] = memory[1] = 0;
    mine = 100 + me;
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_LONG, (me + 1) % all, 0, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
    expect(100 + (me + all - 1) % all == memory[0], "what was put");
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 1, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    expect(0 <= before && before < all, "a count");
    MPI_Barrier(comm);
    if (0 == me) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 1, MPI_NO_OP, win);
        MPI_Win_unlock(0, win);
        expect(before == all, "all counts");
    }
    MPI_Win_free(&win);
}

/* What two groups do that have just met. `first`: this group's ranks come first in the merged
 * one. */
static void meet(MPI_Comm inter, bool first)
{
    int here, there, sum = 0;
    MPI_Comm merged, dup;

    talk(inter, rank + (first ? 0 : 1000), 1);
    talk(inter, rank + (first ? 0 : 1000), 5000);
    talk(inter, rank + (first ? 0 : 1000), LONG_INTS);
    MPI_Comm_size(inter, &here);
    MPI_Comm_remote_size(inter, &there);
    MPI_Allreduce(&here, &sum, 1, MPI_INT, MPI_SUM, inter); /* of the other group's values */
    expect(sum == there * there, "the sum of the other group");
    MPI_Intercomm_merge(inter, !first, &merged);
    reduce(merged, 1, "a short sum of both groups");
    reduce(merged, 100000, "a long sum of both groups");
    if (OMPI_MAJOR_VERSION < 5) {
        share(merged);
    }
    MPI_Comm_dup(merged, &dup);
    reduce(dup, 10, "a sum of both groups again");
    MPI_Comm_free(&dup);
    MPI_Comm_free(&merged);
    reduce(MPI_COMM_WORLD, 1000, "a sum of this job");
}

static void run_spawn(void)
{
    char word[] = "--child", *words[] = {word, NULL};
    MPI_Comm inter;
    int codes[CHILDREN];

    for (int round = 0; round < 2; ++round) {
        MPI_Comm_spawn(program, words, CHILDREN, where, 0, MPI_COMM_WORLD, &inter, codes);
        meet(inter, true);
        MPI_Comm_disconnect(&inter);
    }
}

/* One rank spawns for itself. */
static void run_self(void)
{
    char word[] = "--only", *words[] = {word, NULL};
    MPI_Comm inter;
    int one = 1, two = 0;

    if (size - 1 == rank) {
        MPI_Comm_spawn(program, words, 1, where, 0, MPI_COMM_SELF, &inter,
                       MPI_ERRCODES_IGNORE);
        MPI_Sendrecv(&one, 1, MPI_INT, 0, 7, &two, 1, MPI_INT, 0, 7, inter, MPI_STATUS_IGNORE);
        expect(2 == two, "the answer of one child");
        MPI_Comm_disconnect(&inter);
    }
    reduce(MPI_COMM_WORLD, 1000, "a sum beside a child");
}

/* Halves of this job meet through a port. */
static void run_connect(void)
{
    const int half = rank % 2;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm mine, inter;

    MPI_Comm_split(MPI_COMM_WORLD, half, rank, &mine);
    if (0 == rank) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (0 == half) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &inter);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &inter);
    }
    meet(inter, 0 == half);
    MPI_Comm_disconnect(&inter);
    if (0 == rank) {
        MPI_Close_port(port);
    }
    MPI_Comm_free(&mine);
}

/* Two spawned jobs meet each other, by the port that their parents carry. */
static void run_siblings(void)
{
    char accepts[] = "--accept", connects[] = "--connect", *first[] = {accepts, NULL},
    *second[] = {connects, NULL};
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm one, two;
    int done = 0;

    MPI_Comm_spawn(program, first, 2, where, 0, MPI_COMM_WORLD, &one, MPI_ERRCODES_IGNORE);
    MPI_Comm_spawn(program, second, CHILDREN, where, 0, MPI_COMM_WORLD, &two,
                   MPI_ERRCODES_IGNORE);
    if (0 == rank) {
        MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 3, one, MPI_STATUS_IGNORE);
        MPI_Send(port, sizeof(port), MPI_CHAR, 0, 3, two);
        MPI_Recv(&done, 1, MPI_INT, 0, 4, one, MPI_STATUS_IGNORE);
        expect(1 == done, "what the children say");
    }
    reduce(MPI_COMM_WORLD, 1000, "a sum beside two jobs");
    MPI_Comm_disconnect(&one);
    MPI_Comm_disconnect(&two);
}

/* Short and long messages of both groups, again and again; rank 0 of the parents says so. */
static void be_steady(MPI_Comm inter, bool parents)
{
    for (int round = 1; round <= ROUNDS; ++round) {
        const unsigned before = wrong;

        talk(inter, rank + (parents ? 0 : 1000), 1000);
        talk(inter, rank + (parents ? 0 : 1000), LONG_INTS / 8);
        if (parents && 0 == rank) {
            printf("%s %d - round\n", before == wrong ? "ok" : "not ok", round);
            fflush(stdout);
        }
    }
}

static void run_rails(void)
{
    char word[] = "--steady", *words[] = {word, NULL};
    MPI_Comm inter;

    MPI_Comm_spawn(program, words, CHILDREN, where, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
    be_steady(inter, true);
    MPI_Comm_disconnect(&inter);
}

/* Until a process of this host is gone, and the transports have had time to notice. */
static void await_end(int pid)
{
    const struct timespec pause = {0, 100000000};

    for (int i = 0; i < 300 && 0 == kill(pid, 0); ++i) {
        nanosleep(&pause, NULL);
    }
    expect(0 != kill(pid, 0), "the end of a process");
    for (int i = 0; i < 10; ++i) {
        int flag;

        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        nanosleep(&pause, NULL);
    }
}

/* Twice: a job is spawned, talks, and ends in one way or the other when it is disconnected. */
static void spawn_and_outlive(char *word)
{
    char *words[] = {word, NULL};
    int pids[CHILDREN];
    MPI_Comm inter;

    for (int round = 0; round < 2; ++round) {
        MPI_Comm_spawn(program, words, CHILDREN, where, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
        talk(inter, rank, 5000);
        for (int i = 0; i < CHILDREN; ++i) {
            MPI_Recv(&pids[i], 1, MPI_INT, i, 8, inter, MPI_STATUS_IGNORE);
        }
        MPI_Comm_disconnect(&inter);
        for (int i = 0; i < CHILDREN; ++i) {
            await_end(pids[i]);
        }
        reduce(MPI_COMM_WORLD, 1000, "a sum after a job");
    }
}

static void run_ended(void)
{
    char word[] = "--brief";

    spawn_and_outlive(word);
}

static void run_killed(void)
{
    char word[] = "--killed";

    spawn_and_outlive(word);
}

/* A socket of this host between two ranks. */
static int connected_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    int listener, fd = -1;

    if (0 != rank) {
        MPI_Recv(&address.sin_port, 2, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        return 0 == connect(fd, (struct sockaddr *) &address, sizeof(address)) ? fd : -1;
    }
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (0 == bind(listener, (struct sockaddr *) &address, sizeof(address)) && 0 == listen(listener,
                                                                                          1) &&
        0 == getsockname(listener, (struct sockaddr *) &address, &bytes)) {
        MPI_Send(&address.sin_port, 2, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
        fd = accept(listener, NULL, NULL);
    }
    close(listener);
    return fd;
}

static void run_join(void)
{
    MPI_Comm inter;

    if (rank < 2 && size > 1) {
        int fd = connected_socket();

        expect(fd >= 0, "a socket");
        MPI_Comm_join(fd, &inter);
        talk(inter, rank, LONG_INTS);
        MPI_Comm_disconnect(&inter);
        close(fd);
    }
    reduce(MPI_COMM_WORLD, 1000, "a sum after a join");
}

static void be_only_child(MPI_Comm parent)
{
    int one = 0, two = 2;

    MPI_Sendrecv(&two, 1, MPI_INT, 0, 7, &one, 1, MPI_INT, 0, 7, parent, MPI_STATUS_IGNORE);
    expect(1 == one, "the question of one parent");
}

static void be_brief(MPI_Comm parent)
{
    const int pid = getpid();
    int there;

    MPI_Comm_remote_size(parent, &there);
    talk(parent, rank + 1000, 5000);
    for (int i = 0; i < there; ++i) {
        MPI_Send(&pid, 1, MPI_INT, i, 8, parent);
    }
}

/* Meets the other job, and has rank 0 of the parents know. */
static void be_sibling(MPI_Comm parent, bool accepts)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int done;

    if (accepts && 0 == rank) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, sizeof(port), MPI_CHAR, 0, 3, parent);
    }
    if (!accepts && 0 == rank) {
        MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 3, parent, MPI_STATUS_IGNORE);
    }
    if (accepts) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    }
    meet(inter, accepts);
    MPI_Comm_disconnect(&inter);
    done = 0 == wrong;
    if (accepts && 0 == rank) {
        MPI_Close_port(port);
        MPI_Send(&done, 1, MPI_INT, 0, 4, parent);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"spawn", run_spawn},       {"self", run_self},    {"connect", run_connect},
             {"siblings", run_siblings}, {"join", run_join},    {"rails", run_rails},
             {"ended", run_ended},       {"killed", run_killed}};

/* Without a name these run. */
#define USUAL_CASES 5

/* Takes what is no case out of the words. @return how many are left. */
static int options(int argc, char **argv)
{
    int left = 1;

    for (int i = 1; i < argc; ++i) {
        if (0 == strncmp(argv[i], "program=", 8)) {
            program = argv[i] + 8;
        } else if (0 == strncmp(argv[i], "hosts=", 6)) {
            MPI_Info_create(&where);
            MPI_Info_set(where, "host", argv[i] + 6);
            MPI_Info_set(where, "map_by", "node");
        } else {
            argv[left++] = argv[i];
        }
    }
    return left;
}

static bool wanted(const char *name, int argc, char **argv)
{
    bool found = false;

    for (int i = 1; i < argc; ++i) {
        found = found || 0 == strcmp(name, argv[i]);
    }
    return found;
}

static unsigned run_cases(int argc, char **argv)
{
    unsigned failures = 0, runs = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (!(argc < 2 ? i < USUAL_CASES : wanted(cases[i].name, argc, argv))) {
            continue;
        }
        wrong = 0;
        cases[i].run();
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
        failures += wrong;
        ++runs;
        if (0 == rank) {
            printf("%s %u - %s\n", 0 == wrong ? "ok" : "not ok", runs, cases[i].name);
            fflush(stdout);
        }
    }
    return runs > 0 ? failures : 1;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    unsigned failures;

    program = argv[0];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    argc = options(argc, argv);
    if (MPI_COMM_NULL == parent) {
        failures = run_cases(argc, argv);
        MPI_Finalize();
        return 0 == failures ? 0 : 1;
    }
    if (wanted("--child", argc, argv)) {
        meet(parent, false);
    } else if (wanted("--steady", argc, argv)) {
        be_steady(parent, false);
    } else if (wanted("--brief", argc, argv) || wanted("--killed", argc, argv)) {
        be_brief(parent);
    } else if (wanted("--only", argc, argv)) {
        be_only_child(parent);
    } else {
        be_sibling(parent, wanted("--accept", argc, argv));
    }
    MPI_Comm_disconnect(&parent);
    if (wanted("--killed", argc, argv)) {
        raise(SIGKILL);
    }
    if (0 != wrong) {
        MPI_Abort(MPI_COMM_WORLD, 1); /* the parents' mpirun tells */
    }
    MPI_Finalize();
    return 0;
}
