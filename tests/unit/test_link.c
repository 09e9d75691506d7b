/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link whose peer and transport the test plays: what was found in it once.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/offer.h"
#include "link/relay.h"
#include "link/rx.h"
#include "stub_net.h"

#define BYTES 8200 /* too long to be copied */

typedef struct sent {
    uint32_t done;
    r2_status_t status;
} sent_t;

static void sent_done(void *arg, r2_status_t status)
{
    sent_t *sent = arg;

    ++sent->done;
    sent->status = status;
}

static void post_at(stub_net_t *stub, uint32_t id, uint32_t order, const char *data, sent_t *sent)
{
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                           .data = data,
                           .bytes = BYTES,
                           .chunk_bytes = 16384,
                           .order = order,
                           .done = sent_done,
                           .arg = sent};

    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
}

static void post(stub_net_t *stub, uint32_t id, const char *data, sent_t *sent)
{
    post_at(stub, id, 0, data, sent);
}

/*
 * Three messages on one lane; the transport still holds all, the peer has the last two. Giving up
 * the first closes the lane, which completes the others in the middle of the walk over the
 * messages.
 */
static void others_complete_while_messages_are_given_up(void **state)
{
    static const char data[BYTES];
    stub_net_t *stub = stub_net_create();
    sent_t sents[3] = {{0, R2_OK}};
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_ACK};
    r2_lane_t *lane = &stub->link->lanes[0];
    uint32_t first;

    (void) state;
    stub_lane_up(stub, 0);
    stub->mode = STUB_LATER;
    first = lane->tx.seq;
    for (uint32_t i = 0; i < 3; ++i) {
        post(stub, i, data, &sents[i]);
    }
    assert_int_equal(lane->tx.seq, first + 3);
    header.connection = lane->connect.rx_connection;
    header.ack_next = first;
    header.ack_bits = 3; /* the second and the third */
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    assert_int_equal(sents[1].done, 0); /* still read by the transport */
    r2_link_withdraw(stub->link, 1);
    assert_int_equal(sents[0].done, 0);
    assert_true(sents[1].done <= 1 && sents[2].done <= 1);
    assert_non_null(stub->link->tx.messages); /* the first: it was eager, and arrives from a copy */
    assert_true(stub->link->tx.messages->withdrawn);
    assert_true(stub->link->tx.messages->data == stub->link->tx.messages->copy);
    assert_null(stub->link->tx.messages->all_next);
    stub_net_destroy(stub);
}

/* A request for credit for one of many receives. */
static void ask_for_credit(stub_net_t *stub, const r2_lane_t *lane, uint32_t seq, uint32_t number)
{
    r2_wire_header_t header = {
        .version = R2_WIRE_VERSION, .kind = R2_WIRE_RTS, .message_bytes = 100, .chunk_bytes = 100};

    header.connection = lane->connect.rx_connection;
    header.lane_seq = seq;
    header.ack_next = lane->tx.seq;
    header.message = stub->net.first_seq + number;
    header.tag = (r2_tag_t){.comm_key = 1, .coll_seq = number, .id = 0};
    stub_packet(stub, &header, sizeof(header), NULL, 0);
}

/* A peer that is far ahead asks for more receives than are kept: nothing is held back, and each
 * receive gets its credit. */
static void requests_are_acknowledged_however_many(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];
    uint32_t first = (uint32_t) stub->net.first_seq, count = R2_RX_UNPOSTED_MAX + 1000;
    static char data[100];
    sent_t sent = {0, R2_OK};
    r2_link_recv_t recv = {.data = data, .bytes = sizeof(data), .done = sent_done, .arg = &sent};

    (void) state;
    stub_lane_up(stub, 0);
    first = lane->rx.next;
    for (uint32_t i = 0; i < count; ++i) {
        ask_for_credit(stub, lane, first + i, i);
    }
    assert_int_equal(lane->rx.next, first + count);
    assert_int_equal(stub->link->rx.unposted, R2_RX_UNPOSTED_MAX);
    recv.tag = (r2_tag_t){.comm_key = 1, .coll_seq = count - 1, .id = 0}; /* was not kept */
    assert_int_equal(r2_link_recv(stub->link, &recv), R2_IN_PROGRESS);
    r2_grant_refill(stub->link);
    assert_int_equal(stub->link->rx.grants.notify_count, 1);
    stub_net_destroy(stub);
}

