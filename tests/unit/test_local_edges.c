/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Mailboxes of a link beside what else there is: messages between two processes alone, what a peer
 * says on the lane, its end, what is no record, and a peer that cannot be reached.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pool.h"
#include "link/local.h"
#include "link/rx.h"
#include "mail_peer.h"

static char taken[MAIL_BYTES];

/* What nobody announced is copied once by who wants such, while the application drives. */
static bool take(void *arg, uint32_t rank, const r2_tag_t *tag, const void *data, uint64_t bytes)
{
    (void) arg;
    assert_int_equal(rank, 1);
    assert_int_equal(tag->comm_key == R2_LINK_UNEXPECTED_KEY, 1);
    assert_int_equal(bytes, MAIL_BYTES);
    memcpy(taken, data, bytes);
    return true;
}

static void who_wants_unexpected_messages_gets_them(void **state)
{
    const r2_local_record_t record = {.tag = {.comm_key = R2_LINK_UNEXPECTED_KEY}};
    mail_peer_t peer;
    uint32_t before;
    r2_net_t *net;
    char *room;

    (void) state;
    mail_begin(&peer);
    net = &peer.stub->net;
    net->upcalls.unexpected = take;
    before = peer.stub->link->rx.consumed;
    for (uint32_t away = 0; away < 2; ++away) {
        room = r2_mailbox_reserve(&peer.out.ring, sizeof(record) + MAIL_BYTES);
        assert_non_null(room);
        memcpy(room, &record, sizeof(record));
        memcpy(room + sizeof(record), 0 == away ? "at once" : "is kept", MAIL_BYTES);
        net->app_drives = 0 == away; /* the service thread, which may deliver */
        r2_mailbox_commit(&peer.out.ring);
        assert_int_equal(r2_net_progress(net), 1);
        assert_string_equal(taken, "at once");
        assert_int_equal(net->unexpected_bytes, 0 == away ? 0 : MAIL_BYTES);
        assert_int_equal(peer.stub->link->rx.consumed - before, MAIL_BYTES + R2_EAGER_COST_BYTES);
    }
    mail_end(&peer);
}

/* What was written into a block for a message is sent from there. */
static void blocks_are_given_back(void **state)
{
    r2_mailbox_in_t in = {.box = NULL};
    char data[MAIL_BYTES] = "";
    r2_link_send_t args = {.bytes = MAIL_BYTES, .chunk_bytes = 8192};
    uint32_t id, bytes;
    mail_peer_t peer;
    void *again;

    (void) state;
    mail_begin(&peer);
    args.block = r2_link_block(peer.stub->link, args.bytes, args.chunk_bytes);
    assert_non_null(args.block);
    memcpy(args.block, "in here", MAIL_BYTES);
    assert_int_equal(r2_link_send(peer.stub->link, &args), R2_OK);
    assert_true(mail_read(&peer, &in, &id, data, &bytes));
    assert_string_equal(data, "in here");
    assert_int_equal(bytes, MAIL_BYTES);
    again = r2_link_block(peer.stub->link, args.bytes, args.chunk_bytes);
    if (R2_POOL_KEEP > 0) { /* sanitizers look at each block by itself */
        assert_ptr_equal(again, args.block);
    }
    r2_link_block_free(peer.stub->link, again, args.bytes);
    mail_end(&peer);
}

static void t_say(mail_peer_t *peer, r2_wire_kind_t kind, const void *data, uint32_t bytes)
{
    const r2_lane_t *lane = &peer->stub->link->lanes[0];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = kind,
                               .flags = R2_WIRE_ACK_NOW,
                               .length = bytes};

    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) peer->stub->link->tx.eager_consumed;
    stub_packet(peer->stub, &header, sizeof(header), data, bytes);
}

/* What the peer says on the lane passes what it wrote before: that it ends, that it has no message.
 * The application is away, so that nobody has read the mailbox. */
