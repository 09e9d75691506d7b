/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How long the planner thinks: choice and shares for many hosts, and the schedule of one rank.
 *
 * plan_time [HOSTS [RAILS]]; default 1024 hosts with 8 rails. Prints the least and the median of
 * some runs, us.
 */
#include "r2_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "r2/macros.h"
#include "r2/params.h"
#include "r2/planner.h"
#include "r2/prng.h"

enum { RUNS = 21 };

typedef void (*work_fn_t)(const r2_plan_input_t *input);

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

static void work_choose(const r2_plan_input_t *input)
{
    if (NULL == r2_plan_choose(input)) {
        abort();
    }
}

static void work_build(const r2_plan_input_t *input)
{
    r2_schedule_t schedule;

    if (R2_OK != r2_plan_build(input, &schedule)) {
        abort();
    }
    r2_schedule_fini(&schedule);
}

static int compare(const void *a, const void *b)
{
    const double *l = a, *r = b;

    return (*l > *r) - (*l < *r);
}

static void measure(const char *what, const r2_plan_input_t *input, work_fn_t work)
{
    double us[RUNS];

    for (int i = 0; i < RUNS; ++i) {
        const double start_us = now_us();

        work(input);
        us[i] = now_us() - start_us;
    }
    qsort(us, RUNS, sizeof(*us), compare);
    printf("%-40s %10.0f %10.0f\n", what, us[0], us[RUNS / 2]);
}

static void measure_map(const char *what, r2_plan_input_t input, const r2_topology_t *topology)
{
    char text[80];

    input.topology = topology;
    snprintf(text, sizeof(text), "choice, %s", what);
    measure(text, &input, work_choose);
    snprintf(text, sizeof(text), "schedule of a rank, %s", what);
    measure(text, &input, work_build);
}

int main(int argc, char **argv)
{
    const uint32_t hosts = argc > 1 ? (uint32_t) atoi(argv[1]) : 1024;
    const uint32_t rails = argc > 2 ? (uint32_t) atoi(argv[2]) : 8;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE,
                             .size = (int32_t) hosts,
                             .element_bytes = 4,
                             .commutative = true,
                             .reproducible = true,
                             .count = 64 << 20};
    r2_topology_t topology;
    r2_params_t params;
    r2_prng_t prng;

    if (R2_OK != r2_topology_init(&topology, hosts, rails, (int32_t) hosts, 1250)) {
        fprintf(stderr, "usage: plan_time [HOSTS [RAILS]]\n");
        return 2;
    }
    r2_params_init(&params);
    input.scratch_bytes = params.scratch_bytes;
    input.chunk_min_bytes = params.chunk_min_bytes;
    input.chunk_max_bytes = params.chunk_max_bytes;
    printf("%-40s %10s %10s\n", "us", "least", "median");
    measure_map("healthy", input, &topology);
    r2_topology_set_capacity(&topology, hosts / 2, 0, 0);
    measure_map("one rail dead", input, &topology);
    r2_prng_seed(&prng, 1);
    for (uint32_t h = 0; h < hosts; h += 40) {
        r2_topology_set_capacity(&topology, h, (uint32_t) r2_prng_below(&prng, rails),
                                 (uint32_t) r2_prng_below(&prng, 2) * 8);
    }
    r2_topology_cut(&topology, 0, hosts - 1, rails - 1);
    measure_map("a rail of every 40th host", input, &topology);
    for (uint32_t i = 0; i < hosts * rails; ++i) {
        topology.capacity[i] = (uint8_t) r2_prng_between(&prng, 4, R2_CAPACITY_FULL);
    }
    measure_map("every rail another rate", input, &topology);
    r2_topology_fini(&topology);
    return 0;
}
