/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Health machines of whole jobs in one process: verdicts, notices, spread, healing.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "health_world.h"

#define WORLDS         1000 /* random ones */
#define R2_NOBODY_HOST UINT32_MAX

static void expect_right(world_t *world)
{
    const char *wrong = world_wrong(world);

    if (NULL != wrong) {
        fail_msg("%s", wrong);
    }
    assert_int_equal(world->unfair, 0);
}

static bool sleeps(const world_t *world)
{
    uint32_t rank;

    for (rank = 0; rank < world->rank_count; ++rank) {
        if (R2_NEVER_NS != r2_health_deadline_ns(world->machines[rank].health)) {
            return false;
        }
    }
    return true;
}

static void healthy_job_costs_nothing(void **state)
{
    world_t world;

    (void) state;
    world_init(&world, 5, 2, 2, 1);
    world_run(&world, 2000);
    assert_int_equal(world.notices + world.probes + world.beacons, 0);
    assert_true(sleeps(&world));
    expect_right(&world);
    world_fini(&world);
}

/* One NIC in one direction: verdict, direction, version, and everything well after the repair. */
static void nic_dies_and_heals(void **state)
{
    static const r2_direction_t directions[] = {R2_DIRECTION_BOTH, R2_DIRECTION_OUT,
                                                R2_DIRECTION_IN};
    uint32_t idx, hosts;

    (void) state;
    for (idx = 0; idx < 4 * r2_array_count(directions); ++idx) {
        world_t world;
        fault_t *fault;

        hosts = 3 + idx / 3;
        world_init(&world, hosts, 2, 2, idx);
        fault = world_fault(&world, FAULT_NIC, 1, 1);
        fault->direction = directions[idx % 3];
        world_run(&world, 1000);
        expect_right(&world);
        assert_int_equal(world_entry(&world, 0, 1, 1)->capacity, 0);
        assert_int_equal(world_entry(&world, 0, 1, 1)->verdict, R2_VERDICT_NIC);
        assert_int_equal(world_entry(&world, 0, 1, 1)->direction, directions[idx % 3]);
        assert_int_equal(world_entry(&world, 0, 1, 1)->version, 1);
        fault->to_ns = world.now_ns;
        world_run(&world, 6000);
        expect_right(&world);
        assert_int_equal(world_entry(&world, 0, 1, 1)->capacity, R2_CAPACITY_FULL);
        assert_int_equal(world_entry(&world, 0, 1, 1)->version, 2);
        assert_true(sleeps(&world));
        world_fini(&world);
    }
}

static void carrier_needs_no_probe(void **state)
{
    world_t world;

    (void) state;
    world_init(&world, 3, 2, 2, 1);
    world_fault(&world, FAULT_NIC, 2, 0)->carrier_lost = true;
    world_run(&world, 40);
    assert_int_equal(world.probes, 0);
    expect_right(&world);
    assert_int_equal(world_entry(&world, 0, 2, 0)->capacity, 0);
    world_fini(&world);
}

/*
 * A port without IP has carrier again, and its lanes are tried: that they do not come up yet is no
 * proof that they were not, by whatever number the peers call theirs.
 */
static void tried_lanes_prove_their_rail(void **state)
{
    (void) state;
    for (uint32_t skew = 0; skew < 2; ++skew) {
        world_t world;
        fault_t *fault;

        world_init(&world, 3, 1, 2, 1);
        world.bare = true;
        world.skew = skew;
        fault = world_fault(&world, FAULT_NIC, 2, 0);
        fault->carrier_lost = true;
        fault->to_ns = world.now_ns + 500 * R2_NS_PER_MS;
        fault = world_fault(&world, FAULT_NIC, 2, 0);
        world_run(&world, 6000);
        assert_int_equal(world_entry(&world, 2, 2, 0)->capacity, 0);
        assert_int_equal(world_entry(&world, 2, 2, 0)->version, 1);
        fault->to_ns = world.now_ns;
        world_run(&world, 6000);
        expect_right(&world);
        assert_int_equal(world_entry(&world, 0, 2, 0)->capacity, R2_CAPACITY_FULL);
        world_fini(&world);
    }
}

static void stopped_process_is_no_failure(void **state)
{
    uint32_t rank;
    world_t world;
    fault_t *fault;

    (void) state;
    world_init(&world, 4, 2, 2, 1);
    fault = world_fault(&world, FAULT_STOP, 0, 0);
    fault->rank = 2;
    world_run(&world, 5000);
    for (rank = 0; rank < world.rank_count; ++rank) {
        assert_int_equal(world.machines[rank].dead_calls, 0);
    }
    assert_true(world.machines[0].own_events[R2_VERDICT_PEER_BUSY] > 0);
    fault->to_ns = world.now_ns;
    world_run(&world, 1000);
    expect_right(&world);
    assert_int_equal(r2_health_map_digest(r2_health_map(world.machines[0].health)),
                     r2_health_map_digest(r2_health_map(world.machines[2].health)));
    assert_int_equal(world_entry(&world, 0, 1, 0)->version, 0);
    world_fini(&world);
}

