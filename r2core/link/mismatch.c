/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives and messages that do not meet because ranks made different calls: who waits asks, and is
 * told.
 *
 * A receive that has waited for long asks the peer whether its message will come (QUERY). A peer
 * that has none under way, and whose collective is over or has no such message, says so (DENIED).
 * That holds for ever, so it is proof for a receive that still has nothing of its message, however
 * late it hears of it. A receive that has a part of its message asks, too: a peer that has given up
 * the communicator says that to whoever asks. Messages that no receive took are told from those
 * that are early by their collective: it is over, or runs and has no receive for them. The latter
 * matters where all ranks send and none receives: then no receive asks.
 */
#include "r2_config.h"

#include "link/local.h"
#include "link/rx.h"
#include "link/tx.h"

#include <string.h>
#include <utlist.h>

/* In multiples of failure_timeout_ms: as long as a silent link waits before it asks. */
#define R2_MISMATCH_TIMES 20u

static bool r2_mismatch_say(r2_link_t *link, r2_wire_kind_t kind, const r2_wire_query_t *queries,
                            uint32_t count)
{
    return 0 == count || r2_tx_control(link, kind, queries, count * (uint32_t) sizeof(*queries));
}

/*
 * Asks for the receives that have waited for `timeout_ns`, oldest first and not more than one
 * packet of them; not again before that is acknowledged, which a stopped peer does when it goes on.
 */
static void r2_mismatch_query(r2_link_t *link, uint64_t timeout_ns)
{
    r2_rx_match_t *match, *next, *queried[R2_WIRE_QUERY_MAX];
    r2_wire_query_t queries[R2_WIRE_QUERY_MAX];
    uint32_t count = 0;

    if (NULL != link->tx.control || !r2_link_has_lane(link) ||
        !r2_control_may(link, R2_WIRE_QUERY)) {
        return;
    }
    r2_table_foreach(&link->rx.matches, match, next)
    {
        if (match->posted && !r2_rx_match_is_whole(match) && count < R2_WIRE_QUERY_MAX &&
            link->net->now_ns >= match->since_ns + timeout_ns) {
            queries[count] = (r2_wire_query_t){.tag = match->tag, .digest = match->digest};
            queried[count++] = match;
        }
    }
    if (r2_mismatch_say(link, R2_WIRE_QUERY, queries, count)) {
        for (uint32_t i = 0; i < count; ++i) {
            queried[i]->since_ns = link->net->now_ns; /* others first, the next time */
        }
    }
}

/* True if no receive will ever take what is kept as unexpected, or asks for credit. */
static bool r2_mismatch_in_vain(const r2_link_t *link, const r2_rx_match_t *match)
{
    const r2_net_upcalls_t *upcalls = &link->net->upcalls;
    const uint32_t digest = NULL == match->message ? match->digest : match->message->digest;

    if (upcalls->over(upcalls->arg, &match->tag)) {
        return true;
    }
    return (match->rts || NULL != match->message) && NULL != upcalls->receives &&
           !upcalls->receives(upcalls->arg, link->rank, &match->tag, digest);
}

/* Drops what is kept as unexpected for receives that are over, or never were. */
static void r2_mismatch_clear(r2_link_t *link)
{
    r2_rx_match_t *match, *next;

    r2_table_foreach(&link->rx.matches, match, next)
    {
        if (!match->posted && r2_mismatch_in_vain(link, match)) {
            r2_rx_stray(link, match->tag.comm_key);
            r2_rx_match_drop(link, match);
        }
    }
}

/* A message without credit may be one that no receive will ever take: its receiver must hear of
 * it. */
static void r2_mismatch_request(r2_link_t *link)
{
    r2_tx_message_t *message, *next;

    r2_table_foreach(&link->tx.uncredited, message, next)
    {
        if (!message->requested && !message->credited) {
            r2_credit_request(message);
        }
    }
}

void r2_mismatch_timer(r2_link_t *link)
{
    uint64_t timeout_ns = r2_scaled_timeout_ns(link->net, R2_MISMATCH_TIMES);

    if (R2_OK != link->broken || !r2_link_awaits(link)) {
        link->path.mismatch_ns = 0;
        return;
    }
    if (0 == link->path.mismatch_ns) {
        link->path.mismatch_ns = link->net->now_ns + timeout_ns;
    }
    if (link->net->now_ns < link->path.mismatch_ns) {
        return;
    }
    link->path.mismatch_ns = link->net->now_ns + timeout_ns / 2;
    r2_mismatch_query(link, timeout_ns);
    r2_mismatch_request(link);
}

/* Of all links, since those that only hold what is kept as unexpected have no timers. */
void r2_mismatch_scan(r2_net_t *net)
{
    if (net->now_ns < net->mismatch_ns) {
        return;
    }
    net->mismatch_ns = net->now_ns + r2_scaled_timeout_ns(net, R2_MISMATCH_TIMES);
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        if (NULL != net->links[rank] && net->links[rank]->rx.unposted > 0) {
            r2_mismatch_clear(net->links[rank]);
        }
    }
}

uint64_t r2_mismatch_deadline_ns(const r2_link_t *link)
{
    return 0 == link->path.mismatch_ns ? R2_NEVER_NS : link->path.mismatch_ns;
}

/* Not one that was given up, and of which but the eager part still arrives. */
static bool r2_mismatch_under_way(const r2_link_t *link, const r2_tag_t *tag)
{
    const r2_tx_message_t *message;

    DL_FOREACH2(link->tx.messages, message, all_next)
    {
        if (0 == memcmp(&message->tag, tag, sizeof(*tag))) {
            return !message->withdrawn || message->copy_bytes == message->bytes;
        }
    }
    return false;
}

void r2_mismatch_received(r2_link_t *link, const void *queries, size_t count)
{
    const r2_net_upcalls_t *upcalls = &link->net->upcalls;
    r2_wire_query_t query, denied[R2_WIRE_QUERY_MAX];
    uint32_t denied_count = 0;

    for (size_t i = 0; NULL != upcalls->sends && i < count; ++i) {
        memcpy(&query, (const char *) queries + i * sizeof(query), sizeof(query));
        if (!r2_mismatch_under_way(link, &query.tag) &&
            !upcalls->sends(upcalls->arg, link->rank, &query.tag, query.digest)) {
            denied[denied_count++] = query;
        }
    }
    (void) r2_mismatch_say(link, R2_WIRE_DENIED, denied, denied_count); /* or it asks again */
}

void r2_mismatch_denied(r2_link_t *link, const void *queries, size_t count)
{
    if (!r2_local_drain(link)) {
        return; /* their messages may be there: asked again later */
    }
    for (size_t i = 0; i < count; ++i) {
        r2_rx_match_t *match;
        r2_wire_query_t query;

        memcpy(&query, (const char *) queries + i * sizeof(query), sizeof(query));
        match = r2_table_find(&link->rx.matches, &query.tag);
        if (NULL != match && match->posted && NULL == match->message &&
            query.digest == match->digest) {
            r2_rx_finish(link, match, r2_rx_mismatch(link));
        }
    }
}
