/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A ring over some ranks and a part of the vector: what ring algorithms are made of.
 */
#ifndef R2_PLAN_RING_H
#define R2_PLAN_RING_H

#include "plan/plan.h"

/** One ring. All fields but `place` are equal on all ranks. */
typedef struct r2_ring_part {
    const int32_t *order;  /* ranks by place in the circle. borrowed */
    int32_t size;          /* of the circle, >= 1 */
    int32_t place;         /* of this rank in the circle; -1: this rank is the guest */
    int32_t guest;         /* rank outside of the circle whose contribution counts, too; -1: none */
    uint64_t first, count; /* elements of the vector */
    uint32_t tag_first;    /* up to r2_ring_tags() from here on are used */
    uint64_t scratch_first_bytes, scratch_bytes; /* staging memory; at least one segment is taken */
} r2_ring_part_t;

/** Tags that a ring uses. */
uint32_t r2_ring_tags(const r2_plan_input_t *input, const r2_ring_part_t *part);

/** Adds the rows of one rank. @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t r2_ring_add(const r2_plan_input_t *input, r2_schedule_t *schedule,
                        const r2_ring_part_t *part);

#endif
