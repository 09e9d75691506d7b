/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How a vector divides over the ranks, and into segments for pipelining.
 */
#include "r2_config.h"

#include "plan/layout.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/kinds.h"
#include "plan/thresholds.h"
#include "r2/topology.h"

/*
 * Segment lengths, per block of one owner:
 *   R2_SEGMENTS_MOST   the pipeline fills and drains in 1/64 of its time; more segments cost more
 *                      per message than they hide
 *   R2_SEGMENTS_FEWEST and R2_SEGMENT_SHORT: shorter blocks are cut into 16, but into segments
 *                      of not more than 32 KiB: below that the cost per message dominates
 *   R2_MESSAGES_MOST   bound on (segments x peers): keeps schedules within a few MiB of ops
 */
#define R2_SEGMENTS_MOST   64u
#define R2_SEGMENTS_FEWEST 16u
#define R2_SEGMENT_SHORT   32768u
#define R2_MESSAGES_MOST   16384u
/*
 * Where all ranks exchange at once, segments only hide the step between two halves of the work,
 * each of which keeps the rails busy by itself: a message that takes less of the rails' time costs
 * the processors more than that. No longer than a chunk may be, and half of it for blocks that are
 * longer than so many.
 */
#define R2_SEGMENT_US         30u
#define R2_SEGMENTS_EXCHANGED 8u
/* What is passed on waits until all of it is there: parts of such a segment. */
#define R2_SEGMENTS_PASSED_ON 4u
/* Segments of each peer that staging memory should hold: one being reduced, one on its way. */
#define R2_STAGED_SEGMENTS 2u

static r2_status_t r2_layout_alloc(r2_layout_t *layout, int32_t blocks)
{
    layout->start = malloc(((size_t) blocks + 1) * sizeof(*layout->start));
    if (NULL == layout->start) {
        return R2_ERR_NO_MEMORY;
    }
    layout->start[0] = 0;
    layout->size = blocks;
    layout->largest_bytes = 0;
    return R2_OK;
}

static void r2_layout_append(r2_layout_t *layout, int32_t block, uint64_t bytes)
{
    layout->start[block + 1] = layout->start[block] + bytes;
    layout->largest_bytes = r2_max(layout->largest_bytes, bytes);
}

r2_status_t r2_layout_shares(r2_layout_t *layout, int32_t blocks, uint64_t count,
                             uint64_t element_bytes)
{
    uint64_t each = count / (uint64_t) blocks;
    uint64_t longer = count % (uint64_t) blocks;
    r2_status_t status = r2_layout_alloc(layout, blocks);

    if (R2_OK != status) {
        return status;
    }
    for (int32_t b = 0; b < blocks; ++b) {
        r2_layout_append(layout, b, (each + ((uint64_t) b < longer ? 1 : 0)) * element_bytes);
    }
    return R2_OK;
}

r2_status_t r2_layout_weighted(r2_layout_t *layout, int32_t blocks, const uint64_t *weights,
                               uint64_t count, uint64_t element_bytes)
{
    uint64_t total = 0, weight = 0, given = 0;
    r2_status_t status;

    for (int32_t b = 0; b < blocks; ++b) {
        total += weights[b];
    }
    if (0 == total) {
        return r2_layout_shares(layout, blocks, count, element_bytes);
    }
    status = r2_layout_alloc(layout, blocks);
    if (R2_OK != status) {
        return status;
    }
    for (int32_t b = 0; b < blocks; ++b) {
        /* ends are rounded, not lengths: they sum to the vector whatever is lost */
        uint64_t end;

        weight += weights[b];
        end = (uint64_t) ((unsigned __int128) count * weight / total);
        r2_layout_append(layout, b, (end - given) * element_bytes);
        given = end;
    }
    return R2_OK;
}

r2_status_t r2_layout_blocks(r2_layout_t *layout, const r2_plan_input_t *input)
{
    r2_status_t status = r2_layout_alloc(layout, input->size);

    if (R2_OK != status) {
        return status;
    }
    for (int32_t b = 0; b < input->size; ++b) {
        r2_layout_append(layout, b,
                         (NULL == input->counts ? input->count : input->counts[b]) *
                             input->element_bytes);
    }
    return R2_OK;
}

void r2_layout_fini(r2_layout_t *layout)
{
    free(layout->start);
    layout->start = NULL;
}

static uint64_t r2_round_down(uint64_t value, uint64_t unit)
{
    return value / unit * unit;
}

/** Shortest segment that keeps the number of messages within bounds. */
static uint64_t r2_segment_floor(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    uint64_t most = r2_max(R2_MESSAGES_MOST / (uint64_t) input->size, 1u);

    return r2_max((largest_bytes + most - 1) / most, r2_max(input->chunk_min_bytes, 1u));
}

/** @param least_bytes segments are not shorter, if the block is not. */
static uint64_t r2_segment_bytes_from(const r2_plan_input_t *input, uint64_t largest_bytes,
                                      uint64_t unit_bytes, uint64_t least_bytes)
{
    uint64_t want = r2_max(largest_bytes / R2_SEGMENTS_MOST,
                           r2_min(R2_SEGMENT_SHORT, largest_bytes / R2_SEGMENTS_FEWEST));
    uint64_t segments;

    want = r2_max(r2_max(want, least_bytes), r2_segment_floor(input, largest_bytes));
    /* messages of buffers that are not contiguous are packed whole, whatever the number of
     * segments; room is left for rounding up to cache lines */
    if (input->message_max_bytes > R2_SLOT_ALIGN && !r2_kind(input->kind)->reduces) {
        want = r2_min(want, input->message_max_bytes - R2_SLOT_ALIGN);
    }
    segments = r2_max((largest_bytes + want - 1) / want, 1u);
    want = r2_max((largest_bytes + segments - 1) / segments, 1u);
    /* whole cache lines where that is little against the segment */
    if (want >= 16 * R2_SLOT_ALIGN && 0 == R2_SLOT_ALIGN % unit_bytes) {
        unit_bytes = R2_SLOT_ALIGN;
    }
    return r2_round_up(want, unit_bytes);
}

