/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Monte Carlo: draws dead NICs, asks for times, and sums up.
 */
#include "r2_config.h"

#include "sim/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "r2/macros.h"
#include "r2/prng.h"

/** Times of one cell, one per draw. */
typedef struct sample {
    double *over_healthy; /* owned by draws_t.values */
    double over_bound, seconds;
    uint32_t count;
} sample_t;

typedef struct draws {
    const draws_case_t *ask; /* borrowed */
    uint32_t steps;          /* numbers of failures */
    double *healthy_left;    /* owned; topo->left before drawing */
    uint32_t *nics;          /* owned; to draw from */
    double *values;          /* owned; [cell * draws] */
    sample_t *samples;       /* owned; [cell] */
    draws_result_t *result;  /* borrowed */
} draws_t;

static size_t nic_count(const topo_t *topo)
{
    return (size_t) topo->host_count * topo->rail_count;
}

/** Most NICs that can die if every host keeps one. */
static uint64_t most_failures(const topo_t *topo)
{
    uint64_t most = 0;

    for (uint32_t h = 0; h < topo->host_count; ++h) {
        uint64_t alive = 0;

        for (uint32_t rail = 0; rail < topo->rail_count; ++rail) {
            alive += topo_rail(topo, h, rail) > 0 ? 1 : 0;
        }
        most += alive > 0 ? alive - 1 : 0;
    }
    return most;
}

static r2_status_t draws_init(draws_t *draws, const draws_case_t *ask, draws_result_t *result)
{
    const size_t cells = (size_t) (ask->failures_last - ask->failures_first + 1) *
                         r2_max(ask->algorithm_count, (size_t) 1);
    const size_t nics = nic_count(ask->topo);

    *draws = (draws_t){
        .ask = ask, .steps = ask->failures_last - ask->failures_first + 1, .result = result};
    *result = (draws_result_t){.healthy_bound = 0};
    draws->healthy_left = malloc(nics * sizeof(*draws->healthy_left));
    draws->nics = malloc(nics * sizeof(*draws->nics));
    draws->values = malloc(cells * ask->draw_count * sizeof(*draws->values));
    draws->samples = calloc(cells, sizeof(*draws->samples));
    result->bound_over_healthy = calloc(draws->steps, sizeof(double));
    result->cells = calloc(cells, sizeof(*result->cells));
    if (NULL == draws->healthy_left || NULL == draws->nics || NULL == draws->values ||
        NULL == draws->samples || NULL == result->bound_over_healthy || NULL == result->cells) {
        return R2_ERR_NO_MEMORY;
    }
    for (size_t c = 0; c < cells; ++c) {
        draws->samples[c].over_healthy = &draws->values[c * ask->draw_count];
    }
    memcpy(draws->healthy_left, ask->topo->left, nics * sizeof(*draws->healthy_left));
    return R2_OK;
}

static void draws_fini(draws_t *draws)
{
    free(draws->healthy_left);
    free(draws->nics);
    free(draws->values);
    free(draws->samples);
}

/** Kills one more NIC, none that is the last of its host. @param alive_p NICs to draw from. */
static bool kill_one(draws_t *draws, r2_prng_t *prng, size_t *alive_p)
{
    topo_t *topo = draws->ask->topo;

    while (*alive_p > 0) {
        const size_t at = (size_t) r2_prng_below(prng, *alive_p);
        const uint32_t nic = draws->nics[at];
        const uint32_t host = nic / topo->rail_count;
        const double left = topo->left[nic];

        draws->nics[at] = draws->nics[--*alive_p];
        topo->left[nic] = 0;
        if (topo_host(topo, host) > 0) {
            return true;
        }
        topo->left[nic] = left;
    }
    return false;
}

static r2_status_t take_times(draws_t *draws, uint32_t step)
{
    const draws_case_t *ask = draws->ask;
    const predict_case_t one = {.topo = ask->topo, .bytes = ask->bytes};
    const double bound = predict_bound(&one);
    r2_status_t status = R2_OK;

    draws->result->bound_over_healthy[step] +=
        bound / draws->result->healthy_bound / ask->draw_count;
    for (size_t a = 0; R2_OK == status && a < ask->algorithm_count; ++a) {
        const size_t cell = step * ask->algorithm_count + a;
        sample_t *sample = &draws->samples[cell];
        double seconds = 0;

        status = ask->algorithms[a]->predict(&one, &seconds);
        if (R2_OK == status && isfinite(seconds)) {
            sample->over_healthy[sample->count++] = seconds / draws->result->healthy[a];
            sample->over_bound += seconds / bound;
            sample->seconds += seconds;
        } else if (R2_OK == status) {
            ++draws->result->cells[cell].no_path;
        }
    }
    return status;
}

