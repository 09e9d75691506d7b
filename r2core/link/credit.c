/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Credit of the peer: what may travel before its receive is posted, and what the receiver has
 * granted since.
 */
#include "r2_config.h"

#include "link/place.h"

#include <string.h>

/* On fast lanes messages that may not go ask when all else has left and no credit has come for so
 * long: their receives are posted as a rule, and bring it by themselves. */
#define R2_CREDIT_MUTE_NS (100 * R2_NS_PER_US)

/* Bytes sent without credit that the peer has not given to receives yet. */
static uint32_t r2_credit_outstanding(const r2_link_t *link)
{
    return (uint32_t) link->tx.eager_sent - link->tx.eager_consumed;
}

/* What the peer may hold with this message. @param portion what of it would be eager. */
static uint64_t r2_credit_budget(const r2_tx_message_t *message, uint64_t portion)
{
    const uint64_t bytes = r2_net_unexpected_bytes(message->link->net);

    return R2_LINK_UNEXPECTED_KEY == message->tag.comm_key
               ? bytes
               : r2_min(bytes, r2_max(portion, (uint64_t) R2_EAGER_CALL_BYTES));
}

/* First chunks of a message that may go eager: whole ones, so that each is one or the other. */
static uint32_t r2_credit_portion(const r2_tx_message_t *message)
{
    const r2_params_t *params = message->link->net->params;

    if (message->bytes <= params->eager_bytes + R2_EAGER_HEAD_BYTES) {
        return message->chunk_count;
    }
    return (uint32_t) (params->eager_bytes / message->chunk_bytes);
}

/* What the chunks from `first` to before `end` take of the budget of unexpected data. */
static uint64_t r2_credit_cost(const r2_tx_message_t *message, uint32_t first, uint32_t end)
{
    uint64_t from = r2_min((uint64_t) first * message->chunk_bytes, message->bytes);
    uint64_t to = r2_min((uint64_t) end * message->chunk_bytes, message->bytes);

    return to - from + (uint64_t) (end - first) * R2_EAGER_COST_BYTES;
}

/* True if nothing of a message may go, and its receiver does not know of it. */
static bool r2_credit_is_mute(const r2_tx_message_t *message)
{
    return !message->requested && !message->credited && 0 == message->granted_chunks;
}

/* Its credit is to be asked for when there is room for the question. */
static void r2_credit_defer(r2_tx_message_t *message, bool asks)
{
    message->link->tx.asks += asks ? 1 : 0;
    message->link->tx.asks -= message->asks ? 1 : 0;
    message->asks = asks;
}

/* A message leaves those that wait for their first credit. */
static void r2_credit_settle(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    r2_credit_defer(message, false);
    if (r2_credit_is_mute(message)) {
        --link->tx.mute;
        link->tx.mute_ns = 0; /* others get theirs, too */
    }
    link->tx.requests -= message->requested && !message->credited ? 1 : 0;
    message->credited = true;
}

/* A message is found no more by what comes for its tag. */
static void r2_credit_leave(r2_tx_message_t *message)
{
    r2_table_remove(&message->link->tx.uncredited, message);
    message->uncredited = false;
}

/* Of a withdrawn message: what was not sent will never be consumed. */
void r2_credit_withdraw(r2_tx_message_t *message)
{
    if (message->uncredited) { /* a hostile peer may have had two made with the same tag */
        r2_credit_leave(message);
        r2_credit_settle(message);
    }
    if (message->next_chunk < message->eager_chunks) {
        message->link->tx.eager_sent -=
            r2_credit_cost(message, message->next_chunk, message->eager_chunks);
        message->eager_chunks = message->next_chunk;
    }
}

void r2_credit_drop(r2_link_t *link, r2_credit_t *credit)
{
    r2_table_remove(&link->tx.credits, credit);
    r2_put_target_drop(link->net, &credit->target);
    --link->net->early_credits;
    r2_pool_put(&link->net->credits, credit);
}

void r2_credit_request(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;
    r2_tx_rts_t rts = {
        .number = message->number,
        .tag = message->tag,
        .bytes = message->bytes,
        .chunk_bytes = message->chunk_bytes,
        .digest = message->digest,
    };

    if (message->requested || message->credited) {
        return;
    }
    if (link->tx.requests >= R2_REQUESTS_MAX ||
        !r2_tx_control(link, R2_WIRE_RTS, &rts, sizeof(rts))) {
        r2_credit_defer(message, true); /* when others have got theirs */
        return;
    }
    r2_credit_defer(message, false);
    link->tx.mute -= r2_credit_is_mute(message) ? 1 : 0;
    ++link->tx.requests;
    message->requested = true;
}

