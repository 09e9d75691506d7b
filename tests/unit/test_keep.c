/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that are copied once they were sent, and acknowledgements that are asked for.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/tx.h"
#include "stub_net.h"

#define LONG_BYTES 20000u

static void never_done(void *arg, r2_status_t status)
{
    fail_msg("done was called: %p %d", arg, (int) status);
}

static int calls_done;

static void done_once(void *arg, r2_status_t status)
{
    (void) arg;
    assert_int_equal(status, R2_ERR_PEER_GONE);
    ++calls_done;
}

static r2_status_t post(stub_net_t *stub, uint32_t id, const char *data, uint64_t bytes,
                        r2_tx_message_t **message_p)
{
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = bytes,
                                 .chunk_bytes = 32768,
                                 .message_p = message_p,
                                 .done = never_done};

    return r2_link_send(stub->link, &args);
}

/* Its data is the caller's again, and what is sent once more is the copy. */
static void kept_message_is_sent_again(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;
    char *data = malloc(LONG_BYTES);
    r2_tx_message_t *message;

    (void) state;
    memset(data, 7, LONG_BYTES);
    stub_lane_up(stub, 0);
    assert_int_equal(post(stub, 0, data, LONG_BYTES, &message), R2_IN_PROGRESS);
    assert_true(r2_link_may_keep(message));
    assert_true(r2_link_keep(message));
    assert_false(r2_link_may_keep(message));
    assert_int_equal(link->tx.copied_bytes, LONG_BYTES);
    memset(data, 0, LONG_BYTES);
    free(data);
    r2_link_withdraw(link, 1); /* copied messages are still delivered */
    stub->mode = STUB_LATER;
    stub_lane_up(stub, 1);
    r2_lane_fence(&link->lanes[0], R2_ERR_LANE_DOWN, false);
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.resent_chunks, 1);
    assert_int_equal(LONG_BYTES, stub->sends->prev->op->data_bytes);
    assert_int_equal(7, ((const char *) stub->sends->prev->op->data)[LONG_BYTES - 1]);
    stub->complete = true;
    r2_net_progress(&stub->net);
    stub_acknowledge(stub, &link->lanes[1]);
    assert_int_equal(link->tx.copied_bytes, 0);
    assert_null(link->tx.messages);
    stub_net_destroy(stub);
}

/* Messages of a short call, whatever their length, while there is room. */
static void short_calls_send_copies(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = LONG_BYTES,
                           .chunk_bytes = 32768,
                           .brief = true,
                           .done = never_done};

    (void) state;
    stub_lane_up(stub, 0);
    stub->params.retransmit_bytes = 2 * LONG_BYTES - 1;
    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
    assert_int_equal(0, stub->link->lanes[0].tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    args.tag.id = 1;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    stub_net_destroy(stub);
}

/*
 * A copied message is over for its sender, who may compute then: what has to wait for room on the
 * lanes would wait until somebody reads acknowledgements. So it is not copied.
 */
static void what_has_to_wait_is_not_copied(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = LONG_BYTES,
                           .chunk_bytes = 8192,
                           .brief = true,
                           .done = never_done};

    (void) state;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS); /* no lane */
    r2_link_withdraw(stub->link, 1);
    stub_lane_up(stub, 0);
    args.tag.id = 1;
    assert_true(stub->link->lanes[0].tx.window_bytes < 2 * LONG_BYTES);
    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
    args.tag.id = 2;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    stub_net_destroy(stub);
}

