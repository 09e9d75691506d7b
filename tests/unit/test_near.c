/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rails near a GPU: steps from distances, which lane goes first, and where chunks of a link go
 * while lanes are idle, busy and gone.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "link/tx.h"
#include "r2/near.h"
#include "stub_net.h"

#define CHUNK 65536u
#define FAST  (1000u * 1000 * 1000) /* bytes per second */

static void assert_steps(const r2_near_t *near, const uint8_t *steps, size_t count)
{
    assert_memory_equal(near->steps, steps, count);
}

static void steps_follow_distances(void **state)
{
    static const uint8_t itself[] = {2, 0, 0, 1}, bound[] = {1, 2, 0, 0}, free[] = {2, 0, 0, 1};
    r2_gpu_place_t place = {.pci = "0000:07:00.0", .distances = {200, 3, 3, 64}};
    r2_nic_t nics[4] = {{.distance = 0}, {.distance = 10}, {.distance = 0}, {.distance = 0}};
    r2_near_gpus_t gpus;

    (void) state;
    r2_near_find(nics, 4, &place, 1, &gpus);
    assert_int_equal(gpus.count, 1);
    assert_steps(&gpus.of[0].itself, itself, 4);
    assert_steps(&gpus.of[0].copies, (const uint8_t[]){2, 3, 0, 1}, 4);
    place.distances[3] = 3; /* as near as the one before, both near the process's cores */
    r2_near_find(nics, 4, &place, 1, &gpus);
    assert_steps(&gpus.of[0].copies, bound, 4);
    place.distances[3] = 64;
    nics[1].distance = 0; /* not bound to cores: all are as near to those */
    r2_near_find(nics, 4, &place, 1, &gpus);
    assert_steps(&gpus.of[0].copies, free, 4);
    assert_ptr_equal(r2_near_of(&gpus, "0000:07:00.0"), &gpus.of[0]);
    assert_null(r2_near_of(&gpus, "0000:08:00.0"));
}

/* Nothing is to be chosen where all rails are as near, or there is one. */
static void equal_distances_tell_nothing(void **state)
{
    r2_gpu_place_t place = {.pci = "0000:07:00.0", .distances = {64, 64, 5}};
    r2_nic_t nics[3] = {{.distance = R2_NIC_DISTANCE_UNKNOWN},
                        {.distance = R2_NIC_DISTANCE_UNKNOWN},
                        {.distance = R2_NIC_DISTANCE_UNKNOWN}};
    r2_near_gpus_t gpus;

    (void) state;
    for (size_t rails = 0; rails <= 3; ++rails) {
        r2_near_find(nics, rails, &place, 1, &gpus);
        assert_int_equal(NULL != r2_near_of(&gpus, place.pci), 3 == rails);
    }
    r2_near_find(nics, 3, &place, 0, &gpus);
    assert_null(r2_near_of(&gpus, place.pci));
    nics[0].distance = 10; /* as near to the GPU, and not to the process's cores */
    r2_near_find(nics, 2, &place, 1, &gpus);
    assert_ptr_equal(r2_near_of(&gpus, place.pci), &gpus.of[0]);
    assert_false(gpus.of[0].itself.tells);
    assert_true(gpus.of[0].copies.tells);
}

