/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Landing: a transport that reads a stream puts the data of a packet where its receive wants it.
 */
/*
 * The header is in front of the data, and says which receive it is for. What is posted and takes
 * its data as it comes has it written there while the packet is still on its way. Nothing is
 * counted before the packet is whole.
 */
#include "r2_config.h"

#include "link/rx.h"

/* True if a posted receive takes this chunk, which is new, without a sink. */
static bool r2_rx_land_fits(const r2_link_t *link, const r2_rx_match_t *match,
                            const r2_wire_header_t *header)
{
    const r2_rx_message_t *message = match->message;
    const bool sinks = NULL != match->sink &&
                       (0 == match->grain_bytes || 0 == header->chunk_bytes % match->grain_bytes ||
                        header->length == header->message_bytes);

    if (!match->posted || NULL == match->data || sinks || !r2_rx_may_write(link, match) ||
        match->bytes != header->message_bytes || match->digest != header->digest) {
        return false;
    }
    return NULL == message ||
           (!message->discard && message->number == header->message &&
            message->chunk_bytes == header->chunk_bytes &&
            0 == (message->bitmap[header->chunk / 64] & 1ull << header->chunk % 64));
}

bool r2_rx_takes_more(void *worker)
{
    const r2_net_t *net = ((r2_rail_worker_t *) worker)->rail->owner;

    return net->hands_over && net->app_drives;
}

void *r2_rx_land(void *worker, const void *packet_header, size_t header_bytes, size_t data_bytes)
{
    r2_net_t *net = ((r2_rail_worker_t *) worker)->rail->owner;
    r2_wire_header_t header;
    r2_rx_match_t *match;
    r2_lane_t *lane;
    bool is_short;

    if (R2_OK != r2_wire_parse(packet_header, header_bytes, data_bytes, &header, &is_short) ||
        R2_WIRE_DATA != header.kind || 0 != (header.flags & (R2_WIRE_PLACED | R2_WIRE_UNSURE))) {
        return NULL;
    }
    lane = r2_rx_lane(net, header.connection);
    if (NULL == lane || lane->failed || r2_lane_is_relay(lane) || NULL == lane->conn ||
        lane->conn->worker != worker) {
        return NULL;
    }
    r2_rx_number(lane, &header, is_short);
    match = r2_table_find(&lane->link->rx.matches, &header.tag);
    if (NULL == match || !r2_rx_land_fits(lane->link, match, &header)) {
        return NULL;
    }
    lane->conn->landing = match;
    match->lands = true;
    return match->data + (uint64_t) header.chunk * header.chunk_bytes;
}
