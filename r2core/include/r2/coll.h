/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives: kinds, arguments and the calls that run them.
 */
#ifndef R2_COLL_H
#define R2_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/ctx.h"
#include "r2/kernel.h"
#include "r2/mem_kind.h"
#include "r2/params.h"
#include "r2/status.h"

/** Collectives; what they are made of: base/coll_kinds.def. */
typedef enum r2_coll_kind {
#define R2_COLL_KIND(name, text, span, reduces, rooted) R2_COLL_##name,
#include "base/coll_kinds.def"
#undef R2_COLL_KIND
    R2_COLL_KIND_COUNT
} r2_coll_kind_t;

/**
 * Reduction of `count` elements: inout[k] = in[k] OP inout[k] (the convention of
 * MPI_User_function). Both are aligned to the element. Called by a thread inside r2_ctx_progress()
 * or r2_coll_wait(), or by the service thread if the call says `any_thread` and the parameter
 * async_progress is set.
 */
typedef void (*r2_reduce_fn_t)(void *arg, const void *in, void *inout, size_t count);

/**
 * Moves `bytes` at `offset` of the packed stream of a buffer that is not contiguous: out of it into
 * `packed`, or with `unpack` the other way. Any order of offsets; called under the engine lock, by
 * application threads only.
 */
typedef void (*r2_move_fn_t)(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack);

/** A piece of a buffer that is contiguous memory, which holds `bytes` at `offset` of the packed
 * stream. */
typedef void (*r2_run_fn_t)(void *arg, void *memory, uint64_t offset, uint64_t bytes);

/** Tells the pieces of which `bytes` at `offset` of the packed stream consist, whatever their
 * order. Touches none of them; called as r2_move_fn_t is. */
typedef void (*r2_runs_fn_t)(void *arg, uint64_t offset, uint64_t bytes, r2_run_fn_t found,
                             void *found_arg);

/** How to reach a buffer; move NULL: it is contiguous memory. */
typedef struct r2_convertor {
    r2_move_fn_t move;
    void *arg;         /* borrowed until completion */
    r2_runs_fn_t runs; /* instead of move, where the memory is not the CPU's */
} r2_convertor_t;

/**
 * One message of a collective in which only its two ends know its length: to (or from) `peer`,
 * which may be this rank. Messages between the same two ranks, the same way, have different tags.
 */
typedef struct r2_edge {
    int32_t peer;
    uint32_t tag;          /* below R2_EDGE_TAGS; equal at both ends */
    uint64_t offset_bytes; /* in the send (or receive) buffer */
    uint64_t bytes;
} r2_edge_t;

#define R2_EDGE_TAGS 4096u

/** Arguments of a collective, buffers as packed streams (layout: r2/planner.h). */
typedef struct r2_coll_args {
    r2_coll_kind_t kind;
    int32_t root;
    const void *in; /* borrowed until completion; NULL with in_place */
    void *out;      /* borrowed until completion */
    bool in_place;
    uint64_t count;
    const uint64_t *counts; /* borrowed for the call only */
    const uint64_t *displs; /* borrowed for the call only */
    const r2_edge_t *sends; /* borrowed until completion; order: r2/planner.h */
    uint32_t send_count;
    const r2_edge_t *recvs; /* borrowed until completion */
    uint32_t recv_count;
    uint64_t element_bytes;
    r2_reduce_fn_t reduce;
    void *reduce_arg;   /* borrowed until completion */
    r2_kernel_t kernel; /* has the bits of `reduce`, for buffers of a GPU; a matter of this rank */
    /* `reduce` may be called by a thread of r2, too: it runs no code of the user */
    bool any_thread;
    uint64_t meaning; /* of reductions: which operation on which types; equal on all ranks */
    bool commutative;
    bool exact; /* the result does not depend on the order of reduction */
    r2_convertor_t in_convertor, out_convertor; /* not for reductions */
    r2_mem_at_t in_at, out_at; /* where they are: r2_mem_find(); a matter of this rank alone */
    bool blocking;  /* the caller waits for it before it posts another; equal on all ranks */
    uint32_t parts; /* collectives in a row under this handle (r2_coll_next()); 0 means 1 */
} r2_coll_args_t;

