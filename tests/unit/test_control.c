/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link while memory is short: what must arrive is said later, and nothing ends the process.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/state.h"
#include "stub_net.h"

#define BYTES         20000u /* too long to be copied, or to go without credit here */
#define BUCKETS_BYTES (HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket))

/** Allocations of so many bytes fail; 0: none. */
static struct {
    size_t bytes;
    uint32_t failed;
} starve;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static bool fails(size_t bytes)
{
    const bool hit = 0 != starve.bytes && bytes == starve.bytes;

    starve.failed += hit ? 1 : 0;
    return hit;
}

void *__wrap_malloc(size_t bytes)
{
    return fails(bytes) ? NULL : __real_malloc(bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(bytes) ? NULL : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails(count * bytes) ? NULL : __real_calloc(count, bytes);
}

static void starve_of(size_t bytes)
{
    starve.bytes = bytes;
    starve.failed = 0;
}

/* Memory is there again. It did fail before. */
static void feed(void)
{
    assert_true(starve.failed > 0);
    starve.bytes = 0;
}

static void ended(void *arg, r2_status_t status)
{
    r2_status_t *status_p = arg;

    *status_p = status;
}

static stub_net_t *stub_with_a_lane(void)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    return stub;
}

static r2_status_t send_one(stub_net_t *stub, uint32_t id, r2_status_t *status_p)
{
    static const char data[BYTES];
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = BYTES,
                                 .chunk_bytes = 16384,
                                 .done = ended,
                                 .arg = status_p};

    return r2_link_send(stub->link, &args);
}

static r2_status_t post_one(stub_net_t *stub, uint32_t id, r2_status_t *status_p)
{
    static char data[BYTES];
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = BYTES,
                                 .done = ended,
                                 .arg = status_p};

    return r2_link_recv(stub->link, &args);
}

static uint32_t under_way(const stub_net_t *stub, r2_wire_kind_t kind)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    for (packet = stub->link->lanes[0].tx.in_flight; NULL != packet; packet = packet->next) {
        count += kind == packet->item->kind ? 1 : 0;
    }
    return count;
}

/* The link's own timer, and nothing else, makes it go on. */
static void wait_for_timer(stub_net_t *stub)
{
    const uint64_t due_ns = r2_link_deadline_ns(stub->link);

    assert_true(stub->link->is_active);
    assert_true(due_ns <= stub->time_ns + 10 * R2_NS_PER_MS);
    stub->time_ns = due_ns;
    r2_net_progress(&stub->net);
}

/* Credit that could not be said is not lost, for however many receives. */
static void credit_waits_for_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();
    r2_status_t status = R2_IN_PROGRESS;

    (void) state;
    for (uint32_t id = 0; id < 40; ++id) {
        assert_int_equal(post_one(stub, id, &status), R2_IN_PROGRESS);
    }
    starve_of(sizeof(r2_tx_item_t));
    r2_net_progress(&stub->net);
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_CREDIT), 0);
    feed();
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_CREDIT), 3);
    assert_int_equal(stub->net.open_bytes, 40 * BYTES);
    stub_net_destroy(stub);
}

/* What is left of a message that nobody wants any more may come: the sender must hear it. */
static void discards_wait_for_memory(void **state)
{
    static const char data[16384];
    stub_net_t *stub = stub_with_a_lane();
    r2_lane_t *lane = &stub->link->lanes[0];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = R2_WIRE_DATA,
                               .flags = R2_WIRE_EAGER,
                               .tag = {.comm_key = 1, .coll_seq = 1},
                               .message_bytes = BYTES,
                               .chunk_bytes = sizeof(data),
                               .length = sizeof(data)};

    (void) state;
    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next = lane->tx.seq;
    header.message = stub->net.first_seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), data, sizeof(data));
    assert_int_equal(stub->link->rx.unposted, 1);
    starve_of(sizeof(r2_tx_item_t));
    r2_link_withdraw(stub->link, 1);
    r2_net_progress(&stub->net);
    assert_int_equal(under_way(stub, R2_WIRE_CREDIT), 0);
    feed();
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_CREDIT), 1);
    stub_net_destroy(stub);
}

