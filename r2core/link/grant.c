/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Credit that this process grants for its receives: what of their messages may be under way.
 */
#include "r2_config.h"

#include "link/place.h"
#include "link/rx.h"

#include <utlist.h>

/*
 * What was granted for a receive and is not in its memory yet is open: all of it may come while the
 * application is away, and has to be kept as unexpected then. A receive is granted more as data is
 * given to it, which only happens when its application drives (or with async_progress), so that the
 * sum of what is open bounds memory, however long it is away, and nothing that is not wanted yet is
 * sent.
 *
 *                                  in all             of one peer            of one receive
 *   message heard of               credit_bytes       share                  share
 *   only its receive is there      credit_bytes       half of the share      a quarter of the share
 *   heard of, and little is open   no bound           R2_GRANT_FLOOR_CHUNKS  R2_GRANT_FLOOR_CHUNKS
 *
 * share = credit_bytes / R2_GRANT_PARTS, or less when more links have receives that are to get
 * credit. The last line keeps every peer going, whatever others hold that are stopped, late, or
 * slow; the second keeps a receive whose message is late for ever from barring those of the same
 * peer that are under way. A message is heard of by its first chunk, or by RTS, which its sender
 * sends when it has nothing else to send (r2_credit_request_mute()).
 */
#define R2_GRANT_PARTS        4u
#define R2_GRANT_FLOOR_CHUNKS 2u

static r2_grant_kind_t r2_grant_kind(const r2_rx_match_t *match)
{
    return match->chunk_bytes > 0 ? R2_GRANT_HEARD : R2_GRANT_UNHEARD;
}

/* Where the sender stands when it has sent all that was granted: it sends whole chunks. */
static uint64_t r2_grant_usable(const r2_rx_match_t *match)
{
    uint64_t usable = match->granted_bytes;

    if (match->chunk_bytes > 0 && usable < match->bytes) {
        usable -= usable % match->chunk_bytes;
    }
    return usable;
}

/* Keeps the sums of what is open, after anything about a receive has changed. */
static void r2_grant_count(r2_link_t *link, r2_rx_match_t *match)
{
    uint64_t usable = match->posted ? r2_grant_usable(match) : 0;
    uint64_t open = usable > match->given_bytes ? usable - match->given_bytes : 0;

    link->rx.grants.open_bytes[r2_grant_kind(match)] += open - match->open_bytes;
    link->net->open_bytes += open - match->open_bytes;
    match->open_bytes = open;
}

static bool r2_grant_has_recvs(const r2_link_t *link)
{
    return NULL != link->rx.grants.recvs[R2_GRANT_UNHEARD] ||
           NULL != link->rx.grants.recvs[R2_GRANT_HEARD];
}

static void r2_grant_enter(r2_link_t *link, r2_rx_match_t *match)
{
    if (!match->asking) {
        link->net->asking_links += r2_grant_has_recvs(link) ? 0 : 1;
        match->asking = true;
        DL_APPEND(link->rx.grants.recvs[r2_grant_kind(match)], match);
    }
}

static void r2_grant_leave(r2_link_t *link, r2_rx_match_t *match)
{
    if (match->asking) {
        match->asking = false;
        DL_DELETE(link->rx.grants.recvs[r2_grant_kind(match)], match);
        link->net->asking_links -= r2_grant_has_recvs(link) ? 0 : 1;
    }
}

/* Hands over what is to be told. @return false: there was no memory, it stays. */
static bool r2_grant_say(r2_link_t *link)
{
    r2_grants_t *grants = &link->rx.grants;
    uint32_t bytes = grants->notify_count * (uint32_t) sizeof(grants->notify[0]);

    if (0 == bytes || r2_tx_control(link, R2_WIRE_CREDIT, grants->notify, bytes)) {
        grants->notify_count = 0;
        return true;
    }
    return false;
}

/* @return false: nothing may be granted now, since it could not be told. */
static bool r2_grant_may_tell(r2_link_t *link)
{
    return link->rx.grants.notify_count < R2_WIRE_CREDITS_MAX || r2_grant_say(link);
}

