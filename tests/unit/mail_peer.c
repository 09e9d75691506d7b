/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A net with mailboxes, and its peer, which the test plays.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "mail_peer.h"

#include "link/rx.h"

/* Others take so many mailboxes. */
static void mail_others(const uint8_t *address, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        r2_outbox_t out;

        assert_int_equal(r2_outbox_open(address, R2_INBOX_ADDRESS_BYTES, &out), R2_OK);
        r2_outbox_close(&out);
    }
}

void mail_begin_after(mail_peer_t *peer, uint32_t others)
{
    memset(peer, 0, sizeof(*peer));
    assert_int_equal(r2_inbox_create(&peer->inbox), R2_OK);
    r2_inbox_address(peer->inbox, peer->address);
    mail_others(peer->address, others);
    peer->stub = stub_net_create_local(peer->address);
    mail_others(peer->stub->net.info.inbox, others);
    stub_lane_up(peer->stub, 0);
    assert_int_equal(
        r2_outbox_open(peer->stub->net.info.inbox, peer->stub->net.info.inbox_bytes, &peer->out),
        R2_OK);
    r2_outbox_announce(&peer->out, 1);
    peer->stub->send_count = 0;
}

void mail_begin(mail_peer_t *peer)
{
    mail_begin_after(peer, 0);
}

void mail_end(mail_peer_t *peer)
{
    r2_outbox_close(&peer->out);
    stub_net_destroy(peer->stub);
    r2_inbox_destroy(peer->inbox);
}

r2_tag_t mail_tag(uint32_t id)
{
    return (r2_tag_t){.comm_key = 1, .coll_seq = 1, .id = id};
}

bool mail_write(mail_peer_t *peer, uint32_t id, const void *data, uint32_t bytes)
{
    const r2_local_record_t record = {.tag = mail_tag(id)};
    char *room = r2_mailbox_reserve(&peer->out.ring, (uint32_t) sizeof(record) + bytes);

    if (NULL == room) {
        return false;
    }
    memcpy(room, &record, sizeof(record));
    memcpy(room + sizeof(record), data, bytes);
    r2_mailbox_commit(&peer->out.ring);
    return true;
}

static void mail_done(void *arg, r2_status_t status)
{
    *(r2_status_t *) arg = status;
}

r2_status_t mail_receive(mail_peer_t *peer, uint32_t id, void *data, uint32_t bytes,
                         r2_status_t *status)
{
    const r2_link_recv_t args = {
        .tag = mail_tag(id), .data = data, .bytes = bytes, .done = mail_done, .arg = status};

    *status = R2_IN_PROGRESS;
    *status = r2_link_recv(peer->stub->link, &args);
    return *status;
}

r2_status_t mail_send(mail_peer_t *peer, uint32_t id, const void *data, uint64_t bytes)
{
    static r2_status_t done;
    const r2_link_send_t args = {.tag = mail_tag(id),
                                 .data = data,
                                 .bytes = bytes,
                                 .chunk_bytes = 8192,
                                 .done = mail_done,
                                 .arg = &done};

    return r2_link_send(peer->stub->link, &args);
}

bool mail_read(mail_peer_t *peer, r2_mailbox_in_t *in, uint32_t *id_p, void *data,
               uint32_t *bytes_p)
{
    r2_local_record_t record;
    const void *from;
    uint32_t number, sender, bytes;

    while (r2_inbox_next(peer->inbox, &number, &sender)) {
        assert_int_equal(sender, 0);
        r2_inbox_know(peer->inbox, number);
        *in = (r2_mailbox_in_t){.box = r2_inbox_map(peer->inbox, number),
                                .lines = r2_inbox_lines(number)};
        assert_non_null(in->box);
    }
    if (NULL == in->box || R2_OK != r2_mailbox_peek(in, &from, &bytes)) {
        return false;
    }
    memcpy(&record, from, sizeof(record));
    memcpy(data, (const char *) from + sizeof(record), bytes - sizeof(record));
    *id_p = record.tag.id;
    *bytes_p = bytes - (uint32_t) sizeof(record);
    r2_mailbox_release(in);
    return true;
}
