/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Flow simulation of a direct exchange between classes of equal hosts.
 *
 * Hosts of one class see the same network, so their flows have equal rates at all times: one flow
 * per pair of classes and rail stands for all of them. 64 hosts of which ten have lost a rail are
 * 11 classes, at most 968 flows instead of 32,256.
 */
#include "r2_config.h"

#include "sim/streams.h"

#include <math.h>
#include <stdlib.h>

#include "r2/macros.h"
#include "r2/planner.h"
#include "sim/fair.h"

/* A pair is done when this part of its bytes is left: rounding. */
#define STREAMS_REST 1e-9

/* Hosts are alike if their rates differ by less than this part of the fastest. */
#define STREAMS_FINE UINT32_MAX

static double port_rate(const topo_t *topo, uint32_t host, uint32_t rail)
{
    return topo->flat ? topo_host(topo, host) : topo_rail(topo, host, rail);
}

static uint32_t port_count(const topo_t *topo)
{
    return topo->flat ? 1 : topo->rail_count; /* of a flat network: any NIC reaches any */
}

/**
 * What tells hosts apart, in whole numbers.
 * @return R2_OK, R2_ERR_PARAM (more cuts than the planner knows), R2_ERR_NO_MEMORY.
 */
static r2_status_t streams_topology(const topo_t *topo, r2_topology_t *topology_p)
{
    const uint32_t ports = port_count(topo);
    double fastest = 0;
    r2_status_t status =
        r2_topology_init(topology_p, topo->host_count, ports, (int32_t) topo->host_count, 0);

    for (uint32_t i = 0; R2_OK == status && i < topo->host_count * ports; ++i) {
        fastest = r2_max(fastest, port_rate(topo, i / ports, i % ports));
    }
    for (uint32_t i = 0; R2_OK == status && fastest > 0 && i < topo->host_count * ports; ++i) {
        topology_p->rate_mbytes_per_s[i] =
            (uint32_t) (port_rate(topo, i / ports, i % ports) / fastest * STREAMS_FINE);
    }
    for (uint32_t c = 0; R2_OK == status && c < topo->cut_count; ++c) {
        const r2_topology_cut_t *cut = &topo->cuts[c];

        if (!r2_topology_cut(topology_p, cut->host_a, cut->host_b, topo->flat ? 0 : cut->rail)) {
            r2_topology_fini(topology_p);
            status = R2_ERR_PARAM;
        }
    }
    return status;
}

r2_status_t streams_init(streams_t *streams, const topo_t *topo)
{
    const size_t hosts = topo->host_count;
    r2_topology_t topology;
    r2_status_t status = streams_topology(topo, &topology);

    *streams = (streams_t){.topo = topo};
    if (R2_OK != status) {
        return status;
    }
    streams->class_of = calloc(hosts, sizeof(*streams->class_of));
    streams->first = calloc(hosts, sizeof(*streams->first));
    streams->hosts = calloc(hosts, sizeof(*streams->hosts));
    status = NULL == streams->class_of || NULL == streams->first || NULL == streams->hosts
                 ? R2_ERR_NO_MEMORY
                 : r2_plan_classes(&topology, streams->class_of, &streams->class_count);
    r2_topology_fini(&topology);
    if (R2_OK != status) {
        streams_fini(streams);
        return status;
    }
    for (uint32_t h = topo->host_count; h-- > 0;) {
        streams->first[streams->class_of[h]] = h;
        ++streams->hosts[streams->class_of[h]];
    }
    return R2_OK;
}

void streams_fini(streams_t *streams)
{
    free(streams->class_of);
    free(streams->first);
    free(streams->hosts);
    *streams = (streams_t){.topo = NULL};
}

/* ---- one run */

typedef struct pair {
    uint32_t from, to; /* classes */
    double bytes;      /* left to send, of one pair of hosts */
    double whole;      /* bytes at the start */
    double rate;       /* of one pair of hosts over all rails */
} pair_t;

typedef struct run {
    const streams_t *streams; /* borrowed */
    uint32_t rails;           /* port_count() */
    double *capacity;         /* owned; ports: [(direction * classes + class) * rails + rail] */
    pair_t *pairs;            /* owned */
    size_t pair_count;
    fair_flow_t *flows; /* owned; pairs x rails at most */
    uint32_t *pair_of;  /* owned; [flow] */
    size_t flow_count;
    fair_t fair;
} run_t;

static uint32_t port_at(const run_t *run, uint32_t direction, uint32_t class, uint32_t rail)
{
    return (direction * run->streams->class_count + class) * run->rails + rail;
}

static double class_rate(const run_t *run, uint32_t class, uint32_t rail)
{
    return port_rate(run->streams->topo, run->streams->first[class], rail);
}

