/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Validation of received packet headers.
 */
#include "r2_config.h"

#include "link/wire.h"

#include <string.h>

uint32_t r2_wire_chunk_bytes(uint64_t message_bytes, uint32_t chunk_bytes, uint64_t chunk_max_bytes)
{
    uint64_t least = message_bytes / R2_WIRE_CHUNKS_MANY + 1, grown;

    if (message_bytes <= chunk_bytes) {
        return r2_wire_chunk_only((uint32_t) message_bytes);
    }
    if (chunk_bytes >= least) {
        return chunk_bytes;
    }
    grown = (least + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    if (grown > chunk_max_bytes) {
        grown = chunk_max_bytes - chunk_max_bytes % chunk_bytes;
    }
    return (uint32_t) (grown > chunk_bytes ? grown : chunk_bytes);
}

static bool r2_wire_message_ok(const r2_wire_header_t *header)
{
    uint64_t chunks, offset, rest;

    if (0 == header->chunk_bytes || header->message_bytes > R2_WIRE_MESSAGE_MAX) {
        return false;
    }
    chunks = r2_wire_chunks(header->message_bytes, header->chunk_bytes);
    if (chunks > R2_WIRE_CHUNKS_MAX || header->chunk >= chunks) {
        return false;
    }
    if (R2_WIRE_RTS == header->kind) {
        return 0 == header->length;
    }
    offset = (uint64_t) header->chunk * header->chunk_bytes;
    rest = header->message_bytes - offset;
    return header->length == (rest < header->chunk_bytes ? rest : header->chunk_bytes);
}

bool r2_wire_shorten(const r2_wire_header_t *header, r2_wire_short_t *short_p)
{
    if (R2_WIRE_DATA != header->kind || header->length != header->message_bytes ||
        header->chunk_bytes != r2_wire_chunk_only(header->length) || 0 != header->ack_bits ||
        0 != (header->flags & (R2_WIRE_PLACED | R2_WIRE_UNSURE)) ||
        header->ack_held_us > UINT16_MAX || header->tag.id > UINT16_MAX ||
        header->tag.sequence > UINT16_MAX || 0 != header->unread || 0 != header->hop) {
        return false;
    }
    *short_p = (r2_wire_short_t){.version = header->version,
                                 .flags = header->flags | R2_WIRE_SHORT,
                                 .unread_at = header->unread_at,
                                 .lane_seq = header->lane_seq,
                                 .connection = header->connection,
                                 .ack_next = header->ack_next,
                                 .ack_held_us = (uint16_t) header->ack_held_us,
                                 .id = (uint16_t) header->tag.id,
                                 .consumed = header->consumed,
                                 .digest = header->digest,
                                 .message = (uint32_t) header->message,
                                 .comm_key = header->tag.comm_key,
                                 .coll_seq = header->tag.coll_seq,
                                 .sequence = (uint16_t) header->tag.sequence};
    return true;
}

static r2_status_t r2_wire_parse_short(const void *packet_header, size_t data_bytes,
                                       r2_wire_header_t *header_p)
{
    r2_wire_short_t from;

    memcpy(&from, packet_header, sizeof(from));
    if (R2_WIRE_VERSION != from.version || R2_WIRE_SHORT != (from.flags & ~R2_WIRE_FLAGS_ALL) ||
        0 != (from.flags & (R2_WIRE_PLACED | R2_WIRE_UNSURE)) || data_bytes > UINT32_MAX) {
        return R2_ERR_WIRE;
    }
    *header_p = (r2_wire_header_t){.version = from.version,
                                   .kind = R2_WIRE_DATA,
                                   .flags = from.flags & R2_WIRE_FLAGS_ALL,
                                   .lane_seq = from.lane_seq,
                                   .connection = from.connection,
                                   .ack_next = from.ack_next,
                                   .ack_held_us = from.ack_held_us,
                                   .consumed = from.consumed,
                                   .digest = from.digest,
                                   .length = (uint32_t) data_bytes,
                                   .message = from.message,
                                   .tag = {.comm_key = from.comm_key,
                                           .sequence = from.sequence,
                                           .coll_seq = from.coll_seq,
                                           .id = from.id},
                                   .message_bytes = data_bytes,
                                   .chunk_bytes = r2_wire_chunk_only((uint32_t) data_bytes),
                                   .unread_at = from.unread_at};
    return R2_OK;
}

static bool r2_wire_grant_ok(size_t data_bytes)
{
    const size_t keys = data_bytes - offsetof(r2_wire_grant_t, keys);

    return data_bytes > offsetof(r2_wire_grant_t, keys) && data_bytes <= sizeof(r2_wire_grant_t) &&
           0 == keys % sizeof(r2_wire_key_t);
}

/* Data that were put do not travel with their header. */
static bool r2_wire_length_ok(const r2_wire_header_t *header, size_t data_bytes)
{
    if (0 != (header->flags & (R2_WIRE_PLACED | R2_WIRE_UNSURE)) && R2_WIRE_DATA != header->kind) {
        return false;
    }
    return 0 != (header->flags & R2_WIRE_PLACED) ? 0 == data_bytes && header->length > 0
                                                 : header->length == data_bytes;
}

/* True if a packet of this kind has that much payload, and what its payload says of itself fits. */
static bool r2_wire_kind_ok(const r2_wire_header_t *header, size_t data_bytes)
{
    switch ((r2_wire_kind_t) header->kind) {
    case R2_WIRE_DATA:
    case R2_WIRE_RTS:
        return r2_wire_message_ok(header);
    case R2_WIRE_CREDIT:
        return data_bytes > 0 && 0 == data_bytes % sizeof(r2_wire_credit_t) &&
               data_bytes <= R2_WIRE_CREDITS_MAX * sizeof(r2_wire_credit_t);
    case R2_WIRE_VOID:
        return sizeof(uint64_t) == data_bytes;
    case R2_WIRE_GRANT:
        return r2_wire_grant_ok(data_bytes);
    case R2_WIRE_LANE_DOWN:
        return sizeof(r2_wire_lane_down_t) == data_bytes;
    case R2_WIRE_ABORT:
        return sizeof(r2_wire_abort_t) == data_bytes;
    case R2_WIRE_NOTICE:
        return data_bytes > 0 && data_bytes <= R2_NOTICE_BYTES_MAX;
    case R2_WIRE_RELAY:
        return data_bytes >= sizeof(r2_wire_relay_t) && header->hop <= 1;
    case R2_WIRE_QUERY:
    case R2_WIRE_DENIED:
        return data_bytes > 0 && 0 == data_bytes % sizeof(r2_wire_query_t) &&
               data_bytes <= R2_WIRE_QUERY_MAX * sizeof(r2_wire_query_t);
    case R2_WIRE_HELLO:
    case R2_WIRE_HELLO_ACK:
    case R2_WIRE_ACK:
    case R2_WIRE_CLOSE:
    case R2_WIRE_CLOSED:
    case R2_WIRE_PING:
    case R2_WIRE_LEAVE:
        return 0 == data_bytes;
    case R2_WIRE_KIND_END:
    default:
        return false;
    }
}

r2_status_t r2_wire_parse(const void *packet_header, size_t header_bytes, size_t data_bytes,
                          r2_wire_header_t *header_p, bool *is_short_p)
{
    r2_wire_header_t header;

    *is_short_p = sizeof(r2_wire_short_t) == header_bytes;
    if (*is_short_p) {
        return r2_wire_parse_short(packet_header, data_bytes, header_p);
    }
    if (sizeof(header) != header_bytes) {
        return R2_ERR_WIRE;
    }
    memcpy(&header, packet_header, sizeof(header));
    if (R2_WIRE_VERSION != header.version || 0 != (header.flags & ~R2_WIRE_FLAGS_ALL) ||
        !r2_wire_length_ok(&header, data_bytes) || !r2_wire_kind_ok(&header, data_bytes)) {
        return R2_ERR_WIRE;
    }
    *header_p = header;
    return R2_OK;
}
