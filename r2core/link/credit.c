/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Credit: what may travel before its row is posted, and what the receiver grants.
 */
#include "r2_config.h"

#include "link/state.h"

#include <stdlib.h>
#include <string.h>

/* Bytes sent without credit that the peer has not given to rows yet. */
static uint32_t r2_credit_outstanding(const r2_link_t *link)
{
    return (uint32_t) link->unasked_sent - link->unasked_consumed;
}

/* First bytes of a message that may go unasked: whole chunks only, so that each is one or the other. */
static uint64_t r2_credit_portion(const r2_tx_message_t *message)
{
    const r2_params_t *params = message->link->net->params;

    if (message->bytes <= params->unasked_bytes) {
        return message->bytes;
    }
    return params->unasked_bytes / message->chunk_bytes * message->chunk_bytes;
}

void r2_credit_drop(r2_link_t *link, r2_credit_t *credit)
{
    HASH_DEL(link->credits, credit);
    --link->net->early_credits;
    free(credit);
}

static void r2_credit_request(r2_tx_message_t *message)
{
    r2_tx_rts_t rts = {
        .number = message->number,
        .tag = message->tag,
        .bytes = message->bytes,
        .chunk_bytes = message->chunk_bytes,
        .digest = message->digest,
    };

    r2_tx_control(message->link, R2_WIRE_RTS, &rts, sizeof(rts));
}

/*
 * Decides once, when a message is given to its link, what of it may go at once. Messages of more than
 * R2_CREDIT_MIN_BYTES are credited by the receiver when it posts their row; shorter ones ask for it
 * (RTS) when the parking budget is used up. Either way the rest waits for credit and nothing polls.
 */
void r2_credit_open(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;
    uint64_t portion = r2_credit_portion(message);
    r2_credit_t *credit;

    HASH_FIND(hh, link->credits, &message->tag, sizeof(message->tag), credit);
    if (NULL != credit || 0 == message->bytes) {
        message->granted = message->bytes;
        message->credited = true;
        if (NULL != credit) {
            r2_credit_drop(link, credit);
        }
        return;
    }
    if (r2_credit_outstanding(link) + portion <= link->net->params->parking_bytes) {
        message->unasked = portion;
        message->granted = portion;
        link->unasked_sent += portion;
    }
    if (message->granted < message->bytes) {
        HASH_ADD(hh, link->uncredited, tag, sizeof(message->tag), message);
        if (message->bytes <= R2_CREDIT_MIN_BYTES) {
            r2_credit_request(message);
        }
    } else {
        message->credited = true;
    }
}

void r2_credit_consumed(r2_link_t *link, uint32_t consumed)
{
    if (r2_seq_lt(link->unasked_consumed, consumed) &&
        !r2_seq_lt((uint32_t) link->unasked_sent, consumed)) {
        link->unasked_consumed = consumed;
    }
}

void r2_credit_grant(r2_link_t *link, const r2_tag_t *tag)
{
    link->grants[link->grant_count++] = *tag;
    if (R2_WIRE_CREDITS_MAX == link->grant_count) {
        link->grant_count = 0;
        r2_tx_control(link, R2_WIRE_CREDIT, link->grants, sizeof(link->grants));
    }
    r2_link_activate(link);
}

static void r2_credit_keep(r2_link_t *link, const r2_tag_t *tag)
{
    r2_credit_t *credit;

    HASH_FIND(hh, link->credits, tag, sizeof(*tag), credit);
    if (NULL != credit) {
        return;
    }
    credit = malloc(sizeof(*credit));
    if (NULL != credit) {
        credit->tag = *tag;
        ++link->net->early_credits;
        HASH_ADD(hh, link->credits, tag, sizeof(credit->tag), credit);
    }
}

void r2_credit_received(r2_link_t *link, const r2_tag_t *tags, size_t count)
{
    r2_net_t *net = link->net;

    for (size_t i = 0; i < count; ++i) {
        r2_tx_message_t *message;
        r2_tag_t tag;

        memcpy(&tag, &tags[i], sizeof(tag));
        HASH_FIND(hh, link->uncredited, &tag, sizeof(tag), message);
        if (NULL != message) {
            HASH_DEL(link->uncredited, message);
            message->credited = true;
            message->granted = message->bytes;
            r2_tx_enqueue(message, false);
        } else if (!net->upcalls.over(net->upcalls.arg, tag.comm_key, tag.coll_seq)) {
            r2_credit_keep(link, &tag);
        }
    }
}

void r2_link_forget(r2_link_t *link, uint64_t comm_key, uint32_t coll_seq)
{
    r2_credit_t *credit, *next;

    HASH_ITER(hh, link->credits, credit, next)
    {
        if (credit->tag.comm_key == comm_key && credit->tag.coll_seq == coll_seq) {
            r2_credit_drop(link, credit);
        }
    }
}
