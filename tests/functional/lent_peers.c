/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Long collectives of processes of one host, which read what they receive from where it is, while
 * something happens to the last of them (strike.h), or
 *   lent_peers computing    it computes while others wait for what it has, and for it to read
 *   lent_peers denied       it may not read memory of others, as in a container
 *   lent_peers secret       some of its memory cannot be read by others
 * With a second word nobody has anything read.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "counted.h"
#include "strike.h"

#define LONGEST (1 << 20) /* ints */
#define STRIDE  3
#define SECRET  (64u << 10) /* bytes, at that distance from the start */
#define MEMBERS 12          /* at most */
#define GOING_S 1.6
#define SKIPPED 77

static int me, size;
static int *in, *out;
static char *bytes;
static MPI_Op sums;   /* the user's own */
static bool computes; /* now */
static const int counts[] = {17000, 70000, 400000, 100, LONGEST};

static void add(void *a, void *b, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; ++i) {
        ((int *) b)[i] += ((int *) a)[i];
    }
}

/* The end of a call. @param rc of its start. */
static int end(int rc, MPI_Request *request)
{
    const double start = MPI_Wtime();

    while (computes && MPI_Wtime() - start < 0.02) {
    }
    return MPI_SUCCESS == rc ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

/* @param over rank 0 says whether they go on. @return an error class; over_p: the same on all. */
static int sum(int count, int round, bool over, bool *over_p, int *wrong)
{
    MPI_Request request;
    int rc;

    for (int i = 0; i < count; ++i) {
        in[i] = me + (round & 15) * i;
    }
    in[count - 1] = over ? 1 : 0;
    rc = end(MPI_Iallreduce(in, out, count, MPI_INT, 0 == round % 2 ? MPI_SUM : sums,
                            MPI_COMM_WORLD, &request),
             &request);
    for (int i = 0; MPI_SUCCESS == rc && i < count - 1; ++i) {
        *wrong += out[i] != size * (size - 1) / 2 + size * (round & 15) * i;
    }
    *over_p = 0 != out[count - 1];
    return rc;
}

/* Between two ranks it is added as it is read. */
static int fold(int count, int round, int *wrong)
{
    int *own = 0 == me ? out : in;
    MPI_Request request;
    int rc;

    for (int i = 0; i < count; ++i) {
        own[i] = me + (round & 15) * i;
    }
    rc = end(MPI_Ireduce(0 == me ? MPI_IN_PLACE : in, out, count, MPI_INT, MPI_SUM, 0,
                         MPI_COMM_WORLD, &request),
             &request);
    for (int i = 0; MPI_SUCCESS == rc && 0 == me && i < count; ++i) {
        *wrong += out[i] != size * (size - 1) / 2 + size * (round & 15) * i;
    }
    return rc;
}

/* Two calls at once, whose elements differ: neither cuts the other's. */
static int both(int count, int round, int *wrong)
{
    const int doubles = count / 2, each = count / 4 + 1;
    double *from = (double *) in, *to = (double *) out;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int rc, first;

    for (int i = 0; i < doubles; ++i) {
        from[i] = me + 0.5 * (round & 15) * i;
        to[i] = from[i];
    }
    memset(bytes + me * each, 'a' + (me + round) % 20, (size_t) each);
    rc = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, each, MPI_CHAR, MPI_COMM_WORLD,
                        &requests[0]);
    rc = MPI_SUCCESS == rc ? MPI_Ireduce(0 == me ? MPI_IN_PLACE : from, to, doubles, MPI_DOUBLE,
                                         MPI_SUM, 0, MPI_COMM_WORLD, &requests[1])
                           : rc;
    rc = end(rc, &requests[1]);
    first = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    rc = MPI_SUCCESS == rc ? first : rc;
    for (int i = 0; MPI_SUCCESS == rc && 0 == me && i < doubles; ++i) {
        *wrong += to[i] != size * (size - 1) / 2 + 0.5 * size * (round & 15) * i;
    }
    for (int i = 0; MPI_SUCCESS == rc && i < each * size; ++i) {
        *wrong += bytes[i] != 'a' + (i / each + round) % 20;
    }
    return rc;
}

