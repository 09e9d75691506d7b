/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Makes and checks the data of the benchmarks, a block of elements at a time.
 */
#include "r2_config.h"

#include "data.h"

#include <string.h>

enum { BLOCK = 1024 }; /* elements worked on at a time: stays in the first cache */

/* Where the elements of a block get their values from. */
typedef struct source {
    const r2_bench_data_t *data;
    uint64_t turn;
    int from_rank; /* the first whose elements are added up */
    int to_rank;   /* the one after the last */
    bool rounding; /* which kind of data; then there is one rank */
} source_t;

typedef union block {
    char as_char[BLOCK];
    int as_int[BLOCK];
    float as_float[BLOCK];
    double as_double[BLOCK];
} block_t;

/* Bit mixer with full avalanche. */
static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

static uint32_t turn_salt(uint64_t turn)
{
    return mix((uint32_t) turn * 0x85ebca6bU + (uint32_t) (turn >> 32) + 1);
}

bool r2_bench_data_init(r2_bench_data_t *data, r2_bench_type_t type, int ranks)
{
    const uint64_t half = (uint64_t) 1 << 23; /* of the sum, for each of the two terms */
    uint64_t n = (uint64_t) ranks;
    uint64_t pairs = n * (n - 1) / 2;

    data->type = type;
    data->ranks = ranks;
    data->mask_a = 0xffff;
    while (data->mask_a > 0 && n * data->mask_a >= half) {
        data->mask_a >>= 1;
    }
    data->mask_b = 0xff;
    while (data->mask_b > 0 && pairs * data->mask_b >= half) {
        data->mask_b >>= 1;
    }
    return data->mask_b > 0;
}

/* Exact data of one rank, or the sum over some ranks. */
static void exact_values(const source_t *source, size_t first, size_t count, int32_t *values)
{
    const r2_bench_data_t *data = source->data;
    uint32_t times_a = (uint32_t) (source->to_rank - source->from_rank);
    uint32_t times_b = times_a * (uint32_t) (source->from_rank + source->to_rank - 1) / 2;
    uint32_t salt = turn_salt(source->turn);

    for (size_t i = 0; i < count; ++i) {
        uint32_t h = mix((uint32_t) (first + i) * 0x9e3779b1U ^ salt);
        uint32_t a = h & data->mask_a;
        uint32_t b = ((h >> 16) & data->mask_b) | 1;

        values[i] = (int32_t) (times_a * a + times_b * b);
    }
}

/* Raw hashes for rounding data. */
static void rounding_values(const source_t *source, size_t first, size_t count, int32_t *values)
{
    uint32_t salt = mix(turn_salt(source->turn) + (uint32_t) source->from_rank * 0xc2b2ae35U);

    for (size_t i = 0; i < count; ++i) {
        values[i] = (int32_t) mix((uint32_t) (first + i) * 0x9e3779b1U ^ salt);
    }
}

/* Exact values become elements as they are. */
static void convert_exact(r2_bench_type_t type, const int32_t *values, size_t count, block_t *block)
{
    switch (type) {
    case R2_BENCH_CHAR:
        for (size_t i = 0; i < count; ++i) {
            block->as_char[i] = (char) (values[i] & 0x7f);
        }
        break;
    case R2_BENCH_INT:
        memcpy(block->as_int, values, count * sizeof(int));
        break;
    case R2_BENCH_FLOAT:
        for (size_t i = 0; i < count; ++i) {
            block->as_float[i] = (float) values[i];
        }
        break;
    case R2_BENCH_DOUBLE:
        for (size_t i = 0; i < count; ++i) {
            block->as_double[i] = values[i];
        }
        break;
    }
}

/* Hashes become signed mantissas times 2^-k (float) or 2^-4k (double), k in 0..15. */
static void convert_rounding(r2_bench_type_t type, const int32_t *values, size_t count,
                             block_t *block)
{
    float scale_float[16];
    double scale_double[16];

    for (int k = 0; k < 16; ++k) {
        scale_float[k] = 1.0F / (float) (1 << k);
        scale_double[k] = 1.0 / (double) ((uint64_t) 1 << (4 * k));
    }
    switch (type) {
    case R2_BENCH_CHAR:
        for (size_t i = 0; i < count; ++i) {
            block->as_char[i] = (char) (values[i] & 0x7f);
        }
        break;
    case R2_BENCH_INT:
        for (size_t i = 0; i < count; ++i) {
            block->as_int[i] = values[i] & 0xffff;
        }
        break;
    case R2_BENCH_FLOAT:
        for (size_t i = 0; i < count; ++i) {
            uint32_t h = (uint32_t) values[i];
            block->as_float[i] =
                (float) ((int32_t) (h & 0xffffff) - 0x800000) * scale_float[h >> 28];
        }
        break;
    case R2_BENCH_DOUBLE:
        for (size_t i = 0; i < count; ++i) {
            uint32_t h = (uint32_t) values[i];
            block->as_double[i] = (double) values[i] * scale_double[h & 15];
        }
        break;
    }
}

