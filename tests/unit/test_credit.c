/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Credit of one link whose peer and transport the test plays: what is granted, what is made of it,
 * what is refused.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/state.h"
#include "stub_net.h"

#define CHUNK 16384u
#define ROW   (4u << 20)
/* As in credit.c. */
#define MUTE_NS (100 * R2_NS_PER_US)

static void ended(void *arg, r2_status_t status)
{
    r2_status_t *status_p = arg;

    *status_p = status;
}

static stub_net_t *stub_with_a_lane(void)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    stub->params.credit_bytes = 1u << 20;
    stub->link->lanes[0].tx.window_bytes = 64u << 20;
    return stub;
}

/* A packet of the peer, in order. */
static void peer_sends(stub_net_t *stub, r2_wire_header_t header, const void *data)
{
    r2_lane_t *lane = &stub->link->lanes[0];

    header.version = R2_WIRE_VERSION;
    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next =
        NULL == lane->tx.in_flight ? lane->tx.seq : lane->tx.in_flight->header.lane_seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), data, header.length);
}

static void peer_credits(stub_net_t *stub, r2_tag_t tag, uint64_t bytes, bool heard)
{
    r2_wire_credit_t credit = {.tag = tag, .bytes = bytes, .heard = heard};

    peer_sends(stub, (r2_wire_header_t){.kind = R2_WIRE_CREDIT, .length = sizeof(credit)}, &credit);
}

static void peer_gives_up(stub_net_t *stub, uint64_t number)
{
    peer_sends(stub, (r2_wire_header_t){.kind = R2_WIRE_VOID, .length = sizeof(number)}, &number);
}

static void peer_sends_flagged(stub_net_t *stub, uint32_t chunk, uint8_t flags)
{
    static const char data[CHUNK];
    r2_wire_header_t header = {.kind = R2_WIRE_DATA,
                               .flags = flags,
                               .message = stub->net.first_seq,
                               .tag = {.comm_key = 1, .coll_seq = 1},
                               .message_bytes = ROW,
                               .chunk_bytes = CHUNK,
                               .chunk = chunk,
                               .length = CHUNK};

    peer_sends(stub, header, data);
}

static void peer_sends_chunk(stub_net_t *stub, uint32_t chunk)
{
    peer_sends_flagged(stub, chunk, 0);
}

static void peer_sends_eager(stub_net_t *stub, uint32_t chunk)
{
    peer_sends_flagged(stub, chunk, R2_WIRE_EAGER);
}

/* Items of a kind under way; the most that CREDIT says. */
static uint32_t under_way(const stub_net_t *stub, r2_wire_kind_t kind, uint64_t *credit_p)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    *credit_p = 0;
    for (packet = stub->link->lanes[0].tx.in_flight; NULL != packet; packet = packet->next) {
        const r2_tx_item_t *item = packet->item;

        count += kind == item->kind ? 1 : 0;
        for (uint32_t i = 0;
             R2_WIRE_CREDIT == item->kind && i < item->payload_bytes / sizeof(r2_wire_credit_t);
             ++i) {
            *credit_p = r2_max(*credit_p, item->payload.credits[i].bytes);
        }
    }
    return count;
}

/* A receive is granted as it takes; nothing more while nobody may write it, and nothing more is
 * held. */
static void receives_get_credit_as_they_take(void **state)
{
    char *memory = malloc(ROW);
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();
    uint64_t share = stub->params.credit_bytes / 4, credit;
    r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = memory,
                           .bytes = ROW,
                           .done = ended,
                           .arg = &status};

    (void) state;
    assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
    r2_net_progress(&stub->net);
    assert_int_equal(under_way(stub, R2_WIRE_CREDIT, &credit), 1);
    assert_int_equal(credit, share / 2); /* nothing was heard of the message */
    stub->net.may_deliver = stub->net.app_drives = false;
    for (uint32_t i = 0; i < share / CHUNK; ++i) {
        peer_sends_chunk(stub, i);
    }
    stub->time_ns += R2_NS_PER_S / 10;
    r2_net_progress(&stub->net);
    (void) under_way(stub, R2_WIRE_CREDIT, &credit);
    assert_int_equal(credit, share);
    assert_int_equal(stub->net.unexpected_bytes, share);
    assert_int_equal(stub->counters.rx_malformed, 0);
    peer_sends_chunk(stub, (uint32_t) (share / CHUNK)); /* without credit */
    assert_int_equal(stub->counters.rx_malformed, 1);
    assert_int_equal(stub->net.unexpected_bytes, share);
    stub->net.may_deliver = stub->net.app_drives = true;
    r2_net_progress(&stub->net);
    (void) under_way(stub, R2_WIRE_CREDIT, &credit);
    assert_int_equal(stub->net.unexpected_bytes, 0);
    assert_int_equal(credit, 2 * share);
    for (uint32_t i = (uint32_t) (share / CHUNK); i < ROW / CHUNK; ++i) {
        (void) under_way(stub, R2_WIRE_CREDIT, &credit);
        assert_true((i + 1) * CHUNK <= credit);
        peer_sends_chunk(stub, i);
    }
    assert_int_equal(status, R2_OK);
    assert_int_equal(stub->net.open_bytes, 0);
    stub_net_destroy(stub);
    free(memory);
}

