/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Recursive doubling among some ranks, which stand in the order of reduction.
 */
#ifndef R2_PLAN_DOUBLING_H
#define R2_PLAN_DOUBLING_H

#include "plan/by_host.h"
#include "plan/layout.h"

/* Tags of messages between those that double: 0, 1, and this one and 30 behind it. */
#define R2_DOUBLING_TAG_STEP 2u
#define R2_DOUBLING_TAG_END  (R2_DOUBLING_TAG_STEP + 31u)

/** What a rank holds while the exchange goes on. */
typedef struct r2_doubling {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    const r2_by_host_t *hosts;    /* borrowed: the first rank of each; NULL: all ranks */
    int32_t count, place;         /* those that double, and this rank's place among them */
    uint64_t bytes;               /* of the vector */
    r2_region_t acc;              /* product so far */
    uint32_t acc_op;              /* op that wrote it, or R2_OP_NONE */
    bool is_own;                  /* that may be written */
    uint32_t slots;               /* staging slots in use */
    uint32_t acc_sent;            /* last send that reads it; at first R2_OP_NONE */
    uint32_t out_sent;            /* last send that reads OUT; at first R2_OP_NONE */
    int32_t steps;                /* exchanges */
    int32_t folded;               /* those that step aside: count - 2^steps */
} r2_doubling_t;

/** floor(log2 count). */
int32_t r2_doubling_steps(int32_t count);

/** Staging slots that count ranks take at most, each r2_vector_slot_bytes(): in each step one to
 * receive and one to go on in; the step before counts, too. */
static inline uint64_t r2_doubling_slots(int32_t count)
{
    return 2 * ((uint64_t) r2_doubling_steps(count) + 1);
}

/** A rank among `count` that double, in this place, with its contribution. */
r2_doubling_t r2_doubling_of(const r2_plan_input_t *input, r2_schedule_t *schedule, int32_t count,
                             int32_t place);

/** One more staging slot. */
r2_region_t r2_doubling_slot(r2_doubling_t *d);

/** Adds the ops of this rank. The result is in OUT, and in `acc` after `acc_op`. */
void r2_doubling_run(r2_doubling_t *d);

/** Is a vector short enough for it? */
bool r2_doubling_pays(const r2_plan_input_t *input, uint64_t total_bytes);

#endif
