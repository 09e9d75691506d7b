/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What predictions of times are made from, besides the rates of rails. Plain value.
 */
#ifndef R2_COST_PARAMS_H
#define R2_COST_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/mem_kind.h"

#define R2_PPM 1000000u

/** Equal on all ranks: what one leader published. Zeros stand for the usual values
 * (plan/cost.h). */
typedef struct r2_cost_params {
    uint32_t alpha_ns; /* of one step, whatever its length */
    uint32_t rate_ppm; /* what rails give, in millionths of what the topology says of them */
    uint32_t reduce_mbytes_per_s[R2_MEM_RATED_COUNT]; /* of one rank */
    /* ranks wait for processors that others use, and calls of these kinds and lengths gain by plans
     * for that (R2_CROWDED_*); 0: not, or not known */
    uint32_t crowded;
} r2_cost_params_t;

/*
 * `crowded` has a byte for each kind of call, and in it a bit for each length: bit b for those of
 * up to 2^(R2_CROWDED_LEAST + b) bytes, and more than half of that; bit 0 for all shorter ones,
 * too, the last one for longer ones of up to 2^R2_CROWDED_MOST.
 */
#define R2_CROWDED_ALLREDUCE 0u /* where its byte is: shift */
#define R2_CROWDED_REDUCE    8u
#define R2_CROWDED_BCAST     16u
#define R2_CROWDED_ALLGATHER 24u /* allgatherv, too */
#define R2_CROWDED_LEAST     13u
#define R2_CROWDED_MOST      24u
#define R2_CROWDED_LENGTHS   8u
#define R2_CROWDED_ALL       UINT32_MAX

/** The bit of a length; R2_CROWDED_LENGTHS: it is longer than any. */
static inline uint32_t r2_cost_crowded_bit(uint64_t bytes)
{
    uint32_t bit = 0;

    if (bytes > UINT64_C(1) << R2_CROWDED_MOST) {
        return R2_CROWDED_LENGTHS;
    }
    while (bit < R2_CROWDED_LENGTHS - 1 && (UINT64_C(1) << (R2_CROWDED_LEAST + bit)) < bytes) {
        ++bit;
    }
    return bit;
}

/** Are calls of this kind (its shift) and length planned for crowded ranks? */
static inline bool r2_cost_is_crowded(const r2_cost_params_t *cost, uint32_t shift, uint64_t bytes)
{
    const uint32_t bit = r2_cost_crowded_bit(bytes);

    return bit < R2_CROWDED_LENGTHS && 0 != ((cost->crowded >> (shift + bit)) & 1);
}

/* Rails that give less than 1/x of what is told of them: plans take them for that fast. */
#define R2_COST_SLOW 32u

/** Do rails carry much less than they tell? The one thing that was measured and counts on even
 * rails, too: it decides between plans of the same bits only. False: not known, too. */
static inline bool r2_cost_is_slow(const r2_cost_params_t *cost)
{
    return 0 != cost->rate_ppm && cost->rate_ppm < R2_PPM / R2_COST_SLOW;
}

#endif