static void r2_grant_tell(r2_link_t *link, const r2_tag_t *tag, uint64_t bytes, bool heard)
{
    r2_grants_t *grants = &link->rx.grants;

    r2_assert(grants->notify_count < R2_WIRE_CREDITS_MAX);
    grants->notify[grants->notify_count++] =
        (r2_wire_credit_t){.tag = *tag, .bytes = bytes, .heard = heard ? 1 : 0};
    r2_link_activate(link);
}

/* The same of a receive; where it is its first credit, with memory that its message is put to. */
static void r2_grant_tell_of(r2_link_t *link, r2_rx_match_t *match, uint64_t bytes, bool first)
{
    const bool heard = R2_GRANT_HEARD == r2_grant_kind(match);
    const r2_wire_credit_t credit = {.tag = match->tag, .bytes = bytes, .heard = heard ? 1 : 0};

    if (!first || !r2_place_offer(link, match, &credit)) {
        r2_grant_tell(link, &match->tag, bytes, heard);
    }
}

void r2_grant_flush(r2_link_t *link)
{
    r2_grants_t *grants = &link->rx.grants;

    while (NULL != grants->discards && r2_grant_may_tell(link)) {
        r2_rx_message_t *message = grants->discards;

        r2_grant_told(link, message);
        r2_grant_tell(link, &message->tag, R2_WIRE_MESSAGE_MAX, true);
    }
    (void) r2_grant_say(link);
}

/* Grants a receive so much of its message. */
static void r2_grant_give(r2_link_t *link, r2_rx_match_t *match, uint64_t bytes)
{
    match->granted_bytes = bytes;
    r2_grant_count(link, match);
    if (bytes >= match->bytes || R2_GRANT_UNHEARD == r2_grant_kind(match)) {
        r2_grant_leave(link, match); /* of the latter it hears again when its message is heard of */
    }
}

static uint64_t r2_grant_share(const r2_link_t *link)
{
    const r2_net_t *net = link->net;

    return net->params->credit_bytes / r2_max(R2_GRANT_PARTS, net->asking_links);
}

/* What may be opened within the bounds for all and for this peer. */
static uint64_t r2_grant_room(const r2_link_t *link, uint64_t share)
{
    const uint64_t *open = link->rx.grants.open_bytes;
    uint64_t here = open[R2_GRANT_UNHEARD] + open[R2_GRANT_HEARD];
    uint64_t all = link->net->params->credit_bytes;

    if (here >= share || link->net->open_bytes >= all) {
        return 0;
    }
    return r2_min(share - here, all - link->net->open_bytes);
}

/* What a chunk takes that is not known yet. */
static uint64_t r2_grant_chunk_bytes(const r2_link_t *link)
{
    return r2_min((uint64_t) link->chunk_most_bytes, (uint64_t) R2_CHUNK_HELD_BYTES);
}

/*
 * One whose message is under way. Not byte by byte: a credit is worth its packet when it opens a
 * quarter of the share, or when hardly anything is open. @return false: there is no room.
 */
static bool r2_grant_more(r2_link_t *link, r2_rx_match_t *match, uint64_t share)
{
    uint64_t longest = r2_max((uint64_t) match->chunk_bytes, r2_grant_chunk_bytes(link));
    uint64_t floor = R2_GRANT_FLOOR_CHUNKS * longest;
    uint64_t from = r2_max(r2_grant_usable(match), match->given_bytes);
    uint64_t room = r2_grant_room(link, share);
    bool low = 2 * link->rx.grants.open_bytes[R2_GRANT_HEARD] <= floor;
    uint64_t bytes = from + (low ? r2_max(room, floor / 2) : room);
    const bool first = 0 == match->granted_bytes;

    if (bytes >= match->bytes) {
        bytes = match->bytes;
    } else {
        bytes -= bytes % match->chunk_bytes;
        if (!low && bytes < from + r2_max(match->chunk_bytes, share / R2_GRANT_PARTS)) {
            return false;
        }
    }
    r2_grant_give(link, match, bytes);
    r2_grant_tell_of(link, match, bytes, first);
    return true;
}

