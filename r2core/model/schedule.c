/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Schedules: growing arrays of ops and of the dependencies between them.
 */
#include "r2_config.h"

#include "r2/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define R2_FNV_OFFSET 2166136261u
#define R2_FNV_PRIME  16777619u

enum { R2_OPS_FIRST = 16, R2_DEPS_FIRST = 32 };

void r2_schedule_init(r2_schedule_t *schedule)
{
    memset(schedule, 0, sizeof(*schedule));
    schedule->digest = R2_FNV_OFFSET;
    schedule->status = R2_OK;
    schedule->algorithm = "";
}

void r2_schedule_fini(r2_schedule_t *schedule)
{
    free(schedule->ops);
    free(schedule->deps);
    r2_schedule_init(schedule);
}

/** Makes room for `need` items in *array. @return R2_OK or R2_ERR_NO_MEMORY; *array stays valid. */
static r2_status_t r2_schedule_grow(void **array, uint32_t *room, uint32_t need, uint32_t first,
                                    size_t item_bytes)
{
    uint32_t grown = 0 == *room ? first : *room;
    void *moved;

    if (need <= *room) {
        return R2_OK;
    }
    while (grown < need) {
        if (grown > UINT32_MAX / 2) {
            return R2_ERR_NO_MEMORY;
        }
        grown *= 2;
    }
    moved = realloc(*array, (size_t) grown * item_bytes);
    if (NULL == moved) {
        return R2_ERR_NO_MEMORY;
    }
    *array = moved;
    *room = grown;
    return R2_OK;
}

uint32_t r2_schedule_add(r2_schedule_t *schedule, const r2_op_t *op, const uint32_t *deps,
                         uint32_t dep_count)
{
    void *ops = schedule->ops;
    void *all_deps = schedule->deps;
    r2_op_t *added;
    r2_status_t status;

    if (R2_OK != schedule->status) {
        return R2_OP_NONE;
    }
    status = r2_schedule_grow(&ops, &schedule->op_room, schedule->op_count + 1, R2_OPS_FIRST,
                              sizeof(*schedule->ops));
    schedule->ops = ops;
    if (R2_OK == status) {
        status = r2_schedule_grow(&all_deps, &schedule->dep_room, schedule->dep_count + dep_count,
                                  R2_DEPS_FIRST, sizeof(*schedule->deps));
        schedule->deps = all_deps;
    }
    if (R2_OK != status) {
        schedule->status = status;
        return R2_OP_NONE;
    }
    added = &schedule->ops[schedule->op_count];
    *added = *op;
    added->first_dep = schedule->dep_count;
    added->dep_count = 0;
    for (uint32_t i = 0; i < dep_count; ++i) {
        if (R2_OP_NONE == deps[i]) {
            continue;
        }
        r2_assert(deps[i] < schedule->op_count);
        schedule->deps[schedule->dep_count++] = deps[i];
        ++added->dep_count;
    }
    return schedule->op_count++;
}

uint32_t r2_digest_fold(uint32_t digest, uint64_t value)
{
    for (int i = 0; i < 8; ++i) {
        digest = (digest ^ (uint32_t) (value & 0xff)) * R2_FNV_PRIME;
        value >>= 8;
    }
    return digest;
}
