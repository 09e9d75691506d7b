/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The program around a collective: runs all sizes, times, checks and reports.
 */
#include "r2_config.h"

#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "injector.h"
#include "options.h"
#include "payload.h"
#include "pvar.h"
#include "report.h"
#include "series.h"

/* With --seconds, rank 0 says how many iterations follow until it is asked again. */
static const double ASK_EVERY_S = 0.05;

/* One program run on one rank. */
typedef struct run {
    const r2_bench_ops_t *ops;         /* borrowed: static */
    const r2_bench_options_t *options; /* borrowed: outlives the run */
    r2_bench_injector_t *injector;     /* borrowed: outlives the run */
    r2_bench_data_t data;
    r2_bench_pvars_t pvars;
    r2_bench_report_t report; /* used by rank 0 */
    MPI_Datatype type;
    int rank;
    int ranks;
    int hosts;
    double zero_s;  /* CLOCK_MONOTONIC at the start of the first size's measured loop; 0: not yet */
    uint64_t turn;  /* measured iterations so far, all sizes */
    uint64_t wrong; /* wrong results on any rank so far */
} run_t;

/* One message size of a run. */
typedef struct size_run {
    r2_bench_payload_t payload;
    r2_bench_series_t series;
} size_run_t;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "r2 benchmark: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static MPI_Datatype mpi_type(r2_bench_type_t type)
{
    switch (type) {
    case R2_BENCH_CHAR:
        return MPI_CHAR;
    case R2_BENCH_INT:
        return MPI_INT;
    case R2_BENCH_FLOAT:
        return MPI_FLOAT;
    case R2_BENCH_DOUBLE:
        return MPI_DOUBLE;
    }
    return MPI_DATATYPE_NULL;
}

/* ---- iterations ---- */

static void call_once(const run_t *run, size_run_t *size)
{
    const r2_bench_payload_t *payload = &size->payload;

    run->ops->call(payload->send.data, payload->recv.data, &payload->shape, run->type,
                   MPI_COMM_WORLD);
}

