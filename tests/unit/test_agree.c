/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement by its table, without any collective; and the list of observers that hears of it.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "ctx/agree.h"

#define RANKS 3u
#define RAILS 2u
#define CALLS 4u

/** A process with one communicator, and what agreement had done. */
typedef struct world {
    r2_core_t core;
    r2_estimator_t estimator;
    r2_agree_common_t common;
    r2_host_rail_t rails[RAILS];
    r2_host_t hosts[RANKS];
    r2_hosts_t job;
    r2_health_map_t ours;
    r2_agree_t *agree; /* owned */
    r2_agree_call_t calls[CALLS];
    r2_map_sync_t *sync; /* borrowed: under way */
    r2_status_t refuses;
    bool aborts; /* a map sync that starts is over at once, with an error */
    uint32_t started, ended, begun[CALLS], failed[CALLS], failures;
} world_t;

static world_t *world;
static uint32_t host_of[RANKS] = {0, 1, 2};

static r2_status_t t_start_sync(void *owner, r2_map_sync_t *sync)
{
    assert_ptr_equal(owner, world);
    ++world->started;
    world->sync = sync;
    if (world->aborts) {
        r2_agree_abort(world->agree, R2_ERR_PEER_GONE);
    }
    return world->refuses;
}

static void t_end_sync(void *owner)
{
    assert_ptr_equal(owner, world);
    ++world->ended;
    world->sync = NULL;
}

static r2_status_t t_begin(r2_agree_call_t *call)
{
    ++world->begun[call - world->calls];
    return R2_OK;
}

static void t_fail(r2_agree_call_t *call, r2_status_t status)
{
    assert_int_equal(status, R2_ERR_PEER_GONE);
    ++world->failed[call - world->calls];
}

static void t_fail_all(void *owner, r2_status_t status)
{
    assert_ptr_equal(owner, world);
    assert_int_equal(status, R2_ERR_NO_MEMORY);
    ++world->failures;
}

static const r2_agree_ops_t ops = {
    .start_sync = t_start_sync,
    .end_sync = t_end_sync,
    .begin = t_begin,
    .fail = t_fail,
    .fail_all = t_fail_all,
};

static int setup(void **state)
{
    static const r2_cost_params_t measured;
    const r2_agree_group_t group = {.ranks = host_of, .size = RANKS, .rank = 0};
    r2_agree_group_t ours;

    (void) state;
    world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->core.net.size = RANKS;
    r2_estimator_init(&world->estimator, &world->core, &measured);
    for (uint32_t i = 0; i < RANKS; ++i) {
        world->hosts[i] =
            (r2_host_t){.name = "h", .rails = world->rails, .rail_count = RAILS, .leader = i};
    }
    world->job = (r2_hosts_t){
        .rank_count = RANKS, .host_count = RANKS, .host_of = host_of, .hosts = world->hosts};
    assert_int_equal(r2_health_map_init(&world->ours, RANKS, RAILS), R2_OK);
    world->common = (r2_agree_common_t){.core = &world->core,
                                        .ops = &ops,
                                        .estimator = &world->estimator,
                                        .hosts = &world->job,
                                        .ours = &world->ours};
    ours = group;
    ours.owner = world;
    assert_int_equal(r2_agree_create(&world->common, &ours, &world->agree), R2_OK);
    assert_non_null(world->agree);
    for (uint32_t i = 0; i < CALLS; ++i) {
        world->calls[i] = (r2_agree_call_t){.carrying = true, .blocking = true};
    }
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    r2_agree_destroy(world->agree);
    assert_null(world->common.maps);
    assert_null(world->common.envs);
    assert_null(world->common.ready);
    assert_null(world->common.job);
    r2_health_map_fini(&world->ours);
    free(world);
    return 0;
}

static void lose_a_rail(void)
{
    const r2_health_change_t change = {
        .host_a = 1, .rail = 1, .entry = {.version = 1, .verdict = R2_VERDICT_NIC}};

    assert_true(r2_health_map_merge(&world->ours, &change));
    ++world->core.counters.map_changes;
}