/* Not while a transport reads it, while a part of it is not sent, or where there is no room. */
static void what_is_not_sent_is_not_kept(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    r2_tx_message_t *message, *later;

    (void) state;
    assert_int_equal(post(stub, 0, data, LONG_BYTES, &message), R2_IN_PROGRESS);
    assert_false(r2_link_may_keep(message)); /* no lane */
    stub->mode = STUB_LATER;
    stub_lane_up(stub, 0);
    r2_net_progress(&stub->net);
    assert_false(r2_link_may_keep(message));
    stub->complete = true;
    r2_net_progress(&stub->net);
    assert_true(r2_link_may_keep(message));
    stub->params.retransmit_bytes = LONG_BYTES; /* a quarter is for short messages */
    assert_false(r2_link_may_keep(message));
    stub->params.retransmit_bytes = 4 * LONG_BYTES / 3 - 1;
    assert_false(r2_link_may_keep(message));
    stub->params.retransmit_bytes = 4 * LONG_BYTES / 3 + 1;
    assert_true(r2_link_may_keep(message));
    assert_int_equal(post(stub, 1, data, 8, &later), R2_OK);
    assert_null(later); /* copied, nothing to wait for */
    assert_false(r2_link_may_keep(message));
    assert_false(r2_link_keep(message)); /* others may have taken the room */
    stub_net_destroy(stub);

    stub = stub_net_create(); /* no credit */
    stub->params.unexpected_bytes = 1024;
    stub_lane_up(stub, 0);
    assert_int_equal(post(stub, 0, data, LONG_BYTES, &message), R2_IN_PROGRESS);
    r2_net_progress(&stub->net);
    assert_int_equal(message->next_chunk, 0);
    assert_false(r2_link_may_keep(message));
    stub_net_destroy(stub);
}

/* A message that goes one way for long, and whose sender waits for nothing. */
static void acknowledgements_are_asked_for_in_time(void **state)
{
    static const char data[4096], most[8192];
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane;
    uint32_t id = 0;

    (void) state;
    stub_lane_up(stub, 0);
    lane = &stub->link->lanes[0];
    stub->mode = STUB_LATER;
    while (4 * (lane->tx.in_flight_bytes + sizeof(data) + sizeof(r2_wire_header_t)) <=
           3 * lane->tx.window_bytes) {
        assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
        assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    }
    assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
    assert_int_equal(R2_WIRE_ACK_NOW, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    assert_true(id > 2);
    while (4 * lane->tx.in_flight_bytes <= 3 * lane->tx.window_bytes) { /* headers may be short */
        assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
    }
    assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
    assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    stub->complete = true;
    r2_net_progress(&stub->net);
    stub_acknowledge(stub, lane);
    for (uint32_t bytes = 4000; bytes <= sizeof(most); bytes += 10) { /* headers count, too */
        uint32_t asked = 0;

        lane->tx.window_bytes = 32768; /* it grows */

        while (lane->tx.in_flight_bytes + bytes + sizeof(r2_wire_header_t) <=
               lane->tx.window_bytes) {
            assert_int_equal(post(stub, id++, most, bytes, NULL), R2_OK);
            asked += 0 != (lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
        }
        assert_in_range(asked, 1, 2);
        stub->complete = true;
        r2_net_progress(&stub->net);
        stub_acknowledge(stub, lane);
    }
    stub->params.retransmit_bytes = 3 * sizeof(data);
    assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
    assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
    assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    assert_int_equal(post(stub, id++, data, sizeof(data), NULL), R2_OK);
    assert_int_equal(R2_WIRE_ACK_NOW, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    stub_net_destroy(stub);
}

/** The worst level at which something was said. */
static void note_level(void *arg, int level, const char *line)
{
    int *worst = arg;

    (void) line;
    *worst = r2_min(*worst, level);
}

static void refuse_all(stub_net_t *stub)
{
    r2_lane_fence(&stub->link->lanes[0], R2_ERR_LANE_DOWN, false);
    stub_refuse(stub, R2_NS_PER_S);
    assert_int_equal(stub->link->broken, R2_ERR_PEER_GONE);
}

/*
 * A peer that has all it wanted ends, and its last acknowledgement is lost with its socket: no call
 * waits for it, and nothing is wrong.
 */
static void peers_that_end_are_no_error(void **state)
{
    char data[] = "1234567", received[sizeof(data)];
    const r2_link_recv_t recv = {.tag = {.comm_key = 1, .coll_seq = 1, .id = 1},
                                 .data = received,
                                 .bytes = sizeof(received),
                                 .done = done_once};

    (void) state;
    for (int awaited = 0; awaited < 2; ++awaited) {
        stub_net_t *stub = stub_net_create();
        int worst = R2_LOG_TRACE;

        stub->log.fn = note_level;
        stub->log.arg = &worst;
        stub_lane_up(stub, 0);
        assert_int_equal(post(stub, 0, data, sizeof(data), NULL), R2_OK);
        if (awaited) {
            assert_int_equal(r2_link_recv(stub->link, &recv), R2_IN_PROGRESS);
        }
        refuse_all(stub);
        assert_int_equal(worst == R2_LOG_ERROR, awaited);
        assert_int_equal(calls_done, awaited);
        stub_net_destroy(stub);
    }
}

/* Who ends acknowledges what it has not acknowledged yet. */
static void who_ends_acknowledges(void **state)
{
    char data[] = "1234567";
    stub_net_t *stub = stub_net_create();
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = R2_WIRE_DATA,
                               .flags = R2_WIRE_EAGER,
                               .length = sizeof(data),
                               .tag = {.comm_key = 1, .coll_seq = 1},
                               .message_bytes = sizeof(data),
                               .chunk_bytes = sizeof(data)};
    const r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    header.lane_seq = lane->rx.next;
    header.connection = lane->connect.rx_connection;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    header.message = stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), data, sizeof(data));
    assert_true(r2_link_owes_acks(stub->link));
    assert_int_equal(stub->counters.tx_acks, 0);
    r2_net_ack_last(&stub->net);
    assert_int_equal(stub->counters.tx_acks, 1);
    assert_false(r2_link_owes_acks(stub->link));
    stub_net_destroy(stub);
}

