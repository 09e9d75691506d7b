/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Wire format: the layout byte for byte, every reason to refuse a header, and the numbers that
 * wrap.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/pool.h"
#include "link/runs.h"
#include "link/wire.h"
#include "r2/prng.h"

static r2_wire_header_t data_header(void)
{
    return (r2_wire_header_t){.version = R2_WIRE_VERSION,
                              .kind = R2_WIRE_DATA,
                              .length = 1000,
                              .message_bytes = 5000,
                              .chunk_bytes = 1000,
                              .chunk = 4};
}

static r2_status_t parse_bytes(const void *bytes, size_t header_bytes, size_t data_bytes)
{
    uint8_t packet[sizeof(r2_wire_header_t) + 9] = {0};
    r2_wire_header_t out;
    bool is_short;

    memcpy(packet + 1, bytes, header_bytes); /* misaligned */
    return r2_wire_parse(packet + 1, header_bytes, data_bytes, &out, &is_short);
}

static r2_status_t parse(const r2_wire_header_t *header, size_t data_bytes)
{
    return parse_bytes(header, sizeof(*header), data_bytes);
}

/* Little endian, packed, every byte at its place for ever (of this version). */
static void layout(void **state)
{
    static const uint8_t bytes[] = {
        11,   4,    0x05, 0x09,                         /* version, kind, flags, hop */
        0x04, 0x03, 0x02, 0x01,                         /* lane_seq */
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* connection */
        0x24, 0x23, 0x22, 0x21, 0x28, 0x27, 0x26, 0x25, /* ack_next, ack_bits */
        0x34, 0x33, 0x32, 0x31, 0x38, 0x37, 0x36, 0x35, /* ack_held_us, consumed */
        0x44, 0x43, 0x42, 0x41, 0x03, 0x00, 0x00, 0x00, /* digest, length */
        0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, /* message */
        0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, /* tag: communicator */
        0x94, 0x93, 0x92, 0x91,                         /* tag: sequence */
        0x74, 0x73, 0x72, 0x71, 0x78, 0x77, 0x76, 0x75, /* tag: collective, row */
        0x13, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* message_bytes */
        0x08, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, /* chunk_bytes, chunk */
        0x84, 0x83, 0x82, 0x81, 0x02, 0x80, 0x07, 0x08, /* destination, unread, its time */
    };
    r2_wire_header_t header;
    bool is_short = true;

    (void) state;
    assert_int_equal(sizeof(bytes), sizeof(header));
    assert_int_equal(r2_wire_parse(bytes, sizeof(bytes), 3, &header, &is_short), R2_OK);
    assert_false(is_short);
    assert_int_equal(header.version, R2_WIRE_VERSION);
    assert_int_equal(header.kind, R2_WIRE_DATA);
    assert_int_equal(header.flags, R2_WIRE_ACK_NOW | R2_WIRE_HEDGE);
    assert_int_equal(header.lane_seq, 0x01020304);
    assert_true(0x1112131415161718ull == header.connection);
    assert_int_equal(header.ack_next, 0x21222324);
    assert_int_equal(header.ack_bits, 0x25262728);
    assert_int_equal(header.ack_held_us, 0x31323334);
    assert_int_equal(header.consumed, 0x35363738);
    assert_int_equal(header.digest, 0x41424344);
    assert_int_equal(header.length, 3);
    assert_true(0x5152535455565758ull == header.message);
    assert_true(0x6162636465666768ull == header.tag.comm_key);
    assert_true(0x91929394u == header.tag.sequence);
    assert_int_equal(header.tag.coll_seq, 0x71727374);
    assert_int_equal(header.tag.id, 0x75767778);
    assert_int_equal(header.message_bytes, 19);
    assert_int_equal(header.chunk_bytes, 8);
    assert_int_equal(header.chunk, 2);
    assert_true(0x81828384u == header.destination);
    assert_int_equal(header.hop, 9);
    assert_int_equal(header.unread, 0x8002);
    assert_int_equal(header.unread_at, 0x0807);
}

