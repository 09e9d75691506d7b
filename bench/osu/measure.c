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

/* With --seconds, the part of them that is spent before, on calls without computation. */
static const double PURE_SHARE = 0.2;

/* How late a rank enters the barrier that is checked. */
static const double LATE_S = 1e-4;

/* A call, from its start to its end. */
static void call_once(const r2_bench_run_t *run, r2_bench_size_t *size)
{
    r2_bench_kind_id_t id = run->task->kind->id;
    MPI_Request request;

    if (R2_BENCH_NO_PAIRS != run->task->kind->way) {
        r2_bench_pairs_call(&size->pairs, run->task->kind->way, &size->payload.call);
        return;
    }
    switch (run->task->form) {
    case R2_BENCH_BLOCKING:
        r2_bench_call_blocking(id, &size->payload.call);
        break;
    case R2_BENCH_NONBLOCKING:
        r2_bench_call_start(id, &size->payload.call, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case R2_BENCH_PERSISTENT:
        MPI_Start(&size->request);
        MPI_Wait(&size->request, MPI_STATUS_IGNORE);
        break;
    }
}

/* What is timed: the call, and the computation beside a nonblocking one. */
static void call_measured(const r2_bench_run_t *run, r2_bench_size_t *size)
{
    if (R2_BENCH_NONBLOCKING == run->task->form) {
        r2_bench_overlap_call(&size->overlap, run->task->kind->id, &size->payload.call);
    } else {
        call_once(run, size);
    }
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
        R2_BENCH_PLANT_EARLY == r2_bench_options_plant(run->options, run->task->kind, turn) &&
        run->rank == run->ranks - 1;
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
    bool pairs = R2_BENCH_NO_PAIRS != run->task->kind->way;
    uint64_t turn = run->turn++;
    double start_s, end_s;

    r2_bench_payload_turn(&size->payload, turn);
    if (checked) {
        r2_bench_payload_prepare(&size->payload, turn);
        MPI_Barrier(MPI_COMM_WORLD);
        if (pairs) {
            r2_bench_pairs_meet(&size->pairs, MPI_COMM_WORLD);
        }
    }
    if (0 == run->rank) {
        r2_bench_injector_iteration(run->injector, turn);
    }
    start_s = r2_bench_now_s();
    call_measured(run, size);
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
    if (!pairs) { /* they wait for each other anyway */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (0 == run->rank) {
        r2_bench_injector_poll(run->injector);
        r2_bench_report_progress(&run->report, size->payload.size_bytes, &size->series,
                                 end_s - run->zero_s);
    }
}

/* Iterations that go on for some seconds: the same number on all ranks. */
typedef struct share {
    double begin_s;
    double seconds;
    uint64_t done;
} share_t;

/* How many iterations to run now. 0: time is up. */
static uint64_t next_share(const r2_bench_run_t *run, share_t *share)
{
    uint64_t count = 1;
    double now_s = r2_bench_now_s() - share->begin_s;

    if (0 == run->rank) {
        double left_s = share->seconds - now_s;

        if (left_s <= 0) {
            count = 0;
        } else if (share->done > 0) {
            double each_s = now_s / (double) share->done;
            double span_s = left_s < ASK_EVERY_S ? left_s : ASK_EVERY_S;

            count = 1 + (uint64_t) (span_s / each_s);
        }
    }
    MPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    share->done += count;
    return count;
}

/* Iterations by number or by time. */
static void repeat(r2_bench_run_t *run, r2_bench_size_t *size, double begin_s, double seconds,
                   void (*body)(r2_bench_run_t *run, r2_bench_size_t *size))
{
    share_t share = {.begin_s = begin_s, .seconds = seconds};
    uint64_t count;

    if (0 == seconds) {
        for (count = r2_bench_options_iterations(run->options, size->payload.size_bytes); count > 0;
             --count) {
            body(run, size);
        }
        return;
    }
    for (count = next_share(run, &share); count > 0; count = next_share(run, &share)) {
        for (; count > 0; --count) {
            body(run, size);
        }
    }
}

/* A nonblocking call without computation. */
static void call_pure(r2_bench_run_t *run, r2_bench_size_t *size)
{
    double begin_s = r2_bench_now_s();

    call_once(run, size);
    size->overlap.times.pure_s += r2_bench_now_s() - begin_s;
    ++size->overlap.completed;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Makes the computation as long as a call takes without it. */
static void find_length(r2_bench_run_t *run, r2_bench_size_t *size)
{
    r2_bench_overlap_t *overlap = &size->overlap;
    double pure_s;

    MPI_Barrier(MPI_COMM_WORLD);
    repeat(run, size, r2_bench_now_s(), run->options->seconds * PURE_SHARE, call_pure);
    pure_s = overlap->times.pure_s / (double) overlap->completed;
    MPI_Allreduce(MPI_IN_PLACE, &pure_s, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    r2_bench_overlap_init(overlap, pure_s / run->ranks, run->options->tests);
}

void r2_bench_measure(r2_bench_run_t *run, r2_bench_size_t *size)
{
    double begin_s;

    if (R2_BENCH_NONBLOCKING == run->task->form) {
        find_length(run, size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    begin_s = r2_bench_now_s();
    if (0 == run->zero_s) {
        run->zero_s = begin_s;
        if (0 == run->rank) {
            r2_bench_injector_begin(run->injector, begin_s);
        }
    }
    repeat(run, size, begin_s, run->options->seconds, iterate);
}