/* Its end can be by copies, so nobody is in a hurry; without room for one acknowledgements are. */
static void patient_messages_do_not_ask(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    r2_tx_message_t *first, *second;
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = LONG_BYTES,
                           .chunk_bytes = 32768,
                           .patient = true,
                           .message_p = &first,
                           .done = never_done};
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 1u << 20;
    stub->params.retransmit_bytes = 4 * LONG_BYTES;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    assert_int_equal(stub->link->tx.copied_bytes, LONG_BYTES); /* its room is its own */
    stub->params.retransmit_bytes = LONG_BYTES;
    args.tag.id = 1;
    args.message_p = &second;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(R2_WIRE_ACK_NOW, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    assert_true(r2_link_may_keep(first));
    assert_false(r2_link_may_keep(second));
    assert_true(r2_link_keep(first));
    assert_int_equal(stub->link->tx.copied_bytes, LONG_BYTES);
    assert_int_equal(stub->link->tx.copies, 1);
    stub_net_destroy(stub);
}

static void note_done(void *arg, r2_status_t status)
{
    assert_int_equal(status, R2_OK);
    ++*(unsigned *) arg;
}

/* One that ends by its acknowledgement gives its room back. */
static void patient_messages_give_room_back(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    unsigned done = 0;
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = LONG_BYTES,
                                 .chunk_bytes = 32768,
                                 .patient = true,
                                 .done = note_done,
                                 .arg = &done};

    (void) state;
    stub_lane_up(stub, 0);
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    stub_acknowledge(stub, &stub->link->lanes[0]);
    assert_int_equal(done, 1);
    assert_int_equal(stub->link->tx.copied_bytes, 0);
    assert_int_equal(stub->link->tx.copies, 0);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_message_is_sent_again),
        cmocka_unit_test(short_calls_send_copies),
        cmocka_unit_test(what_has_to_wait_is_not_copied),
        cmocka_unit_test(what_is_not_sent_is_not_kept),
        cmocka_unit_test(acknowledgements_are_asked_for_in_time),
        cmocka_unit_test(peers_that_end_are_no_error),
        cmocka_unit_test(who_ends_acknowledges),
        cmocka_unit_test(patient_messages_do_not_ask),
        cmocka_unit_test(patient_messages_give_room_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
