/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Mailboxes of a link: what is written arrives once, early or late, and what does not fit takes the
 * lane.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/local.h"
#include "link/rx.h"
#include "mail_peer.h"

static void messages_go_into_the_peers_memory(void **state)
{
    char data[R2_LOCAL_MOST_BYTES], read[R2_LOCAL_MOST_BYTES];
    r2_mailbox_in_t in = {.box = NULL};
    uint32_t id, bytes;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    for (uint32_t i = 0; i < 1000; ++i) { /* several times round the ring */
        const uint32_t length = 0 == i ? R2_LOCAL_MOST_BYTES : i % 700;

        memset(data, (int) i, sizeof(data));
        assert_int_equal(mail_send(&peer, i, data, length), R2_OK);
        assert_true(mail_read(&peer, &in, &id, read, &bytes));
        assert_int_equal(id, i);
        assert_int_equal(bytes, length);
        assert_memory_equal(read, data, length);
        atomic_store(&in.box->consumed, (uint32_t) peer.stub->link->tx.eager_sent);
    }
    assert_int_equal(peer.stub->counters.local_messages, 1000);
    assert_int_equal(peer.stub->send_count, 0); /* and nothing took the lane */
    mail_end(&peer);
}

/* What is too long takes the lane, and so does what comes when the ring is full or the peer has as
 * much as it may have to keep; then the mailbox is used again. */
static void what_does_not_fit_takes_the_lane(void **state)
{
    static char data[R2_LOCAL_MOST_BYTES + 1], read[R2_LOCAL_MOST_BYTES];
    r2_mailbox_in_t in = {.box = NULL};
    uint32_t id, bytes, taken = 0;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    assert_int_equal(mail_send(&peer, 0, data, sizeof(data)), R2_IN_PROGRESS);
    assert_int_equal(peer.stub->counters.local_messages, 0);
    for (uint32_t i = 1; i <= 10; ++i) {
        assert_true(mail_send(&peer, i, data, R2_LOCAL_MOST_BYTES) >= R2_OK);
    }
    assert_in_range(peer.stub->counters.local_messages, 3, 4);
    while (mail_read(&peer, &in, &id, read, &bytes)) {
        ++taken;
    }
    assert_int_equal(taken, peer.stub->counters.local_messages);
    for (uint32_t i = 0; i < 1000; ++i) { /* read, but not given to receives */
        assert_true(mail_send(&peer, 100 + i, data, MAIL_BYTES) >= R2_OK);
        taken += mail_read(&peer, &in, &id, read, &bytes) ? 1 : 0;
    }
    assert_int_equal(taken, peer.stub->counters.local_messages);
    assert_true(taken < 300);
    atomic_store(&in.box->consumed, (uint32_t) peer.stub->link->tx.eager_sent);
    assert_int_equal(mail_send(&peer, 5000, data, MAIL_BYTES), R2_OK);
    assert_int_equal(peer.stub->counters.local_messages, taken + 1);
    mail_end(&peer);
}

/* What is not there yet cannot be written: it takes the lane when it is. */
static void what_is_passed_on_takes_the_lane(void **state)
{
    static char data[MAIL_BYTES];
    r2_tx_message_t *message = NULL;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    assert_int_equal(
        r2_link_send(peer.stub->link, &(r2_link_send_t){.tag = mail_tag(1),
                                                        .data = data,
                                                        .bytes = sizeof(data),
                                                        .chunk_bytes = sizeof(data) / 2,
                                                        .filling = true,
                                                        .message_p = &message}),
        R2_IN_PROGRESS);
    assert_non_null(message);
    assert_int_equal(peer.stub->counters.local_messages, 0);
    mail_end(&peer);
}

