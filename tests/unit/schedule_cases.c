/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Arguments of collectives for the schedule tests.
 */
#include "r2_config.h"

#include "schedule_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/algorithm.h"
#include "plan/kinds.h"

const r2_case_t *r2_cases(size_t *count_p)
{
    static r2_case_t cases[R2_COLL_KIND_COUNT * (R2_ALGORITHM_COUNT + 1)];

    *count_p = 0;
    for (r2_coll_kind_t kind = 0; kind < R2_COLL_KIND_COUNT; ++kind) {
        const r2_algorithm_t *const *all = r2_algorithms_of(kind);

        for (size_t i = 0; NULL != all[1] && NULL != all[i]; ++i) {
            if (NULL == all[i]->fits) {
                cases[(*count_p)++] = (r2_case_t){kind, all[i]->name};
            }
        }
        cases[(*count_p)++] = (r2_case_t){kind, NULL};
    }
    return cases;
}

r2_plan_input_t r2_case_input(const r2_case_t *one, int32_t size, uint64_t count,
                              uint64_t element_bytes)
{
    return (r2_plan_input_t){.kind = one->kind,
                             .size = size,
                             .count = R2_COLL_BARRIER == one->kind ? 0 : count,
                             .element_bytes = element_bytes,
                             .algorithm = one->algorithm,
                             .commutative = true,
                             .reproducible = true,
                             .scratch_bytes = 1 << 20,
                             .chunk_min_bytes = 8,
                             .chunk_max_bytes = 131072,
                             .copy_max_bytes = 8192};
}

enum { PLACEMENT_MOST = 40 };

static const struct {
    int32_t ranks;
    uint32_t hosts, host_of[PLACEMENT_MOST];
} placements[R2_PLACEMENTS] = {
    {4, 2, {0, 0, 1, 1}},
    {6, 2, {0, 0, 0, 1, 1, 1}},
    {6, 3, {0, 0, 0, 1, 1, 2}},
    {6, 3, {0, 1, 2, 0, 1, 0}},
    {5, 2, {0, 1, 1, 1, 1}},
    {9, 4, {0, 0, 0, 1, 1, 2, 2, 2, 3}},
    {9, 4, {0, 1, 2, 3, 0, 1, 2, 0, 2}},
    {40, 2, {[20] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {19, 3, {[8] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}};

int32_t r2_case_ranks(size_t placement)
{
    return placements[placement].ranks;
}

void r2_case_placement(r2_topology_t *topology, size_t placement)
{
    assert_int_equal(R2_OK, r2_topology_init(topology, placements[placement].hosts, 3,
                                             placements[placement].ranks, 1000));
    memcpy(topology->host_of, placements[placement].host_of,
           (size_t) placements[placement].ranks * sizeof(*topology->host_of));
}

void r2_case_full_host(r2_plan_input_t *input, r2_topology_t *topology, uint32_t told_mbytes_per_s)
{
    assert_int_equal(R2_OK, r2_topology_init(topology, 4, 4, input->size, told_mbytes_per_s));
    for (int32_t rank = 0; rank < input->size; ++rank) {
        topology->host_of[rank] = (uint32_t) r2_min(rank, 3);
    }
    input->topology = topology;
    input->chunk_min_bytes = 8192;
    input->chunk_max_bytes = 131072;
    input->scratch_bytes = 16777216;
}

r2_status_t r2_case_plan(const r2_topology_t *topology, const r2_plan_input_t *input,
                         r2_schedule_t *schedule_p)
{
    r2_plan_input_t there = *input;

    there.topology = topology;
    return r2_plan_build(&there, schedule_p);
}

bool r2_case_per_rank(r2_coll_kind_t kind)
{
    return R2_SPAN_VECTOR != r2_kind(kind)->span;
}

void r2_case_uneven(r2_plan_input_t *input, r2_uneven_t *uneven, uint64_t count, bool displs)
{
    uint64_t place = 3;

    r2_assert(input->size <= R2_CASE_RANKS_MAX);
    if (R2_COLL_ALLGATHERV != input->kind && R2_COLL_REDUCE_SCATTER != input->kind) {
        return;
    }
    for (int32_t r = 0; r < input->size; ++r) {
        /* 0, average, double and something odd */
        uneven->counts[r] = 0 == r % 4   ? 2 * count
                            : 1 == r % 4 ? 0
                            : 2 == r % 4 ? count
                                         : count / 2 + 1;
    }
    if (0 == count) {
        uneven->counts[input->size - 1] = 0;
    }
    for (int32_t r = input->size - 1; r >= 0; --r) {
        uneven->displs[r] = place;
        place += uneven->counts[r] + (uint64_t) (r % 3);
    }
    input->counts = uneven->counts;
    input->displs = displs && R2_COLL_ALLGATHERV == input->kind ? uneven->displs : NULL;
}

static uint64_t sets_checked;

void r2_case_check(const r2_plan_input_t *input, uint64_t in_place)
{
    r2_check_job_t job;
    r2_check_report_t report = {.flaw = R2_FLAW_OP, .text = "build failed"};
    r2_status_t status = r2_check_job_init(&job, input, in_place);

    if (R2_OK == status) {
        r2_check_job_run(&job, &report);
    }
    if (R2_FLAW_NONE != report.flaw) {
        print_error("collective %d %s (%s) size %d count %lu element %lu root %d in place %lx "
                    "scratch %lu: %s: %s\n",
                    (int) input->kind, NULL == input->algorithm ? "-" : input->algorithm,
                    job.schedules[0].algorithm, input->size, (unsigned long) input->count,
                    (unsigned long) input->element_bytes, input->root, (unsigned long) in_place,
                    (unsigned long) input->scratch_bytes, r2_flaw_name(report.flaw), report.text);
    }
    ++sets_checked;
    r2_check_job_fini(&job);
    assert_int_equal(R2_FLAW_NONE, report.flaw);
}

uint64_t r2_case_checked(void)
{
    return sets_checked;
}
