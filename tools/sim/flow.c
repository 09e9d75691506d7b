/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Flow simulation of schedules: ops, links with queues, and rates that change when a link falls
 * idle or gets busy.
 */
#include "r2_config.h"

#include "sim/flow.h"

#include <stdlib.h>

#include "r2/macros.h"
#include "sim/events.h"
#include "sim/fair.h"
#include "sim/graph.h"

enum { FLOW_SENT, FLOW_DELIVERED, FLOW_LOCAL, FLOW_RATES };

/** From one rank to another. */
typedef struct flow_link {
    uint32_t head, tail; /* send nodes that wait, by order; GRAPH_NONE: none */
    uint32_t current;    /* send node on the wire, or GRAPH_NONE */
    uint32_t stamp;      /* of the event that ends it */
    uint32_t first_flow; /* into flow_t.flows, while it has a rate */
    uint32_t flow_count;
    double left;    /* bytes of the current message, at since_s */
    double rate;    /* bytes/s over all rails */
    double since_s; /* when `left` was right */
} flow_link_t;

typedef struct flow {
    const flow_case_t *ask;       /* borrowed */
    uint32_t ranks, hosts, rails; /* rails: one on a flat network */
    graph_t graph;
    flow_link_t *links;   /* owned; [from * ranks + to] */
    uint32_t *queue_next; /* owned; [node], next in the queue of a link */
    bool *started;        /* owned; [node] */
    uint32_t *ready;      /* owned; stack of nodes to start */
    uint32_t ready_count, done_count;
    double *local_until; /* owned; [rank], end of reducing and copying */
    double *capacity;    /* owned; ports: of rails, then of the ranks' memory */
    double *sent;        /* owned; [host], bytes over its rails */
    fair_flow_t *flows;  /* owned; of the busy links */
    uint32_t *rail_of;   /* owned; [flow] */
    size_t flow_count;
    fair_t fair;
    events_t events;
    bool rates_due; /* an event FLOW_RATES is in the queue */
    double rates_at_s, now_s;
    r2_status_t status; /* first error */
    flow_result_t result;
} flow_t;

static void flow_note(flow_t *flow, r2_status_t status)
{
    flow->status = R2_OK == flow->status ? status : flow->status;
}

static void flow_add_event(flow_t *flow, double at_s, uint32_t kind, uint32_t what, uint32_t stamp)
{
    flow_note(flow,
              events_add(&flow->events,
                         (event_t){.at_s = at_s, .kind = kind, .what = what, .stamp = stamp}));
}

/* ---- links */

static uint32_t rail_port(const flow_t *flow, uint32_t direction, uint32_t host, uint32_t rail)
{
    return (direction * flow->hosts + host) * flow->rails + rail;
}

/** One for both directions: it is the rank that copies. */
static uint32_t memory_port(const flow_t *flow, uint32_t rank)
{
    return rail_port(flow, 2, 0, 0) + rank;
}

/** Hosts of the two ends of a link. */
static uint32_t link_from(const flow_t *flow, uint32_t link_idx)
{
    return flow->ask->topo->host_of[link_idx / flow->ranks];
}

static uint32_t link_to(const flow_t *flow, uint32_t link_idx)
{
    return flow->ask->topo->host_of[link_idx % flow->ranks];
}

/** Rates must be made anew. */
static void flow_ask_rates(flow_t *flow)
{
    if (!flow->rates_due) {
        flow->rates_due = true;
        flow_add_event(flow, r2_max(flow->now_s, flow->rates_at_s + flow->ask->quantum_s),
                       FLOW_RATES, 0, 0);
    }
}

/** Tells what a link between hosts did since its rate changed. */
static void flow_tell(const flow_t *flow, uint32_t link_idx, double since_s)
{
    const flow_link_t *link = &flow->links[link_idx];
    const uint32_t from = link_from(flow, link_idx), to = link_to(flow, link_idx);

    for (uint32_t f = 0; NULL != flow->ask->piece_fn && from != to && f < link->flow_count; ++f) {
        flow->ask->piece_fn(flow->ask->piece_arg, from, to, flow->rail_of[link->first_flow + f],
                            since_s, flow->now_s, flow->flows[link->first_flow + f].rate);
    }
}

