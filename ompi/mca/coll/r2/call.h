/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A collective call of Open MPI on its way through r2core.
 */
#ifndef MCA_COLL_R2_CALL_H
#define MCA_COLL_R2_CALL_H

#include "coll_r2.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/datatype/opal_convertor.h"

/** An operation with its datatype, for r2core's reductions. */
typedef struct mca_coll_r2_reducer {
    struct ompi_op_t *op;          /* borrowed, or refcounted while nonblocking */
    struct ompi_datatype_t *dtype; /* borrowed, or refcounted while nonblocking */
} mca_coll_r2_reducer_t;

/** A user buffer: one datatype, one block or one per rank. */
typedef struct mca_coll_r2_buffer {
    char *base;                    /* borrowed */
    struct ompi_datatype_t *dtype; /* borrowed, or refcounted while nonblocking */
    size_t type_bytes;             /* packed bytes of one element */
    int block_count;               /* blocks */
    uint64_t *starts;              /* owned: packed offset of each block, block_count + 1 entries */
    ptrdiff_t *displs;             /* owned: bytes of each block's origin from base */
} mca_coll_r2_buffer_t;

/** Reductions of types with holes: done piece by piece in dense copies. */
typedef struct mca_coll_r2_pieces {
    const char *in;                /* borrowed: user's buffers, MPI_IN_PLACE resolved */
    char *out;
    char *dense_in, *dense_out;    /* owned */
    uint64_t total;                /* elements of the whole call */
    uint64_t done;                 /* elements of finished pieces */
    uint64_t room;                 /* elements of one piece */
    uint64_t *counts;              /* owned: reduce_scatter: counts of the piece; NULL: allreduce */
    uint64_t *all_counts;          /* owned: reduce_scatter: counts of the call */
    uint64_t written;              /* elements of our block that are in `out` */
    int rank;
} mca_coll_r2_pieces_t;

/** One call. Lives on the stack (blocking) or in its request. */
typedef struct mca_coll_r2_call {
    r2_comm_t *comm;               /* borrowed */
    r2_coll_args_t args;
    r2_coll_t *coll;               /* owned while under way */
    mca_coll_r2_reducer_t reducer;
    mca_coll_r2_buffer_t in, out;  /* of args.in_mover and args.out_mover */
    mca_coll_r2_pieces_t *pieces;  /* owned; NULL: all at once */
    bool truncated;                /* this rank's own arguments contradict each other */
    bool retained;                 /* datatypes and op are refcounted */
    int size, rank;
} mca_coll_r2_call_t;

/* call.c */
void mca_coll_r2_call_init(mca_coll_r2_call_t *call, r2_coll_kind_t kind,
                           struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/** Runs a call to its end. @return OMPI_SUCCESS or an error. Frees what the call owns. */
int mca_coll_r2_call_run(mca_coll_r2_call_t *call);
/** Starts a call and makes a request of it; takes over `call`. @return OMPI_SUCCESS or an error. */
int mca_coll_r2_call_start(const mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                           ompi_request_t **request);
/** A request for a call that moves nothing on any rank: it is complete. @return OMPI_SUCCESS. */
int mca_coll_r2_call_nothing(ompi_request_t **request_p);
void mca_coll_r2_call_fini(mca_coll_r2_call_t *call);
/* reducer.c */
/** True if r2 can reduce this type; decided from what is equal on all ranks. */
bool mca_coll_r2_reducible(const struct ompi_datatype_t *dtype);
/** Sets buffers, operation and, for types with holes, pieces. @return OMPI_SUCCESS or an error. */
int mca_coll_r2_call_reduce(mca_coll_r2_call_t *call, const void *in, void *out,
                            struct ompi_datatype_t *dtype, struct ompi_op_t *op);

/* pieces.c */
/** Splits a reduction into pieces. @return OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE. */
int mca_coll_r2_pieces_create(mca_coll_r2_call_t *call, const void *in, void *out);
void mca_coll_r2_pieces_destroy(mca_coll_r2_pieces_t *pieces);
/** Number of pieces of the whole call, at least 1. */
uint32_t mca_coll_r2_pieces_count(const mca_coll_r2_pieces_t *pieces);
/** Loads the next piece into args. @return false: there is none. */
bool mca_coll_r2_pieces_load(mca_coll_r2_call_t *call);
/** Stores the result of the finished piece. */
void mca_coll_r2_pieces_store(mca_coll_r2_call_t *call);

/* buffer.c */
/**
 * Describes a user buffer to r2core: contiguous memory as it is, else through a mover.
 * @param counts elements per block; @param disps elements, or NULL (packed one after another).
 * @param block_count blocks. @param memory_p address for r2core, NULL with a mover.
 */
int mca_coll_r2_buffer_init(mca_coll_r2_buffer_t *buffer, const void *base,
                            struct ompi_datatype_t *dtype, const int *counts, const int *disps,
                            int block_count, void **memory_p, r2_mover_t *mover_p);
void mca_coll_r2_buffer_fini(mca_coll_r2_buffer_t *buffer);

#endif
