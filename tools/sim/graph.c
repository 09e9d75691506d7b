/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The ops of all ranks as one graph.
 */
#include "r2_config.h"

#include "sim/graph.h"

#include <stdlib.h>

/** One end of a message. */
typedef struct end {
    uint32_t from, to, tag, node;
    r2_op_kind_t kind;
} end_t;

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/** By message; its send before its receive. */
static int compare_ends(const void *a, const void *b)
{
    const end_t *l = a, *r = b;
    int order = compare_u32(l->from, r->from);

    order = 0 != order ? order : compare_u32(l->to, r->to);
    order = 0 != order ? order : compare_u32(l->tag, r->tag);
    return 0 != order ? order : compare_u32((uint32_t) l->kind, (uint32_t) r->kind);
}

static r2_status_t join_ends(graph_t *graph, const end_t *ends, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 2) {
        const end_t *send = &ends[i], *recv = &ends[i + 1];

        if (i + 1 == count || send->from != recv->from || send->to != recv->to ||
            send->tag != recv->tag || R2_OP_SEND != send->kind || R2_OP_RECV != recv->kind ||
            graph->nodes[send->node].op->bytes != graph->nodes[recv->node].op->bytes) {
            return R2_ERR_PARAM;
        }
        graph->nodes[send->node].other_end = recv->node;
        graph->nodes[recv->node].other_end = send->node;
    }
    return R2_OK;
}

static r2_status_t find_ends(graph_t *graph)
{
    end_t *ends = malloc(((size_t) graph->node_count + 1) * sizeof(*ends));
    uint32_t count = 0;
    r2_status_t status = R2_OK;

    if (NULL == ends) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t n = 0; n < graph->node_count && R2_OK == status; ++n) {
        const graph_node_t *node = &graph->nodes[n];
        const r2_op_t *op = node->op;
        const bool sends = R2_OP_SEND == op->kind;

        if (!sends && R2_OP_RECV != op->kind) {
            continue;
        }
        if (op->peer < 0 || (uint32_t) op->peer >= graph->rank_count ||
            (uint32_t) op->peer == node->rank) {
            status = R2_ERR_PARAM;
        }
        ends[count++] = (end_t){.from = sends ? node->rank : (uint32_t) op->peer,
                                .to = sends ? (uint32_t) op->peer : node->rank,
                                .tag = op->tag,
                                .node = n,
                                .kind = op->kind};
    }
    if (R2_OK == status) {
        qsort(ends, count, sizeof(*ends), compare_ends);
        status = join_ends(graph, ends, count);
    }
    free(ends);
    return status;
}

static r2_status_t graph_alloc(graph_t *graph, const r2_schedule_t *schedules)
{
    uint32_t nodes = 0, deps = 0;

    graph->base = malloc(((size_t) graph->rank_count + 1) * sizeof(*graph->base));
    if (NULL == graph->base) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < graph->rank_count; ++r) {
        graph->base[r] = nodes;
        nodes += schedules[r].op_count;
        deps += schedules[r].dep_count;
    }
    graph->node_count = nodes;
    graph->nodes = calloc((size_t) nodes + 1, sizeof(*graph->nodes));
    graph->next = calloc((size_t) deps + 1, sizeof(*graph->next));
    return NULL == graph->nodes || NULL == graph->next ? R2_ERR_NO_MEMORY : R2_OK;
}

/** Node that dependency `d` of a node names. */
static graph_node_t *dependency(graph_t *graph, const r2_schedule_t *schedule, uint32_t n,
                                uint32_t d)
{
    const graph_node_t *node = &graph->nodes[n];

    return &graph->nodes[graph->base[node->rank] + schedule->deps[node->op->first_dep + d]];
}

static void link_nodes(graph_t *graph, const r2_schedule_t *schedules)
{
    uint32_t at = 0;

    for (uint32_t n = 0; n < graph->node_count; ++n) {
        for (uint32_t d = 0; d < graph->nodes[n].op->dep_count; ++d) {
            dependency(graph, &schedules[graph->nodes[n].rank], n, d)->next_count++;
        }
    }
    for (uint32_t n = 0; n < graph->node_count; ++n) {
        graph->nodes[n].first_next = at;
        at += graph->nodes[n].next_count;
        graph->nodes[n].next_count = 0;
    }
    for (uint32_t n = 0; n < graph->node_count; ++n) {
        for (uint32_t d = 0; d < graph->nodes[n].op->dep_count; ++d) {
            graph_node_t *dep = dependency(graph, &schedules[graph->nodes[n].rank], n, d);

            graph->next[dep->first_next + dep->next_count++] = n;
        }
    }
}

r2_status_t graph_init(graph_t *graph, const r2_schedule_t *schedules, uint32_t rank_count)
{
    r2_status_t status;
    uint32_t n = 0;

    *graph = (graph_t){.rank_count = rank_count};
    status = graph_alloc(graph, schedules);
    if (R2_OK == status) {
        for (uint32_t r = 0; r < rank_count; ++r) {
            for (uint32_t i = 0; i < schedules[r].op_count; ++i) {
                graph->nodes[n++] = (graph_node_t){.op = &schedules[r].ops[i],
                                                   .rank = r,
                                                   .waiting = schedules[r].ops[i].dep_count,
                                                   .other_end = GRAPH_NONE};
            }
        }
        link_nodes(graph, schedules);
        status = find_ends(graph);
    }
    if (R2_OK != status) {
        graph_fini(graph);
    }
    return status;
}

void graph_fini(graph_t *graph)
{
    free(graph->nodes);
    free(graph->next);
    free(graph->base);
    *graph = (graph_t){.rank_count = 0};
}
