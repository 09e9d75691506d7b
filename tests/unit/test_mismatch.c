/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives and messages of one link that do not meet (link/mismatch.c): questions, denials, strays.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stub_net.h"

#define BYTES 8200 /* too long to be copied */

typedef struct ended {
    uint32_t done;
    r2_status_t status;
} ended_t;

static void ended_done(void *arg, r2_status_t status)
{
    ended_t *ended = arg;

    ++ended->done;
    ended->status = status;
}

static bool never(void *arg, uint32_t rank, const r2_tag_t *tag, uint32_t digest)
{
    assert_non_null(arg);
    assert_int_equal(rank, 1);
    return 7 != digest || 5 != tag->id; /* but for this one, it may come */
}

static void await_one(stub_net_t *stub, uint32_t id, uint32_t digest, char *data, ended_t *received)
{
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = BYTES,
                                 .digest = digest,
                                 .done = ended_done,
                                 .arg = received};

    assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
}

static void say_of_receives(stub_net_t *stub, r2_wire_kind_t kind, const r2_wire_query_t *queries,
                            size_t count)
{
    r2_lane_t *lane = &stub->link->lanes[0];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = (uint8_t) kind};

    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next =
        NULL == lane->tx.in_flight ? lane->tx.seq : lane->tx.in_flight->header.lane_seq;
    header.length = (uint32_t) (count * sizeof(*queries));
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), queries, count * sizeof(*queries));
    assert_int_equal(stub->counters.rx_malformed, 0);
}

/* The newest thing of this kind that is under way on a lane. */
static const r2_tx_item_t *under_way(const stub_net_t *stub, r2_wire_kind_t kind)
{
    const r2_tx_item_t *found = NULL;
    const r2_packet_t *packet;

    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        for (packet = stub->link->lanes[i].tx.in_flight; NULL != packet; packet = packet->next) {
            found = kind == packet->item->kind ? packet->item : found;
        }
    }
    return found;
}

/* A receive that has waited for long asks; a denial ends it if it is about the same plan. */
static void denied_receives_end(void **state)
{
    static char data[BYTES];
    ended_t received = {0, R2_OK};
    stub_net_t *stub = stub_net_create();
    const r2_tx_item_t *question;
    r2_wire_query_t query;

    (void) state;
    stub_lane_up(stub, 0);
    await_one(stub, 5, 7, data, &received);
    r2_net_progress(&stub->net);
    stub->time_ns += 19 * stub->params.failure_timeout_ms * R2_NS_PER_MS;
    r2_net_progress_links(&stub->net);
    assert_null(under_way(stub, R2_WIRE_QUERY));
    for (uint32_t i = 0; i < 2 && NULL == under_way(stub, R2_WIRE_QUERY); ++i) {
        stub->time_ns += 10 * stub->params.failure_timeout_ms * R2_NS_PER_MS;
        r2_net_progress_links(&stub->net);
    }
    question = under_way(stub, R2_WIRE_QUERY);
    assert_non_null(question);
    assert_int_equal(question->payload_bytes, sizeof(query));
    query = question->payload.queries[0];
    assert_int_equal(query.tag.id, 5);
    assert_int_equal(query.digest, 7);
    query.digest = 8;
    say_of_receives(stub, R2_WIRE_DENIED, &query, 1);
    assert_int_equal(received.done, 0);
    query.digest = 7;
    say_of_receives(stub, R2_WIRE_DENIED, &query, 1);
    assert_int_equal(received.done, 1);
    assert_int_equal(received.status, R2_ERR_PLAN_MISMATCH);
    stub_net_destroy(stub);
}

/* A part of a message came, and the rest may never: its receive asks, too. */
static void parts_ask_for_the_rest(void **state)
{
    static char data[BYTES], part[1024];
    ended_t received = {0, R2_OK};
    stub_net_t *stub = stub_net_create();
    const r2_lane_t *lane = &stub->link->lanes[0];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = R2_WIRE_DATA,
                               .tag = {.comm_key = 1, .coll_seq = 1, .id = 5},
                               .message_bytes = BYTES,
                               .chunk_bytes = sizeof(part),
                               .length = sizeof(part),
                               .digest = 7};

    (void) state;
    stub_lane_up(stub, 0);
    await_one(stub, 5, 7, data, &received);
    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    header.message = stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), part, sizeof(part));
    assert_int_equal(stub->counters.rx_malformed, 0);
    assert_int_equal(stub->counters.rx_bytes, sizeof(part));
    stub_acknowledge(stub, lane);
    for (uint32_t i = 0; i < 4 && NULL == under_way(stub, R2_WIRE_QUERY); ++i) {
        stub->time_ns += 10 * stub->params.failure_timeout_ms * R2_NS_PER_MS;
        r2_net_progress_links(&stub->net);
    }
    assert_non_null(under_way(stub, R2_WIRE_QUERY));
    assert_int_equal(under_way(stub, R2_WIRE_QUERY)->payload.queries[0].tag.id, 5);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Only what is not under way and will never be sent is denied. */
