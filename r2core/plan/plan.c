/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Chooses an algorithm from values that are equal on all ranks, and has it built.
 */
#include "r2_config.h"

#include "plan/plan.h"

#include <string.h>

#include "base/util.h"
#include "plan/family.h"
#include "plan/forecast.h"
#include "plan/kinds.h"
#include "plan/layout.h"
#include "plan/order.h"
#include "plan/rows.h"
#include "plan/thresholds.h"

/*
 * Unit of striping: rails end together up to a chunk, which costs time in proportion to its length, and
 * every chunk costs the same whatever its length: the sum is least at a length that grows as the root of
 * the bytes. Measured on 4 and 8 rails: 32 KiB for 64 MiB.
 */
#define R2_CHUNK_ROOT 16u /* square of the length, over the bytes */

enum {
    DOUBLING,
    EXCHANGE,
    ALLREDUCE_RING,
    ALLREDUCE_R2,
    RECURSIVE,
    HIERARCHICAL,
    WEIGHTED,
    ALLREDUCE_DIRECT,
    ALLREDUCE_COUNT
};
static const r2_algorithm_t allreduce_algorithms[ALLREDUCE_COUNT] = {
    [DOUBLING] = {.name = "recursive-doubling", .build = r2_build_allreduce_doubling},
    [EXCHANGE] = {.name = "exchange", .build = r2_build_allreduce_exchange},
    [ALLREDUCE_RING] = {.name = "ring", .build = r2_build_allreduce_ring},
    [ALLREDUCE_R2] = {.name = "r2", .build = r2_build_allreduce_r2},
    [RECURSIVE] = {.name = "recursive", .build = r2_build_allreduce_recursive},
    [HIERARCHICAL] = {.name = "hierarchical", .build = r2_build_allreduce_hierarchical},
    [WEIGHTED] = {.name = "weighted", .build = r2_build_allreduce_weighted},
    [ALLREDUCE_DIRECT] = {.name = "direct",
                          .build = r2_build_allreduce_direct,
                          .instead = "direct (the one asked for cannot run)"}};

enum { BRUCK, ALLGATHER_RING, ALLGATHER_DIRECT, ALLGATHER_COUNT };
static const r2_algorithm_t allgather_algorithms[ALLGATHER_COUNT] = {
    [BRUCK] = {.name = "bruck", .build = r2_build_allgather_bruck},
    [ALLGATHER_RING] = {.name = "ring", .build = r2_build_allgather_ring},
    [ALLGATHER_DIRECT] = {.name = "direct",
                          .build = r2_build_allgather_direct,
                          .instead = "direct (the one asked for cannot run)"}};

static const r2_algorithm_t reduce_scatter_algorithms[] = {
    {.name = "direct", .build = r2_build_reduce_scatter_direct}};

enum { BINOMIAL, SCATTER_ALLGATHER, BCAST_COUNT };
static const r2_algorithm_t bcast_algorithms[BCAST_COUNT] = {
    [BINOMIAL] = {.name = "binomial", .build = r2_build_bcast_binomial},
    [SCATTER_ALLGATHER] = {.name = "scatter-allgather", .build = r2_build_bcast_scatter}};

static const r2_algorithm_t barrier_algorithms[] = {
    {.name = "dissemination", .build = r2_build_barrier_dissemination}};

/* What long vectors may take, by predicted time. All but those of any order have the same tree. */
static const struct {
    size_t algorithm;
    r2_forecast_kind_t forecast;
    bool any_order;
} long_candidates[] = {{ALLREDUCE_DIRECT, R2_FORECAST_DIRECT, false},
                       {WEIGHTED, R2_FORECAST_WEIGHTED, false},
                       {ALLREDUCE_RING, R2_FORECAST_RING, true},
                       {RECURSIVE, R2_FORECAST_RECURSIVE, true}};

/* What folding is weighed against. */
static const r2_cost_rival_t few_rivals[] = {[DOUBLING] = R2_COST_DOUBLING,
                                             [EXCHANGE] = R2_COST_EXCHANGE};

static bool allreduce_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    if (algorithm == &allreduce_algorithms[DOUBLING]) {
        return r2_allreduce_doubling_scratch(input) <= input->scratch_bytes;
    }
    if (algorithm == &allreduce_algorithms[EXCHANGE]) {
        return r2_allreduce_exchange_scratch(input) <= input->scratch_bytes;
    }
    if (algorithm == &allreduce_algorithms[HIERARCHICAL]) {
        return NULL != input->topology &&
               r2_allreduce_hierarchical_scratch(input) <= input->scratch_bytes &&
               (input->commutative || r2_allreduce_hierarchical_ordered(input));
    }
    if (algorithm == &allreduce_algorithms[ALLREDUCE_R2]) {
        return NULL != input->topology && input->commutative &&
               input->topology->host_count == (uint32_t) input->size;
    }
    if (algorithm == &allreduce_algorithms[RECURSIVE]) {
        return input->commutative && r2_allreduce_recursive_scratch(input) <= input->scratch_bytes;
    }
    return algorithm != &allreduce_algorithms[ALLREDUCE_RING] || input->commutative;
}

