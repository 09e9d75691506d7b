/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Copies of what is sent: whether there is room for them, and messages that are written straight to
 * theirs.
 */
#include "r2_config.h"

#include "link/tx.h"

/* What is packed has room of its own, so that a stream of long ones leaves short messages theirs:
 * for so many of eager_bytes, or of its length if that is more. A stream stands still where there
 * is room for fewer, and what is not packed asks for its acknowledgement. */
#define R2_PACKED_MESSAGES 16u
/* A message takes at least this part of eager_bytes from that room, so they are a thousand at
 * most. */
#define R2_PACKED_PART 64u

bool r2_copies_fit(const r2_link_t *link, uint64_t bytes)
{
    return link->tx.copies < R2_COPIES_MAX &&
           link->tx.copied_bytes + bytes <= link->net->params->retransmit_bytes;
}

bool r2_link_copies(const r2_link_t *link, uint64_t bytes)
{
    return bytes <= link->net->params->copy_max_bytes && r2_copies_fit(link, bytes);
}

bool r2_copies_spare(const r2_link_t *link, uint64_t bytes)
{
    return r2_copies_fit(link, bytes) &&
           4 * (link->tx.copied_bytes + bytes) <= 3 * link->net->params->retransmit_bytes;
}

/* Room that a message takes of that for what is packed, and that room. */
static uint32_t r2_packed_bytes(const r2_link_t *link, uint64_t bytes)
{
    const uint64_t least_bytes = link->net->params->eager_bytes / R2_PACKED_PART;

    return (uint32_t) r2_max(bytes, least_bytes);
}

static uint64_t r2_packed_room(const r2_link_t *link, uint64_t bytes)
{
    const uint64_t eager_bytes = link->net->params->eager_bytes + (uint64_t) R2_EAGER_HEAD_BYTES;

    return R2_PACKED_MESSAGES * r2_max(bytes, eager_bytes);
}

void r2_copies_reserve(r2_tx_message_t *message, bool packed)
{
    r2_link_t *link = message->link;

    message->may_copy = true;
    message->packed = packed;
    if (packed) {
        link->tx.packed_bytes += r2_packed_bytes(link, message->bytes);
    } else {
        link->tx.copied_bytes += (uint32_t) message->bytes;
        ++link->tx.copies;
    }
}

void r2_copies_release(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    if (!message->may_copy) {
        return;
    }
    message->may_copy = false;
    if (message->packed) {
        link->tx.packed_bytes -= r2_packed_bytes(link, message->bytes);
    } else {
        link->tx.copied_bytes -= (uint32_t) message->bytes;
        --link->tx.copies;
    }
}

bool r2_copies_ask(const r2_lane_t *lane, const r2_tx_message_t *message, uint32_t bytes)
{
    const r2_link_t *link = message->link;
    const uint64_t low_bytes = 3 * (uint64_t) link->net->params->retransmit_bytes / 4;
    const uint64_t unasked_bytes = (uint64_t) lane->tx.unasked_bytes + bytes;

    if (message->may_copy && message->packed) { /* lanes take turns: each asks for its part */
        return 4 * link->lane_count * unasked_bytes > 3 * r2_packed_room(link, message->bytes);
    }
    return message->may_copy && link->tx.copied_bytes >= low_bytes &&
           link->tx.copied_bytes - message->bytes < low_bytes;
}

bool r2_link_takes_all(const r2_link_t *link, const r2_link_send_t *args)
{
    const uint64_t chunks = 1 + args->bytes / r2_max(args->chunk_bytes, 1u);
    uint64_t room = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (r2_lane_may_send(lane) && lane->tx.window_bytes > lane->tx.in_flight_bytes) {
            room += lane->tx.window_bytes - lane->tx.in_flight_bytes;
        }
    }
    return NULL == link->tx.queue && args->bytes + chunks * sizeof(r2_wire_header_t) <= room;
}

void *r2_link_block(r2_link_t *link, uint64_t bytes, uint32_t chunk_bytes)
{
    const r2_params_t *params = link->net->params;
    const r2_link_send_t args = {.bytes = bytes, .chunk_bytes = chunk_bytes};
    const uint64_t packed_bytes = (uint64_t) link->tx.packed_bytes + r2_packed_bytes(link, bytes);
    const bool may_wait =
        bytes <= params->copy_max_bytes && packed_bytes <= params->retransmit_bytes;

    if (R2_OK != link->broken || bytes > params->retransmit_bytes ||
        packed_bytes > r2_packed_room(link, bytes) ||
        (!may_wait && !r2_link_takes_all(link, &args))) {
        return NULL;
    }
    return r2_blocks_get(&link->net->blocks, bytes);
}

void r2_link_block_free(r2_link_t *link, void *block, uint64_t bytes)
{
    r2_blocks_put(&link->net->blocks, block, bytes);
}
