/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What ranks know of broken rails, and that they change plans together: simulated jobs.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "scenario.h"

#define MACHINE "hosts 4; rails 4; rate 12500000; latency 50us; jitter 20us; seed 7;"
#define TRAFFIC "coll allreduce f64 60000 times=12;"

static scenario_result_t run(const char *source)
{
    scenario_result_t result;

    assert_true(scenario_check(source, &result));
    assert_int_equal(result.errors, 0);
    return result;
}

/* A fault of one NIC at 100 ms and its repair at 1 s: all ranks know of both. */
static void known_by_all(const char *fault, const char *repair, const char *extra)
{
    char source[1024];

    snprintf(source, sizeof(source),
             MACHINE "%s at 100ms %s; at 1s %s; expect-map h1 rail2 0 at 900ms;"
                     "expect-map h1 rail2 16 at 6s; expect-map h0 rail2 16 at 900ms;"
                     "coll allreduce f64 60000 times=20; compute 2s; " TRAFFIC
                     "compute 4s;" TRAFFIC,
             extra, fault, repair);
    run(source);
}

static void carrier_loss_is_known_by_all(void **state)
{
    (void) state;
    known_by_all("down h1 rail2", "up h1 rail2", "");
}

static void silent_drops_are_known_by_all(void **state)
{
    (void) state;
    known_by_all("drop h1 rail2", "pass h1 rail2", "");
    known_by_all("drop-in h1 rail2", "pass h1 rail2", "");
    known_by_all("drop-out h1 rail2", "pass h1 rail2", "");
}

static void notices_may_get_lost(void **state)
{
    (void) state;
    known_by_all("drop h1 rail2", "pass h1 rail2", "post-loss 100;");
    known_by_all("drop h1 rail2", "pass h1 rail2", "post-loss 40; post-twice 30; post-delay 20ms;");
    known_by_all("down h1 rail2", "up h1 rail2",
                 "at 0ms post-cut h0; at 0ms post-cut h1; at 0ms post-cut h2; at 0ms post-cut h3;");
}

/*
 * All lanes are back soon after a repair, whenever it comes and though no notice does: a dead rail
 * is probed every 0.5 to 0.6 s, and calls from before the repair, whose next try may be far off,
 * keep nobody waiting.
 */
static void repairs_are_noticed_soon(void **state)
{
    static const struct {
        const char *fault, *repair;
        uint64_t lanes, most_ms;
    } cases[] = {{"down h3 rail2", "up h3 rail2", 6, 50},
                 {"drop h1 rail2", "pass h1 rail2", 6, 800},
                 {"drop-out h2 rail0", "pass h2 rail0", 6, 800},
                 {"cut h1 h2 rail3", "join h1 h2 rail3", 2, 800}};

    (void) state;
    for (uint32_t i = 0; i < 6 * r2_array_count(cases); ++i) {
        uint64_t repair_ms = 2000 + 170 * i;
        uint32_t at = i / 6;
        char source[512];
        scenario_result_t result;

        snprintf(source, sizeof(source),
                 MACHINE
                 "seed %u; post-loss 100; at 20ms %s; at %ums %s; coll allreduce f64 60000 times=4;"
                 "compute 8s; coll allreduce f64 60000;",
                 i, cases[at].fault, (unsigned) repair_ms, cases[at].repair);
        result = run(source);
        assert_int_equal(result.counters.lanes_healed, cases[at].lanes);
        assert_in_range(result.healed_ns / R2_NS_PER_MS, repair_ms, repair_ms + cases[at].most_ms);
    }
}