/* All probes of the first attempt get lost: that is no fault yet. */
static void lost_probes_are_no_failure(void **state)
{
    uint32_t rank;
    world_t world;

    (void) state;
    world_init(&world, 4, 1, 2, 1);
    world.lost_probes = 4;
    world_fault(&world, FAULT_STOP, 0, 0)->rank = 2;
    world_run(&world, 1000);
    expect_right(&world);
    assert_true(world.machines[0].probes > 4);
    for (rank = 0; rank < world.rank_count; ++rank) {
        assert_int_equal(world.machines[rank].dead_calls, 0);
    }
    world_fini(&world);
}

/* The owner of the broken host is stopped or dead: the next rank acts. */
static void owners_are_succeeded(void **state)
{
    uint32_t kind;

    (void) state;
    for (kind = FAULT_STOP; kind <= FAULT_KILL; ++kind) {
        world_t world;
        fault_t *fault;

        world_init(&world, 4, 3, 2, kind);
        fault = world_fault(&world, (fault_kind_t) kind, 0, 0);
        fault->rank = 3;
        world_run(&world, 200);
        world_fault(&world, FAULT_NIC, 1, 0);
        world_run(&world, 3000);
        expect_right(&world);
        assert_int_equal(world_entry(&world, 0, 1, 0)->verdict, R2_VERDICT_NIC);
        assert_int_equal(world.machines[0].told_gone[3], FAULT_KILL == kind);
        world.faults[1].to_ns = world.now_ns;
        fault->to_ns = FAULT_STOP == kind ? world.now_ns : R2_NEVER_NS;
        world_run(&world, 8000);
        expect_right(&world);
        assert_int_equal(world_entry(&world, 3, 1, 0)->capacity,
                         FAULT_STOP == kind ? R2_CAPACITY_FULL
                                            : world_entry(&world, 3, 1, 0)->capacity);
        world_fini(&world);
    }
}

static void planes_and_paths(void **state)
{
    world_t world;
    fault_t *fault;

    (void) state;
    world_init(&world, 5, 1, 2, 3);
    (void) world_fault(&world, FAULT_PLANE, 0, 1);
    world_run(&world, 1500);
    expect_right(&world);
    assert_int_equal(world_entry(&world, 0, 3, 1)->verdict, R2_VERDICT_PLANE);
    world.faults[0].to_ns = world.now_ns;
    world_run(&world, 6000);
    expect_right(&world);
    fault = world_fault(&world, FAULT_PATH, 4, 0);
    fault->host_b = 2;
    world_run(&world, 1000);
    expect_right(&world);
    assert_true(r2_health_map_is_cut(r2_health_map(world.machines[0].health), 2, 4, 0));
    fault->to_ns = world.now_ns;
    world_run(&world, 6000);
    expect_right(&world);
    assert_true(sleeps(&world));
    world_fini(&world);
}

/* Every failure soon after a heal makes the next quarantine longer. */
static void flapping_is_damped(void **state)
{
    uint32_t round, changes;
    world_t world;

    (void) state;
    world_init(&world, 3, 1, 2, 9);
    for (round = 0; round < 40; ++round) {
        fault_t *fault = world_fault(&world, FAULT_NIC, 1, 0);

        fault->carrier_lost = true;
        world_run(&world, 100);
        fault->to_ns = world.now_ns;
        world_run(&world, 900);
        --world.fault_count;
    }
    changes = world_entry(&world, 0, 1, 0)->version;
    assert_true(changes >= 4 && changes <= 16); /* of 80 */
    world_run(&world, 65000);
    expect_right(&world);
    assert_int_equal(world_entry(&world, 0, 1, 0)->capacity, R2_CAPACITY_FULL);
    world_fini(&world);
}

/*
 * A NIC is back, but between it and one other host packets pass only later: hosts ask for each
 * other's hardware address once a second. That is no broken path, unless it lasts.
 */
static void repairs_take_a_moment(void **state)
{
    uint32_t lasting, rank, told;

    (void) state;
    for (lasting = 0; lasting < 2; ++lasting) {
        fault_t *nic, *path;
        world_t world;

        world_init(&world, 4, 1, 2, 13);
        path = world_fault(&world, FAULT_PATH, 1, 0);
        path->host_b = 2;
        nic = world_fault(&world, FAULT_NIC, 1, 0);
        nic->carrier_lost = true;
        world_run(&world, 500);
        nic->to_ns = world.now_ns;
        world_run(&world, 2600); /* a second of it after it is known to be well */
        path->to_ns = lasting ? R2_NEVER_NS : world.now_ns;
        world_run(&world, 12000);
        for (rank = told = 0; rank < world.rank_count; ++rank) {
            told += world.machines[rank].own_events[R2_VERDICT_PATH];
        }
        assert_true(lasting ? told > 0 : 0 == told);
        expect_right(&world);
        world_fini(&world);
    }
}