static void words_do_not_pass_messages(void **state)
{
    for (uint32_t leaves = 0; leaves < 2; ++leaves) {
        char data[2][MAIL_BYTES] = {"", ""};
        const r2_wire_query_t query = {.tag = mail_tag(1)};
        r2_status_t status[2];
        mail_peer_t peer;

        (void) state;
        mail_begin(&peer);
        for (uint32_t i = 0; i < 2; ++i) {
            assert_int_equal(mail_receive(&peer, 1 + i, data[i], MAIL_BYTES, &status[i]),
                             R2_IN_PROGRESS);
        }
        peer.stub->net.may_deliver = peer.stub->net.app_drives = false;
        assert_true(mail_write(&peer, 1, "written", MAIL_BYTES));
        if (0 == leaves) {
            t_say(&peer, R2_WIRE_DENIED, &query, sizeof(query));
        } else {
            t_say(&peer, R2_WIRE_LEAVE, NULL, 0);
            assert_true(peer.stub->link->path.parted);
        }
        assert_int_equal(status[0], R2_IN_PROGRESS);
        assert_int_equal(status[1], 0 == leaves ? R2_IN_PROGRESS : R2_ERR_PEER_GONE);
        peer.stub->net.may_deliver = peer.stub->net.app_drives = true;
        r2_link_activate(peer.stub->link);
        (void) r2_net_progress(&peer.stub->net);
        assert_int_equal(status[0], R2_OK);
        assert_string_equal(data[0], "written");
        mail_end(&peer);
    }
}

/* Who has written and ends before there ever was a lane says so once there is one. */
static void who_has_written_says_when_it_ends(void **state)
{
    mail_peer_t peer = {.stub = NULL};

    (void) state;
    assert_int_equal(r2_inbox_create(&peer.inbox), R2_OK);
    r2_inbox_address(peer.inbox, peer.address);
    peer.stub = stub_net_create_local(peer.address);
    assert_true(r2_net_leave(&peer.stub->net)); /* nothing was said: nobody is told */
    assert_int_equal(mail_send(&peer, 1, "12345678", MAIL_BYTES), R2_OK);
    assert_false(r2_net_leave(&peer.stub->net));
    stub_lane_up(peer.stub, 0);
    (void) r2_net_progress(&peer.stub->net);
    stub_acknowledge(peer.stub, &peer.stub->link->lanes[0]);
    assert_true(r2_net_leave(&peer.stub->net));
    mail_end(&peer);
}

static void what_is_no_record_gives_the_peer_up(void **state)
{
    const uint32_t bad[] = {UINT32_MAX - 1, 1, sizeof(r2_local_record_t) - 1};

    (void) state;
    for (size_t i = 0; i < r2_array_count(bad); ++i) {
        char data[MAIL_BYTES];
        r2_status_t status;
        mail_peer_t peer;

        mail_begin(&peer);
        assert_int_equal(mail_receive(&peer, 1, data, MAIL_BYTES, &status), R2_IN_PROGRESS);
        memcpy(peer.out.ring.box->lines, &bad[i], sizeof(bad[i]));
        (void) r2_net_progress(&peer.stub->net);
        assert_int_equal(status, R2_ERR_WIRE);
        assert_int_equal(mail_receive(&peer, 2, data, MAIL_BYTES, &status), R2_ERR_WIRE);
        assert_true(r2_net_arm(&peer.stub->net)); /* and what lies there keeps nobody awake */
        mail_end(&peer);
    }
}

/* Another process, namespace or inbox behind those numbers: the lane serves. */
static void who_cannot_be_reached_is_sent_to_by_lane(void **state)
{
    (void) state;
    for (uint32_t i = 0; i < 3; ++i) {
        mail_peer_t peer = {.stub = NULL};
        uint32_t wrong[2] = {0 == i ? 0x3fffffffu : (uint32_t) getpid(), 0};

        assert_int_equal(r2_inbox_create(&peer.inbox), R2_OK);
        r2_inbox_address(peer.inbox, peer.address);
        if (2 == i) {
            peer.address[R2_INBOX_ADDRESS_BYTES - 1] ^= 1;
        } else {
            memcpy(peer.address, wrong, sizeof(wrong));
        }
        peer.stub = stub_net_create_local(peer.address);
        assert_true(mail_send(&peer, 1, "12345678", MAIL_BYTES) >= R2_OK);
        assert_int_equal(peer.stub->counters.local_messages, 0);
        assert_non_null(peer.stub->link->tx.messages);
        mail_end(&peer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_wants_unexpected_messages_gets_them),
        cmocka_unit_test(blocks_are_given_back),
        cmocka_unit_test(words_do_not_pass_messages),
        cmocka_unit_test(who_has_written_says_when_it_ends),
        cmocka_unit_test(what_is_no_record_gives_the_peer_up),
        cmocka_unit_test(who_cannot_be_reached_is_sent_to_by_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