/* Every third int. */
static int spread(int count, int round, int *wrong)
{
    const int blocks = count / STRIDE;
    MPI_Datatype type;
    MPI_Request request;
    int rc;

    MPI_Type_vector(blocks, 1, STRIDE, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < blocks * STRIDE; ++i) {
        in[i] = me == round % size ? round + i : -1;
    }
    rc = end(MPI_Ibcast(in, 1, type, round % size, MPI_COMM_WORLD, &request), &request);
    for (int i = 0; MPI_SUCCESS == rc && i < blocks * STRIDE; ++i) {
        *wrong += in[i] != (me == round % size || 0 == i % STRIDE ? round + i : -1);
    }
    MPI_Type_free(&type);
    return rc;
}

static int collect(int count, int round, int *wrong)
{
    const int each = count / size;
    MPI_Request request;
    int rc;

    for (int i = 0; i < each * size; ++i) {
        in[i] = me * 7 + round + i;
    }
    rc = end(0 == round % 2
                 ? MPI_Iallgather(in, each, MPI_INT, out, each, MPI_INT, MPI_COMM_WORLD, &request)
                 : MPI_Ialltoall(in, each, MPI_INT, out, each, MPI_INT, MPI_COMM_WORLD, &request),
             &request);
    for (int i = 0; MPI_SUCCESS == rc && i < each * size; ++i) {
        const int at = 0 == round % 2 ? i % each : me * each + i % each;

        *wrong += out[i] != i / each * 7 + round + at;
    }
    return rc;
}

/* Until rank 0 has had enough. @return the class of the first error. */
static int go_on(double until, int *rounds_p, int *wrong, double *newest_p)
{
    const int kinds = (int) (sizeof(counts) / sizeof(counts[0]));
    bool over = false;
    int rc = MPI_SUCCESS, round;

    for (round = 0; MPI_SUCCESS == rc && !over; ++round) {
        const int count = counts[round % kinds];

        *newest_p = MPI_Wtime();
        rc = fold(count, round, wrong);
        rc = MPI_SUCCESS == rc
                 ? sum(count, round, 0 == me && round >= kinds && MPI_Wtime() > until, &over, wrong)
                 : rc;
        rc = MPI_SUCCESS == rc ? both(count, round, wrong) : rc;
        rc = MPI_SUCCESS == rc ? spread(count, round, wrong) : rc;
        rc = MPI_SUCCESS == rc ? collect(count, round, wrong) : rc;
    }
    *rounds_p = round;
    return rc;
}

static bool deny(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

    return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           0 == prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Part of the memory: the kernel reads it for nobody. */
static bool hide(void *memory)
{
    const int fd = (int) syscall(SYS_memfd_secret, 0);

    return fd >= 0 && 0 == ftruncate(fd, SECRET) &&
           MAP_FAILED != mmap((char *) memory + SECRET, SECRET, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED, fd, 0);
}

static int *memory(void)
{
    void *at = mmap(NULL, LONGEST * sizeof(int), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return MAP_FAILED == at ? NULL : at;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "going";
    const bool dies = NULL != strstr(what, "killed"), never = argc > 2;
    int wrong = 0, rounds = 0, rc, failed;
    unsigned long long lent;
    double newest = 0;
    bool ready = true;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Op_create(add, 1, &sums);
    if (size > MEMBERS) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    in = memory();
    out = memory();
    bytes = (char *) memory();
    if (size - 1 == me) {
        ready = 0 == strcmp(what, "denied") ? deny() : 0 != strcmp(what, "secret") || hide(in);
        computes = 0 == strcmp(what, "computing");
    }
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    if (!ready) {
        MPI_Finalize();
        return SKIPPED;
    }
    if (size - 1 == me) {
        strike(what);
    }
    rc = go_on(MPI_Wtime() + (dies ? 60 : GOING_S), &rounds, &wrong, &newest);
    lent = counted("coll_r2_lent_messages");
    failed = 0 != wrong;
    if (0 != strcmp(what, "secret") || size - 1 == me) { /* others may be refused from the start */
        failed =
            failed || (0 == lent) != (never || (0 == strcmp(what, "denied") && size - 1 == me));
    }
    if (dies) {
        failed = failed || 0 != survived(me, rc, MPI_Wtime() - newest);
    } else {
        failed = failed || MPI_SUCCESS != rc;
        MPI_Finalize();
    }
    printf("rank %d: %s, %d rounds, %d wrong, %llu read\n", me, failed ? "failed" : "right", rounds,
           wrong, lent);
    fflush(stdout);
    _exit(failed);
}
