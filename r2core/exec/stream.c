/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Long messages of buffers that are not the CPU's, piece by piece. A SEND op begins with its first
 * piece that is loaded, and its message is told of each that follows; not earlier, or it would hold
 * credit that others need, and not where others keep the lanes busy, since what is whole goes in
 * longer chunks. Of what a RECV op brings, each piece is stored when it has come.
 */
#include "r2_config.h"

#include <string.h>

#include "base/util.h"
#include "exec/exec.h"

/* Loads come in the order of the ops that need them: who is first in it is looked at first. */
void r2_stage_wait(r2_exec_t *exec, uint32_t op)
{
    r2_staged_t *stage = exec->stage;
    uint32_t at;

    if (stage->waiting_head + stage->waiting_count == exec->schedule->op_count) {
        memmove(stage->waiting, stage->waiting + stage->waiting_head,
                stage->waiting_count * sizeof(*stage->waiting));
        stage->waiting_head = 0;
    }
    at = stage->waiting_head + stage->waiting_count++;
    for (; at > stage->waiting_head && stage->waiting[at - 1] > op; --at) {
        stage->waiting[at] = stage->waiting[at - 1];
    }
    stage->waiting[at] = op;
    r2_stage_await(exec);
}

static bool r2_stream_is_long(r2_touch_span_t span)
{
    return span.end - span.first > 1;
}

/* @return the first segment of what an op sends that was not loaded when r2_stage_load() looked. */
static uint32_t r2_stream_loaded(const r2_exec_t *exec, uint32_t index)
{
    return exec->stage->touch->src[index].first + exec->stage->ready_src[index];
}

/* Of what is lent or read by NICs no piece is ready: it is where it always was. */
bool r2_stream_may_begin(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const r2_exec_op_t *handle = &exec->ops[index];
    r2_link_t *link;

    r2_assert(0 == exec->stage->ready_src[index] || (!handle->by_nic && !r2_loan_is_on(handle)));
    return R2_OP_SEND == op->kind && r2_stream_is_long(exec->stage->touch->src[index]) &&
           exec->stage->ready_src[index] > 0 &&
           !exec->ops[index].fetching && /* what is fetched is under way already */
           R2_OK == r2_net_link(exec->engine->net, exec->args.ranks[op->peer], &link) &&
           !r2_link_is_beside(link) && /* there a message is handed over whole */
           r2_link_is_quiet(link, op->bytes);
}

void r2_stream_fill(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const r2_staged_side_t *side = r2_exec_staged(exec, op->src.buf);

    if (exec->ops[index].filling && NULL != exec->ops[index].message && !exec->over) {
        r2_link_ready(exec->ops[index].message,
                      side->touch->cuts[r2_stream_loaded(exec, index)] - op->src.offset_bytes);
    }
}

bool r2_stream_stores(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];

    return R2_BUF_OUT == op->dst.buf && NULL != r2_exec_staged(exec, R2_BUF_OUT) &&
           r2_stream_is_long(exec->stage->touch->dst[index]) && !exec->ops[index].by_nic;
}

void r2_stream_arrived(void *arg, uint64_t bytes)
{
    r2_exec_op_t *handle = arg;
    r2_exec_t *exec = handle->exec;
    r2_staged_t *stage = exec->stage;
    const uint32_t index = (uint32_t) (handle - exec->ops);
    const r2_touch_span_t span = stage->touch->dst[index];
    const uint64_t end = exec->schedule->ops[index].dst.offset_bytes + bytes;
    const uint32_t before = stage->arrived[index];
    uint32_t *arrived = &stage->arrived[index];

    if (exec->over) {
        return;
    }
    while (span.first + *arrived < span.end &&
           stage->sides[1].touch->cuts[span.first + *arrived + 1] <= end) {
        ++*arrived;
    }
    if (before == stage->taken[index] && *arrived > before) {
        stage->arriving[stage->arriving_count++] = index;
        r2_stage_await(exec);
    }
}