/**
 * The one that needs least time by prediction, unless `usual` is about as good. What `direct` and `weighted` have in common
 * is not counted, so neither latency nor pace, of which first calls know nothing, decide between them.
 */
static const r2_algorithm_t *allreduce_fastest(const r2_plan_input_t *input,
                                               const r2_algorithm_t *usual, bool any_order)
{
    r2_forecast_t forecast;
    uint64_t best_ns;
    size_t best = (size_t) (usual - allreduce_algorithms);

    if (NULL != input->known) {
        forecast = input->known->forecast;
    } else if (NULL == input->topology || r2_topology_is_even(input->topology) ||
               R2_OK != r2_forecast_class(input, &forecast)) {
        return usual;
    }
    if (usual == &allreduce_algorithms[ALLREDUCE_RING]) {
        best_ns = forecast.ns[R2_FORECAST_RING];
        best_ns -= best_ns / r2_threshold_gain_part;
    } else {
        best_ns = forecast.ns[R2_FORECAST_DIRECT];
        best_ns -= (best_ns - forecast.steps_ns) / r2_threshold_gain_part;
    }
    for (size_t i = 0; i < r2_array_count(long_candidates); i++) {
        const uint64_t ns = forecast.ns[long_candidates[i].forecast];

        if (ns < best_ns && (any_order || !long_candidates[i].any_order) &&
            allreduce_permitted(input, &allreduce_algorithms[long_candidates[i].algorithm])) {
            best = long_candidates[i].algorithm;
            best_ns = ns;
        }
    }
    return &allreduce_algorithms[best];
}

/** First within hosts, then between them. Not where an exchange between all hosts is one too many. */
static bool folding_pays(const r2_plan_input_t *input, uint64_t total_bytes, bool ring,
                         r2_cost_rival_t rival)
{
    return NULL != input->topology &&
           !(ring && input->topology->host_count > r2_threshold_ring_ranks) &&
           r2_cost_folding_pays(input->topology, total_bytes, rival) &&
           allreduce_permitted(input, &allreduce_algorithms[HIERARCHICAL]);
}

static const r2_algorithm_t *allreduce_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const int at = r2_threshold_exchange_ranks == input->size ? EXCHANGE : DOUBLING;
    const r2_algorithm_t *in_few_steps = &allreduce_algorithms[at];
    const bool any_order = input->commutative && (input->exact || !input->reproducible);
    const bool ring = any_order && r2_ring_pays(input, total_bytes);
    const bool in_few = r2_is_short(input, total_bytes, r2_threshold_allreduce_short_bytes,
                                    r2_threshold_allreduce_short_bytes_per_rank) &&
                        allreduce_permitted(input, in_few_steps);

    if (folding_pays(input, total_bytes, ring, in_few ? few_rivals[at] : R2_COST_DIRECT)) {
        return &allreduce_algorithms[HIERARCHICAL];
    }
    if (in_few) {
        return in_few_steps;
    }
    return allreduce_fastest(input, &allreduce_algorithms[ring ? ALLREDUCE_RING : ALLREDUCE_DIRECT],
                             any_order);
}

static bool allgather_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    return algorithm != &allgather_algorithms[BRUCK] ||
           r2_input_total_count(input) * input->element_bytes <= input->scratch_bytes;
}

static const r2_algorithm_t *allgather_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_algorithm_t *bruck = &allgather_algorithms[BRUCK];

    if (input->size > r2_threshold_allgather_bruck_ranks &&
        r2_is_short(input, total_bytes, 0, r2_threshold_allgather_bruck_block_bytes) &&
        allgather_permitted(input, bruck)) {
        return bruck;
    }
    if (r2_ring_pays(input, total_bytes) ||
        (NULL != input->topology && r2_order_reaches_more(input->topology))) {
        return &allgather_algorithms[ALLGATHER_RING];
    }
    return &allgather_algorithms[ALLGATHER_DIRECT];
}

static const r2_algorithm_t *reduce_scatter_choose(const r2_plan_input_t *input,
                                                   uint64_t total_bytes)
{
    (void) input;
    (void) total_bytes;
    return &reduce_scatter_algorithms[0];
}

static const r2_algorithm_t *bcast_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    bool tree = input->size <= 2 || r2_is_short(input, total_bytes, r2_threshold_bcast_short_bytes,
                                                r2_threshold_bcast_short_bytes_per_rank);

    return &bcast_algorithms[tree ? BINOMIAL : SCATTER_ALLGATHER];
}

