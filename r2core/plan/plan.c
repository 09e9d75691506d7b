/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Chooses an algorithm from values that are equal on all ranks, and has it built.
 */
#include "r2_config.h"

#include "r2/planner.h"

#include "base/util.h"
#include "plan/algorithm.h"
#include "plan/forecast.h"
#include "plan/kinds.h"
#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

/*
 * Unit of striping: rails end together up to a chunk, which costs time in proportion to its length,
 * and every chunk costs the same whatever its length: the sum is least at a length that grows as
 * the root of the bytes. Measured on 4 and 8 rails: 32 KiB for 64 MiB.
 */
#define R2_CHUNK_ROOT 16u /* square of the length, over the bytes */

/**
 * The one that needs least time by prediction, unless `usual` is about as good. What `direct` and
 * `weighted` have in common is not counted, so neither latency nor pace, of which first calls know
 * nothing, decide between them.
 */
static const r2_algorithm_t *fastest(const r2_plan_input_t *input, const r2_algorithm_t *usual)
{
    const r2_forecast_t *forecast = NULL == input->estimate ? NULL : &input->estimate->forecast;
    const r2_algorithm_t *best = usual;
    const r2_prediction_t *at;
    r2_forecast_t made;
    uint64_t best_ns;

    if (NULL == forecast) {
        if (NULL == input->topology || r2_topology_is_even(input->topology) ||
            R2_OK != r2_forecast_class(input, &made)) {
            return usual;
        }
        forecast = &made;
    }
    at = r2_forecast_of(forecast, usual);
    best_ns = at->ns - (at->ns - at->steps_ns) / r2_threshold_gain_part;
    for (at = forecast->of; at < forecast->of + forecast->count; ++at) {
        const uint32_t place = at->algorithm->weighed;

        if (0 != place &&
            (at->ns < best_ns || (at->ns == best_ns && best != usual && place < best->weighed)) &&
            r2_algorithm_can_run(at->algorithm, input, false)) {
            best = at->algorithm;
            best_ns = at->ns;
        }
    }
    return best;
}

/** The first that pays for a length, or the last. */
static const r2_algorithm_t *by_length(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_algorithm_t *const *at = r2_algorithms_of(input->kind);

    while (NULL != at[1] && !(NULL != at[0]->pays && at[0]->pays(input, total_bytes) &&
                              r2_algorithm_can_run(at[0], input, false))) {
        ++at;
    }
    return *at;
}

static const r2_algorithm_t *choose_any(const r2_plan_input_t *input)
{
    const uint64_t total_bytes = r2_input_total_bytes(input);
    const r2_algorithm_t *usual = by_length(input, total_bytes);

    for (const r2_algorithm_t *const *at = r2_algorithms_of(input->kind); NULL != *at; ++at) {
        if (NULL != (*at)->beats && (*at)->beats(input, total_bytes, usual) &&
            r2_algorithm_can_run(*at, input, false)) {
            return *at;
        }
    }
    return 0 == usual->weighed ? usual : fastest(input, usual);
}

static bool r2_by_edges(const r2_plan_input_t *input)
{
    return R2_SPAN_EDGES == r2_kind(input->kind)->span;
}

/* One rank: the result is the input, but for exscan, which has none. */
static r2_status_t r2_build_copy(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t displ = NULL == input->displs ? 0 : input->displs[0];
    const uint64_t place = R2_COLL_ALLGATHERV == input->kind ? displ * input->element_bytes : 0;
    const uint64_t bytes = r2_input_total_bytes(input);

    if (!input->in_place && R2_COLL_BCAST != input->kind && R2_COLL_EXSCAN != input->kind) {
        r2_add_copy(schedule, r2_at(R2_BUF_IN, 0), r2_at(R2_BUF_OUT, place), bytes, R2_AT_ONCE);
    }
    return R2_OK;
}

static const r2_algorithm_t algorithm_copy = {.name = "copy", .build = r2_build_copy};

/** @param name_p under which it goes into the log. @return NULL: no such name. */
static const r2_algorithm_t *choose(const r2_plan_input_t *input, const char **name_p)
{
    const bool named = NULL != input->algorithm && '\0' != input->algorithm[0];
    const r2_algorithm_t *algorithm =
        named ? r2_algorithm_find(input->kind, input->algorithm) : NULL;

    *name_p = NULL;
    if (named && NULL == algorithm) {
        return NULL;
    }
    if (1 == input->size && !r2_by_edges(input)) {
        algorithm = &algorithm_copy;
    } else if (!named) {
        algorithm = choose_any(input);
    } else if (!r2_algorithm_can_run(algorithm, input, true)) {
        algorithm = r2_algorithm_last(input->kind);
        *name_p = algorithm->instead;
        return algorithm;
    }
    *name_p = algorithm->name;
    return algorithm;
}

