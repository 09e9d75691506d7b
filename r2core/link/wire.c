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

r2_status_t r2_wire_parse(const void *packet_header, size_t header_bytes, size_t data_bytes,
                          r2_wire_header_t *header_p)
{
    r2_wire_header_t header;
    bool ok;

    if (sizeof(header) != header_bytes) {
        return R2_ERR_WIRE;
    }
    memcpy(&header, packet_header, sizeof(header));
    if (R2_WIRE_VERSION != header.version || 0 != (header.flags & ~R2_WIRE_FLAGS_ALL) ||
        header.length != data_bytes) {
        return R2_ERR_WIRE;
    }
    switch ((r2_wire_kind_t) header.kind) {
    case R2_WIRE_DATA:
    case R2_WIRE_RTS:
        ok = r2_wire_message_ok(&header);
        break;
    case R2_WIRE_CREDIT:
        ok = data_bytes > 0 && 0 == data_bytes % sizeof(r2_wire_credit_t) &&
             data_bytes <= R2_WIRE_CREDITS_MAX * sizeof(r2_wire_credit_t);
        break;
    case R2_WIRE_LANE_DOWN:
        ok = sizeof(uint64_t) == data_bytes;
        break;
    case R2_WIRE_ABORT:
        ok = sizeof(r2_wire_abort_t) == data_bytes;
        break;
    case R2_WIRE_NOTICE:
        ok = data_bytes > 0 && data_bytes <= R2_NOTICE_BYTES_MAX;
        break;
    case R2_WIRE_RELAY:
        ok = data_bytes >= sizeof(r2_wire_relay_t) && header.hop <= 1;
        break;
    case R2_WIRE_QUERY:
    case R2_WIRE_DENIED:
        ok = data_bytes > 0 && 0 == data_bytes % sizeof(r2_wire_query_t) &&
             data_bytes <= R2_WIRE_QUERY_MAX * sizeof(r2_wire_query_t);
        break;
    case R2_WIRE_HELLO:
    case R2_WIRE_HELLO_ACK:
    case R2_WIRE_ACK:
    case R2_WIRE_CLOSE:
    case R2_WIRE_CLOSED:
    case R2_WIRE_PING:
    case R2_WIRE_LEAVE:
        ok = 0 == data_bytes;
        break;
    case R2_WIRE_KIND_END:
    default:
        ok = false;
        break;
    }
    if (!ok) {
        return R2_ERR_WIRE;
    }
    *header_p = header;
    return R2_OK;
}
