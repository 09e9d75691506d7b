/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Flow simulation of a direct exchange between classes of equal hosts: for many hosts.
 */
#ifndef R2_TOOLS_STREAMS_H
#define R2_TOOLS_STREAMS_H

#include "topology.h"

/** Hosts with equal NICs and no cut are one class. */
typedef struct streams {
    const topo_t *topo; /* borrowed: outlives the streams */
    uint32_t *class_of; /* owned; [host] */
    uint32_t *first;    /* owned; [class], one of its hosts */
    uint32_t *hosts;    /* owned; [class], how many */
    uint32_t class_count;
} streams_t;

/** @return R2_OK, R2_ERR_PARAM (more cuts than the planner knows), R2_ERR_NO_MEMORY. */
r2_status_t streams_init(streams_t *streams, const topo_t *topo);
void streams_fini(streams_t *streams);

/**
 * Time of a pipelined exchange in which all pairs of hosts send at once: every pair as one flow
 * over each rail that joins it, max-min fair, until it has sent its bytes.
 * @param bytes [class * class_count + class] from a host of the first to a host of the second.
 * @param seconds_p INFINITY if a pair with bytes to send shares no rail.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t streams_run(const streams_t *streams, const double *bytes, double *seconds_p);

#endif