/* All ranks change plans at the same calls, and every sum has the bits of the healthy run. */
static void plans_change_together_and_bits_stay(void **state)
{
    static const char program[] =
        "coll allreduce f64 120000 times=30; coll allreduce f64 100 times=5;"
        "coll allreduce f64 120000 nb times=12; wait;"
        "coll allgather f64 3000 times=5; coll reduce-scatter f64 3000 times=5;"
        "compute 2s; coll allreduce f64 120000 times=20;";
    char source[1024];
    scenario_result_t healthy, broken;

    (void) state;
    snprintf(source, sizeof(source), MACHINE "%s", program);
    healthy = run(source);
    assert_int_equal(healthy.counters.map_syncs, 0);
    snprintf(source, sizeof(source), MACHINE "at 60ms down h1 rail2; at 900ms up h1 rail2; %s",
             program);
    broken = run(source);
    assert_int_equal(broken.digest, healthy.digest);
    assert_true(broken.counters.epochs >= 8); /* four ranks: degraded, and healthy again */
    assert_int_equal(broken.counters.epochs % 4, 0);
    assert_int_equal(broken.counters.map_syncs % 4, 0);
}

/* Equal calls are planned once for each map, and a map that comes back finds its plans. */
static void repeated_calls_plan_once_for_each_map(void **state)
{
    static const char loop[] = "coll allreduce f64 120000 times=30;"
                               "coll allreduce f64 120000 nb times=8; wait;";
    char source[1024];
    scenario_result_t healthy, broken, healed;

    (void) state;
    snprintf(source, sizeof(source), MACHINE "%s compute 2s; %s", loop, loop);
    healthy = run(source);
    assert_int_equal(healthy.counters.plans, 4 * 2); /* four ranks: blocking, and not */
    snprintf(source, sizeof(source),
             MACHINE "at 60ms down h1 rail2; at 3s up h1 rail2; %s compute 4s;", loop);
    broken = run(source);
    assert_true(broken.counters.epochs >= 4);
    assert_in_range(broken.counters.plans, 4 * (2 + 2 + 1), 4 * 12); /* merges are planned, too */
    snprintf(source, sizeof(source),
             MACHINE "at 60ms down h1 rail2; at 3s up h1 rail2; %s compute 4s; %s %s", loop, loop,
             loop);
    healed = run(source);
    assert_true(healed.counters.epochs >= 8);
    assert_true(healed.counters.plans < broken.counters.plans + 4 * 2); /* or both came anew */
    assert_int_equal(healed.digest, run(source).digest);
}

/* What rank 0 sees of its rails is what all ranks predict from, once predictions matter. */
static void predictions_are_made_from_what_was_seen(void **state)
{
    static const char program[] =
        "coll allreduce f64 1 times=60; coll allreduce f64 600000 times=8;";
    char source[512];
    scenario_result_t result;
    uint32_t told_mbytes_per_s = 12; /* 12.5, and whole numbers are published */

    (void) state;
    snprintf(source, sizeof(source), MACHINE "%s", program);
    result = run(source);
    assert_int_equal(result.cost_version, 0); /* on even rails nobody asks */
    snprintf(source, sizeof(source), MACHINE "at 60ms down h1 rail2; %s", program);
    result = run(source);
    assert_in_range(result.cost_version, 1, 8);
    assert_in_range(result.cost.alpha_ns, 50000, 100000); /* the wire has 50 to 70 us */
    assert_in_range((uint64_t) result.cost.rate_ppm * told_mbytes_per_s, 12500000 * 80 / 100,
                    12500000 * 101 / 100);
    assert_in_range(result.counters.map_syncs, 4, 4 * 4);
}

/* Rails that carry far less than they tell: all ranks agree on that, once, though none is broken,
 * and only then. */
static void rails_that_tell_too_much_are_agreed_on(void **state)
{
    static const struct {
        const char *told;
        bool slow;
    } cases[] = {{"told 1250000000;", true}, {"told 125000000;", false}, {"", false}};
    static const char program[] = "coll allreduce f64 60000 times=40; coll bcast f64 8192 times=4;"
                                  "coll reduce f64 8192 times=4;";
    static const uint64_t kinds = 3;

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        char source[512];
        scenario_result_t result;

        snprintf(source, sizeof(source), MACHINE "%s %s", cases[i].told, program);
        result = run(source);
        assert_int_equal(result.cost_version > 0, cases[i].slow);
        assert_int_equal(r2_cost_is_slow(&result.cost), cases[i].slow);
        assert_int_equal(result.counters.map_syncs, cases[i].slow ? 4 : 0);
        assert_int_equal(result.counters.epochs, 0); /* the map is as before */
        assert_int_equal(result.counters.plans, 4 * (kinds + (cases[i].slow ? 2 : 0)));
        /* that of the map sync, and the allreduce once more */
    }
}

