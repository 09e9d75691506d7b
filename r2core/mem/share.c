/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of a device that other processes of the host read.
 */
#include "r2_config.h"

#include "mem/share.h"

#include <string.h>

#include "base/util.h"

void r2_mem_shares_init(r2_mem_shares_t *shares, r2_mem_t *mem)
{
    memset(shares, 0, sizeof(*shares));
    shares->mem = mem;
}

/* ---- our own ---- */

/* By one query of the driver if its handle is known. */
static r2_status_t r2_mem_handle(r2_mem_shares_t *shares, const r2_mem_at_t *at, uint64_t id,
                                 r2_cu_at_t memory, r2_cu_ipc_t *handle_p)
{
    r2_cu_result_t rc;

    for (uint32_t i = 0; i < R2_MEM_SHARES; ++i) {
        if (id == shares->own[i].id) {
            *handle_p = shares->own[i].handle;
            return R2_OK;
        }
    }
    if (R2_OK != r2_mem_enter(shares->mem, at)) {
        return R2_ERR_UNSUPPORTED;
    }
    rc = shares->mem->driver.ipc_get(handle_p, memory);
    r2_mem_leave(shares->mem);
    if (R2_CU_OK != rc) {
        return R2_ERR_UNSUPPORTED;
    }
    shares->own[shares->next_own].id = id;
    shares->own[shares->next_own].handle = *handle_p;
    shares->next_own = (shares->next_own + 1) % R2_MEM_SHARES;
    return R2_OK;
}

r2_status_t r2_mem_share(r2_mem_shares_t *shares, const r2_mem_at_t *at, const void *memory,
                         uint64_t bytes, r2_mem_share_t *share_p)
{
    const uintptr_t first = (uintptr_t) memory;
    r2_mem_piece_t piece;
    r2_mem_share_t share;
    r2_status_t status;

    if (NULL == shares->mem || NULL == shares->mem->driver.ipc_get || R2_MEM_DEVICE != at->kind ||
        !r2_mem_piece_of(shares->mem, memory, &piece) || first < piece.start ||
        bytes > piece.bytes || first - piece.start > piece.bytes - bytes) {
        return R2_ERR_UNSUPPORTED;
    }
    memset(&share, 0, sizeof(share));
    status = r2_mem_handle(shares, at, piece.id, first, &share.handle);
    if (R2_OK == status) {
        share.id = piece.id;
        share.start = piece.start;
        share.room_bytes = piece.bytes;
        share.offset_bytes = first - piece.start;
        *share_p = share;
    }
    return status;
}

/* ---- of others ---- */

/* A driver that has ended has taken it along, and says so. */
static void r2_mem_shut(r2_mem_shares_t *shares, r2_mem_opened_t *opened)
{
    if (0 != opened->id && R2_OK == r2_mem_enter(shares->mem, &opened->at)) {
        (void) shares->mem->driver.ipc_close(opened->memory);
        r2_mem_leave(shares->mem);
    }
    opened->id = 0;
}

void r2_mem_shares_fini(r2_mem_shares_t *shares)
{
    for (uint32_t i = 0; i < R2_MEM_SHARES; ++i) {
        r2_mem_shut(shares, &shares->opened[i]);
    }
}

void r2_mem_shares_forget(r2_mem_shares_t *shares)
{
    for (uint32_t i = 0; i < R2_MEM_SHARES; ++i) {
        shares->opened[i].id = 0;
        shares->own[i].id = 0;
    }
}

/* What lies where a new allocation lies was freed. */
static void r2_mem_shut_freed(r2_mem_shares_t *shares, uint32_t owner, const r2_mem_share_t *share)
{
    for (uint32_t i = 0; i < R2_MEM_SHARES; ++i) {
        r2_mem_opened_t *opened = &shares->opened[i];

        if (0 != opened->id && owner == opened->owner && share->id != opened->id &&
            share->start < opened->start + opened->bytes &&
            opened->start < share->start + share->room_bytes && 0 == opened->users) {
            r2_mem_shut(shares, opened);
        }
    }
}

/* @return what is open; or room for it, of what was used least lately; NULL: all is in use. */
static r2_mem_opened_t *r2_mem_find_opened(r2_mem_shares_t *shares, uint32_t owner,
                                           const r2_mem_at_t *at, uint64_t id)
{
    r2_mem_opened_t *oldest = NULL;

    for (uint32_t i = 0; i < R2_MEM_SHARES; ++i) {
        r2_mem_opened_t *opened = &shares->opened[i];

        if (id == opened->id && owner == opened->owner && at->context == opened->at.context &&
            at->device == opened->at.device) {
            return opened;
        }
        if (0 == opened->users && (NULL == oldest || 0 == opened->id ||
                                   (0 != oldest->id && opened->last < oldest->last))) {
            oldest = opened;
        }
    }
    return oldest;
}

static r2_status_t r2_mem_open_new(r2_mem_shares_t *shares, uint32_t owner, const r2_mem_at_t *at,
                                   const r2_mem_share_t *share, r2_mem_opened_t *opened)
{
    r2_cu_result_t rc;

    r2_mem_shut(shares, opened);
    if (R2_OK != r2_mem_enter(shares->mem, at)) {
        return R2_ERR_UNSUPPORTED;
    }
    rc = shares->mem->driver.ipc_open(&opened->memory, share->handle, R2_CU_IPC_LAZY_PEER_ACCESS);
    r2_mem_leave(shares->mem);
    if (R2_CU_OK != rc) {
        return R2_ERR_UNSUPPORTED;
    }
    opened->at = *at;
    opened->owner = owner;
    opened->id = share->id;
    opened->start = share->start;
    opened->bytes = share->room_bytes;
    return R2_OK;
}

r2_status_t r2_mem_open(r2_mem_shares_t *shares, uint32_t owner, const r2_mem_at_t *at,
                        const r2_mem_share_t *share, r2_mem_opened_t **opened_p,
                        const void **memory_p)
{
    r2_mem_opened_t *opened;
    r2_status_t status = R2_OK;

    if (NULL == shares->mem || NULL == shares->mem->driver.ipc_open || 0 == share->id) {
        return R2_ERR_UNSUPPORTED;
    }
    r2_mem_shut_freed(shares, owner, share);
    opened = r2_mem_find_opened(shares, owner, at, share->id);
    if (NULL == opened) {
        return R2_ERR_AGAIN;
    }
    if (share->id != opened->id || owner != opened->owner || at->context != opened->at.context ||
        at->device != opened->at.device) {
        status = r2_mem_open_new(shares, owner, at, share, opened);
    }
    if (R2_OK == status) {
        ++opened->users;
        opened->last = ++shares->uses;
        *opened_p = opened;
        *memory_p = (const void *) (uintptr_t) (opened->memory + share->offset_bytes);
    }
    return status;
}

void r2_mem_close(r2_mem_opened_t *opened)
{
    --opened->users;
}
