/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Slots of staging memory that are used round robin.
 */
#include "r2_config.h"

#include "plan/slots.h"

#include <stdlib.h>

r2_status_t r2_slots_init(r2_slots_t *slots, const r2_plan_input_t *input, r2_schedule_t *schedule,
                          uint64_t bytes, uint64_t most)
{
    *slots = (r2_slots_t){.slot_bytes = r2_round_up(r2_max(bytes, (uint64_t) 1), R2_SLOT_ALIGN)};
    slots->count = (uint32_t) r2_clamp_u64(input->scratch_bytes / slots->slot_bytes, 1,
                                           r2_clamp_u64(most, 1, UINT32_MAX));
    slots->free_op = malloc((size_t) slots->count * sizeof(*slots->free_op));
    if (NULL == slots->free_op) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < slots->count; ++i) {
        slots->free_op[i] = R2_OP_NONE;
    }
    if (most > 0) {
        schedule->scratch_bytes = slots->count * slots->slot_bytes;
    }
    return R2_OK;
}

void r2_slots_fini(r2_slots_t *slots)
{
    free(slots->free_op);
    slots->free_op = NULL;
}

r2_slot_t r2_slots_take(r2_slots_t *slots)
{
    const uint32_t index = (uint32_t) (slots->taken++ % slots->count);

    return (r2_slot_t){.place = r2_at(R2_BUF_SCRATCH, index * slots->slot_bytes),
                       .free_op = slots->free_op[index],
                       .index = index};
}

void r2_slots_give(r2_slots_t *slots, const r2_slot_t *slot, uint32_t op)
{
    slots->free_op[slot->index] = op;
}

uint64_t r2_chain_segment_bytes(const r2_plan_input_t *input)
{
    const uint64_t element = input->element_bytes;
    uint64_t segment = r2_segment_bytes(input, input->count * element, element);
    const uint64_t half = input->scratch_bytes / 2 / R2_SLOT_ALIGN * R2_SLOT_ALIGN;

    segment = r2_min(segment, half) / element * element;
    return r2_max(segment, element);
}
