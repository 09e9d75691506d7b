/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce down a chain of ranks, pipelined, in canonical order: for long vectors on very many
 * ranks.
 *
 * Three ranks, root 1, x = contributions; each rank works on a segment while the next ones are on
 * their way:
 *
 *   rank 2   sends x2 to 1
 *   rank 1   a = x1 OP x2, sends a to 0                  gets the result
 *   rank 0   a = x0 OP a, sends a to 1 (root 0: keeps it)
 *
 * Every rank but the ends takes in the vector once and sends it once. The tree is the one of the
 * direct exchange: x0 OP (x1 OP x2).
 *
 * Source: folklore (pipelined linear tree); see J. Pjesivac-Grbovic et al., "Performance Analysis
 * of MPI Collective Operations", Cluster Computing 10(2), 2007. Deviation: ends at rank 0 for any
 * root.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/ops.h"
#include "plan/slots.h"

typedef struct chain {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint64_t segment_bytes;
    r2_slots_t slots;
} chain_t;

static r2_msg_t r2_chain_msg(const chain_t *c, int32_t peer, uint32_t k, bool result)
{
    return (r2_msg_t){.peer = peer,
                      .tag = 2 * k + (result ? 1 : 0),
                      .order = k,
                      .bytes = r2_segment_length(c->input->count * c->input->element_bytes,
                                                 c->segment_bytes, k)};
}

/** Joins this rank's segment and what has come down the chain. @return op that reads its own
 * segment. */
static uint32_t r2_chain_join(chain_t *c, uint32_t k)
{
    const r2_plan_input_t *input = c->input;
    const bool ends = 0 == input->rank && 0 == input->root;
    const r2_region_t own = r2_at(r2_input_buf(input), k * c->segment_bytes);
    const r2_region_t out = r2_at(R2_BUF_OUT, k * c->segment_bytes);
    const r2_msg_t from = r2_chain_msg(c, input->rank + 1, k, false);
    const int32_t next = 0 == input->rank ? input->root : input->rank - 1;
    uint32_t arrived, joined;
    r2_slot_t slot;

    if (ends && !input->in_place) {
        arrived = r2_add_recv(c->schedule, from, out, R2_AT_ONCE);
        return r2_add_reduce(c->schedule, own, out, from.bytes, R2_AFTER(arrived));
    }
    slot = r2_slots_take(&c->slots);
    arrived = r2_add_recv(c->schedule, from, slot.place, R2_AFTER(slot.free_op));
    joined = r2_add_reduce(c->schedule, own, slot.place, from.bytes, R2_AFTER(arrived));
    r2_slots_give(&c->slots, &slot,
                  ends ? r2_add_copy(c->schedule, slot.place, out, from.bytes, R2_AFTER(joined))
                       : r2_add_send(c->schedule, r2_chain_msg(c, next, k, 0 == input->rank),
                                     slot.place, R2_AFTER(joined)));
    return joined;
}

static void r2_chain_segment(chain_t *c, uint32_t k)
{
    const r2_plan_input_t *input = c->input;
    const r2_region_t own = r2_at(r2_input_buf(input), k * c->segment_bytes);
    uint32_t read;

    read =
        input->rank == input->size - 1
            ? r2_add_send(c->schedule, r2_chain_msg(c, input->rank - 1, k, false), own, R2_AT_ONCE)
            : r2_chain_join(c, k);
    if (0 != input->rank && input->root == input->rank) {
        r2_add_recv(c->schedule, r2_chain_msg(c, 0, k, true),
                    r2_at(R2_BUF_OUT, k * c->segment_bytes),
                    R2_AFTER(input->in_place ? read : R2_OP_NONE));
    }
}

static r2_status_t r2_reduce_chain_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    chain_t c = {.input = input,
                 .schedule = schedule,
                 .segment_bytes = r2_chain_segment_bytes(input)};
    const uint32_t segments =
        r2_segment_count(input->count * input->element_bytes, c.segment_bytes);
    const bool direct = 0 == input->rank && 0 == input->root && !input->in_place;
    const bool staged = input->rank < input->size - 1 && !direct;
    r2_status_t status =
        r2_slots_init(&c.slots, input, schedule, c.segment_bytes, staged ? segments : 0);

    if (R2_OK != status) {
        return status;
    }
    r2_plan_note_message(schedule, c.segment_bytes);
    for (uint32_t k = 0; k < segments; ++k) {
        r2_chain_segment(&c, k);
    }
    r2_slots_fini(&c.slots);
    return R2_OK;
}

const r2_algorithm_t r2_reduce_chain = {
    .name = "chain", .instead = R2_INSTEAD("chain"), .build = r2_reduce_chain_build};