/* The first call finds out that this rank knows more, the second one waits for the map sync. */
static void wait_for_sync(void)
{
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[0]), R2_OK);
    lose_a_rail();
    r2_agree_left(world->agree, &world->calls[0], r2_agree_map_pending(world->agree));
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[1]), R2_IN_PROGRESS);
    r2_agree_wait(world->agree, &world->calls[1]);
    assert_int_equal(world->started, 1);
}

static void calls_begin_at_once_while_all_know_the_same(void **state)
{
    (void) state;
    for (uint32_t i = 0; i < CALLS; ++i) {
        assert_int_equal(r2_agree_enter(world->agree, &world->calls[i]), R2_OK);
        assert_false(r2_agree_map_pending(world->agree));
        r2_agree_left(world->agree, &world->calls[i], false);
    }
    r2_agree_run(&world->common);
    assert_int_equal(world->started, 0);
    assert_true(r2_agree_plan_env(world->agree)->even);
}

static void who_knows_more_has_a_sync_first(void **state)
{
    (void) state;
    wait_for_sync();
    r2_agree_run(&world->common);
    assert_int_equal(world->begun[1], 0);
    assert_true(r2_agree_plan_env(world->agree)->even);
    memcpy(world->sync->taken, world->sync->given, world->sync->bytes);
    r2_agree_synced(world->agree);
    assert_int_equal(world->begun[1], 0); /* only noted */
    r2_agree_run(&world->common);
    assert_int_equal(world->begun[1], 1);
    assert_int_equal(world->ended, 1);
    assert_false(r2_agree_plan_env(world->agree)->even);
    assert_ptr_equal(world->estimator.env, r2_agree_plan_env(world->agree)); /* it was told */
    assert_int_equal(world->core.counters.epochs, 1);
    r2_agree_left(world->agree, &world->calls[1], r2_agree_map_pending(world->agree));
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[2]), R2_OK);
}

/* Three ranks of a host fill a rail of 300 Gbit/s: bytes times ranks times ns exceed 64 bits. */
static void rates_of_fast_rails_are_exact(void **state)
{
    const uint64_t window_ns = 190 * R2_NS_PER_MS, bytes = UINT64_C(7000000000);
    r2_net_t *net = &world->core.net;
    uint32_t *place = world->agree->env->topology.host_of;

    (void) state;
    place[1] = place[2] = place[0];
    net->rail_count = RAILS;
    world->estimator.given.alpha_ns = 1000; /* not measured */
    net->now_ns = R2_NS_PER_S;
    for (uint32_t i = 0; i < 8; ++i, net->now_ns += window_ns, net->rails[0].tx_bytes += bytes) {
        r2_observe_loaded(world->core.observers, 0);
    }
    assert_true(0 < world->estimator.version);
    /* of 1000 MB/s, which rails count as that did not tell their speed */
    assert_int_equal(world->estimator.cost.rate_ppm, RANKS * bytes / 190);
}

/** What rank 0's thread has of the processors, as the test has it. */
static r2_cpu_time_t cores;

static uint64_t t_now(void *arg)
{
    (void) arg;
    return world->core.net.now_ns;
}

static bool t_cores(void *arg, r2_cpu_time_t *time_p)
{
    (void) arg;
    *time_p = cores;
    return true;
}

/* So many windows, in each of which the thread runs and waits for so long. */
static void pass_windows(uint32_t windows, uint64_t ran_ns, uint64_t waited_ns)
{
    const r2_schedule_t none = {.op_count = 0};

    for (uint32_t i = 0; i < windows; ++i) {
        cores.ran_ns += ran_ns;
        cores.waited_ns += waited_ns;
        world->core.net.now_ns += 50 * R2_NS_PER_MS;
        r2_observe_called(world->core.observers, &none, RANKS, 0);
    }
}

