/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Results of r2_sim as table and JSON.
 */
#ifndef R2_TOOLS_SIM_REPORT_H
#define R2_TOOLS_SIM_REPORT_H

#include <stdio.h>

#include "sim/draws.h"
#include "sim/flow.h"

/** One schedule, simulated row by row. */
typedef struct report_schedule {
    const topo_t *topo;    /* borrowed */
    const char *algorithm; /* borrowed: static */
    double bytes, bound_s;
    flow_result_t result;
} report_schedule_t;

/** All @return 0, or -1 if writing failed. */
int report_text(const draws_case_t *ask, const draws_result_t *result, FILE *out);
int report_json(const draws_case_t *ask, const draws_result_t *result, FILE *out);
int report_schedule(const report_schedule_t *report, bool json, FILE *out);

#endif