static void kinds_have_their_numbers(void **state)
{
    (void) state;
    assert_int_equal(R2_WIRE_HELLO, 1);
    assert_int_equal(R2_WIRE_HELLO_ACK, 2);
    assert_int_equal(R2_WIRE_ACK, 3);
    assert_int_equal(R2_WIRE_DATA, 4);
    assert_int_equal(R2_WIRE_CREDIT, 5);
    assert_int_equal(R2_WIRE_RTS, 6);
    assert_int_equal(R2_WIRE_LANE_DOWN, 7);
    assert_int_equal(R2_WIRE_PING, 8);
    assert_int_equal(R2_WIRE_ABORT, 9);
    assert_int_equal(R2_WIRE_NOTICE, 10);
    assert_int_equal(R2_WIRE_RELAY, 11);
    assert_int_equal(R2_WIRE_VOID, 14);
    assert_int_equal(R2_WIRE_GRANT, 15);
    assert_int_equal(R2_WIRE_LEAVE, 16);
    assert_int_equal(R2_WIRE_CLOSE, 17);
    assert_int_equal(R2_WIRE_CLOSED, 18);
    assert_false(r2_wire_sequenced(R2_WIRE_CLOSE));
    assert_false(r2_wire_sequenced(R2_WIRE_CLOSED));
    assert_false(r2_wire_sequenced(R2_WIRE_ACK));
    assert_true(r2_wire_sequenced(R2_WIRE_DATA));
    assert_true(r2_wire_sequenced(R2_WIRE_PING));
}

/* Each refused header differs in one thing from one that is taken. */
static void refused(void **state)
{
    const r2_wire_header_t good = data_header();
    r2_wire_header_t header = good;
    uint8_t packet[sizeof(header) + 8] = {0};

    (void) state;
    assert_int_equal(parse(&good, 1000), R2_OK);
    memcpy(packet, &good, sizeof(good));
    assert_int_equal(parse_bytes(packet, sizeof(good) - 1, 1000), R2_ERR_WIRE);
    assert_int_equal(parse_bytes(packet, sizeof(good) + 1, 1000), R2_ERR_WIRE);
    assert_int_equal(parse_bytes(packet, 0, 1000), R2_ERR_WIRE);
    assert_int_equal(parse(&good, 999), R2_ERR_WIRE);
    assert_int_equal(parse(&good, 1001), R2_ERR_WIRE);

#define REFUSED(change)                                               \
    do {                                                              \
        header = good;                                                \
        change;                                                       \
        assert_int_equal(parse(&header, header.length), R2_ERR_WIRE); \
    } while (0)
    REFUSED(header.version = 0);
    REFUSED(header.version = R2_WIRE_VERSION - 1);
    REFUSED(header.version = R2_WIRE_VERSION + 1);
    REFUSED(header.kind = 0);
    REFUSED(header.kind = R2_WIRE_KIND_END);
    REFUSED(header.kind = 255);
    REFUSED(header.flags = R2_WIRE_FLAGS_ALL + 1);
    REFUSED(header.flags = 0x80);
    REFUSED(header.chunk_bytes = 0);
    REFUSED(header.chunk = 5);
    REFUSED(header.chunk = UINT32_MAX);
    REFUSED(header.length = 999);
    REFUSED(header.length = 1001);
    REFUSED(header.message_bytes = 4999); /* the last chunk is shorter then */
    REFUSED(header.message_bytes = 4000); /* there is no such chunk then */
    REFUSED(header.message_bytes = R2_WIRE_MESSAGE_MAX + 1; header.chunk_bytes = 1u << 31;
            header.chunk = 0; header.length = 1u << 31);
    REFUSED(header.message_bytes = UINT64_MAX);
    REFUSED(header.message_bytes = (uint64_t) R2_WIRE_CHUNKS_MAX * 1000 + 1; header.chunk = 0);
    REFUSED(header.kind = R2_WIRE_RTS); /* carries nothing */
    REFUSED(header.kind = R2_WIRE_PING);
    REFUSED(header.kind = R2_WIRE_LEAVE);
    REFUSED(header.kind = R2_WIRE_ACK);
    REFUSED(header.kind = R2_WIRE_HELLO);
    REFUSED(header.kind = R2_WIRE_HELLO_ACK);
    REFUSED(header.kind = R2_WIRE_CREDIT; header.length = 0);
    REFUSED(header.kind = R2_WIRE_CREDIT; header.length = 31);
    REFUSED(header.kind = R2_WIRE_CREDIT; header.length = 33);
    REFUSED(header.kind = R2_WIRE_CREDIT; header.length = 17 * 32);
    REFUSED(header.kind = R2_WIRE_RELAY; header.length = 15);
    REFUSED(header.kind = R2_WIRE_RELAY; header.length = 16; header.hop = 2);
    REFUSED(header.kind = R2_WIRE_NOTICE; header.length = 0);
    REFUSED(header.kind = R2_WIRE_NOTICE; header.length = R2_NOTICE_BYTES_MAX + 1);
#undef REFUSED
}