/* Where ranks wait for processors plans for that are tried (test_crowded, test_agree). Here, where
 * the network is all that takes time, 64 KiB lose by them, also when they are tried again, and 1
 * MiB much. Results have the same bits throughout. */
static void plans_for_crowded_ranks_are_tried(void **state)
{
    static const char *const waits[] = {"", "crowded 12%;", "crowded 50%;"};
    static const char machine[] = "hosts 4; rails 4; rate 1000000000; latency 50us; seed 7;";
    static const char program[] = "coll allreduce f64 8192 times=2600; coll allreduce f64 131072 "
                                  "times=400; coll bcast f64 8192 times=4; coll reduce f64 90000 "
                                  "times=4;";
    uint64_t digest = 0;

    (void) state;
    for (size_t i = 0; i < r2_array_count(waits); ++i) {
        const bool crowded = 2 == i;
        char source[512];
        scenario_result_t result;

        snprintf(source, sizeof(source), "%s %s %s", machine, waits[i], program);
        result = run(source);
        digest = 0 == i ? result.digest : digest;
        assert_int_equal(result.digest, digest);
        assert_int_equal(result.cost.crowded, 0); /* again */
        assert_int_equal(result.counters.epochs, 0);
        assert_int_equal(result.counters.map_syncs,
                         crowded ? 24 : 0); /* two of 64 KiB, one of 1 MiB, on and off */
        /* those of the map sync and of both trials */
        assert_int_equal(result.counters.plans, 4 * (crowded ? 7 : 4));
    }
}

/* Short calls take as long as is predicted: a step is more than half a round trip where ranks wake
 * up late. */
static void steps_are_those_of_short_calls(void **state)
{
    static const struct {
        const char *program;
        uint64_t steps; /* of all calls */
    } cases[] = {{"coll allreduce f64 1 times=400;", 400 * 2},
                 {"coll barrier i64 0 times=400;", 400 * 2},
                 {"hosts 3; coll allreduce f64 1 times=400;", 400},
                 {"hosts 5; coll allreduce f64 1 times=300;", 300 * 4},
                 {"ppn 2; coll allreduce i64 2 times=300;", 300 * 2}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        char source[512];
        scenario_result_t result;

        snprintf(source, sizeof(source), MACHINE "jitter 150us; %s", cases[i].program);
        result = run(source);
        /* the least mean of eight calls in a row, whose delays are drawn */
        assert_in_range(result.seen.alpha_ns, result.time_ns / cases[i].steps * 65 / 100,
                        result.time_ns / cases[i].steps);
    }
}

/* Rank 0 waits for another's work in each of its short calls: that is no cost of steps. */
static void steps_are_not_the_work_of_others(void **state)
{
    char source[4096] = MACHINE;
    size_t used = strlen(source);
    scenario_result_t result;

    (void) state;
    for (uint32_t i = 0; i < 40; ++i) {
        used += (size_t) snprintf(source + used, sizeof(source) - used,
                                  "compute 10ms rank=1; coll allreduce f64 1;");
    }
    result = run(source);
    /* a round trip takes 100 to 200 us of this machine; a call with the work in it takes two steps
     * of 5 ms */
    assert_in_range(result.seen.alpha_ns, 50000, 8 * 200000);
}

/* Calls that never load a rail for long still show round trips, with what their chunks take and
 * wait for in them. */
static void medium_calls_show_latency(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run(MACHINE "coll allreduce f64 32768 times=60;");
    assert_in_range(result.seen.alpha_ns, 25000, 4000000);
}

