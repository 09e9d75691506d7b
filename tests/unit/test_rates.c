/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What lanes deliver: whose rate is its own, and whose is that of a process that looks rarely.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "link/tx.h"
#include "r2/prng.h"
#include "stub_net.h"

#define MS      R2_NS_PER_MS
#define PACKET  32768u
#define REPORTS 8u /* of each lane, to be heard */

/** A link whose peer acknowledges when the test says so. */
typedef struct world {
    stub_net_t *stub;
    r2_packet_t oldest[STUB_RAILS]; /* in flight */
    uint64_t rate[STUB_RAILS];      /* newest report, bytes */
    uint32_t reports[STUB_RAILS];
} world_t;

static void note_rate(void *arg, uint32_t rank, uint32_t rail, bool outbound, uint64_t bytes,
                      uint64_t interval_ns)
{
    world_t *world = arg;

    assert_int_equal(rank, 1);
    assert_true(outbound && interval_ns > 0);
    world->rate[rail] = bytes;
    ++world->reports[rail];
}

static void start(world_t *world)
{
    memset(world, 0, sizeof(*world));
    world->stub = stub_net_create();
    world->stub->net.upcalls.rate = note_rate;
    world->stub->net.upcalls.arg = world;
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        r2_lane_t *lane = &world->stub->link->lanes[i];

        stub_lane_up(world->stub, i);
        stub_acknowledge(world->stub, lane);
        assert_null(lane->tx.in_flight);
        DL_APPEND(lane->tx.in_flight, &world->oldest[i]);
        lane->tx.in_flight_bytes = PACKET;
    }
}

static void end(world_t *world)
{
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        world->stub->link->lanes[i].tx.in_flight = NULL;
        world->stub->link->lanes[i].tx.in_flight_bytes = 0;
    }
    world->stub->net.upcalls = (r2_net_upcalls_t){NULL};
    stub_net_destroy(world->stub);
}

/** Time passes, chunks wait, and the process looks. */
static void look(world_t *world, uint64_t after_ns)
{
    world->stub->time_ns += after_ns;
    world->stub->net.now_ns = world->stub->time_ns;
    r2_rates_waiting(world->stub->link, true);
}

/** All packets of a lane are acknowledged, and others take their place. */
static void all_acknowledged(world_t *world, uint32_t lane, uint32_t packets)
{
    const uint64_t sent_ns = world->oldest[lane].sent_ns;

    world->oldest[lane].sent_ns = world->stub->time_ns;
    r2_rates_acked(&world->stub->link->lanes[lane], packets * PACKET, sent_ns);
}

/* A process that looks every now and then finds all that was in flight on each lane: the lane with
 * the small window is not slow. */
static void windows_are_no_rates(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        r2_prng_t prng;
        world_t world;

        r2_prng_seed(&prng, seed);
        start(&world);
        while (world.reports[1] < REPORTS) {
            look(&world, r2_prng_between(&prng, MS / 2, 5 * MS));
            all_acknowledged(&world, 0, 4);
            all_acknowledged(&world, 1, 1);
            if (world.reports[1] > 0) {
                assert_true(world.rate[1] >= world.rate[0] && world.rate[0] > 0);
            }
        }
        end(&world);
    }
}

/* A lane that has not delivered what it had by then is as slow as it looks, be it one packet. */
static void slow_lanes_are_slow(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        r2_prng_t prng;
        world_t world;

        r2_prng_seed(&prng, seed);
        start(&world);
        for (uint32_t looks = 1; world.reports[1] < REPORTS; ++looks) {
            look(&world, r2_prng_between(&prng, MS / 2, 2 * MS));
            all_acknowledged(&world, 0, 1);
            if (0 == looks % 8) {
                all_acknowledged(&world, 1, 1);
            }
        }
        assert_true(world.rate[1] > 0 && world.rate[1] < world.rate[0] / 4);
        end(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_no_rates),
        cmocka_unit_test(slow_lanes_are_slow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
