/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce up a binomial tree, in rank order: for short vectors.
 *
 * Six ranks, root 2. [a-b] is the ordered product of the contributions of ranks a to b.
 *
 *            step 0          step 1          step 2          last
 *   rank 0   from 1 [0-1]    from 2 [0-3]    from 4 [0-5]    -> 2
 *   rank 1   -> 0
 *   rank 2   from 3 [2-3]    -> 0                            the result
 *   rank 3   -> 2
 *   rank 4   from 5 [4-5]                    -> 0
 *   rank 5   -> 4
 *
 * The tree is over ranks whatever the root is, so that operations need not commute and the result
 * does not depend on the root; where the root is not rank 0, one more message brings the result
 * there. The higher operand is the destination, so each product is where the child's message
 * arrived.
 *
 * Source: folklore; see R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.4.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_UP = 0, TAG_RESULT = 1 };

typedef struct binomial {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint64_t bytes;
    r2_region_t acc;   /* product so far */
    uint32_t acc_op;   /* op that wrote it */
    uint32_t own_read; /* op that reads this rank's contribution */
    uint32_t slots;
} binomial_t;

static uint64_t r2_reduce_binomial_scratch(const r2_plan_input_t *input)
{
    return r2_steps_below(input->size) * r2_vector_slot_bytes(input);
}

/** The result is made where it belongs: at the root, if nothing of its own is there. */
static bool r2_binomial_ends_in_out(const binomial_t *b)
{
    return 0 == b->input->rank && 0 == b->input->root && !b->input->in_place;
}

/** acc = acc OP the product of a child's subtree. */
static void r2_binomial_child(binomial_t *b, int32_t child, bool last)
{
    const r2_msg_t msg = {.peer = child, .tag = TAG_UP, .bytes = b->bytes};
    r2_region_t from = r2_at(R2_BUF_OUT, 0);
    uint32_t arrived, joined;

    if (!last || !r2_binomial_ends_in_out(b)) {
        from = r2_at(R2_BUF_SCRATCH, b->slots++ * r2_vector_slot_bytes(b->input));
    }
    arrived = r2_add_recv(b->schedule, msg, from, R2_AT_ONCE);
    joined = r2_add_reduce(b->schedule, b->acc, from, b->bytes, R2_AFTER(arrived, b->acc_op));
    b->own_read = R2_OP_NONE == b->own_read ? joined : b->own_read;
    b->acc = from;
    b->acc_op = joined;
}

/** @return ranks down to the parent; rank 0: a power of two above all ranks. */
static int64_t r2_binomial_children(binomial_t *b)
{
    const int64_t rank = b->input->rank, size = b->input->size;
    int64_t bit = 1;

    while (bit < size && 0 == (rank & bit)) {
        if (rank + bit < size) {
            r2_binomial_child(b, (int32_t) (rank + bit), 0 == rank && 2 * bit >= size);
        }
        bit *= 2;
    }
    return bit;
}

static void r2_binomial_send(binomial_t *b, int32_t peer, uint32_t tag)
{
    const r2_msg_t msg = {.peer = peer, .tag = tag, .bytes = b->bytes};
    uint32_t sent = r2_add_send(b->schedule, msg, b->acc, R2_AFTER(b->acc_op));

    b->own_read = R2_OP_NONE == b->own_read ? sent : b->own_read;
}

static r2_status_t r2_reduce_binomial_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    binomial_t b = {.input = input,
                    .schedule = schedule,
                    .bytes = input->count * input->element_bytes,
                    .acc = r2_at(r2_input_buf(input), 0),
                    .acc_op = R2_OP_NONE,
                    .own_read = R2_OP_NONE};
    int64_t down;

    r2_plan_note_message(schedule, b.bytes);
    down = r2_binomial_children(&b);
    if (0 != input->rank) {
        r2_binomial_send(&b, (int32_t) (input->rank - down), TAG_UP);
    } else if (0 != input->root) {
        r2_binomial_send(&b, input->root, TAG_RESULT);
    } else if (R2_BUF_OUT != b.acc.buf) {
        r2_add_copy(schedule, b.acc, r2_at(R2_BUF_OUT, 0), b.bytes, R2_AFTER(b.acc_op));
    }
    if (0 != input->rank && input->root == input->rank) {
        const r2_msg_t msg = {.peer = 0, .tag = TAG_RESULT, .bytes = b.bytes};

        r2_add_recv(schedule, msg, r2_at(R2_BUF_OUT, 0),
                    R2_AFTER(input->in_place ? b.own_read : R2_OP_NONE));
    }
    schedule->scratch_bytes = b.slots * r2_vector_slot_bytes(input);
    return R2_OK;
}

static bool r2_reduce_binomial_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return r2_is_short(input, total_bytes, r2_threshold_reduce_short_bytes,
                       r2_threshold_reduce_short_bytes_per_rank);
}

/** Of blocks of ranks: the first host takes in a vector for each step between hosts. */
static r2_cost_shape_t r2_reduce_binomial_shape(const r2_topology_t *topology,
                                                const r2_topology_placement_t *placement)
{
    const uint64_t between = r2_steps_below((int32_t) topology->host_count);
    const uint64_t within = r2_steps_below(topology->rank_count) - between;

    (void) placement;
    return (r2_cost_shape_t){.steps = between,
                             .messages = between,
                             .local_steps = within,
                             .local_messages = within,
                             .part = between,
                             .whole = 1};
}

const r2_algorithm_t r2_reduce_binomial = {.name = "binomial",
                                           .build = r2_reduce_binomial_build,
                                           .scratch = r2_reduce_binomial_scratch,
                                           .pays = r2_reduce_binomial_pays,
                                           .shape = r2_reduce_binomial_shape};
