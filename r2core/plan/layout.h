/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How a vector divides over the ranks, and into segments for pipelining.
 */
#ifndef R2_PLAN_LAYOUT_H
#define R2_PLAN_LAYOUT_H

#include "base/util.h"
#include "r2/planner.h"

/* Slots of staging memory start at multiples of this: aligned for any predefined type. */
#define R2_SLOT_ALIGN 64u

/** Blocks of a vector: block b is bytes [start[b], start[b + 1]). */
typedef struct r2_layout {
    uint64_t *start; /* owned; size + 1 */
    int32_t size;
    uint64_t largest_bytes;
} r2_layout_t;

/** Cuts `count` elements into `blocks` shares whose lengths differ by one element at most. */
r2_status_t r2_layout_shares(r2_layout_t *layout, int32_t blocks, uint64_t count,
                             uint64_t element_bytes);
/**
 * As r2_layout_shares(), with shares in proportion to weights, rounded to elements. A share of
 * weight 0 is empty; with all weights 0 shares are equal. The sum of weights must stay below 2^63.
 */
r2_status_t r2_layout_weighted(r2_layout_t *layout, int32_t blocks, const uint64_t *weights,
                               uint64_t count, uint64_t element_bytes);
/** The blocks that the arguments give: counts[], or `count` elements for each rank. */
r2_status_t r2_layout_blocks(r2_layout_t *layout, const r2_plan_input_t *input);
void r2_layout_fini(r2_layout_t *layout);

static inline uint64_t r2_layout_bytes(const r2_layout_t *layout, int32_t block)
{
    return layout->start[block + 1] - layout->start[block];
}

/** Bytes of segment `k` of a block: 0 behind its end. */
static inline uint64_t r2_segment_length(uint64_t block_bytes, uint64_t segment_bytes, uint32_t k)
{
    uint64_t begin = (uint64_t) k * segment_bytes;

    if (begin >= block_bytes) {
        return 0;
    }
    return block_bytes - begin < segment_bytes ? block_bytes - begin : segment_bytes;
}

/** Number of segments of a block. */
static inline uint32_t r2_segment_count(uint64_t block_bytes, uint64_t segment_bytes)
{
    return (uint32_t) ((block_bytes + segment_bytes - 1) / segment_bytes);
}

/** Length of the messages that a block of `block_bytes` goes in, where nothing else asks for
 * segments. */
static inline uint64_t r2_message_bytes(const r2_plan_input_t *input, uint64_t block_bytes)
{
    bool whole = 0 == input->message_max_bytes || block_bytes <= input->message_max_bytes;

    return whole ? r2_max(block_bytes, (uint64_t) 1) : input->message_max_bytes;
}

/** Block b in the receive buffer of an allgather(v), bytes. */
static inline uint64_t r2_layout_place(const r2_layout_t *layout, const r2_plan_input_t *input,
                                       int32_t block)
{
    return NULL == input->displs ? layout->start[block]
                                 : input->displs[block] * input->element_bytes;
}

/**
 * Segment length for pipelining blocks of up to `largest_bytes` through n - 1 peers. Equal on all
 * ranks.
 * @param unit_bytes   segments are multiples of it.
 * @return > 0.
 */
uint64_t r2_segment_bytes(const r2_plan_input_t *input, uint64_t largest_bytes,
                          uint64_t unit_bytes);

/** As r2_segment_bytes(), shortened so that contributions fit the staging memory. */
uint64_t r2_segment_bytes_staged(const r2_plan_input_t *input, uint64_t largest_bytes);

/** What all rails of the slowest host are told to carry, MB/s, all being well; 0: not known. */
uint64_t r2_slowest_mbytes_per_s(const r2_plan_input_t *input);

/** What the rails of the slowest host are told to carry in 30 us, all being well; 1/32 of it where
 * they are known to give less than that; at most chunk_max_bytes. */
uint64_t r2_segment_worth_bytes(const r2_plan_input_t *input);
/** The same where all ranks exchange at once: no shorter than it pays on rails as fast as these. */
uint64_t r2_segment_bytes_exchanged(const r2_plan_input_t *input, uint64_t largest_bytes);
/** For blocks of bytes that those who get them pass on: a quarter of that, since the last segment
 * takes its time twice. */
uint64_t r2_segment_bytes_passed_on(const r2_plan_input_t *input, uint64_t largest_bytes);
/** For such blocks where ranks wait for processors: few messages count, not when they are there. */
uint64_t r2_segment_bytes_crowded(const r2_plan_input_t *input, uint64_t largest_bytes);

/**
 * Segment length of one of several blocks of unequal length: as many segments as the longest has,
 * but none too short.
 * @param longest_segment_bytes  segment length of the longest block; the result is no longer.
 */
uint64_t r2_segment_bytes_among(const r2_plan_input_t *input, uint64_t block_bytes,
                                uint64_t largest_bytes, uint64_t longest_segment_bytes);

/** Elements of the whole vector: all blocks of all ranks. Of messages: bytes that this rank
 * sends. */
uint64_t r2_input_total_count(const r2_plan_input_t *input);
uint64_t r2_input_total_bytes(const r2_plan_input_t *input);

/** A slot of staging memory for the whole vector. */
static inline uint64_t r2_vector_slot_bytes(const r2_plan_input_t *input)
{
    return r2_round_up(input->count * input->element_bytes, R2_SLOT_ALIGN);
}

/** Where this rank's contribution lies. */
static inline r2_buf_t r2_input_buf(const r2_plan_input_t *input)
{
    return input->in_place ? R2_BUF_OUT : R2_BUF_IN;
}

/** Number of steps k with 2^k < count: what must have arrived to pass on `count` ranks' news. */
static inline uint32_t r2_steps_below(int32_t count)
{
    uint32_t steps = 0;

    while (steps < 31 && ((int64_t) 1 << steps) < count) {
        ++steps;
    }
    return steps;
}

/** The peer `step` ranks up (or, negative, down) the circle of ranks. */
static inline int32_t r2_input_peer(const r2_plan_input_t *input, int32_t step)
{
    int64_t peer = ((int64_t) input->rank + step) % input->size;

    return (int32_t) (peer < 0 ? peer + input->size : peer);
}

#endif
