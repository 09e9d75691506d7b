/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point: active messages between two processes; reading, writing and updating a peer's
 * memory.
 */
#ifndef R2_P2P_H
#define R2_P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/ctx.h"
#include "r2/status.h"
#include "r2/tp_key.h"

#define R2_P2P_MESSAGE_MAX (1u << 20) /* bytes of one active message */

typedef struct r2_p2p r2_p2p_t;

/** What the user of point-to-point is told. By application threads, without the engine lock. */
typedef struct r2_p2p_handlers {
    /** A message arrived, exactly once. Messages of one peer may overtake each other. */
    void (*received)(void *arg, uint32_t rank, uint8_t id, const void *data, size_t bytes);
    /**
     * No path to a peer is left, or it is gone: messages to and from it are lost. Only of a peer
     * that something was sent to or received from; of others what is sent later is refused.
     */
    void (*lost)(void *arg, uint32_t rank, r2_status_t status);
    void *arg; /* borrowed until r2_p2p_unbind() */
} r2_p2p_handlers_t;

/** An operation under way, in the caller's memory until `done`. The caller sets done and arg. */
typedef struct r2_p2p_op {
    void (*done)(struct r2_p2p_op *op, r2_status_t status); /* as the handlers */
    void *arg;
    r2_p2p_t *p2p;          /* borrowed; private from here on */
    struct r2_p2p_op *next; /* in p2p->finished */
    r2_status_t status;
} r2_p2p_op_t;

/**
 * Opens point-to-point on a context, once. What arrived before waits at the links.
 * @return R2_OK, R2_ERR_PARAM (already bound), R2_ERR_NO_MEMORY.
 */
R2_EXPORT r2_status_t r2_p2p_bind(r2_ctx_t *ctx, const r2_p2p_handlers_t *handlers,
                                  r2_p2p_t **p2p_p);
/** Ends it: no handler and no done function is called any more. */
R2_EXPORT void r2_p2p_unbind(r2_p2p_t *p2p);

/**
 * Asks whether a process of the job runs r2. After the launcher's fence; from the first call on
 * (for this process's own rank, for instance) peers are let in. @return R2_OK or
 * R2_ERR_UNSUPPORTED. */
R2_EXPORT r2_status_t r2_p2p_reach(r2_p2p_t *p2p, uint32_t rank);
/**
 * What has become of a peer to which nothing is sent any more.
 * @return R2_ERR_PEER_GONE: it has said that it ends (r2_ctx_linger()), or is gone; R2_ERR_AGAIN:
 * there is no way to it now, and r2 finds out why; R2_OK: neither; R2_ERR_NOT_FOUND: nothing has
 * ever passed to it or from it.
 */
R2_EXPORT r2_status_t r2_p2p_ask_after(r2_p2p_t *p2p, uint32_t rank);

/**
 * Sends an active message; to this process, too.
 * @param data  borrowed until done, up to R2_P2P_MESSAGE_MAX bytes.
 * @param op    NULL: only if `data` is free again at once.
 * @return R2_OK: `data` is free again, done is not called; R2_IN_PROGRESS: done will be called;
 *         R2_ERR_AGAIN: nothing is sent, since `op` is NULL and the data could not be copied;
 *         R2_ERR_PARAM, R2_ERR_NO_PATH, R2_ERR_PEER_GONE, R2_ERR_NO_MEMORY.
 */
R2_EXPORT r2_status_t r2_p2p_send(r2_p2p_t *p2p, uint32_t rank, uint8_t id, const void *data,
                                  size_t bytes, r2_p2p_op_t *op);

/** Writes a message. @param to its bytes. @return false: it cannot be written. */
typedef bool (*r2_p2p_pack_fn_t)(void *arg, void *to);

/**
 * Sends an active message that is written straight to where the links keep it, if all of it can
 * leave at once. @param pack called before this returns, under the engine lock: must not call r2.
 * @return R2_OK; R2_ERR_AGAIN: nothing is sent; R2_ERR_PARAM: `pack` failed, nothing is sent; other
 *         errors as r2_p2p_send().
 */
