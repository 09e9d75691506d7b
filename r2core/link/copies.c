/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Copies of what is sent: whether there is room for them, and messages that are written straight to
 * theirs.
 */
#include "r2_config.h"

#include "link/tx.h"

/* So many messages may be packed, or as much as so many of eager_bytes take, whatever
 * retransmit_bytes: a stream stands still where there is room for fewer, and what is not packed
 * asks for its acknowledgement. */
#define R2_BLOCKS_LEAST 16u

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

/* True if there is room for a message that is packed. */
static bool r2_blocks_fit(const r2_link_t *link, uint64_t bytes)
{
    const r2_params_t *params = link->net->params;
    const uint64_t most_bytes = R2_BLOCKS_LEAST * (uint64_t) params->eager_bytes;

    return r2_copies_fit(link, bytes) ||
           (bytes <= params->retransmit_bytes && link->tx.copies < R2_COPIES_MAX &&
            (link->tx.copies < R2_BLOCKS_LEAST || link->tx.copied_bytes + bytes <= most_bytes));
}

void *r2_link_block(r2_link_t *link, uint64_t bytes, uint32_t chunk_bytes)
{
    const r2_link_send_t args = {.bytes = bytes, .chunk_bytes = chunk_bytes};

    return R2_OK == link->broken && r2_blocks_fit(link, bytes) &&
                   (bytes <= link->net->params->copy_max_bytes || r2_link_takes_all(link, &args))
               ? r2_blocks_get(&link->net->blocks, bytes)
               : NULL;
}

void r2_link_block_free(r2_link_t *link, void *block, uint64_t bytes)
{
    r2_blocks_put(&link->net->blocks, block, bytes);
}
