/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Copies of what is sent: whether there is room for them, and messages that are written straight to
 * theirs.
 */
#include "r2_config.h"

#include "link/tx.h"

/* So many equal messages may be packed beside the room for copies, and as much as so many of
 * eager_bytes take: a stream stands still where there is room for fewer, and what is not packed
 * asks for its acknowledgement. */
#define R2_PACKED_LEAST 12u
/* A message takes at least so much of that room: what is kept of it besides is about a third. */
#define R2_PACKED_BYTES_LEAST 1024u

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

static uint32_t r2_packed_bytes(uint64_t bytes)
{
    return (uint32_t) r2_max(bytes, (uint64_t) R2_PACKED_BYTES_LEAST);
}

void r2_copies_reserve(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    message->may_copy = true;
    message->packed = !r2_copies_fit(link, message->bytes);
    if (message->packed) {
        link->tx.packed_bytes += r2_packed_bytes(message->bytes);
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
        link->tx.packed_bytes -= r2_packed_bytes(message->bytes);
    } else {
        link->tx.copied_bytes -= (uint32_t) message->bytes;
        --link->tx.copies;
    }
}

/* True if `bytes` more reach another three quarters of `most`. */
static bool r2_fills_step(uint64_t used, uint64_t bytes, uint64_t most)
{
    const uint64_t step = r2_max(3 * most / 4, 1u);

    return used / step != (used + bytes) / step;
}

bool r2_copies_ask(const r2_lane_t *lane, const r2_tx_message_t *message, uint32_t bytes)
{
    const r2_link_t *link = message->link;
    const uint64_t most_bytes = link->net->params->retransmit_bytes;

    if (!message->may_copy) {
        return false;
    }
    return message->packed
               ? 4 * ((uint64_t) lane->tx.unasked_bytes + bytes) > 3 * most_bytes
               : r2_fills_step(link->tx.copied_bytes - message->bytes, message->bytes, most_bytes);
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

/* True if there is room for a message that is packed: its own, so that short messages have theirs
 * beside a stream. */
static bool r2_packed_fits(const r2_link_t *link, uint64_t bytes)
{
    const r2_params_t *params = link->net->params;
    const uint64_t like_bytes = r2_max((uint64_t) params->eager_bytes + R2_EAGER_HEAD_BYTES, bytes);

    return bytes <= params->retransmit_bytes &&
           link->tx.packed_bytes + r2_packed_bytes(bytes) <= R2_PACKED_LEAST * like_bytes;
}

void *r2_link_block(r2_link_t *link, uint64_t bytes, uint32_t chunk_bytes)
{
    const r2_link_send_t args = {.bytes = bytes, .chunk_bytes = chunk_bytes};

    return R2_OK == link->broken && (r2_copies_fit(link, bytes) || r2_packed_fits(link, bytes)) &&
                   (bytes <= link->net->params->copy_max_bytes || r2_link_takes_all(link, &args))
               ? r2_blocks_get(&link->net->blocks, bytes)
               : NULL;
}

void r2_link_block_free(r2_link_t *link, void *block, uint64_t bytes)
{
    r2_blocks_put(&link->net->blocks, block, bytes);
}
