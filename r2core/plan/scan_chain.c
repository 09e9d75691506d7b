/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Scan and exscan up a chain of ranks, pipelined: for long vectors.
 *
 * Three ranks, x = contributions, s = prefixes; each rank works on a segment while the next ones
 * are on their way:
 *
 *            scan                                exscan
 *   rank 0   s0 = x0, sends s0 to 1              sends x0 to 1
 *   rank 1   s1 = s0 OP x1, sends s1 to 2        gets s0, sends s0 OP x1 to 2
 *   rank 2   s2 = s1 OP x2                       gets s1
 *
 * Every rank receives the vector once and sends it once.
 *
 * Source: folklore (pipelined linear scan); compare P. Sanders, J. L. Traeff, "Parallel Prefix
 * (Scan) Algorithms for MPI", EuroPVM/MPI 2006.
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

static r2_msg_t r2_chain_msg(const chain_t *c, int32_t peer, uint32_t k)
{
    return (r2_msg_t){.peer = peer,
                      .tag = k,
                      .order = k,
                      .bytes = r2_segment_length(c->input->count * c->input->element_bytes,
                                                 c->segment_bytes, k)};
}

static bool r2_chain_is_last(const chain_t *c)
{
    return c->input->rank == c->input->size - 1;
}

static void r2_chain_scan(chain_t *c, uint32_t k)
{
    const r2_plan_input_t *input = c->input;
    const r2_region_t out = r2_at(R2_BUF_OUT, k * c->segment_bytes);
    const r2_msg_t below = r2_chain_msg(c, input->rank - 1, k);
    uint32_t done = R2_OP_NONE;

    if (!input->in_place) {
        done = r2_add_copy(c->schedule, r2_at(R2_BUF_IN, out.offset_bytes), out, below.bytes,
                           R2_AT_ONCE);
    }
    if (0 < input->rank) {
        r2_slot_t slot = r2_slots_take(&c->slots);
        uint32_t arrived = r2_add_recv(c->schedule, below, slot.place, R2_AFTER(slot.free_op));

        done =
            r2_add_reduce_slot(c->schedule, slot.place, out, below.bytes, R2_AFTER(arrived, done));
        r2_slots_give(&c->slots, &slot, done);
    }
    if (!r2_chain_is_last(c)) {
        r2_add_send(c->schedule, r2_chain_msg(c, input->rank + 1, k), out, R2_AFTER(done));
    }
}

static void r2_chain_exscan(chain_t *c, uint32_t k)
{
    const r2_plan_input_t *input = c->input;
    const r2_region_t own = r2_at(r2_input_buf(input), k * c->segment_bytes);
    const r2_region_t out = r2_at(R2_BUF_OUT, k * c->segment_bytes);
    const r2_msg_t below = r2_chain_msg(c, input->rank - 1, k);
    const r2_msg_t above = r2_chain_msg(c, input->rank + 1, k);
    uint32_t arrived, copied, joined;
    r2_slot_t slot;

    if (0 == input->rank) {
        r2_add_send(c->schedule, above, own, R2_AT_ONCE);
        return;
    }
    if (r2_chain_is_last(c)) {
        r2_add_recv(c->schedule, below, out, R2_AT_ONCE);
        return;
    }
    slot = r2_slots_take(&c->slots);
    copied = r2_add_copy(c->schedule, own, slot.place, below.bytes, R2_AFTER(slot.free_op));
    arrived = r2_add_recv(c->schedule, below, out, R2_AFTER(input->in_place ? copied : R2_OP_NONE));
    joined = r2_add_reduce(c->schedule, out, slot.place, below.bytes,
                           R2_AFTER(arrived, input->in_place ? R2_OP_NONE : copied));
    r2_slots_give(&c->slots, &slot, r2_add_send(c->schedule, above, slot.place, R2_AFTER(joined)));
}

static r2_status_t r2_scan_chain_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    chain_t c = {
        .input = input, .schedule = schedule, .segment_bytes = r2_chain_segment_bytes(input)};
    const uint32_t segments =
        r2_segment_count(input->count * input->element_bytes, c.segment_bytes);
    const bool exscan = R2_COLL_EXSCAN == input->kind;
    const bool staged = 0 < input->rank && !(exscan && r2_chain_is_last(&c));
    r2_status_t status =
        r2_slots_init(&c.slots, input, schedule, c.segment_bytes, staged ? segments : 0);

    if (R2_OK != status) {
        return status;
    }
    r2_plan_note_message(schedule, c.segment_bytes);
    for (uint32_t k = 0; k < segments; ++k) {
        if (exscan) {
            r2_chain_exscan(&c, k);
        } else {
            r2_chain_scan(&c, k);
        }
    }
    r2_slots_fini(&c.slots);
    return R2_OK;
}

const r2_algorithm_t r2_scan_chain = {
    .name = "chain", .instead = R2_INSTEAD("chain"), .build = r2_scan_chain_build};