/* At most BLOCK elements, from element `first` on. */
static void make_block(const source_t *source, size_t first, size_t count, block_t *block)
{
    int32_t values[BLOCK];

    if (source->rounding) {
        rounding_values(source, first, count, values);
        convert_rounding(source->data->type, values, count, block);
    } else {
        exact_values(source, first, count, values);
        convert_exact(source->data->type, values, count, block);
    }
}

static size_t block_count(size_t done, size_t count)
{
    return count - done < BLOCK ? count - done : BLOCK;
}

/* Element i of a block as a number to print. */
static double element(r2_bench_type_t type, const block_t *block, size_t i)
{
    switch (type) {
    case R2_BENCH_CHAR:
        return block->as_char[i];
    case R2_BENCH_INT:
        return block->as_int[i];
    case R2_BENCH_FLOAT:
        return (double) block->as_float[i];
    case R2_BENCH_DOUBLE:
        return block->as_double[i];
    }
    return 0;
}

/* The first place where two unequal blocks differ. */
static void find_wrong(r2_bench_type_t type, const block_t *got, const block_t *expected,
                       size_t done, r2_bench_wrong_t *wrong_p)
{
    size_t unit = r2_bench_type_bytes(type);
    const char *a = got->as_char;
    const char *b = expected->as_char;
    size_t i = 0;

    while (0 == memcmp(a + i * unit, b + i * unit, unit)) {
        ++i;
    }
    wrong_p->element = done + i;
    wrong_p->got = element(type, got, i);
    wrong_p->expected = element(type, expected, i);
}

bool r2_bench_data_check(const r2_bench_data_t *data, const void *buffer,
                         const r2_bench_piece_t *piece, uint64_t turn, bool rounding,
                         r2_bench_wrong_t *wrong_p)
{
    const source_t source = {.data = data,
                             .turn = turn,
                             .from_rank = piece->from_rank,
                             .to_rank = piece->to_rank,
                             .rounding = rounding};
    size_t unit = r2_bench_type_bytes(data->type);
    block_t expected;
    block_t got;

    for (size_t done = 0; done < piece->count; done += BLOCK) {
        size_t part = block_count(done, piece->count);
        const char *place = (const char *) buffer + done * unit;

        make_block(&source, piece->first + done, part, &expected);
        if (0 != memcmp(place, &expected, part * unit)) {
            memcpy(&got, place, part * unit);
            find_wrong(data->type, &got, &expected, done, wrong_p);
            return false;
        }
    }
    return true;
}

void r2_bench_data_fill(const r2_bench_data_t *data, void *buffer, size_t count, int rank,
                        uint64_t turn, bool rounding)
{
    const source_t source = {.data = data,
                             .turn = turn,
                             .from_rank = rank,
                             .to_rank = rank + 1,
                             .rounding = rounding};
    size_t unit = r2_bench_type_bytes(data->type);
    block_t block;

    for (size_t done = 0; done < count; done += BLOCK) {
        size_t part = block_count(done, count);

        make_block(&source, done, part, &block);
        memcpy((char *) buffer + done * unit, &block, part * unit);
    }
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static uint64_t step(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * 0xc2b2ae3d27d4eb4fULL, 31) * 0x9e3779b185ebca87ULL;
}

uint64_t r2_bench_data_hash(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *place = bytes;
    uint64_t lanes[4] = {hash + 1, hash + 2, hash + 3, hash + 4};
    uint64_t words[4];
    size_t left = length;

    for (; left >= sizeof(words); left -= sizeof(words), place += sizeof(words)) {
        memcpy(words, place, sizeof(words));
        for (unsigned i = 0; i < 4; ++i) {
            lanes[i] = step(lanes[i], words[i]);
        }
    }
    memset(words, 0, sizeof(words));
    memcpy(words, place, left);
    for (unsigned i = 0; i < 4; ++i) {
        hash = step(hash ^ lanes[i], words[i] + length);
    }
    return hash ^ (hash >> 29);
}