/* Who comes late has a small mailbox: longer messages take the lane, and are looked for there. */
static void who_comes_late_writes_less(void **state)
{
    static char data[2000], read[R2_LOCAL_MOST_BYTES];
    r2_mailbox_in_t in = {.box = NULL};
    uint32_t id, bytes;
    r2_status_t status;
    mail_peer_t peer;

    (void) state;
    mail_begin_after(&peer, R2_INBOX_LARGE);
    assert_int_equal(mail_send(&peer, 1, data, 1024), R2_OK);
    assert_int_equal(peer.stub->counters.local_messages, 1);
    assert_true(mail_send(&peer, 2, data, sizeof(data)) >= R2_OK);
    assert_int_equal(peer.stub->counters.local_messages, 1);
    assert_true(mail_read(&peer, &in, &id, read, &bytes));
    assert_int_equal(bytes, 1024);
    assert_int_equal(mail_receive(&peer, 1, data, 1024, &status), R2_IN_PROGRESS);
    assert_true(mail_write(&peer, 1, read, 1024));
    assert_true(r2_net_progress(&peer.stub->net) > 0);
    assert_int_equal(status, R2_OK);
    peer.stub->net.staying = true;
    peer.stub->looks = 0;
    assert_int_equal(mail_receive(&peer, 2, data, 1024, &status), R2_IN_PROGRESS);
    assert_int_equal(r2_net_read(&peer.stub->net, true), 0);
    assert_int_equal(peer.stub->looks, 0);
    assert_int_equal(mail_receive(&peer, 3, data, sizeof(data), &status), R2_IN_PROGRESS);
    assert_int_equal(r2_net_read(&peer.stub->net, true), 0);
    assert_int_equal(peer.stub->looks, 1);
    assert_false(peer.stub->net.progressed_all); /* the lane within the host, and no rail */
    mail_end(&peer);
}

/* Before its receive, after it, and when it is just there. */
static void messages_meet_their_receives(void **state)
{
    char data[MAIL_BYTES] = "";
    r2_status_t status;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    assert_int_equal(mail_receive(&peer, 1, data, MAIL_BYTES, &status), R2_IN_PROGRESS);
    assert_true(mail_write(&peer, 1, "posted.", MAIL_BYTES));
    assert_true(r2_net_progress(&peer.stub->net) > 0);
    assert_int_equal(status, R2_OK);
    assert_string_equal(data, "posted.");
    assert_true(mail_write(&peer, 2, "kept...", MAIL_BYTES));
    (void) r2_net_progress(&peer.stub->net);
    assert_int_equal(peer.stub->link->rx.unexpected_bytes, MAIL_BYTES);
    assert_int_equal(mail_receive(&peer, 2, data, MAIL_BYTES, &status), R2_OK);
    assert_string_equal(data, "kept...");
    assert_int_equal(peer.stub->link->rx.unexpected_bytes, 0);
    assert_true(mail_write(&peer, 3, "at hand", MAIL_BYTES));
    assert_int_equal(mail_receive(&peer, 3, data, MAIL_BYTES, &status), R2_OK);
    assert_string_equal(data, "at hand");
    (void) r2_net_progress(&peer.stub->net);
    assert_int_equal(atomic_load(&peer.out.ring.box->consumed),
                     (uint32_t) peer.stub->net.first_seq + 3 * (MAIL_BYTES + R2_EAGER_COST_BYTES));
    assert_int_equal(peer.stub->link->rx.matches.count, 0);
    mail_end(&peer);
}

/* Of other plans, for a call that is over; twice. */
static void messages_that_nobody_wants(void **state)
{
    char data[2 * MAIL_BYTES] = "";
    r2_status_t status;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    assert_int_equal(mail_receive(&peer, 1, data, 2 * MAIL_BYTES, &status), R2_IN_PROGRESS);
    assert_true(mail_write(&peer, 1, "shorter", MAIL_BYTES));
    (void) r2_net_progress(&peer.stub->net);
    assert_int_equal(status, R2_ERR_PLAN_MISMATCH);
    assert_true(mail_write(&peer, 2, "shorter", MAIL_BYTES));
    assert_int_equal(mail_receive(&peer, 2, data, 2 * MAIL_BYTES, &status), R2_ERR_PLAN_MISMATCH);
    peer.stub->over_key = 1;
    assert_true(mail_write(&peer, 3, "too late", MAIL_BYTES));
    (void) r2_net_progress(&peer.stub->net);
    assert_int_equal(peer.stub->counters.rx_gone, 1);
    peer.stub->over_key = 0;
    assert_true(mail_write(&peer, 4, "first..", MAIL_BYTES) &&
                mail_write(&peer, 4, "second.", MAIL_BYTES));
    (void) r2_net_progress(&peer.stub->net);
    assert_int_equal(mail_receive(&peer, 4, data, MAIL_BYTES, &status), R2_OK);
    assert_string_equal(data, "first..");
    assert_int_equal(peer.stub->counters.rx_malformed, 1);
    mail_end(&peer);
}

