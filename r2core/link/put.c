/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Chunks that are put to memory which their receiver has granted.
 */
#include "r2_config.h"

#include "link/place.h"

#include <string.h>

/* Shorter chunks are copied at both ends in less time than two work requests take. */
#define R2_PUT_LEAST_BYTES 4096u

r2_wire_grant_t *r2_put_target_new(r2_net_t *net, const void *data, size_t bytes)
{
    r2_wire_grant_t *target = net->params->put ? r2_pool_get(&net->targets) : NULL;

    if (NULL != target) {
        memset(target, 0, sizeof(*target));
        memcpy(target, data, bytes);
        target->count =
            (uint32_t) ((bytes - offsetof(r2_wire_grant_t, keys)) / sizeof(target->keys[0]));
    }
    return target;
}

void r2_put_target_drop(r2_net_t *net, r2_wire_grant_t **target)
{
    if (NULL != *target) {
        r2_pool_put(&net->targets, *target);
        *target = NULL;
    }
}

void r2_put_target_set(r2_tx_message_t *message, r2_wire_grant_t **target)
{
    if (NULL != *target && NULL == message->target && (*target)->bytes == message->bytes &&
        (*target)->digest == message->digest) {
        message->target = *target;
        *target = NULL;
    }
    r2_put_target_drop(message->link->net, target);
}

const r2_wire_key_t *r2_put_key(const r2_lane_t *lane, const r2_tx_item_t *item)
{
    const r2_wire_grant_t *target = item->message->target;

    if (NULL == target || item->refs > 0 || item->queued || lane->remote_idx >= R2_RAILS_MAX ||
        NULL == lane->rail->tp->ops->put ||
        r2_tx_chunk_length(item->message, item->chunk) < R2_PUT_LEAST_BYTES) {
        return NULL;
    }
    for (uint32_t i = 0; i < target->count; ++i) {
        if (target->keys[i].connection == lane->connect.tx_connection) {
            return &target->keys[i];
        }
    }
    return NULL;
}

r2_status_t r2_put_packet(r2_lane_t *lane, r2_packet_t *packet, const r2_wire_key_t *key)
{
    r2_tx_item_t *item = packet->item;
    const r2_tx_message_t *message = item->message;
    const r2_tp_target_t target = {.address = message->target->address +
                                              (uint64_t) item->chunk * message->chunk_bytes,
                                   .key = key->key,
                                   .key_bytes = r2_min(key->bytes, (uint32_t) R2_TP_KEY_MAX)};
    r2_status_t status = lane->rail->tp->ops->put(lane->conn->ep, &packet->op, &target);

    if (status >= 0) {
        item->puts |= (uint16_t) (1u << lane->remote_idx);
        ++lane->link->net->counters->put_chunks;
        lane->link->net->counters->put_bytes += packet->op.data_bytes;
    }
    return status;
}
