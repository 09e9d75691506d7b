/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The ops of all ranks as one graph: who waits for whom, and both ends of each message.
 */
#ifndef R2_TOOLS_GRAPH_H
#define R2_TOOLS_GRAPH_H

#include "r2/schedule.h"

#define GRAPH_NONE UINT32_MAX

/** An op, numbered over all ranks. */
typedef struct graph_node {
    const r2_op_t *op; /* borrowed */
    uint32_t rank;
    uint32_t waiting;    /* ops it waits for; the user counts down */
    uint32_t first_next; /* into graph_t.next: who waits for it */
    uint32_t next_count;
    uint32_t other_end; /* node of the other end of a message, or GRAPH_NONE */
} graph_node_t;

typedef struct graph {
    graph_node_t *nodes; /* owned */
    uint32_t *next;      /* owned */
    uint32_t *base;      /* owned; [rank], its first node */
    uint32_t node_count, rank_count;
} graph_t;

/** @return R2_OK, R2_ERR_PARAM (a message without its other end) or R2_ERR_NO_MEMORY. */
r2_status_t graph_init(graph_t *graph, const r2_schedule_t *schedules, uint32_t rank_count);
void graph_fini(graph_t *graph);

#endif
