/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Links within a host: what comes out of mailboxes meets its receive as what comes by lanes does.
 */
#include "r2_config.h"

#include "link/local.h"
#include "link/rx.h"

#include <string.h>
#include <utlist.h>

/** A message in a mailbox. */
typedef struct r2_local_message {
    r2_local_record_t record;
    const void *data; /* borrowed: in the mailbox */
    uint32_t bytes;
} r2_local_message_t;

/* Kept as unexpected: one message of one chunk, all of it here. @return false: no memory. */
static bool r2_local_keep(r2_link_t *link, const r2_local_message_t *from)
{
    const r2_wire_header_t header = {.flags = R2_WIRE_EAGER,
                                     .length = from->bytes,
                                     .chunk_bytes = r2_wire_chunk_only(from->bytes)};
    r2_rx_message_t *message = r2_rx_message_get(link->net, 1);
    r2_rx_match_t *match = NULL == message ? NULL : r2_rx_match(link, &from->record.tag);

    if (NULL == message) {
        return false;
    }
    message->tag = from->record.tag;
    message->bytes = from->bytes;
    message->chunk_bytes = header.chunk_bytes;
    message->held = 1;
    message->digest = from->record.digest;
    message->map_pending = 0 != (from->record.flags & R2_LOCAL_MAP_PENDING);
    message->match = match;
    if (NULL == match || !r2_rx_keep(link, message, 0, from->data, &header)) {
        r2_rx_message_drop(link->net, message);
        return false;
    }
    match->message = message;
    link->rx.bitmap_bytes += r2_rx_bitmap_bytes(1);
    r2_rx_unexpected(link, match, from->bytes, true);
    return true;
}

/* What nobody announced goes straight to who wants such, while he is at hand. @return false: it
 * goes the way of all others. */
static bool r2_local_hand_over(r2_link_t *link, const r2_local_message_t *from)
{
    r2_net_t *net = link->net;

    return R2_LINK_UNEXPECTED_KEY == from->record.tag.comm_key && 0 == from->record.digest &&
           net->app_drives && NULL != net->upcalls.unexpected &&
           net->upcalls.unexpected(net->upcalls.arg, link->rank, &from->record.tag, from->data,
                                   from->bytes);
}

/* @return false: it has to stay where it is for now. */
static bool r2_local_take(r2_link_t *link, const r2_local_message_t *from)
{
    r2_net_t *net = link->net;
    r2_rx_match_t *match = r2_table_find(&link->rx.matches, &from->record.tag);
    const bool posted = NULL != match && match->posted;
    const uint32_t cost = from->bytes + R2_EAGER_COST_BYTES;

    if (NULL != match && NULL != match->message) {
        ++net->counters->rx_malformed; /* two messages with one tag */
        link->rx.consumed += cost;
    } else if (!posted && net->upcalls.over(net->upcalls.arg, &from->record.tag)) {
        ++net->counters->rx_gone;
        link->rx.consumed += cost;
        r2_rx_stray(link, from->record.tag.comm_key);
    } else if (posted && (match->bytes != from->bytes || match->digest != from->record.digest)) {
        link->rx.consumed += cost;
        r2_rx_finish(link, match, r2_rx_mismatch(link));
    } else if (posted && r2_rx_may_write(link, match)) {
        if (NULL != match->map_pending && 0 != (from->record.flags & R2_LOCAL_MAP_PENDING)) {
            *match->map_pending = true;
        }
        r2_rx_write(link, match, 0, from->data, from->bytes, true);
        r2_rx_finish(link, match, R2_OK);
    } else if (NULL == match && r2_local_hand_over(link, from)) {
        link->rx.consumed += cost;
    } else if (!r2_local_keep(link, from)) {
        return false;
    }
    net->counters->rx_bytes += from->bytes;
    return true;
}

/* Nothing that it may have written is believed. */
static void r2_local_refuse(r2_local_t *local)
{
    ++local->link->net->counters->rx_malformed;
    DL_DELETE(local->link->net->locals, local);
    local->in.box = NULL;
    local->wrong = true;
    r2_link_activate(local->link);
}

/* Not more than fit into it at one time: a peer that writes on and on is not waited for. */
static unsigned r2_local_read(r2_local_t *local, bool *all_p)
{
    r2_link_t *link = local->link;
    const uint32_t from = local->in.at;
    r2_local_message_t message;
    unsigned count = 0;
    r2_status_t status;

    do {
        status = r2_local_peek(local, &message.record, &message.data, &message.bytes);
        if (R2_OK == status && !r2_local_take(link, &message)) {
            *all_p = false;
            break;
        }
        if (R2_OK == status) {
            r2_local_release(local);
            ++count;
        }
    } while (R2_OK == status && local->in.at - from < local->in.lines);
    if (count > 0) {
        link->path.last_rx_ns = link->net->now_ns;
    }
    if (R2_ERR_WIRE == status) {
        r2_local_refuse(local);
    }
    return count;
}

/* @return false: not now. */
static bool r2_local_join(r2_net_t *net, uint32_t sender, uint32_t number)
{
    r2_link_t *link;
    r2_local_t *local;
    r2_mailbox_t *box;
    r2_status_t status;

    if (sender >= net->size || sender == net->rank) {
        return true; /* nobody that we know */
    }
    status = r2_net_link(net, sender, &link);
    if (R2_OK != status || !link->same_host) {
        return R2_ERR_NO_MEMORY != status && R2_ERR_AGAIN != status;
    }
    local = r2_local_get(link);
    box = NULL == local ? NULL : r2_inbox_map(net->inbox, number);
    if (NULL == box) {
        return false;
    }
    if (NULL == local->in.box) {
        local->in = (r2_mailbox_in_t){.box = box, .lines = r2_inbox_lines(number)};
        local->in_most = r2_local_most(local->in.lines);
        link->rx.short_bytes = local->in_most;
        DL_APPEND(net->locals, local);
    }
    return true;
}

/* Mailboxes that others have made since. @return false: not all of them, there was no memory. */
static bool r2_local_join_all(r2_net_t *net)
{
    uint32_t number, sender;

    while (r2_inbox_changed(net->inbox) && r2_inbox_next(net->inbox, &number, &sender)) {
        if (!r2_local_join(net, sender, number)) {
            return false;
        }
        r2_inbox_know(net->inbox, number);
    }
    return true;
}

bool r2_local_drain(r2_link_t *link)
{
    bool all = NULL == link->net->inbox || r2_local_join_all(link->net);

    if (r2_local_hears(link)) {
        (void) r2_local_read(link->local, &all);
    }
    return all;
}

unsigned r2_local_poll(r2_net_t *net)
{
    r2_local_t *local, *next;
    unsigned count = 0;
    bool all;

    r2_inbox_wake(net->inbox);
    (void) r2_local_join_all(net);
    DL_FOREACH_SAFE(net->locals, local, next) {
        if (!r2_mailbox_is_empty(&local->in)) {
            count += r2_local_read(local, &all);
        } else if (local->told != local->link->rx.consumed) {
            local->told = local->link->rx.consumed;
            atomic_store_explicit(&local->in.box->consumed, local->told, memory_order_relaxed);
        }
    }
    return count;
}
