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

#include "sim/real.h"
#include "topology.h"

/* Sizes whose choices are listed, bytes. */
#define PLAN_SIZE_FIRST ((uint64_t) 1024)
#define PLAN_SIZE_LAST  ((uint64_t) 1 << 30)
#define PLAN_SIZES_MAX  21u
#define PLAN_TEXT_BYTES 160u

/** What is asked. */
typedef struct info_plan_ask {
    const char *file;      /* borrowed: topology file; NULL: none */
    bool job;              /* on the hosts of the job that this process is one of */
    const char *algorithm; /* borrowed: by name; NULL: the planner chooses */
    const char *draw;      /* borrowed: SVG file to write, or NULL */
    uint32_t hosts;        /* like this one, without file and job; 0: not said */
    uint64_t bytes;        /* of the vector */
    bool json;
} info_plan_ask_t;

/** From this size on the planner chooses this. */
typedef struct plan_range {
    uint64_t from_bytes;
    char choice[PLAN_TEXT_BYTES];
} plan_range_t;

/** All that is shown. */
typedef struct info_plan_result {
    const info_plan_ask_t *ask; /* borrowed */
    topo_t topo;
    real_t real; /* the chosen schedule */
    r2_plan_prediction_t predictions[R2_PLAN_PREDICTIONS_MAX];
    uint32_t prediction_count;
    char choice[PLAN_TEXT_BYTES];
    flow_result_t flow; /* of the chosen schedule */
    r2_status_t flow_status;
    double bound_s;
    double *shares;  /* owned; [host], the planner's */
    uint32_t *order; /* owned; [host], the planner's */
    uint32_t *ranks; /* owned; [host], their number */
    plan_range_t ranges[PLAN_SIZES_MAX];
    size_t range_count;
} info_plan_result_t;

/** Topology of `hosts` hosts with the NICs of this one; those without carrier are dead. */
r2_status_t info_plan_here(uint32_t hosts, topo_t *topo_p, char *error_p, size_t error_bytes);

/** Prints to `out`, errors to stderr. @return exit status: 0, 1 (failed), 2 (bad topology file). */
int info_plan(const info_plan_ask_t *ask, FILE *out);

/* plan_show.c: the two ways to show. @return 0, or -1 if writing failed. */
int info_plan_text(const info_plan_result_t *result, FILE *out);
int info_plan_json(const info_plan_result_t *result, FILE *out);

#endif