/* ---- degraded rails ---- */

/* One window of traffic of rank 0 with its peers; rail 1 at `percent` of rail 0 to host `slow`. */
static void traffic(world_t *world, uint32_t percent, uint32_t slow)
{
    uint32_t peer, way;

    world->now_ns += 110 * R2_NS_PER_MS;
    for (peer = 1; peer < world->rank_count; ++peer) {
        for (way = 0; way < 2; ++way) {
            uint64_t rate = R2_NOBODY_HOST == slow || slow == peer ? percent : 100;

            r2_health_rate(world->machines[0].health, peer, 0, 0 == way, 1000000, R2_NS_PER_MS,
                           world->now_ns);
            r2_health_rate(world->machines[0].health, peer, 1, 0 == way, 10000 * rate, R2_NS_PER_MS,
                           world->now_ns);
        }
    }
}

static void slow_rails(void **state)
{
    uint32_t round;
    world_t world;

    (void) state;
    world_init(&world, 4, 1, 2, 5);
    for (round = 0; round < 30; ++round) {
        traffic(&world, 90 + round % 10, R2_NOBODY_HOST); /* noise */
    }
    assert_int_equal(world_entry(&world, 0, 0, 1)->version, 0);
    for (round = 0; round < 30; ++round) {
        traffic(&world, 10, 2); /* that is the business of host 2 */
    }
    assert_int_equal(world_entry(&world, 0, 0, 1)->version, 0);
    for (round = 0; round < 30; ++round) {
        traffic(&world, 48 + round % 4, R2_NOBODY_HOST);
    }
    assert_int_equal(world_entry(&world, 0, 0, 1)->version, 1);
    assert_int_equal(world_entry(&world, 0, 0, 1)->capacity, 8);
    assert_int_equal(world_entry(&world, 0, 0, 1)->verdict, R2_VERDICT_SLOW);
    for (round = 0; round < 30; ++round) {
        traffic(&world, 100, R2_NOBODY_HOST);
    }
    assert_int_equal(world_entry(&world, 0, 0, 1)->version, 2);
    assert_int_equal(world_entry(&world, 0, 0, 1)->capacity, R2_CAPACITY_FULL);
    world_run(&world, 1000);
    expect_right(&world);
    assert_int_equal(world_entry(&world, 3, 0, 1)->version, 2);
    assert_true(sleeps(&world));
    world_fini(&world);
}

/* One window of traffic around the ring of all hosts; hosts a and b have a tenth of rail 1. */
static void ring_traffic(world_t *world, uint32_t a, uint32_t b)
{
    for (uint32_t rank = 0; rank < world->rank_count; ++rank) {
        for (uint32_t way = 0; way < 4; ++way) {
            uint32_t peer = (rank + (way < 2 ? 1 : world->rank_count - 1)) % world->rank_count;
            bool slow = a == rank || b == rank || a == peer || b == peer;
            r2_health_t *health = world->machines[rank].health;

            r2_health_rate(health, peer, 0, 0 == way % 2, 1000000, R2_NS_PER_MS, world->now_ns);
            r2_health_rate(health, peer, 1, 0 == way % 2, slow ? 100000 : 1000000, R2_NS_PER_MS,
                           world->now_ns);
        }
    }
    world_run(world, 110);
}

/*
 * A host between two that are slow measures nobody else, and is not slow: as soon as those are
 * known they explain what it sees. Three hosts explain each other: one is let off, and all stay as
 * they are.
 */