static void the_same_time_is_a_sixteenth(void **state)
{
    static const struct {
        uint64_t near_bytes, far_bytes;
        bool near_first;
    } rows[] = {
        {0, 0, true},         {4095, 0, true},    {4096, 0, false},    {65536, 61440, false},
        {65536, 69631, true}, {8191, 4096, true}, {8192, 8191, false}, {0, 1 << 20, true},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        r2_near_lane_t near = {rows[i].near_bytes, 0, 1}, far = {rows[i].far_bytes, 0, 2};

        assert_int_equal(r2_near_is_first(&near, &far, CHUNK), rows[i].near_first);
        assert_int_equal(r2_near_is_first(&far, &near, CHUNK), !rows[i].near_first);
        near = (r2_near_lane_t){CHUNK, rows[i].near_bytes, 1}; /* the same of rails */
        far = (r2_near_lane_t){CHUNK, rows[i].far_bytes, 2};
        assert_int_equal(r2_near_is_first(&near, &far, CHUNK), rows[i].near_first);
        assert_int_equal(r2_near_is_first(&far, &near, CHUNK), !rows[i].near_first);
    }
    assert_false(r2_near_is_first(&(r2_near_lane_t){5, 0, 1}, &(r2_near_lane_t){5, 0, 1}, CHUNK));
    assert_true(r2_near_is_first(&(r2_near_lane_t){4, 0, 1}, &(r2_near_lane_t){5, 0, 1}, CHUNK));
    assert_false(r2_near_is_first(&(r2_near_lane_t){2, 0, 2}, &(r2_near_lane_t){1, 0, 1}, 1));
    /* the peer's lanes count before the rail, which others load */
    assert_true(r2_near_is_first(&(r2_near_lane_t){0, 9 * CHUNK, 2},
                                 &(r2_near_lane_t){CHUNK, CHUNK, 1}, CHUNK));
}

/* ---- a link of four rails ---- */

static const r2_near_t from_two = {{3, 2, 0, 1}, true}; /* rail 2 is the nearest, then 3, 1, 0 */
static char data[8 * CHUNK];
static uint32_t done_count;

static void done(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
    ++done_count;
}

static stub_net_t *open_link(void)
{
    stub_net_t *stub = stub_net_create_wide(4);

    assert_int_equal(stub->link->lane_count, 4);
    for (uint32_t i = 0; i < 4; ++i) {
        stub_lane_up(stub, i);
        stub->link->lanes[i].tx.window_bytes = 1u << 20;
        stub->link->lanes[i].tx.delivery.bytes_per_s = FAST;
    }
    done_count = 0;
    return stub;
}

static void send_bytes(stub_net_t *stub, uint32_t id, uint64_t bytes, const r2_near_t *near)
{
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = bytes,
                                 .chunk_bytes = CHUNK,
                                 .granted_bytes = bytes,
                                 .near = near,
                                 .done = done};

    stub->link->chunk_most_bytes = CHUNK;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
}

static void send_chunks(stub_net_t *stub, uint32_t id, uint32_t chunks, const r2_near_t *near)
{
    send_bytes(stub, id, (uint64_t) chunks * CHUNK, near);
}

/* @return chunks under way on a lane. */
static uint32_t chunks_on(const stub_net_t *stub, uint32_t lane)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    DL_FOREACH(stub->link->lanes[lane].tx.in_flight, packet) {
        count += R2_WIRE_DATA == packet->item->kind ? 1 : 0;
    }
    return count;
}

static void assert_chunks(const stub_net_t *stub, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    assert_int_equal(chunks_on(stub, 0), a);
    assert_int_equal(chunks_on(stub, 1), b);
    assert_int_equal(chunks_on(stub, 2), c);
    assert_int_equal(chunks_on(stub, 3), d);
}

