/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A ring over some ranks and a part of the vector: what ring algorithms are made of.
 */
#ifndef R2_PLAN_RING_H
#define R2_PLAN_RING_H

#include "r2/planner.h"

/** One ring. All fields but `place` are equal on all ranks. */
typedef struct r2_ring_part {
    const int32_t *order;  /* ranks by place in the circle. borrowed: outlives the ring */
    int32_t size;          /* of the circle, >= 1 */
    int32_t place;         /* of this rank in the circle; -1: this rank is a folded host */
    const int32_t *folded; /* ranks outside of the circle that take part, too. borrowed: as order */
    int32_t folded_count;
    uint64_t first, count;  /* elements of the vector; count > 0 */
    uint32_t tag_first;     /* messages are numbered from here on */
    uint64_t scratch_bytes; /* staging memory; at least one segment is taken */
} r2_ring_part_t;

/**
 * Adds the ops of one rank. Staging memory is taken behind that of the schedule so far.
 * @param tags_p number of tags that the ring uses, on all ranks.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_ring_add(const r2_plan_input_t *input, r2_schedule_t *schedule,
                        const r2_ring_part_t *part, uint32_t *tags_p);

#endif