/* Data that were put travel without their data; other kinds have neither. */
static void placed_data(void **state)
{
    r2_wire_header_t header = data_header();
    r2_wire_short_t brief;

    (void) state;
    header.flags = R2_WIRE_PLACED;
    assert_int_equal(parse(&header, 0), R2_OK);
    assert_int_equal(parse(&header, 1000), R2_ERR_WIRE);
    header.length = 0;
    assert_int_equal(parse(&header, 0), R2_ERR_WIRE);
    header = data_header();
    header.flags = R2_WIRE_UNSURE;
    assert_int_equal(parse(&header, 1000), R2_OK);
    assert_int_equal(parse(&header, 0), R2_ERR_WIRE);
    for (uint8_t flag = R2_WIRE_PLACED; flag <= R2_WIRE_UNSURE; flag <<= 1) {
        header = (r2_wire_header_t){
            .version = R2_WIRE_VERSION, .kind = R2_WIRE_PING, .flags = flag};
        assert_int_equal(parse(&header, 0), R2_ERR_WIRE);
        header = (r2_wire_header_t){.version = R2_WIRE_VERSION,
                                    .kind = R2_WIRE_DATA,
                                    .length = 8,
                                    .message_bytes = 8,
                                    .chunk_bytes = 8};
        assert_true(r2_wire_shorten(&header, &brief));
        brief.flags |= flag;
        assert_int_equal(parse_bytes(&brief, sizeof(brief), 8), R2_ERR_WIRE);
        header.flags = flag;
        assert_false(r2_wire_shorten(&header, &brief));
    }
}

/* A grant has one key at least, whole ones, and no more than there may be lanes. */
static void grants(void **state)
{
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_GRANT};

    (void) state;
    for (uint32_t length = 0; length <= sizeof(r2_wire_grant_t) + 24; ++length) {
        const bool fits = length >= 56 + 24 && 0 == (length - 56) % 24 && length <= 56 + 16 * 24;

        header.length = length;
        assert_int_equal(parse(&header, length), fits ? R2_OK : R2_ERR_WIRE);
    }
}

/* Kinds whose payload is one record. */
static void other_lengths_are_refused(void **state)
{
    static const struct {
        r2_wire_kind_t kind;
        uint32_t bytes;
    } fixed[] = {{R2_WIRE_LANE_DOWN, 16}, {R2_WIRE_VOID, 8}, {R2_WIRE_ABORT, 16}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(fixed); ++i) {
        for (uint32_t length = 0; length <= fixed[i].bytes + 1; ++length) {
            const r2_wire_header_t header = {
                .version = R2_WIRE_VERSION, .kind = (uint8_t) fixed[i].kind, .length = length};

            assert_int_equal(parse(&header, length),
                             length == fixed[i].bytes ? R2_OK : R2_ERR_WIRE);
        }
    }
}

/* Chunks grow where there would be too many, at the bound and beyond, and every message has a
 * parsable last one. */