static void questions_are_answered(void **state)
{
    static const char data[BYTES];
    r2_wire_query_t queries[3] = {{.tag = {.comm_key = 1, .coll_seq = 1, .id = 4}, .digest = 7},
                                  {.tag = {.comm_key = 1, .coll_seq = 1, .id = 5}, .digest = 7},
                                  {.tag = {.comm_key = 1, .coll_seq = 1, .id = 5}, .digest = 8}};
    const r2_wire_query_t part = {.tag = {.comm_key = 1, .coll_seq = 2, .id = 5}, .digest = 7};
    stub_net_t *stub = stub_net_create();
    const r2_tx_item_t *answer;
    ended_t sent = {0, R2_OK};
    r2_link_send_t args = {.tag = queries[1].tag,
                           .data = data,
                           .bytes = BYTES,
                           .chunk_bytes = 16384,
                           .digest = 7,
                           .done = ended_done,
                           .arg = &sent};

    (void) state;
    stub_lane_up(stub, 0);
    say_of_receives(stub, R2_WIRE_QUERY, queries, 3);
    assert_null(under_way(stub, R2_WIRE_DENIED)); /* nobody to ask: it may come */
    stub->net.upcalls.sends = never;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    say_of_receives(stub, R2_WIRE_QUERY, queries, 3);
    assert_null(under_way(stub, R2_WIRE_DENIED));
    r2_link_withdraw(stub->link, 1);
    say_of_receives(stub, R2_WIRE_QUERY, queries, 3);
    assert_null(under_way(stub, R2_WIRE_DENIED)); /* all of it was sent, and arrives */
    args.tag = part.tag;
    args.chunk_bytes = 4200;
    stub->params.eager_bytes = args.chunk_bytes;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    r2_link_withdraw(stub->link, 1);
    say_of_receives(stub, R2_WIRE_QUERY, &part, 1);
    answer = under_way(stub, R2_WIRE_DENIED);
    assert_non_null(answer);
    assert_int_equal(answer->payload_bytes, sizeof(part));
    assert_memory_equal(&answer->payload.queries[0], &part, sizeof(part));
    stub_net_destroy(stub);
}

static void count_stray(void *arg, uint32_t rank, uint64_t comm_key)
{
    stub_net_t *stub = arg;

    assert_int_equal(rank, 1);
    assert_int_equal(comm_key, 1);
    ++stub->strays;
}

/* A message that no receive will take is given up after a while, and told; early ones stay. */
static void strays_are_told(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub_lane_up(stub, 0);
    stub->net.upcalls.stray = count_stray;
    stub->net.upcalls.receives = never;
    for (uint32_t id = 4; id <= 5; ++id) {
        r2_lane_t *lane = &stub->link->lanes[0];
        r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                   .kind = R2_WIRE_DATA,
                                   .flags = R2_WIRE_EAGER,
                                   .tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                   .digest = 7,
                                   .message_bytes = 8,
                                   .chunk_bytes = 16384,
                                   .length = 8};

        header.connection = lane->connect.rx_connection;
        header.lane_seq = lane->rx.next;
        header.ack_next = lane->tx.seq;
        header.message = stub->net.first_seq + id - 4;
        header.consumed = (uint32_t) stub->net.first_seq;
        stub_packet(stub, &header, sizeof(header), "12345678", 8);
    }
    assert_int_equal(stub->link->rx.unposted, 2);
    stub->time_ns += 21 * stub->params.failure_timeout_ms * R2_NS_PER_MS;
    r2_net_progress(&stub->net);
    stub->time_ns += 21 * stub->params.failure_timeout_ms * R2_NS_PER_MS;
    r2_net_progress(&stub->net);
    assert_int_equal(stub->link->rx.unposted, 1);
    assert_int_equal(stub->strays, 1);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(denied_receives_end),
        cmocka_unit_test(parts_ask_for_the_rest),
        cmocka_unit_test(questions_are_answered),
        cmocka_unit_test(strays_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
