/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the benchmarks send, and what has to come out.
 */
#ifndef R2_BENCH_DATA_H
#define R2_BENCH_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kinds.h"
#include "options.h"

/*
 * Two kinds of data.
 *
 * Exact: element e of rank r in iteration t is A + r * B with whole numbers A and B >= 1 hashed
 * from (e, t). So each element tells its rank, place and iteration, the sum over n ranks is n * A +
 * B * n * (n - 1) / 2, and A and B are so small that all sums stay below 2^24: floats are exact in
 * every order of addition. Sums over some of the ranks (scan) are known and exact likewise.
 *
 * Rounding (for digests): random mantissas and exponents. Sums depend on the order of the
 * additions, so two runs have the same digest only if they added in the same order.
 */

/** Where data come from. */
typedef struct r2_bench_data {
    r2_bench_type_t type;
    int ranks;
    uint32_t mask_a; /* A <= mask_a, a power of two less one */
    uint32_t mask_b; /* 1 <= B <= mask_b */
} r2_bench_data_t;

/** A place where a buffer is not what it should be. */
typedef struct r2_bench_wrong {
    size_t element; /* index in the buffer */
    double got;
    double expected;
} r2_bench_wrong_t;

/**
 * Chooses the ranges of A and B.
 * @return false if @p ranks is too large for exact sums (above 4096).
 */
bool r2_bench_data_init(r2_bench_data_t *data, r2_bench_type_t type, int ranks);

/** Writes the @p count elements that @p rank sends in iteration @p turn. */
void r2_bench_data_fill(const r2_bench_data_t *data, void *buffer, size_t count, int rank,
                        uint64_t turn, bool rounding);

/**
 * Compares a piece of a result with what it should be: elements of one rank as fill() writes them,
 * or the exact sums over several ranks (not of rounding data).
 * @return true if equal, else *wrong_p is set; its element counts from the start of the piece.
 */
bool r2_bench_data_check(const r2_bench_data_t *data, const void *buffer,
                         const r2_bench_piece_t *piece, uint64_t turn, bool rounding,
                         r2_bench_wrong_t *wrong_p);

/** Continues a 64-bit hash over some bytes. Not cryptographic. */
uint64_t r2_bench_data_hash(uint64_t hash, const void *bytes, size_t length);

#endif
