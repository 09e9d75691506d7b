/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What predictions are made from: read from a file, or measured at start.
 */
#include "r2_config.h"

#include "ctx/cost_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_sums.h"
#include "base/util.h"
#include "r2/units.h"

/** One value of the file. */
typedef struct r2_cost_value {
    const char *name;
    size_t offset_bytes; /* in r2_cost_params_t */
} r2_cost_value_t;

static const r2_cost_value_t r2_cost_values[] = {
    {"alpha_ns", offsetof(r2_cost_params_t, alpha_ns)},
    {"rate_ppm", offsetof(r2_cost_params_t, rate_ppm)},
    {"reduce_mbytes_per_s", offsetof(r2_cost_params_t, reduce_mbytes_per_s[R2_MEM_HOST])},
    {"crowded", offsetof(r2_cost_params_t, crowded)},
};

static uint32_t r2_cost_reduce_host(const r2_clock_t *clock)
{
    return (uint32_t) r2_min(r2_host_sums(clock) / 1000000, (uint64_t) UINT32_MAX);
}

/* How the rate of reductions is measured in each kind of memory. */
static uint32_t (*const r2_cost_reduce_in[R2_MEM_RATED_COUNT])(const r2_clock_t *clock) = {
    [R2_MEM_HOST] = r2_cost_reduce_host,
};

/* @return false: not a line of the file's form. */
static bool r2_cost_line(char *line, r2_cost_params_t *cost)
{
    char *save, *name, *number;
    uint64_t value;

    line[strcspn(line, "#\n")] = '\0';
    name = strtok_r(line, " \t", &save);
    number = NULL == name ? NULL : strtok_r(NULL, " \t", &save);
    if (NULL == name) {
        return true;
    }
    if (NULL == number || NULL != strtok_r(NULL, " \t", &save) ||
        R2_OK != r2_unit_whole(number, R2_UNIT_NUMBER, 1, UINT32_MAX, &value)) {
        return false;
    }
    for (size_t i = 0; i < r2_array_count(r2_cost_values); ++i) {
        if (0 == strcmp(name, r2_cost_values[i].name)) {
            *(uint32_t *) (void *) ((char *) cost + r2_cost_values[i].offset_bytes) =
                (uint32_t) value;
            return true;
        }
    }
    return false;
}

static r2_status_t r2_cost_read(const char *name, r2_cost_params_t *cost, char *text_p,
                                size_t text_bytes)
{
    FILE *file = fopen(name, "re");
    r2_status_t status = R2_OK;
    unsigned number = 0;
    char line[256];

    if (NULL == file) {
        snprintf(text_p, text_bytes, "parameter cost_file: %s: %s", name, strerror(errno));
        return R2_ERR_PARAM;
    }
    while (R2_OK == status && NULL != fgets(line, sizeof(line), file)) {
        ++number;
        if (!r2_cost_line(line, cost)) {
            snprintf(text_p, text_bytes,
                     "parameter cost_file: %s line %u: not \"alpha_ns N\", \"rate_ppm N\", "
                     "\"reduce_mbytes_per_s N\" or \"crowded N\"",
                     name, number);
            status = R2_ERR_PARAM;
        }
    }
    fclose(file);
    cost->crowded = 0 != cost->crowded ? R2_CROWDED_ALL : 0;
    return status;
}

r2_status_t r2_cost_find(const char *file, const r2_clock_t *clock, r2_cost_params_t *cost_p,
                         char *text_p, size_t text_bytes)
{
    r2_cost_params_t cost = {0};

    if ('\0' != file[0] && R2_OK != r2_cost_read(file, &cost, text_p, text_bytes)) {
        return R2_ERR_PARAM;
    }
    for (uint32_t m = 0; m < R2_MEM_RATED_COUNT; ++m) {
        if (0 == cost.reduce_mbytes_per_s[m]) {
            cost.reduce_mbytes_per_s[m] = r2_cost_reduce_in[m](clock);
        }
    }
    *cost_p = cost;
    return R2_OK;
}