/* What one of which only the receive is there may get now: all of that, or nothing. */
static uint64_t r2_grant_ahead(const r2_link_t *link, const r2_rx_match_t *match, uint64_t share)
{
    uint64_t most = r2_max(share / R2_GRANT_PARTS, r2_grant_chunk_bytes(link));
    uint64_t bytes = r2_min(match->bytes, most);

    if (link->rx.grants.open_bytes[R2_GRANT_UNHEARD] + bytes > share / 2 ||
        bytes > r2_grant_room(link, share)) {
        return 0;
    }
    return bytes;
}

void r2_grant_refill(r2_link_t *link)
{
    r2_grants_t *grants = &link->rx.grants;
    r2_rx_match_t *match;
    uint64_t share;

    if (!r2_grant_has_recvs(link)) {
        return;
    }
    share = r2_grant_share(link);
    while (NULL != (match = grants->recvs[R2_GRANT_HEARD]) && r2_grant_may_tell(link) &&
           r2_grant_more(link, match, share)) {
        if (match->asking) {
            break; /* it got what there is */
        }
    }
    if (grants->open_bytes[R2_GRANT_UNHEARD] > share / R2_GRANT_PARTS) {
        return; /* enough is open: later, and more at a time */
    }
    while (NULL != (match = grants->recvs[R2_GRANT_UNHEARD]) && r2_grant_may_tell(link)) {
        uint64_t bytes = r2_grant_ahead(link, match, share);

        if (0 == bytes) {
            return;
        }
        r2_grant_give(link, match, bytes);
        r2_grant_tell_of(link, match, bytes, true);
    }
}

void r2_grant_want(r2_link_t *link, r2_rx_match_t *match)
{
    bool heard = R2_GRANT_HEARD == r2_grant_kind(match);

    if (!match->posted || match->granted_bytes >= match->bytes ||
        (match->bytes <= R2_CREDIT_MIN_BYTES && !match->rts)) {
        return;
    }
    if (heard || (0 == match->granted_bytes && match->tag.comm_key < R2_LINK_OWN_KEYS)) {
        r2_grant_enter(link, match);
    }
}

void r2_grant_heard(r2_link_t *link, r2_rx_match_t *match, uint32_t chunk_bytes)
{
    if (0 == match->chunk_bytes) {
        r2_grant_leave(link, match);
        link->rx.grants.open_bytes[R2_GRANT_UNHEARD] -= match->open_bytes;
        link->rx.grants.open_bytes[R2_GRANT_HEARD] += match->open_bytes;
        match->chunk_bytes =
            (uint32_t) r2_min(chunk_bytes, link->net->params->chunk_max_bytes); /* or it lies */
        r2_grant_count(link, match);
    }
    r2_grant_want(link, match);
}

uint64_t r2_grant_first(r2_link_t *link, r2_rx_match_t *match)
{
    uint64_t bytes = 0;

    if (match->posted && R2_GRANT_UNHEARD == r2_grant_kind(match) &&
        match->bytes > R2_CREDIT_MIN_BYTES) {
        bytes = r2_grant_ahead(link, match, r2_grant_share(link));
        r2_grant_give(link, match, bytes);
    }
    return bytes;
}

void r2_grant_given(r2_link_t *link, r2_rx_match_t *match, uint32_t bytes)
{
    match->given_bytes += bytes;
    r2_grant_count(link, match);
}

void r2_grant_end(r2_link_t *link, r2_rx_match_t *match)
{
    r2_grant_leave(link, match);
    link->rx.grants.open_bytes[r2_grant_kind(match)] -= match->open_bytes;
    link->net->open_bytes -= match->open_bytes;
    match->open_bytes = 0;
}

void r2_grant_all(r2_link_t *link, r2_rx_message_t *message)
{
    if (R2_OK == link->broken && !link->path.left && !link->net->ending && !message->untold) {
        message->untold = true;
        DL_APPEND(link->rx.grants.discards, message);
        r2_link_activate(link);
    }
}

void r2_grant_told(r2_link_t *link, r2_rx_message_t *message)
{
    if (message->untold) {
        message->untold = false;
        DL_DELETE(link->rx.grants.discards, message);
    }
}

void r2_grant_part(r2_link_t *link)
{
    while (NULL != link->rx.grants.discards) {
        r2_grant_told(link, link->rx.grants.discards);
    }
    link->rx.grants.notify_count = 0;
}