/* A message that waits for credit asks for it when there is memory for the question. */
static void requests_wait_for_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();
    r2_status_t status = R2_IN_PROGRESS;

    (void) state;
    stub->params.unexpected_bytes = 1024;
    starve_of(sizeof(r2_tx_item_t));
    assert_int_equal(send_one(stub, 0, &status), R2_IN_PROGRESS);
    wait_for_timer(stub);
    assert_int_equal(stub->link->tx.requests, 0);
    feed();
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_RTS), 1);
    assert_int_equal(stub->link->tx.requests, 1);
    assert_int_equal(stub->link->tx.asks, 0);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* The last words of a process, and those of a communicator, are said or kept. */
static void last_words_wait_for_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();

    (void) state;
    r2_net_progress(&stub->net);
    starve_of(sizeof(r2_tx_item_t));
    assert_false(r2_link_abort(stub->link, 1, R2_ERR_NO_PATH));
    assert_false(r2_net_leave(&stub->net));
    assert_false(stub->link->path.leaving);
    feed();
    assert_true(r2_link_abort(stub->link, 1, R2_ERR_NO_PATH));
    r2_net_progress(&stub->net);
    assert_int_equal(under_way(stub, R2_WIRE_ABORT), 1);
    stub_net_destroy(stub);
}

/* No memory for a packet: the item waits, and the link's timer sends it. */
static void packets_wait_for_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();
    const char notice[] = "notice";

    (void) state;
    stub->params.failure_timeout_ms = 10000; /* no other timer */
    while (NULL != stub->net.packets.free_list) {
        free(r2_pool_get(&stub->net.packets));
    }
    starve_of(sizeof(r2_packet_t));
    assert_int_equal(r2_net_notice(&stub->net, 1, notice, sizeof(notice), false), R2_OK);
    r2_net_progress(&stub->net);
    assert_int_equal(under_way(stub, R2_WIRE_NOTICE), 0);
    feed();
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_NOTICE), 1);
    stub_net_destroy(stub);
}

/* The transport has no memory for a packet: that is no fault of the lane. */
static void transport_waits_for_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();
    const r2_lane_t *lane = &stub->link->lanes[0];
    const char notice[] = "notice";

    (void) state;
    stub->params.failure_timeout_ms = 10000; /* no other timer */
    stub->mode = STUB_STARVED;
    assert_int_equal(r2_net_notice(&stub->net, 1, notice, sizeof(notice), false), R2_OK);
    r2_net_progress(&stub->net);
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_NOTICE), 0);
    stub->mode = STUB_AT_ONCE;
    wait_for_timer(stub);
    assert_int_equal(under_way(stub, R2_WIRE_NOTICE), 1);
    assert_int_equal(lane->state, R2_LANE_UP);
    assert_int_equal(stub->counters.lanes_failed, 0);
    stub_net_destroy(stub);
}

/* Nor is it one of the packet that was to take an acknowledgement along: that is still owed. */
static void acknowledgements_wait_for_memory(void **state)
{
    const char notice[] = "notice";

    (void) state;
    for (int data = 0; data < 2; ++data) {
        stub_net_t *stub = stub_with_a_lane();
        const r2_lane_t *lane = &stub->link->lanes[0];
        r2_wire_header_t header = {
            .version = R2_WIRE_VERSION, .kind = R2_WIRE_PING, .flags = R2_WIRE_ACK_NOW};
        uint64_t acks;

        stub->params.failure_timeout_ms = 10000; /* no other timer */
        r2_net_progress(&stub->net);
        acks = stub->counters.tx_acks;
        header.connection = lane->connect.rx_connection;
        header.lane_seq = lane->rx.next;
        header.ack_next = lane->tx.seq;
        header.consumed = (uint32_t) stub->net.first_seq;
        stub->mode = STUB_STARVED;
        if (data) {
            assert_int_equal(r2_net_notice(&stub->net, 1, notice, sizeof(notice), false), R2_OK);
        }
        stub_packet(stub, &header, sizeof(header), NULL, 0);
        assert_true(r2_lane_owes_ack(lane));
        stub->mode = STUB_AT_ONCE;
        wait_for_timer(stub);
        wait_for_timer(stub);
        assert_false(r2_lane_owes_ack(lane));
        assert_int_equal(stub->counters.tx_acks, data ? acks : acks + 1);
        stub_net_destroy(stub);
    }
}