/* The parts of a series have one plan, whatever is agreed between them, and one outcome. */
static void a_series_is_one_call(void **state)
{
    char source[1024];

    (void) state;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
        for (uint32_t down_ms = 30; down_ms <= 45; down_ms += 15) {
            snprintf(
                source, sizeof(source),
                MACHINE
                "seed %u; at %ums down h1 rail2; coll allreduce i64 60000 nb times=9;"
                "coll allreduce i64 100000 nb parts=12; coll allreduce i64 200 nb times=7; wait;"
                "coll allreduce i64 1000 times=20;",
                seed, down_ms);
            run(source);
        }
        for (uint32_t host = 0; host <= 3; host += 3) {
            snprintf(
                source, sizeof(source),
                MACHINE
                "seed %u; at 10ms down h%u rail2; coll reduce-scatter i64 6000 parts=40 times=2;"
                "coll allreduce i64 1000 times=20;",
                seed, host);
            run(source);
        }
    }
}

static void a_stopped_process_is_no_verdict(void **state)
{
    (void) state;
    run(MACHINE "at 60ms stop r2; at 10s cont r2; expect-map h2 rail0 16 at 9s; expect-map h2 "
                "rail3 16 at 11s;"
                "coll allreduce f64 60000 times=30;");
    run(MACHINE
        "compute 10s rank=1; expect-map h1 rail0 16 at 9s; coll allreduce f64 60000 times=10;");
}

static void a_healthy_job_says_nothing(void **state)
{
    scenario_result_t result;

    (void) state;
    result =
        run(MACHINE "coll allreduce f64 60000 times=30; compute 1s; coll barrier i64 0 times=10;");
    assert_int_equal(result.counters.notices_sent, 0);
    assert_int_equal(result.counters.probes_sent, 0);
    assert_int_equal(result.counters.verdicts, 0);
}

/* Processes do not start at the same time. */
static void a_late_start_is_no_news(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run(MACHINE "at 0ms stop r2; at 1500ms cont r2; coll allreduce f64 60000 times=5;");
    assert_int_equal(result.counters.notices_sent, 0);
    assert_int_equal(result.counters.probes_sent, 0);
    assert_int_equal(result.counters.verdicts, 0);
}

/*
 * A rail at a part of its rate, from before anything was known of it: within 1 s everybody knows
 * how slow it is, to a sixteenth or two, and does not change its mind; 2 s after its repair all
 * know of that.
 */
static void slow_rails_are_measured(void **state)
{
    static const struct {
        const char *rate, *capacity, *coll;
    } worlds[] = {
        {"1250000", "1-3", "coll allreduce f64 500000 times=24"},
        {"1250000", "1-3", "coll allreduce f64 120000 times=60"}, /* calls of 40 ms */
        {"3750000", "4-6", "coll allreduce f64 500000 times=28"},
        {"6250000", "7-9", "coll allreduce f64 500000 times=28"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); ++i) {
        scenario_result_t result;
        char source[1024];

        snprintf(source, sizeof(source),
                 MACHINE "at 100ms rate h1 rail2 %s; at 2s rate h1 rail2 12500000;"
                         "expect-map h1 rail2 %s at 1100ms; expect-map h1 rail2 %s at 1900ms;"
                         "expect-map h1 rail2 16 at 4s; %s",
                 worlds[i].rate, worlds[i].capacity, worlds[i].capacity, worlds[i].coll);
        result = run(source);
        /* four ranks: slow, perhaps more exactly, well */
        assert_true(result.counters.map_changes <= 4 * 3);
    }
}

/*
 * What a slow rail holds at the end of a call is sent again over an idle one: the call does not
 * wait for it. Even a hundredth of the rate is measured and not taken for a fault again and again.
 */
