/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Scan and exscan by doubling, in rank order: for short vectors.
 *
 * Five ranks. [a-b] is the ordered product of the contributions of ranks a to b that a rank holds;
 * in step k it goes 2^k ranks up and is joined there from the left:
 *
 *            step 0          step 1          step 2
 *   rank 0   [0]   -> 1      -> 2            -> 4
 *   rank 1   [0-1] -> 2      -> 3
 *   rank 2   [1-2] -> 3      [0-2] -> 4
 *   rank 3   [2-3] -> 4      [0-3]
 *   rank 4   [3-4]           [1-4]           [0-4]
 *
 * The product of all lower ranks, exscan's result, is kept beside it, in OUT.
 *
 * Source: W. D. Hillis, G. L. Steele, "Data Parallel Algorithms", Communications of the ACM 29(12),
 * 1986.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

typedef struct doubling {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint64_t bytes, slot_bytes;
    uint64_t slots;
    r2_region_t acc;      /* product up to this rank, inclusive */
    uint32_t acc_op;      /* op that wrote it */
    uint32_t before_op;   /* exscan: op that wrote the product of lower ranks to OUT */
    uint32_t before_read; /* exscan: op that reads it there */
} doubling_t;

static uint64_t r2_scan_doubling_scratch(const r2_plan_input_t *input)
{
    return (1 + (uint64_t) r2_steps_below(input->size)) * r2_vector_slot_bytes(input);
}

static r2_region_t r2_doubling_slot(doubling_t *d)
{
    return r2_at(R2_BUF_SCRATCH, d->slots++ * d->slot_bytes);
}

/** Joins what came from below to exscan's result, and to the product if it is still to be sent. */
static void r2_doubling_join(doubling_t *d, uint32_t step, uint32_t arrived, r2_region_t from,
                             uint32_t sent)
{
    const bool exscan = R2_COLL_EXSCAN == d->input->kind;
    const bool wanted = !exscan || d->input->rank + ((int64_t) 2 << step) < d->input->size;

    if (exscan && 0 == step) {
        d->before_op = arrived; /* straight into OUT */
    } else if (exscan) {
        d->before_op = r2_add_reduce(
            d->schedule, from, r2_at(R2_BUF_OUT, 0), d->bytes,
            R2_AFTER(arrived, R2_OP_NONE == d->before_read ? d->before_op : d->before_read));
        d->before_read = R2_OP_NONE;
    }
    if (wanted) {
        d->acc_op = r2_add_reduce(d->schedule, from, d->acc, d->bytes,
                                  R2_AFTER(arrived, R2_OP_NONE == sent ? d->acc_op : sent));
        d->before_read = 0 == step ? d->acc_op : R2_OP_NONE;
    }
}

static void r2_doubling_step(doubling_t *d, uint32_t step)
{
    const int64_t distance = (int64_t) 1 << step, rank = d->input->rank;
    r2_msg_t msg = {.tag = step, .bytes = d->bytes};
    uint32_t sent = R2_OP_NONE, arrived;
    r2_region_t from;

    if (rank + distance < d->input->size) {
        msg.peer = (int32_t) (rank + distance);
        sent = r2_add_send(d->schedule, msg, d->acc, R2_AFTER(d->acc_op));
    }
    if (rank < distance) {
        return;
    }
    msg.peer = (int32_t) (rank - distance);
    if (R2_COLL_EXSCAN == d->input->kind && 0 == step) {
        from = r2_at(R2_BUF_OUT, 0);
        arrived = r2_add_recv(d->schedule, msg, from,
                              R2_AFTER(d->input->in_place ? d->acc_op : R2_OP_NONE));
    } else {
        from = r2_doubling_slot(d);
        arrived = r2_add_recv(d->schedule, msg, from, R2_AT_ONCE);
    }
    r2_doubling_join(d, step, arrived, from, sent);
}

static r2_status_t r2_scan_doubling_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    doubling_t d = {.input = input,
                    .schedule = schedule,
                    .bytes = input->count * input->element_bytes,
                    .slot_bytes = r2_vector_slot_bytes(input),
                    .acc = r2_at(R2_BUF_OUT, 0),
                    .acc_op = R2_OP_NONE,
                    .before_op = R2_OP_NONE,
                    .before_read = R2_OP_NONE};
    const r2_region_t own = r2_at(r2_input_buf(input), 0);
    const bool exscan = R2_COLL_EXSCAN == input->kind;
    const bool sends = input->rank + 1 < input->size;

    r2_plan_note_message(schedule, d.bytes);
    if (exscan && sends) {
        d.acc = r2_doubling_slot(&d);
    }
    if (exscan ? sends : !input->in_place) {
        d.acc_op = r2_add_copy(schedule, own, d.acc, d.bytes, R2_AT_ONCE);
    }
    for (uint32_t step = 0; (int64_t) 1 << step < input->size; ++step) {
        r2_doubling_step(&d, step);
    }
    schedule->scratch_bytes = d.slots * d.slot_bytes;
    return R2_OK;
}

static bool r2_scan_doubling_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return r2_is_short(input, total_bytes, r2_threshold_scan_short_bytes, 0);
}

const r2_algorithm_t r2_scan_doubling = {.name = "doubling",
                                         .build = r2_scan_doubling_build,
                                         .scratch = r2_scan_doubling_scratch,
                                         .pays = r2_scan_doubling_pays};