/* A lane is up when there is memory for the answer to HELLO. */
static void wire_up_waits_for_memory(void **state)
{
    stub_net_t *stub = stub_net_create();
    const r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub->mode = STUB_STARVED;
    stub_lane_up(stub, 0);
    assert_int_equal(lane->connect.hello_ack, R2_HELLO_ACK_DUE);
    assert_int_equal(lane->state, R2_LANE_UP);
    stub->mode = STUB_AT_ONCE;
    wait_for_timer(stub);
    assert_int_equal(lane->connect.hello_ack, R2_HELLO_ACK_SENT);
    assert_int_equal(lane->state, R2_LANE_UP);
    assert_int_equal(stub->counters.lanes_failed, 0);
    stub_net_destroy(stub);
}

/* A lane that a verdict is against is asked when there is memory for the question. */
static void verdicts_wait_for_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();
    const r2_lane_t *lane = &stub->link->lanes[0];
    const uint64_t retry_ns = stub->time_ns + R2_NS_PER_S;

    (void) state;
    stub->mode = STUB_STARVED;
    r2_net_peer_rail(&stub->net, 1, 0, true, retry_ns);
    r2_net_progress(&stub->net);
    assert_int_equal(lane->state, R2_LANE_DOUBT);
    assert_int_equal(stub->counters.lanes_failed, 0);
    stub->mode = STUB_AT_ONCE;
    stub->net.last_progress_ns = stub->time_ns = retry_ns;
    r2_net_progress(&stub->net);
    assert_int_equal(under_way(stub, R2_WIRE_PING), 1);
    stub_net_destroy(stub);
}

/* A message or a receive for which there is no memory is an error of the call, and the next call
 * works. */