static void run_fini(run_t *run)
{
    free(run->capacity);
    free(run->pairs);
    free(run->flows);
    free(run->pair_of);
    fair_fini(&run->fair);
}

static r2_status_t run_init(run_t *run, const streams_t *streams)
{
    const uint32_t classes = streams->class_count;
    const size_t pairs = (size_t) classes * classes;

    *run = (run_t){.streams = streams, .rails = port_count(streams->topo)};
    run->capacity = malloc(2 * (size_t) classes * run->rails * sizeof(*run->capacity));
    run->pairs = malloc(pairs * sizeof(*run->pairs));
    run->flows = malloc(pairs * run->rails * sizeof(*run->flows));
    run->pair_of = malloc(pairs * run->rails * sizeof(*run->pair_of));
    if (NULL == run->capacity || NULL == run->pairs || NULL == run->flows || NULL == run->pair_of) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < classes; ++k) {
        for (uint32_t rail = 0; rail < run->rails; ++rail) {
            run->capacity[port_at(run, 0, k, rail)] = class_rate(run, k, rail);
            run->capacity[port_at(run, 1, k, rail)] = class_rate(run, k, rail);
        }
    }
    return fair_init(&run->fair, run->capacity, 2 * classes * run->rails);
}

static void add_pairs(run_t *run, const double *bytes)
{
    const streams_t *streams = run->streams;

    for (uint32_t k = 0; k < streams->class_count; ++k) {
        for (uint32_t l = 0; l < streams->class_count; ++l) {
            const double each = bytes[(size_t) k * streams->class_count + l];

            if (each > 0 && (k != l || streams->hosts[k] > 1)) {
                run->pairs[run->pair_count++] =
                    (pair_t){.from = k, .to = l, .bytes = each, .whole = each};
            }
        }
    }
}

/** Flows of the pairs that still have something to send. */
static void add_flows(run_t *run)
{
    const streams_t *streams = run->streams;

    run->flow_count = 0;
    for (uint32_t p = 0; p < run->pair_count; ++p) {
        const pair_t *pair = &run->pairs[p];
        const double self = pair->from == pair->to ? 1 : 0;

        for (uint32_t rail = 0; rail < run->rails; ++rail) {
            if (!(class_rate(run, pair->from, rail) > 0) ||
                !(class_rate(run, pair->to, rail) > 0) ||
                (!streams->topo->flat && topo_is_cut(streams->topo, streams->first[pair->from],
                                                     streams->first[pair->to], rail))) {
                continue;
            }
            run->pair_of[run->flow_count] = p;
            run->flows[run->flow_count++] = (fair_flow_t){
                .out = port_at(run, 0, pair->from, rail),
                .in = port_at(run, 1, pair->to, rail),
                .out_count = streams->hosts[pair->to] - self,
                .in_count = streams->hosts[pair->from] - self,
            };
        }
    }
}

/** @return seconds until the next pair is done; INFINITY if one never is. */
static double next_end(run_t *run)
{
    double seconds = INFINITY;

    for (size_t p = 0; p < run->pair_count; ++p) {
        run->pairs[p].rate = 0;
    }
    for (size_t f = 0; f < run->flow_count; ++f) {
        run->pairs[run->pair_of[f]].rate += run->flows[f].rate;
    }
    for (size_t p = 0; p < run->pair_count; ++p) {
        if (!(run->pairs[p].rate > 0)) {
            return INFINITY;
        }
        seconds = r2_min(seconds, run->pairs[p].bytes / run->pairs[p].rate);
    }
    return seconds;
}

static void advance(run_t *run, double seconds)
{
    size_t kept = 0;

    for (size_t p = 0; p < run->pair_count; ++p) {
        pair_t pair = run->pairs[p];

        pair.bytes -= pair.rate * seconds;
        if (pair.bytes > pair.whole * STREAMS_REST) {
            run->pairs[kept++] = pair;
        }
    }
    run->pair_count = kept;
}

r2_status_t streams_run(const streams_t *streams, const double *bytes, double *seconds_p)
{
    run_t run;
    double now = 0;
    r2_status_t status = run_init(&run, streams);

    if (R2_OK == status) {
        add_pairs(&run, bytes);
    }
    while (R2_OK == status && run.pair_count > 0 && isfinite(now)) {
        double seconds;

        add_flows(&run);
        status = fair_solve(&run.fair, run.flows, run.flow_count);
        seconds = R2_OK == status ? next_end(&run) : 0;
        now += seconds;
        if (isfinite(seconds)) {
            advance(&run, seconds);
        }
    }
    run_fini(&run);
    if (R2_OK == status) {
        *seconds_p = now;
    }
    return status;
}
