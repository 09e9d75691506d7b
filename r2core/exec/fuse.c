/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which ops are fused, and what is done with the pieces that arrive.
 */
#include "r2_config.h"

#include "exec/fuse.h"

#include <string.h>

#include "base/util.h"
#include "exec/exec.h"

/* So much is in the first cache at a time, twice. */
#define R2_FUSE_PIECE_BYTES 8192u

static_assert(0 == R2_FUSE_PIECE_BYTES % R2_REDUCE_GRAIN_BYTES, "pieces end where chunks may");

/* ---- which ---- */

static bool r2_fuse_same(const r2_region_t *a, const r2_region_t *b)
{
    return a->buf == b->buf && a->offset_bytes == b->offset_bytes;
}

static bool r2_fuse_waits_alone(const uint32_t *dependents, const uint32_t *first, uint32_t op,
                                uint32_t waiter)
{
    return first[op + 1] - first[op] == 1 && dependents[first[op]] == waiter;
}

uint32_t r2_fuse_copy_of(const r2_schedule_t *schedule, const uint32_t *partners, uint32_t reduce)
{
    const r2_op_t *op = &schedule->ops[reduce];

    for (uint32_t d = 0; d < op->dep_count; ++d) {
        const uint32_t dep = schedule->deps[op->first_dep + d];

        if (R2_OP_COPY == schedule->ops[dep].kind && reduce == partners[dep]) {
            return dep;
        }
    }
    return R2_OP_NONE;
}

/* The RECV op that a REDUCE op waits for and that brings one of its sides; R2_OP_NONE: none. */
static uint32_t r2_fuse_recv_of(const r2_schedule_t *schedule, const r2_op_t *reduce)
{
    for (uint32_t d = 0; d < reduce->dep_count; ++d) {
        const uint32_t dep = schedule->deps[reduce->first_dep + d];
        const r2_op_t *recv = &schedule->ops[dep];

        if (R2_OP_RECV == recv->kind && recv->bytes == reduce->bytes &&
            (r2_fuse_same(&recv->dst, &reduce->dst) ||
             (reduce->frees_src && r2_fuse_same(&recv->dst, &reduce->src)))) {
            return dep;
        }
    }
    return R2_OP_NONE;
}

/* A COPY op that is done from the start on, so that its place may be written at any time. */
static bool r2_fuse_is_start(const r2_op_t *copy, const r2_op_t *reduce)
{
    return R2_OP_COPY == copy->kind && 0 == copy->dep_count && copy->bytes == reduce->bytes &&
           r2_fuse_same(&copy->dst, &reduce->dst);
}

bool r2_fuse_find(const r2_schedule_t *schedule, const uint32_t *dependents, const uint32_t *first,
                  uint32_t *partners)
{
    bool found = false;

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        partners[i] = R2_OP_NONE;
    }
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *reduce = &schedule->ops[i];
        const uint32_t recv =
            R2_OP_REDUCE == reduce->kind ? r2_fuse_recv_of(schedule, reduce) : R2_OP_NONE;
        uint32_t copy;

        if (R2_OP_NONE == recv || !r2_fuse_waits_alone(dependents, first, recv, i)) {
            continue;
        }
        if (2 == reduce->dep_count && r2_fuse_same(&schedule->ops[recv].dst, &reduce->src)) {
            copy = schedule->deps[reduce->first_dep] == recv ? schedule->deps[reduce->first_dep + 1]
                                                             : schedule->deps[reduce->first_dep];
            if (!r2_fuse_is_start(&schedule->ops[copy], reduce) ||
                !r2_fuse_waits_alone(dependents, first, copy, i)) {
                continue;
            }
            partners[copy] = i;
        } else if (1 != reduce->dep_count) {
            continue;
        }
        partners[recv] = i;
        partners[i] = recv;
        found = true;
    }
    return found;
}

/* ---- in a run ---- */

bool r2_fuse_may(const r2_exec_t *exec)
{
    const r2_exec_args_t *args = &exec->args;

    return NULL != exec->program->partners && NULL != args->reduce && args->any_thread &&
           NULL == exec->stage && NULL == args->convertors[0].move &&
           NULL == args->convertors[1].move && 0 != args->element_bytes &&
           0 == R2_REDUCE_GRAIN_BYTES % args->element_bytes;
}

bool r2_fuse_is(const r2_exec_t *exec, uint32_t op)
{
    return exec->fuses && R2_OP_NONE != exec->program->partners[op];
}

bool r2_fuse_adds(const r2_exec_t *exec, uint32_t recv)
{
    const r2_op_t *ops = exec->schedule->ops;
    const uint32_t reduce = r2_fuse_is(exec, recv) ? exec->program->partners[recv] : R2_OP_NONE;

    return R2_OP_NONE != reduce && !r2_fuse_same(&ops[recv].dst, &ops[reduce].dst) &&
           R2_OP_NONE == r2_fuse_copy_of(exec->schedule, exec->program->partners, reduce);
}

bool r2_fuse_has_reduced(const r2_exec_t *exec, uint32_t reduce)
{
    return r2_fuse_is(exec, reduce) && exec->ops[exec->program->partners[reduce]].fused;
}

/*
 * What arrives lies at any address: unless that suits every type it is reduced from a copy in the
 * first cache, or in its place where that is the accumulator. memmove(): of memcpy()
 * with a bound the compiler may make a string instruction, which is slow from odd addresses.
 */
void r2_fuse_take(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    _Alignas(R2_REDUCE_GRAIN_BYTES) char piece[R2_FUSE_PIECE_BYTES];
    r2_exec_op_t *handle = arg;
    const r2_exec_t *exec = handle->exec;
    const r2_schedule_t *schedule = exec->schedule;
    const uint32_t recv = (uint32_t) (handle - exec->ops), reduce = exec->program->partners[recv];
    const r2_op_t *op = &schedule->ops[reduce];
    const uint32_t copy = r2_fuse_copy_of(schedule, exec->program->partners, reduce);
    const bool into = r2_fuse_same(&schedule->ops[recv].dst, &op->dst);
    const bool aligned = 0 == (uintptr_t) data % _Alignof(max_align_t);
    const char *from = data, *own = NULL;
    char *to = r2_exec_address(exec, &op->dst) + offset;

    if (into || R2_OP_NONE != copy) {
        own = r2_exec_address(exec, into ? &op->src : &schedule->ops[copy].src) + offset;
    }
    handle->fused = true;
    while (bytes > 0) {
        const uint64_t part = r2_min(bytes, (uint64_t) R2_FUSE_PIECE_BYTES);
        const char *in = into ? own : aligned ? from : piece;

        if (into || !aligned) {
            memmove(into ? to : piece, from, part);
        }
        if (!into && NULL != own) {
            memmove(to, own, part);
        }
        exec->args.reduce(exec->args.reduce_arg, in, to, part / exec->args.element_bytes);
        from += part;
        to += part;
        own += NULL != own ? part : 0;
        bytes -= part;
    }
}
