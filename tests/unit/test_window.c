/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a lane's window lets through, and what is asked for where it is full.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <utlist.h>

#include "link/tx.h"
#include "stub_net.h"

/* As in tx.c. */
#define ROOM_NS (100 * R2_NS_PER_US)
#define FAST    (1000u * 1000 * 1000) /* bytes per second */

static void never_done(void *arg, r2_status_t status)
{
    fail_msg("done was called: %p %d", arg, (int) status);
}

static uint32_t pings_under_way(const stub_net_t *stub)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    DL_FOREACH(stub->link->lanes[0].tx.in_flight, packet) {
        count += R2_WIRE_PING == packet->item->kind ? 1 : 0;
    }
    return count;
}

/* A lane that has `shorts` messages under way, of 6,000 bytes each, which are copied and ask for
 * nothing; its window is of 32 KiB. Then one of 64 KiB. @return what goes of it at once. */
static uint32_t chunks_behind(stub_net_t *stub, uint32_t shorts)
{
    static const char data[65536];
    r2_link_send_t args = {
        .tag = {.comm_key = 1, .coll_seq = 1}, .data = data, .bytes = 6000, .chunk_bytes = 65536};
    r2_lane_t *lane = &stub->link->lanes[0];
    r2_tx_message_t *message;

    stub->params.unexpected_bytes = 4u << 20;
    stub->params.eager_bytes = sizeof(data);
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 32768;
    lane->tx.delivery.bytes_per_s = FAST;
    for (uint32_t i = 0; i < shorts; ++i) {
        args.tag.id = i;
        assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
        assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    }
    args.tag.id = shorts;
    args.bytes = sizeof(data);
    args.done = never_done;
    args.message_p = &message;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(message->chunk_count, 1);
    return message->next_chunk;
}

/* A chunk that is longer than the window does not wait for what is acknowledged late. */
static void long_chunks_go_behind_little(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub->params.copy_max_bytes = 8192;
    assert_int_equal(chunks_behind(stub, 1), 1);
    assert_int_equal(pings_under_way(stub), 0);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Behind more than that it waits, and asks for it, once: not at once, what comes of the peer brings
 * it. */
static void who_waits_for_room_asks(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub->params.copy_max_bytes = 8192;
    assert_int_equal(chunks_behind(stub, 3), 0);
    assert_int_equal(pings_under_way(stub), 0);
    assert_int_equal(r2_link_deadline_ns(stub->link), stub->net.now_ns + ROOM_NS);
    for (uint32_t i = 0; i < 2; ++i) {
        stub->time_ns += ROOM_NS;
        (void) r2_net_progress(&stub->net);
        assert_int_equal(pings_under_way(stub), 1);
    }
    assert_true(r2_link_deadline_ns(stub->link) > stub->net.now_ns);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_chunks_go_behind_little),
        cmocka_unit_test(who_waits_for_room_asks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