static void chunks_of_long_messages(void **state)
{
    static const uint32_t most[] = {8192, 131072, 1048576};
    static const uint64_t bytes[] = {0,
                                     1,
                                     8192ull << 20,
                                     (8192ull << 20) + 1,
                                     (131072ull << 20) + 7,
                                     R2_WIRE_MESSAGE_MAX - 1,
                                     R2_WIRE_MESSAGE_MAX};

    (void) state;
    assert_int_equal(r2_wire_chunk_bytes(0, 8192, 131072), 1);
    assert_int_equal(r2_wire_chunk_bytes(1000, 8192, 131072), 1000);
    assert_int_equal(r2_wire_chunk_bytes(8192, 8192, 131072), 8192);
    assert_int_equal(r2_wire_chunk_bytes(8193, 8192, 131072), 8192);
    assert_int_equal(r2_wire_chunk_bytes((8192ull << 20) - 1, 8192, 131072), 8192);
    assert_int_equal(r2_wire_chunk_bytes(8192ull << 20, 8192, 131072), 16384);
    assert_int_equal(r2_wire_chunk_bytes(8192ull << 20, 6000, 131072), 12000);
    for (size_t i = 0; i < r2_array_count(most); ++i) {
        for (size_t k = 0; k < r2_array_count(bytes); ++k) {
            for (uint32_t chunk = 1024; chunk <= most[i]; chunk += chunk / 2 + 1) {
                uint32_t length = r2_wire_chunk_bytes(bytes[k], chunk, most[i]);
                r2_wire_header_t header = data_header();
                uint64_t chunks = r2_wire_chunks(bytes[k], length);

                assert_true(bytes[k] <= chunk
                                ? length == r2_wire_chunk_only((uint32_t) bytes[k])
                                : length >= chunk && length <= most[i] && 0 == length % chunk);
                if (2 * (uint64_t) length > most[i] || chunks <= R2_WIRE_CHUNKS_MANY) {
                    header.message_bytes = bytes[k];
                    header.chunk_bytes = length;
                    header.chunk = (uint32_t) chunks - 1;
                    header.length = (uint32_t) (bytes[k] - (chunks - 1) * length);
                    assert_int_equal(parse(&header, header.length), R2_OK);
                }
            }
        }
    }
}

static void taken(void **state)
{
    r2_wire_header_t header = data_header();

    (void) state;
    header.message_bytes = 4001; /* last chunk of one byte */
    header.length = 1;
    assert_int_equal(parse(&header, 1), R2_OK);
    header = (r2_wire_header_t){
        .version = R2_WIRE_VERSION, .kind = R2_WIRE_DATA, .chunk_bytes = 1};
    assert_int_equal(parse(&header, 0), R2_OK); /* a message of 0 bytes is one chunk */
    header = (r2_wire_header_t){
        .version = R2_WIRE_VERSION, .kind = R2_WIRE_CREDIT, .length = 16 * 32};
    assert_int_equal(parse(&header, 16 * 32), R2_OK);
    header = (r2_wire_header_t){
        .version = R2_WIRE_VERSION, .kind = R2_WIRE_LANE_DOWN, .length = 16};
    assert_int_equal(parse(&header, 16), R2_OK);
    header = data_header();
    header.message_bytes = (uint64_t) R2_WIRE_CHUNKS_MAX * 1000;
    header.chunk = R2_WIRE_CHUNKS_MAX - 1;
    assert_int_equal(parse(&header, 1000), R2_OK);
    header = data_header();
    header.kind = R2_WIRE_RTS;
    header.length = 0;
    assert_int_equal(parse(&header, 0), R2_OK);
}

static void chunks(void **state)
{
    (void) state;
    assert_int_equal(r2_wire_chunks(0, 100), 1);
    assert_int_equal(r2_wire_chunks(1, 100), 1);
    assert_int_equal(r2_wire_chunks(100, 100), 1);
    assert_int_equal(r2_wire_chunks(101, 100), 2);
    assert_int_equal(r2_wire_chunks(R2_WIRE_MESSAGE_MAX, UINT32_MAX), 257);
}

static void order_wraps(void **state)
{
    (void) state;
    assert_true(r2_seq_lt(1, 2));
    assert_false(r2_seq_lt(2, 2));
    assert_false(r2_seq_lt(3, 2));
    assert_true(r2_seq_lt(UINT32_MAX, 0));
    assert_true(r2_seq_lt(UINT32_MAX - 5, 5));
    assert_false(r2_seq_lt(5, UINT32_MAX - 5));
    assert_true(r2_seq_lt(0, INT32_MAX));
    assert_true(r2_seq64_lt(UINT64_MAX, 0));
    assert_true(r2_seq64_lt(UINT64_MAX - 5, 5));
    assert_false(r2_seq64_lt(5, UINT64_MAX - 5));
    assert_true(r2_seq64_lt(0, INT64_MAX));
    assert_int_equal(r2_round_up(0, 64), 0);
    assert_int_equal(r2_round_up(1, 64), 64);
    assert_int_equal(r2_round_up(64, 64), 64);
}