static void calls_fail_without_memory(void **state)
{
    stub_net_t *stub = stub_with_a_lane();
    r2_status_t status = R2_IN_PROGRESS;
    const uint64_t number = stub->link->tx.next_number;

    (void) state;
    stub->params.unexpected_bytes = 1024;
    starve_of(sizeof(r2_tx_message_t));
    assert_int_equal(send_one(stub, 0, &status), R2_ERR_NO_MEMORY);
    feed();
    starve_of(sizeof(r2_rx_match_t));
    assert_int_equal(post_one(stub, 0, &status), R2_ERR_NO_MEMORY);
    feed();
    assert_int_equal(stub->link->tx.next_number, number); /* or the peer would wait for it */
    assert_null(stub->link->tx.messages);
    assert_int_equal(stub->link->tx.mute, 0);
    assert_int_equal(r2_link_posted(stub->link), 0);
    assert_int_equal(send_one(stub, 0, &status), R2_IN_PROGRESS);
    assert_int_equal(post_one(stub, 0, &status), R2_IN_PROGRESS);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Receives are found whether their table has memory for buckets or not, in whatever order they
 * go. */
static void tables_need_no_memory(void **state)
{
    enum { ROWS = 200, STEP = 77 };

    (void) state;
    for (int starved = 0; starved < 2; ++starved) {
        stub_net_t *stub = stub_with_a_lane();
        r2_status_t status = R2_IN_PROGRESS;

        if (0 != starved) {
            starve_of(R2_TABLE_BUCKETS * sizeof(void *));
        }
        for (uint32_t id = 0; id < ROWS; ++id) {
            assert_int_equal(post_one(stub, id, &status), R2_IN_PROGRESS);
        }
        for (uint32_t i = 0; i < ROWS; ++i) {
            const r2_tag_t tag = {.comm_key = 1, .coll_seq = 1, .id = i * STEP % ROWS};

            assert_int_equal(r2_link_posted(stub->link), ROWS - i);
            assert_non_null(r2_table_find(&stub->link->rx.matches, &tag));
            r2_link_unpost(stub->link, &tag);
            assert_null(r2_table_find(&stub->link->rx.matches, &tag));
        }
        if (0 != starved) {
            feed();
        }
        assert_int_equal(r2_link_posted(stub->link), 0);
        stub_net_destroy(stub);
    }
}

/* What arrives and cannot be held is not acknowledged, so that it comes again. */
static void packets_fail_without_memory(void **state)
{
    static const struct {
        size_t bytes; /* of what there is no memory for */
        uint8_t kind;
    } parts[] = {{sizeof(r2_credit_t), R2_WIRE_CREDIT},
                 {sizeof(r2_rx_message_t), R2_WIRE_DATA},
                 {sizeof(r2_rx_match_t), R2_WIRE_DATA}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(parts); ++i) {
        stub_net_t *stub = stub_with_a_lane();
        r2_lane_t *lane = &stub->link->lanes[0];
        r2_wire_credit_t credit = {.tag = {.comm_key = 1, .coll_seq = 1}, .bytes = BYTES};
        r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                   .flags = R2_WIRE_EAGER,
                                   .kind = parts[i].kind,
                                   .length = sizeof(credit)};
        const uint32_t first = lane->rx.next;

        header.connection = lane->connect.rx_connection;
        header.lane_seq = first;
        header.ack_next = lane->tx.seq;
        header.consumed = (uint32_t) stub->net.first_seq;
        if (R2_WIRE_DATA == header.kind) {
            header.message = stub->net.first_seq;
            header.tag = credit.tag;
            header.message_bytes = header.chunk_bytes = header.length;
        }
        starve_of(parts[i].bytes);
        stub_packet(stub, &header, sizeof(header), &credit, sizeof(credit));
        assert_int_equal(lane->rx.next, first);
        assert_int_equal(stub->link->rx.bitmap_bytes, 0);
        feed();
        stub_packet(stub, &header, sizeof(header), &credit, sizeof(credit));
        assert_int_equal(lane->rx.next, first + 1);
        assert_int_equal(stub->link->rx.unposted, R2_WIRE_DATA == header.kind ? 1 : 0);
        assert_int_equal(stub->link->tx.credits.count, R2_WIRE_CREDIT == header.kind ? 1 : 0);
        stub_net_destroy(stub);
    }
}

/* A lane for which there is no memory is opened later. */
static void tables_fail_as_lanes(void **state)
{
    static const size_t parts[] = {sizeof(UT_hash_table), BUCKETS_BYTES};

    (void) state;
    for (size_t i = 0; i < r2_array_count(parts); ++i) {
        stub_net_t *stub = stub_net_create();

        starve_of(parts[i]);
        stub_lane_wire(stub, 0);
        assert_int_equal(stub->link->lanes[0].state, R2_LANE_DOWN);
        assert_null(stub->link->lanes[0].conn);
        feed();
        stub_lane_up(stub, 0);
        assert_int_equal(stub->link->lanes[0].state, R2_LANE_UP);
        stub_net_destroy(stub);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_waits_for_memory),
        cmocka_unit_test(discards_wait_for_memory),
        cmocka_unit_test(requests_wait_for_memory),
        cmocka_unit_test(last_words_wait_for_memory),
        cmocka_unit_test(packets_wait_for_memory),
        cmocka_unit_test(transport_waits_for_memory),
        cmocka_unit_test(acknowledgements_wait_for_memory),
        cmocka_unit_test(wire_up_waits_for_memory),
        cmocka_unit_test(verdicts_wait_for_memory),
        cmocka_unit_test(calls_fail_without_memory),
        cmocka_unit_test(tables_need_no_memory),
        cmocka_unit_test(packets_fail_without_memory),
        cmocka_unit_test(tables_fail_as_lanes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
