/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Leaving: a process that ends while others go on. It ends when its peers hold all that it has for
 * them, and says so.
 *
 *   leaving process                      peer
 *   messages, until acknowledged  ---->
 *                                 <----  its own, and acknowledgements
 *   LEAVE                         ---->  all that it has for the other counts as acknowledged
 *                                 <----  acknowledgement of LEAVE
 *   ends                                 lanes that fail now are no news
 *
 * So nobody needs an acknowledgement from a process that has ended. LEAVE says: I hold all that I
 * want, and you hold all that I had.
 */
#include "r2_config.h"

#include "link/direct.h"
#include "link/local.h"
#include "link/rx.h"
#include "link/tx.h"

#include <utlist.h>

/* A peer that holds everything, and of which nothing is heard for so long, is not waited for. */
#define R2_LEAVE_TIMES 20u /* failure_timeout_ms */

/* Nothing was heard of the peer for too long: it is stopped, or there is no path. */
static bool r2_link_leave_late(const r2_link_t *link)
{
    const r2_net_t *net = link->net;
    uint64_t heard_ns = r2_max(link->path.last_rx_ns, net->leaving_ns);

    return net->now_ns - heard_ns >= (NULL != link->tx.messages
                                          ? net->params->no_path_timeout_ms * R2_NS_PER_MS
                                          : r2_scaled_timeout_ns(net, R2_LEAVE_TIMES));
}

/* @return true: the peer has no need of us any more, or is not waited for. */
static bool r2_link_leave(r2_link_t *link)
{
    if (R2_OK != link->broken || link->path.left_behind) {
        return true;
    }
    if (link->path.left) {
        return link->path.parted && !r2_link_owes_acks(link);
    }
    if (!r2_link_owes(link)) {
        if (link->path.leaving || (!link->path.wired && !r2_local_speaks(link))) {
            return true;
        }
        link->path.leaving = r2_tx_control(link, R2_WIRE_LEAVE, NULL, 0);
        if (link->path.leaving) {
            return false;
        }
    }
    if (r2_link_leave_late(link)) {
        link->path.left_behind = true;
        if (NULL != link->tx.messages) {
            r2_warn(link->net->log, "this process ends, rank %u on %s has not taken all its data",
                    link->rank, link->info.host_name);
        }
    }
    return link->path.left_behind;
}

bool r2_net_leave(r2_net_t *net)
{
    bool done = true;

    if (0 == net->leaving_ns) {
        net->leaving_ns = net->now_ns;
    }
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        if (NULL != net->links[rank] && !r2_link_leave(net->links[rank])) {
            done = false;
        }
    }
    return done;
}

/* All that is under way to the peer counts as acknowledged. */
static void r2_link_settle_packets(r2_link_t *link)
{
    r2_packet_t *packet, *next;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        DL_FOREACH_SAFE(link->lanes[i].tx.in_flight, packet, next) {
            r2_tx_packet_settle(packet, true);
        }
    }
}

static void r2_link_settle_items(r2_link_t *link, r2_tx_item_t **list)
{
    while (NULL != *list) {
        r2_tx_item_t *item = *list;

        DL_DELETE(*list, item);
        item->queued = false;
        r2_control_settled(link, item);
        r2_tx_item_release(link->net, item);
    }
}

static void r2_link_settle_messages(r2_link_t *link)
{
    r2_tx_message_t *message, *next;

    DL_FOREACH_SAFE2(link->tx.messages, message, next, all_next)
    {
        r2_message_unqueue(message);
        message->acked_chunks = message->chunk_count;
        r2_tx_message_settle(message); /* or as soon as no transport reads it */
    }
}

void r2_link_part(r2_link_t *link)
{
    r2_rx_match_t *match, *next;

    if (!r2_local_drain(link)) {
        return; /* no memory for what it wrote before: again with the next pass */
    }
    link->path.parted = true;
    if (NULL != link->directs) {
        r2_direct_break(link, r2_link_has_left(link));
    }
    r2_link_settle_packets(link);
    r2_link_settle_items(link, &link->tx.control);
    r2_link_settle_items(link, &link->tx.retransmit);
    r2_link_settle_items(link, &link->tx.relayed);
    r2_link_settle_messages(link);
    r2_grant_part(link);
    link->tx.short_ns = 0;
    r2_table_foreach(&link->rx.matches, match, next)
    {
        if (match->posted && !r2_rx_match_is_whole(match)) {
            r2_rx_finish(link, match, r2_link_has_left(link)); /* nothing more will come */
        }
    }
}