static bool r2_credit_may_request(const r2_link_t *link)
{
    return link->tx.requests < R2_REQUESTS_MAX && 0 == link->tx.short_ns &&
           r2_control_may(link, R2_WIRE_RTS);
}

/* Asks for what could not be asked for so far, and for what has not said a word, too. */
static void r2_credit_request_all(r2_link_t *link, bool mute)
{
    r2_tx_message_t *message, *next;

    r2_table_foreach(&link->tx.uncredited, message, next)
    {
        if (!r2_credit_may_request(link)) {
            return;
        }
        if (message->asks || (mute && r2_credit_is_mute(message))) {
            r2_credit_request(message);
        }
    }
}

void r2_credit_request_deferred(r2_link_t *link)
{
    if (link->tx.asks > 0 && r2_credit_may_request(link)) {
        r2_credit_request_all(link, false);
    }
}

/* True if its lanes that may be used are fast. */
static bool r2_credit_is_fast(const r2_link_t *link)
{
    bool fast = false;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_is_sound(&link->lanes[i])) {
            fast = true;
            if (!r2_lane_is_fast(&link->lanes[i])) {
                return false;
            }
        }
    }
    return fast;
}

bool r2_credit_request_mute(r2_link_t *link)
{
    const uint64_t now_ns = link->net->now_ns;

    if (0 == link->tx.mute || !r2_link_has_lane(link)) {
        link->tx.mute_ns = 0;
        return false;
    }
    if (0 == link->tx.mute_ns) {
        link->tx.mute_ns = now_ns + (r2_credit_is_fast(link) ? R2_CREDIT_MUTE_NS : 0);
    }
    if (now_ns < link->tx.mute_ns || NULL != link->tx.control || !r2_credit_may_request(link)) {
        return false;
    }
    r2_credit_request_all(link, true);
    return NULL != link->tx.control;
}

uint64_t r2_credit_mute_deadline_ns(const r2_link_t *link)
{
    return 0 == link->tx.mute_ns || NULL != link->tx.control || !r2_credit_may_request(link)
               ? R2_NEVER_NS
               : link->tx.mute_ns;
}

/* First chunks of a message that so many bytes of credit are for. */
static uint32_t r2_credit_chunks(const r2_tx_message_t *message, uint64_t bytes)
{
    return bytes >= message->bytes ? message->chunk_count
                                   : (uint32_t) (bytes / message->chunk_bytes);
}

/* So many bytes of a message, from its start, may go. The most of all that was ever granted
 * holds. */
static void r2_credit_extend(r2_tx_message_t *message, uint64_t bytes)
{
    uint32_t chunks = r2_credit_chunks(message, bytes);

    if (chunks > message->granted_chunks) {
        message->granted_chunks = chunks;
        r2_tx_enqueue(message);
    }
}

/*
 * Decides once, when a message is given to its link, what of it may go at once: what it has credit
 * for, or else its first part, out of the budget of unexpected data. The rest waits for credit,
 * which the receiver grants when it posts the receive and as it takes what has come; nothing polls.
 * Messages up to R2_CREDIT_MIN_BYTES, whose receives get none by themselves, and calls, whose
 * receive nobody posts before it hears of them, ask for it (RTS) when the budget is used up;
 * others, of which nothing may go, do when nothing else has been left to send for a while.
 */