/* The peer asks for credit for a message of so many bytes, none of which may go. */
static void peer_asks(stub_net_t *stub, uint64_t bytes, uint32_t digest)
{
    peer_sends(stub,
               (r2_wire_header_t){.kind = R2_WIRE_RTS,
                                  .message = stub->net.first_seq,
                                  .tag = {.comm_key = 1, .coll_seq = 1},
                                  .message_bytes = bytes,
                                  .chunk_bytes = CHUNK,
                                  .digest = digest},
               NULL);
}

/* Credit for a receive that is shorter than a chunk of its message would never bring any of it. */
static void a_request_shows_other_plans(void **state)
{
    static char memory[CHUNK];
    static const uint64_t lengths[] = {CHUNK / 2, 0, ROW};

    (void) state;
    for (uint32_t i = 0; i < 2 * r2_array_count(lengths); ++i) {
        uint64_t bytes = lengths[i / 2];
        r2_status_t status = R2_IN_PROGRESS;
        stub_net_t *stub = stub_with_a_lane();
        r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                               .data = memory,
                               .bytes = bytes,
                               .done = ended,
                               .arg = &status};

        if (0 == i % 2) {
            peer_asks(stub, ROW, ROW == bytes ? 5 : 0);
            status = r2_link_recv(stub->link, &args);
        } else {
            assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
            peer_asks(stub, ROW, ROW == bytes ? 5 : 0);
        }
        assert_int_equal(status, R2_ERR_PLAN_MISMATCH);
        assert_int_equal(stub->link->rx.matches.count, 0);
        assert_int_equal(stub->net.asking_links, 0);
        assert_int_equal(stub->net.open_bytes, 0);
        stub_net_destroy(stub);
    }
}

static void send_one(stub_net_t *stub, uint32_t id, uint64_t bytes, r2_status_t *status_p)
{
    static const char data[1 << 20];
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                           .data = data,
                           .bytes = bytes,
                           .chunk_bytes = CHUNK,
                           .done = ended,
                           .arg = status_p};

    assert_true(r2_link_send(stub->link, &args) >= 0);
}

/* Time passes without a word of the peer. */
static void time_passes(stub_net_t *stub, uint64_t ns)
{
    stub->time_ns += ns;
    (void) r2_net_progress(&stub->net);
}

/* Whole chunks go, the most that was said counts, and who may send nothing asks, once the receive
 * had time to bring credit by itself. */
static void messages_go_as_they_are_granted(void **state)
{
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();
    r2_tag_t tag = {.comm_key = 1, .coll_seq = 1, .id = 7};
    uint64_t ignored;

    (void) state;
    stub->params.unexpected_bytes = 1024;
    stub->link->lanes[0].tx.delivery.bytes_per_s = 1000u * 1000 * 1000; /* slow ones ask at once */
    stub->link->chunk_most_bytes = CHUNK;
    send_one(stub, 7, 1 << 20, &status);
    assert_int_equal(under_way(stub, R2_WIRE_DATA, &ignored), 0);
    assert_int_equal(under_way(stub, R2_WIRE_RTS, &ignored), 0);
    assert_true(r2_net_deadline_ns(&stub->net) <= stub->net.now_ns + MUTE_NS);
    time_passes(stub, MUTE_NS - 1);
    assert_int_equal(under_way(stub, R2_WIRE_RTS, &ignored), 0);
    time_passes(stub, 1);
    assert_int_equal(under_way(stub, R2_WIRE_RTS, &ignored), 1);
    peer_credits(stub, tag, 6 * CHUNK + 5, false);
    assert_int_equal(under_way(stub, R2_WIRE_DATA, &ignored), 6);
    peer_credits(stub, tag, 4 * CHUNK, true); /* overtaken */
    assert_int_equal(under_way(stub, R2_WIRE_DATA, &ignored), 6);
    peer_credits(stub, tag, 60 * CHUNK, true);
    assert_int_equal(under_way(stub, R2_WIRE_DATA, &ignored), 60);
    assert_true(stub->link->tx.uncredited.count > 0);
    peer_credits(stub, tag, 1 << 20, true);
    assert_int_equal(under_way(stub, R2_WIRE_DATA, &ignored), 64);
    assert_int_equal(stub->link->tx.uncredited.count, 0);
    assert_int_equal(under_way(stub, R2_WIRE_RTS, &ignored), 1);
    stub_net_destroy(stub);
}

