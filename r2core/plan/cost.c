/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times, in integers: no compiler or CPU changes a choice.
 */
#include "r2_config.h"

#include "plan/cost.h"

#include "base/util.h"

/* What a host sends, where no rate may be looked at: that of one rail that does not tell its own. */
#define R2_COST_USUAL_RATE (1000u * R2_CAPACITY_FULL)
/* Folding must gain this part of the time: what it costs within a host is not known but for its steps. */
#define R2_COST_FOLDING_GAIN 8u

/* ns x MB/s per byte, times 16: rates are in sixteenths of MB/s */
#define R2_WIRE_UNIT 16000u

typedef unsigned __int128 r2_wide_t;

r2_cost_params_t r2_cost_params(const r2_cost_params_t *published)
{
    r2_cost_params_t params = R2_COST_PARAMS_DEFAULT;

    if (0 != published->alpha_ns) {
        params.alpha_ns = published->alpha_ns;
    }
    if (0 != published->rate_ppm) {
        params.rate_ppm = published->rate_ppm;
    }
    for (uint32_t m = 0; m < R2_MEM_KIND_COUNT; m++) {
        if (0 != published->reduce_mbytes_per_s[m]) {
            params.reduce_mbytes_per_s[m] = published->reduce_mbytes_per_s[m];
        }
    }
    return params;
}

static uint64_t narrow(r2_wide_t value)
{
    return value >= R2_COST_NEVER ? R2_COST_NEVER : (uint64_t) value;
}

static uint64_t add_ns(uint64_t a, uint64_t b)
{
    return narrow((r2_wide_t) a + b);
}

/** part / whole of `bytes`, rounded up, at a rate. */
static uint64_t part_ns(uint64_t bytes, r2_wide_t part, r2_wide_t whole, uint64_t rate)
{
    const uint64_t share = narrow(((r2_wide_t) bytes * part + whole - 1) / whole);

    return r2_cost_wire_ns(share, rate);
}

uint64_t r2_cost_wire_ns(uint64_t bytes, uint64_t rate)
{
    if (0 == bytes) {
        return 0;
    }
    return 0 == rate ? R2_COST_NEVER : narrow(((r2_wide_t) bytes * R2_WIRE_UNIT + rate - 1) / rate);
}

uint64_t r2_cost_paced_ns(const r2_cost_params_t *params, uint64_t ns)
{
    return R2_COST_NEVER == ns || 0 == params->rate_ppm
               ? ns
               : narrow((r2_wide_t) ns * R2_PPM / params->rate_ppm);
}

uint64_t r2_cost_bound_ns(const r2_topology_t *topology, uint64_t bytes)
{
    uint64_t slowest = UINT64_MAX, sum = 0;

    if (1 == topology->host_count) {
        return 0;
    }
    for (uint32_t h = 0; h < topology->host_count; h++) {
        const uint64_t rate = r2_topology_host_rate(topology, h);

        slowest = r2_min(slowest, rate);
        sum += rate;
    }
    /* rounded down: a bound */
    if (0 == slowest && 0 < bytes) {
        return R2_COST_NEVER;
    }
    return 0 == bytes ? 0
                      : r2_max(narrow((r2_wide_t) bytes * R2_WIRE_UNIT / slowest),
                               narrow((r2_wide_t) bytes * R2_WIRE_UNIT * 2 *
                                      (topology->host_count - 1) / sum));
}

static uint64_t reduce_ns(const r2_cost_params_t *params, uint64_t bytes)
{
    return narrow((r2_wide_t) bytes * 1000 /
                  r2_max(params->reduce_mbytes_per_s[R2_MEM_HOST], 1u));
}

static r2_wide_t weight_sum(const r2_classes_t *classes, const r2_shares_t *shares)
{
    r2_wide_t sum = 0;

    for (uint32_t h = 0; h < classes->host_count; h++) {
        sum += shares->weight[h];
    }
    return sum;
}

/** Longest time of a pair of classes. */
static uint64_t pairs_ns(const r2_classes_t *classes, const r2_shares_t *shares, r2_wide_t sum,
                         uint64_t bytes)
{
    uint64_t longest = 0;

    for (uint32_t k = 0; NULL != classes->pairs && k < classes->count; k++) {
        for (uint32_t l = k; l < classes->count; l++) {
            const r2_class_t *a = &classes->classes[k], *b = &classes->classes[l];
            const r2_wide_t part = (r2_wide_t) a->members * shares->weight[b->first] +
                                   (r2_wide_t) b->members * shares->weight[a->first];

            if (r2_classes_paired(classes, k, l)) {
                longest = r2_max(longest,
                                 part_ns(bytes, part, sum, classes->pairs[k * classes->count + l]));
            }
        }
    }
    return longest;
}