void r2_credit_open(r2_tx_message_t *message, uint64_t granted_bytes)
{
    r2_link_t *link = message->link;
    uint32_t chunks = r2_credit_portion(message), granted;
    uint64_t portion = r2_credit_cost(message, 0, chunks);
    r2_credit_t *credit;
    bool eager;

    credit = r2_table_find(&link->tx.credits, &message->tag);
    granted_bytes = r2_max(granted_bytes, NULL == credit ? 0 : credit->bytes);
    message->credited = granted_bytes > 0 &&
                        granted_bytes >= r2_min(message->bytes, (uint64_t) message->chunk_bytes);
    granted = message->credited ? r2_credit_chunks(message, granted_bytes) : 0;
    /* of what the CPU cannot read nothing could be kept if it was withdrawn on its way */
    eager = 0 == granted && !message->on_gpu &&
            r2_credit_outstanding(link) + portion <= r2_credit_budget(message, portion);
    message->granted_chunks = eager ? chunks : granted;
    if (message->granted_chunks < message->chunk_count) {
        r2_table_add(&link->tx.uncredited, message);
        message->uncredited = true;
        link->tx.mute += r2_credit_is_mute(message) ? 1 : 0;
    }
    if (NULL != credit) {
        r2_put_target_set(message, &credit->target);
        r2_credit_drop(link, credit);
    }
    if (eager) {
        message->eager_chunks = chunks;
        link->tx.eager_sent += portion;
    }
    if (message->granted_chunks < message->chunk_count && !message->credited &&
        (message->bytes <= R2_CREDIT_MIN_BYTES ||
         R2_LINK_UNEXPECTED_KEY == message->tag.comm_key)) {
        r2_credit_request(message);
    }
}

void r2_credit_consumed(r2_link_t *link, uint32_t consumed)
{
    if (r2_seq_lt(link->tx.eager_consumed, consumed) &&
        !r2_seq_lt((uint32_t) link->tx.eager_sent, consumed)) {
        link->tx.eager_consumed = consumed;
    }
}

/* @return false: it could not be kept. @param target taken, if it is; it may be NULL. */
static bool r2_credit_keep(r2_link_t *link, const r2_wire_credit_t *entry, r2_wire_grant_t **target)
{
    r2_credit_t *credit;

    credit = r2_table_find(&link->tx.credits, &entry->tag);
    if (NULL == credit) {
        if (link->tx.credits.count >= R2_CREDITS_MAX) {
            return false;
        }
        credit = r2_pool_get(&link->net->credits);
        if (NULL == credit) {
            return false;
        }
        credit->tag = entry->tag;
        credit->bytes = 0;
        credit->target = NULL;
        r2_table_add(&link->tx.credits, credit);
        ++link->net->early_credits;
    }
    credit->bytes = r2_max(credit->bytes, entry->bytes);
    if (NULL == credit->target) {
        credit->target = *target;
        *target = NULL;
    }
    return true;
}

/* A message that the peer has heard of and that does not wait for credit is gone: the credit comes
 * late. */
static bool r2_credit_is_early(const r2_net_t *net, const r2_wire_credit_t *entry)
{
    return 0 == entry->heard && entry->tag.comm_key < R2_LINK_OWN_KEYS &&
           !net->upcalls.over(net->upcalls.arg, &entry->tag);
}

/* @param target where the message may be put, taken if it is used; it may be NULL. @return false:
 * it could not be kept. */
static bool r2_credit_take(r2_link_t *link, const r2_wire_credit_t *entry, r2_wire_grant_t **target)
{
    r2_tx_message_t *message = r2_table_find(&link->tx.uncredited, &entry->tag);

    if (NULL == message) {
        return !r2_credit_is_early(link->net, entry) || r2_credit_keep(link, entry, target);
    }
    r2_put_target_set(message, target);
    r2_credit_settle(message);
    r2_credit_extend(message, entry->bytes);
    if (message->granted_chunks == message->chunk_count) {
        r2_credit_leave(message);
    }
    return true;
}

/* @return false: not all of it could be kept; it must not be acknowledged. */
bool r2_credit_received(r2_link_t *link, const void *credits, size_t count)
{
    r2_wire_grant_t *none = NULL;
    bool kept = true;

    for (size_t i = 0; i < count; ++i) {
        r2_wire_credit_t entry;

        memcpy(&entry, (const char *) credits + i * sizeof(entry), sizeof(entry));
        kept = r2_credit_take(link, &entry, &none) && kept;
    }
    return kept;
}

bool r2_credit_granted(r2_link_t *link, const void *grant, size_t bytes)
{
    r2_wire_grant_t *target = r2_put_target_new(link->net, grant, bytes);
    r2_wire_credit_t entry;
    bool kept;

    memcpy(&entry, grant, sizeof(entry));
    kept = r2_credit_take(link, &entry, &target);
    r2_put_target_drop(link->net, &target);
    return kept;
}

void r2_link_forget(r2_link_t *link, const r2_tag_t *tag)
{
    r2_credit_t *credit, *next;

    r2_table_foreach(&link->tx.credits, credit, next)
    {
        if (r2_tag_same_coll(&credit->tag, tag)) {
            r2_credit_drop(link, credit);
        }
    }
}
