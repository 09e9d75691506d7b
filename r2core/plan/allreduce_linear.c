/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce through rank 0: all send their vectors to it, and it sends the result to all. For
 * vectors of middle length on few ranks that share cores.
 *
 * Three ranks, two steps:
 *
 *            step 1                             step 2
 *   rank 0   folds x0 OP (x1 OP x2)             result -> 1, 2
 *   rank 1   x1 -> 0                            gets it
 *   rank 2   x2 -> 0                            gets it
 *
 * 2 (n - 1) messages in all, where `direct` sends n times as many, and a rank other than 0 waits
 * once. But rank 0 takes in n - 1 vectors, sends as many and folds them all, while the others have
 * nothing to do: it is for processes that would not have had a core meanwhile. Long vectors go in
 * segments. The order is that of direct exchange (fold.c): both give the same bits.
 *
 * Source: folklore (linear reduce and broadcast).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/bcast_levels.h"
#include "plan/fold.h"

/** Rank 0 owns all of the vector: the rest is as in `direct`. */
static r2_status_t r2_linear_layout(const r2_plan_input_t *input, r2_layout_t *layout_p)
{
    uint64_t *weights = calloc((size_t) input->size, sizeof(*weights));
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL != weights) {
        weights[0] = 1;
        status =
            r2_layout_weighted(layout_p, input->size, weights, input->count, input->element_bytes);
    }
    free(weights);
    return status;
}

static r2_status_t r2_allreduce_linear_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    r2_layout_t shares;
    r2_status_t status = r2_linear_layout(input, &shares);

    if (R2_OK == status) {
        status = r2_build_allreduce_shares(input, schedule, &shares, r2_fold_segment_bytes(input));
        r2_layout_fini(&shares);
    }
    return status;
}

/** The least that a fold works with: two segments. */
static uint64_t r2_allreduce_linear_scratch(const r2_plan_input_t *input)
{
    return 2 * r2_round_up(r2_fold_segment_bytes(input), R2_SLOT_ALIGN);
}

/** Only in place of algorithms with the same order of reduction: where hosts have several ranks,
 * the usual one may fold within them. */
static bool r2_allreduce_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return 2 < input->size && 1 == r2_bcast_hosts(input).most &&
           r2_crowded_pays(input, total_bytes, (uint64_t) input->size - 1);
}

const r2_algorithm_t r2_allreduce_linear = {.name = "linear",
                                            .build = r2_allreduce_linear_build,
                                            .scratch = r2_allreduce_linear_scratch,
                                            .pays = r2_allreduce_linear_pays};
