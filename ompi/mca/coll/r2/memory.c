/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Where the buffers of a call are. A matter of this rank alone: on another one the same call may
 * have them elsewhere, and plans do not depend on it.
 */
#include "call.h"

/* Goes by the first byte that is not the CPU's. */
static r2_status_t r2_memory_look(const void *memory, r2_mem_at_t *at_p)
{
    return R2_MEM_HOST == at_p->kind || R2_MEM_PINNED == at_p->kind
               ? r2_mem_find(mca_coll_r2_component.ctx, memory, at_p)
               : R2_OK;
}

static r2_status_t r2_memory_of_buffer(mca_coll_r2_buffer_t *buffer, r2_mem_at_t *at_p)
{
    r2_status_t status = R2_OK;

    for (int i = 0; R2_OK == status && i < buffer->block_count; ++i) {
        if (buffer->starts[i + 1] > buffer->starts[i]) {
            status =
                r2_memory_look(buffer->base +
                                   mca_coll_r2_first_byte(NULL == buffer->dtype ? buffer->dtypes[i]
                                                                                : buffer->dtype) +
                                   buffer->displs[i],
                               at_p);
        }
    }
    if (R2_OK == status && (R2_MEM_DEVICE == at_p->kind || R2_MEM_MANAGED == at_p->kind) &&
        OMPI_SUCCESS != mca_coll_r2_buffer_runs_init(buffer)) {
        status = R2_ERR_NO_MEMORY;
    }
    return status;
}

/* @param edges where the blocks of a contiguous buffer are that may be in several places, or
 * NULL. */
static r2_status_t r2_memory_of_blocks(const void *memory, const r2_edge_t *edges, uint32_t count,
                                       r2_mem_at_t *at_p)
{
    r2_status_t status = NULL == edges ? r2_memory_look(memory, at_p) : R2_OK;

    for (uint32_t i = 0; NULL != edges && R2_OK == status && i < count; ++i) {
        if (edges[i].bytes > 0) {
            status = r2_memory_look((const char *) memory + edges[i].offset_bytes, at_p);
        }
    }
    return status;
}

r2_status_t mca_coll_r2_call_look(mca_coll_r2_call_t *call)
{
    r2_coll_args_t *args = &call->args;
    r2_status_t status;

    args->in_at = args->out_at = (r2_mem_at_t){.kind = R2_MEM_HOST};
    if (!r2_mem_differs(mca_coll_r2_component.ctx)) {
        return R2_OK;
    }
    if (NULL != call->pieces) {
        return mca_coll_r2_pieces_look(call);
    }
    status = NULL != args->in_convertor.move
                 ? r2_memory_of_buffer(&call->in, &args->in_at)
                 : r2_memory_of_blocks(args->in, args->sends, args->send_count, &args->in_at);
    if (R2_OK == status) {
        status = NULL != args->out_convertor.move
                     ? r2_memory_of_buffer(&call->out, &args->out_at)
                     : r2_memory_of_blocks(args->out, args->recvs, args->recv_count, &args->out_at);
    }
    return status;
}
