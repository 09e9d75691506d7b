/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Random collectives: parts of the test program.
 *
 * Data is counted in units of one int. Types describe the same units by different memory; all
 * memory of a buffer is known before and after a call, gaps included.
 */
#ifndef R2_TESTS_FUNCTIONAL_MIXED_H
#define R2_TESTS_FUNCTIONAL_MIXED_H

#include <mpi.h>
#include <mpi-ext.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIX_MAX_RANKS 64

/** How elements lie in memory. */
typedef enum mix_class {
    MIX_DENSE,    /* 1 unit */
    MIX_HOLES,    /* 1 unit, then two ints that are not its */
    MIX_BACKWARD, /* 1 unit, negative extent */
    MIX_SWAPPED,  /* 2 units, the second before the first, with holes */
    MIX_PAIR,     /* 2 units */
    MIX_CLASS_COUNT
} mix_class_t;

typedef enum mix_kind {
    MIX_ALLREDUCE,
    MIX_REDUCE,
    MIX_SCAN,
    MIX_EXSCAN,
    MIX_REDUCE_SCATTER_BLOCK,
    MIX_BCAST,
    MIX_GATHER,
    MIX_GATHERV,
    MIX_SCATTER,
    MIX_SCATTERV,
    MIX_ALLGATHER,
    MIX_ALLGATHERV,
    MIX_ALLTOALL,
    MIX_ALLTOALLV,
    MIX_ALLTOALLW,
    MIX_NEIGHBOR_ALLTOALLV,
    MIX_BARRIER,
    MIX_KIND_COUNT
} mix_kind_t;

typedef enum mix_mode { MIX_BLOCKING, MIX_NONBLOCKING, MIX_PERSISTENT, MIX_MODE_COUNT } mix_mode_t;

/** A buffer: blocks of elements of one type. */
typedef struct mix_side {
    mix_class_t class;
    int block_count;
    int counts[MIX_MAX_RANKS], displs[MIX_MAX_RANKS]; /* elements */
    int byte_displs[MIX_MAX_RANKS];
    int *memory;   /* owned */
    int *expected; /* owned */
    size_t ints;
    size_t origin; /* index of the buffer argument in memory */
} mix_side_t;

/** A communicator. */
typedef struct mix_comm {
    MPI_Comm comm;
    int rank, size;
} mix_comm_t;

/** One call. All but send and recv and what is made of them is equal on all ranks. */
typedef struct mix_call {
    mix_kind_t kind;
    mix_mode_t mode;
    const mix_comm_t *on; /* borrowed */
    int units;            /* of a block, even */
    int root;
    bool in_place, user_op;
    uint32_t salt;
    uint32_t starts; /* before this one */
    mix_side_t send, recv;
    MPI_Datatype types[2][MIX_MAX_RANKS];
    MPI_Request request;
} mix_call_t;

/* mixed_memory.c */
void mix_types_init(void);
void mix_types_free(void);
MPI_Datatype mix_type(mix_class_t class);
/** Units of one element. */
int mix_class_units(mix_class_t class);
/** Makes a buffer of blocks of so many units, with gaps between them where `apart`. One that is
 * there stays in place. */
void mix_side_init(mix_side_t *side, mix_class_t class, int block_count, const int *units,
                   bool apart);
void mix_side_fini(mix_side_t *side);
/** Sets a unit before the call, and what must be there after it. */
void mix_side_put(mix_side_t *side, int block, int unit, int value);
/** Says what a unit must be after the call. */
void mix_side_expect(mix_side_t *side, int block, int unit, int value);
void *mix_side_base(const mix_side_t *side);
/** @return false: some byte is not what it must be. */
bool mix_side_right(const mix_side_t *side);
/** Composition of affine maps: pairs (a, b), associative, not commutative; counts its elements. */
MPI_Op mix_op(void);
void mix_compose(const int *left, int *right);

/* mixed_call.c */
/** Starts a call; blocking: to its end; persistent: only makes its request. */
void mix_call_start(mix_call_t *call);
/** Other data in the same buffers, before a persistent call is started again. */
void mix_call_refill(mix_call_t *call);
/** After the request is complete. @return 0, or 1 after having said what is wrong. */
unsigned mix_call_check(const mix_call_t *call);
/** Frees the request and the buffers. */
void mix_call_end(mix_call_t *call);

#endif
