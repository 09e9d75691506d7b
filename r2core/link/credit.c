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

/* First chunks of a message that may go unasked: whole ones, so that each is one or the other. */
static uint32_t r2_credit_portion(const r2_tx_message_t *message)
{
    const r2_params_t *params = message->link->net->params;

    if (message->bytes <= params->unasked_bytes) {
        return message->chunk_count;
    }
    return (uint32_t) (params->unasked_bytes / message->chunk_bytes);
}

/* What the chunks from `first` to before `end` take of the parking budget. */
static uint64_t r2_credit_cost(const r2_tx_message_t *message, uint32_t first, uint32_t end)
{
    uint64_t from = r2_min((uint64_t) first * message->chunk_bytes, message->bytes);
    uint64_t to = r2_min((uint64_t) end * message->chunk_bytes, message->bytes);

    return to - from + (uint64_t) (end - first) * R2_UNASKED_COST_BYTES;
}

/* Of a withdrawn message: what was not sent will never be consumed. */
void r2_credit_withdraw(r2_tx_message_t *message)
{
    if (message->next_chunk < message->unasked_chunks) {
        message->link->unasked_sent -=
            r2_credit_cost(message, message->next_chunk, message->unasked_chunks);
    }
}

void r2_credit_drop(r2_link_t *link, r2_credit_t *credit)
{
    HASH_DEL(link->credits, credit);
    --link->net->early_credits;
    free(credit);
}

void r2_credit_request(r2_tx_message_t *message)
{
    r2_tx_rts_t rts = {
        .number = message->number,
        .tag = message->tag,
        .bytes = message->bytes,
        .chunk_bytes = message->chunk_bytes,
        .digest = message->digest,
    };

    message->requested = true;
    r2_tx_control(message->link, R2_WIRE_RTS, &rts, sizeof(rts));
}

/*
 * Decides once, when a message is given to its link, what of it may go at once. Messages of more than
 * R2_CREDIT_MIN_BYTES are credited by the receiver when it posts their row; shorter ones, and calls,
 * whose row nobody posts before it hears of them, ask for it (RTS) when the parking budget is used up. Either way the rest waits for credit and nothing polls.
 */
void r2_credit_open(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;
    uint32_t chunks = r2_credit_portion(message);
    uint64_t portion = r2_credit_cost(message, 0, chunks);
    r2_credit_t *credit;

    HASH_FIND(hh, link->credits, &message->tag, sizeof(message->tag), credit);
    if (NULL != credit) {
        message->granted_chunks = message->chunk_count;
        message->credited = true;
        r2_credit_drop(link, credit);
        return;
    }
    if (r2_credit_outstanding(link) + portion <= link->net->params->parking_bytes) {
        message->unasked_chunks = chunks;
        message->granted_chunks = chunks;
        link->unasked_sent += portion;
    }
    if (message->granted_chunks < message->chunk_count) {
        HASH_ADD(hh, link->uncredited, tag, sizeof(message->tag), message);
        if (message->bytes <= R2_CREDIT_MIN_BYTES || R2_LINK_CALL_KEY == message->tag.comm_key) {
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
    if (NULL != credit || HASH_COUNT(link->credits) > R2_CREDITS_MAX) {
        return;
    }
    credit = malloc(sizeof(*credit));
    if (NULL != credit) {
        credit->tag = *tag;
        ++link->net->early_credits;
        HASH_ADD(hh, link->credits, tag, sizeof(credit->tag), credit);
    }
}

/* @return false: not all of it could be kept; it must not be acknowledged. */
bool r2_credit_received(r2_link_t *link, const void *tags, size_t count)
{
    r2_net_t *net = link->net;
    bool kept = true;

    for (size_t i = 0; i < count; ++i) {
        r2_tx_message_t *message;
        r2_tag_t tag;

        memcpy(&tag, (const char *) tags + i * sizeof(tag), sizeof(tag));
        HASH_FIND(hh, link->uncredited, &tag, sizeof(tag), message);
        if (NULL != message) {
            HASH_DEL(link->uncredited, message);
            message->credited = true;
            message->granted_chunks = message->chunk_count;
            r2_tx_enqueue(message);
        } else if (!net->upcalls.over(net->upcalls.arg, &tag)) {
            r2_credit_keep(link, &tag);
            kept = kept && HASH_COUNT(link->credits) <= R2_CREDITS_MAX;
        }
    }
    return kept;
}

void r2_link_forget(r2_link_t *link, const r2_tag_t *tag)
{
    r2_credit_t *credit, *next;

    HASH_ITER(hh, link->credits, credit, next)
    {
        if (r2_tag_same_coll(&credit->tag, tag)) {
            r2_credit_drop(link, credit);
        }
    }
}