static void slow_rails_hold_up_no_call(void **state)
{
    static const char *const rates[] = {"125000", "1250000"};
    static const char program[] = "coll allreduce f64 120000 times=40;";
    char source[1024];

    (void) state;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
        scenario_result_t healthy, slow;

        snprintf(source, sizeof(source), MACHINE "seed %u; %s", seed, program);
        healthy = run(source);
        assert_true(healthy.counters.hedged_bytes < healthy.counters.tx_bytes / 1000);
        snprintf(source, sizeof(source), MACHINE "seed %u; at 300ms rate h1 rail2 %s; %s", seed,
                 rates[seed % 2], program);
        slow = run(source);
        assert_int_equal(slow.digest, healthy.digest);
        assert_true(slow.time_ns < healthy.time_ns + healthy.time_ns / 2);
        assert_true(slow.counters.hedged_bytes > 0);
        assert_true(slow.counters.hedged_bytes < slow.counters.tx_bytes / 50);
        assert_int_equal(slow.counters.lanes_failed, 0);
    }
}

/* Probes get lost in the full queues of a slow rail; what its lanes deliver shows that it is not
 * dead. */
static void slow_rails_are_not_dead(void **state)
{
    static const char *const rates[] = {"1250000", "600000"};
    char source[2048];

    (void) state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); ++i) {
        int end = snprintf(source, sizeof(source),
                           MACHINE "probe-loss 100; at 100ms rate h1 rail2 %s;"
                                   "coll allreduce f64 500000 times=24;",
                           rates[i]);

        for (int ms = 150; ms < 1200; ms += 50) {
            end += snprintf(source + end, sizeof(source) - (size_t) end,
                            "expect-map h1 rail2 1-16 at %dms;", ms);
        }
        run(source);
    }
}

/* Processes that are late, stopped, or compute have no slow rails, nor have those that wait for
 * them. */
static void late_processes_have_no_slow_rails(void **state)
{
    static const char *const worlds[] = {
        "jitter 10ms; coll allreduce f64 250000 times=12;",
        "jitter 3ms; coll allreduce f64 500000 times=8;",
        "at 100ms stop r1; at 400ms cont r1; at 600ms stop r1; at 680ms cont r1; at 800ms stop r3;"
        "at 830ms cont r3; coll allreduce f64 500000 times=10;",
        "coll allreduce f64 500000 times=5; compute 150ms rank=1; coll allreduce f64 500000 "
        "times=2;compute 30ms rank=2; coll allreduce f64 500000 times=5; compute 10ms rank=0;"
        "coll bcast f64 500000 times=10; coll allgather f64 200000 times=10;",
        "ppn 2; jitter 2ms; coll allreduce f64 500000 times=6;",
    };

    (void) state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); ++i) {
        char source[1024];
        scenario_result_t result;

        snprintf(source, sizeof(source), MACHINE "%s", worlds[i]);
        result = run(source);
        assert_int_equal(result.counters.map_changes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carrier_loss_is_known_by_all),
        cmocka_unit_test(silent_drops_are_known_by_all),
        cmocka_unit_test(notices_may_get_lost),
        cmocka_unit_test(repairs_are_noticed_soon),
        cmocka_unit_test(plans_change_together_and_bits_stay),
        cmocka_unit_test(repeated_calls_plan_once_for_each_map),
        cmocka_unit_test(predictions_are_made_from_what_was_seen),
        cmocka_unit_test(rails_that_tell_too_much_are_agreed_on),
        cmocka_unit_test(plans_for_crowded_ranks_are_tried),
        cmocka_unit_test(steps_are_those_of_short_calls),
        cmocka_unit_test(steps_are_not_the_work_of_others),
        cmocka_unit_test(medium_calls_show_latency), cmocka_unit_test(a_series_is_one_call),
        cmocka_unit_test(a_stopped_process_is_no_verdict),
        cmocka_unit_test(a_healthy_job_says_nothing),
        cmocka_unit_test(a_late_start_is_no_news),
        cmocka_unit_test(slow_rails_are_measured),
        cmocka_unit_test(slow_rails_hold_up_no_call),
        cmocka_unit_test(slow_rails_are_not_dead),
        cmocka_unit_test(late_processes_have_no_slow_rails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
