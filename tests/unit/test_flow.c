/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Flow simulation against closed forms and the lower bound.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "sim/draws.h"
#include "sim/fair.h"
#include "sim/real.h"
#include "topology.h"

#define T_RATE  12.5e6
#define T_BYTES 16777216.0

static void t_close(double value, double wanted, double part)
{
    if (!(fabs(value - wanted) <= part * fabs(wanted))) {
        fail_msg("%.9g is not within %g %% of %.9g", value, part * 100, wanted);
    }
}

static void t_topo(topo_t *topo, uint32_t hosts, uint32_t rails)
{
    assert_int_equal(topo_init(topo, hosts, rails, T_RATE), R2_OK);
}

static void t_kill(topo_t *topo, uint32_t host, uint32_t rail)
{
    topo->left[host * topo->rail_count + rail] = 0;
}

static double t_predict(const topo_t *topo, const char *name)
{
    const predict_case_t ask = {.topo = topo, .bytes = T_BYTES};
    double seconds;

    assert_int_equal(predict_find(name)->predict(&ask, &seconds), R2_OK);
    return seconds;
}

static double t_bound(const topo_t *topo)
{
    const predict_case_t ask = {.topo = topo, .bytes = T_BYTES};

    return predict_bound(&ask);
}

static flow_result_t t_ops_of(const topo_t *topo, const char *name, uint64_t bytes)
{
    flow_result_t result;
    real_t real;

    assert_int_equal(real_build(&real, topo, R2_COLL_ALLREDUCE, bytes, name), R2_OK);
    assert_int_equal(real_run(&real, topo, NULL, NULL, &result), R2_OK);
    real_fini(&real);
    return result;
}

static flow_result_t t_ops(const topo_t *topo, const char *name)
{
    return t_ops_of(topo, name, (uint64_t) T_BYTES);
}

/* Three flows: two share port 0, the third shares the receiver with one of them. */
static void t_fair_rates(void **state)
{
    const double capacity[] = {10, 9, 100, 4};
    fair_flow_t flows[] = {{.out = 0, .in = 2, .out_count = 1, .in_count = 1},
                           {.out = 0, .in = 3, .out_count = 1, .in_count = 1},
                           {.out = 1, .in = 3, .out_count = 1, .in_count = 1}};
    fair_t fair;

    (void) state;
    assert_int_equal(fair_init(&fair, capacity, 4), R2_OK);
    assert_int_equal(fair_solve(&fair, flows, 3), R2_OK);
    t_close(flows[0].rate, 8, 1e-9);
    t_close(flows[1].rate, 2, 1e-9);
    t_close(flows[2].rate, 2, 1e-9);
    fair_fini(&fair);
}

static void t_healthy(void **state)
{
    (void) state;
    for (uint32_t hosts = 2; hosts <= 9; ++hosts) {
        topo_t topo;
        double ideal = 2.0 * (hosts - 1) / hosts * T_BYTES / (4 * T_RATE);

        t_topo(&topo, hosts, 4);
        t_close(t_bound(&topo), ideal, 1e-9);
        t_close(t_predict(&topo, "ring"), ideal, 1e-9);
        t_close(t_predict(&topo, "balance"), ideal, 1e-9);
        t_close(t_predict(&topo, "recursive"), ideal, 1e-3);
        t_close(t_predict(&topo, "direct"), ideal, 1e-9);
        t_close(t_predict(&topo, "weighted"), ideal, 1e-9);
        t_close(t_ops(&topo, "ring").seconds, ideal, 0.03);
        t_close(t_ops(&topo, "direct").seconds, ideal, 0.03);
        topo_fini(&topo);
    }
}

/* 4 hosts, one of 4 rails dead: X = 1/4 (docs/planner.md). */
static void t_one_failure(void **state)
{
    topo_t topo;
    double healthy;

    (void) state;
    t_topo(&topo, 4, 4);
    healthy = t_bound(&topo);
    t_kill(&topo, 1, 2);
    t_close(t_bound(&topo), healthy / 0.9375, 1e-9);
    t_close(t_predict(&topo, "ring"), healthy * 2, 1e-9);
    t_close(t_predict(&topo, "balance"), healthy / 0.75, 1e-9);
    t_close(t_predict(&topo, "direct"), healthy / 0.75, 1e-9);
    t_close(t_predict(&topo, "weighted"), t_bound(&topo), 1e-6);
    t_close(t_ops(&topo, "ring").seconds, healthy / 0.75, 0.03);
    t_close(t_ops(&topo, "direct").seconds, healthy / 0.75, 0.03);
    t_close(t_ops(&topo, "weighted").seconds, t_bound(&topo), 0.03);
    topo_fini(&topo);
}