static const r2_algorithm_t *barrier_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    (void) input;
    (void) total_bytes;
    return &barrier_algorithms[0];
}

static bool by_edges(const r2_plan_input_t *input)
{
    return R2_SPAN_EDGES == r2_kind(input->kind)->span;
}

/* One rank: the result is the input, but for exscan, which has none. */
static r2_status_t build_copy(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t displ = NULL == input->displs ? 0 : input->displs[0];
    const uint64_t place = R2_COLL_ALLGATHERV == input->kind ? displ * input->element_bytes : 0;
    const uint64_t bytes = r2_input_total_count(input) * input->element_bytes;

    if (!input->in_place && R2_COLL_BCAST != input->kind && R2_COLL_EXSCAN != input->kind) {
        r2_add_copy(schedule, r2_at(R2_BUF_IN, 0), r2_at(R2_BUF_OUT, place), bytes, R2_AT_ONCE);
    }
    return R2_OK;
}

static const r2_algorithm_t algorithm_copy = {.name = "copy", .build = build_copy};

#define FAMILY(table) .algorithms = (table), .count = r2_array_count(table)
static const r2_family_t family_allreduce = {
    FAMILY(allreduce_algorithms),
    .names = "recursive-doubling, exchange, ring, r2, recursive, hierarchical, weighted, direct",
    .choose = allreduce_choose, .permitted = allreduce_permitted};
static const r2_family_t family_allgather = {
    FAMILY(allgather_algorithms), .names = "bruck, ring, direct", .choose = allgather_choose,
    .permitted = allgather_permitted};
static const r2_family_t family_reduce_scatter = {
    FAMILY(reduce_scatter_algorithms), .names = "direct", .choose = reduce_scatter_choose};
static const r2_family_t family_bcast = {
    FAMILY(bcast_algorithms), .names = "binomial, scatter-allgather", .choose = bcast_choose};
static const r2_family_t family_barrier = {FAMILY(barrier_algorithms), .names = "dissemination",
                                           .choose = barrier_choose};

static const r2_family_t *const families[R2_COLL_KIND_COUNT] = {
    [R2_COLL_ALLREDUCE] = &family_allreduce,
    [R2_COLL_ALLGATHER] = &family_allgather,
    [R2_COLL_ALLGATHERV] = &family_allgather,
    [R2_COLL_REDUCE_SCATTER] = &family_reduce_scatter,
    [R2_COLL_REDUCE_SCATTER_BLOCK] = &family_reduce_scatter,
    [R2_COLL_BCAST] = &family_bcast,
    [R2_COLL_BARRIER] = &family_barrier,
    [R2_COLL_REDUCE] = &r2_family_reduce,
    [R2_COLL_SCAN] = &r2_family_scan,
    [R2_COLL_EXSCAN] = &r2_family_scan,
    [R2_COLL_GATHER] = &r2_family_gather,
    [R2_COLL_GATHERV] = &r2_family_exchange,
    [R2_COLL_SCATTER] = &r2_family_scatter,
    [R2_COLL_SCATTERV] = &r2_family_exchange,
    [R2_COLL_ALLTOALL] = &r2_family_alltoall,
    [R2_COLL_ALLTOALLV] = &r2_family_exchange,
    [R2_COLL_ALLTOALLW] = &r2_family_exchange,
    [R2_COLL_NEIGHBOR] = &r2_family_exchange};

static const r2_family_t *family_of(r2_coll_kind_t kind)
{
    return families[kind];
}

/** What was chosen, and under which name it goes into the log. */
typedef struct r2_choice {
    const r2_algorithm_t *algorithm; /* NULL: unknown name */
    const char *name;
} r2_choice_t;

static const r2_algorithm_t *family_find(const r2_family_t *family, const char *name)
{
    for (size_t i = 0; i < family->count; i++) {
        if (0 == strcmp(family->algorithms[i].name, name)) {
            return &family->algorithms[i];
        }
    }
    return NULL;
}

static r2_choice_t choice_of(const r2_algorithm_t *algorithm)
{
    return (r2_choice_t){.algorithm = algorithm,
                         .name = NULL == algorithm ? NULL : algorithm->name};
}

static r2_choice_t choose(const r2_plan_input_t *input)
{
    const r2_family_t *family = family_of(input->kind);
    const bool named = NULL != input->algorithm && '\0' != input->algorithm[0];
    const r2_algorithm_t *algorithm = named ? family_find(family, input->algorithm) : NULL;

    if (named && NULL == algorithm) {
        return choice_of(NULL);
    }
    if (1 == input->size && !by_edges(input)) {
        return choice_of(&algorithm_copy);
    }
    if (!named) {
        return choice_of(family->choose(input, r2_input_total_count(input) * input->element_bytes));
    }
    if (NULL != family->permitted && !family->permitted(input, algorithm)) {
        algorithm = &family->algorithms[family->count - 1];
        return (r2_choice_t){.algorithm = algorithm, .name = algorithm->instead};
    }
    return choice_of(algorithm);
}

