/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce by recursive doubling, in rank order: for short vectors.
 *
 * Six ranks: 4 = 2^2 of them exchange, the first 2 * (6 - 4) ranks fold with a neighbour first.
 * [a-b] is the ordered product of the contributions of ranks a to b. "-> r" sends what is held so
 * far.
 *
 *          before       step 1              step 2              after
 *   rank 0  [0-1]       <-> 2  [0-3]        <-> 4  [0-5]        -> 1
 *   rank 1  -> 0                                                [0-5]
 *   rank 2  [2-3]       <-> 0  [0-3]        <-> 5  [0-5]        -> 3
 *   rank 3  -> 2                                                [0-5]
 *   rank 4  [4]         <-> 5  [4-5]        <-> 0  [0-5]
 *   rank 5  [5]         <-> 4  [4-5]        <-> 2  [0-5]
 *
 * Every exchange joins two neighbouring blocks of ranks and the lower block is the left operand, so
 * the result is right for operations that do not commute, and the tree is equal on all ranks.
 *
 * dst = src OP dst makes the right operand the destination: towards a higher partner the result is
 * in the memory that received, towards a lower one in the memory that was sent. The latter must
 * wait until the send is acknowledged; longer vectors therefore go on in a copy made meanwhile.
 *
 * Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication
 * Operations in MPICH", IJHPCA 19(1), 2005, section 4.5. Deviation: placing of operands as above.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/forecast.h"
#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_FOLD = 0, TAG_RESULT = 1, TAG_STEP = 2 };

/** What this rank holds while the exchange goes on. */
typedef struct doubling {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint64_t bytes;               /* of the vector */
    int32_t steps;                /* exchanges */
    int32_t folded;               /* ranks that step aside: size - 2^steps */
    uint32_t slots;               /* staging slots in use */
    r2_region_t acc;              /* product so far */
    uint32_t acc_op;              /* op that wrote it */
    uint32_t acc_sent;            /* last send that reads it */
    uint32_t out_sent;            /* last send that reads OUT */
} doubling_t;

static int32_t r2_doubling_steps(int32_t size)
{
    int32_t steps = 0;

    while ((int64_t) 2 << steps <= size) {
        ++steps;
    }
    return steps;
}

static uint64_t r2_allreduce_doubling_scratch(const r2_plan_input_t *input)
{
    /* per step one slot to receive and one to go on in; the step before counts, too */
    return 2 * ((uint64_t) r2_doubling_steps(input->size) + 1) * r2_vector_slot_bytes(input);
}

/** Position among the ranks that exchange. */
static int32_t r2_doubling_position(const doubling_t *d)
{
    return d->input->rank < 2 * d->folded ? d->input->rank / 2 : d->input->rank - d->folded;
}

static int32_t r2_doubling_rank(const doubling_t *d, int32_t position)
{
    return position < d->folded ? 2 * position : position + d->folded;
}

static r2_region_t r2_doubling_slot(doubling_t *d)
{
    return r2_at(R2_BUF_SCRATCH, d->slots++ * r2_vector_slot_bytes(d->input));
}

/** The product moves to other memory in a step towards `peer`. */
static bool r2_doubling_moves(const doubling_t *d, int32_t peer, bool first)
{
    return peer > d->input->rank || d->bytes > d->input->copy_max_bytes ||
           (first && !d->input->in_place);
}

/** New memory for the product: OUT if it stays there for good. */
static r2_region_t r2_doubling_target(doubling_t *d, bool last_move)
{
    return last_move && !d->input->in_place ? r2_at(R2_BUF_OUT, 0) : r2_doubling_slot(d);
}

static void r2_doubling_hold(doubling_t *d, r2_region_t acc, uint32_t op)
{
    d->acc = acc;
    d->acc_op = op;
    d->acc_sent = R2_OP_NONE;
}

/** acc = product of the peer OP acc. */
static void r2_doubling_join_lower(doubling_t *d, r2_region_t from, uint32_t arrived, bool moves,
                                   bool last_move)
{
    if (moves) {
        r2_region_t target = r2_doubling_target(d, last_move);
        uint32_t copied = r2_add_copy(d->schedule, d->acc, target, d->bytes, R2_AFTER(d->acc_op));

        r2_doubling_hold(d, target, copied);
    }
    /* the send waited for what was sent */
    d->acc_op =
        r2_add_reduce(d->schedule, from, d->acc, d->bytes,
                      R2_AFTER(arrived, R2_OP_NONE == d->acc_sent ? d->acc_op : d->acc_sent));
}

