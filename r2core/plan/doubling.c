/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Recursive doubling, in rank order: for short vectors.
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

#include "plan/doubling.h"

#include "base/util.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_FOLD = 0, TAG_RESULT = 1, TAG_STEP = R2_DOUBLING_TAG_STEP };

r2_doubling_t r2_doubling_of(const r2_plan_input_t *input, r2_schedule_t *schedule, int32_t count,
                             int32_t place)
{
    return (r2_doubling_t){.input = input,
                           .schedule = schedule,
                           .count = count,
                           .place = place,
                           .bytes = input->count * input->element_bytes,
                           .acc = r2_at(r2_input_buf(input), 0),
                           .acc_op = R2_OP_NONE,
                           .is_own = input->in_place,
                           .acc_sent = R2_OP_NONE,
                           .out_sent = R2_OP_NONE};
}

int32_t r2_doubling_steps(int32_t count)
{
    int32_t steps = 0;

    while ((int64_t) 2 << steps <= count) {
        ++steps;
    }
    return steps;
}

/** Position among those that exchange. */
static int32_t r2_doubling_position(const r2_doubling_t *d)
{
    return d->place < 2 * d->folded ? d->place / 2 : d->place - d->folded;
}

static int32_t r2_doubling_place(const r2_doubling_t *d, int32_t position)
{
    return position < d->folded ? 2 * position : position + d->folded;
}

static int32_t r2_doubling_rank(const r2_doubling_t *d, int32_t place)
{
    return NULL == d->hosts ? place : d->hosts->ranks[d->hosts->first[place]];
}

r2_region_t r2_doubling_slot(r2_doubling_t *d)
{
    return r2_at(R2_BUF_SCRATCH, d->slots++ * r2_vector_slot_bytes(d->input));
}

/** The product moves to other memory in a step towards `peer`. */
static bool r2_doubling_moves(const r2_doubling_t *d, int32_t peer, bool first)
{
    return peer > d->place || d->bytes > d->input->copy_max_bytes || (first && !d->is_own);
}

/** New memory for the product: OUT if it stays there for good. */
static r2_region_t r2_doubling_target(r2_doubling_t *d, bool last_move)
{
    return last_move && !d->input->in_place ? r2_at(R2_BUF_OUT, 0) : r2_doubling_slot(d);
}

static void r2_doubling_hold(r2_doubling_t *d, r2_region_t acc, uint32_t op)
{
    d->acc = acc;
    d->acc_op = op;
    d->acc_sent = R2_OP_NONE;
}

/** acc = product of the peer OP acc. */
static void r2_doubling_join_lower(r2_doubling_t *d, r2_region_t from, uint32_t arrived, bool moves,
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

/** One exchange with (or, `to_peer` false, delivery from) the partner in a place. */
static void r2_doubling_exchange(r2_doubling_t *d, int32_t peer, uint32_t tag, bool to_peer,
                                 bool moves, bool last_move)
{
    const bool lower = peer < d->place;
    const r2_msg_t msg = {.peer = r2_doubling_rank(d, peer), .tag = tag, .bytes = d->bytes};
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

/** One that steps aside: gives what it has to its neighbour and gets the result. */
static void r2_doubling_aside(r2_doubling_t *d)
{
    const int32_t neighbour = r2_doubling_rank(d, d->place - 1);
    const r2_msg_t give = {.peer = neighbour, .tag = TAG_FOLD, .bytes = d->bytes};
    const r2_msg_t take = {.peer = neighbour, .tag = TAG_RESULT, .bytes = d->bytes};
    const uint32_t sent = r2_add_send(d->schedule, give, d->acc, R2_AFTER(d->acc_op));
    const uint32_t arrived = r2_add_recv(d->schedule, take, r2_at(R2_BUF_OUT, 0),
                                         R2_AFTER(d->input->in_place ? sent : R2_OP_NONE));

    r2_doubling_hold(d, r2_at(R2_BUF_OUT, 0), arrived);
}

/** Partner in a step; step -1 is the fold before the exchanges. */
static int32_t r2_doubling_partner(const r2_doubling_t *d, int32_t step)
{
    return step < 0 ? d->place + 1 : r2_doubling_place(d, r2_doubling_position(d) ^ (1 << step));
}

static void r2_doubling_all_steps(r2_doubling_t *d, int32_t first)
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

void r2_doubling_run(r2_doubling_t *d)
{
    bool has_neighbour;

    d->steps = r2_doubling_steps(d->count);
    d->folded = d->count - (1 << d->steps);
    has_neighbour = d->place < 2 * d->folded;
    if (has_neighbour && 1 == d->place % 2) {
        r2_doubling_aside(d);
        return;
    }
    r2_doubling_all_steps(d, has_neighbour ? -1 : 0);
    if (has_neighbour) {
        const r2_msg_t msg = {
            .peer = r2_doubling_rank(d, d->place + 1), .tag = TAG_RESULT, .bytes = d->bytes};

        r2_add_send(d->schedule, msg, d->acc, R2_AFTER(d->acc_op));
    }
    if (R2_BUF_OUT != d->acc.buf) {
        r2_add_copy(d->schedule, d->acc, r2_at(R2_BUF_OUT, 0), d->bytes,
                    R2_AFTER(d->acc_op, d->out_sent));
    }
}

bool r2_doubling_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return r2_threshold_exchange_ranks != input->size &&
           r2_is_short(input, total_bytes, r2_threshold_allreduce_short_bytes,
                       r2_threshold_allreduce_short_bytes_per_rank);
}