uint64_t r2_segment_bytes(const r2_plan_input_t *input, uint64_t largest_bytes, uint64_t unit_bytes)
{
    return r2_segment_bytes_from(input, largest_bytes, unit_bytes, 0);
}

/** Shortens segments so that contributions fit the staging memory. */
static uint64_t r2_segment_bytes_fitting(const r2_plan_input_t *input, uint64_t largest_bytes,
                                         uint64_t segment)
{
    const uint64_t element = input->element_bytes;
    uint64_t slots = r2_max((uint64_t) input->size - 1, 1u) * R2_STAGED_SEGMENTS;
    uint64_t fits = r2_round_down(input->scratch_bytes / slots, R2_SLOT_ALIGN);
    uint64_t half = r2_round_down(input->scratch_bytes / 2, R2_SLOT_ALIGN);

    if (segment > fits) {
        segment = r2_min(segment, r2_max(fits, r2_segment_floor(input, largest_bytes)));
    }
    segment = r2_round_down(r2_min(segment, half), element);
    return r2_max(segment, element);
}

uint64_t r2_segment_bytes_staged(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    return r2_segment_bytes_fitting(input, largest_bytes,
                                    r2_segment_bytes(input, largest_bytes, input->element_bytes));
}

uint64_t r2_slowest_mbytes_per_s(const r2_plan_input_t *input)
{
    const r2_topology_t *topology = input->topology;
    uint64_t least = NULL == topology ? 0 : UINT64_MAX;

    for (uint32_t h = 0; NULL != topology && h < topology->host_count; ++h) {
        uint64_t rate_mbytes_per_s = 0;

        for (uint32_t r = 0; r < topology->rail_count; ++r) {
            rate_mbytes_per_s += topology->rate_mbytes_per_s[h * topology->rail_count + r];
        }
        least = r2_min(least, rate_mbytes_per_s);
    }
    return least;
}

uint64_t r2_segment_worth_bytes(const r2_plan_input_t *input)
{
    uint64_t least = r2_slowest_mbytes_per_s(input);

    least /= r2_cost_is_slow(&input->cost) ? R2_COST_SLOW : 1;
    return least < input->chunk_max_bytes / R2_SEGMENT_US ? least * R2_SEGMENT_US
                                                          : input->chunk_max_bytes;
}

/** The shortest segment that is worth its message. */
static uint64_t r2_segment_least_bytes(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    const uint64_t worth_bytes = r2_segment_worth_bytes(input);

    if (largest_bytes <= 2 * input->copy_max_bytes) {
        return 0; /* halves are copied when sent: nobody waits for acknowledgements */
    }
    return largest_bytes > R2_SEGMENTS_EXCHANGED * worth_bytes ? worth_bytes / 2 : worth_bytes;
}

uint64_t r2_segment_bytes_exchanged(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    return r2_segment_bytes_fitting(
        input, largest_bytes,
        r2_segment_bytes_from(input, largest_bytes, input->element_bytes,
                              r2_segment_least_bytes(input, largest_bytes)));
}

uint64_t r2_segment_bytes_passed_on(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    return r2_segment_bytes_from(input, largest_bytes, 1,
                                 r2_segment_least_bytes(input, largest_bytes) /
                                     R2_SEGMENTS_PASSED_ON);
}

uint64_t r2_segment_bytes_crowded(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    return r2_segment_bytes_from(input, largest_bytes, 1, r2_threshold_crowded_segment_bytes);
}

uint64_t r2_segment_bytes_among(const r2_plan_input_t *input, uint64_t block_bytes,
                                uint64_t largest_bytes, uint64_t longest_segment_bytes)
{
    const uint64_t segments = r2_segment_count(largest_bytes, longest_segment_bytes);
    uint64_t unit = input->element_bytes, want;

    if (block_bytes + unit >= largest_bytes) {
        return longest_segment_bytes;
    }
    want = (block_bytes + segments - 1) / segments;
    if (want >= 16 * R2_SLOT_ALIGN && 0 == R2_SLOT_ALIGN % unit) {
        unit = R2_SLOT_ALIGN;
    }
    want = r2_round_up(r2_max(want, r2_max(input->chunk_min_bytes, 1u)), unit);
    return r2_min(want, longest_segment_bytes);
}

uint64_t r2_input_total_count(const r2_plan_input_t *input)
{
    uint64_t total = 0;

    switch (r2_kind(input->kind)->span) {
    case R2_SPAN_VECTOR:
        return input->count;
    case R2_SPAN_BLOCKS:
        return input->count * (uint64_t) input->size;
    case R2_SPAN_COUNTS:
        for (int32_t r = 0; r < input->size; ++r) {
            total += input->counts[r];
        }
        return total;
    case R2_SPAN_EDGES:
        for (uint32_t i = 0; i < input->send_count; ++i) {
            total += input->sends[i].bytes;
        }
        return total;
    case R2_SPAN_NONE:
        break;
    }
    return 0;
}

uint64_t r2_input_total_bytes(const r2_plan_input_t *input)
{
    return r2_input_total_count(input) * input->element_bytes;
}
