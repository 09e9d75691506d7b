/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gauge: latency and rate of the rails as the job's own traffic shows them to rank 0, for predictions.
 */
#ifndef R2_CTX_GAUGE_H
#define R2_CTX_GAUGE_H

#include <stdbool.h>

#include "ctx/basis.h"
#include "r2/nic.h"

struct r2_ctx;
struct r2_coll;

/** One rail of rank 0's host. */
typedef struct r2_gauge_rail {
    uint64_t from_ns, from_bytes; /* where the window under way began; 0: none is */
    uint64_t before_bytes_per_s;  /* rate of the window before */
    uint64_t best_bytes_per_s;    /* most that two windows in a row have reached */
    uint32_t windows;
} r2_gauge_rail_t;

/**
 * Rank 0 measures and makes versions, everybody keeps the newest one that a merge of maps brought (agree.c):
 * so a version has one content, and no plan is made from what not all ranks hold. Engine lock.
 */
typedef struct r2_gauge {
    r2_gauge_rail_t rails[R2_RAILS_MAX];
    uint32_t rate_changes;  /* versions with another rate */
    uint64_t round_trip_ns; /* the least so far, over any rail; 0: none yet */
    uint64_t steps_ns;      /* of the short calls of the window under way, sums */
    uint32_t steps, calls;
    uint32_t windows;       /* of short calls, complete */
    uint64_t least_step_ns; /* mean of a window; 0: none yet */
    uint64_t step_ns;       /* the same, as it was after 1, 2, 4, ... windows: what is told */
    uint64_t looked_ns;     /* when a call has last looked */
    r2_cost_params_t cost;
    uint32_t version; /* 0: what rank 0 published at start is all there is */
} r2_gauge_t;

/** A lane over this rail of ours has been loaded for some time: as often as links tell so. Any rank. */
void r2_gauge_loaded(struct r2_ctx *ctx, uint32_t rail);
/** A call is complete: short ones show what a step takes, and any may be the time to look. Any rank. */
void r2_gauge_called(struct r2_ctx *ctx, const struct r2_coll *coll);
/** Makes a new version if what was seen differs notably from the newest. Any rank; does nothing but on rank 0. */
void r2_gauge_look(struct r2_ctx *ctx);
/** A merge brought this version. */
void r2_gauge_heard(struct r2_ctx *ctx, uint32_t version, const r2_cost_params_t *cost);
/** True if predictions matter for these plans and we know much better: worth a merge. */
bool r2_gauge_wanted(const struct r2_ctx *ctx, const r2_basis_t *basis);

#endif
