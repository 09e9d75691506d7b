/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Costs of the ways of data in a GPU's memory: T = what starting takes + bytes / rates.
 */
#include "r2_config.h"

#include "r2/device_cost.h"

#include <math.h>

#include "base/util.h"

enum { R2_DEVICE_LEGS = 3 };

/** A way's parts, one behind the other. */
typedef struct r2_device_legs {
    double start_s;                    /* of all of them */
    double per_byte_s[R2_DEVICE_LEGS]; /* of each; 0: there is none */
    bool in_pieces;                    /* they overlap where messages are staged in pieces */
} r2_device_legs_t;

static double r2_device_seconds(uint64_t ns)
{
    return 0 == ns ? INFINITY : (double) ns / 1e9;
}

static double r2_device_each(uint64_t bytes_per_s)
{
    return 0 == bytes_per_s ? INFINITY : 1 / (double) bytes_per_s;
}

static double r2_device_sum(const r2_device_legs_t *legs)
{
    return legs->per_byte_s[0] + legs->per_byte_s[1] + legs->per_byte_s[2];
}

static double r2_device_slowest(const r2_device_legs_t *legs)
{
    return fmax(legs->per_byte_s[0], fmax(legs->per_byte_s[1], legs->per_byte_s[2]));
}

static uint64_t r2_device_nic_rate(const r2_device_rates_t *rates)
{
    return 0 == rates->nic_bytes_per_s ? rates->rails_bytes_per_s
                                       : r2_min(rates->rails_bytes_per_s, rates->nic_bytes_per_s);
}

static r2_device_legs_t r2_device_staged(const r2_device_rates_t *rates, uint64_t between)
{
    return (r2_device_legs_t){.start_s = r2_device_seconds(rates->copy_off_ns) +
                                         r2_device_seconds(rates->message_ns) +
                                         r2_device_seconds(rates->copy_on_ns),
                              .per_byte_s = {r2_device_each(rates->copy_off_bytes_per_s),
                                             r2_device_each(between),
                                             r2_device_each(rates->copy_on_bytes_per_s)}};
}

/* Offer, answer and word; the copy is one of the reader's. */
static r2_device_legs_t r2_device_peer(const r2_device_rates_t *rates)
{
    return (r2_device_legs_t){.start_s = (double) rates->open_ns / 1e9 +
                                         3 * r2_device_seconds(rates->message_ns) +
                                         r2_device_seconds(rates->copy_on_ns),
                              .per_byte_s = {r2_device_each(rates->peer_bytes_per_s)}};
}

/* What the processor reduces was loaded before, while it reduced another piece: the slower of the
 * two counts. */
static r2_device_legs_t r2_device_by_processor(const r2_device_rates_t *rates)
{
    return (r2_device_legs_t){
        .per_byte_s = {fmax(r2_device_each(rates->host_reduce_bytes_per_s),
                            r2_device_each(rates->copy_off_bytes_per_s))}};
}

static r2_device_legs_t r2_device_legs(const r2_device_rates_t *rates, r2_device_way_t way)
{
    r2_device_legs_t legs = {.start_s = INFINITY};

    switch (way) {
    case R2_DEVICE_REDUCE_HOST:
        legs = r2_device_by_processor(rates);
        break;
    case R2_DEVICE_REDUCE_GPU:
        legs = (r2_device_legs_t){.start_s = r2_device_seconds(rates->launch_ns),
                                  .per_byte_s = {r2_device_each(rates->reduce_bytes_per_s)}};
        break;
    case R2_DEVICE_STAGED_HOST:
        legs = r2_device_staged(rates, rates->host_copy_bytes_per_s);
        break;
    case R2_DEVICE_PEER:
        legs = r2_device_peer(rates);
        break;
    case R2_DEVICE_STAGED_RAILS:
        legs = r2_device_staged(rates, rates->rails_bytes_per_s);
        legs.in_pieces = true;
        break;
    case R2_DEVICE_NIC:
        legs = (r2_device_legs_t){.start_s = r2_device_seconds(rates->message_ns),
                                  .per_byte_s = {r2_device_each(r2_device_nic_rate(rates))}};
        break;
    case R2_DEVICE_WAY_COUNT:
        break;
    }
    return legs;
}

uint64_t r2_device_piece(uint64_t bytes, uint64_t align)
{
    const uint64_t part = bytes / R2_DEVICE_PARTS / align * align;

    return bytes <= R2_DEVICE_WHOLE_BYTES
               ? bytes
               : r2_clamp_u64(part, R2_DEVICE_LEAST_BYTES, R2_DEVICE_MOST_BYTES);
}

double r2_device_cost_s(const r2_device_rates_t *rates, r2_device_way_t way, uint64_t bytes)
{
    const r2_device_legs_t legs = r2_device_legs(rates, way);
    const uint64_t first = legs.in_pieces ? r2_device_piece(bytes, 1) : bytes;

    if (isinf(legs.start_s) || isinf(r2_device_sum(&legs))) { /* also of no bytes */
        return INFINITY;
    }
    return legs.start_s + (double) first * r2_device_sum(&legs) +
           (double) (bytes - first) * r2_device_slowest(&legs);
}

bool r2_device_from(const r2_device_rates_t *rates, r2_device_way_t way, r2_device_way_t other,
                    uint64_t *from_p)
{
    uint64_t bytes = R2_DEVICE_NEVER_BYTES;

    if (isinf(r2_device_cost_s(rates, way, 1)) || isinf(r2_device_cost_s(rates, other, 1))) {
        return false;
    }
    while (bytes > 1 &&
           r2_device_cost_s(rates, way, bytes / 2) < r2_device_cost_s(rates, other, bytes / 2)) {
        bytes /= 2;
    }
    *from_p = bytes;
    return true;
}

uint64_t r2_device_reduces_from(const r2_device_rates_t *rates, uint64_t measured_ns,
                                uint64_t limit_ns)
{
    uint64_t from = R2_DEVICE_REDUCE_USUAL_BYTES;

    if (NULL == rates || measured_ns > limit_ns ||
        !r2_device_from(rates, R2_DEVICE_REDUCE_GPU, R2_DEVICE_REDUCE_HOST, &from)) {
        return R2_DEVICE_REDUCE_USUAL_BYTES;
    }
    return r2_max(from, (uint64_t) R2_DEVICE_REDUCE_LEAST_BYTES);
}
