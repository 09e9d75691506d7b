/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Folds contributions in canonical order.
 *
 * Rank 1 of 3 owns a block of two segments, x = contributions, ">" = receive, two slots s0 s1, not
 * staged (the accumulator is the place of the result, a):
 *
 *   segment 0   a > x2    s0 > x0    a = x1 OP a    a = s0 OP a
 *   segment 1   a > x2    s1 > x0    a = x1 OP a    a = s1 OP a
 *   segment 2   a > x2    s0 > x0, when segment 0 has read s0, and so on
 *
 * Result everywhere: x0 OP (x1 OP x2), the same tree for each element and each owner.
 */
#include "r2_config.h"

#include "plan/fold.h"

#include <stdlib.h>

#include "base/util.h"

/* A receive that nobody has heard of is granted so much by default: longer messages would stand
 * still until credit comes for their rest. */
#define R2_FOLD_SEGMENT_BYTES (2u << 20)

uint64_t r2_fold_segment_bytes(const r2_plan_input_t *input)
{
    const uint64_t half = input->scratch_bytes / 2 / R2_SLOT_ALIGN * R2_SLOT_ALIGN;
    const uint64_t bytes = input->count * input->element_bytes;
    const uint64_t most = r2_min(half, (uint64_t) R2_FOLD_SEGMENT_BYTES);

    return r2_max(r2_min(bytes, most) / input->element_bytes * input->element_bytes,
                  input->element_bytes);
}

static int32_t r2_fold_last_rank(const r2_fold_t *fold)
{
    return fold->input->size - 1;
}

/** The last rank's own contribution is where the result goes: it is the accumulator as it is. */
static bool r2_fold_starts_in_place(const r2_fold_t *fold)
{
    return !fold->staged && fold->input->in_place;
}

r2_status_t r2_fold_init(r2_fold_t *fold, const r2_plan_input_t *input, r2_schedule_t *schedule,
                         bool staged, uint64_t segment_bytes, uint32_t segment_count)
{
    uint64_t per_segment = (uint64_t) input->size - (input->rank == input->size - 1 ? 1 : 2);
    uint64_t total;

    *fold = (r2_fold_t){.input = input, .schedule = schedule, .staged = staged};
    fold->slot_bytes = r2_round_up(segment_bytes, R2_SLOT_ALIGN);
    total = r2_max(input->scratch_bytes / fold->slot_bytes, 2u);
    if (staged) {
        fold->acc_count =
            (uint32_t) r2_clamp_u64(total / (uint64_t) input->size, 1, r2_max(segment_count, 1u));
    }
    fold->slot_count = (uint32_t) r2_min(total - fold->acc_count, per_segment * segment_count);
    fold->slot_free =
        malloc(((size_t) fold->slot_count + fold->acc_count + 1) * sizeof(*fold->slot_free));
    if (NULL == fold->slot_free) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < fold->slot_count + fold->acc_count; ++i) {
        fold->slot_free[i] = R2_OP_NONE;
    }
    if (0 < segment_count) {
        schedule->scratch_bytes = (fold->slot_count + fold->acc_count) * fold->slot_bytes;
    }
    return R2_OK;
}

void r2_fold_fini(r2_fold_t *fold)
{
    free(fold->slot_free);
    fold->slot_free = NULL;
}

static uint32_t r2_fold_acc_slot(const r2_fold_t *fold, uint32_t segment)
{
    return fold->slot_count + segment % fold->acc_count;
}

static r2_region_t r2_fold_slot_region(const r2_fold_t *fold, uint32_t slot)
{
    return r2_at(R2_BUF_SCRATCH, slot * fold->slot_bytes);
}

static r2_region_t r2_fold_acc(const r2_fold_t *fold, const r2_fold_segment_t *segment)
{
    return fold->staged ? r2_fold_slot_region(fold, r2_fold_acc_slot(fold, segment->index))
                        : segment->place;
}

/** The last rank's contribution becomes the accumulator. */
static uint32_t r2_fold_first(r2_fold_t *fold, const r2_fold_segment_t *segment)
{
    r2_region_t acc = r2_fold_acc(fold, segment);
    uint32_t free_op =
        fold->staged ? fold->slot_free[r2_fold_acc_slot(fold, segment->index)] : R2_OP_NONE;
    r2_msg_t msg = {.peer = r2_fold_last_rank(fold), .tag = segment->tag, .bytes = segment->bytes};

    if (fold->input->rank != r2_fold_last_rank(fold)) {
        return r2_add_recv(fold->schedule, msg, acc, R2_AFTER(free_op));
    }
    if (r2_fold_starts_in_place(fold)) {
        return R2_OP_NONE;
    }
    return r2_add_copy(fold->schedule, segment->own, acc, segment->bytes, R2_AFTER(free_op));
}

uint32_t r2_fold_contributions(r2_fold_t *fold, const r2_fold_segment_t *segment)
{
    const r2_region_t acc = r2_fold_acc(fold, segment);
    r2_msg_t msg = {.tag = segment->tag, .bytes = segment->bytes};
    uint32_t folded = r2_fold_first(fold, segment);

    for (int32_t j = r2_fold_last_rank(fold) - 1; j >= 0; --j) {
        uint32_t slot, arrived;

        if (j == fold->input->rank) {
            folded =
                r2_add_reduce(fold->schedule, segment->own, acc, segment->bytes, R2_AFTER(folded));
            continue;
        }
        slot = (uint32_t) (fold->slot_next++ % fold->slot_count);
        msg.peer = j;
        arrived = r2_add_recv(fold->schedule, msg, r2_fold_slot_region(fold, slot),
                              R2_AFTER(fold->slot_free[slot]));
        folded = r2_add_reduce_slot(fold->schedule, r2_fold_slot_region(fold, slot), acc,
                                    segment->bytes, R2_AFTER(folded, arrived));
        fold->slot_free[slot] = folded;
    }
    return folded;
}

uint32_t r2_fold_finish(r2_fold_t *fold, const r2_fold_segment_t *segment, const uint32_t *deps,
                        uint32_t dep_count)
{
    uint32_t copied;

    if (!fold->staged) {
        return deps[0];
    }
    copied = r2_add_copy(fold->schedule, r2_fold_acc(fold, segment), segment->place, segment->bytes,
                         deps, dep_count);
    fold->slot_free[r2_fold_acc_slot(fold, segment->index)] = copied;
    return copied;
}

r2_region_t r2_fold_accumulator(const r2_fold_t *fold, const r2_fold_segment_t *segment)
{
    return r2_fold_acc(fold, segment);
}

void r2_fold_release(r2_fold_t *fold, const r2_fold_segment_t *segment, uint32_t op)
{
    fold->slot_free[r2_fold_acc_slot(fold, segment->index)] = op;
}