const char *r2_plan_choose(const r2_plan_input_t *input)
{
    return choose(input).name;
}

bool r2_plan_has(r2_coll_kind_t kind, const char *name)
{
    return NULL == name || '\0' == name[0] || NULL != family_find(family_of(kind), name);
}

const char *r2_plan_names(r2_coll_kind_t kind)
{
    return family_of(kind)->names;
}

/** Elements matter. Where nothing is reduced, ranks may describe the same bytes differently. */
static bool reduces(const r2_plan_input_t *input)
{
    return r2_kind(input->kind)->reduces;
}

/** Folds what decides the plan and is equal on all ranks: not displacements, nor in_place. */
static void digest_input(const r2_plan_input_t *input, const r2_algorithm_t *algorithm,
                         r2_schedule_t *schedule)
{
    const uint64_t unit_bytes = reduces(input) ? 1 : input->element_bytes;
    uint32_t digest = schedule->digest;

    digest = r2_digest_fold(digest, (uint64_t) input->kind);
    digest = r2_digest_fold(digest, (uint64_t) input->size);
    digest = r2_digest_fold(digest, reduces(input) ? input->element_bytes : 1);
    digest = r2_digest_fold(digest, input->count * unit_bytes);
    digest = r2_digest_fold(digest, input->meaning);
    digest = r2_digest_fold(digest, input->blocking ? 1 : 0);
    digest = r2_digest_fold(digest, r2_kind(input->kind)->rooted ? (uint64_t) input->root : 0);
    for (const char *c = algorithm->name; '\0' != *c; c++) {
        digest = r2_digest_fold(digest, (uint64_t) (unsigned char) *c);
    }
    for (int32_t r = 0; NULL != input->counts && r < input->size; r++) {
        digest = r2_digest_fold(digest, input->counts[r] * unit_bytes);
    }
    schedule->digest = digest;
}

/** Integer square root, rounded down. Bits from the top. */
static uint64_t root(uint64_t square)
{
    uint64_t result = 0;

    for (uint64_t bit = (uint64_t) 1 << 31; bit > 0; bit >>= 1) {
        if ((result + bit) * (result + bit) <= square) {
            result += bit;
        }
    }
    return result;
}

static uint64_t chunk_bytes(const r2_plan_input_t *input, uint64_t total_bytes)
{
    uint64_t chunk = r2_clamp_u64(root(total_bytes * R2_CHUNK_ROOT), input->chunk_min_bytes,
                                  input->chunk_max_bytes);

    if (reduces(input) && chunk > input->element_bytes && input->element_bytes > 0) {
        chunk -= chunk % input->element_bytes;
    }
    return r2_max(chunk, 1u);
}

static bool input_valid(const r2_plan_input_t *input)
{
    return input->kind >= 0 && input->kind < R2_COLL_KIND_COUNT && input->size > 0 &&
           input->rank >= 0 && input->rank < input->size &&
           (!r2_kind(input->kind)->rooted || (input->root >= 0 && input->root < input->size)) &&
           (R2_SPAN_COUNTS == r2_kind(input->kind)->span) == (NULL != input->counts) &&
           (NULL == input->topology || input->topology->rank_count == input->size);
}

r2_status_t r2_plan_build(const r2_plan_input_t *input, r2_schedule_t *schedule_p)
{
    r2_choice_t choice;
    uint64_t total_bytes;
    r2_status_t status = R2_OK;

    r2_schedule_init(schedule_p);
    if (!input_valid(input)) {
        return R2_ERR_PARAM;
    }
    choice = choose(input);
    if (NULL == choice.algorithm) {
        return R2_ERR_PARAM;
    }
    total_bytes = r2_input_total_count(input) * input->element_bytes;
    schedule_p->algorithm = choice.name;
    schedule_p->chunk_bytes = chunk_bytes(input, total_bytes);
    digest_input(input, choice.algorithm, schedule_p);
    if (total_bytes > 0 || R2_COLL_BARRIER == input->kind || by_edges(input)) {
        status = choice.algorithm->build(input, schedule_p);
    }
    schedule_p->digest = schedule_p->digest << R2_DIGEST_KIND_BITS | (uint32_t) input->kind;
    return R2_OK != status ? status : schedule_p->status;
}

r2_status_t r2_plan_make(const r2_topology_t *topology, const r2_plan_input_t *input,
                         r2_schedule_t *schedule_p)
{
    r2_plan_input_t there = *input;

    there.topology = topology;
    return r2_plan_build(&there, schedule_p);
}