/* While the application is away, what comes stays in the mailbox, and nobody is busy with it. */
static void a_computing_process_leaves_them(void **state)
{
    char data[MAIL_BYTES] = "";
    r2_status_t status;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    assert_int_equal(mail_receive(&peer, 1, data, MAIL_BYTES, &status), R2_IN_PROGRESS);
    peer.stub->net.may_deliver = peer.stub->net.app_drives = false;
    assert_true(mail_write(&peer, 1, "patient", MAIL_BYTES));
    assert_int_equal(r2_net_progress(&peer.stub->net), 0);
    assert_int_equal(status, R2_IN_PROGRESS);
    assert_true(r2_net_arm(&peer.stub->net));
    assert_false(r2_outbox_sleeps(&peer.out));
    peer.stub->net.may_deliver = peer.stub->net.app_drives = true;
    assert_int_equal(r2_net_progress(&peer.stub->net), 1);
    assert_int_equal(status, R2_OK);
    mail_end(&peer);
}

/* Who waits for mailboxes reads no rail in a glance, but all of them now and then. */
static void a_glance_reads_mailboxes(void **state)
{
    char data[MAIL_BYTES] = "";
    r2_status_t status;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    (void) r2_net_progress(&peer.stub->net);
    peer.stub->net.staying = true;
    assert_int_equal(mail_receive(&peer, 1, data, MAIL_BYTES, &status), R2_IN_PROGRESS);
    peer.stub->looks = 0;
    assert_int_equal(r2_net_read(&peer.stub->net, true), 0);
    assert_true(mail_write(&peer, 1, "awaited", MAIL_BYTES));
    assert_int_equal(r2_net_read(&peer.stub->net, true), 1);
    assert_int_equal(status, R2_OK);
    assert_int_equal(peer.stub->looks, 0);
    assert_int_equal(mail_receive(&peer, 2, data, MAIL_BYTES, &status), R2_IN_PROGRESS);
    peer.stub->time_ns += R2_NS_PER_MS;
    assert_true(mail_write(&peer, 2, "awaited", MAIL_BYTES));
    assert_true(r2_net_read(&peer.stub->net, true) >= 1);
    assert_int_equal(status, R2_OK);
    assert_true(peer.stub->looks > 0);
    mail_end(&peer);
}

static void who_sleeps_is_woken(void **state)
{
    r2_mailbox_in_t in = {.box = NULL};
    char data[MAIL_BYTES] = "";
    uint32_t id, bytes;
    r2_status_t status;
    uint64_t packets;
    mail_peer_t peer;

    (void) state;
    mail_begin(&peer);
    assert_int_equal(mail_receive(&peer, 1, data, MAIL_BYTES, &status), R2_IN_PROGRESS);
    (void) r2_net_progress(&peer.stub->net);
    assert_true(r2_net_arm(&peer.stub->net)); /* the net sleeps: who writes has to wake it, once */
    assert_true(mail_write(&peer, 1, "wake up", MAIL_BYTES));
    assert_true(r2_outbox_sleeps(&peer.out));
    assert_false(r2_outbox_sleeps(&peer.out));
    assert_false(r2_net_arm(&peer.stub->net)); /* and it does not sleep over what is there */
    assert_int_equal(r2_net_progress(&peer.stub->net), 1);
    assert_false(r2_outbox_sleeps(&peer.out));
    assert_int_equal(mail_send(&peer, 2, data, MAIL_BYTES), R2_OK);
    packets = peer.stub->counters.tx_packets;
    r2_inbox_sleep(peer.inbox); /* the peer sleeps: a packet on the lane, once */
    assert_int_equal(mail_send(&peer, 3, data, MAIL_BYTES), R2_OK);
    assert_int_equal(mail_send(&peer, 4, data, MAIL_BYTES), R2_OK);
    assert_int_equal(peer.stub->counters.tx_packets, packets + 1);
    for (uint32_t i = 2; i <= 4; ++i) {
        assert_true(mail_read(&peer, &in, &id, data, &bytes));
        assert_int_equal(id, i);
    }
    mail_end(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_into_the_peers_memory),
        cmocka_unit_test(what_does_not_fit_takes_the_lane),
        cmocka_unit_test(what_is_passed_on_takes_the_lane),
        cmocka_unit_test(who_comes_late_writes_less),
        cmocka_unit_test(messages_meet_their_receives),
        cmocka_unit_test(messages_that_nobody_wants),
        cmocka_unit_test(a_computing_process_leaves_them),
        cmocka_unit_test(a_glance_reads_mailboxes),
        cmocka_unit_test(who_sleeps_is_woken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