/* X = 1/2 is behind the crossover n / (3 n - 2) = 0.4: the closed form of R2-AllReduce at its
 * Y*. */
static void t_two_rings(void **state)
{
    const double n = 4, x = 0.5, a = 2 * (n - 1) / n, b = 2 * (n - 2) / (n - 1);
    const double y = x + x * (1 - x) / (x + (n - 2) * n);
    const double unit = T_BYTES / (4 * T_RATE);
    topo_t topo;

    (void) state;
    t_topo(&topo, 4, 4);
    t_kill(&topo, 0, 0);
    t_kill(&topo, 0, 1);
    t_close(a * (1 - y) / (1 - x), b * y / x, 1e-9);
    t_close(t_predict(&topo, "r2-allreduce"), unit * (b * y / x + y / x), 1e-9);
    assert_true(t_predict(&topo, "r2-allreduce") < t_predict(&topo, "balance"));
    topo_fini(&topo);
}

/* Two neighbours that share two of four rails: re-ranking gives the ring the slowest host's
 * pace. */
static void t_rerank(void **state)
{
    topo_t topo;

    (void) state;
    t_topo(&topo, 6, 4);
    t_kill(&topo, 2, 0);
    t_kill(&topo, 3, 1);
    t_close(t_predict(&topo, "balance") / t_predict(&topo, "recursive"), 1.5, 0.1);
    topo_fini(&topo);
}

/* Random failures: nothing is faster than the bound, in either model. */
static void t_never_beats_bound(void **state)
{
    uint64_t random = 1;

    (void) state;
    for (unsigned run = 0; run < 60; ++run) {
        topo_t topo;
        size_t count;
        const predict_algorithm_t *all = predict_table(&count);
        double bound;

        t_topo(&topo, 3 + run % 6, 4);
        topo.flat = 0 == run % 3;
        for (unsigned f = 0; f < 1 + run % 5; ++f) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            /* rail 3 stays, so that all hosts can talk */
            t_kill(&topo, (uint32_t) (random >> 33) % topo.host_count,
                   (uint32_t) (random >> 60) % 3);
        }
        bound = t_bound(&topo);
        for (size_t a = 0; a < count; ++a) {
            assert_true(t_predict(&topo, all[a].name) >= bound * (1 - 1e-9));
        }
        assert_true(t_ops(&topo, "weighted").seconds >= bound * (1 - 1e-9));
        assert_true(t_ops(&topo, "direct").seconds >= bound * (1 - 1e-9));
        topo_fini(&topo);
    }
}

/* The model of classes against the ops that the planner builds. */
static void t_models_agree(void **state)
{
    (void) state;
    for (uint32_t hosts = 4; hosts <= 8; hosts += 4) {
        topo_t topo;

        t_topo(&topo, hosts, 4);
        t_kill(&topo, 0, 3);
        t_close(t_ops(&topo, "direct").seconds, t_predict(&topo, "direct"), 0.05);
        t_close(t_ops(&topo, "weighted").seconds, t_predict(&topo, "weighted"), 0.05);
        t_kill(&topo, 2, 1);
        t_close(t_ops(&topo, "weighted").seconds, t_predict(&topo, "weighted"), 0.08);
        t_kill(&topo, 2, 2);
        t_close(t_ops(&topo, "recursive").seconds, t_predict(&topo, "recursive"), 0.08);
        topo_fini(&topo);
    }
}

/* Little staging memory, 64 segments: hosts keep in step, so that no slot is waited for. */
static void t_staging(void **state)
{
    const uint64_t bytes = (uint64_t) 256 << 20;
    const struct {
        uint32_t hosts, dead;
    } cases[] = {{4, 0}, {8, 0}, {4, 1}, {4, 2}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        topo_t topo;
        double bound;

        t_topo(&topo, cases[i].hosts, 4);
        for (uint32_t rail = 0; rail < cases[i].dead; ++rail) {
            t_kill(&topo, 1, rail);
        }
        bound = predict_bound(&(predict_case_t){.topo = &topo, .bytes = (double) bytes});
        t_close(t_ops_of(&topo, "weighted", bytes).seconds, bound, 0.02);
        topo_fini(&topo);
    }
}

typedef struct t_pieces {
    double bytes, end_s;
    const topo_t *topo;
} t_pieces_t;

static void t_piece(void *arg, uint32_t from, uint32_t to, uint32_t rail, double begin_s,
                    double end_s, double rate)
{
    t_pieces_t *pieces = arg;

    assert_true(from < pieces->topo->host_count && to < pieces->topo->host_count);
    assert_true(from != to && end_s >= begin_s && rate > 0);
    assert_true(rate <= topo_rail(pieces->topo, from, rail) * (1 + 1e-9));
    assert_true(rate <= topo_rail(pieces->topo, to, rail) * (1 + 1e-9));
    pieces->bytes += (end_s - begin_s) * rate;
    pieces->end_s = r2_max(pieces->end_s, end_s);
}