/* Calls of one kind and length, which took so long, from the newest plan on. */
static void make_calls_of(const r2_schedule_t *schedule, uint32_t calls, uint64_t took_ns)
{
    for (uint32_t i = 0; i < calls; ++i) {
        world->core.net.now_ns += took_ns;
        r2_observe_called(world->core.observers, schedule, RANKS, world->core.net.now_ns - took_ns);
    }
}

static void make_calls(uint32_t calls, uint64_t bytes, uint64_t took_ns)
{
    const r2_schedule_t schedule = {.digest = R2_COLL_BCAST, .call_bytes = bytes};

    make_calls_of(&schedule, calls, took_ns);
}

/* Four windows in a row, then 32 of another kind; others break the row. What calls gain is told
 * once there are some whose plans could be others, on rails that carry what they tell. */
static void crowds_are_believed_after_a_while(void **state)
{
    static const r2_clock_t clock = {.now_ns = t_now, .cpu_time = t_cores};
    const uint64_t ms = R2_NS_PER_MS;
    r2_crowded_t *crowded = &world->estimator.crowded;
    const r2_cost_params_t *cost = &world->estimator.cost;

    (void) state;
    cores = (r2_cpu_time_t){.thread = 7};
    world->core.clock = &clock;
    world->estimator.given.alpha_ns = 1000;
    pass_windows(1, 30 * ms, 10 * ms); /* tells where to count from */
    pass_windows(3, 30 * ms, 10 * ms);
    pass_windows(1, 40 * ms, 10 * ms); /* neither */
    pass_windows(3, 20 * ms, 30 * ms);
    pass_windows(9, 3 * ms, ms); /* too little to say anything */
    pass_windows(3, 20 * ms, 30 * ms);
    cores.thread = 8; /* another thread makes the calls */
    pass_windows(4, 20 * ms, 30 * ms);
    assert_false(crowded->crowded);
    pass_windows(1, 20 * ms, 30 * ms);
    assert_true(crowded->crowded);
    make_calls(20, 65536, ms / 10);
    pass_windows(1, 20 * ms, 30 * ms);
    assert_int_equal(cost->crowded, 0); /* rails may be the limit */
    assert_false(r2_estimator_wanted(&world->estimator, world->agree->env));
    crowded->rails.carry = true;
    make_calls(1, 8192, ms / 10); /* the same with any plan */
    make_calls(1, 65536, ms / 10);
    pass_windows(1, 20 * ms, 30 * ms);
    assert_int_equal(cost->crowded, 1u << (R2_CROWDED_BCAST + 3));
    assert_true(r2_estimator_wanted(&world->estimator, world->agree->env));
    pass_windows(31, 45 * ms, 5 * ms); /* its plan may be what ranks wait less for */
    assert_true(crowded->crowded);
    pass_windows(1, 45 * ms, 5 * ms);
    assert_false(crowded->crowded);
    assert_int_equal(cost->crowded, 0);
    pass_windows(3, 0, 50 * ms);
    assert_false(crowded->crowded);
    pass_windows(1, 0, 50 * ms);
    assert_true(crowded->crowded);
    assert_int_equal(cost->crowded, 1u << (R2_CROWDED_BCAST + 3)); /* nothing is tried anew */
    pass_windows(127, 45 * ms, 5 * ms);
    assert_true(crowded->crowded);
    pass_windows(1, 45 * ms, 5 * ms);
    assert_false(crowded->crowded);
    pass_windows(4, 0, 50 * ms);
    assert_true(crowded->crowded);
    world->estimator.given.rate_ppm = 1000000 / R2_COST_SLOW - 1;
    make_calls(1, 65536, ms / 10);
    pass_windows(1, 20 * ms, 30 * ms);
    assert_int_equal(cost->crowded, 0); /* rails are the limit */
}

