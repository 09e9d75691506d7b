/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * SEND ops whose data NICs read in memory of a GPU, by themselves: nothing is loaded. Where a lane
 * cannot, the link asks for the copy after all: it is loaded as any other, from memory that is the
 * call's until the op is complete. RECV ops whose data NICs write there: landing.h.
 */
#include "r2_config.h"

#include "base/util.h"
#include "exec/exec.h"

static const r2_region_t *r2_nic_region(const r2_op_t *op)
{
    return R2_OP_SEND == op->kind ? &op->src : &op->dst;
}

static uint32_t r2_nic_side(const r2_op_t *op)
{
    return R2_BUF_IN == r2_nic_region(op)->buf ? 0 : 1;
}

/* Nothing of it is in the copy: no op has written there, and none has needed it here. */
static bool r2_nic_is_away(const r2_exec_t *exec, uint32_t index)
{
    const r2_staged_side_t *side = r2_exec_staged(exec, exec->schedule->ops[index].src.buf);
    const r2_touch_span_t *span;

    if (NULL == side) {
        return false;
    }
    span = &exec->stage->touch->src[index];
    for (uint32_t s = span->first; s < span->end; ++s) {
        if (R2_STAGE_MISSING != side->loaded[s]) {
            return false;
        }
    }
    return true;
}

/* What peers send is all that belongs there, and the GPU sees it. */
static bool r2_nic_is_target(const r2_exec_t *exec, uint32_t index)
{
    const r2_staged_side_t *side = r2_exec_staged(exec, exec->schedule->ops[index].dst.buf);

    return NULL != side && R2_MEM_NICS_NEVER != side->place->nics &&
           0 != (exec->stage->touch->direct[index] & R2_TOUCH_DIRECT_RECV);
}

static bool r2_nic_has_lanes(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_link_t *link;

    return R2_OK == r2_net_link(exec->engine->net, exec->args.ranks[op->peer], &link) &&
           (R2_OP_SEND == op->kind ? r2_link_reads_gpus(link) : r2_link_puts_to_gpus(link));
}

char *r2_nic_memory(const r2_exec_t *exec, const r2_op_t *op, r2_tp_memory_t *memory_p)
{
    char *start = 0 == r2_nic_side(op) ? (char *) (uintptr_t) exec->args.in : exec->args.out;
    char *from = start + r2_nic_region(op)->offset_bytes;
    const uintptr_t at = (uintptr_t) from;
    r2_mem_piece_t piece;

    if (!r2_mem_piece_of(exec->engine->staging.mem, from, &piece) || at < piece.start ||
        op->bytes > piece.bytes || at - piece.start > piece.bytes - op->bytes) {
        return NULL;
    }
    *memory_p = (r2_tp_memory_t){
        .data = (const void *) (uintptr_t) piece.start, .bytes = piece.bytes, .gpu_id = piece.id};
    return from;
}

bool r2_nic_prepare(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_exec_op_t *handle = &exec->ops[index];
    const uint32_t which = r2_nic_side(op);
    r2_tp_memory_t unused;

    if (NULL != handle->message || handle->fetching || handle->done) {
        return handle->by_nic; /* it was begun: it stays as it is */
    }
    handle->by_nic =
        (R2_OP_SEND == op->kind || R2_OP_RECV == op->kind) &&
        op->bytes >= exec->engine->staging.nic_bytes &&
        R2_MEM_DEVICE == exec->args.at[which].kind && NULL == exec->args.convertors[which].move &&
        (R2_OP_SEND == op->kind ? r2_nic_is_away(exec, index) : r2_nic_is_target(exec, index)) &&
        r2_nic_has_lanes(exec, index) && NULL != r2_nic_memory(exec, op, &unused);
    return handle->by_nic;
}
