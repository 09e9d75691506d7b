/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rank 0 has no memory for a call, and makes the next one: a call fails or its result is right, on
 * every rank. Each allocation of coll/r2 fails once, for each form of call, on a communicator of
 * its own.
 * Usage: call_memory; exit code 0: as it has to be.
 */
#define _GNU_SOURCE /* dladdr() */
#include <dlfcn.h>
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    define INIT(Name) MPIX_##Name##_init
#endif

enum { RANKS_MAX = 16, CALLS = 3, ALLOCATIONS_MAX = 64, LIMIT_S = 100, HELD_MAX = 64 };

/* ---- memory ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

/* Allocations of coll/r2 until one fails; < 0: none does. */
static _Thread_local int countdown = -1;

static bool fails(const void *caller)
{
    Dl_info info;

    if (countdown < 0 || 0 == dladdr(caller, &info) ||
        NULL == strstr(info.dli_fname, "mca_coll_r2")) {
        return false;
    }
    return 0 == countdown--;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* these have their own */
/* For all libraries. */
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
/* Open MPI's lists, of which requests come, grow from within coll/r2 when they are empty. */
static size_t grown; /* by so many items, last */

int opal_free_list_grow_st(void *list, size_t count, void **item);

__attribute__((visibility("default"))) int opal_free_list_grow_st(void *list, size_t count,
                                                                  void **item)
{
    int (*grow)(void *, size_t, void **);
    void *found = dlsym(RTLD_NEXT, "opal_free_list_grow_st");

    if (fails(__builtin_return_address(0))) {
        return -1;
    }
    memcpy(&grow, &found, sizeof(grow));
    grown = count;
    return grow(list, count, item);
}
#    define CAN_FAIL 1
#else
static const size_t grown = 1;
#    define CAN_FAIL 0
#endif

/* ---- calls ---- */

static int me, n;
static MPI_Datatype holes; /* an int, and room for another */
static MPI_Op sum;         /* of them */

typedef int (*call_fn_t)(MPI_Comm comm, int base, int *right_p);

static int sum_of(int base)
{
    return n * base + n * (n - 1) / 2;
}

static int wait_for(int rc, MPI_Request *request)
{
    return MPI_SUCCESS == rc ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

static int iallreduce(MPI_Comm comm, int base, int *right_p)
{
    int in = base + me, out = -1;
    MPI_Request request;
    int rc = wait_for(MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request), &request);

    *right_p = sum_of(base) == out;
    return rc;
}

static int persistent(MPI_Comm comm, int base, int *right_p)
{
    int in = base + me, out = -1;
    MPI_Request request;
    int rc = INIT(Allreduce)(&in, &out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);

    if (MPI_SUCCESS == rc) {
        rc = wait_for(MPI_Start(&request), &request);
    }
    *right_p = sum_of(base) == out;
    return rc;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *dtype)
{
    const int *from = in;
    int *to = inout;

    (void) dtype;
    for (int i = 0; i < *count; ++i) {
        to[2 * i] += from[2 * i];
    }
}

static int with_holes(MPI_Comm comm, int base, int *right_p)
{
    int counts[RANKS_MAX], in[2 * RANKS_MAX], out[2] = {-1, -1};
    int rc;

    for (int i = 0; i < n; ++i) {
        counts[i] = 1;
        in[2 * i] = base + me;
        in[2 * i + 1] = 0;
    }
    rc = MPI_Reduce_scatter(in, out, counts, holes, sum, comm);
    *right_p = sum_of(base) == out[0];
    return rc;
}

static int allgatherv(MPI_Comm comm, int base, int *right_p)
{
    int counts[RANKS_MAX], displs[RANKS_MAX], in = base + me, out[RANKS_MAX];
    int rc;

    for (int i = 0; i < n; ++i) {
        counts[i] = 1;
        displs[i] = i;
    }
    rc = MPI_Allgatherv(&in, 1, MPI_INT, out, counts, displs, MPI_INT, comm);
    *right_p = 1;
    for (int i = 0; i < n; ++i) {
        *right_p = *right_p && base + i == out[i];
    }
    return rc;
}

static int alltoallv(MPI_Comm comm, int base, int *right_p)
{
    int counts[RANKS_MAX], displs[RANKS_MAX], in[RANKS_MAX], out[RANKS_MAX];
    int rc;

    for (int i = 0; i < n; ++i) {
        counts[i] = 1;
        displs[i] = i;
        in[i] = base + me;
    }
    rc = MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm);
    *right_p = 1;
    for (int i = 0; i < n; ++i) {
        *right_p = *right_p && base + i == out[i];
    }
    return rc;
}

/* ---- trials ---- */

/* Requests that are made and not started, so that rank 0's list has none left. */
static MPI_Request held[HELD_MAX];
static int held_count;

static void hold_all(void)
{
    static int in, out;
    long left = -1; /* items in the list; < 0: not known yet */

    while (0 != left && held_count < HELD_MAX) {
        long added;
#if CAN_FAIL
        grown = 0;
#endif
        INIT(Allreduce)(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &held[held_count++]);
        added = (long) grown;
        MPI_Bcast(&added, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        left = added > 0 ? added - 1 : left - (left > 0);
    }
}

static void release_all(void)
{
    while (held_count > 0) {
        MPI_Request_free(&held[--held_count]);
    }
}

/* @param until allocation of rank 0's first call that fails. @return calls that were wrong. */
static int attempt(const char *name, call_fn_t call, int until, int *failed_p)
{
    int wrong = 0, right;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    hold_all();
    *failed_p = 0;
    for (int i = 0; i < CALLS; ++i) {
        int rc;

        countdown = 0 == me && 0 == i ? until : -1;
        rc = call(comm, 100 * (i + 1), &right);
        if (0 == me && 0 == i) {
            *failed_p = countdown < 0;
            countdown = -1;
        }
        if (MPI_SUCCESS == rc && !right) {
            ++wrong;
            printf("# rank %d: %s, allocation %d, call %d: wrong data and no error\n", me, name,
                   until, i);
        }
    }
    release_all();
    return wrong;
}

/* @return calls that were wrong, on this rank. */
static int form(const char *name, call_fn_t call)
{
    int wrong = 0, failed = 1, failures = 0;

    for (int until = 0; failed && until < ALLOCATIONS_MAX; ++until) {
        wrong += attempt(name, call, until, &failed);
        MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
        failures += failed;
    }
    if (0 == me) {
        printf("# %s: %d allocations failed\n", name, failures);
    }
    return CAN_FAIL && 0 == failures ? wrong + 1 : wrong;
}

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, "hangs\n", 6);
    _exit(2);
}

int main(int argc, char **argv)
{
    int wrong = 0, all;

    signal(SIGALRM, hung);
    alarm(LIMIT_S);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint) sizeof(int), &holes);
    MPI_Type_commit(&holes);
    MPI_Op_create(add, 1, &sum);
    /* Requests come from Open MPI's list, which MPI_Comm_dup has filled: these take nothing
     * more. */
    wrong += form("iallreduce", iallreduce);
    wrong += form("allreduce_init", persistent);
    wrong += form("reduce_scatter of a type with holes", with_holes);
    wrong += form("allgatherv", allgatherv);
    wrong += form("alltoallv", alltoallv);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == me) {
        printf("# %d calls are wrong\n", all);
    }
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0 == all ? 0 : 1); /* communicators that failed stay as they are */
}
