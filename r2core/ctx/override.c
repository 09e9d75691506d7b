/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Algorithms that parameters ask for by name.
 */
#include "r2_config.h"

#include <stddef.h>
#include <stdio.h>

#include "base/util.h"
#include "ctx/state.h"
#include "r2/planner.h"

/** Which parameter a kind of collective obeys. */
static const struct {
    r2_coll_kind_t kind;
    size_t offset; /* of its value in r2_params_t */
    const char *name;
} r2_overrides[] = {
#define R2_OVERRIDE(kind, param)                             \
    {                                                        \
        R2_COLL_##kind, offsetof(r2_params_t, param), #param \
    }
    R2_OVERRIDE(ALLREDUCE, allreduce_algorithm),
    R2_OVERRIDE(ALLGATHER, allgather_algorithm),
    R2_OVERRIDE(ALLGATHERV, allgather_algorithm),
    R2_OVERRIDE(BCAST, bcast_algorithm),
    R2_OVERRIDE(REDUCE, reduce_algorithm),
    R2_OVERRIDE(SCAN, scan_algorithm),
    R2_OVERRIDE(EXSCAN, scan_algorithm),
    R2_OVERRIDE(GATHER, gather_algorithm),
    R2_OVERRIDE(SCATTER, scatter_algorithm),
    R2_OVERRIDE(ALLTOALL, alltoall_algorithm),
    R2_OVERRIDE(REDUCE_SCATTER, reduce_scatter_algorithm),
    R2_OVERRIDE(REDUCE_SCATTER_BLOCK, reduce_scatter_algorithm),
#undef R2_OVERRIDE
};

static const char *r2_override_value(const r2_params_t *params, size_t row)
{
    return *(char *const *) (const void *) ((const char *) params + r2_overrides[row].offset);
}

const char *r2_coll_override(const r2_params_t *params, r2_coll_kind_t kind)
{
    for (size_t i = 0; i < r2_array_count(r2_overrides); ++i) {
        if (kind == r2_overrides[i].kind) {
            return r2_override_value(params, i);
        }
    }
    return NULL;
}

r2_status_t r2_coll_params_check(const r2_params_t *params, char *text_p, size_t text_bytes)
{
    for (size_t i = 0; i < r2_array_count(r2_overrides); ++i) {
        const char *value = r2_override_value(params, i);
        char names[128];

        if (!r2_plan_has(r2_overrides[i].kind, value)) {
            snprintf(text_p, text_bytes, "coll_r2_%s=%s: there is no such algorithm; there are %s",
                     r2_overrides[i].name, value,
                     r2_plan_names(r2_overrides[i].kind, names, sizeof(names)));
            return R2_ERR_PARAM;
        }
    }
    return R2_OK;
}
