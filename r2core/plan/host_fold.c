/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Folds contributions in two levels: those of each host first, then the hosts' partial results.
 *
 * Ranks 0 and 1 on host A, 2 on host B; rank 0 folds all, x = contributions, ">" = receive, p and r
 * places, s a slot:
 *
 *   rank 1   sends x1 to 0
 *   rank 2   sends x2 to 0: all that its host contributes
 *   rank 0   p > x1    p = x0 OP p    r > x2    r = p OP r
 *
 * Result everywhere: (x0 OP x1) OP x2, the same tree for each element and whoever folds.
 */
#include "r2_config.h"

#include "plan/host_fold.h"

#include <stdlib.h>

#include "base/util.h"

/* Part of staging memory for each kind of accumulator; the rest holds contributions. */
#define R2_ACC_PART 4u
/* A contribution, a partial result and a result: the least that makes progress. */
#define R2_STAGED_LEAST 3u

/** What a fold takes in: a message, or memory of this rank. */
typedef struct source {
    int32_t peer; /* -1: own */
    r2_region_t own;
    uint32_t ready; /* own: op to wait for */
} source_t;

r2_status_t r2_host_fold_init(r2_host_fold_t *fold, const r2_plan_input_t *input,
                              r2_schedule_t *schedule)
{
    *fold = (r2_host_fold_t){.input = input,
                             .schedule = schedule,
                             .host = input->topology->host_of[input->rank]};
    return r2_by_host_init(&fold->by, input->topology);
}

void r2_host_fold_fini(r2_host_fold_t *fold)
{
    free(fold->slot_free);
    fold->slot_free = NULL;
    r2_by_host_fini(&fold->by);
}

uint64_t r2_host_fold_scratch(const r2_plan_input_t *input)
{
    return R2_STAGED_LEAST * r2_round_up(input->element_bytes, R2_SLOT_ALIGN);
}

bool r2_host_fold_ordered(const r2_plan_input_t *input)
{
    for (int32_t r = 1; r < input->size; ++r) {
        if (input->topology->host_of[r] < input->topology->host_of[r - 1]) {
            return false;
        }
    }
    return true;
}

bool r2_host_fold_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology && (input->commutative || r2_host_fold_ordered(input));
}

r2_status_t r2_host_fold_stage(r2_host_fold_t *fold, uint64_t largest_bytes, uint32_t blocks)
{
    const r2_plan_input_t *input = fold->input;
    const uint64_t unit = input->element_bytes;
    const uint64_t most = input->scratch_bytes / R2_STAGED_LEAST / R2_SLOT_ALIGN * R2_SLOT_ALIGN;
    uint64_t segment = r2_segment_bytes_exchanged(input, largest_bytes);
    uint32_t total, part;

    segment = r2_max(r2_min(segment, most / unit * unit), unit);
    fold->segment_bytes = segment;
    fold->segments = r2_segment_count(largest_bytes, segment);
    fold->slot_bytes = r2_round_up(segment, R2_SLOT_ALIGN);
    /* no more than all segments can use */
    total = (uint32_t) r2_min(input->scratch_bytes / fold->slot_bytes,
                              (uint64_t) fold->segments * blocks * ((uint32_t) input->size + 2) +
                                  R2_STAGED_LEAST);
    total = r2_max(total, R2_STAGED_LEAST);
    part = r2_max(total / R2_ACC_PART, 1u);
    fold->partials = (r2_host_pool_t){.first = 0, .count = part};
    fold->results = (r2_host_pool_t){.first = part, .count = part};
    fold->slots = (r2_host_pool_t){.first = 2 * part, .count = total - 2 * part};
    fold->slot_free = malloc(total * sizeof(*fold->slot_free));
    for (uint32_t i = 0; NULL != fold->slot_free && i < total; ++i) {
        fold->slot_free[i] = R2_OP_NONE;
    }
    fold->schedule->scratch_bytes = total * fold->slot_bytes;
    r2_plan_note_message(fold->schedule, segment);
    return NULL == fold->slot_free ? R2_ERR_NO_MEMORY : R2_OK;
}

r2_status_t r2_host_layout(r2_host_fold_t *fold, const uint64_t *weight, bool whole,
                           r2_layout_t *layout_p)
{
    const r2_plan_input_t *input = fold->input;
    const uint32_t pieces = fold->by.most, blocks = input->topology->host_count * pieces;
    uint64_t *weights = calloc(blocks, sizeof(*weights));
    r2_status_t status = R2_ERR_NO_MEMORY;

    for (uint32_t b = 0; NULL != weights && b < blocks; ++b) {
        weights[b] = !whole            ? weight[b / pieces] / pieces
                     : 0 == b % pieces ? weight[b / pieces]
                                       : 0;
    }
    if (NULL != weights) {
        status = r2_layout_weighted(layout_p, (int32_t) blocks, weights, input->count,
                                    input->element_bytes);
    }
    for (uint32_t b = 0; R2_OK == status && b < blocks; ++b) {
        fold->schedule->digest =
            r2_digest_fold(fold->schedule->digest, r2_layout_bytes(layout_p, (int32_t) b));
    }
    free(weights);
    return status;
}

