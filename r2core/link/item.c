/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Items, and the queues in which items and messages wait for a lane.
 */
#include "r2_config.h"

#include "link/tx.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

r2_tx_item_t *r2_tx_item_new(r2_net_t *net, r2_wire_kind_t kind)
{
    r2_tx_item_t *item = r2_pool_get(&net->items);

    if (NULL != item) {
        memset(item, 0, offsetof(r2_tx_item_t, payload));
        item->kind = (uint8_t) kind;
    }
    return item;
}

uint32_t r2_tx_chunk_length(const r2_tx_message_t *message, uint32_t chunk)
{
    uint64_t offset = (uint64_t) chunk * message->chunk_bytes;
    uint64_t rest = message->bytes - offset;

    return (uint32_t) r2_min(rest, (uint64_t) message->chunk_bytes);
}

void r2_tx_item_strip(r2_tx_item_t *item)
{
    r2_tx_relay_t *to = &item->payload.relay;

    if (R2_WIRE_RELAY != item->kind) {
        return;
    }
    if (NULL != to->pair) {
        to->pair->bytes[to->side] -= item->payload_bytes;
        to->pair->calls[to->side] -= to->call;
    }
    free(to->data);
}

void r2_tx_item_release(r2_net_t *net, r2_tx_item_t *item)
{
    if (0 == item->refs && !item->queued) {
        r2_tx_item_strip(item);
        r2_pool_put(&net->items, item);
    }
}

void r2_tx_requeue(r2_link_t *link, r2_tx_item_t *item)
{
    if (!item->acked && !item->queued) {
        item->queued = true;
        DL_APPEND(link->tx.retransmit, item);
    }
}

void r2_tx_enqueue(r2_tx_message_t *message)
{
    r2_tx_message_t **queue = &message->link->tx.queue, *next = *queue;

    if (message->queued) {
        return;
    }
    message->queued = true;
    if (NULL != next && next->prev->order <= message->order) {
        next = NULL; /* behind the last: the usual case, without a walk */
    }
    while (NULL != next && next->order <= message->order) {
        next = next->next;
    }
    DL_PREPEND_ELEM(*queue, next, message);
}
