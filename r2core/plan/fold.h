/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The owner's side of a direct exchange: takes in contributions and folds them in canonical order.
 */
#ifndef R2_PLAN_FOLD_H
#define R2_PLAN_FOLD_H

#include "plan/ops.h"
#include "plan/layout.h"

/**
 * State while the segments of one block are added, in order.
 *
 * Canonical order of n contributions: acc = x[n-1]; then acc = x[j] OP acc for j = n-2 .. 0. It
 * does not depend on who folds, nor on who is early: early contributions wait in slots of staging
 * memory. Slots are used in the order of folding, round robin, so that any number of them makes
 * progress.
 */
typedef struct r2_fold {
    const r2_plan_input_t *input; /* borrowed: outlives the fold */
    r2_schedule_t *schedule;      /* borrowed: outlives the fold */
    uint64_t slot_bytes;          /* from one slot to the next */
    bool staged;                  /* the accumulator is in staging memory, too */
    uint32_t slot_count;
    uint64_t slot_next;  /* contributions staged so far */
    uint32_t acc_count;  /* accumulators, behind the slots */
    uint32_t *slot_free; /* owned; slot_count + acc_count ops that free a slot */
} r2_fold_t;

/** Segment length where a rank folds vectors that come whole: equal on all ranks; two of it fit
 * staging memory, which is the least that a fold works with. */
uint64_t r2_fold_segment_bytes(const r2_plan_input_t *input);

/**
 * @param staged         the result must be copied to its place (it lies on memory still in use).
 * @param segment_bytes  longest segment.
 * @param segment_count  number of segments of this rank's block.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_fold_init(r2_fold_t *fold, const r2_plan_input_t *input, r2_schedule_t *schedule,
                         bool staged, uint64_t segment_bytes, uint32_t segment_count);
void r2_fold_fini(r2_fold_t *fold);

/** One segment of this rank's block. */
typedef struct r2_fold_segment {
    uint32_t index;
    uint32_t tag; /* of the messages that bring contributions */
    uint64_t bytes;
    r2_region_t own;   /* this rank's contribution */
    r2_region_t place; /* of the result */
} r2_fold_segment_t;

/** Adds ops that receive and fold. @return the op after which the accumulator is complete. */
uint32_t r2_fold_contributions(r2_fold_t *fold, const r2_fold_segment_t *segment);

/**
 * Adds the copy to the result's place if the fold is staged.
 * @param deps deps[0]: return value of r2_fold_contributions(); then ops that still read the
 * place.
 * @return the op after which the result is in its place.
 */
uint32_t r2_fold_finish(r2_fold_t *fold, const r2_fold_segment_t *segment, const uint32_t *deps,
                        uint32_t dep_count);

/** Where a staged segment is folded: it may be read after r2_fold_contributions() ... */
r2_region_t r2_fold_accumulator(const r2_fold_t *fold, const r2_fold_segment_t *segment);
/** ... and used again after an op: instead of r2_fold_finish(). */
void r2_fold_release(r2_fold_t *fold, const r2_fold_segment_t *segment, uint32_t op);

#endif
