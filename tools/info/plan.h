/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --plan: what r2 would do on a topology, and why.
 */
#ifndef R2_TOOLS_INFO_PLAN_H
#define R2_TOOLS_INFO_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "topology.h"

/** What is asked. */
typedef struct info_plan_ask {
    const char *file; /* borrowed: topology file; NULL: hosts like this one */
    const char *draw; /* borrowed: SVG file to write, or NULL */
    uint32_t hosts;   /* without a file */
    uint64_t bytes;   /* of the vector */
    bool json;
} info_plan_ask_t;

/** Topology of `hosts` hosts with the NICs of this one; those without carrier are dead. */
r2_status_t info_plan_here(uint32_t hosts, topo_t *topo_p, char *error_p, size_t error_bytes);

/** Prints to `out`, errors to stderr. @return exit status: 0, 1 (failed), 2 (bad topology file). */
int info_plan(const info_plan_ask_t *ask, FILE *out);

#endif