/* HELLO is not answered, and there are no descriptors to ask why: nothing is left of the lane. */
static void a_lane_in_wire_up_gives_its_descriptors_back(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_wire(stub, 0);
    assert_int_equal(lane->state, R2_LANE_WIRING);
    stub->time_ns += 60 * R2_NS_PER_S;
    r2_net_progress(&stub->net); /* away until now: the timer starts anew */
    stub->time_ns += 60 * R2_NS_PER_S;
    stub->net.last_progress_ns = stub->time_ns;
    stub->net.short_until_ns = stub->time_ns + R2_NS_PER_S;
    r2_net_progress(&stub->net);
    assert_true(stub->counters.shortages > 0);
    assert_int_equal(lane->state, R2_LANE_RESTING);
    assert_null(lane->conn);
    assert_int_equal(lane->why, R2_ERR_NO_DESCRIPTORS);
    stub_net_destroy(stub);
}

/* One lane with room for one message: the others leave by order, equal ones in turn. */
static void messages_leave_in_order(void **state)
{
    static const char data[BYTES];
    static const uint32_t order[] = {7, 9, 3, 5, 3, 0};
    static const uint32_t leaves[] = {0, 5, 2, 4, 3, 1};
    stub_net_t *stub = stub_net_create();
    sent_t sents[6] = {{0, R2_OK}};
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 1;
    for (uint32_t i = 0; i < 6; ++i) {
        post_at(stub, i, order[i], data, &sents[i]);
    }
    for (uint32_t i = 0; i < 6; ++i) {
        for (uint32_t k = 0; k < 6; ++k) {
            assert_int_equal(sents[leaves[k]].done, k < i);
        }
        stub_acknowledge(stub, lane);
        lane->tx.window_bytes = 1;
        r2_link_push(stub->link);
    }
    assert_null(stub->link->tx.messages);
    stub_net_destroy(stub);
}

/*
 * Sends and acknowledges a megabyte on one lane, at a rate.
 * @return bytes of the chunks that a message is cut into then, while another one is sent, too.
 */
static uint32_t chunk_bytes_at(uint64_t bytes_per_s)
{
    static const char data[1 << 20];
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];
    sent_t sent = {0, R2_OK};
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = BYTES,
                           .chunk_bytes = 16384,
                           .done = sent_done,
                           .arg = &sent};
    uint32_t chunk_bytes;

    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 16 * sizeof(data);
    for (; args.tag.id < sizeof(data) / BYTES; ++args.tag.id) {
        assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
        stub->time_ns += BYTES * R2_NS_PER_S / bytes_per_s;
        stub_acknowledge(stub, lane);
    }
    assert_int_equal(sent.done, args.tag.id);
    assert_int_equal(lane->tx.load.bytes_per_s, 0); /* nothing waited */
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    ++args.tag.id;
    args.bytes = sizeof(data);
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    chunk_bytes = stub->link->tx.messages->all_prev->chunk_bytes;
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
    return chunk_bytes;
}

/* A lane need not be too slow for its rate to be known. */
static void chunks_grow_with_the_rate(void **state)
{
    (void) state;
    assert_int_equal(chunk_bytes_at(10000000), 16384);
    assert_int_equal(chunk_bytes_at(60000000), 49152);
    assert_int_equal(chunk_bytes_at(1000000000), 999424);
    assert_int_equal(chunk_bytes_at(2000000000), 1048576);
}

/* A short message arrives whose sender waits. @return acknowledgements that were sent alone. */
static uint64_t acks_after_data(stub_net_t *stub, uint32_t id)
{
    r2_lane_t *lane = &stub->link->lanes[0];
    uint64_t before = stub->counters.tx_acks;
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = R2_WIRE_DATA,
                               .flags = R2_WIRE_ACK_NOW | R2_WIRE_EAGER,
                               .tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                               .message_bytes = 8,
                               .chunk_bytes = 16384,
                               .length = 8};

    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next = lane->tx.seq;
    header.message = stub->net.first_seq + id;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), "12345678", 8);
    assert_int_equal(stub->counters.rx_malformed, 0);
    return stub->counters.tx_acks - before;
}

/* Only who comes back at once may hold acknowledgements, while more comes in: not many, not for
 * long. */
static void acknowledgements_wait_for_more(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_net_t *net = &stub->net;

    (void) state;
    stub_lane_up(stub, 0);
    assert_int_equal(acks_after_data(stub, 0), 1);
    net->staying = true;
    for (uint32_t i = 1; i <= 8; ++i) {
        assert_int_equal(acks_after_data(stub, i), 0 == i % 4);
        assert_int_equal(net->acks_held, 0 != i % 4);
    }
    assert_int_equal(acks_after_data(stub, 9), 0);
    r2_net_progress(net); /* nothing more */
    assert_int_equal(stub->counters.tx_acks, 4);
    assert_int_equal(acks_after_data(stub, 10), 0);
    stub->time_ns += R2_NS_PER_MS;
    assert_int_equal(acks_after_data(stub, 11), 1);
    assert_int_equal(acks_after_data(stub, 12), 0);
    net->staying = false;
    r2_net_progress_links(net);
    assert_int_equal(stub->counters.tx_acks, 6);
    assert_false(net->acks_held);
    stub_net_destroy(stub);
}

