/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A collective call of Open MPI on its way through r2core.
 */
#ifndef MCA_COLL_R2_CALL_H
#define MCA_COLL_R2_CALL_H

#include "coll_r2.h"

#include <limits.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/datatype/opal_convertor.h"

/** An operation with its datatype, for r2core's reductions. */
typedef struct mca_coll_r2_reducer {
    struct ompi_op_t *op;          /* borrowed, or refcounted while nonblocking */
    struct ompi_datatype_t *dtype; /* borrowed, or refcounted while nonblocking */
    uint64_t tops;                 /* not 0: sums of short integers that wrap, done here */
    r2_kernel_t kernel;            /* the same on a GPU; R2_KERNEL_NONE: there is none */
} mca_coll_r2_reducer_t;

/** Blocks as the arguments of a call describe them. All borrowed for the call. */
typedef struct mca_coll_r2_blocks {
    const void *base;
    int block_count;
    size_t count;                          /* elements of each block, where counts are not given */
    mca_coll_r2_counts_t counts;           /* elements per block */
    mca_coll_r2_displs_t displs;           /* elements */
    mca_coll_r2_displs_t byte_displs;      /* bytes: alltoallw. Without any: one after another */
    bool listed;                           /* the call has a list of counts; none is an error */
    struct ompi_datatype_t *dtype;         /* of all blocks, or NULL */
    struct ompi_datatype_t *const *dtypes; /* per block, where dtype is NULL */
} mca_coll_r2_blocks_t;

/** Pieces of contiguous memory that an element of a datatype consists of. */
typedef struct mca_coll_r2_runs mca_coll_r2_runs_t;

/** A user buffer behind a convertor: blocks of one datatype or of many. starts is NULL where there
 * is no convertor. */
typedef struct mca_coll_r2_buffer {
    char *base;                      /* borrowed */
    struct ompi_datatype_t *dtype;   /* borrowed, or refcounted while nonblocking; NULL: dtypes */
    struct ompi_datatype_t **dtypes; /* owned; entries as dtype */
    int block_count;
    /* owned: packed offset of each block, block_count + 1 entries */
    uint64_t *starts;
    ptrdiff_t *displs; /* owned: bytes of each block's origin from base */
    /* owned: of dtype, or of each of dtypes; NULL: the memory is the CPU's */
    mca_coll_r2_runs_t **runs;
} mca_coll_r2_buffer_t;

/** One side of a call that is a list of messages: which blocks go where. */
typedef struct mca_coll_r2_side {
    r2_edge_t *edges; /* owned until mca_coll_r2_sides_done() */
    uint32_t edge_count;
    uint64_t *offsets; /* owned: of each block */
    uint64_t *bytes;   /* owned: of each block */
} mca_coll_r2_side_t;

/** Reductions of types with holes: done piece by piece in dense copies. */
typedef struct mca_coll_r2_pieces {
    const char *in; /* borrowed: user's buffers, MPI_IN_PLACE resolved */
    char *out;
    char *dense_in, *dense_out; /* owned */
    uint64_t total;             /* elements of the whole call */
    uint64_t done;              /* elements of finished pieces */
    uint64_t room;              /* elements of one piece */
    uint64_t *counts;           /* owned: reduce_scatter: counts of the piece; NULL: allreduce */
    uint64_t *all_counts;       /* owned: reduce_scatter: counts of the call */
    uint64_t written;           /* elements of our block that are in `out` */
    int rank;
    r2_mem_at_t in_at, out_at; /* of `in` and `out` */
    r2_mem_block_t *block;     /* owned; NULL: nothing is in memory of a GPU */
    void *packed;              /* borrowed: of block: a piece on its way to or from there */
    mca_coll_r2_runs_t *runs;  /* owned: of the datatype; NULL: the same */
    r2_status_t status;        /* R2_OK, or why a piece could not be copied */
} mca_coll_r2_pieces_t;

/** One call. Lives on the stack (blocking) or in its request. */
typedef struct mca_coll_r2_call {
    mca_coll_r2_module_t *module; /* borrowed: of the communicator */
    r2_comm_t *comm;              /* borrowed */
    r2_coll_args_t args;
    r2_coll_t *coll; /* owned while under way */
    mca_coll_r2_reducer_t reducer;
    mca_coll_r2_buffer_t in, out; /* of args.in_convertor and args.out_convertor */
    mca_coll_r2_pieces_t *pieces; /* owned; NULL: all at once */
    uint64_t *counts;             /* owned; of args.counts */
    r2_edge_t *sends, *recvs;     /* owned; of args.sends and args.recvs */
    bool nothing;                 /* it moves nothing on any rank */
    bool no_result;               /* a reduction without a result on this rank */
    bool truncated;               /* this rank's own arguments contradict each other */
    bool retained;                /* datatypes and op are refcounted */
    int size, rank;
} mca_coll_r2_call_t;

