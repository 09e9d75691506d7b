/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One message size: what all ranks found, put together.
 */
#include "r2_config.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static void size_init(const r2_bench_run_t *run, r2_bench_size_t *size, size_t bytes)
{
    size_t unit = r2_bench_type_bytes(run->options->type);
    size_t window = (size_t) run->options->window;
    const char *problem;

    memset(size, 0, sizeof(*size));
    problem = r2_bench_payload_init(&size->payload, run->task, run->options, &run->data, run->rank,
                                    bytes);
    if (NULL != problem) {
        r2_bench_give_up(problem);
    }
    size->request = MPI_REQUEST_NULL;
    if (R2_BENCH_PERSISTENT == run->task->form) {
        r2_bench_call_init(run->task->kind->id, &size->payload.call, &size->request);
    }
    if (R2_BENCH_NO_PAIRS != run->task->kind->way &&
        !r2_bench_pairs_init(&size->pairs, window,
                             size->payload.slots > 1 ? bytes / unit * unit : 0, run->ranks,
                             run->rank)) {
        r2_bench_give_up("not enough memory");
    }
    size->series.wire_bytes = r2_bench_kind_bus_bytes(run->task->kind, run->ranks, run->hosts,
                                                      (double) (bytes / unit * unit * window));
}

static void size_fini(r2_bench_size_t *size)
{
    if (MPI_REQUEST_NULL != size->request) {
        MPI_Request_free(&size->request);
    }
    r2_bench_pairs_fini(&size->pairs);
    r2_bench_payload_fini(&size->payload);
    r2_bench_series_fini(&size->series);
}