static void close_link(stub_net_t *stub)
{
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Whoever has the turn. Lanes that have nothing under way take the next chunks: none idles. */
static void chunks_take_the_chain_in_its_order(void **state)
{
    (void) state;
    for (uint8_t turn = 0; turn < 4; ++turn) {
        stub_net_t *stub = open_link();

        stub->link->turn.lane = turn;
        send_chunks(stub, 0, 1, &from_two);
        assert_chunks(stub, 0, 0, 1, 0);
        send_chunks(stub, 1, 1, &from_two);
        assert_chunks(stub, 0, 0, 1, 1);
        send_chunks(stub, 2, 1, &from_two);
        assert_chunks(stub, 0, 1, 1, 1);
        send_chunks(stub, 3, 1, &from_two);
        assert_chunks(stub, 1, 1, 1, 1);
        send_chunks(stub, 4, 6, &from_two);
        assert_chunks(stub, 2, 2, 3, 3);
        close_link(stub);
    }
}

static void other_messages_go_as_before(void **state)
{
    (void) state;
    for (uint8_t turn = 0; turn < 4; ++turn) {
        stub_net_t *stub = open_link();

        stub->link->turn.lane = turn;
        send_chunks(stub, 0, 1, NULL);
        assert_int_equal(chunks_on(stub, turn), 1);
        send_bytes(stub, 1, CHUNK - 1, &from_two); /* by one that is idle, whose turn is next */
        assert_int_equal(chunks_on(stub, (turn + 1) % 4u), 1);
        close_link(stub);
    }
}

/* A control packet, or what else is next to nothing, turns nobody away. */
static void a_little_under_way_changes_nothing(void **state)
{
    stub_net_t *stub = open_link();

    (void) state;
    assert_true(r2_lane_ping(&stub->link->lanes[2]));
    assert_true(stub->link->lanes[2].tx.in_flight_bytes > 0);
    send_chunks(stub, 0, 1, &from_two);
    assert_chunks(stub, 0, 0, 1, 0);
    close_link(stub);
}

/* Lanes to this peer are idle, and others have the nearest rail's: it would be done later. */
static void rails_that_others_load_come_later(void **state)
{
    stub_net_t *stub = open_link();

    (void) state;
    stub->link->lanes[2].rail->under_way_bytes = CHUNK;
    stub->link->lanes[3].rail->under_way_bytes = CHUNK / 32;
    send_chunks(stub, 0, 1, &from_two);
    assert_chunks(stub, 0, 0, 0, 1);
    send_chunks(stub, 1, 1, &from_two);
    assert_chunks(stub, 0, 1, 0, 1);
    send_chunks(stub, 2, 2, &from_two);
    assert_chunks(stub, 1, 1, 1, 1);
    stub->link->lanes[2].rail->under_way_bytes -= CHUNK;
    stub->link->lanes[3].rail->under_way_bytes -= CHUNK / 32;
    close_link(stub);
}

/* What the nearest rails leave goes to the next of the chain, as evenly as their queues allow. */
static void what_a_lane_leaves_goes_along_the_chain(void **state)
{
    stub_net_t *stub = open_link();
    r2_link_t *link = stub->link;

    (void) state;
    send_chunks(stub, 0, 1, &from_two);
    assert_chunks(stub, 0, 0, 1, 0);
    r2_lane_fence(&link->lanes[2], R2_ERR_LANE_DOWN, false);
    r2_link_push(link);
    assert_chunks(stub, 0, 0, 0, 1);
    r2_lane_fence(&link->lanes[3], R2_ERR_LANE_DOWN, false);
    r2_link_push(link);
    assert_chunks(stub, 0, 1, 0, 0);
    send_chunks(stub, 1, 3, &from_two); /* and one more, which the emptier one has first */
    assert_chunks(stub, 2, 2, 0, 0);
    r2_lane_fence(&link->lanes[1], R2_ERR_LANE_DOWN, false);
    r2_link_push(link);
    assert_chunks(stub, 4, 0, 0, 0);
    assert_int_equal(stub->counters.resent_chunks, 4);
    close_link(stub);
}

/* By what was measured, or by what its NIC says: it is not done as soon. */
static void a_slower_rail_is_not_taken_for_being_near(void **state)
{
    (void) state;
    for (int by_nic = 0; by_nic <= 1; ++by_nic) {
        stub_net_t *stub = open_link();
        r2_lane_t *nearest = &stub->link->lanes[2];

        stub->link->turn.lane = 0;
        if (1 == by_nic) {
            nearest->rail->nic.speed_bytes_per_s = 1;
        } else {
            nearest->tx.delivery.bytes_per_s = FAST / 3;
        }
        send_chunks(stub, 0, 1, &from_two);
        assert_chunks(stub, 0, 0, 0, 1);
        close_link(stub);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_distances),
        cmocka_unit_test(equal_distances_tell_nothing),
        cmocka_unit_test(the_same_time_is_a_sixteenth),
        cmocka_unit_test(chunks_take_the_chain_in_its_order),
        cmocka_unit_test(other_messages_go_as_before),
        cmocka_unit_test(a_little_under_way_changes_nothing),
        cmocka_unit_test(rails_that_others_load_come_later),
        cmocka_unit_test(what_a_lane_leaves_goes_along_the_chain),
        cmocka_unit_test(a_slower_rail_is_not_taken_for_being_near),
    };

    return cmocka_run_group_tests_name("rails near a GPU", tests, NULL, NULL);
}
