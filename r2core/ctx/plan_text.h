/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What plans of the job are made from, as a topology file: what r2_info --plan shows of a running
 * job.
 */
#ifndef R2_CTX_PLAN_TEXT_H
#define R2_CTX_PLAN_TEXT_H

#include "ctx/plan_env.h"
#include "ctx/host_table.h"

/** What is told. All borrowed for the call. */
typedef struct r2_plan_text {
    uint32_t rank;         /* of who tells */
    const char *host_name; /* of who tells */
    const r2_hosts_t *hosts;
    const r2_plan_env_t *env;     /* of the job */
    const r2_cost_params_t *cost; /* the newest: rank 0 knows best */
} r2_plan_text_t;

/** @return owned by the caller; NULL: no memory. */
char *r2_plan_text(const r2_plan_text_t *what);

#endif
