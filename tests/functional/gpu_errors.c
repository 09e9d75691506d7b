/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * gpu_errors FAULT VICTIM [FORM WAY]: the driver of one rank fails in the middle of calls on memory
 * of GPUs (FAULT as FAKECUDA_FAULTS has it, counted from the first call on). All ranks repeat the
 * call until they hear of an error, and then have their memory again: what they write there at once
 * stays. Without FORM: all forms but barriers, in all ways, each on a communicator of its own; with
 * it one, whose error may stay with the device. At the end: rank R: N errors, W wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakecuda/api.h"
#include "fakecuda/fakecuda.h"
#include "gpu_cover.h"

enum { COUNT = 30000, CALLS_MAX = 400, OURS = 0x5a, LATER_US = 6000 };

static const char *const forms[] = {
    "allgather",           "allgatherv",         "allreduce",
    "alltoall",            "alltoallv",          "alltoallw",
    "bcast",               "exscan",             "gather",
    "gatherv",             "reduce",             "reduce_scatter",
    "reduce_scatter_block", "scan",              "scatter",
    "scatterv",            "neighbor_allgather", "neighbor_allgatherv",
    "neighbor_alltoall",   "neighbor_alltoallv", "neighbor_alltoallw"};
static const char *const ways[] = {"blocking", "nonblocking", "persistent"};

int cover_rank, cover_size;
MPI_Comm cover_comm;

static CUdeviceptr in, out;
static size_t bytes;
static int wrong, errors;

static void must(CUresult rc, const char *what)
{
    if (CUDA_SUCCESS != rc) {
        fprintf(stderr, "rank %d: %s: error %d\n", cover_rank, what, (int) rc);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}
#define OK(call) must(call, #call)

size_t cover_extent(const cover_case_t *what)
{
    return (size_t) what->units * what->unit_bytes;
}

static size_t not_ours(CUdeviceptr at)
{
    const unsigned char *seen = fakecuda_look(at, bytes);
    size_t count = 0;

    for (size_t i = 0; i < bytes; ++i) {
        count += OURS != seen[i];
    }
    return count;
}

/* The memory is the program's: nobody else writes there, now or later. */
static void take_memory_back(const char *form)
{
    const CUdeviceptr buffers[] = {in, out};

    for (int i = 0; i < 2; ++i) {
        OK(cuMemsetD8(buffers[i], OURS, bytes));
    }
    OK(cuCtxSynchronize());
    usleep(LATER_US);
    if (0 != not_ours(in) || 0 != not_ours(out)) {
        printf("not ok - rank %d: %s: written after its error\n", cover_rank, form);
        ++wrong;
    }
}

static cover_case_t describe(const char *form, const char *way, int index)
{
    cover_case_t what = {.count = COUNT,
                         .index = index,
                         .unit = MPI_DOUBLE,
                         .dtype = MPI_DOUBLE,
                         .unit_bytes = sizeof(double),
                         .units = 1,
                         .used = 1,
                         .reduce = MPI_SUM};

    snprintf(what.form, sizeof(what.form), "%s", form);
    snprintf(what.way, sizeof(what.way), "%s", way);
    return what;
}

/* @return 1: an error was heard of. */
static int call_until_error(const cover_case_t *what, MPI_Comm ring)
{
    for (int i = 0; i < CALLS_MAX; ++i) {
        const int rc = cover_call(what, (void *) (uintptr_t) in, (void *) (uintptr_t) out, ring);

        if (MPI_SUCCESS != rc) {
            return 1;
        }
    }
    printf("not ok - rank %d: %s %s: no error\n", cover_rank, what->form, what->way);
    return 0;
}

/* What is no call on a GPU succeeds: an error there would hide what is tested. */
static void succeeds(int rc, const char *what)
{
    if (MPI_SUCCESS != rc) {
        printf("not ok - rank %d: %s failed\n", cover_rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void one(const char *form, const char *way, int index, const char *fault, int stays)
{
    static const int periodic[] = {1};
    const cover_case_t what = describe(form, way, index);
    MPI_Comm ring;

    succeeds(MPI_Comm_dup(MPI_COMM_WORLD, &cover_comm), "MPI_Comm_dup");
    succeeds(MPI_Cart_create(MPI_COMM_WORLD, 1, &cover_size, periodic, 0, &ring),
             "MPI_Cart_create");
    MPI_Comm_set_errhandler(cover_comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    succeeds(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    fakecuda_set("faults", fault);
    errors += call_until_error(&what, ring);
    fakecuda_set("faults", "");
    if (!stays) {
        take_memory_back(form);
    }
    succeeds(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier of a communicator without GPUs");
    MPI_Comm_free(&ring);
    MPI_Comm_free(&cover_comm);
}

static void start_gpu(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    bytes = (size_t) (cover_size + 1) * (COUNT + 3) * sizeof(double);
    OK(cuMemAlloc(&in, bytes));
    OK(cuMemAlloc(&out, bytes));
    OK(cuMemsetD8(in, 0, bytes));
    OK(cuMemsetD8(out, 0, bytes));
    OK(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
    const char *fault;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &cover_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cover_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* requests, too */
    start_gpu();
    fault = argc > 2 && cover_rank == atoi(argv[2]) ? argv[1] : "";
    if (argc > 4) {
        one(argv[3], argv[4], 1, fault, '\0' != *fault);
    }
    for (int i = 0; argc < 4 && i < (int) (sizeof(forms) / sizeof(forms[0])); ++i) {
        for (int way = 0; way < 3; ++way) {
            one(forms[i], ways[way], i + way, fault, 0);
        }
    }
    printf("rank %d: %d errors, %d wrong\n%s", cover_rank, errors, wrong,
           '\0' == *fault || argc < 4 ? fakecuda_mistake() : "");
    fflush(stdout);
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