typedef struct r2_comm r2_comm_t;
typedef struct r2_coll r2_coll_t;

/**
 * Called when the collective, or a part of a series, is complete, outside the engine lock, by an
 * application thread.
 */
typedef void (*r2_coll_done_fn_t)(void *arg, r2_status_t status);

/** Open MPI's context id of a communicator: equal on all members, used again after it is freed. */
typedef struct r2_comm_id {
    uint64_t base;
    uint64_t sub; /* 0 where a context id is one word */
} r2_comm_id_t;

/**
 * Registers a communicator. Local: no communication. All members must create the communicators they
 * share in the same order.
 * @param id      may be reused after r2_comm_destroy().
 * @param ranks   members as process numbers of the job, in communicator order; copied.
 * @return R2_OK, R2_ERR_UNSUPPORTED (all members hear that: the job does not use r2, or they are on
 * one host and the job has no R2_USER_ONE_HOST); or an error of this process, which others do not
 * have: it has to end the job.
 */
R2_EXPORT r2_status_t r2_comm_create(r2_ctx_t *ctx, r2_comm_id_t id, const uint32_t *ranks,
                                     int32_t size, int32_t rank, r2_comm_t **comm_p);
/** Are calls that r2_coll_local() does not make left to others? So it is where the members are on
 * one host, and the job has no R2_USER_ONE_HOST_ALL. */
R2_EXPORT bool r2_comm_leaves(const r2_comm_t *comm);
/**
 * Such a call: leaves it, with its place among the communicator's calls.
 * @param args NULL: what r2_coll_local() never makes.
 * @return false: r2_coll_post() is for it. So it is of a communicator that leaves none, or has
 * failed, and in a forked child: then the call has its error; and of sums that are not exact, and
 * that r2_coll_local() makes at other times: they have the same bits each time.
 */
R2_EXPORT bool r2_comm_leave_call(r2_comm_t *comm, const r2_coll_args_t *args);
/** Never waits: what is still to be acknowledged belongs to the links. */
R2_EXPORT void r2_comm_destroy(r2_comm_t *comm);

/** Calls of a sequence may be of more than one kind. */
#define R2_SEQUENCE_ANY_KIND R2_COLL_KIND_COUNT

/**
 * Opens a sequence of calls of its own within a communicator: for a persistent request, or for
 * calls that each rank posts at another place among the others. It takes the place of the
 * communicator in r2_coll_post() and r2_coll_skip(): its calls match by their number in it,
 * whatever else the communicator does between them; those that agree on a map begin one after the
 * other. Members open their sequences in the same order, which is that of the communicator's calls,
 * too. Local.
 * @param kind of all its collectives, or R2_SEQUENCE_ANY_KIND.
 * @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_FORKED.
 */
R2_EXPORT r2_status_t r2_sequence_open(r2_comm_t *comm, r2_coll_kind_t kind,
                                       r2_comm_t **sequence_p);
/** All its collectives are complete and released. Those not closed go with their communicator. */
R2_EXPORT void r2_sequence_close(r2_comm_t *sequence);

/**
 * What memory a pointer leads to, for r2_coll_args_t. Nothing is remembered of it.
 * @param at of the first byte that is there: a buffer's start may lie before it.
 * @return R2_OK; R2_ERR_GPU: the driver of the GPU has failed, so it may be a device's.
 */
R2_EXPORT r2_status_t r2_mem_find(r2_ctx_t *ctx, const void *at, r2_mem_at_t *at_p);
/** @return true: r2_mem_find() may answer something else than memory of the host. */
R2_EXPORT bool r2_mem_differs(const r2_ctx_t *ctx);
/** @return true: UCX sends and receives such memory by itself, as far as it is contiguous. */
R2_EXPORT bool r2_mem_is_ucx_s(void);

/** Memory of the host that the driver copies to and from. */
typedef struct r2_pin r2_mem_block_t;

