/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reductions of one run that the GPU makes.
 */
#include "r2_config.h"

#include "base/util.h"
#include "exec/exec.h"

/* ---- whether ---- */

static bool r2_stage_has_long_reduce(const r2_schedule_t *schedule, uint64_t gpu_bytes)
{
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        if (r2_touch_is_gpus(&schedule->ops[i], gpu_bytes)) {
            return true;
        }
    }
    return false;
}

static bool r2_stage_touches(const r2_schedule_t *schedule, r2_buf_t buf)
{
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        if (op->bytes > 0 && ((r2_touch_reads_src(op) && buf == op->src.buf) ||
                              (r2_touch_writes_dst(op) && buf == op->dst.buf))) {
            return true;
        }
    }
    return false;
}

/* Both buffers, as far as ops touch them, in memory of one context. Kernels know no elements that
 * are not aligned. @return where; NULL: also where both are the processor's. */
static r2_staging_place_t *r2_stage_one_place(const r2_exec_t *exec)
{
    const uintptr_t align = r2_kernel_align(exec->args.kernel);
    const uintptr_t starts[] = {(uintptr_t) exec->args.in, (uintptr_t) exec->args.out};
    const r2_mem_at_t *at = exec->args.at;
    r2_staging_place_t *found = NULL;

    if (r2_mem_traits(at[0].kind)->is_cpus && r2_mem_traits(at[1].kind)->is_cpus) {
        return NULL;
    }
    for (uint32_t i = 0; i < R2_TOUCH_SIDES; ++i) {
        r2_staging_place_t *place;

        if (!r2_stage_touches(exec->schedule, 0 == i ? R2_BUF_IN : R2_BUF_OUT)) {
            continue;
        }
        place = r2_mem_traits(at[i].kind)->is_cpus
                    ? NULL
                    : r2_staging_place(&exec->engine->staging, &at[i]);
        if (NULL == place || (NULL != found && place != found) || 0 != starts[i] % align ||
            NULL != exec->args.convertors[i].move) {
            return NULL;
        }
        found = place;
    }
    return found;
}

r2_staging_place_t *r2_stage_reducer(r2_exec_t *exec)
{
    r2_staging_t *staging = &exec->engine->staging;
    r2_staging_place_t *place;
    uint64_t from;

    if (R2_KERNEL_NONE == exec->args.kernel ||
        0 != exec->args.element_bytes % r2_kernel_bytes(exec->args.kernel)) {
        return NULL;
    }
    place = r2_stage_one_place(exec);
    if (NULL == place) {
        return NULL;
    }
    from = r2_staging_reduce_from(staging, place);
    if (!r2_stage_has_long_reduce(exec->schedule,
                                  R2_STAGING_AUTO == from ? R2_STAGING_ASK_BYTES : from)) {
        return NULL;
    }
    if (R2_STAGING_AUTO == from) { /* known in a later run */
        (void) r2_kernels_ask(&place->kernels, staging->mem, &place->reduces.at, exec->args.kernel);
        return NULL;
    }
    return NULL != r2_program_touch(exec->program, from) &&
                   r2_kernels_ask(&place->kernels, staging->mem, &place->reduces.at,
                                  exec->args.kernel)
               ? place
               : NULL;
}

bool r2_stage_reduces(const r2_exec_t *exec, uint32_t op)
{
    return NULL != exec->stage && NULL != exec->stage->reducer &&
           r2_touch_is_gpus(&exec->schedule->ops[op], exec->stage->touch->gpu_bytes);
}

/* ---- how ---- */

void r2_stage_reduce(r2_exec_t *exec, uint32_t op)
{
    exec->stage->reducing[exec->stage->reduce_tail++] = op;
    r2_stage_await(exec);
}

/* The user's memory, where no op has written yet. */
static uint64_t r2_stage_source(const r2_exec_t *exec, const r2_region_t *region, bool is_direct)
{
    const void *users = R2_BUF_IN == region->buf ? exec->args.in : exec->args.out;

    return is_direct ? (uintptr_t) users + region->offset_bytes
                     : (uintptr_t) r2_exec_address(exec, region);
}

static r2_kernel_piece_t r2_stage_piece(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const uint8_t direct = exec->stage->touch->direct[index];

    return (r2_kernel_piece_t){
        .to = (uintptr_t) r2_exec_address(exec, &op->dst),
        .in = r2_stage_source(exec, &op->src, 0 != (direct & R2_TOUCH_DIRECT_SRC)),
        .inout = r2_stage_source(exec, &op->dst, 0 != (direct & R2_TOUCH_DIRECT_DST)),
        .count = op->bytes / r2_kernel_bytes(exec->args.kernel)};
}