static void warm_up(const run_t *run, size_run_t *size)
{
    uint64_t count = r2_bench_options_warmup(run->options, size->payload.size_bytes);

    r2_bench_payload_prepare(&size->payload, 0);
    for (uint64_t i = 0; i < count; ++i) {
        call_once(run, size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* One measured iteration. */
static void iterate(run_t *run, size_run_t *size)
{
    bool checked = run->options->validate || run->options->digest;
    uint64_t turn = run->turn++;
    double start_s, end_s;

    if (checked) {
        r2_bench_payload_prepare(&size->payload, turn);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (0 == run->rank) {
        r2_bench_injector_iteration(run->injector, turn);
    }
    start_s = r2_bench_now_s();
    call_once(run, size);
    end_s = r2_bench_now_s();
    if (!r2_bench_series_add(&size->series, start_s - run->zero_s, end_s - start_s)) {
        give_up("not enough memory for the times of all iterations");
    }
    if (checked) {
        r2_bench_payload_check(&size->payload, turn);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == run->rank) {
        r2_bench_injector_poll(run->injector);
        r2_bench_report_progress(&run->report, size->payload.size_bytes, &size->series,
                                 end_s - run->zero_s);
    }
}

/* With --seconds: how many iterations to run now. 0: time is up. The same on all ranks. */
static uint64_t next_share(const run_t *run, const size_run_t *size, double begin_s)
{
    uint64_t share = 1;
    double now_s = r2_bench_now_s() - begin_s;

    if (0 == run->rank) {
        double left_s = run->options->seconds - now_s;

        if (left_s <= 0) {
            share = 0;
        } else if (size->series.count > 0) {
            double each_s = now_s / (double) size->series.count;
            double span_s = left_s < ASK_EVERY_S ? left_s : ASK_EVERY_S;

            share = 1 + (uint64_t) (span_s / each_s);
        }
    }
    MPI_Bcast(&share, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return share;
}

static void measure(run_t *run, size_run_t *size)
{
    double begin_s;

    MPI_Barrier(MPI_COMM_WORLD);
    begin_s = r2_bench_now_s();
    if (0 == run->zero_s) {
        run->zero_s = begin_s;
        if (0 == run->rank) {
            r2_bench_injector_begin(run->injector, begin_s);
        }
    }
    if (0 == run->options->seconds) {
        for (uint64_t i = r2_bench_options_iterations(run->options, size->payload.size_bytes);
             i > 0; --i) {
            iterate(run, size);
        }
        return;
    }
    for (uint64_t share = next_share(run, size, begin_s); share > 0;
         share = next_share(run, size, begin_s)) {
        for (; share > 0; --share) {
            iterate(run, size);
        }
    }
}

/* ---- one size ---- */

/* Bytes that a host has to send in one iteration, if ranks of one host share what they can. */
static double wire_bytes(const run_t *run, const size_run_t *size)
{
    double h = run->hosts > 1 ? run->hosts : run->ranks;
    double vector = (double) (size->payload.shape.total * r2_bench_type_bytes(run->options->type));

    return run->ops->passes * (h - 1) / h * vector;
}

static void size_init(const run_t *run, size_run_t *size, size_t bytes)
{
    memset(size, 0, sizeof(*size));
    if (!r2_bench_payload_init(&size->payload, run->ops, run->options, &run->data, run->rank,
                               bytes)) {
        give_up("not enough memory for the buffers: choose a smaller -m");
    }
    size->series.wire_bytes = wire_bytes(run, size);
}

static void size_fini(size_run_t *size)
{
    r2_bench_payload_fini(&size->payload);
    r2_bench_series_fini(&size->series);
}

/* Digest over all ranks; ranks that should have equal results and have not count as wrong. */
static void combine_digests(const run_t *run, size_run_t *size, r2_bench_row_t *row)
{
    uint64_t *all = calloc((size_t) run->ranks, sizeof(*all));

    if (NULL == all) {
        give_up("not enough memory");
    }
    MPI_Gather(&size->payload.digest, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (0 == run->rank) {
        row->digest = r2_bench_data_hash(0, all, (size_t) run->ranks * sizeof(*all));
        for (int r = 1; r < run->ranks && run->ops->same_everywhere; ++r) {
            if (all[r] != all[0]) {
                fprintf(stderr, "%s: %zu bytes: ranks 0 and %d have different results\n",
                        run->ops->program, size->payload.size_bytes, r);
                ++row->wrong;
            }
        }
    }
    free(all);
}

/* Makes each iteration as long as that of the slowest rank; only the times of rank 0 are used. */
static void slowest_times(const run_t *run, size_run_t *size)
{
    size_t count = size->series.count;
    double *took_s = calloc(count, sizeof(*took_s));
    double *most_s = calloc(count, sizeof(*most_s));

    if (NULL == took_s || NULL == most_s) {
        give_up("not enough memory");
    }
    for (size_t i = 0; i < count; ++i) {
        took_s[i] = size->series.samples[i].took_s;
    }
    MPI_Reduce(took_s, most_s, (int) count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < count && 0 == run->rank; ++i) {
        size->series.samples[i].took_s = most_s[i];
    }
    free(took_s);
    free(most_s);
}

/* What the library counted since `before`, over all ranks. */
static void combine_pvars(const run_t *run, const double *before, r2_bench_row_t *row)
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
static void combine_times(const run_t *run, size_run_t *size, r2_bench_row_t *row)
{
    double mean_s = 0;
    double sum_s = 0;

    for (size_t i = 0; i < size->series.count; ++i) {
        mean_s += size->series.samples[i].took_s / (double) size->series.count;
    }
    MPI_Reduce(&mean_s, &sum_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean_s, &row->min_s, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean_s, &row->max_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&size->payload.wrong, &row->wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    row->avg_s = sum_s / run->ranks;
    row->iterations = size->series.count;
}

static void report_size(run_t *run, const size_run_t *size, const r2_bench_row_t *row)
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

static void run_size(run_t *run, size_t bytes)
{
    double before[R2_BENCH_PVAR_COUNT];
    r2_bench_row_t row = {.bytes = bytes};
    size_run_t size;

    size_init(run, &size, bytes);
    warm_up(run, &size);
    r2_bench_pvars_read(&run->pvars, before);
    measure(run, &size);
    combine_pvars(run, before, &row);
    combine_times(run, &size, &row);
    slowest_times(run, &size);
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

/* ---- the program ---- */

/* Number of different processor names. */
static int count_hosts(int ranks)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    uint64_t *all = calloc((size_t) ranks, sizeof(*all));
    uint64_t mine;
    int length;
    int hosts = 0;

    if (NULL == all) {
        give_up("not enough memory");
    }
    MPI_Get_processor_name(name, &length);
    mine = r2_bench_data_hash(0, name, strlen(name));
    MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; ++i) {
        int k = 0;

        while (all[k] != all[i]) {
            ++k;
        }
        hosts += k == i ? 1 : 0;
    }
    free(all);
    return hosts;
}

/* Everything between MPI_Init and MPI_Finalize. @return exit status, the same on all ranks. */
static int run_all(run_t *run)
{
    const r2_bench_options_t *options = run->options;
    int ready = 1;
    int status = 0;

    if (!r2_bench_data_init(&run->data, options->type, run->ranks) && options->validate) {
        if (0 == run->rank) {
            fprintf(stderr, "%s: -c works for up to 4096 ranks\n", run->ops->program);
        }
        return 2;
    }
    run->type = mpi_type(options->type);
    run->hosts = count_hosts(run->ranks);
    if (0 == run->rank) {
        ready = r2_bench_report_init(&run->report, run->ops, options, run->ranks, run->hosts);
        if (!ready) {
            fprintf(stderr, "%s: %s: %s\n", run->ops->program, options->csv, strerror(errno));
        }
    }
    MPI_Bcast(&ready, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!ready) {
        return 1;
    }
    if (0 == run->rank) {
        r2_bench_report_head(&run->report);
    }
    r2_bench_pvars_init(&run->pvars);
    for (size_t bytes = options->min_bytes; bytes <= options->max_bytes; bytes *= 2) {
        run_size(run, bytes);
        if (bytes > SIZE_MAX / 2) {
            break;
        }
    }
    r2_bench_pvars_fini(&run->pvars);
    if (0 == run->rank) {
        if (options->validate || 0 != run->wrong) {
            r2_bench_report_validation(&run->report, run->turn, run->wrong);
        }
        status = 0 != run->wrong ? 1 : 0;
        if (0 != r2_bench_report_failed_faults(&run->report, run->injector->effects)) {
            status = 1;
        }
        if (!r2_bench_report_fini(&run->report)) {
            fprintf(stderr, "%s: %s could not be written\n", run->ops->program, options->csv);
            status = 1;
        }
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return status;
}

/* -h, -v and bad arguments: rank 0 speaks, all ranks end with the same status. */
static int answer(const r2_bench_ops_t *ops, r2_bench_request_t request, const char *error,
                  int rank)
{
    if (0 == rank && R2_BENCH_BAD == request) {
        fprintf(stderr, "%s: %s\n", ops->program, error);
        r2_bench_options_usage(ops, stderr);
    } else if (0 == rank && R2_BENCH_HELP == request) {
        r2_bench_options_usage(ops, stdout);
    } else if (0 == rank) {
        printf("%s %s\n", ops->program, R2_VERSION);
    }
    return R2_BENCH_BAD == request ? 2 : 0;
}

/* Rank before MPI_Init, from the launcher: Open MPI, PMIx, Slurm. A program on its own is rank
 * 0. */
static bool will_be_rank_0(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const char *value = getenv(names[i]);

        if (NULL != value) {
            return 0 == strcmp(value, "0");
        }
    }
    return true;
}

int r2_bench_main(int argc, char **argv, const r2_bench_ops_t *ops)
{
    r2_bench_options_t options;
    r2_bench_injector_t injector;
    run_t run = {.ops = ops, .options = &options, .injector = &injector};
    char error[256] = "";
    r2_bench_request_t request = r2_bench_options_init(&options, argc, argv, ops, error);
    int status;

    memset(&injector, 0, sizeof(injector));
    if (R2_BENCH_RUN == request && will_be_rank_0() &&
        !r2_bench_injector_init(&injector, &options)) {
        fprintf(stderr, "%s: no helper process for --fault: %s\n", ops->program, strerror(errno));
        return 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    if (R2_BENCH_RUN != request) {
        status = answer(ops, request, error, run.rank);
    } else {
        if (0 == run.rank && 0 != options.faults_count && NULL == injector.effects) {
            give_up("--fault: the launcher does not tell the ranks before MPI_Init");
        }
        status = run_all(&run);
    }
    r2_bench_injector_fini(&injector);
    r2_bench_options_fini(&options);
    MPI_Finalize();
    return status;
}