/** Takes the next message of the queue, if there is one. */
static void link_next(flow_t *flow, uint32_t link_idx)
{
    flow_link_t *link = &flow->links[link_idx];

    if (GRAPH_NONE == link->head) {
        link->current = GRAPH_NONE;
        link->rate = 0;
        link->flow_count = 0;
        flow_ask_rates(flow);
        return;
    }
    link->current = link->head;
    link->head = flow->queue_next[link->current];
    link->left = (double) flow->graph.nodes[link->current].op->bytes;
    link->since_s = flow->now_s;
    ++link->stamp;
    if (link->rate > 0) {
        flow_add_event(flow, flow->now_s + link->left / link->rate, FLOW_SENT, link_idx,
                       link->stamp);
    } else {
        flow_ask_rates(flow);
    }
}

/** Both ends of a message are ready. */
static void link_queue(flow_t *flow, uint32_t send)
{
    const graph_node_t *node = &flow->graph.nodes[send];
    const uint32_t link_idx = node->rank * flow->ranks + (uint32_t) node->op->peer;
    flow_link_t *link = &flow->links[link_idx];
    uint32_t *next = &link->head;

    if (GRAPH_NONE != link->head && flow->graph.nodes[link->tail].op->order <= node->op->order) {
        next = &flow->queue_next[link->tail];
    }
    while (GRAPH_NONE != *next && flow->graph.nodes[*next].op->order <= node->op->order) {
        next = &flow->queue_next[*next];
    }
    flow->queue_next[send] = *next;
    link->tail = GRAPH_NONE == *next ? send : link->tail;
    *next = send;
    if (GRAPH_NONE == link->current) {
        link_next(flow, link_idx);
    }
}

static void add_flow(flow_t *flow, uint32_t out, uint32_t in, uint32_t rail)
{
    flow->rail_of[flow->flow_count] = rail;
    flow->flows[flow->flow_count++] =
        (fair_flow_t){.out = out, .in = in, .out_count = 1, .in_count = 1};
}

static void add_rail_flows(flow_t *flow, uint32_t from, uint32_t to)
{
    const topo_t *topo = flow->ask->topo;

    for (uint32_t rail = 0; rail < flow->rails; ++rail) {
        const uint32_t out = rail_port(flow, 0, from, rail), in = rail_port(flow, 1, to, rail);

        if (flow->capacity[out] > 0 && flow->capacity[in] > 0 &&
            (topo->flat || !topo_is_cut(topo, from, to, rail))) {
            add_flow(flow, out, in, rail);
        }
    }
}

static void add_link_flows(flow_t *flow, uint32_t link_idx)
{
    const uint32_t from = link_from(flow, link_idx), to = link_to(flow, link_idx);
    flow_link_t *link = &flow->links[link_idx];

    link->first_flow = (uint32_t) flow->flow_count;
    if (from == to) {
        add_flow(flow, memory_port(flow, link_idx / flow->ranks),
                 memory_port(flow, link_idx % flow->ranks), 0);
    } else {
        add_rail_flows(flow, from, to);
    }
    link->flow_count = (uint32_t) flow->flow_count - link->first_flow;
    if (0 == link->flow_count) {
        flow_note(flow, R2_ERR_NO_PATH);
    }
}

