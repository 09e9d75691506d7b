/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce by pipelined direct exchange in canonical rank order: for long vectors.
 *
 * The vector is cut into a share for every rank but the root, shares into segments. Every rank
 * sends its contribution to a share to the owner, who folds them in canonical order (fold.c) and
 * sends the result to the root. Four ranks, root 0; c> are contributions, r> is a result:
 *
 *   rank 0   c> 1 to 1, 2 to 2, 3 to 3;                gets r 1, 2, 3
 *   rank 1   c> 2 to 2, 3 to 3;           folds 1, r> 0
 *   rank 2   c> 3 to 3, 1 to 1;           folds 2, r> 0
 *   rank 3   c> 1 to 1, 2 to 2;           folds 3, r> 0
 *
 * Every rank, the root too, sends the vector once and receives it once. The tree is that of the
 * other direct exchanges: x0 OP (x1 OP (x2 OP x3)).
 *
 * Source: R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004
 * (reduce-scatter and gather). Deviation: direct exchange, no share for the root, segments,
 * canonical order.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/fold.h"
#include "plan/thresholds.h"

typedef struct direct {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t shares;           /* share i belongs to rank root + 1 + i */
    uint64_t segment_bytes;
    r2_fold_t fold;
} direct_t;

static int32_t r2_direct_owner(const direct_t *d, int32_t share)
{
    return (int32_t) (((int64_t) d->input->root + 1 + share) % d->input->size);
}

static r2_msg_t r2_direct_msg(const direct_t *d, int32_t peer, int32_t share, uint32_t k,
                              bool result)
{
    return (r2_msg_t){
        .peer = peer,
        .tag = 2 * k + (result ? 1 : 0),
        .order = k,
        .bytes = r2_segment_length(r2_layout_bytes(&d->shares, share), d->segment_bytes, k)};
}

static r2_region_t r2_direct_region(const direct_t *d, r2_buf_t buf, int32_t share, uint32_t k)
{
    return r2_at(buf, d->shares.start[share] + k * d->segment_bytes);
}

/** The root: contributes, and takes the results, in place over what it has sent. */
static void r2_direct_root(direct_t *d, uint32_t k)
{
    for (int32_t share = 0; share < d->shares.size; ++share) {
        const int32_t owner = r2_direct_owner(d, share);
        uint32_t sent =
            r2_add_send(d->schedule, r2_direct_msg(d, owner, share, k, false),
                        r2_direct_region(d, r2_input_buf(d->input), share, k), R2_AT_ONCE);

        r2_add_recv(d->schedule, r2_direct_msg(d, owner, share, k, true),
                    r2_direct_region(d, R2_BUF_OUT, share, k),
                    R2_AFTER(d->input->in_place ? sent : R2_OP_NONE));
    }
}

static void r2_direct_other(direct_t *d, int32_t own, uint32_t k)
{
    const int32_t owners = d->shares.size;
    const r2_msg_t result = r2_direct_msg(d, d->input->root, own, k, true);
    const r2_fold_segment_t segment = {.index = k,
                                       .tag = 2 * k,
                                       .bytes = result.bytes,
                                       .own = r2_direct_region(d, R2_BUF_IN, own, k)};
    uint32_t folded;

    for (int32_t step = 1; step < owners; ++step) {
        const int32_t share = (own + step) % owners;

        r2_add_send(d->schedule, r2_direct_msg(d, r2_direct_owner(d, share), share, k, false),
                    r2_direct_region(d, R2_BUF_IN, share, k), R2_AT_ONCE);
    }
    if (segment.bytes > 0) {
        folded = r2_fold_contributions(&d->fold, &segment);
        r2_fold_release(&d->fold, &segment,
                        r2_add_send(d->schedule, result, r2_fold_accumulator(&d->fold, &segment),
                                    R2_AFTER(folded)));
    }
}

static r2_status_t r2_direct_ops(direct_t *d)
{
    const r2_plan_input_t *input = d->input;
    const uint32_t segments = r2_segment_count(d->shares.largest_bytes, d->segment_bytes);
    const bool root = input->rank == input->root;
    const int32_t own =
        (int32_t) (((int64_t) input->rank - input->root - 1 + input->size) % input->size);
    const uint64_t own_bytes = root ? 0 : r2_layout_bytes(&d->shares, own);
    r2_status_t status = r2_fold_init(&d->fold, input, d->schedule, true, d->segment_bytes,
                                      r2_segment_count(own_bytes, d->segment_bytes));

    for (uint32_t k = 0; R2_OK == status && k < segments; ++k) {
        if (root) {
            r2_direct_root(d, k);
        } else {
            r2_direct_other(d, own, k);
        }
    }
    r2_fold_fini(&d->fold);
    return status;
}

static r2_status_t r2_reduce_direct_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    direct_t d = {.input = input, .schedule = schedule};
    r2_status_t status =
        r2_layout_shares(&d.shares, input->size - 1, input->count, input->element_bytes);

    if (R2_OK != status) {
        return status;
    }
    d.segment_bytes = r2_segment_bytes_exchanged(input, d.shares.largest_bytes);
    r2_plan_note_message(schedule, d.segment_bytes);
    status = r2_direct_ops(&d);
    r2_layout_fini(&d.shares);
    return status;
}

static bool r2_reduce_direct_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    (void) total_bytes;
    return input->size > 2 && input->size <= r2_threshold_ring_ranks;
}

/** Contributions to the owners on other hosts, and one result. */
static r2_cost_shape_t r2_reduce_direct_shape(const r2_topology_t *topology,
                                              const r2_topology_placement_t *placement)
{
    r2_cost_shape_t shape = r2_cost_half_shape(topology, placement);

    ++shape.steps;
    ++shape.messages;
    shape.part += placement->most;
    return shape;
}

const r2_algorithm_t r2_reduce_direct = {.name = "direct",
                                         .build = r2_reduce_direct_build,
                                         .pays = r2_reduce_direct_pays,
                                         .shape = r2_reduce_direct_shape};