static void between_slow_hosts(void **state)
{
    uint32_t round, versions = 0, slow = 0;
    world_t world;

    (void) state;
    world_init(&world, 6, 1, 2, 5);
    for (round = 0; round < 40; ++round) {
        ring_traffic(&world, round < 5 ? R2_NOBODY_HOST : 1, round < 5 ? R2_NOBODY_HOST : 5);
        versions = 20 == round ? world_entry(&world, 3, 0, 1)->version : versions;
    }
    assert_int_equal(world_entry(&world, 3, 0, 1)->capacity, R2_CAPACITY_FULL);
    assert_int_equal(world_entry(&world, 3, 0, 1)->version, versions);
    assert_int_equal(world_entry(&world, 3, 1, 1)->verdict, R2_VERDICT_SLOW);
    assert_int_equal(world_entry(&world, 3, 5, 1)->verdict, R2_VERDICT_SLOW);
    assert_int_equal(world_entry(&world, 0, 3, 1)->capacity, R2_CAPACITY_FULL);
    world_fini(&world);

    world_init(&world, 3, 1, 2, 5);
    for (round = 0; round < 60; ++round) {
        ring_traffic(&world, round < 5 ? R2_NOBODY_HOST : 0, round < 5 ? R2_NOBODY_HOST : 2);
        for (uint32_t host = 0; 40 == round && host < 3; ++host) {
            slow += R2_VERDICT_SLOW == world_entry(&world, 1, host, 1)->verdict;
            versions = host > 0 ? versions + world_entry(&world, 1, host, 1)->version
                                : world_entry(&world, 1, host, 1)->version;
        }
    }
    assert_int_equal(slow, 2);
    for (uint32_t host = 0; host < 3; ++host) {
        versions -= world_entry(&world, 1, host, 1)->version;
    }
    assert_int_equal(versions, 0);
    world_fini(&world);
}

/* ---- random worlds ---- */

static void random_fault(world_t *world)
{
    fault_t *fault = world_fault(world, (fault_kind_t) r2_prng_below(&world->prng, 5),
                                 (uint32_t) r2_prng_below(&world->prng, world->host_count),
                                 (uint32_t) r2_prng_below(&world->prng, world->rail_count));

    fault->host_b =
        (fault->host + 1 + (uint32_t) r2_prng_below(&world->prng, world->host_count - 1)) %
        world->host_count;
    fault->rank = (uint32_t) r2_prng_below(&world->prng, world->rank_count);
    fault->direction = (r2_direction_t) r2_prng_below(&world->prng, R2_DIRECTION_COUNT);
    fault->carrier_lost =
        R2_DIRECTION_BOTH == fault->direction && r2_prng_chance(&world->prng, 500000);
    fault->from_ns += r2_prng_below(&world->prng, 600) * R2_NS_PER_MS;
    if (FAULT_KILL != fault->kind && r2_prng_chance(&world->prng, 500000)) {
        fault->to_ns = fault->from_ns + r2_prng_between(&world->prng, 20, 2000) * R2_NS_PER_MS;
    }
}

static void random_world(uint64_t seed, bool verbose)
{
    const char *wrong = NULL;
    uint32_t round, faults;
    r2_prng_t prng;
    world_t world;

    r2_prng_seed(&prng, seed);
    world_init(&world, (uint32_t) r2_prng_between(&prng, 2, 6),
               (uint32_t) r2_prng_between(&prng, 1, 2),
               (uint32_t) r2_prng_between(&prng, 1, WORLD_RAILS), seed);
    world.verbose = verbose;
    world.loss_ppm = (uint32_t) r2_prng_below(&prng, 3) * 100000;
    world.double_ppm = (uint32_t) r2_prng_below(&prng, 200000);
    world.delay_ns = r2_prng_between(&prng, 1, 15) * R2_NS_PER_MS;
    faults = (uint32_t) r2_prng_below(&prng, 3);
    for (round = 0; round < faults; ++round) {
        random_fault(&world);
    }
    for (round = 0; round < 12; ++round) {
        world_run(&world, round < 1 ? 3000 : 1500);
        wrong = world_wrong(&world);
        if (NULL == wrong) {
            break;
        }
    }
    if (NULL != wrong || world.unfair > 0 ||
        world.notices > 2000ull * (1 + faults) * world.rank_count) {
        fail_msg("seed %llu: %s, %u unfair, %llu notices", (unsigned long long) seed,
                 NULL == wrong ? "maps right" : wrong, world.unfair,
                 (unsigned long long) world.notices);
    }
    world_fini(&world);
}

static void random_worlds(void **state)
{
    const char *only = getenv("R2_HEALTH_SEED");
    uint64_t seed;

    (void) state;
    if (NULL != only) {
        random_world(strtoull(only, NULL, 10), true);
        return;
    }
    for (seed = 1; seed <= WORLDS; ++seed) {
        random_world(seed, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_job_costs_nothing),
        cmocka_unit_test(nic_dies_and_heals),
        cmocka_unit_test(carrier_needs_no_probe),
        cmocka_unit_test(tried_lanes_prove_their_rail),
        cmocka_unit_test(stopped_process_is_no_failure),
        cmocka_unit_test(lost_probes_are_no_failure),
        cmocka_unit_test(owners_are_succeeded),
        cmocka_unit_test(planes_and_paths),
        cmocka_unit_test(flapping_is_damped),
        cmocka_unit_test(repairs_take_a_moment),
        cmocka_unit_test(slow_rails),
        cmocka_unit_test(between_slow_hosts),
        cmocka_unit_test(random_worlds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