/* Credit is kept for a message that may be to come, and for no other. */
static void late_credit_is_dropped(void **state)
{
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();
    r2_tag_t tag = {.comm_key = 1, .coll_seq = 1, .id = 7};
    uint64_t ignored;

    (void) state;
    peer_credits(stub, tag, 9 * CHUNK, true);
    peer_credits(stub, (r2_tag_t){.comm_key = R2_LINK_UNEXPECTED_KEY, .id = 7}, CHUNK, false);
    peer_credits(stub, (r2_tag_t){.comm_key = R2_LINK_OWN_KEYS, .id = 7}, CHUNK, false);
    assert_int_equal(stub->link->tx.credits.count, 0);
    peer_credits(stub, tag, 9 * CHUNK, false);
    peer_credits(stub, tag, 5 * CHUNK, false);
    assert_int_equal(stub->link->tx.credits.count, 1);
    send_one(stub, 7, 1 << 20, &status);
    assert_int_equal(under_way(stub, R2_WIRE_DATA, &ignored), 9);
    assert_int_equal(stub->link->tx.credits.count, 0);
    stub_net_destroy(stub);
}

static void is_asked_for(void *arg)
{
    (void) arg;
}

/* The CPU cannot keep a copy of what is in a GPU, if it is withdrawn when a part was sent. */
static void what_is_on_gpus_waits_for_credit(void **state)
{
    const char *nowhere = (const char *) (uintptr_t) 4096; /* is not to be read */
    const r2_tp_memory_t gpu = {.data = nowhere, .bytes = 20000, .gpu_id = 1};
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();
    const uint32_t eager_sent = (uint32_t) stub->link->tx.eager_sent;
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = 7},
                                 .data = nowhere,
                                 .bytes = 20000,
                                 .chunk_bytes = 8192,
                                 .gpu = &gpu,
                                 .fetch = is_asked_for,
                                 .done = ended,
                                 .arg = &status};

    (void) state;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(stub->link->tx.uncredited.count, 1);
    assert_int_equal((uint32_t) stub->link->tx.eager_sent, eager_sent);
    r2_link_withdraw(stub->link, 1);
    assert_null(stub->link->tx.messages);
    stub_net_destroy(stub);
}

/* A confused or hostile peer asks twice for the same: what it made us send goes without a trace. */
static void twins_are_withdrawn(void **state)
{
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();

    (void) state;
    stub->params.unexpected_bytes = 1024;
    send_one(stub, 7, 20000, &status);
    send_one(stub, 7, 30000, &status);
    assert_int_equal(stub->link->tx.uncredited.count, 2);
    r2_link_withdraw(stub->link, 1);
    assert_null(stub->link->tx.messages);
    assert_int_equal(stub->link->tx.uncredited.count, 0);
    assert_int_equal(stub->link->tx.mute, 0);
    assert_int_equal(stub->link->tx.requests, 0);
    stub_net_destroy(stub);
}

/*
 * Of a communicator that fails. What went eagerly counts at the peer when it comes, and only then:
 * it is sent again from a copy if its lane is lost, or is closed since the transport still reads
 * it.
 */
static void eager_data_of_failed_communicators_arrives(void **state)
{
    const uint32_t chunks = 3;

    (void) state;
    for (int reads = 0; reads < 2; ++reads) {
        stub_net_t *stub = stub_with_a_lane();
        r2_status_t status = R2_IN_PROGRESS;
        r2_link_t *link = stub->link;
        char *data = malloc(ROW);
        const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                     .data = data,
                                     .bytes = ROW,
                                     .chunk_bytes = CHUNK,
                                     .done = ended,
                                     .arg = &status};

        memset(data, 7, ROW);
        stub->mode = reads ? STUB_LATER : STUB_AT_ONCE;
        stub->params.eager_bytes = chunks * CHUNK;
        assert_int_equal(r2_link_send(link, &args), R2_IN_PROGRESS);
        assert_int_equal(stub->counters.tx_chunks, chunks);
        r2_link_withdraw(link, 1);
        assert_int_equal(link->lanes[0].state, reads ? R2_LANE_DOWN : R2_LANE_UP);
        assert_int_equal(link->tx.copies, 0); /* it takes no room of others */
        memset(data, 0, ROW);
        free(data);
        stub->mode = STUB_LATER;
        stub_lane_up(stub, 1);
        if (!reads) {
            r2_lane_fence(&link->lanes[0], R2_ERR_LANE_DOWN, false);
        }
        link->lanes[1].tx.window_bytes = ROW;
        r2_net_progress(&stub->net);
        assert_int_equal(stub->counters.resent_chunks, chunks);
        assert_int_equal(((const char *) stub->sends->prev->op->data)[CHUNK - 1], 7);
        stub->complete = true;
        r2_net_progress(&stub->net);
        stub_acknowledge(stub, &link->lanes[1]);
        assert_null(link->tx.messages);
        assert_int_equal(link->tx.unsettled[R2_WIRE_VOID], 1); /* the peer may forget it now */
        assert_int_equal(link->tx.copied_bytes, 0);
        assert_int_equal(link->tx.packed_bytes, 0);
        assert_int_equal(status, R2_IN_PROGRESS); /* nobody waits for it */
        stub_net_destroy(stub);
    }
}

