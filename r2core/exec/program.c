/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Programs: one piece of memory, filled once.
 */
#include "r2_config.h"

#include "exec/program.h"

#include "exec/fuse.h"

#include <stdlib.h>
#include <string.h>

/* Turns "op waits for" lists into "op is waited for by" lists. @param first [op_count + 2]. */
static void r2_program_invert(const r2_schedule_t *schedule, uint32_t *first, uint32_t *dependents)
{
    memset(first, 0, (schedule->op_count + 2) * sizeof(*first));
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        for (uint32_t d = 0; d < op->dep_count; ++d) {
            ++first[schedule->deps[op->first_dep + d] + 1];
        }
    }
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        first[i + 1] += first[i];
    }
    for (uint32_t i = schedule->op_count; i-- > 0;) {
        const r2_op_t *op = &schedule->ops[i];

        for (uint32_t d = 0; d < op->dep_count; ++d) {
            dependents[--first[schedule->deps[op->first_dep + d] + 1]] = i;
        }
    }
    /* the filling moved each start down by its group: first[k + 1] is now the start of group k */
    memmove(first, first + 1, schedule->op_count * sizeof(*first));
    first[schedule->op_count] = schedule->dep_count;
}

static uint32_t r2_program_starts(const r2_schedule_t *schedule, uint32_t *starts)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        if (0 == schedule->ops[i].dep_count) {
            starts[count++] = i;
        }
    }
    return count;
}

static uint64_t r2_program_sent_bytes(const r2_schedule_t *schedule, uint32_t *sends_p)
{
    uint64_t bytes = 0;

    *sends_p = 0;
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        if (R2_OP_SEND == schedule->ops[i].kind) {
            bytes += schedule->ops[i].bytes;
            ++*sends_p;
        }
    }
    return bytes;
}

static bool r2_program_awaits_sends(const r2_schedule_t *schedule)
{
    for (uint32_t d = 0; d < schedule->dep_count; ++d) {
        if (R2_OP_SEND == schedule->ops[schedule->deps[d]].kind) {
            return true;
        }
    }
    return false;
}

r2_status_t r2_program_create(const r2_schedule_t *schedule, r2_program_t **program_p)
{
    const size_t ops = schedule->op_count, deps = schedule->dep_count;
    const size_t bytes =
        sizeof(r2_program_t) + ops * sizeof(r2_op_t) + (2 * deps + 3 * ops + 2) * sizeof(uint32_t);
    r2_program_t *program = malloc(bytes);
    r2_op_t *own_ops;
    uint32_t *own_deps, *dependents, *first, *starts, *partners;

    if (NULL == program) {
        return R2_ERR_NO_MEMORY;
    }
    own_ops = (r2_op_t *) (program + 1);
    own_deps = (uint32_t *) (own_ops + ops);
    dependents = own_deps + deps;
    first = dependents + deps;
    starts = first + ops + 2;
    partners = starts + ops;
    if (ops > 0) {
        memcpy(own_ops, schedule->ops, ops * sizeof(*own_ops));
    }
    if (deps > 0) {
        memcpy(own_deps, schedule->deps, deps * sizeof(*own_deps));
    }
    r2_program_invert(schedule, first, dependents);
    *program = (r2_program_t){.schedule = *schedule,
                              .dependents = dependents,
                              .first_dependent = first,
                              .starts = starts,
                              .start_count = r2_program_starts(schedule, starts),
                              .users = 1,
                              .awaits_sends = r2_program_awaits_sends(schedule),
                              .bytes = bytes};
    program->partners = r2_fuse_find(schedule, dependents, first, partners) ? partners : NULL;
    program->sent_bytes = r2_program_sent_bytes(schedule, &program->sends);
    program->schedule.ops = own_ops;
    program->schedule.op_room = schedule->op_count;
    program->schedule.deps = own_deps;
    program->schedule.dep_room = schedule->dep_count;
    *program_p = program;
    return R2_OK;
}

bool r2_program_passes_on(const r2_program_t *program, uint32_t op)
{
    const r2_schedule_t *schedule = &program->schedule;
    const r2_op_t *send = &schedule->ops[op], *recv;

    if (R2_OP_SEND != send->kind || 1 != send->dep_count || send->bytes <= schedule->chunk_bytes) {
        return false;
    }
    recv = &schedule->ops[schedule->deps[send->first_dep]];
    return R2_OP_RECV == recv->kind && recv->bytes == send->bytes &&
           recv->dst.buf == send->src.buf && recv->dst.offset_bytes == send->src.offset_bytes;
}

const r2_touch_t *r2_program_touch(r2_program_t *program, uint64_t gpu_bytes)
{
    r2_touch_t **touch_p = &program->touch;

    while (NULL != *touch_p && gpu_bytes != (*touch_p)->gpu_bytes) {
        touch_p = &(*touch_p)->next;
    }
    if (NULL == *touch_p) {
        *touch_p = r2_touch_create(&program->schedule, gpu_bytes);
        program->bytes += NULL == *touch_p ? 0 : (*touch_p)->bytes;
    }
    return *touch_p;
}

r2_program_t *r2_program_get(r2_program_t *program)
{
    ++program->users;
    return program;
}

void r2_program_put(r2_program_t *program)
{
    if (NULL != program && 0 == --program->users) {
        while (NULL != program->touch) {
            r2_touch_t *touch = program->touch;

            program->touch = touch->next;
            free(touch);
        }
        free(program);
    }
}