/* Digest over all ranks; ranks that should have equal results and have not count as wrong. */
static void combine_digests(const r2_bench_run_t *run, r2_bench_size_t *size, r2_bench_row_t *row)
{
    uint64_t *all = calloc((size_t) run->ranks, sizeof(*all));

    if (NULL == all) {
        r2_bench_give_up("not enough memory");
    }
    MPI_Gather(&size->payload.digest, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (0 == run->rank) {
        row->digest = r2_bench_data_hash(0, all, (size_t) run->ranks * sizeof(*all));
        for (int r = 1; r < run->ranks && run->task->kind->same_everywhere; ++r) {
            if (all[r] != all[0]) {
                fprintf(stderr, "%s: %zu bytes: ranks 0 and %d have different results\n",
                        run->task->program, size->payload.size_bytes, r);
                ++row->wrong;
            }
        }
    }
    free(all);
}

/* The second of a pair also waits for the first to begin: its times say nothing. */
static bool is_timed(const r2_bench_run_t *run)
{
    return R2_BENCH_NO_PAIRS == run->task->kind->way || run->rank < run->ranks / 2;
}

/* Makes each iteration as long as that of the slowest rank; only the times of rank 0 are used. */
static void slowest_times(const r2_bench_run_t *run, r2_bench_size_t *size)
{
    size_t count = size->series.count;
    double *took_s = calloc(count, sizeof(*took_s));
    double *most_s = calloc(count, sizeof(*most_s));

    if (NULL == took_s || NULL == most_s) {
        r2_bench_give_up("not enough memory");
    }
    for (size_t i = 0; i < count; ++i) {
        took_s[i] = is_timed(run) ? size->series.samples[i].took_s : 0;
    }
    MPI_Reduce(took_s, most_s, (int) count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < count && 0 == run->rank; ++i) {
        size->series.samples[i].took_s = most_s[i];
    }
    free(took_s);
    free(most_s);
}

/* What the library counted since `before`, over all ranks. */
static void combine_pvars(const r2_bench_run_t *run, const double *before, r2_bench_row_t *row)
{
    double now[R2_BENCH_PVAR_COUNT];
    double since[R2_BENCH_PVAR_COUNT];
    double sum[R2_BENCH_PVAR_COUNT];
    double most[R2_BENCH_PVAR_COUNT];

    r2_bench_pvars_read(&run->pvars, now);
    for (int i = 0; i < R2_BENCH_PVAR_COUNT; ++i) {
        since[i] = now[i] < 0 ? -1 : now[i] - before[i];
    }
    MPI_Reduce(since, sum, R2_BENCH_PVAR_COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(now, most, R2_BENCH_PVAR_COUNT, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    row->resent_bytes = sum[R2_BENCH_PVAR_RESENT];
    row->lanes_failed = sum[R2_BENCH_PVAR_LANES];
    row->gap_ns = most[R2_BENCH_PVAR_GAP];
    row->collectives = since[R2_BENCH_PVAR_COLLECTIVES];
}

/* Latencies as OSU has them: the mean over iterations of each rank, then over ranks. */
static void combine_times(const r2_bench_run_t *run, r2_bench_size_t *size, r2_bench_row_t *row)
{
    int timed = R2_BENCH_NO_PAIRS == run->task->kind->way ? run->ranks : run->ranks / 2;
    double mean_s = 0;
    double least_s, most_s;
    double sum_s = 0;

    for (size_t i = 0; i < size->series.count; ++i) {
        mean_s += size->series.samples[i].took_s / (double) size->series.count;
    }
    least_s = is_timed(run) ? mean_s : DBL_MAX;
    most_s = is_timed(run) ? mean_s : 0;
    MPI_Reduce(&most_s, &sum_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&least_s, &row->min_s, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&most_s, &row->max_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&size->payload.wrong, &row->wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    row->avg_s = sum_s / timed;
    row->iterations = size->series.count;
}

/* Where the time of nonblocking calls went: means over ranks. */
static void combine_overlap(const r2_bench_run_t *run, const r2_bench_size_t *size,
                            r2_bench_row_t *row)
{
    r2_bench_overlap_times_t mine;
    double parts[5], sums[5] = {0};

    r2_bench_overlap_means(&size->overlap, &mine);
    parts[0] = mine.pure_s;
    parts[1] = mine.start_s;
    parts[2] = mine.compute_s;
    parts[3] = mine.test_s;
    parts[4] = mine.wait_s;
    MPI_Reduce(parts, sums, 5, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    row->overlap.pure_s = sums[0] / run->ranks;
    row->overlap.start_s = sums[1] / run->ranks;
    row->overlap.compute_s = sums[2] / run->ranks;
    row->overlap.test_s = sums[3] / run->ranks;
    row->overlap.wait_s = sums[4] / run->ranks;
}

static void report_size(r2_bench_run_t *run, const r2_bench_size_t *size, const r2_bench_row_t *row)
{
    const r2_bench_options_t *options = run->options;
    const r2_bench_effect_t *effects = run->injector->effects;

    r2_bench_report_progress_end(&run->report);
    r2_bench_report_row(&run->report, row, &size->series);
    if (0 != options->faults_count) {
        r2_bench_report_phases(&run->report, row, &size->series, effects, run->zero_s);
    }
    if (0 != options->faults_count || (options->full && row->collectives >= 0)) {
        r2_bench_report_counters(row);
    }
    r2_bench_report_csv(&run->report, row->bytes, &size->series, effects, run->zero_s);
}

void r2_bench_run_size(r2_bench_run_t *run, size_t bytes)
{
    double before[R2_BENCH_PVAR_COUNT];
    r2_bench_row_t row = {.bytes = bytes};
    r2_bench_size_t size;

    size_init(run, &size, bytes);
    r2_bench_warm_up(run, &size);
    r2_bench_pvars_read(&run->pvars, before);
    r2_bench_measure(run, &size);
    combine_pvars(run, before, &row);
    combine_times(run, &size, &row);
    combine_overlap(run, &size, &row);
    slowest_times(run, &size);
    for (int i = 0; i < R2_BENCH_TAILS; ++i) {
        row.tail_s[i] = r2_bench_series_percentile(&size.series, r2_bench_tails[i]);
    }
    if (run->options->digest) {
        combine_digests(run, &size, &row);
    }
    if (0 == run->rank) {
        r2_bench_injector_sync(run->injector);
        report_size(run, &size, &row);
    }
    run->wrong += row.wrong;
    size_fini(&size);
}