/* One progress pass. @return workers that it looked at. */
static uint32_t looks_of_progress(stub_net_t *stub)
{
    stub->looks = 0;
    r2_net_progress(&stub->net);
    return stub->looks;
}

/*
 * Between two progress passes that look at all workers, only those with news are looked at, and
 * those that cannot tell; and none goes to sleep without a look.
 */
static void progress_looks_at_readable_workers(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub_net_watch(stub);
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        stub_lane_up(stub, i);
    }
    stub->time_ns += R2_NS_PER_S;
    assert_int_equal(looks_of_progress(stub), STUB_RAILS);
    assert_int_equal(looks_of_progress(stub), 0);
    stub_net_signal(stub, 1, true);
    assert_int_equal(looks_of_progress(stub), 1);
    assert_int_equal(looks_of_progress(stub), 1);
    stub_net_signal(stub, 1, false);
    assert_int_equal(looks_of_progress(stub), 0);
    stub->mute = true;
    assert_int_equal(looks_of_progress(stub), STUB_RAILS);
    stub->mute = false;
    assert_int_equal(looks_of_progress(stub), 0);
    stub->looks = 0;
    assert_true(r2_net_arm(&stub->net));
    assert_int_equal(stub->looks, STUB_RAILS);
    assert_true(r2_net_arm(&stub->net));
    assert_int_equal(stub->looks, STUB_RAILS);
    stub->time_ns += R2_NS_PER_MS;
    assert_int_equal(looks_of_progress(stub), STUB_RAILS);
    stub_net_destroy(stub);
}

/* Two lanes whose round trip is known; one message on the first, which says nothing of it. */
static stub_net_t *slow_tail(sent_t *sent, uint64_t idle_bytes_per_s)
{
    static const char data[BYTES];
    stub_net_t *stub = stub_net_create();

    for (uint32_t i = 0; i < 2; ++i) {
        stub_lane_up(stub, i);
        stub->link->lanes[i].timing.srtt_ns = R2_NS_PER_MS;
    }
    stub->link->lanes[1].tx.load.bytes_per_s = idle_bytes_per_s;
    stub->link->turn.lane = 0;
    post(stub, 0, data, sent);
    assert_non_null(stub->link->lanes[0].tx.in_flight);
    assert_null(stub->link->lanes[1].tx.in_flight);
    return stub;
}

/* What a slow lane holds at the end is sent once more on an idle one, not too early, and only if
 * the peer is awake. */
static void tails_are_sent_again_on_idle_lanes(void **state)
{
    sent_t sent = {0, R2_OK};
    stub_net_t *stub = slow_tail(&sent, 10000000);
    r2_lane_t *slow = &stub->link->lanes[0], *idle = &stub->link->lanes[1];

    (void) state;
    stub->time_ns += 10 * R2_NS_PER_MS;
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.hedged_bytes, 0); /* the peer may be stopped */
    assert_int_equal(r2_tx_tail_deadline_ns(stub->link), R2_NEVER_NS);
    stub_speak(stub, idle);
    assert_int_equal(stub->counters.hedged_bytes, BYTES);
    assert_non_null(idle->tx.in_flight);
    stub_speak(stub, slow);
    stub->time_ns += 10 * R2_NS_PER_MS;
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.hedged_bytes, BYTES); /* two copies are enough */
    stub_acknowledge(stub, idle);
    assert_int_equal(sent.done, 1);
    stub_acknowledge(stub, slow);
    assert_int_equal(sent.done, 1);
    assert_null(stub->link->tx.messages);
    stub_net_destroy(stub);
}

/* An idle lane that takes longer than the slow one is no help; nor is one while there is anything
 * new to send. */