uint64_t r2_cost_exchange_ns(const r2_classes_t *classes, const r2_shares_t *shares,
                             const r2_cost_params_t *params, uint64_t bytes)
{
    const r2_wide_t sum = weight_sum(classes, shares);
    uint64_t longest, reduced = 0;

    if (0 == sum) {
        return R2_COST_NEVER;
    }
    longest = pairs_ns(classes, shares, sum, bytes);
    for (uint32_t k = 0; k < classes->count && 1 < classes->host_count; k++) {
        const r2_class_t *class = &classes->classes[k];
        const uint64_t weight = shares->weight[class->first];
        /* g + (R - 2 g) s, without negative terms */
        const r2_wide_t part = (r2_wide_t) class->members * (sum - weight) +
                               (r2_wide_t) (classes->member_count - class->members) * weight;

        longest = r2_max(longest, part_ns(bytes, part, sum, class->rate));
        reduced = r2_max(reduced, narrow((r2_wide_t) bytes * weight / sum *
                                         (classes->member_count - 1) / class->members));
    }
    return add_ns(2 * (uint64_t) params->alpha_ns,
                  r2_max(r2_cost_paced_ns(params, longest), reduce_ns(params, reduced)));
}

bool r2_cost_folding_pays(const r2_topology_t *topology, uint64_t bytes)
{
    const r2_cost_params_t usual = R2_COST_PARAMS_DEFAULT;
    const uint64_t ranks = (uint64_t) topology->rank_count, hosts = topology->host_count;
    uint64_t apart_ns, folded_ns;

    if (1 == hosts || ranks == hosts) {
        return false;
    }
    apart_ns = add_ns(2 * (uint64_t) usual.alpha_ns,
                      part_ns(bytes, 2 * (r2_wide_t) r2_topology_pairs_most(topology), ranks,
                              R2_COST_USUAL_RATE));
    folded_ns = add_ns((2 + R2_COST_FOLDING_STEPS) * (uint64_t) usual.alpha_ns,
                       part_ns(bytes, 2 * ((r2_wide_t) hosts - 1), hosts, R2_COST_USUAL_RATE));
    return folded_ns < apart_ns - apart_ns / R2_COST_FOLDING_GAIN;
}

uint64_t r2_cost_ring_ns(const r2_topology_t *topology, const int32_t *order,
                         const r2_cost_params_t *params, uint64_t bytes)
{
    const uint64_t ranks = (uint64_t) topology->rank_count;
    const uint64_t each = narrow(((r2_wide_t) bytes * 2 * (ranks - 1) + ranks - 1) / ranks);
    uint64_t longest = 0;

    for (int32_t r = 0; r < topology->rank_count; r++) {
        const int32_t next = (r + 1) % topology->rank_count;
        const uint32_t from = topology->host_of[NULL == order ? r : order[r]];
        const uint32_t to = topology->host_of[NULL == order ? next : order[next]];

        if (from != to) {
            longest =
                r2_max(longest, r2_cost_wire_ns(each, r2_topology_pair_rate(topology, from, to)));
        }
    }
    return add_ns(2 * (ranks - 1) * params->alpha_ns,
                  r2_max(r2_cost_paced_ns(params, longest), reduce_ns(params, each / 2)));
}

uint64_t r2_cost_steps_ns(const r2_classes_t *classes, const r2_cost_params_t *params,
                          uint32_t steps, uint64_t bytes)
{
    uint64_t longest = 0;

    for (uint32_t k = 0; k < classes->count && 1 < classes->host_count; k++) {
        const r2_class_t *class = &classes->classes[k];
        const uint64_t sent = narrow((r2_wide_t) bytes * class->members * steps);

        longest = r2_max(longest, r2_cost_wire_ns(sent, class->rate));
    }
    return add_ns((uint64_t) steps * params->alpha_ns,
                  add_ns(r2_cost_paced_ns(params, longest), reduce_ns(params, steps * bytes)));
}
