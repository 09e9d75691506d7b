/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of GPUs, for those who make calls.
 */
#include "r2_config.h"

#include <unistd.h>

#include "ctx/state.h"

#define R2_MEM_TRANSFER_US 20u

bool r2_mem_differs(const r2_ctx_t *ctx)
{
    return NULL != ctx->core.mem.driver.library;
}

bool r2_mem_is_ucx_s(void)
{
    return r2_tp_ucx_takes_cuda();
}

/* No lock: the driver has its own, and what r2 has of it does not change. */
r2_status_t r2_mem_find(r2_ctx_t *ctx, const void *at, r2_mem_at_t *at_p)
{
    return r2_mem_look(&ctx->core.mem, at, at_p);
}

/* Engine lock, which others have meanwhile: the application's own work comes first, and may take
 * long. */
static r2_status_t r2_mem_transfer_end(r2_ctx_t *ctx, r2_mem_queue_t *queue)
{
    r2_status_t status = R2_ERR_AGAIN, marked = R2_ERR_AGAIN;
    uint64_t ticket = 0;

    while (R2_ERR_AGAIN == status || R2_IN_PROGRESS == status) {
        marked = R2_ERR_AGAIN == marked ? r2_mem_queue_mark(queue, &ticket) : marked;
        status = R2_OK == marked ? r2_mem_queue_test(queue, ticket) : marked;
        if (R2_ERR_AGAIN == status || R2_IN_PROGRESS == status) {
            r2_core_leave(&ctx->core);
            usleep(R2_MEM_TRANSFER_US);
            r2_core_enter(&ctx->core);
        }
    }
    return R2_OK == status ? R2_OK : r2_mem_queue_drain(queue);
}

r2_status_t r2_mem_block_get(r2_ctx_t *ctx, const r2_mem_at_t *at, uint64_t bytes,
                             r2_mem_block_t **block_p, void **bytes_p)
{
    r2_staging_t *staging = &ctx->core.engine.staging;
    r2_mem_at_t pinned = {.kind = R2_MEM_HOST};
    r2_pin_t *block = NULL;
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(&ctx->core);
    status = r2_staging_follow(staging, at);
    if (R2_OK == status) {
        block = r2_pins_kept(&staging->pins, bytes);
        pinned = staging->pins.at;
    }
    r2_core_leave(&ctx->core);
    if (R2_OK == status && NULL == block) { /* others go on meanwhile */
        block = r2_pins_new(&ctx->core.mem, &pinned, bytes);
        status = NULL == block ? R2_ERR_NO_MEMORY : R2_OK;
    }
    if (R2_OK == status) {
        *block_p = block;
        *bytes_p = block->memory;
    }
    return status;
}

void r2_mem_block_put(r2_ctx_t *ctx, r2_mem_block_t *block)
{
    if (NULL != block && !r2_is_forked()) {
        r2_core_enter(&ctx->core);
        r2_pins_put(&ctx->core.engine.staging.pins, block);
        r2_core_leave(&ctx->core);
    }
}

r2_status_t r2_mem_transfer(r2_ctx_t *ctx, const r2_mem_at_t *at, const r2_convertor_t *buffer,
                            uint64_t bytes, void *packed, bool unpack)
{
    r2_staging_t *staging = &ctx->core.engine.staging;
    r2_staging_copy_t to = {.staged = packed, .is_store = unpack};
    r2_status_t ended;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(&ctx->core);
    to.status = r2_staging_follow(staging, at);
    if (R2_OK == to.status) {
        to.queue = &r2_staging_place(staging, at)->loads;
        to.kernels = r2_staging_packer(r2_staging_place(staging, at), packed);
        buffer->runs(buffer->arg, 0, bytes, r2_staging_piece, &to);
        (void) r2_staging_end(&to);
        ended = r2_mem_transfer_end(ctx, to.queue);
        to.status = R2_OK == to.status ? ended : to.status;
    }
    r2_core_leave(&ctx->core);
    return to.status;
}