/*
 * The peer has given up a message: what came of it is counted and thrown away, and nothing is kept
 * of it, whether its receive is posted, is not, or nothing of it came.
 */
static void messages_that_are_given_up_are_forgotten(void **state)
{
    (void) state;
    for (int posted = 0; posted < 2; ++posted) {
        stub_net_t *stub = stub_with_a_lane();
        r2_status_t status = R2_IN_PROGRESS;
        r2_link_t *link = stub->link;
        const uint64_t first = stub->net.first_seq;
        char *row = malloc(ROW);
        const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                     .data = row,
                                     .bytes = ROW,
                                     .done = ended,
                                     .arg = &status};

        stub->net.app_drives = true;
        if (posted) {
            assert_int_equal(r2_link_recv(link, &args), R2_IN_PROGRESS);
        }
        peer_sends_eager(stub, 0);
        assert_int_equal(link->rx.arriving.count, 1);
        peer_gives_up(stub, first + 2); /* before the one that nothing came of at all */
        assert_int_equal(link->rx.completed.count, 1);
        peer_gives_up(stub, first + 1);
        peer_gives_up(stub, first);
        assert_int_equal(link->rx.arriving.count, 0);
        assert_int_equal(link->rx.completed.count, 0);
        assert_int_equal(link->rx.watermark, first + 3);
        assert_int_equal(link->rx.bitmap_bytes, 0);
        assert_int_equal(link->rx.unexpected_bytes, 0);
        assert_int_equal((uint32_t) (link->rx.consumed - (uint32_t) first),
                         CHUNK + R2_EAGER_COST_BYTES);
        assert_int_equal(link->rx.matches.count, posted);
        assert_int_equal(status, R2_IN_PROGRESS); /* its communicator ends it */
        peer_sends_eager(stub, 0);                /* a copy that comes late */
        peer_gives_up(stub, first);
        assert_int_equal(link->rx.arriving.count, 0);
        r2_link_withdraw(link, 1);
        assert_int_equal(link->rx.grants.open_bytes[R2_GRANT_HEARD], 0);
        stub_net_destroy(stub);
        free(row);
    }
}

/* The same where all paths are lost for too long: a lane may come up after that. */
static void eager_data_waits_for_a_path(void **state)
{
    const uint64_t sent = 2 * CHUNK;
    stub_net_t *stub = stub_with_a_lane();
    r2_status_t status = R2_IN_PROGRESS;
    r2_link_t *link = stub->link;

    (void) state;
    stub->params.eager_bytes = sent;
    stub->params.copy_max_bytes = 0;
    send_one(stub, 0, sent, &status);
    assert_int_equal(stub->counters.tx_chunks, 1 + (sent - 1) / CHUNK);
    r2_lane_fence(&link->lanes[0], R2_ERR_TIMEOUT, false);
    r2_link_break(link, R2_ERR_NO_PATH);
    assert_int_equal(status, R2_ERR_NO_PATH);
    assert_non_null(link->tx.retransmit);
    stub_lane_up(stub, 1);
    link->lanes[1].tx.window_bytes = ROW;
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.resent_chunks, stub->counters.tx_chunks);
    stub->complete = true;
    r2_net_progress(&stub->net);
    stub_acknowledge(stub, &link->lanes[1]);
    assert_null(link->tx.messages);
    assert_int_equal((uint32_t) link->tx.eager_sent, link->tx.eager_consumed);
    /* of one that is gone nothing is kept */
    send_one(stub, 1, sent, &status);
    r2_lane_fence(&link->lanes[1], R2_ERR_TIMEOUT, false);
    r2_link_break(link, R2_ERR_PEER_GONE);
    assert_null(link->tx.messages);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_get_credit_as_they_take),
        cmocka_unit_test(a_request_shows_other_plans),
        cmocka_unit_test(messages_go_as_they_are_granted),
        cmocka_unit_test(late_credit_is_dropped),
        cmocka_unit_test(what_is_on_gpus_waits_for_credit),
        cmocka_unit_test(twins_are_withdrawn),
        cmocka_unit_test(eager_data_of_failed_communicators_arrives),
        cmocka_unit_test(messages_that_are_given_up_are_forgotten),
        cmocka_unit_test(eager_data_waits_for_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
