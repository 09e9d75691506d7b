/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A schedule as a picture: what every rail of every host sends and takes in over time.
 */
#ifndef R2_TOOLS_DRAW_H
#define R2_TOOLS_DRAW_H

#include <stdio.h>

#include "sim/real.h"

#define DRAW_HOSTS_MAX 128

/**
 * Simulates the schedules and writes JSON for r2_timeline: what each rail of a host sends and takes
 * in over time (flat network: all rails as one). Of many hosts those that have less than others are
 * in it, and some of the others.
 * @return R2_OK, R2_ERR_UNSUPPORTED (more than DRAW_HOSTS_MAX hosts), R2_ERR_SYSTEM (cannot write),
 * or as flow_run().
 */
r2_status_t draw_schedule(const real_t *real, const topo_t *topo, FILE *out);

#endif