/** New rates for all busy links. */
static void flow_rates(flow_t *flow)
{
    const uint32_t links = flow->ranks * flow->ranks;

    flow->rates_due = false;
    for (uint32_t l = 0; l < links; ++l) {
        flow_link_t *link = &flow->links[l];

        if (link->rate > 0) {
            flow_tell(flow, l, r2_max(flow->rates_at_s, 0.0));
            link->left = r2_max(link->left - link->rate * (flow->now_s - link->since_s), 0.0);
        }
        link->since_s = flow->now_s;
    }
    flow->rates_at_s = flow->now_s;
    flow->flow_count = 0;
    for (uint32_t l = 0; l < links; ++l) {
        if (GRAPH_NONE != flow->links[l].current) {
            add_link_flows(flow, l);
        }
    }
    flow_note(flow, fair_solve(&flow->fair, flow->flows, flow->flow_count));
    for (uint32_t l = 0; l < links && R2_OK == flow->status; ++l) {
        flow_link_t *link = &flow->links[l];

        if (GRAPH_NONE == link->current) {
            continue;
        }
        link->rate = 0;
        for (uint32_t f = 0; f < link->flow_count; ++f) {
            link->rate += flow->flows[link->first_flow + f].rate;
        }
        flow_add_event(flow, flow->now_s + link->left / link->rate, FLOW_SENT, l, ++link->stamp);
    }
}

/* ---- ops */

static void op_complete(flow_t *flow, uint32_t n)
{
    const graph_node_t *node = &flow->graph.nodes[n];

    ++flow->done_count;
    flow->result.seconds = flow->now_s;
    for (uint32_t i = 0; i < node->next_count; ++i) {
        const uint32_t next = flow->graph.next[node->first_next + i];

        if (0 == --flow->graph.nodes[next].waiting) {
            flow->ready[flow->ready_count++] = next;
        }
    }
}

static void op_start(flow_t *flow, uint32_t n)
{
    const graph_node_t *node = &flow->graph.nodes[n];
    double *until_s = &flow->local_until[node->rank];

    flow->started[n] = true;
    if (GRAPH_NONE != node->other_end) {
        if (flow->started[node->other_end]) {
            link_queue(flow, R2_OP_SEND == node->op->kind ? n : node->other_end);
        }
    } else if (!(flow->ask->local_rate > 0)) {
        op_complete(flow, n);
    } else {
        *until_s = r2_max(*until_s, flow->now_s) + (double) node->op->bytes / flow->ask->local_rate;
        flow_add_event(flow, *until_s, FLOW_LOCAL, n, 0);
    }
}

static void message_delivered(flow_t *flow, uint32_t send)
{
    op_complete(flow, flow->graph.nodes[send].other_end);
    op_complete(flow, send);
}

/** The last byte of a message has left. */
static void message_sent(flow_t *flow, uint32_t link_idx)
{
    flow_link_t *link = &flow->links[link_idx];
    const uint32_t send = link->current, from = link_from(flow, link_idx);
    const double bytes = (double) flow->graph.nodes[send].op->bytes;

    ++flow->result.messages;
    if (from == link_to(flow, link_idx)) {
        flow->result.local_bytes += bytes;
    } else {
        flow->result.bytes += bytes;
        flow->sent[from] += bytes;
    }
    if (flow->ask->topo->latency_s > 0) {
        flow_add_event(flow, flow->now_s + flow->ask->topo->latency_s, FLOW_DELIVERED, send, 0);
    } else {
        message_delivered(flow, send);
    }
    if (GRAPH_NONE == link->head) {
        flow_tell(flow, link_idx, r2_max(flow->rates_at_s, 0.0));
    }
    link_next(flow, link_idx);
}

static void flow_event(flow_t *flow, const event_t *event)
{
    flow->now_s = event->at_s;
    switch (event->kind) {
    case FLOW_SENT:
        if (flow->links[event->what].stamp == event->stamp) {
            message_sent(flow, event->what);
        }
        break;
    case FLOW_DELIVERED:
        message_delivered(flow, event->what);
        break;
    case FLOW_LOCAL:
        op_complete(flow, event->what);
        break;
    default:
        flow_rates(flow);
        break;
    }
}

/* ---- the whole */

