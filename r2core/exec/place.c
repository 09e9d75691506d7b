/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Where the regions of a run lie: in the caller's buffers, in copies of them, or in scratch memory;
 * and where its messages belong.
 */
#include "r2_config.h"

#include "exec/exec.h"

const r2_staged_side_t *r2_exec_staged(const r2_exec_t *exec, r2_buf_t buf)
{
    const r2_staged_side_t *side;

    if (NULL == exec->stage || R2_BUF_SCRATCH == buf) {
        return NULL;
    }
    side = &exec->stage->sides[R2_BUF_IN == buf ? 0 : 1];
    return NULL == side->place ? NULL : side;
}

r2_staging_place_t *r2_stage_find_copier(const r2_exec_t *exec)
{
    const r2_staged_side_t *sides = exec->stage->sides;
    const uint32_t from = NULL == sides[0].place ? 1 : 0; /* in place there is one buffer only */

    return NULL == sides[1].place || sides[from].place != sides[1].place ||
                   NULL != exec->args.convertors[from].move || NULL != exec->args.convertors[1].move
               ? NULL
               : sides[1].place;
}

r2_staging_place_t *r2_stage_worker(const r2_staged_t *stage)
{
    return NULL == stage->reducer ? stage->copier : stage->reducer;
}

bool r2_stage_copies(const r2_exec_t *exec, uint32_t op)
{
    const r2_op_t *which = &exec->schedule->ops[op];

    return NULL != exec->stage && NULL != exec->stage->copier &&
           0 != (exec->stage->touch->direct[op] & R2_TOUCH_DIRECT_COPY) &&
           NULL != r2_exec_staged(exec, which->src.buf);
}

char *r2_exec_address(const r2_exec_t *exec, const r2_region_t *region)
{
    const r2_staged_side_t *side = r2_exec_staged(exec, region->buf);
    char *base = exec->scratch;

    if (NULL != side) {
        return side->staged->memory +
               side->touch->places[r2_touch_find(side->touch, region->offset_bytes)];
    }
    if (R2_BUF_IN == region->buf) {
        base = (char *) (uintptr_t) exec->args.in;
    } else if (R2_BUF_OUT == region->buf) {
        base = exec->args.out;
    }
    return base + region->offset_bytes;
}

const r2_convertor_t *r2_exec_convertor(const r2_exec_t *exec, const r2_region_t *region)
{
    const r2_convertor_t *convertor;

    if (R2_BUF_SCRATCH == region->buf || NULL != r2_exec_staged(exec, region->buf)) {
        return NULL;
    }
    convertor = &exec->args.convertors[R2_BUF_IN == region->buf ? 0 : 1];
    return NULL == convertor->move ? NULL : convertor;
}

r2_tag_t r2_exec_tag(const r2_exec_t *exec, const r2_op_t *op)
{
    r2_tag_t tag = exec->args.tag;

    tag.id = op->tag;
    return tag;
}

/* Plan and what only the two ends of its message know. The low bits of a plan's digest stay. */
uint32_t r2_exec_digest(const r2_exec_t *exec, const r2_op_t *op)
{
    return exec->schedule->digest ^ op->mark << R2_DIGEST_KIND_BITS;
}
