/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is given up: all of a communicator, of a peer, or a message that nobody takes.
 */
#include "r2_config.h"

#include "link/direct.h"
#include "link/idle.h"
#include "link/place.h"
#include "link/rx.h"
#include "link/tx.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#define R2_LINK_TEXT_BYTES 1536 /* a line that names all lanes of a link */

void r2_link_withdraw(r2_link_t *link, uint64_t comm_key)
{
    r2_tx_message_t *message;
    r2_rx_match_t *match, *next_match;
    r2_credit_t *credit, *next_credit;

    while (NULL != (message = r2_message_wanted(link, false, comm_key))) {
        r2_message_discard(message);
    }
    r2_table_foreach(&link->rx.matches, match, next_match)
    {
        if (match->tag.comm_key == comm_key) {
            r2_rx_match_drop(link, match);
        }
    }
    r2_place_withdraw(link, comm_key);
    r2_table_foreach(&link->tx.credits, credit, next_credit)
    {
        if (credit->tag.comm_key == comm_key) {
            r2_credit_drop(link, credit);
        }
    }
}

bool r2_link_abort(r2_link_t *link, uint64_t comm_key, r2_status_t status)
{
    r2_wire_abort_t abort = {.comm_key = comm_key, .status = (int32_t) status};

    /* goes when there is a path */
    return R2_ERR_PEER_GONE == link->broken ||
           r2_tx_control(link, R2_WIRE_ABORT, &abort, sizeof(abort));
}

void r2_link_describe(const r2_link_t *link, char *text_p, size_t text_bytes)
{
    size_t used;

    snprintf(text_p, text_bytes, "from %s to rank %u on %s:", link->net->info.host_name, link->rank,
             link->info.host_name);
    if (0 == link->lane_count || r2_lane_is_relay(&link->lanes[0])) {
        used = strlen(text_p);
        snprintf(text_p + used, text_bytes - used,
                 " no rail of the two hosts is in a common network");
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        used = strlen(text_p);
        snprintf(text_p + used, text_bytes - used, "%s %s - %s %s (%s)", i > 0 ? "," : "",
                 lane->rail->nic.name,
                 lane->remote_idx >= R2_RAILS_MAX ? lane->rail->nic.name : lane->remote->name,
                 lane->rail->nic.carrier ? r2_lane_state_name(lane->state) : "no carrier",
                 r2_status_string(lane->why));
    }
}

/* The text for the user: which lanes, then what is known of the rails, if anything is. */
static void r2_link_explain(r2_link_t *link, r2_status_t status, const char *lanes)
{
    r2_net_t *net = link->net;
    size_t used;

    snprintf(net->error_text, sizeof(net->error_text), "%s %s\n", r2_status_string(status), lanes);
    used = strlen(net->error_text);
    used += r2_idle_explain(link, net->error_text + used, sizeof(net->error_text) - used);
    if (NULL != net->upcalls.describe) {
        net->upcalls.describe(net->upcalls.arg, link->rank, net->error_text + used,
                              sizeof(net->error_text) - used);
        used = strlen(net->error_text);
    }
    net->error_text[used - 1] = '\0'; /* the last line feed, or what the end cut off */
}

/* True if a message or a receive of a call that is not complete is lost with the link. */
static bool r2_link_is_awaited(const r2_link_t *link)
{
    const r2_tx_message_t *message;

    DL_FOREACH2(link->tx.messages, message, all_next)
    {
        if (!message->withdrawn && NULL == message->copy) {
            return true;
        }
    }
    return r2_link_posted(link) > 0;
}

void r2_link_break(r2_link_t *link, r2_status_t status)
{
    r2_tx_message_t *message;
    r2_rx_match_t *match, *next_match;
    char text[R2_LINK_TEXT_BYTES];

    link->broken = status;
    r2_direct_break(link, status);
    if (link->path.left || (link->path.leaving && NULL == link->tx.messages)) {
        return; /* nothing is lost with it */
    }
    r2_link_describe(link, text, sizeof(text));
    if (R2_ERR_PEER_GONE == status && !r2_link_is_awaited(link)) {
        r2_info(link->net->log, "%s: %s", r2_status_string(status), text); /* it may have ended */
    } else if (!link->net->ending) {
        r2_error(link->net->log, "%s: %s", r2_status_string(status), text);
    }
    r2_link_explain(link, status, text);
    while (NULL != (message = r2_message_wanted(link, true, 0))) {
        r2_link_done_fn_t done = NULL == message->copy ? message->done : NULL;
        void *arg = message->arg;

        r2_message_discard(message);
        if (NULL != done) {
            done(arg, status);
        }
    }
    r2_table_foreach(&link->rx.matches, match, next_match)
    {
        r2_link_done_fn_t done = match->posted ? match->done : NULL;
        void *arg = match->arg;

        r2_rx_match_drop(link, match);
        if (NULL != done) {
            done(arg, status);
        }
    }
    link->net->upcalls.lost(link->net->upcalls.arg, link->rank, status);
}

void r2_link_gone(r2_link_t *link)
{
    if (R2_OK == link->broken) {
        r2_link_break(link, R2_ERR_PEER_GONE);
    }
}

r2_status_t r2_link_mismatch(r2_link_t *link)
{
    return r2_rx_mismatch(link);
}

void r2_net_unexpected_refuse(r2_net_t *net, r2_unexpected_t which)
{
    r2_unexpected_queue_t *queue = net->unexpected[which];

    ++net->counters->rx_malformed;
    r2_rx_match_drop(queue->link, queue->matches);
}
