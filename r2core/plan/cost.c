/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times, in integers: no compiler or CPU changes a choice.
 */
#include "r2_config.h"

#include "plan/cost.h"

#include "base/util.h"
#include "plan/layout.h"

/* What a host sends, where no rate may be looked at: that of one rail that does not tell its
 * own. */
#define R2_COST_USUAL_RATE (1000u * R2_CAPACITY_FULL)
/*
 * Half of a step is its first message, and each one more takes a rank as long. Within a host, where
 * no network is, both take a quarter.
 */
#define R2_COST_MESSAGE_PART 2u
#define R2_COST_LOCAL_PART   (4u * R2_COST_MESSAGE_PART)
/*
 * Up to this length messages outweigh bytes, whoever is where: folding takes two more at least, and
 * each rank of a host adds more to its messages than to the bytes. Calls of next to no bytes then
 * need not look at the ranks.
 */
#define R2_COST_FOLDING_LEAST 4096u

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
    for (uint32_t m = 0; m < R2_MEM_RATED_COUNT; ++m) {
        if (0 != published->reduce_mbytes_per_s[m]) {
            params.reduce_mbytes_per_s[m] = published->reduce_mbytes_per_s[m];
        }
    }
    return params;
}

static uint64_t r2_narrow(r2_wide_t value)
{
    return value >= R2_COST_NEVER ? R2_COST_NEVER : (uint64_t) value;
}

static uint64_t r2_add_ns(uint64_t a, uint64_t b)
{
    return r2_narrow((r2_wide_t) a + b);
}

/** part / whole of `bytes`, rounded up, at a rate. */
static uint64_t r2_part_ns(uint64_t bytes, r2_wide_t part, r2_wide_t whole, uint64_t rate)
{
    const uint64_t share = r2_narrow(((r2_wide_t) bytes * part + whole - 1) / whole);

    return r2_cost_wire_ns(share, rate);
}

uint64_t r2_cost_wire_ns(uint64_t bytes, uint64_t rate)
{
    if (0 == bytes) {
        return 0;
    }
    return 0 == rate ? R2_COST_NEVER
                     : r2_narrow(((r2_wide_t) bytes * R2_WIRE_UNIT + rate - 1) / rate);
}

uint64_t r2_cost_paced_ns(const r2_cost_params_t *params, uint64_t ns)
{
    return R2_COST_NEVER == ns || 0 == params->rate_ppm
               ? ns
               : r2_narrow((r2_wide_t) ns * R2_PPM / params->rate_ppm);
}

uint64_t r2_cost_bound_ns(const r2_topology_t *topology, uint64_t bytes)
{
    uint64_t slowest = UINT64_MAX, sum = 0;

    if (1 == topology->host_count) {
        return 0;
    }
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        const uint64_t rate = r2_topology_host_rate(topology, h);

        slowest = r2_min(slowest, rate);
        sum += rate;
    }
    /* rounded down: a bound */
    if (0 == slowest && 0 < bytes) {
        return R2_COST_NEVER;
    }
    return 0 == bytes ? 0
                      : r2_max(r2_narrow((r2_wide_t) bytes * R2_WIRE_UNIT / slowest),
                               r2_narrow((r2_wide_t) bytes * R2_WIRE_UNIT * 2 *
                                         (topology->host_count - 1) / sum));
}

static uint64_t r2_reduce_ns(const r2_cost_params_t *params, uint64_t bytes)
{
    return r2_narrow((r2_wide_t) bytes * 1000 /
                     r2_max(params->reduce_mbytes_per_s[R2_MEM_HOST], 1u));
}

static r2_wide_t r2_weight_sum(const r2_classes_t *classes, const r2_shares_t *shares)
{
    r2_wide_t sum = 0;

    for (uint32_t h = 0; h < classes->host_count; ++h) {
        sum += shares->weight[h];
    }
    return sum;
}

/** Longest time of a pair of classes. */
static uint64_t r2_pairs_ns(const r2_classes_t *classes, const r2_shares_t *shares, r2_wide_t sum,
                            uint64_t bytes)
{
    uint64_t longest = 0;

    for (uint32_t k = 0; NULL != classes->pairs && k < classes->count; ++k) {
        for (uint32_t l = k; l < classes->count; ++l) {
            const r2_class_t *a = &classes->classes[k], *b = &classes->classes[l];
            const r2_wide_t part = (r2_wide_t) a->members * shares->weight[b->first] +
                                   (r2_wide_t) b->members * shares->weight[a->first];

            if (r2_classes_paired(classes, k, l)) {
                longest = r2_max(
                    longest, r2_part_ns(bytes, part, sum, classes->pairs[k * classes->count + l]));
            }
        }
    }
    return longest;
}

