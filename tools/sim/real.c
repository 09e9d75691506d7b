/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The schedules that r2 itself builds, on a topology of the tools.
 */
#include "r2_config.h"

#include "sim/real.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "r2/macros.h"
#include "r2/params.h"
#include "sim/predict.h"

/* Rates are made anew this often in the least time that the collective takes: what that costs is
 * below the model's error. Many ranks have many links, and each time costs more. */
#define REAL_FEW_RANKS     16u
#define REAL_QUANTA_FEW    20000.0
#define REAL_QUANTA_MANY   1000.0
#define REAL_ELEMENT_BYTES 4u
#define REAL_MBYTES_PER_S  1e6

static r2_status_t copy_cuts(const topo_t *topo, r2_topology_t *topology_p)
{
    for (uint32_t c = 0; c < topo->cut_count; ++c) {
        const r2_topology_cut_t *cut = &topo->cuts[c];

        if (!r2_topology_cut(topology_p, cut->host_a, cut->host_b, cut->rail)) {
            return R2_ERR_PARAM;
        }
    }
    return R2_OK;
}

r2_status_t real_topology(const topo_t *topo, r2_topology_t *topology_p)
{
    r2_status_t status = r2_topology_init(topology_p, topo->host_count, topo->rail_count,
                                          (int32_t) topo->rank_count, 1);

    if (R2_OK != status) {
        return status;
    }
    topology_p->any_pairing = topo->flat;
    memcpy(topology_p->host_of, topo->host_of, topo->rank_count * sizeof(*topo->host_of));
    for (size_t i = 0; i < (size_t) topo->host_count * topo->rail_count; ++i) {
        const double rate = r2_min(topo->rate[i] / REAL_MBYTES_PER_S, (double) UINT32_MAX);
        const double left = topo->left[i] * R2_CAPACITY_FULL;

        topology_p->rate_mbytes_per_s[i] = (uint32_t) r2_max(rate, 1.0);
        topology_p->capacity[i] = (uint8_t) (left > 0 ? r2_max(floor(left), 1.0) : 0.0);
    }
    status = copy_cuts(topo, topology_p);
    if (R2_OK != status) {
        r2_topology_fini(topology_p);
    }
    return status;
}

static uint32_t real_whole(double value)
{
    return (uint32_t) r2_min(value, (double) UINT32_MAX);
}

r2_cost_params_t real_cost(const topo_t *topo)
{
    return (r2_cost_params_t){
        .alpha_ns = real_whole(topo->latency_s * 1e9),
        .rate_ppm = real_whole(topo->derating * R2_PPM),
        .reduce_mbytes_per_s = {[R2_MEM_HOST] = real_whole(topo->reduce_rate / REAL_MBYTES_PER_S)},
        .crowded = topo->crowded ? R2_CROWDED_ALL : 0};
}

r2_plan_input_t real_input(const r2_topology_t *topology, r2_coll_kind_t kind, uint64_t bytes,
                           const char *algorithm)
{
    const bool per_rank = R2_COLL_ALLGATHER == kind || R2_COLL_REDUCE_SCATTER_BLOCK == kind;
    const uint64_t ranks = per_rank ? (uint64_t) topology->rank_count : 1;
    r2_params_t params;

    r2_params_init(&params);
    return (r2_plan_input_t){
        .kind = kind,
        .size = topology->rank_count,
        .element_bytes = REAL_ELEMENT_BYTES,
        .count = r2_max(bytes / REAL_ELEMENT_BYTES / ranks, (uint64_t) 1),
        .commutative = true,
        .reproducible = params.reproducible,
        .algorithm = algorithm,
        .scratch_bytes = params.scratch_bytes,
        .chunk_min_bytes = params.chunk_min_bytes,
        .chunk_max_bytes = params.chunk_max_bytes,
        .message_max_bytes = params.pack_bytes / 2,
        .copy_max_bytes = params.copy_max_bytes,
        .topology = topology,
    };
}

r2_status_t real_init(real_t *real, const topo_t *topo, r2_coll_kind_t kind, uint64_t bytes,
                      const char *algorithm)
{
    r2_status_t status;

    *real = (real_t){.rank_count = topo->rank_count};
    status = real_topology(topo, &real->topology);
    if (R2_OK == status) {
        real->input = real_input(&real->topology, kind, bytes, algorithm);
        real->input.cost = real_cost(topo);
    }
    return status;
}

r2_status_t real_build(real_t *real, const topo_t *topo, r2_coll_kind_t kind, uint64_t bytes,
                       const char *algorithm)
{
    r2_status_t status = real_init(real, topo, kind, bytes, algorithm);

    if (R2_OK != status) {
        return status;
    }
    real->schedules = calloc(topo->rank_count, sizeof(*real->schedules));
    status = NULL == real->schedules ? R2_ERR_NO_MEMORY : R2_OK;
    for (uint32_t r = 0; R2_OK == status && r < topo->rank_count; ++r) {
        r2_plan_input_t input = real->input;

        input.rank = (int32_t) r;
        status = r2_plan_build(&input, &real->schedules[r]);
    }
    if (R2_OK != status) {
        real_fini(real);
    }
    return status;
}

void real_fini(real_t *real)
{
    for (uint32_t r = 0; NULL != real->schedules && r < real->rank_count; ++r) {
        r2_schedule_fini(&real->schedules[r]);
    }
    free(real->schedules);
    r2_topology_fini(&real->topology);
    *real = (real_t){.rank_count = 0};
}

r2_status_t real_run(const real_t *real, const topo_t *topo, flow_piece_fn_t piece_fn,
                     void *piece_arg, flow_result_t *result_p)
{
    const predict_case_t least = {
        .topo = topo, .bytes = (double) (real->input.count * real->input.element_bytes)};
    const double quanta = topo->rank_count > REAL_FEW_RANKS ? REAL_QUANTA_MANY : REAL_QUANTA_FEW;
    const uint32_t memory = r2_cost_params(&real->input.cost).reduce_mbytes_per_s[R2_MEM_HOST];
    const flow_case_t ask = {.topo = topo,
                             .schedules = real->schedules,
                             .local_rate = topo->reduce_rate,
                             .memory_rate = memory * REAL_MBYTES_PER_S,
                             .quantum_s = predict_bound(&least) / quanta,
                             .piece_fn = piece_fn,
                             .piece_arg = piece_arg};

    return NULL != real->schedules ? flow_run(&ask, result_p) : R2_ERR_UNSUPPORTED;
}