/* What the trace tells is what was sent over rails: every byte, never over a dead rail. */
static void t_trace_of(uint32_t ranks, double end_part)
{
    t_pieces_t pieces = {.bytes = 0};
    flow_result_t result;
    real_t real;
    topo_t topo;

    t_topo(&topo, 5, 3);
    t_kill(&topo, 1, 2);
    assert_int_equal(topo_set_ranks(&topo, ranks), R2_OK);
    pieces.topo = &topo;
    assert_int_equal(
        real_build(&real, &topo, R2_COLL_ALLREDUCE, (uint64_t) T_BYTES, "hierarchical"), R2_OK);
    assert_int_equal(real_run(&real, &topo, t_piece, &pieces, &result), R2_OK);
    t_close(result.bytes, 2 * (topo.host_count - 1) * T_BYTES, 1e-4);
    t_close(pieces.bytes, result.bytes, 1e-3);
    assert_true(pieces.end_s <= result.seconds * (1 + 1e-9));
    t_close(pieces.end_s, result.seconds, end_part);
    real_fini(&real);
    topo_fini(&topo);
}

static void t_trace_is_complete(void **state)
{
    (void) state;
    t_trace_of(5, 1e-6);
    t_trace_of(8, 0.01); /* results are copied within hosts at last */
}

/* Two steps of one message each. */
static void t_latency(void **state)
{
    topo_t topo;
    double without;

    (void) state;
    t_topo(&topo, 4, 4);
    without = t_ops_of(&topo, "recursive-doubling", 4096).seconds;
    t_close(without, 2 * 4096 / (4 * T_RATE), 1e-6);
    topo.latency_s = 0.01;
    t_close(t_ops_of(&topo, "recursive-doubling", 4096).seconds, without + 2 * 0.01, 1e-6);
    topo_fini(&topo);
}

/* Schedules of a named algorithm and what of them went where. */
static flow_result_t t_ranks(topo_t *topo, const uint32_t *ranks, const char *name)
{
    uint32_t count = 0, at = 0;
    flow_result_t result;

    for (uint32_t h = 0; h < topo->host_count; ++h) {
        count += ranks[h];
    }
    assert_int_equal(topo_set_ranks(topo, count), R2_OK);
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        for (uint32_t i = 0; i < ranks[h]; ++i) {
            topo->host_of[at++] = h;
        }
    }
    result = t_ops(topo, name);
    /* every contribution goes somewhere to be added, and every result comes back */
    t_close(result.bytes + result.local_bytes, 2 * (count - 1) * T_BYTES, 1e-6);
    return result;
}

/*
 * n hosts, g of R ranks on each. Folded within hosts, rails carry 2 (n - 1) / n of the vector,
 * apart 2 g (R - g) / R of it on the host with most pairs. The copies within hosts are hidden.
 */
static void t_ranks_of_hosts(void **state)
{
    const struct {
        uint32_t hosts, ranks[4], pairs; /* most of any host */
    } cases[] = {{2, {2, 2}, 4},        {2, {4, 4}, 16},   {3, {2, 2, 2}, 8},
                 {4, {2, 2, 2, 2}, 12}, {3, {3, 2, 1}, 9}, {2, {1, 3}, 3}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        const double n = cases[i].hosts, unit = T_BYTES / (4 * T_RATE);
        flow_result_t folded, apart;
        topo_t topo;

        t_topo(&topo, cases[i].hosts, 4);
        folded = t_ranks(&topo, cases[i].ranks, "hierarchical");
        apart = t_ranks(&topo, cases[i].ranks, "direct");
        t_close(folded.bytes, 2 * (n - 1) * T_BYTES, 1e-6);
        t_close(folded.seconds, 2 * (n - 1) / n * unit, 0.05);
        t_close(apart.seconds, 2.0 * cases[i].pairs / topo.rank_count * unit, 0.05);
        topo_fini(&topo);
    }
}

/* One host: every rank copies out and in (R - 1) / R of the vector, twice, by itself. */
static void t_ranks_of_one_host(void **state)
{
    (void) state;
    for (uint32_t ranks = 2; ranks <= 8; ranks *= 2) {
        flow_result_t result;
        topo_t topo;

        t_topo(&topo, 1, 1);
        topo.reduce_rate = 1e9;
        result = t_ranks(&topo, &ranks, "direct");
        assert_true(0 == result.bytes && 0 == result.busiest);
        /* reducing, (R - 1) / R of the vector at the same rate, is hidden but for the last
         * segment */
        t_close(result.seconds, 4.0 * (ranks - 1) / ranks * T_BYTES / 1e9, 0.05);
        topo_fini(&topo);
    }
}

