/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives over datatypes, operations and layouts of memory: parts of the test program.
 *
 * Every buffer is an image: all bytes of its memory are known beforehand and compared afterwards,
 * so that gaps of datatypes, guards around the buffer and send buffers are checked like results.
 */
#ifndef R2_TESTS_FUNCTIONAL_DATATYPES_H
#define R2_TESTS_FUNCTIONAL_DATATYPES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_MAX_RANKS 64

/** Bytes of one run of basic elements in memory. */
typedef struct dt_run {
    ptrdiff_t disp; /* from the element's origin */
    size_t bytes;
    size_t exact_bytes; /* bytes that a reduction defines: long double has padding */
} dt_run_t;

/** A datatype that knows where its bytes lie, in the order of its signature. */
typedef struct dt_type {
    char name[48];
    MPI_Datatype handle;
    bool derived; /* to be freed */
    ptrdiff_t extent;
    size_t bytes;   /* packed */
    int units;      /* basic elements: types of equal signature may hold more or fewer of them */
    dt_run_t *runs; /* owned */
    size_t run_count;
} dt_type_t;

/** Signatures that several types can describe. */
typedef enum dt_class {
    DT_CLASS_INT,
    DT_CLASS_CHAR,
    DT_CLASS_DOUBLE,
    DT_CLASS_LONG_DOUBLE_COMPLEX,
    DT_CLASS_PAIR,
    DT_CLASS_MIXED,
    DT_CLASS_COUNT
} dt_class_t;

/** A reduction: elements with values, and what combining them gives. */
typedef struct dt_reduction {
    const char *name;
    MPI_Op op;
    dt_type_t *type; /* borrowed */
    int op_id;
    bool gaps; /* bytes between the runs are padding of a C struct: not checked */
    /** Packed element `idx` of `rank`. */
    void (*value)(const struct dt_reduction *self, int rank, uint64_t idx, void *packed);
    /** acc = acc OP x, both packed. acc comes from lower ranks. */
    void (*fold)(const struct dt_reduction *self, void *acc, const void *x);
} dt_reduction_t;

/** A communicator with its members as ranks of MPI_COMM_WORLD. */
typedef struct dt_comm {
    const char *name;
    MPI_Comm comm;
    int rank, size;
    int members[DT_MAX_RANKS];
} dt_comm_t;

typedef enum dt_kind {
    DT_ALLREDUCE,
    DT_REDUCE_SCATTER,
    DT_REDUCE_SCATTER_BLOCK,
    DT_ALLGATHER,
    DT_ALLGATHERV,
    DT_BCAST,
    DT_BARRIER,
    DT_KIND_COUNT
} dt_kind_t;

/** Memory with known contents. */
typedef struct dt_image {
    char *memory;   /* owned */
    char *expected; /* owned */
    char *checked;  /* owned: 0 where any value is right */
    char *base;     /* the buffer argument, in memory */
    size_t bytes;
} dt_image_t;

/** One call of one collective. */
typedef struct dt_call {
    /* what to do */
    dt_kind_t kind;
    const dt_comm_t *on; /* borrowed */
    bool nonblocking, in_place;
    int root;
    uint64_t units;                  /* bcast, allgather(v): basic elements of a block */
    dt_class_t class;                /* of these */
    unsigned variant;                /* which types describe them; differs from rank to rank */
    bool plain;                      /* the predefined type itself */
    const dt_reduction_t *reduction; /* of reductions */
    int count;                       /* of reductions: elements (per rank) */
    uint32_t salt;
    /* state */
    dt_type_t send_type, recv_type;
    int *counts, *displs; /* owned */
    dt_image_t send, recv;
    MPI_Request request;
} dt_call_t;

/* datatypes_types.c */
unsigned dt_variants(dt_class_t class);
/** Units that every type of a class divides. */
int dt_unit_step(dt_class_t class);
/** Makes a type; `columns`: units for the types whose elements interleave. */
void dt_type_make(dt_type_t *type, dt_class_t class, unsigned variant, uint64_t columns);
void dt_type_basic(dt_type_t *type, MPI_Datatype handle, const char *name, size_t bytes,
                   size_t exact_bytes);
void dt_type_pair(dt_type_t *type, MPI_Datatype handle, const char *name, size_t first_bytes,
                  size_t first_exact_bytes, ptrdiff_t second_disp, size_t second_bytes);
void dt_type_free(dt_type_t *type);

/* datatypes_values.c */
uint64_t dt_hash(uint64_t a, uint64_t b, uint64_t c);
/** Every predefined type with every operation that is valid for it. */
const dt_reduction_t *dt_predefined(size_t *count_p);
/** One of them by name, e.g. "MPI_INT MPI_SUM". */
const dt_reduction_t *dt_predefined_find(const char *name);
void dt_predefined_free(void);

/* datatypes_userops.c */
/** User-defined operations on contiguous and derived types. */
const dt_reduction_t *dt_user(size_t *count_p);
void dt_user_free(void);

/* datatypes_call.c */
/** Makes types, buffers and expectation, and starts (or makes) the call. */
void dt_call_start(dt_call_t *call);
/** Checks a finished call and frees it. @return 0, or 1 after having said what is wrong. */
unsigned dt_call_check(dt_call_t *call);
/** dt_call_start(), MPI_Wait(), dt_call_check(). */
unsigned dt_call_run(dt_call_t *call);
/** Something is wrong: says so for the first few. @return 1. */
unsigned dt_fail(const dt_call_t *call, const char *text);
/** The call that was started last, for the watchdog. */
extern char dt_last_call[512];
void dt_call_describe(const dt_call_t *call, char *text, size_t bytes);

/* datatypes_errors.c */
unsigned dt_errors_arguments(const dt_comm_t *on);
unsigned dt_errors_mismatch(const dt_comm_t *on);

#endif