/* The kinds of calls that have plans for it, and no others. */
static void crowds_are_known_to_some_kinds(void **state)
{
    static const r2_clock_t clock = {.now_ns = t_now, .cpu_time = t_cores};
    const uint64_t ms = R2_NS_PER_MS;
    const r2_schedule_t rows[] = {
        {.digest = R2_COLL_ALLTOALL, .crowded = 0},
        {.digest = R2_COLL_REDUCE, .crowded = 1u << (R2_CROWDED_REDUCE + 7)},
        {.digest = R2_COLL_ALLREDUCE, .crowded = 1u << (R2_CROWDED_ALLREDUCE + 7)},
        {.digest = R2_COLL_ALLGATHER, .crowded = 0}, /* it has one plan */
        {.digest = R2_COLL_ALLGATHERV,
         .crowded = 1u << (R2_CROWDED_ALLGATHER + 7),
         .minds_crowds = true}};
    uint32_t told = 0;

    (void) state;
    cores = (r2_cpu_time_t){.thread = 7};
    world->core.clock = &clock;
    world->estimator.crowded.rails.carry = true;
    pass_windows(5, 20 * ms, 30 * ms);
    for (size_t row = 0; row < r2_array_count(rows); ++row) {
        const r2_schedule_t calls = {.digest = rows[row].digest,
                                     .call_bytes = 1048576,
                                     .minds_crowds = rows[row].minds_crowds};

        make_calls_of(&calls, 20, ms);
        pass_windows(1, 20 * ms, 30 * ms);
        told |= rows[row].crowded;
        assert_int_equal(world->estimator.cost.crowded, told);
    }
}

/* Whether this process waits for processors is no plan, and follows what is seen, both ways. */
static void waiting_for_processors_begins_and_ends(void **state)
{
    static const r2_clock_t clock = {.now_ns = t_now, .cpu_time = t_cores};
    const uint64_t ms = R2_NS_PER_MS;

    (void) state;
    cores = (r2_cpu_time_t){.thread = 7};
    world->core.clock = &clock;
    pass_windows(1, 20 * ms, 30 * ms); /* tells where to count from */
    for (int i = 0; i < 12; ++i) {
        pass_windows(2, 20 * ms, 30 * ms);
        pass_windows(1, 3 * ms, ms); /* says nothing, and breaks no row */
        pass_windows(1, 20 * ms, 30 * ms);
        assert_false(world->core.net.crowded);
        pass_windows(1, 20 * ms, 30 * ms);
        assert_true(world->core.net.crowded);
        pass_windows(15, 45 * ms, 5 * ms);
        assert_true(world->core.net.crowded);
        pass_windows(1, 45 * ms, 5 * ms);
        assert_false(world->core.net.crowded);
    }
}

/* Calls end before there are plans of the job, and after there are: nothing of them is read. Who
 * waits for processors is known without them. */
static void without_plans_nothing_is_asked(void **state)
{
    static const r2_clock_t clock = {.now_ns = t_now, .cpu_time = t_cores};

    (void) state;
    cores = (r2_cpu_time_t){.thread = 7};
    world->core.clock = &clock;
    r2_observe_plan(world->core.observers, NULL, 0);
    pass_windows(5, R2_NS_PER_MS, 40 * R2_NS_PER_MS);
    assert_true(world->estimator.crowded.crowded);
    assert_true(world->core.net.crowded);
    assert_false(world->estimator.crowded.rails.carry);
    assert_int_equal(world->estimator.version, 0);
}

static void a_sync_that_cannot_start_is_told(void **state)
{
    (void) state;
    world->refuses = R2_ERR_NO_MEMORY;
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[0]), R2_OK);
    lose_a_rail();
    r2_agree_left(world->agree, &world->calls[0], true);
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[1]), R2_ERR_NO_MEMORY);
    assert_int_equal(world->failures, 0); /* who entered knows */
}