/* Numbers in random order, over the wrap, against a table of all of them. */
static void runs_against_a_table(void **state)
{
    enum { NUMBERS = 400 };
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 3);
    for (int round = 0; round < 50; ++round) {
        const uint64_t start = UINT64_MAX - r2_prng_below(&prng, NUMBERS);
        uint64_t watermark = start;
        bool held[NUMBERS + 1] = {false};
        r2_runs_t runs = {0};
        uint32_t taken_count = 0;

        while (taken_count < NUMBERS) {
            uint64_t number = start + r2_prng_below(&prng, NUMBERS);

            if (held[number - start]) {
                continue;
            }
            held[number - start] = true;
            ++taken_count;
            assert_int_equal(r2_runs_reserve(&runs, 1), R2_OK);
            if (number != watermark) {
                r2_runs_add(&runs, watermark, number);
            } else {
                do {
                    ++watermark;
                } while (r2_runs_take_first(&runs, watermark));
            }
            for (uint64_t i = watermark - start; i < NUMBERS; ++i) {
                assert_int_equal(r2_runs_has(&runs, watermark, start + i), held[i]);
            }
        }
        assert_true(watermark == start + NUMBERS);
        assert_int_equal(runs.count, 0);
        r2_runs_fini(&runs);
    }
}

/* Memory follows the gaps. */
static void runs_merge(void **state)
{
    r2_runs_t runs = {0};

    (void) state;
    assert_int_equal(r2_runs_reserve(&runs, 2), R2_OK);
    for (uint64_t i = 1; i < 100000; ++i) {
        r2_runs_add(&runs, 0, i);
    }
    assert_int_equal(runs.count, 1);
    r2_runs_add(&runs, 0, 100001);
    assert_int_equal(runs.count, 2);
    r2_runs_add(&runs, 0, 100000);
    assert_int_equal(runs.count, 1);
    assert_true(100001 == runs.list[0].last);
    assert_false(r2_runs_take_first(&runs, 2));
    assert_true(r2_runs_take_first(&runs, 1));
    assert_false(r2_runs_has(&runs, 2, 100002));
    r2_runs_fini(&runs);
}

static void pool_reuses_and_keeps_a_bound(void **state)
{
    enum { OBJECTS = R2_POOL_KEEP + 100 };
    void **objects = malloc(OBJECTS * sizeof(*objects)), *first;
    r2_pool_t pool;

    (void) state;
    assert_non_null(objects);
    r2_pool_init(&pool, 48);
    first = r2_pool_get(&pool);
    r2_pool_put(&pool, first);
    if (R2_POOL_KEEP > 0) {
        assert_ptr_equal(r2_pool_get(&pool), first);
        r2_pool_put(&pool, first);
    }
    for (int i = 0; i < OBJECTS; ++i) {
        objects[i] = r2_pool_get(&pool);
        assert_non_null(objects[i]);
        memset(objects[i], i, 48);
    }
    assert_int_equal(pool.free_count, 0);
    for (int i = 0; i < OBJECTS; ++i) {
        r2_pool_put(&pool, objects[i]);
    }
    assert_int_equal(pool.free_count, R2_POOL_KEEP);
    r2_pool_fini(&pool);
    assert_int_equal(pool.free_count, 0);
    free(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(kinds_have_their_numbers),
        cmocka_unit_test(refused),
        cmocka_unit_test(placed_data),
        cmocka_unit_test(grants),
        cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(taken),
        cmocka_unit_test(chunks_of_long_messages),
        cmocka_unit_test(chunks),
        cmocka_unit_test(order_wraps),
        cmocka_unit_test(runs_against_a_table),
        cmocka_unit_test(runs_merge),
        cmocka_unit_test(pool_reuses_and_keeps_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
