/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of a device that other processes of the host read (CUDA IPC): what its owner says of it,
 * and what of others is open here.
 *
 * Opening takes long, so what is open stays so for later calls. It cannot go stale: an allocation
 * is known by its number, which no other of its process ever has (BUFFER_ID), and not by its
 * address. What its owner has freed is nobody's to be named any more: it is closed when an
 * allocation at the same addresses is opened, when room is needed, or at the end; until then the
 * driver may keep its memory.
 *
 * Engine lock.
 */
#ifndef R2_MEM_SHARE_H
#define R2_MEM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/mem.h"

enum {
    R2_MEM_SHARES = 32 /* allocations of other processes that are open, and handles of our own */
};

/** What an owner says of a piece of its memory. Sent between processes of one host. */
typedef struct r2_mem_share {
    r2_cu_ipc_t handle;         /* of the allocation */
    uint64_t id;                /* of the allocation; never another one's of this process */
    uint64_t start, room_bytes; /* the allocation, where its owner has it */
    uint64_t offset_bytes;      /* of the piece in it */
} r2_mem_share_t;

/** An allocation of another process. */
typedef struct r2_mem_opened {
    r2_mem_at_t at;        /* in whose context it is open */
    uint32_t owner;        /* process */
    uint32_t users;        /* copies from it that are under way */
    uint64_t id;           /* 0: none */
    uint64_t start, bytes; /* where its owner has it */
    r2_cu_at_t memory;     /* where it is here */
    uint64_t last;         /* when it was used, in uses of all */
} r2_mem_opened_t;

typedef struct r2_mem_shares {
    r2_mem_t *mem; /* borrowed: outlives this; NULL: nothing can be shared */
    r2_mem_opened_t opened[R2_MEM_SHARES];
    struct {
        uint64_t id; /* 0: none */
        r2_cu_ipc_t handle;
    } own[R2_MEM_SHARES]; /* handles that were made */
    uint32_t next_own;
    uint64_t uses;
} r2_mem_shares_t;

void r2_mem_shares_init(r2_mem_shares_t *shares, r2_mem_t *mem);
/** Closes what is open. No copy is under way. Also for zeros. */
void r2_mem_shares_fini(r2_mem_shares_t *shares);
/** What is open went with its context, or another has its address now. */
void r2_mem_shares_forget(r2_mem_shares_t *shares);

/** What others need to read a piece of memory.
 * @param at what r2_mem_look() says of it. @return R2_OK; R2_ERR_UNSUPPORTED: it is no piece of one
 * allocation that others can open: managed memory, that of pools, or mapped by pieces. */
r2_status_t r2_mem_share(r2_mem_shares_t *shares, const r2_mem_at_t *at, const void *memory,
                         uint64_t bytes, r2_mem_share_t *share_p);

/** Opens what a process has shared.
 * @param at       memory of the context that is to read it
 * @param opened_p to be given to r2_mem_close()
 * @param memory_p where copies in that context read the piece
 * @return R2_OK; R2_ERR_UNSUPPORTED: it cannot be opened here. R2_ERR_AGAIN: not now. */
r2_status_t r2_mem_open(r2_mem_shares_t *shares, uint32_t owner, const r2_mem_at_t *at,
                        const r2_mem_share_t *share, r2_mem_opened_t **opened_p,
                        const void **memory_p);
/** A copy has ended: the allocation may be closed some time. */
void r2_mem_close(r2_mem_opened_t *opened);

#endif