R2_EXPORT r2_status_t r2_p2p_send_packed(r2_p2p_t *p2p, uint32_t rank, uint8_t id, size_t bytes,
                                         r2_p2p_pack_fn_t pack, void *arg);

/**
 * Reads memory of a peer: its links send it straight into `local`, over all rails. Done when the
 * data is here and nothing at the peer refers to its memory any more. The peer has to call into r2,
 * too.
 * @param remote address in the peer; the peer must have offered it: it is not checked there.
 * @return R2_IN_PROGRESS or an error as r2_p2p_send(); `done` is never called before this returns.
 */
R2_EXPORT r2_status_t r2_p2p_get(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                                 uint64_t bytes, r2_p2p_op_t *op);

/** Writes memory of a peer. Done when the data is there. Else as r2_p2p_get(). */
R2_EXPORT r2_status_t r2_p2p_put(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                                 uint64_t bytes, r2_p2p_op_t *op);

#define R2_P2P_KEYS_MAX 8u /* rails of which others are told keys */

/**
 * Memory as others are told of it, who may have their NICs read and write it: plain bytes, to be
 * copied to them. Without keys, and above R2_P2P_KEYS_MAX rails on the others, it goes by messages.
 */
typedef struct r2_p2p_memory {
    uint64_t address, bytes;
    uint64_t count; /* of keys */
    r2_tp_key_t keys[R2_P2P_KEYS_MAX];
} r2_p2p_memory_t;

/** What keeps memory registered. */
typedef struct r2_p2p_region r2_p2p_region_t;

/**
 * Registers memory on the rails, where coll_r2_direct says so. Where that is refused, or this is
 * not the host's memory, there are no keys.
 * @param region_p for r2_p2p_deregister(). @return R2_OK, R2_ERR_NO_MEMORY.
 */
R2_EXPORT r2_status_t r2_p2p_register(r2_p2p_t *p2p, void *data, uint64_t bytes,
                                      r2_p2p_memory_t *memory_p, r2_p2p_region_t **region_p);
/**
 * Gives the memory back. All reads and writes of it are done: a write is not done as long as
 * anything of it could land. Also after r2_p2p_unbind().
 */
R2_EXPORT void r2_p2p_deregister(r2_p2p_region_t *region);

/**
 * As r2_p2p_get(): long reads by NICs, while the peer does something else. What a lane that fails
 * leaves behind is asked for by messages.
 * @param memory what the peer has told of it; NULL: nothing.
 */
R2_EXPORT r2_status_t r2_p2p_read(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                                  uint64_t bytes, const r2_p2p_memory_t *memory, r2_p2p_op_t *op);
/** As r2_p2p_put(), in the same way. */
R2_EXPORT r2_status_t r2_p2p_write(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                                   uint64_t bytes, const r2_p2p_memory_t *memory, r2_p2p_op_t *op);

/** What an update makes of the old value. */
typedef enum r2_p2p_verb {
    R2_P2P_ADD,
    R2_P2P_AND,
    R2_P2P_OR,
    R2_P2P_XOR,
    R2_P2P_SWAP,
    R2_P2P_COMPARE_SWAP, /* the operand if the old value is `compare` */
    R2_P2P_VERBS
} r2_p2p_verb_t;

/** An update of one integer. */
typedef struct r2_p2p_update {
    r2_p2p_verb_t verb;
    uint32_t bytes; /* 4 or 8 */
    uint64_t operand, compare;
} r2_p2p_update_t;

/**
 * Updates an integer of a peer, with the peer's own atomic instructions: also atomic towards what
 * its threads and processes that share the memory do. Else as r2_p2p_get().
 * @param local   the old value, `bytes` of it; NULL: not wanted.
 * @param remote  a multiple of `bytes`.
 */
R2_EXPORT r2_status_t r2_p2p_update(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                                    const r2_p2p_update_t *update, r2_p2p_op_t *op);

#endif
