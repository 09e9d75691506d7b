/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Cases of gpu_cover: one call of a collective, on memory of a GPU and on the host's.
 */
#ifndef R2_TESTS_GPU_COVER_H
#define R2_TESTS_GPU_COVER_H

#include <mpi.h>
#include <mpi-ext.h>
#include <stddef.h>

enum { RANKS_MAX = 16, ELEMENT_UNITS = 12 };

typedef enum cover_mixed {
    ALL_GPUS,
    RECEIVE_ON_HOST,
    SEND_ON_HOST,
    ODD_RANKS_ON_HOST
} cover_mixed_t;

/** Words of a case's line, and what they mean. */
typedef struct cover_case {
    char form[32], way[16], place[16], mixed[16], kind[16], type[16], op[16], class[16];
    int count, index;
    MPI_Datatype unit, dtype; /* basic, and of an element */
    size_t unit_bytes;
    int units, used; /* basic ones in an element's extent, and those that are data */
    int offsets[ELEMENT_UNITS];
    MPI_Op reduce;
    int own_op; /* reduce is to be freed */
} cover_case_t;

extern int cover_rank, cover_size;
extern MPI_Comm cover_comm;

/** Bytes from the start of an element to the next. */
size_t cover_extent(const cover_case_t *what);
/** Bytes of a buffer that all forms can use. */
size_t cover_bytes(const cover_case_t *what);

/** Makes the call, in its way. @param in may be MPI_IN_PLACE @return MPI's code. */
int cover_call(const cover_case_t *what, const void *in, void *out, MPI_Comm ring);
/** @return 1: the form takes MPI_IN_PLACE on this rank; 0: it does not, or does not say it here. */
int cover_takes_in_place(const cover_case_t *what);
/** @return 1: a form that reduces. */
int cover_reduces(const cover_case_t *what);

#endif
