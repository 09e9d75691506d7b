/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Barrier through rank 0: for few ranks.
 *
 * All tell rank 0, which tells each when it has heard from all others. Four ranks:
 *
 *            step 0        step 1
 *   rank 0   1, 2, 3 ->    -> 1, 2, 3
 *   rank 1   -> 0          0 ->
 *   rank 2   -> 0          0 ->
 *   rank 3   -> 0          0 ->
 *
 * 2 (n - 1) messages in all, where dissemination has n log2 n. And rank 0 is the first to leave:
 * what it gives to all next, as a root mostly does, is there when the others come.
 *
 * Messages are one byte long and nobody reads it: staging memory need not be set.
 *
 * Source: folklore (linear barrier).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

/* Byte 0 is sent, byte `peer` received; of others than rank 0 byte 1. */
static r2_status_t r2_barrier_linear_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const int32_t peers = 0 == input->rank ? input->size - 1 : 1;
    uint32_t *heard = malloc((size_t) peers * sizeof(*heard));

    if (NULL == heard) {
        return R2_ERR_NO_MEMORY;
    }
    r2_plan_note_message(schedule, 1);
    schedule->scratch_bytes = 1 + (uint64_t) peers;
    for (int32_t i = 0; i < peers; ++i) {
        const r2_msg_t msg = {.peer = 0 == input->rank ? 1 + i : 0, .bytes = 1};

        heard[i] = r2_add_recv(schedule, msg, r2_at(R2_BUF_SCRATCH, 1 + (uint64_t) i), R2_AT_ONCE);
    }
    for (int32_t i = 0; i < peers; ++i) {
        const r2_msg_t msg = {.peer = 0 == input->rank ? 1 + i : 0, .bytes = 1};
        const uint32_t own = heard[i]; /* its receiver knows that it is there */

        heard[i] = R2_OP_NONE;
        r2_add_send(schedule, msg, r2_at(R2_BUF_SCRATCH, 0), heard,
                    0 == input->rank ? (uint32_t) peers : 0);
        heard[i] = own;
    }
    free(heard);
    return R2_OK;
}

static bool r2_barrier_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    (void) total_bytes;
    return 2 < input->size && input->size <= r2_threshold_barrier_linear_ranks;
}

static uint32_t r2_barrier_linear_steps(int32_t size)
{
    return 1 < size ? 2 : 0;
}

const r2_algorithm_t r2_barrier_linear = {.name = "linear",
                                          .build = r2_barrier_linear_build,
                                          .pays = r2_barrier_linear_pays,
                                          .steps = r2_barrier_linear_steps};