static void tails_stay_where_they_are(void **state)
{
    static const char data[BYTES];
    sent_t sents[2] = {{0, R2_OK}};
    stub_net_t *stub = slow_tail(&sents[0], 100000);

    (void) state;
    stub->time_ns += 10 * R2_NS_PER_MS;
    stub_speak(stub, &stub->link->lanes[1]);
    assert_int_equal(stub->counters.hedged_bytes, 0);
    assert_int_equal(r2_tx_tail_deadline_ns(stub->link),
                     stub->time_ns + stub->params.ack_delay_us * R2_NS_PER_US);
    stub_acknowledge(stub, &stub->link->lanes[0]);
    assert_int_equal(sents[0].done, 1);
    stub->link->lanes[1].tx.load.bytes_per_s = 0;
    stub->link->lanes[0].tx.window_bytes = stub->link->lanes[1].tx.window_bytes = 1;
    post(stub, 1, data, &sents[0]);
    post(stub, 2, data, &sents[1]);
    post(stub, 3, data, &sents[1]);
    assert_int_equal(r2_tx_tail_deadline_ns(stub->link), R2_NEVER_NS);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* The peer talks for 40 timeouts and a second, and takes nothing of what lane 0 was given. */
static uint64_t stalled(stub_net_t *stub)
{
    const uint64_t stall_ns = stub->time_ns + 40 * stub->params.failure_timeout_ms * R2_NS_PER_MS;

    while (stub->time_ns < stall_ns + R2_NS_PER_S && 0 == stub->counters.lanes_failed) {
        stub->time_ns += 10 * R2_NS_PER_MS;
        stub_speak(stub, &stub->link->lanes[0]);
        r2_net_progress(&stub->net); /* sees that this was all */
    }
    return stall_ns;
}

/*
 * A lone lane on which the peer talks for long and takes nothing has lost what it was given: it is
 * opened anew. Not one on which only comes what the peer said before.
 */
static void stalled_lanes_are_opened_anew(void **state)
{
    static const char data[BYTES];

    (void) state;
    for (int old = 0; old < 2; ++old) {
        stub_net_t *stub = stub_net_create();
        sent_t sent = {0, R2_OK};
        uint64_t stall_ns;

        stub_lane_up(stub, 0);
        post(stub, 0, data, &sent);
        stub->old_words = old;
        stall_ns = stalled(stub);
        assert_int_equal(stub->counters.lanes_failed, old ? 0 : 1);
        assert_true(stub->time_ns > stall_ns);
        assert_int_equal(sent.done, 0); /* it goes with the lane that is next up */
        if (!old) {
            stub_lane_up(stub, 0);
        }
        stub_acknowledge(stub, &stub->link->lanes[0]);
        assert_int_equal(sent.done, 1);
        stub_net_destroy(stub);
    }
}

/* A relay lane carries nothing while a direct lane is sound, and never what is relayed for
 * others. */
static void relay_lanes_stand_aside(void **state)
{
    const r2_tx_item_t relayed = {.kind = R2_WIRE_RELAY};
    stub_net_t *stub = stub_net_create();
    const r2_lane_t lane = {
        .link = stub->link, .rail = &stub->net.relay->rail, .tx.window_bytes = 1};

    (void) state;
    assert_false(r2_relay_bars(stub->link, &lane, NULL));
    assert_true(r2_relay_bars(stub->link, &lane, &relayed));
    stub_lane_up(stub, 0);
    assert_true(r2_relay_bars(stub->link, &lane, NULL));
    stub->link->lanes[0].state = R2_LANE_DOUBT;
    assert_false(r2_relay_bars(stub->link, &lane, NULL));
    stub_net_destroy(stub);
}

/* A peer that calls over a rail in quarantine is refused, unless that rail is the only path. */
static void only_paths_are_open_in_quarantine(void **state)
{
    uint8_t offer[R2_HELLO_BYTES_MAX];
    stub_net_t *stub = stub_net_create();
    r2_lane_t *sound = &stub->link->lanes[0], *shut = &stub->link->lanes[1];

    (void) state;
    stub_lane_up(stub, 0);
    r2_net_own_rail(&stub->net, 1, true, stub->time_ns + 10 * R2_NS_PER_S);
    stub_hello(stub, 1, offer, stub_offer(stub, 1, 0, offer));
    assert_int_equal(shut->state, R2_LANE_DOWN);
    sound->state = R2_LANE_DOUBT;
    stub_hello(stub, 1, offer, stub_offer(stub, 1, 0, offer));
    assert_int_equal(shut->state, R2_LANE_WIRING);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_complete_while_messages_are_given_up),
        cmocka_unit_test(requests_are_acknowledged_however_many),
        cmocka_unit_test(a_lane_in_wire_up_gives_its_descriptors_back),
        cmocka_unit_test(messages_leave_in_order),
        cmocka_unit_test(acknowledgements_wait_for_more),
        cmocka_unit_test(chunks_grow_with_the_rate),
        cmocka_unit_test(progress_looks_at_readable_workers),
        cmocka_unit_test(tails_are_sent_again_on_idle_lanes),
        cmocka_unit_test(tails_stay_where_they_are),
        cmocka_unit_test(stalled_lanes_are_opened_anew),
        cmocka_unit_test(relay_lanes_stand_aside),
        cmocka_unit_test(only_paths_are_open_in_quarantine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