static r2_status_t flow_alloc(flow_t *flow)
{
    const size_t nodes = (size_t) flow->graph.node_count + 1;
    const size_t links = (size_t) flow->ranks * flow->ranks;
    const uint32_t ports = memory_port(flow, flow->ranks);

    flow->links = calloc(links, sizeof(*flow->links));
    flow->queue_next = calloc(nodes, sizeof(*flow->queue_next));
    flow->started = calloc(nodes, sizeof(*flow->started));
    flow->ready = calloc(nodes, sizeof(*flow->ready));
    flow->local_until = calloc(flow->ranks, sizeof(*flow->local_until));
    flow->capacity = calloc(ports, sizeof(*flow->capacity));
    flow->sent = calloc(flow->hosts, sizeof(*flow->sent));
    flow->flows = calloc(links * flow->rails, sizeof(*flow->flows));
    flow->rail_of = calloc(links * flow->rails, sizeof(*flow->rail_of));
    if (NULL == flow->links || NULL == flow->queue_next || NULL == flow->started ||
        NULL == flow->ready || NULL == flow->local_until || NULL == flow->capacity ||
        NULL == flow->sent || NULL == flow->flows || NULL == flow->rail_of) {
        return R2_ERR_NO_MEMORY;
    }
    return fair_init(&flow->fair, flow->capacity, ports);
}

static void flow_start(flow_t *flow)
{
    const topo_t *topo = flow->ask->topo;

    for (uint32_t h = 0; h < flow->hosts; ++h) {
        for (uint32_t rail = 0; rail < flow->rails; ++rail) {
            const double rate = topo->flat ? topo_host(topo, h) : topo_rail(topo, h, rail);

            flow->capacity[rail_port(flow, 0, h, rail)] = rate;
            flow->capacity[rail_port(flow, 1, h, rail)] = rate;
        }
    }
    for (uint32_t r = 0; r < flow->ranks; ++r) {
        flow->capacity[memory_port(flow, r)] = flow->ask->memory_rate;
    }
    for (size_t l = 0; l < (size_t) flow->ranks * flow->ranks; ++l) {
        flow->links[l] = (flow_link_t){.head = GRAPH_NONE, .current = GRAPH_NONE};
    }
    flow->rates_at_s = -flow->ask->quantum_s;
    for (uint32_t n = flow->graph.node_count; n-- > 0;) {
        if (0 == flow->graph.nodes[n].waiting) {
            flow->ready[flow->ready_count++] = n;
        }
    }
}

static void flow_fini(flow_t *flow)
{
    graph_fini(&flow->graph);
    free(flow->links);
    free(flow->queue_next);
    free(flow->started);
    free(flow->ready);
    free(flow->local_until);
    free(flow->capacity);
    free(flow->sent);
    free(flow->flows);
    free(flow->rail_of);
    fair_fini(&flow->fair);
    events_fini(&flow->events);
}

static void flow_finish(flow_t *flow)
{
    if (flow->done_count < flow->graph.node_count) {
        flow_note(flow, R2_ERR_PARAM);
        return;
    }
    for (uint32_t h = 0; h < flow->hosts && flow->result.seconds > 0; ++h) {
        const double rate = topo_host(flow->ask->topo, h);

        flow->result.busiest = r2_max(flow->result.busiest,
                                      rate > 0 ? flow->sent[h] / rate / flow->result.seconds : 0.0);
    }
}

r2_status_t flow_run(const flow_case_t *ask, flow_result_t *result_p)
{
    flow_t flow = {.ask = ask,
                   .ranks = ask->topo->rank_count,
                   .hosts = ask->topo->host_count,
                   .rails = ask->topo->flat ? 1 : ask->topo->rail_count};
    event_t event;

    flow.status = graph_init(&flow.graph, ask->schedules, flow.ranks);
    if (R2_OK == flow.status) {
        flow.status = flow_alloc(&flow);
    }
    if (R2_OK == flow.status) {
        flow_start(&flow);
        do {
            while (flow.ready_count > 0) {
                op_start(&flow, flow.ready[--flow.ready_count]);
            }
            if (R2_OK != flow.status || !events_take(&flow.events, &event)) {
                break;
            }
            flow_event(&flow, &event);
        } while (true);
        flow_finish(&flow);
    }
    if (R2_OK == flow.status) {
        *result_p = flow.result;
    }
    flow_fini(&flow);
    return flow.status;
}
