/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Max-min fair rates by progressive filling.
 */
#include "r2_config.h"

#include "sim/fair.h"

#include <math.h>
#include <stdlib.h>

#include "r2/macros.h"

/* Ports whose shares differ by less than rounding are full at the same time. */
#define FAIR_TIE (1 + 1e-9)

r2_status_t fair_init(fair_t *fair, const double *capacity, uint32_t port_count)
{
    *fair = (fair_t){.port_count = port_count, .capacity = capacity};
    fair->left = malloc(port_count * sizeof(*fair->left));
    fair->load = malloc(port_count * sizeof(*fair->load));
    if (NULL == fair->left || NULL == fair->load) {
        fair_fini(fair);
        return R2_ERR_NO_MEMORY;
    }
    return R2_OK;
}

void fair_fini(fair_t *fair)
{
    free(fair->left);
    free(fair->load);
    free(fair->open);
    *fair = (fair_t){.port_count = 0};
}

static r2_status_t fair_start(fair_t *fair, const fair_flow_t *flows, size_t count)
{
    if (count > fair->open_room) {
        uint32_t *grown = realloc(fair->open, count * sizeof(*grown));

        if (NULL == grown) {
            return R2_ERR_NO_MEMORY;
        }
        fair->open = grown;
        fair->open_room = count;
    }
    for (uint32_t p = 0; p < fair->port_count; ++p) {
        fair->left[p] = fair->capacity[p];
        fair->load[p] = 0;
    }
    for (size_t i = 0; i < count; ++i) {
        fair->open[i] = (uint32_t) i;
        fair->load[flows[i].out] += flows[i].out_count;
        fair->load[flows[i].in] += flows[i].in_count;
    }
    return R2_OK;
}

static double fair_share(const fair_t *fair, uint32_t port)
{
    return fair->left[port] / fair->load[port];
}

/** The rate at which the first port is full. */
static double fair_level(const fair_t *fair, const fair_flow_t *flows, size_t open_count)
{
    double level = INFINITY;

    for (size_t i = 0; i < open_count; ++i) {
        const fair_flow_t *flow = &flows[fair->open[i]];

        level = r2_min(level, fair_share(fair, flow->out));
        level = r2_min(level, fair_share(fair, flow->in));
    }
    return r2_max(level, 0.0);
}

r2_status_t fair_solve(fair_t *fair, fair_flow_t *flows, size_t count)
{
    r2_status_t status = fair_start(fair, flows, count);
    size_t open_count = count;

    if (R2_OK != status) {
        return status;
    }
    while (open_count > 0) {
        const double level = fair_level(fair, flows, open_count);
        size_t kept = 0, fixed = open_count;

        /* those through a full port go behind the others */
        while (kept < fixed) {
            const uint32_t i = fair->open[kept];
            const bool full = fair_share(fair, flows[i].out) <= level * FAIR_TIE ||
                              fair_share(fair, flows[i].in) <= level * FAIR_TIE;

            if (full) {
                fair->open[kept] = fair->open[--fixed];
                fair->open[fixed] = i;
            } else {
                ++kept;
            }
        }
        for (size_t k = fixed; k < open_count; ++k) {
            fair_flow_t *flow = &flows[fair->open[k]];

            flow->rate = level;
            fair->left[flow->out] -= level * flow->out_count;
            fair->left[flow->in] -= level * flow->in_count;
            fair->load[flow->out] -= flow->out_count;
            fair->load[flow->in] -= flow->in_count;
        }
        open_count = fixed;
    }
    return R2_OK;
}