/* Short vectors: steps alone. Folding takes two more than the exchange, within hosts. */
static void t_ranks_latency(void **state)
{
    topo_t topo;

    (void) state;
    t_topo(&topo, 2, 4);
    assert_int_equal(topo_set_ranks(&topo, 4), R2_OK);
    topo.latency_s = 0.01;
    t_close(t_ops_of(&topo, "recursive-doubling", 64).seconds, 2 * 0.01, 1e-3);
    t_close(t_ops_of(&topo, "direct", 64).seconds, 2 * 0.01, 1e-3);
    t_close(t_ops_of(&topo, "hierarchical", 64).seconds, 4 * 0.01, 1e-3);
    topo_fini(&topo);
}

static void t_no_path(void **state)
{
    flow_result_t result;
    real_t real;
    topo_t topo;

    (void) state;
    t_topo(&topo, 3, 2);
    t_kill(&topo, 0, 0);
    t_kill(&topo, 1, 1);
    assert_int_equal(real_build(&real, &topo, R2_COLL_ALLREDUCE, 1 << 20, "ring"), R2_OK);
    assert_int_equal(real_run(&real, &topo, NULL, NULL, &result), R2_ERR_NO_PATH);
    assert_true(isinf(t_predict(&topo, "balance")));
    real_fini(&real);
    topo_fini(&topo);
}

/* A schedule without its last op does not fit to the others: an error, no wrong time. */
static void t_broken_schedule(void **state)
{
    flow_result_t result;
    real_t real;
    topo_t topo;

    (void) state;
    t_topo(&topo, 3, 2);
    assert_int_equal(real_build(&real, &topo, R2_COLL_ALLREDUCE, 1 << 20, "ring"), R2_OK);
    --real.schedules[1].op_count;
    assert_int_equal(real_run(&real, &topo, NULL, NULL, &result), R2_ERR_PARAM);
    ++real.schedules[1].op_count;
    real_fini(&real);
    topo_fini(&topo);
}

static void t_draws(draws_result_t *result_p, uint64_t seed, uint32_t last)
{
    topo_t topo;
    draws_case_t ask = {.topo = &topo,
                        .bytes = T_BYTES,
                        .failures_first = 1,
                        .failures_last = last,
                        .draw_count = 50,
                        .seed = seed,
                        .algorithm_count = 1};

    t_topo(&topo, 16, 8);
    ask.algorithms[0] = predict_find("weighted");
    assert_int_equal(draws_run(&ask, result_p), R2_OK);
    topo_fini(&topo);
}

static void t_seeds(void **state)
{
    draws_result_t a, b, c;

    (void) state;
    t_draws(&a, 7, 4);
    t_draws(&b, 7, 6);
    t_draws(&c, 8, 4);
    assert_memory_equal(a.cells, b.cells, 4 * sizeof(*a.cells));
    assert_memory_not_equal(a.cells, c.cells, 4 * sizeof(*a.cells));
    for (unsigned f = 1; f < 4; ++f) {
        assert_true(a.cells[f].over_healthy >= a.cells[f - 1].over_healthy);
    }
    draws_result_fini(&a);
    draws_result_fini(&b);
    draws_result_fini(&c);
}

static void t_too_many_failures(void **state)
{
    topo_t topo;
    draws_result_t result;
    draws_case_t ask = {.topo = &topo,
                        .bytes = 1,
                        .failures_first = 1,
                        .failures_last = 3,
                        .draw_count = 1,
                        .algorithm_count = 0};

    (void) state;
    t_topo(&topo, 3, 2);
    assert_int_equal(draws_run(&ask, &result), R2_OK);
    draws_result_fini(&result);
    ask.failures_first = ask.failures_last = 4;
    assert_int_equal(draws_run(&ask, &result), R2_ERR_PARAM);
    topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t_fair_rates),
        cmocka_unit_test(t_healthy),
        cmocka_unit_test(t_one_failure),
        cmocka_unit_test(t_two_rings),
        cmocka_unit_test(t_rerank),
        cmocka_unit_test(t_never_beats_bound),
        cmocka_unit_test(t_models_agree),
        cmocka_unit_test(t_staging),
        cmocka_unit_test(t_trace_is_complete),
        cmocka_unit_test(t_latency),
        cmocka_unit_test(t_ranks_of_hosts),
        cmocka_unit_test(t_ranks_of_one_host),
        cmocka_unit_test(t_ranks_latency),
        cmocka_unit_test(t_no_path),
        cmocka_unit_test(t_broken_schedule),
        cmocka_unit_test(t_seeds),
        cmocka_unit_test(t_too_many_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