/** One draw: failure after failure. */
static r2_status_t draw(draws_t *draws, uint32_t number)
{
    const draws_case_t *ask = draws->ask;
    topo_t *topo = ask->topo;
    size_t alive = 0;
    r2_prng_t prng;
    r2_status_t status = R2_OK;

    r2_prng_seed(&prng, ask->seed);
    prng.state += r2_prng_u64(&prng) * (number + 1ull);
    memcpy(topo->left, draws->healthy_left, nic_count(topo) * sizeof(*topo->left));
    for (uint32_t nic = 0; nic < nic_count(topo); ++nic) {
        if (topo->left[nic] > 0) {
            draws->nics[alive++] = nic;
        }
    }
    for (uint32_t f = 0; R2_OK == status && f <= ask->failures_last; ++f) {
        if (f > 0 && !kill_one(draws, &prng, &alive)) {
            return R2_ERR_PARAM;
        }
        if (f >= ask->failures_first) {
            status = take_times(draws, f - ask->failures_first);
        }
    }
    return status;
}

static int compare_values(const void *a, const void *b)
{
    const double l = *(const double *) a, r = *(const double *) b;

    return (l > r) - (l < r);
}

/** Smallest value that is not below the given part of all. @param values sorted. */
static double percentile(const double *values, uint32_t count, double part)
{
    const double rank = ceil(part * count);

    return values[rank < 1 ? 0 : (uint32_t) rank - 1];
}

static void sum_up(const sample_t *sample, draws_cell_t *cell_p)
{
    double sum = 0;

    if (0 == sample->count) {
        return;
    }
    qsort(sample->over_healthy, sample->count, sizeof(double), compare_values);
    for (uint32_t i = 0; i < sample->count; ++i) {
        sum += sample->over_healthy[i];
    }
    cell_p->over_healthy = sum / sample->count;
    cell_p->over_healthy_p50 = percentile(sample->over_healthy, sample->count, 0.50);
    cell_p->over_healthy_p99 = percentile(sample->over_healthy, sample->count, 0.99);
    cell_p->over_bound = sample->over_bound / sample->count;
    cell_p->seconds = sample->seconds / sample->count;
}

/** Times with nothing broken at all: what the topology already lacks counts as failed. */
static r2_status_t take_healthy(draws_t *draws)
{
    const draws_case_t *ask = draws->ask;
    topo_t *topo = ask->topo;
    const predict_case_t one = {.topo = topo, .bytes = ask->bytes};
    const uint32_t cuts = topo->cut_count;
    r2_status_t status = R2_OK;

    topo_heal(topo);
    draws->result->healthy_bound = predict_bound(&one);
    for (size_t a = 0; R2_OK == status && a < ask->algorithm_count; ++a) {
        status = ask->algorithms[a]->predict(&one, &draws->result->healthy[a]);
    }
    topo->cut_count = cuts;
    memcpy(topo->left, draws->healthy_left, nic_count(topo) * sizeof(*topo->left));
    return status;
}

r2_status_t draws_run(const draws_case_t *ask, draws_result_t *result_p)
{
    draws_t draws;
    r2_status_t status;

    *result_p = (draws_result_t){.healthy_bound = 0};
    if (ask->failures_last > most_failures(ask->topo) || ask->topo->host_count < 2 ||
        ask->failures_last < ask->failures_first || 0 == ask->draw_count) {
        return R2_ERR_PARAM;
    }
    status = draws_init(&draws, ask, result_p);
    status = R2_OK == status ? take_healthy(&draws) : status;
    for (uint32_t d = 0; R2_OK == status && d < ask->draw_count; ++d) {
        status = draw(&draws, d);
    }
    for (size_t c = 0; R2_OK == status && c < draws.steps * ask->algorithm_count; ++c) {
        sum_up(&draws.samples[c], &result_p->cells[c]);
    }
    if (NULL != draws.healthy_left) {
        memcpy(ask->topo->left, draws.healthy_left,
               nic_count(ask->topo) * sizeof(*ask->topo->left));
    }
    draws_fini(&draws);
    if (R2_OK != status) {
        draws_result_fini(result_p);
    }
    return status;
}

void draws_result_fini(draws_result_t *result)
{
    free(result->bound_over_healthy);
    free(result->cells);
    *result = (draws_result_t){.healthy_bound = 0};
}