static uint64_t r2_handling_ns(const r2_cost_shape_t *shape, uint32_t alpha_ns)
{
    const r2_wide_t apart = (r2_wide_t) shape->steps + shape->messages;
    const r2_wide_t local = (r2_wide_t) shape->local_steps + shape->local_messages;

    return r2_narrow(apart * alpha_ns / R2_COST_MESSAGE_PART +
                     local * alpha_ns / R2_COST_LOCAL_PART);
}

/** Contributions to all others, and results. */
static r2_cost_shape_t r2_exchange_twice(uint64_t ranks, uint64_t least, uint64_t most)
{
    return (r2_cost_shape_t){
        .steps = 2, .messages = 2 * (ranks - least), .local_messages = 2 * (most - 1)};
}

uint64_t r2_cost_exchange_ns(const r2_classes_t *classes, const r2_shares_t *shares,
                             const r2_cost_params_t *params, uint64_t bytes)
{
    const r2_wide_t sum = r2_weight_sum(classes, shares);
    uint64_t longest, reduced = 0, least = classes->member_count;
    uint64_t most = 1 == classes->host_count ? least : 1;
    r2_cost_shape_t shape;

    if (0 == sum) {
        return R2_COST_NEVER;
    }
    longest = r2_pairs_ns(classes, shares, sum, bytes);
    for (uint32_t k = 0; k < classes->count && 1 < classes->host_count; ++k) {
        const r2_class_t *class = &classes->classes[k];
        const uint64_t weight = shares->weight[class->first];
        /* g + (R - 2 g) s, without negative terms */
        const r2_wide_t part = (r2_wide_t) class->members * (sum - weight) +
                               (r2_wide_t) (classes->member_count - class->members) * weight;

        least = r2_min(least, (uint64_t) class->members);
        most = r2_max(most, (uint64_t) class->members);
        longest = r2_max(longest, r2_part_ns(bytes, part, sum, class->rate));
        reduced = r2_max(reduced, r2_narrow((r2_wide_t) bytes * weight / sum *
                                            (classes->member_count - 1) / class->members));
    }
    shape = r2_exchange_twice(classes->member_count, least, most);
    return r2_add_ns(r2_handling_ns(&shape, params->alpha_ns),
                     r2_max(r2_cost_paced_ns(params, longest), r2_reduce_ns(params, reduced)));
}

uint32_t r2_cost_doubling_steps(int32_t size)
{
    return r2_steps_below(size) + (0 == (size & (size - 1)) ? 0 : 1);
}

/**
 * Of blocks of ranks: as many steps cross hosts as hosts alone would need, and those of the 2^k
 * ranks that exchange take part in them. With one rank each, those that fold first cross, too.
 */
static r2_cost_shape_t r2_doubling_of(uint64_t ranks, uint64_t hosts)
{
    const uint64_t steps = r2_cost_doubling_steps((int32_t) ranks);
    const uint64_t between = r2_steps_below((int32_t) hosts);
    const uint64_t crossing = ranks == hosts ? steps : between;
    const uint64_t pairing = (uint64_t) 1 << (r2_steps_below((int32_t) ranks + 1) - 1);

    return (r2_cost_shape_t){.steps = crossing,
                             .messages = crossing,
                             .local_steps = steps - crossing,
                             .local_messages = steps - crossing,
                             .part = between * (ranks == hosts ? ranks : pairing),
                             .whole = hosts};
}

r2_cost_shape_t r2_cost_doubling_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement)
{
    (void) placement;
    return r2_doubling_of((uint64_t) topology->rank_count, topology->host_count);
}

r2_cost_shape_t r2_cost_exchange_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement)
{
    const uint64_t ranks = (uint64_t) topology->rank_count;

    return (r2_cost_shape_t){.steps = 1,
                             .messages = ranks - placement->least,
                             .local_messages = placement->most - 1,
                             .part = placement->pairs,
                             .whole = 1};
}

r2_cost_shape_t r2_cost_direct_shape(const r2_topology_t *topology,
                                     const r2_topology_placement_t *placement)
{
    const uint64_t ranks = (uint64_t) topology->rank_count;
    r2_cost_shape_t shape = r2_exchange_twice(ranks, placement->least, placement->most);

    shape.part = 2 * placement->pairs;
    shape.whole = ranks;
    return shape;
}

r2_cost_shape_t r2_cost_half_shape(const r2_topology_t *topology,
                                   const r2_topology_placement_t *placement)
{
    r2_cost_shape_t shape = r2_cost_exchange_shape(topology, placement);

    shape.whole = (uint64_t) topology->rank_count;
    return shape;
}

