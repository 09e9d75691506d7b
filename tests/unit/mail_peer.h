/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A net with mailboxes, and its peer, which the test plays.
 */
#ifndef R2_TESTS_MAIL_PEER_H
#define R2_TESTS_MAIL_PEER_H

#include "link/local.h"
#include "stub_net.h"

#define MAIL_BYTES 8u

/** A net whose peer is played: its inbox, and the mailbox that it has in the net's. */
typedef struct mail_peer {
    stub_net_t *stub;
    r2_inbox_t *inbox; /* owned: the peer's */
    uint8_t address[R2_INBOX_ADDRESS_BYTES];
    r2_outbox_t out; /* to the net */
} mail_peer_t;

/** @param others that took mailboxes of both before these. */
void mail_begin_after(mail_peer_t *peer, uint32_t others);
void mail_begin(mail_peer_t *peer);
void mail_end(mail_peer_t *peer);
r2_tag_t mail_tag(uint32_t id);
/** The peer writes. @return false: its mailbox is full. */
bool mail_write(mail_peer_t *peer, uint32_t id, const void *data, uint32_t bytes);
r2_status_t mail_receive(mail_peer_t *peer, uint32_t id, void *data, uint32_t bytes,
                         r2_status_t *status);
r2_status_t mail_send(mail_peer_t *peer, uint32_t id, const void *data, uint64_t bytes);
/** What the net has written to the peer. @return false: nothing more. */
bool mail_read(mail_peer_t *peer, r2_mailbox_in_t *in, uint32_t *id_p, void *data,
               uint32_t *bytes_p);

#endif
