/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Wire format, short form: its layout, what has one, every reason to refuse it, message numbers.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "link/wire.h"

static r2_status_t parse_bytes(const void *bytes, size_t header_bytes, size_t data_bytes)
{
    uint8_t packet[sizeof(r2_wire_header_t) + 2] = {0};
    r2_wire_header_t out;
    bool is_short;

    memcpy(packet + 1, bytes, header_bytes); /* misaligned */
    return r2_wire_parse(packet + 1, header_bytes, data_bytes, &out, &is_short);
}

/* A header of a message of one chunk, with a number in every field. */
static r2_wire_header_t only_chunk(uint32_t bytes)
{
    return (r2_wire_header_t){
        .version = R2_WIRE_VERSION,
        .kind = R2_WIRE_DATA,
        .flags = R2_WIRE_ACK_NOW | R2_WIRE_HEDGE,
        .lane_seq = 0x01020304,
        .connection = 0x1112131415161718ull,
        .ack_next = 0x21222324,
        .ack_held_us = 0x3132,
        .consumed = 0x35363738,
        .digest = 0x41424344,
        .length = bytes,
        .message = 0x55565758,
        .tag = {0x6162636465666768ull, 0x9192, 0x71727374, 0x7576},
        .message_bytes = bytes,
        .chunk_bytes = r2_wire_chunk_only(bytes),
        .unread_at = 0x0807,
    };
}

/* The short form, byte for byte: 50 of them. */
static void short_layout(void **state)
{
    static const uint8_t bytes[] = {
        11,   0x85, 0x07, 0x08,                         /* version, flags, unread_at */
        0x04, 0x03, 0x02, 0x01,                         /* lane_seq */
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* connection */
        0x24, 0x23, 0x22, 0x21, 0x32, 0x31, 0x76, 0x75, /* ack_next, ack_held_us, tag: row */
        0x38, 0x37, 0x36, 0x35, 0x44, 0x43, 0x42, 0x41, /* consumed, digest */
        0x58, 0x57, 0x56, 0x55,                         /* message, low bits */
        0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, /* tag: communicator */
        0x74, 0x73, 0x72, 0x71, 0x92, 0x91,             /* tag: collective, sequence */
    };
    const r2_wire_header_t header = only_chunk(3);
    r2_wire_header_t parsed;
    r2_wire_short_t brief;
    bool is_short = false;

    (void) state;
    assert_int_equal(sizeof(bytes), sizeof(brief));
    assert_true(r2_wire_shorten(&header, &brief));
    assert_memory_equal(&brief, bytes, sizeof(bytes));
    assert_int_equal(r2_wire_parse(bytes, sizeof(bytes), 3, &parsed, &is_short), R2_OK);
    assert_true(is_short);
    assert_memory_equal(&parsed, &header, sizeof(header));
}

/* What one form says the other says, or there is no short one. */
static void short_or_not(void **state)
{
    static const uint32_t lengths[] = {0, 1, 8, 1000, 131072};
    r2_wire_header_t header, parsed;
    r2_wire_short_t brief;
    bool is_short;

    (void) state;
    for (size_t i = 0; i < r2_array_count(lengths); ++i) {
        header = only_chunk(lengths[i]);
        assert_true(r2_wire_shorten(&header, &brief));
        assert_int_equal(r2_wire_parse(&brief, sizeof(brief), lengths[i], &parsed, &is_short),
                         R2_OK);
        assert_memory_equal(&parsed, &header, sizeof(header));
    }
#define LONG(change)                                    \
    do {                                                \
        header = only_chunk(8);                         \
        change;                                         \
        assert_false(r2_wire_shorten(&header, &brief)); \
    } while (0)
    LONG(header.kind = R2_WIRE_RTS);
    LONG(header.kind = R2_WIRE_ACK);
    LONG(header.message_bytes = 9);
    LONG(header.chunk_bytes = 9);
    LONG(header.ack_bits = 1);
    LONG(header.ack_held_us = 0x10000);
    LONG(header.tag.id = 0x10000);
    LONG(header.tag.sequence = 0x10000);
    LONG(header.unread = 1);
    LONG(header.hop = 1);
#undef LONG
}

static void short_refused(void **state)
{
    r2_wire_header_t header = only_chunk(8);
    uint8_t bytes[sizeof(r2_wire_short_t) + 1] = {0};
    r2_wire_short_t good, brief;

    (void) state;
    assert_true(r2_wire_shorten(&header, &good));
    memcpy(bytes, &good, sizeof(good));
    assert_int_equal(parse_bytes(&good, sizeof(good), 8), R2_OK);
    assert_int_equal(parse_bytes(bytes, sizeof(good) - 1, 8), R2_ERR_WIRE);
    assert_int_equal(parse_bytes(bytes, sizeof(good) + 1, 8), R2_ERR_WIRE);
    assert_int_equal(parse_bytes(&good, sizeof(good), 1ull << 32), R2_ERR_WIRE);
#define REFUSED(change)                                                       \
    do {                                                                      \
        brief = good;                                                         \
        change;                                                               \
        assert_int_equal(parse_bytes(&brief, sizeof(brief), 8), R2_ERR_WIRE); \
    } while (0)
    REFUSED(brief.version = R2_WIRE_VERSION - 1);
    REFUSED(brief.version = R2_WIRE_VERSION + 1);
    REFUSED(brief.flags = R2_WIRE_DATA);
    REFUSED(brief.flags = R2_WIRE_FLAGS_ALL);
    REFUSED(brief.flags = R2_WIRE_SHORT | (R2_WIRE_FLAGS_ALL + 1));
#undef REFUSED
    header.kind = R2_WIRE_SHORT; /* of a long one */
    assert_int_equal(parse_bytes(&header, sizeof(header), 8), R2_ERR_WIRE);
}

/* Numbers around every wrap, as far from each other as they may be. */
static void message_numbers_by_their_low_bits(void **state)
{
    static const uint64_t nears[] = {0,          1,         UINT32_MAX, 1ull << 31, 1ull << 32,
                                     1ull << 63, UINT64_MAX, UINT64_MAX - UINT32_MAX};
    static const int64_t offs[] = {0, 1, -1, 1000, -1000, INT32_MAX, -(int64_t) R2_WIRE_NEAR};

    (void) state;
    for (size_t i = 0; i < r2_array_count(nears); ++i) {
        for (size_t k = 0; k < r2_array_count(offs); ++k) {
            const uint64_t number = nears[i] + (uint64_t) offs[k];

            assert_true(number == r2_wire_message((uint32_t) number, nears[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_layout),
        cmocka_unit_test(short_or_not),
        cmocka_unit_test(short_refused),
        cmocka_unit_test(message_numbers_by_their_low_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
