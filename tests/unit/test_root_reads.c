/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A root whose short broadcasts are over when they have started reads acknowledgements all the
 * same: its calls hold the service thread off.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ctx/state.h"
#include "r2/coll.h"
#include "thread_job.h"

#define CALLS 60u
#define BYTES 1000u

static void stand_in_after(thread_rank_t *rank, uint32_t us)
{
    r2_core_enter(&rank->ctx->core);
    rank->ctx->core.params.takeover_us = us;
    r2_core_leave(&rank->ctx->core);
}

static void call(r2_comm_t *comm, const r2_coll_args_t *args, thread_rank_t *rank)
{
    r2_coll_t *coll;

    if (R2_OK != r2_coll_post(comm, args, NULL, NULL, &coll)) {
        abort();
    }
    if (R2_OK != r2_coll_wait(coll)) {
        thread_wrong(rank, 0, "call", 0);
    }
    r2_coll_release(coll);
}

static uint64_t packets_read(thread_rank_t *rank)
{
    uint64_t packets;

    r2_core_enter(&rank->ctx->core);
    packets = rank->ctx->core.counters.rx_packets;
    r2_core_leave(&rank->ctx->core);
    return packets;
}

static void app_main(thread_rank_t *rank, uint32_t thread)
{
    static const uint32_t ranks[RANKS] = {0, 1, 2, 3};
    const r2_coll_args_t barrier = {.kind = R2_COLL_BARRIER, .element_bytes = 1};
    char data[BYTES] = {0};
    const r2_coll_args_t bcast = {
        .kind = R2_COLL_BCAST, .out = data, .in_place = true, .count = BYTES, .element_bytes = 1};
    uint64_t before;
    r2_comm_t *comm;

    (void) thread;
    if (R2_OK !=
        r2_comm_create(rank->ctx, (r2_comm_id_t){7, 0}, ranks, RANKS, (int32_t) rank->idx, &comm)) {
        abort();
    }
    call(comm, &barrier, rank);
    if (0 == rank->idx) {
        stand_in_after(rank, 10u * 1000000u); /* nobody reads in its place */
    }
    before = packets_read(rank);
    for (unsigned i = 0; i < CALLS; ++i) {
        call(comm, &bcast, rank);
        thread_nap(0 == rank->idx ? 500 : 0);
    }
    if (0 == rank->idx && packets_read(rank) == before) {
        thread_wrong(rank, 0, "nothing was read", CALLS);
    }
    stand_in_after(rank, 1000);
    thread_nap(0 == rank->idx ? 0 : 20000); /* their service threads stand in */
    call(comm, &barrier, rank);
    r2_comm_destroy(comm);
}

static void root_reads(void **state)
{
    static const thread_use_t use = {.threads = 1, .app = app_main};

    (void) state;
    thread_job_run(&use, (thread_plan_t){.rounds = 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(root_reads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
