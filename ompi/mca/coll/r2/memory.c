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
    return mca_coll_r2_is_cpus(at_p) ? r2_mem_find(mca_coll_r2_component.ctx, memory, at_p) : R2_OK;
}

/* Elements as long as this may have pieces in several places (MPI_BOTTOM). */
#define R2_MEMORY_NEAR_BYTES 65536

static bool r2_memory_is_far(const struct ompi_datatype_t *dtype)
{
    ptrdiff_t true_lb, true_extent;

    ompi_datatype_get_true_extent(dtype, &true_lb, &true_extent);
    return true_extent >= R2_MEMORY_NEAR_BYTES;
}

static r2_status_t r2_memory_of_block(mca_coll_r2_buffer_t *buffer, int block, r2_mem_at_t *at_p)
{
    const struct ompi_datatype_t *dtype =
        NULL == buffer->dtype ? buffer->dtypes[block] : buffer->dtype;
    char *origin = buffer->base + buffer->displs[block];
    r2_status_t status = r2_memory_look(origin + mca_coll_r2_first_byte(dtype), at_p);
    uint32_t count;

    if (R2_OK != status || !mca_coll_r2_is_cpus(at_p) || !r2_memory_is_far(dtype)) {
        return status;
    }
    if (OMPI_SUCCESS != mca_coll_r2_buffer_runs_init(buffer)) {
        return R2_ERR_NO_MEMORY;
    }
    count = mca_coll_r2_buffer_run_count(buffer, block);
    for (uint32_t i = 0; R2_OK == status && i < count && mca_coll_r2_is_cpus(at_p); ++i) {
        status = r2_memory_look(origin + mca_coll_r2_buffer_run(buffer, block, i), at_p);
    }
    return status;
}

r2_status_t mca_coll_r2_buffer_look(mca_coll_r2_buffer_t *buffer, r2_mem_at_t *at_p)
{
    r2_status_t status = R2_OK;

    for (int i = 0; R2_OK == status && i < buffer->block_count && mca_coll_r2_is_cpus(at_p); ++i) {
        if (buffer->starts[i + 1] > buffer->starts[i]) {
            status = r2_memory_of_block(buffer, i, at_p);
        }
    }
    if (R2_OK == status && !mca_coll_r2_is_cpus(at_p) &&
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
                 ? mca_coll_r2_buffer_look(&call->in, &args->in_at)
                 : r2_memory_of_blocks(args->in, args->sends, args->send_count, &args->in_at);
    if (R2_OK == status) {
        status = NULL != args->out_convertor.move
                     ? mca_coll_r2_buffer_look(&call->out, &args->out_at)
                     : r2_memory_of_blocks(args->out, args->recvs, args->recv_count, &args->out_at);
    }
    return status;
}