/* A COPY op: from the user's memory to the user's. */
static r2_status_t r2_stage_start_copy(r2_exec_t *exec, uint32_t index, r2_mem_queue_t *queue)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const char *from = R2_BUF_IN == op->src.buf ? exec->args.in : exec->args.out;

    return r2_mem_queue_copy(queue, (char *) exec->args.out + op->dst.offset_bytes,
                             from + op->src.offset_bytes, op->bytes);
}

/* @return so many ops are one launch: a COPY op, or REDUCE ops. */
static uint32_t r2_stage_group(const r2_exec_t *exec)
{
    const r2_staged_t *stage = exec->stage;
    const uint32_t first = stage->reduce_launched;
    const uint32_t most = r2_min(stage->reduce_tail - first, (uint32_t) R2_KERNEL_PIECES);
    uint32_t count = 0;

    while (count < most && !r2_stage_copies(exec, stage->reducing[first + count])) {
        ++count;
    }
    return r2_max(count, 1u);
}

static r2_status_t r2_stage_start_reduces(r2_exec_t *exec, uint32_t first, uint32_t count)
{
    const r2_staged_t *stage = exec->stage;
    r2_kernel_pieces_t pieces = {.piece = {{.count = 0}}};

    for (uint32_t i = 0; i < count; ++i) {
        pieces.piece[i] = r2_stage_piece(exec, stage->reducing[first + i]);
    }
    return r2_kernels_launch(&stage->reducer->kernels, &stage->reducer->reduces, exec->args.kernel,
                             &pieces, count);
}

/* One launch: of the ops that wait, as many as it takes. */
static r2_status_t r2_stage_launch_some(r2_exec_t *exec)
{
    r2_staged_t *stage = exec->stage;
    r2_mem_queue_t *queue = &r2_stage_worker(stage)->reduces;
    const uint32_t first = stage->reduce_launched;
    const uint32_t count = r2_stage_group(exec);
    r2_status_t status = r2_mem_queue_room(queue);
    uint64_t ticket;

    if (R2_OK != status) {
        return status;
    }
    status = r2_stage_copies(exec, stage->reducing[first])
                 ? r2_stage_start_copy(exec, stage->reducing[first], queue)
                 : r2_stage_start_reduces(exec, first, count);
    if (R2_OK == status) {
        status = r2_mem_queue_mark(queue, &ticket);
    }
    for (uint32_t i = 0; R2_OK == status && i < count; ++i) {
        stage->reduced[first + i] = ticket;
    }
    stage->reduce_launched += R2_OK == status ? count : 0;
    return status;
}

/* While the GPU is at work, pieces come together: a launch costs it as much as a piece or two. */
static bool r2_stage_may_launch(const r2_exec_t *exec)
{
    const r2_staged_t *stage = exec->stage;
    const uint32_t count = stage->reduce_tail - stage->reduce_launched;

    return count > 0 && (stage->reduce_head == stage->reduce_launched ||
                         R2_KERNEL_PIECES == r2_stage_group(exec) || r2_stage_group(exec) < count ||
                         r2_stage_copies(exec, stage->reducing[stage->reduce_launched]));
}

r2_status_t r2_stage_launch(r2_exec_t *exec)
{
    r2_status_t status = R2_OK;

    while (R2_OK == status && r2_stage_may_launch(exec)) {
        status = r2_stage_launch_some(exec);
    }
    return status;
}

r2_status_t r2_stage_reduced(r2_exec_t *exec, uint32_t *op_p)
{
    r2_staged_t *stage = exec->stage;
    const uint32_t head = stage->reduce_head;
    r2_status_t status;

    if (head == stage->reduce_launched) {
        return R2_ERR_NOT_FOUND;
    }
    status = r2_mem_queue_test(&r2_stage_worker(stage)->reduces, stage->reduced[head]);
    if (R2_OK == status) {
        *op_p = stage->reducing[head];
        if (r2_stage_copies(exec, *op_p)) {
            r2_stage_lacks(exec, *op_p);
        }
        ++stage->reduce_head;
    }
    return R2_IN_PROGRESS == status ? R2_ERR_NOT_FOUND : status;
}
