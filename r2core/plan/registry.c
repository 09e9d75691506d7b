/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The registry of algorithms.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdio.h>
#include <string.h>

/* Families one behind the other; before each, and behind the last one, NULL. */
static const r2_algorithm_t *const registry[] = {
#define R2_FAMILY(name)    NULL,
#define R2_ALGORITHM(name) &r2_##name,
#include "plan/algorithms.def"
#undef R2_ALGORITHM
#undef R2_FAMILY
    NULL};

/* The same places, by name. */
enum {
#define R2_FAMILY(name)    FAMILY_##name,
#define R2_ALGORITHM(name) ROW_##name,
#include "plan/algorithms.def"
#undef R2_ALGORITHM
#undef R2_FAMILY
};

static const uint32_t families[R2_COLL_KIND_COUNT] = {
    [R2_COLL_ALLREDUCE] = FAMILY_allreduce,
    [R2_COLL_ALLGATHER] = FAMILY_allgather,
    [R2_COLL_ALLGATHERV] = FAMILY_allgather,
    [R2_COLL_REDUCE_SCATTER] = FAMILY_reduce_scatter,
    [R2_COLL_REDUCE_SCATTER_BLOCK] = FAMILY_reduce_scatter,
    [R2_COLL_BCAST] = FAMILY_bcast,
    [R2_COLL_BARRIER] = FAMILY_barrier,
    [R2_COLL_REDUCE] = FAMILY_reduce,
    [R2_COLL_SCAN] = FAMILY_scan,
    [R2_COLL_EXSCAN] = FAMILY_scan,
    [R2_COLL_GATHER] = FAMILY_gather,
    [R2_COLL_GATHERV] = FAMILY_edges,
    [R2_COLL_SCATTER] = FAMILY_scatter,
    [R2_COLL_SCATTERV] = FAMILY_edges,
    [R2_COLL_ALLTOALL] = FAMILY_alltoall,
    [R2_COLL_ALLTOALLV] = FAMILY_edges,
    [R2_COLL_ALLTOALLW] = FAMILY_edges,
    [R2_COLL_NEIGHBOR] = FAMILY_edges};

const r2_algorithm_t *const *r2_algorithms_of(r2_coll_kind_t kind)
{
    return &registry[families[kind] + 1];
}

const r2_algorithm_t *r2_algorithm_find(r2_coll_kind_t kind, const char *name)
{
    const r2_algorithm_t *const *at = r2_algorithms_of(kind);

    while (NULL != *at && 0 != strcmp((*at)->name, name)) {
        ++at;
    }
    return *at;
}

const r2_algorithm_t *r2_algorithm_last(r2_coll_kind_t kind)
{
    const r2_algorithm_t *const *at = r2_algorithms_of(kind);

    while (NULL != at[1]) {
        ++at;
    }
    return *at;
}

static bool r2_order_suits(const r2_plan_input_t *input, r2_needs_t needs, bool by_name)
{
    return R2_NEEDS_NOTHING == needs ||
           (input->commutative &&
            (R2_NEEDS_FREE_ORDER != needs || by_name || input->exact || !input->reproducible));
}

bool r2_algorithm_can_run(const r2_algorithm_t *algorithm, const r2_plan_input_t *input,
                          bool by_name)
{
    return r2_order_suits(input, algorithm->needs, by_name) &&
           (NULL == algorithm->fits || algorithm->fits(input)) &&
           (NULL == algorithm->scratch || algorithm->scratch(input) <= input->scratch_bytes);
}

bool r2_plan_has(r2_coll_kind_t kind, const char *name)
{
    return NULL == name || '\0' == name[0] || NULL != r2_algorithm_find(kind, name);
}

const char *r2_plan_names(r2_coll_kind_t kind, char *text, size_t room)
{
    size_t used = 0;

    for (const r2_algorithm_t *const *at = r2_algorithms_of(kind); NULL != *at; ++at) {
        if (used < room) {
            used +=
                (size_t) snprintf(text + used, room - used, 0 == used ? "%s" : ", %s", (*at)->name);
        }
    }
    return text;
}
