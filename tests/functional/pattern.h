/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Bytes that tell who wrote them and where, and one verdict of all ranks as a line of TAP.
 */
#ifndef R2_TESTS_FUNCTIONAL_PATTERN_H
#define R2_TESTS_FUNCTIONAL_PATTERN_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static inline unsigned char pattern(int from, int tag, long offset)
{
    return (unsigned char) (from * 37 + tag * 11 + offset + (offset >> 8) * 5 + (offset >> 16));
}

static inline void pattern_fill(void *data, int from, int tag, long bytes)
{
    for (long i = 0; i < bytes; ++i) {
        ((unsigned char *) data)[i] = pattern(from, tag, i);
    }
}

/** @return 1 if a byte is wrong, else 0. */
static inline int pattern_wrong(const void *data, int from, int tag, long bytes)
{
    for (long i = 0; i < bytes; ++i) {
        if (((const unsigned char *) data)[i] != pattern(from, tag, i)) {
            return 1;
        }
    }
    return 0;
}

/** Collective. Prints the verdict on rank 0 as number `number` of a TAP list. @return errors of
 * all. */
static inline int pattern_verdict(int number, const char *name, int errors)
{
    int sum, me;

    if (0 != errors) {
        fprintf(stderr, "# %s: %d errors here\n", name, errors);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == me) {
        printf("%sok %d - %s\n", 0 == sum ? "" : "not ", number, name);
        fflush(stdout);
    }
    return sum;
}

/** Memory, or the end of the job. */
static inline void *pattern_alloc(size_t bytes)
{
    void *memory = malloc(bytes);

    if (NULL == memory) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

#endif