/** Where a host has fewer ranks than another, each of them stands for several of the other's. */
static r2_cost_shape_t r2_folded_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement)
{
    const uint64_t hosts = topology->host_count;
    const uint64_t pieces = (placement->most + placement->least - 1) / placement->least;

    return (r2_cost_shape_t){.steps = 2,
                             .messages = 2 * (hosts - 1) * pieces,
                             .local_steps = 2,
                             .local_messages = 2 * hosts * (placement->most - 1),
                             .part = 2 * (hosts - 1),
                             .whole = hosts};
}

static uint64_t r2_usual_ns(const r2_cost_shape_t *shape, uint64_t bytes)
{
    const r2_cost_params_t usual = R2_COST_PARAMS_DEFAULT;

    return r2_add_ns(r2_handling_ns(shape, usual.alpha_ns),
                     r2_part_ns(bytes, shape->part, shape->whole, R2_COST_USUAL_RATE));
}

uint64_t r2_cost_folding_ns(const r2_topology_t *topology, const r2_topology_placement_t *placement,
                            const r2_cost_params_t *params)
{
    r2_cost_shape_t shape = r2_folded_shape(topology, placement);

    shape.steps = 0;
    shape.messages -= 2 * ((uint64_t) topology->host_count - 1);
    return r2_handling_ns(&shape, params->alpha_ns);
}

bool r2_cost_levels_pay(const r2_topology_t *topology, uint64_t bytes, r2_cost_shape_fn_t levels,
                        r2_cost_shape_fn_t apart)
{
    r2_topology_placement_t placement;
    r2_cost_shape_t in_levels, other;

    if (1 == topology->host_count || (uint32_t) topology->rank_count == topology->host_count ||
        R2_OK != r2_topology_placement(topology, &placement)) {
        return false;
    }
    in_levels = levels(topology, &placement);
    other = apart(topology, &placement);
    return r2_usual_ns(&in_levels, bytes) < r2_usual_ns(&other, bytes);
}

bool r2_cost_folding_pays(const r2_topology_t *topology, uint64_t bytes, r2_cost_shape_fn_t apart)
{
    return bytes > R2_COST_FOLDING_LEAST &&
           r2_cost_levels_pay(topology, bytes, r2_folded_shape, apart);
}

uint64_t r2_cost_ring_ns(const r2_topology_t *topology, const int32_t *order,
                         const r2_cost_params_t *params, uint64_t bytes)
{
    const uint64_t ranks = (uint64_t) topology->rank_count;
    const uint64_t each = r2_narrow(((r2_wide_t) bytes * 2 * (ranks - 1) + ranks - 1) / ranks);
    uint64_t longest = 0;

    for (int32_t r = 0; r < topology->rank_count; ++r) {
        const int32_t next = (r + 1) % topology->rank_count;
        const uint32_t from = topology->host_of[NULL == order ? r : order[r]];
        const uint32_t to = topology->host_of[NULL == order ? next : order[next]];

        if (from != to) {
            longest =
                r2_max(longest, r2_cost_wire_ns(each, r2_topology_pair_rate(topology, from, to)));
        }
    }
    return r2_add_ns(2 * (ranks - 1) * params->alpha_ns,
                     r2_max(r2_cost_paced_ns(params, longest), r2_reduce_ns(params, each / 2)));
}

uint64_t r2_cost_doubling_ns(const r2_classes_t *classes, const r2_cost_params_t *params,
                             uint64_t bytes)
{
    const r2_cost_shape_t shape = r2_doubling_of(classes->member_count, classes->host_count);
    const uint64_t steps = shape.steps + shape.local_steps;
    uint64_t longest = 0;

    for (uint32_t k = 0; k < classes->count; ++k) {
        longest =
            r2_max(longest, r2_part_ns(bytes, shape.part, shape.whole, classes->classes[k].rate));
    }
    return r2_add_ns(steps * params->alpha_ns, r2_add_ns(r2_cost_paced_ns(params, longest),
                                                         r2_reduce_ns(params, steps * bytes)));
}

uint64_t r2_cost_to_all_ns(const r2_classes_t *classes, const r2_cost_params_t *params,
                           uint64_t bytes)
{
    const uint64_t ranks = classes->member_count;
    uint64_t longest = 0;

    for (uint32_t k = 0; k < classes->count; ++k) {
        const r2_class_t *class = &classes->classes[k];
        const uint64_t sent =
            r2_narrow((r2_wide_t) bytes * class->members * (ranks - class->members));

        longest = r2_max(longest, r2_cost_wire_ns(sent, class->rate));
    }
    return r2_add_ns(params->alpha_ns, r2_add_ns(r2_cost_paced_ns(params, longest),
                                                 r2_reduce_ns(params, (ranks - 1) * bytes)));
}