/**
 * A block for r2_mem_transfer(): pinned, so that copies wait outside of all locks, or where that is
 * short any memory. What is given back is kept for others (coll_r2_pinned_bytes).
 * @param at of the buffer that is copied; not the CPU's
 * @param block_p owned by the caller until r2_mem_block_put() @param bytes_p its memory
 * @return R2_OK; R2_ERR_NO_MEMORY, R2_ERR_GPU, R2_ERR_FORKED.
 */
R2_EXPORT r2_status_t r2_mem_block_get(r2_ctx_t *ctx, const r2_mem_at_t *at, uint64_t bytes,
                                       r2_mem_block_t **block_p, void **bytes_p);
/** @param block NULL: nothing. */
R2_EXPORT void r2_mem_block_put(r2_ctx_t *ctx, r2_mem_block_t *block);

/**
 * Copies all of a buffer that is not the CPU's to or from packed memory, after what the application
 * has started. Waits. @return R2_OK; R2_ERR_GPU, R2_ERR_NO_MEMORY.
 */
R2_EXPORT r2_status_t r2_mem_transfer(r2_ctx_t *ctx, const r2_mem_at_t *at,
                                      const r2_convertor_t *buffer, uint64_t bytes, void *packed,
                                      bool unpack);

/**
 * Starts a collective. All members call in the same order.
 * @param done   may be NULL (then poll with r2_coll_test()).
 * @param coll_p handle, released by r2_coll_release().
 * @return R2_OK, R2_ERR_PARAM, R2_ERR_NO_MEMORY; or that with which the communicator failed for
 * good.
 */
R2_EXPORT r2_status_t r2_coll_post(r2_comm_t *comm, const r2_coll_args_t *args,
                                   r2_coll_done_fn_t done, void *done_arg, r2_coll_t **coll_p);
/**
 * Makes a blocking call within a host through shared memory alone, if its communicator and its
 * arguments allow that. All members come to the same answer.
 * @param status_p R2_OK, or that with which the communicator failed for good.
 * @return true: it is over; false: r2_coll_post() makes it.
 */
R2_EXPORT bool r2_coll_local(r2_comm_t *comm, const r2_coll_args_t *args, r2_status_t *status_p);
/**
 * Instead of r2_coll_post() or r2_sequence_open(): a call that this rank alone cannot make. The
 * communicator fails for good: the others make the call, and would take what we send in our next
 * one for part of it.
 */
R2_EXPORT void r2_coll_refuse(r2_comm_t *comm, r2_status_t status);
/**
 * A collective that moves nothing on any rank. A reduction takes its place among the others and is
 * over, so that ranks that do reduce something notice. Others have none: no elements and elements
 * of an empty type are the same to MPI, but Open MPI may pass on the calls of one kind only.
 * @return R2_OK, or that with which the communicator failed for good.
 */
R2_EXPORT r2_status_t r2_coll_skip(r2_comm_t *comm, r2_coll_kind_t kind);
/** True if a collective of this kind that moves nothing takes a place. */
R2_EXPORT bool r2_coll_skip_counts(r2_coll_kind_t kind);
/**
 * Starts the next part of a series, after the part before it is complete. All parts took their
 * places among the communicator's collectives with r2_coll_post(), so other collectives may be
 * posted between them. @return R2_OK, R2_ERR_PARAM (no part is left), R2_ERR_NO_MEMORY,
 * or that with which the communicator failed for good; after an error the series is over.
 */
R2_EXPORT r2_status_t r2_coll_next(r2_coll_t *coll, const r2_coll_args_t *args);
/** @return R2_IN_PROGRESS, R2_OK, or the error of the collective. Does not progress. */
R2_EXPORT r2_status_t r2_coll_test(const r2_coll_t *coll);
/** Progresses until complete: polls, then sleeps. @return as r2_coll_test(). */
R2_EXPORT r2_status_t r2_coll_wait(r2_coll_t *coll);
/** Gives the handle back. Complete collectives only; parts not started are given up. */
R2_EXPORT void r2_coll_release(r2_coll_t *coll);

/**
 * Checks the names of algorithms that parameters ask for.
 * @param text_p what is wrong, with the names there are. @return R2_OK or R2_ERR_PARAM.
 */
R2_EXPORT r2_status_t r2_coll_params_check(const r2_params_t *params, char *text_p,
                                           size_t text_bytes);

#endif