/** One exchange with (or, `to_peer` false, delivery from) a partner. */
static void r2_doubling_exchange(doubling_t *d, int32_t peer, uint32_t tag, bool to_peer,
                                 bool moves, bool last_move)
{
    const bool lower = peer < d->input->rank;
    const r2_msg_t msg = {.peer = peer, .tag = tag, .bytes = d->bytes};
    r2_region_t from = lower ? r2_doubling_slot(d) : r2_doubling_target(d, last_move);
    uint32_t arrived = r2_add_recv(d->schedule, msg, from, R2_AT_ONCE);
    uint32_t joined;

    if (to_peer) {
        d->acc_sent = r2_add_send(d->schedule, msg, d->acc, R2_AFTER(d->acc_op));
        if (R2_BUF_OUT == d->acc.buf) {
            d->out_sent = d->acc_sent;
        }
    }
    if (lower) {
        r2_doubling_join_lower(d, from, arrived, moves, last_move);
        return;
    }
    joined = r2_add_reduce(d->schedule, d->acc, from, d->bytes, R2_AFTER(arrived, d->acc_op));
    r2_doubling_hold(d, from, joined);
}

/** A rank that steps aside: gives its contribution to its neighbour and gets the result. */
static void r2_doubling_aside(doubling_t *d)
{
    const int32_t neighbour = d->input->rank - 1;
    const r2_msg_t give = {.peer = neighbour, .tag = TAG_FOLD, .bytes = d->bytes};
    const r2_msg_t take = {.peer = neighbour, .tag = TAG_RESULT, .bytes = d->bytes};
    uint32_t sent = r2_add_send(d->schedule, give, d->acc, R2_AT_ONCE);

    r2_add_recv(d->schedule, take, r2_at(R2_BUF_OUT, 0),
                R2_AFTER(d->input->in_place ? sent : R2_OP_NONE));
}

/** Partner in a step; step -1 is the fold before the exchanges. */
static int32_t r2_doubling_partner(const doubling_t *d, int32_t step)
{
    return step < 0 ? d->input->rank + 1
                    : r2_doubling_rank(d, r2_doubling_position(d) ^ (1 << step));
}

static void r2_doubling_all_steps(doubling_t *d, int32_t first)
{
    int32_t last_move = first - 1;

    for (int32_t step = first; step < d->steps; ++step) {
        if (r2_doubling_moves(d, r2_doubling_partner(d, step), step == first)) {
            last_move = step;
        }
    }
    for (int32_t step = first; step < d->steps; ++step) {
        int32_t peer = r2_doubling_partner(d, step);

        r2_doubling_exchange(d, peer, step < 0 ? TAG_FOLD : TAG_STEP + (uint32_t) step, step >= 0,
                             r2_doubling_moves(d, peer, step == first), step == last_move);
    }
}

static r2_status_t r2_allreduce_doubling_build(const r2_plan_input_t *input,
                                               r2_schedule_t *schedule)
{
    doubling_t d = {.input = input,
                    .schedule = schedule,
                    .acc = r2_at(r2_input_buf(input), 0),
                    .acc_op = R2_OP_NONE,
                    .acc_sent = R2_OP_NONE,
                    .out_sent = R2_OP_NONE};
    bool has_neighbour;

    d.bytes = input->count * input->element_bytes;
    d.steps = r2_doubling_steps(input->size);
    d.folded = input->size - (1 << d.steps);
    r2_plan_note_message(schedule, d.bytes);
    has_neighbour = input->rank < 2 * d.folded;
    if (has_neighbour && 1 == input->rank % 2) {
        r2_doubling_aside(&d);
        return R2_OK;
    }
    r2_doubling_all_steps(&d, has_neighbour ? -1 : 0);
    if (has_neighbour) {
        const r2_msg_t msg = {.peer = input->rank + 1, .tag = TAG_RESULT, .bytes = d.bytes};

        r2_add_send(schedule, msg, d.acc, R2_AFTER(d.acc_op));
    }
    if (R2_BUF_OUT != d.acc.buf) {
        r2_add_copy(schedule, d.acc, r2_at(R2_BUF_OUT, 0), d.bytes, R2_AFTER(d.acc_op, d.out_sent));
    }
    schedule->scratch_bytes = d.slots * r2_vector_slot_bytes(input);
    return R2_OK;
}

static bool r2_allreduce_doubling_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return r2_threshold_exchange_ranks != input->size &&
           r2_is_short(input, total_bytes, r2_threshold_allreduce_short_bytes,
                       r2_threshold_allreduce_short_bytes_per_rank);
}

static r2_status_t r2_allreduce_doubling_forecast(const r2_forecast_input_t *of,
                                                  r2_prediction_t *prediction_p)
{
    prediction_p->ns = r2_cost_doubling_ns(&of->ranks, &of->params, of->bytes);
    return R2_OK;
}

const r2_algorithm_t r2_allreduce_doubling = {.name = "recursive-doubling",
                                              .build = r2_allreduce_doubling_build,
                                              .scratch = r2_allreduce_doubling_scratch,
                                              .pays = r2_allreduce_doubling_pays,
                                              .forecast = r2_allreduce_doubling_forecast,
                                              .shape = r2_cost_doubling_shape,
                                              .steps = r2_cost_doubling_steps};
