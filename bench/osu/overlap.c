/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A computation of known length, and calls that are to hide behind it.
 */
#include "r2_config.h"

#include "overlap.h"

#include <stddef.h>

#include "injector.h"

enum {
    NUMBERS = 64, /* that the computation works on: stays in the first cache */
    TRIALS = 5,   /* of the computation's speed: the fastest counts */
};

static const double TRIAL_S = 1e-3; /* at least that long */

static double numbers[NUMBERS];

/* Work that ends after some rounds, whatever happens beside it. */
static void compute(uint64_t rounds)
{
    volatile double *place = numbers; /* or the compiler does without the work */

    for (; rounds > 0; --rounds) {
        double x = place[rounds % NUMBERS];

        place[rounds % NUMBERS] = x * 0.5 + 1;
    }
}

static double compute_s(uint64_t rounds)
{
    double begin_s = r2_bench_now_s();

    compute(rounds);
    return r2_bench_now_s() - begin_s;
}

/* Rounds in a second: others on this core make a trial slower, none makes it faster. */
static double compute_rate(void)
{
    uint64_t rounds = 1000;
    double best_s;

    while (compute_s(rounds) < TRIAL_S) {
        rounds *= 2;
    }
    best_s = compute_s(rounds);
    for (int i = 1; i < TRIALS; ++i) {
        double took_s = compute_s(rounds);

        best_s = took_s < best_s ? took_s : best_s;
    }
    return (double) rounds / best_s;
}

void r2_bench_overlap_init(r2_bench_overlap_t *overlap, double pure_s, uint64_t tests)
{
    const r2_bench_overlap_times_t none = {.pure_s = pure_s};

    overlap->rounds = (uint64_t) (pure_s * compute_rate());
    overlap->tests = tests;
    overlap->completed = 0;
    overlap->times = none;
}

/* The computation, with tests between equal parts of it. */
static void compute_and_test(r2_bench_overlap_t *overlap, MPI_Request *request)
{
    uint64_t parts = overlap->tests + 1;
    uint64_t left = overlap->rounds;
    int flag;

    for (uint64_t i = 0; i < parts; ++i) {
        uint64_t share = left / (parts - i);
        double begin_s;

        overlap->times.compute_s += compute_s(share);
        left -= share;
        if (i + 1 < parts) {
            begin_s = r2_bench_now_s();
            MPI_Test(request, &flag, MPI_STATUS_IGNORE);
            overlap->times.test_s += r2_bench_now_s() - begin_s;
        }
    }
}

void r2_bench_overlap_call(r2_bench_overlap_t *overlap, r2_bench_kind_id_t id,
                           const r2_bench_call_t *call)
{
    double begin_s = r2_bench_now_s();
    MPI_Request request;

    r2_bench_call_start(id, call, &request);
    overlap->times.start_s += r2_bench_now_s() - begin_s;
    compute_and_test(overlap, &request);
    begin_s = r2_bench_now_s();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    overlap->times.wait_s += r2_bench_now_s() - begin_s;
    ++overlap->completed;
}

void r2_bench_overlap_means(const r2_bench_overlap_t *overlap, r2_bench_overlap_times_t *times_p)
{
    double n = overlap->completed > 0 ? (double) overlap->completed : 1;

    *times_p = overlap->times;
    times_p->start_s /= n;
    times_p->compute_s /= n;
    times_p->test_s /= n;
    times_p->wait_s /= n;
}

double r2_bench_overlap_percent(const r2_bench_overlap_times_t *times, double overall_s)
{
    double seen_s = overall_s - times->compute_s;
    double percent = times->pure_s > 0 ? 100 - 100 * seen_s / times->pure_s : 0;

    return percent > 100 ? 100 : percent > 0 ? percent : 0;
}