r2_host_part_t r2_host_part(const r2_host_fold_t *fold, const r2_layout_t *pieces, uint32_t i)
{
    const uint32_t blocks = (uint32_t) pieces->size, k = i / blocks, block = i % blocks;
    const uint64_t piece_bytes = r2_layout_bytes(pieces, (int32_t) block);
    const uint64_t segment_bytes = r2_segment_bytes_among(
        fold->input, piece_bytes, pieces->largest_bytes, fold->segment_bytes);

    return (r2_host_part_t){
        .piece = block % fold->by.most,
        .pieces = fold->by.most,
        .segment = k,
        .tag = i * R2_HOST_TAGS,
        .bytes = r2_segment_length(piece_bytes, segment_bytes, k),
        .own = r2_at(r2_input_buf(fold->input), pieces->start[block] + k * segment_bytes)};
}

static uint32_t r2_pool_take(r2_host_pool_t *pool)
{
    return pool->first + (uint32_t) (pool->next++ % pool->count);
}

uint32_t r2_host_result_take(r2_host_fold_t *fold)
{
    return r2_pool_take(&fold->results);
}

r2_msg_t r2_host_message(const r2_host_part_t *part, int32_t peer, uint32_t kind)
{
    return (r2_msg_t){.peer = peer,
                      .tag = part->tag + kind,
                      .order = part->segment,
                      .bytes = part->bytes};
}

uint32_t r2_host_contribute(r2_host_fold_t *fold, const r2_host_part_t *part)
{
    const int32_t handler = r2_host_handler(fold, part, fold->host);

    return r2_add_send(fold->schedule, r2_host_message(part, handler, R2_TAG_CONTRIBUTE), part->own,
                       R2_AT_ONCE);
}

/** Joins one more source, left of what is in `acc`. */
static uint32_t r2_fold_source(r2_host_fold_t *fold, const r2_host_part_t *part,
                               const source_t *source, uint32_t kind, r2_region_t acc,
                               uint32_t folded)
{
    uint32_t slot, arrived;

    if (source->peer < 0) {
        return r2_add_reduce(fold->schedule, source->own, acc, part->bytes,
                             R2_AFTER(folded, source->ready));
    }
    slot = r2_pool_take(&fold->slots);
    arrived = r2_add_recv(fold->schedule, r2_host_message(part, source->peer, kind),
                          r2_host_slot(fold, slot), R2_AFTER(fold->slot_free[slot]));
    fold->slot_free[slot] = r2_add_reduce_slot(fold->schedule, r2_host_slot(fold, slot), acc,
                                               part->bytes, R2_AFTER(folded, arrived));
    return fold->slot_free[slot];
}

static uint32_t r2_fold_first(r2_host_fold_t *fold, const r2_host_part_t *part,
                              const source_t *source, uint32_t kind, r2_region_t acc,
                              uint32_t acc_free)
{
    if (source->peer < 0) {
        return r2_add_copy(fold->schedule, source->own, acc, part->bytes,
                           R2_AFTER(acc_free, source->ready));
    }
    return r2_add_recv(fold->schedule, r2_host_message(part, source->peer, kind), acc,
                       R2_AFTER(acc_free));
}

r2_host_partial_t r2_host_fold_own(r2_host_fold_t *fold, const r2_host_part_t *part)
{
    const uint32_t first = fold->by.first[fold->host];
    const uint32_t count = r2_by_host_count(&fold->by, fold->host);
    r2_host_partial_t partial = {.place = part->own, .ready = R2_OP_NONE, .slot = R2_OP_NONE};

    if (1 == count) {
        return partial;
    }
    partial.slot = r2_pool_take(&fold->partials);
    partial.place = r2_host_slot(fold, partial.slot);
    for (uint32_t i = count; i-- > 0;) {
        const int32_t rank = fold->by.ranks[first + i];
        const source_t source = {.peer = rank == fold->input->rank ? -1 : rank,
                                 .own = part->own,
                                 .ready = R2_OP_NONE};

        partial.ready = count - 1 == i ? r2_fold_first(fold, part, &source, R2_TAG_CONTRIBUTE,
                                                       partial.place, fold->slot_free[partial.slot])
                                       : r2_fold_source(fold, part, &source, R2_TAG_CONTRIBUTE,
                                                        partial.place, partial.ready);
    }
    return partial;
}

uint32_t r2_host_pass(r2_host_fold_t *fold, const r2_host_part_t *part,
                      const r2_host_partial_t *partial, int32_t peer)
{
    const uint32_t sent = r2_add_send(fold->schedule, r2_host_message(part, peer, R2_TAG_PARTIAL),
                                      partial->place, R2_AFTER(partial->ready));

    if (R2_OP_NONE == partial->slot) {
        return sent;
    }
    fold->slot_free[partial->slot] = sent;
    return partial->ready;
}

uint32_t r2_host_fold_all(r2_host_fold_t *fold, const r2_host_part_t *part,
                          const r2_host_partial_t *partial, r2_region_t acc, uint32_t acc_free)
{
    const source_t own = {.peer = -1, .own = partial->place, .ready = partial->ready};
    const uint32_t hosts = fold->input->topology->host_count;
    uint32_t folded = R2_OP_NONE;

    for (uint32_t h = hosts; h-- > 0;) {
        const source_t other = {.peer = r2_host_handler(fold, part, h)};
        const source_t *source = h == fold->host ? &own : &other;

        folded = hosts - 1 == h ? r2_fold_first(fold, part, source, R2_TAG_PARTIAL, acc, acc_free)
                                : r2_fold_source(fold, part, source, R2_TAG_PARTIAL, acc, folded);
    }
    if (R2_OP_NONE != partial->slot) {
        fold->slot_free[partial->slot] = folded;
    }
    return folded;
}
