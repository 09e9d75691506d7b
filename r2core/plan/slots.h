/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Slots of staging memory that are used round robin.
 */
#ifndef R2_PLAN_SLOTS_H
#define R2_PLAN_SLOTS_H

#include "plan/layout.h"
#include "plan/ops.h"

typedef struct r2_slots {
    uint64_t slot_bytes; /* from one slot to the next */
    uint32_t count;
    uint32_t *free_op; /* owned; the op after which a slot is free */
    uint64_t taken;    /* slots taken so far */
} r2_slots_t;

/** A slot that was taken. */
typedef struct r2_slot {
    r2_region_t place;
    uint32_t free_op; /* to wait for before it is written */
    uint32_t index;
} r2_slot_t;

/**
 * As many slots as the bound of staging memory permits, but not more than `most`, and at least one.
 * Sets schedule->scratch_bytes. @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_slots_init(r2_slots_t *slots, const r2_plan_input_t *input, r2_schedule_t *schedule,
                          uint64_t bytes, uint64_t most);
void r2_slots_fini(r2_slots_t *slots);

r2_slot_t r2_slots_take(r2_slots_t *slots);
/** The slot is free after an op. */
void r2_slots_give(r2_slots_t *slots, const r2_slot_t *slot, uint32_t op);

/**
 * Segment length for a pipeline through a chain of ranks: whole elements, two slots of it fit
 * staging memory. Equal on all ranks.
 */
uint64_t r2_chain_segment_bytes(const r2_plan_input_t *input);

#endif
