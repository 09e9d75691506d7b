/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce in one step: all send their vectors to the root, which folds them. For vectors of middle
 * length on few ranks.
 *
 * Four ranks, root 1, one step:
 *
 *   rank 0   x0 -> 1
 *   rank 1   folds x0 OP (x1 OP (x2 OP x3))
 *   rank 2   x2 -> 1
 *   rank 3   x3 -> 1
 *
 * The root takes in n - 1 vectors where `direct` takes in one; but the others send one message each
 * and are done, and nobody waits for a second step. Long vectors go in segments, one after the
 * other. The order is that of direct exchange (fold.c): both give the same bits.
 *
 * Source: folklore (linear reduce).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/fold.h"
#include "plan/bcast_levels.h"
#include "plan/thresholds.h"

/** The root's side of one segment. */
static void r2_linear_fold(r2_fold_t *fold, const r2_fold_segment_t *segment)
{
    const uint32_t folded = r2_fold_contributions(fold, segment);

    r2_fold_finish(fold, segment, &folded, 1);
}

static r2_status_t r2_reduce_linear_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const uint64_t segment_bytes = r2_fold_segment_bytes(input);
    const uint32_t segments = r2_segment_count(bytes, segment_bytes);
    const bool root = input->rank == input->root;
    /* in place a contribution lies where the result goes, and only the last one is read first */
    const bool staged = input->in_place && input->rank != input->size - 1;
    r2_fold_t fold;
    r2_status_t status =
        r2_fold_init(&fold, input, schedule, staged, segment_bytes, root ? segments : 0);

    r2_plan_note_message(schedule, segment_bytes);
    for (uint32_t k = 0; R2_OK == status && k < segments; ++k) {
        const uint64_t offset = k * segment_bytes;
        const r2_fold_segment_t segment = {.index = k,
                                           .tag = k,
                                           .bytes = r2_segment_length(bytes, segment_bytes, k),
                                           .own = r2_at(r2_input_buf(input), offset),
                                           .place = r2_at(R2_BUF_OUT, offset)};
        const r2_msg_t msg = {
            .peer = input->root, .tag = k, .order = k, .bytes = segment.bytes};

        if (root) {
            r2_linear_fold(&fold, &segment);
        } else {
            r2_add_send(schedule, msg, segment.own, R2_AT_ONCE);
        }
    }
    r2_fold_fini(&fold);
    return status;
}

/** The least that a fold works with: two segments. */
static uint64_t r2_reduce_linear_scratch(const r2_plan_input_t *input)
{
    return 2 * r2_round_up(r2_fold_segment_bytes(input), R2_SLOT_ALIGN);
}

/** The same lengths as of a linear broadcast: what the root takes in is what it would send. From
 * one other rank it takes in no less in any other way. */
static bool r2_reduce_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return 2 == input->size || (2 < input->size && 1 == r2_bcast_hosts(input).most &&
                                r2_linear_pays(input, total_bytes, (uint64_t) input->size - 1));
}

const r2_algorithm_t r2_reduce_linear = {.name = "linear",
                                         .build = r2_reduce_linear_build,
                                         .scratch = r2_reduce_linear_scratch,
                                         .pays = r2_reduce_linear_pays};