/* The call that it is for is in no queue: nobody else would end it. */
static void a_sync_that_fails_at_once_is_told(void **state)
{
    (void) state;
    world->aborts = true;
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[0]), R2_OK);
    lose_a_rail();
    r2_agree_left(world->agree, &world->calls[0], true);
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[1]), R2_ERR_PEER_GONE);
}

static void what_waits_fails_when_all_is_aborted(void **state)
{
    (void) state;
    world->calls[1].blocking = false; /* its outcome is not awaited, its map sync is */
    wait_for_sync();
    assert_int_equal(r2_agree_enter(world->agree, &world->calls[2]), R2_IN_PROGRESS);
    r2_agree_wait(world->agree, &world->calls[2]);
    r2_agree_abort(world->agree, R2_ERR_PEER_GONE);
    assert_int_equal(world->failed[1], 1);
    assert_int_equal(world->failed[2], 1);
    r2_agree_synced(world->agree); /* its map sync ends, too */
    r2_agree_run(&world->common);
    assert_int_equal(world->begun[1] + world->begun[2], 0);
    assert_int_equal(world->ended, 0);
    r2_agree_destroy(world->agree);
    assert_int_equal(world->ended, 1);
    world->agree = NULL;
}

/* A sequence is planned from what is agreed before the next call, which is not known while calls
 * wait. */
static void a_sequence_opens_behind_calls_that_wait(void **state)
{
    r2_agree_t *sequence;

    (void) state;
    wait_for_sync();
    assert_int_equal(r2_agree_open(world->agree, world, &sequence), R2_OK);
    assert_null(r2_agree_plan_env(sequence));
    assert_int_equal(r2_agree_enter(sequence, &world->calls[3]), R2_IN_PROGRESS);
    r2_agree_wait(sequence, &world->calls[3]);
    r2_agree_run(&world->common);
    assert_int_equal(world->begun[3], 0);
    memcpy(world->sync->taken, world->sync->given, world->sync->bytes);
    r2_agree_synced(world->agree);
    r2_agree_run(&world->common);
    assert_int_equal(world->begun[1], 1);
    assert_int_equal(world->begun[3], 1);
    assert_ptr_equal(r2_agree_plan_env(sequence), r2_agree_plan_env(world->agree));
    r2_agree_destroy(sequence);
}

/* ---- observers ---- */

static uint32_t heard[3], heard_count;

static void t_carrier(void *arg, uint32_t rail, bool carrier)
{
    assert_int_equal(rail, 1);
    assert_true(carrier);
    heard[heard_count++] = *(const uint32_t *) arg;
}

static void observers_are_told_in_turn(void **state)
{
    static uint32_t numbers[] = {7, 8, 9};
    r2_observer_t a = {.carrier = t_carrier, .arg = &numbers[0]}, b = {.arg = &numbers[1]},
                  c = {.carrier = t_carrier, .arg = &numbers[2]};

    (void) state;
    heard_count = 0;
    r2_core_watch(&world->core, &a);
    r2_core_watch(&world->core, &b);
    r2_core_watch(&world->core, &c);
    r2_observe_carrier(world->core.observers, 1, true);
    assert_int_equal(heard_count, 2);
    assert_int_equal(heard[0], 7);
    assert_int_equal(heard[1], 9);
    r2_core_unwatch(&world->core, &a);
    r2_observe_carrier(world->core.observers, 1, true);
    assert_int_equal(heard_count, 3);
    assert_int_equal(heard[2], 9);
    r2_core_unwatch(&world->core, &b);
    r2_core_unwatch(&world->core, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_begin_at_once_while_all_know_the_same, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_knows_more_has_a_sync_first, setup, teardown),
        cmocka_unit_test_setup_teardown(rates_of_fast_rails_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(crowds_are_believed_after_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(crowds_are_known_to_some_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_for_processors_begins_and_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(without_plans_nothing_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sync_that_cannot_start_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sync_that_fails_at_once_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_fails_when_all_is_aborted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sequence_opens_behind_calls_that_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(observers_are_told_in_turn, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
