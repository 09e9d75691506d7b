/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The measured loop.
 */
#include "r2_config.h"

#include <mpi.h>
#include <stdio.h>

#include "calls.h"
#include "run.h"

/* With --seconds, rank 0 says how many iterations follow until it is asked again. */
static const double ASK_EVERY_S = 0.05;

/* How late a rank enters the barrier that is checked. */
static const double LATE_S = 1e-4;

static void call_once(const r2_bench_run_t *run, r2_bench_size_t *size)
{
    r2_bench_call_blocking(run->task->kind->id, &size->payload.call);
}

void r2_bench_warm_up(r2_bench_run_t *run, r2_bench_size_t *size)
{
    uint64_t count = r2_bench_options_warmup(run->options, size->payload.size_bytes);

    r2_bench_payload_prepare(&size->payload, 0);
    for (uint64_t i = 0; i < count; ++i) {
        r2_bench_payload_turn(&size->payload, i);
        call_once(run, size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* No rank may leave a barrier before the last one has entered it. @return false if this one did. */
static bool check_times(const r2_bench_run_t *run, r2_bench_size_t *size, uint64_t turn,
                        double entered_s, double left_s)
{
    int late = r2_bench_clock_check(&run->clock, run->rank, entered_s, left_s);
    char text[80];

    if (late >= 0) {
        snprintf(text, sizeof(text), "left the barrier before rank %d had entered it", late);
        r2_bench_payload_complain(&size->payload, turn, text);
    }
    return late < 0;
}

/* Checks the barrier that was timed, and one more that a rank enters late. */
static void check_barrier(const r2_bench_run_t *run, r2_bench_size_t *size, uint64_t turn,
                          double start_s, double end_s)
{
    bool planted =
        R2_BENCH_PLANT_EARLY == run->options->plant && 1 == turn && run->rank == run->ranks - 1;
    bool right = check_times(run, size, turn, start_s, end_s);
    double begin_s = r2_bench_now_s();
    double entered_s = begin_s;

    while (run->rank == (int) (turn % (uint64_t) run->ranks) && entered_s < begin_s + LATE_S) {
        entered_s = r2_bench_now_s();
    }
    call_once(run, size);
    right =
        check_times(run, size, turn, entered_s, planted ? begin_s - 1 : r2_bench_now_s()) && right;
    size->payload.wrong += right ? 0 : 1;
}

/* One measured iteration. */
static void iterate(r2_bench_run_t *run, r2_bench_size_t *size)
{
    bool checked = run->options->validate || run->options->digest;
    uint64_t turn = run->turn++;
    double start_s, end_s;

    r2_bench_payload_turn(&size->payload, turn);
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
        r2_bench_give_up("not enough memory for the times of all iterations");
    }
    if (checked) {
        r2_bench_payload_check(&size->payload, turn);
    }
    if (run->options->validate && R2_BENCH_BARRIER == run->task->kind->id) {
        check_barrier(run, size, turn, start_s, end_s);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == run->rank) {
        r2_bench_injector_poll(run->injector);
        r2_bench_report_progress(&run->report, size->payload.size_bytes, &size->series,
                                 end_s - run->zero_s);
    }
}

/* With --seconds: how many iterations to run now. 0: time is up. The same on all ranks. */
static uint64_t next_share(const r2_bench_run_t *run, const r2_bench_size_t *size, double begin_s)
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

void r2_bench_measure(r2_bench_run_t *run, r2_bench_size_t *size)
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
