/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The text of a choice.
 */
#include "r2_config.h"

#include "r2/planner.h"

#include <stdio.h>
#include <string.h>

#include "plan/forecast.h"

/* Up to this many hosts each share is written. */
#define R2_DESCRIBE_HOSTS 8u

/** Number of hosts from `first` on with the same weight. */
static uint32_t r2_run_length(const r2_shares_t *shares, uint32_t first)
{
    uint32_t end = first + 1;

    while (shares->host_count > R2_DESCRIBE_HOSTS && end < shares->host_count &&
           shares->weight[end] == shares->weight[first]) {
        ++end;
    }
    return end - first;
}

static void r2_describe_shares(const r2_shares_t *shares, char *text, size_t room)
{
    const uint32_t scale = shares->host_count > R2_DESCRIBE_HOSTS ? 10000 : 100;
    const int digits = shares->host_count > R2_DESCRIBE_HOSTS ? 4 : 2;
    unsigned __int128 sum = 0;
    size_t used = strlen(text);

    for (uint32_t h = 0; h < shares->host_count; ++h) {
        sum += shares->weight[h];
    }
    for (uint32_t h = 0; sum > 0 && used < room && h < shares->host_count;) {
        const uint32_t run = r2_run_length(shares, h);
        const unsigned share =
            (unsigned) (((unsigned __int128) shares->weight[h] * scale + sum / 2) / sum);
        int made = snprintf(text + used, room - used, "%c%u.%0*u", 0 == h ? '(' : ',',
                            share / scale, digits, share % scale);

        used += (size_t) made;
        if (1 < run && used < room) {
            used += (size_t) snprintf(text + used, room - used, "x%u", run);
        }
        h += run;
    }
    if (used + 1 < room) {
        memcpy(text + used, ")", 2);
    }
}

r2_status_t r2_plan_describe(const r2_plan_input_t *input, char *text, size_t room)
{
    const char *name = r2_plan_choose(input);
    r2_classes_t classes;
    r2_shares_t shares;
    r2_status_t status;

    if (NULL == name) {
        return R2_ERR_PARAM;
    }
    snprintf(text, room, "%s", name);
    if (NULL == input->topology || 0 != strcmp(name, r2_allreduce_weighted.name)) {
        return R2_OK;
    }
    status = r2_classes_init(&classes, input->topology, R2_MEMBERS_RANKS);
    if (R2_OK != status) {
        return status;
    }
    status = r2_shares_solve(&shares, &classes);
    if (R2_OK == status) {
        r2_describe_shares(&shares, text, room);
        r2_shares_fini(&shares);
    }
    r2_classes_fini(&classes);
    return status;
}