/* call.c */
void mca_coll_r2_call_init(mca_coll_r2_call_t *call, r2_coll_kind_t kind,
                           struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
/* What mca_coll_r2_make_*() return besides OMPI_SUCCESS, MPI's error classes and errors. Equal on
 * all ranks. */
enum {
    MCA_COLL_R2_DECLINED = INT_MIN, /* not for r2 */
    MCA_COLL_R2_NOTHING             /* moves nothing on any rank */
};
/**
 * Each takes over `call`, made with the return code `made`, and counts it.
 * call_run() runs it to its end, call_start() makes a request that is under way, call_prepare() a
 * persistent one.
 * @return OMPI_SUCCESS or an error; call_run(): MCA_COLL_R2_DECLINED, with nothing done.
 */
int mca_coll_r2_call_run(int made, mca_coll_r2_call_t *call, uint64_t *counter);
int mca_coll_r2_call_start(int made, mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                           ompi_request_t **request, uint64_t *counter);
int mca_coll_r2_call_prepare(int made, mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                             ompi_request_t **request, uint64_t *counter);
void mca_coll_r2_call_fini(mca_coll_r2_call_t *call);
/* ids.c */
/** Before a nonblocking call is posted: if it is one of these, it is in their order. */
void mca_coll_r2_ids_take(mca_coll_r2_call_t *call);
/* windows.c */
/** A blocking barrier is over. osc/pt2pt of Open MPI 4.1 frees windows behind one, and takes what
 * was sent to this process before it for read. */
void mca_coll_r2_windows_settle(void);
/* arguments.c */
/** Whether blocks can be. @return OMPI_SUCCESS or MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_ARG. */
int mca_coll_r2_check_blocks(const mca_coll_r2_blocks_t *blocks);
/** Both sides of a call. A side that is MPI_IN_PLACE, or NULL, does not matter. @return as
 * above. */
int mca_coll_r2_check_sides(const mca_coll_r2_blocks_t *from, const mca_coll_r2_blocks_t *to);
/* reducer.c */
/** @return the kernel that does what an operation does; R2_KERNEL_NONE: there is none. */
r2_kernel_t mca_coll_r2_reducer_kernel(const struct ompi_op_t *op,
                                       const struct ompi_datatype_t *dtype);
/** Makes those reductions in which op/avx chooses otherwise in whole vectors than in what remains,
 * between zeros and where NaN are: MIN and MAX of floats. @return false: it is none of them. */
bool mca_coll_r2_reducer_choose(r2_kernel_t kernel, const void *in, void *inout, size_t count);
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

/** As mca_coll_r2_call_look(), for the user's buffers behind the pieces. */
r2_status_t mca_coll_r2_pieces_look(mca_coll_r2_call_t *call);

/** Starts from the first piece again. */
void mca_coll_r2_pieces_rewind(mca_coll_r2_pieces_t *pieces);

/* errors.c */
/** What a call returns for a status of r2core; the user is told in words, once. @return
 * OMPI_SUCCESS, an error class of MPI or OMPI_ERR_OUT_OF_RESOURCE. */
int mca_coll_r2_call_error(const mca_coll_r2_call_t *call, r2_status_t status);

/* buffer.c */
/** Packed bytes of `count` elements. */
uint64_t mca_coll_r2_bytes(size_t count, const struct ompi_datatype_t *dtype);
/**
 * Describes blocks to r2core as one packed stream: contiguous memory as it is, else through a
 * convertor.
 * @param memory_p address for r2core, NULL with a convertor. @return OMPI_SUCCESS or
 * OMPI_ERR_OUT_OF_RESOURCE.
 */
int mca_coll_r2_stream_init(mca_coll_r2_buffer_t *buffer, const mca_coll_r2_blocks_t *blocks,
                            void **memory_p, r2_convertor_t *convertor_p);
/**
 * The same, but blocks that are contiguous each stay where they are.
 * @param offsets_p of each block, from *memory_p or in the stream of the convertor.
 */
int mca_coll_r2_blocks_init(mca_coll_r2_buffer_t *buffer, const mca_coll_r2_blocks_t *blocks,
                            uint64_t *offsets_p, void **memory_p, r2_convertor_t *convertor_p);
/** Moves bytes of a buffer that the CPU reaches: an r2_move_fn_t. @param arg
 * mca_coll_r2_buffer_t */
void mca_coll_r2_buffer_move(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack);
/** Elements of a block. */
size_t mca_coll_r2_block_count(const mca_coll_r2_blocks_t *blocks, int block);
/** Packed bytes of a block. */
uint64_t mca_coll_r2_block_bytes(const mca_coll_r2_blocks_t *blocks, int block);
void mca_coll_r2_buffer_fini(mca_coll_r2_buffer_t *buffer);

/* runs.c */
/** From the origin of an element to its first byte. */
ptrdiff_t mca_coll_r2_first_byte(const struct ompi_datatype_t *dtype);
/** The block that holds a packed offset. */
int mca_coll_r2_buffer_block(const mca_coll_r2_buffer_t *buffer, uint64_t offset);
/** @param runs_p to be given to free(). @return OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE. */
int mca_coll_r2_runs_create(const struct ompi_datatype_t *dtype, mca_coll_r2_runs_t **runs_p);
/** The runs of a buffer's datatypes, which mca_coll_r2_buffer_runs() needs; nothing if they are
 * there. */
int mca_coll_r2_buffer_runs_init(mca_coll_r2_buffer_t *buffer);
void mca_coll_r2_buffer_runs_fini(mca_coll_r2_buffer_t *buffer);
/** Pieces of an element of a block that is not empty, once they are there. */
uint32_t mca_coll_r2_buffer_run_count(const mca_coll_r2_buffer_t *buffer, int block);
/** From the element's origin to a piece. */
ptrdiff_t mca_coll_r2_buffer_run(const mca_coll_r2_buffer_t *buffer, int block, uint32_t idx);
/** An r2_runs_fn_t. @param arg mca_coll_r2_buffer_t */
void mca_coll_r2_buffer_runs(void *arg, uint64_t offset, uint64_t bytes, r2_run_fn_t found,
                             void *found_arg);

/* memory.c */
/** Can the CPU read and write it in place? */
static inline bool mca_coll_r2_is_cpus(const r2_mem_at_t *at)
{
    return R2_MEM_HOST == at->kind || R2_MEM_PINNED == at->kind;
}
/** Where a buffer is; memory of a GPU, if any of it is, whose runs are there then.
 * @param at_p to be set to memory of the host before. @return as mca_coll_r2_call_look(). */
r2_status_t mca_coll_r2_buffer_look(mca_coll_r2_buffer_t *buffer, r2_mem_at_t *at_p);
/** Finds out where the call's buffers are: at each start. @return R2_OK, R2_ERR_GPU,
 * R2_ERR_NO_MEMORY. */
r2_status_t mca_coll_r2_call_look(mca_coll_r2_call_t *call);

/* edges.c */
/**
 * Opens both sides of a call: its buffers, and room for messages. @param from, to NULL: nothing on
 * that side.
 * @param send_count, recv_count messages at most. @return OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE.
 */
int mca_coll_r2_sides_init(mca_coll_r2_call_t *call, mca_coll_r2_side_t *sends,
                           const mca_coll_r2_blocks_t *from, int send_count,
                           mca_coll_r2_side_t *recvs, const mca_coll_r2_blocks_t *to,
                           int recv_count);
/** Adds a message: block `block` to or from a rank. */
void mca_coll_r2_side_add(mca_coll_r2_side_t *side, int peer, uint32_t tag, int block);
/** Gives the messages to the call. */
void mca_coll_r2_sides_done(mca_coll_r2_call_t *call, mca_coll_r2_side_t *sends,
                            mca_coll_r2_side_t *recvs);

/* What makes calls of arguments, one file per family. Parameters are Open MPI's. */
#define MCA_COLL_R2_LIST(...) __VA_ARGS__
#define MCA_COLL_R2_ENTRY(name, parameters, arguments)                                 \
    int mca_coll_r2_make_##name(mca_coll_r2_call_t *call, MCA_COLL_R2_LIST parameters, \
                                mca_coll_base_module_t *module);
#include "entries.def"
#undef MCA_COLL_R2_ENTRY

#endif