const char *r2_plan_choose(const r2_plan_input_t *input)
{
    const char *name;

    choose(input, &name);
    return name;
}

/** Elements matter. Where nothing is reduced, ranks may describe the same bytes differently. */
static bool r2_reduces(const r2_plan_input_t *input)
{
    return r2_kind(input->kind)->reduces;
}

/** Folds what decides the plan and is equal on all ranks: not displacements, nor in_place. */
static void r2_digest_input(const r2_plan_input_t *input, const r2_algorithm_t *algorithm,
                            r2_schedule_t *schedule)
{
    const uint64_t unit_bytes = r2_reduces(input) ? 1 : input->element_bytes;
    uint32_t digest = schedule->digest;

    digest = r2_digest_fold(digest, (uint64_t) input->kind);
    digest = r2_digest_fold(digest, (uint64_t) input->size);
    digest = r2_digest_fold(digest, r2_reduces(input) ? input->element_bytes : 1);
    digest = r2_digest_fold(digest, input->count * unit_bytes);
    digest = r2_digest_fold(digest, input->meaning);
    digest = r2_digest_fold(digest, input->blocking ? 1 : 0);
    digest = r2_digest_fold(digest, r2_kind(input->kind)->rooted ? (uint64_t) input->root : 0);
    for (const char *c = algorithm->name; '\0' != *c; ++c) {
        digest = r2_digest_fold(digest, (uint64_t) (unsigned char) *c);
    }
    for (int32_t r = 0; NULL != input->counts && r < input->size; ++r) {
        digest = r2_digest_fold(digest, input->counts[r] * unit_bytes);
    }
    schedule->digest = digest;
}

/** Integer square root, rounded down. Bits from the top. */
static uint64_t r2_root(uint64_t square)
{
    uint64_t result = 0;

    for (uint64_t bit = (uint64_t) 1 << 31; bit > 0; bit >>= 1) {
        if ((result + bit) * (result + bit) <= square) {
            result += bit;
        }
    }
    return result;
}

/* Of whole elements, and of whole vectors of them where these are powers of two: what arrives may
 * then be reduced chunk by chunk (R2_REDUCE_GRAIN_BYTES). */
static uint64_t r2_chunk_bytes(const r2_plan_input_t *input, uint64_t total_bytes)
{
    uint64_t unit = input->element_bytes;
    uint64_t chunk = r2_clamp_u64(r2_root(total_bytes * R2_CHUNK_ROOT), input->chunk_min_bytes,
                                  input->chunk_max_bytes);

    if (unit > 0 && 0 == R2_REDUCE_GRAIN_BYTES % unit && chunk >= R2_REDUCE_GRAIN_BYTES) {
        unit = R2_REDUCE_GRAIN_BYTES;
    }
    if (r2_reduces(input) && chunk > unit && unit > 0) {
        chunk -= chunk % unit;
    }
    return r2_max(chunk, 1u);
}

static bool r2_input_valid(const r2_plan_input_t *input)
{
    return input->kind >= 0 && input->kind < R2_COLL_KIND_COUNT && input->size > 0 &&
           input->rank >= 0 && input->rank < input->size &&
           (!r2_kind(input->kind)->rooted || (input->root >= 0 && input->root < input->size)) &&
           (R2_SPAN_COUNTS == r2_kind(input->kind)->span) == (NULL != input->counts) &&
           (NULL == input->topology || input->topology->rank_count == input->size);
}

r2_status_t r2_plan_build(const r2_plan_input_t *input, r2_schedule_t *schedule_p)
{
    const r2_algorithm_t *algorithm;
    uint64_t total_bytes;
    r2_status_t status = R2_OK;

    r2_schedule_init(schedule_p);
    if (!r2_input_valid(input)) {
        return R2_ERR_PARAM;
    }
    algorithm = choose(input, &schedule_p->algorithm);
    if (NULL == algorithm) {
        return R2_ERR_PARAM;
    }
    total_bytes = r2_input_total_bytes(input);
    schedule_p->chunk_bytes = r2_chunk_bytes(input, total_bytes);
    schedule_p->call_bytes = total_bytes;
    schedule_p->crowded = input->cost.crowded;
    r2_digest_input(input, algorithm, schedule_p);
    if (total_bytes > 0 || R2_COLL_BARRIER == input->kind || r2_by_edges(input)) {
        status = algorithm->build(input, schedule_p);
    }
    schedule_p->digest = schedule_p->digest << R2_DIGEST_KIND_BITS | (uint32_t) input->kind;
    return R2_OK != status ? status : schedule_p->status;
}
