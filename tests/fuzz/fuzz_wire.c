/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Packet headers: whatever passes the parser is safe to use.
 */
#include "r2_config.h"

#include "fuzz.h"
#include "link/wire.h"

/* The properties that the receive path counts on. */
static void check_message(const r2_wire_header_t *header, size_t data_bytes)
{
    uint64_t chunks, offset;

    fuzz_check(header->chunk_bytes > 0 && header->message_bytes <= R2_WIRE_MESSAGE_MAX);
    chunks = r2_wire_chunks(header->message_bytes, header->chunk_bytes);
    fuzz_check(chunks >= 1 && chunks <= R2_WIRE_CHUNKS_MAX && header->chunk < chunks);
    offset = (uint64_t) header->chunk * header->chunk_bytes;
    if (R2_WIRE_DATA == header->kind) {
        fuzz_check(offset + header->length <= header->message_bytes);
        fuzz_check(header->length <= header->chunk_bytes);
        fuzz_check(header->chunk + 1 == chunks || header->length == header->chunk_bytes);
    } else {
        fuzz_check(0 == data_bytes);
    }
}

/* What came is what is said, in the form in which it came. */
static void check_form(const r2_wire_header_t *header, const fuzz_input_t *input, bool is_short)
{
    r2_wire_short_t brief;

    if (is_short) {
        fuzz_check(r2_wire_shorten(header, &brief));
        fuzz_check(sizeof(brief) == input->left && 0 == memcmp(&brief, input->at, input->left));
    } else {
        fuzz_check(sizeof(*header) == input->left && 0 == memcmp(header, input->at, input->left));
    }
}

/* Input: data length (4), then the header as it arrived. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_input_t input = {data, bytes};
    size_t data_bytes = fuzz_u32(&input);
    r2_wire_header_t header, before;
    bool is_short;

    memset(&before, 0x5a, sizeof(before));
    header = before;
    if (R2_OK != r2_wire_parse(input.at, input.left, data_bytes, &header, &is_short)) {
        fuzz_check(0 == memcmp(&header, &before, sizeof(header)));
        return 0;
    }
    check_form(&header, &input, is_short);
    fuzz_check(header.kind >= R2_WIRE_HELLO && header.kind < R2_WIRE_KIND_END);
    fuzz_check((header.length == data_bytes || 0 != (header.flags & R2_WIRE_PLACED)) &&
               R2_WIRE_VERSION == header.version);
    switch ((r2_wire_kind_t) header.kind) {
    case R2_WIRE_DATA:
    case R2_WIRE_RTS:
        check_message(&header, data_bytes);
        break;
    case R2_WIRE_CREDIT:
        fuzz_check(data_bytes >= sizeof(r2_wire_credit_t) &&
                   data_bytes <= R2_WIRE_CREDITS_MAX * sizeof(r2_wire_credit_t));
        break;
    case R2_WIRE_GRANT:
        fuzz_check(data_bytes > offsetof(r2_wire_grant_t, keys) &&
                   data_bytes <= sizeof(r2_wire_grant_t));
        break;
    case R2_WIRE_VOID:
        fuzz_check(sizeof(uint64_t) == data_bytes);
        break;
    case R2_WIRE_LANE_DOWN:
        fuzz_check(sizeof(r2_wire_lane_down_t) == data_bytes);
        break;
    case R2_WIRE_ABORT:
        fuzz_check(sizeof(r2_wire_abort_t) == data_bytes);
        break;
    case R2_WIRE_NOTICE:
        fuzz_check(data_bytes > 0 && data_bytes <= R2_NOTICE_BYTES_MAX);
        break;
    case R2_WIRE_RELAY:
        fuzz_check(data_bytes >= sizeof(r2_wire_relay_t) && header.hop <= 1);
        break;
    case R2_WIRE_HELLO:
    case R2_WIRE_HELLO_ACK:
    case R2_WIRE_ACK:
    case R2_WIRE_PING:
    case R2_WIRE_LEAVE:
    case R2_WIRE_KIND_END:
        fuzz_check(0 == data_bytes);
        break;
    }
    return 0;
}
