/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast by scatter and allgather, pipelined: for long messages.
 *
 * The vector is cut into a share for every rank but the root, shares into segments. The root sends
 * each share to its owner, who passes every segment on to the others as it arrives. Four ranks,
 * root 0:
 *
 *            root sends      passed on
 *   rank 0   1 -> 1, 2 -> 2, 3 -> 3
 *   rank 1   gets 1          1 -> 2, 3;   gets 2 from 2, 3 from 3
 *   rank 2   gets 2          2 -> 3, 1;   gets 3 from 3, 1 from 1
 *   rank 3   gets 3          3 -> 1, 2;   gets 1 from 1, 2 from 2
 *
 * Both columns overlap. The root sends the vector once, all others receive it once: the least there
 * is.
 *
 * Source: R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.2 (scatter and ring
 * allgather). Deviation: direct exchange, no share for the root, segments.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/layout.h"
#include "plan/ops.h"

typedef struct scatter {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t shares;           /* share i belongs to rank root + 1 + i */
    uint64_t segment_bytes;
} scatter_t;

static int32_t r2_scatter_owner(const scatter_t *s, int32_t share)
{
    return (int32_t) (((int64_t) s->input->root + 1 + share) % s->input->size);
}

static r2_msg_t r2_scatter_msg(const scatter_t *s, int32_t peer, int32_t share, uint32_t k)
{
    return (r2_msg_t){
        .peer = peer,
        .tag = k,
        .order = k,
        .bytes = r2_segment_length(r2_layout_bytes(&s->shares, share), s->segment_bytes, k)};
}

static r2_region_t r2_scatter_region(const scatter_t *s, int32_t share, uint32_t k)
{
    return r2_at(R2_BUF_OUT, s->shares.start[share] + k * s->segment_bytes);
}

static void r2_scatter_root(scatter_t *s, uint32_t k)
{
    for (int32_t share = 0; share < s->shares.size; ++share) {
        r2_add_send(s->schedule, r2_scatter_msg(s, r2_scatter_owner(s, share), share, k),
                    r2_scatter_region(s, share, k), R2_AT_ONCE);
    }
}

static void r2_scatter_other(scatter_t *s, int32_t own, uint32_t k)
{
    const int32_t owners = s->shares.size;
    uint32_t arrived = r2_add_recv(s->schedule, r2_scatter_msg(s, s->input->root, own, k),
                                   r2_scatter_region(s, own, k), R2_AT_ONCE);

    for (int32_t step = 1; step < owners; ++step) {
        int32_t share = (own - step + owners) % owners;

        r2_add_recv(s->schedule, r2_scatter_msg(s, r2_scatter_owner(s, share), share, k),
                    r2_scatter_region(s, share, k), R2_AT_ONCE);
    }
    for (int32_t step = 1; step < owners; ++step) {
        int32_t peer = r2_scatter_owner(s, (int32_t) (((int64_t) own + step) % owners));

        r2_add_send(s->schedule, r2_scatter_msg(s, peer, own, k), r2_scatter_region(s, own, k),
                    R2_AFTER(arrived));
    }
}

static r2_status_t r2_bcast_scatter_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    scatter_t s = {.input = input, .schedule = schedule};
    int32_t own = (int32_t) (((int64_t) input->rank - input->root - 1 + input->size) % input->size);
    r2_status_t status =
        r2_layout_shares(&s.shares, input->size - 1, input->count * input->element_bytes, 1);

    if (R2_OK != status) {
        return status;
    }
    s.segment_bytes = r2_segment_bytes_passed_on(input, s.shares.largest_bytes);
    r2_plan_note_message(schedule, s.segment_bytes);
    for (uint32_t k = 0; k < r2_segment_count(s.shares.largest_bytes, s.segment_bytes); ++k) {
        if (input->rank == input->root) {
            r2_scatter_root(&s, k);
        } else {
            r2_scatter_other(&s, own, k);
        }
    }
    r2_layout_fini(&s.shares);
    return R2_OK;
}

const r2_algorithm_t r2_bcast_scatter = {.name = "scatter-allgather",
                                         .build = r2_bcast_scatter_build};
