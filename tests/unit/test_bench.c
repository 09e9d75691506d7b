/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Data and arithmetic of the benchmarks: exact sums, hashes, throughput and gaps over time.
 */
#include "r2_config.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/osu/data.h"
#include "bench/osu/options.h"
#include "bench/osu/overlap.h"
#include "bench/osu/series.h"

enum { COUNT = 3000 }; /* more than one block, and not a whole number of blocks */

/* Compares with the exact sums of elements first .. first + count over all ranks. */
static bool is_sum(const r2_bench_data_t *data, const void *buffer, size_t first, size_t count,
                   uint64_t turn, r2_bench_wrong_t *wrong_p)
{
    const r2_bench_piece_t piece = {.to_rank = data->ranks, .first = first, .count = count};

    return r2_bench_data_check(data, buffer, &piece, turn, false, wrong_p);
}

/* For each number of ranks, float sums in two orders are exact and are what the check expects. */
static void test_sums_are_exact(void **state)
{
    static const int ranks[] = {1, 2, 3, 7, 64, 1000, 4096};
    static float part[COUNT], up[COUNT], down[COUNT];
    r2_bench_wrong_t wrong;
    r2_bench_data_t data;

    (void) state;
    for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); ++k) {
        int n = ranks[k];

        assert_true(r2_bench_data_init(&data, R2_BENCH_FLOAT, n));
        memset(up, 0, sizeof(up));
        memset(down, 0, sizeof(down));
        for (int r = 0; r < n; ++r) {
            r2_bench_data_fill(&data, part, COUNT, r, 5, false);
            for (size_t i = 0; i < COUNT; ++i) {
                up[i] += part[i];
            }
            r2_bench_data_fill(&data, part, COUNT, n - 1 - r, 5, false);
            for (size_t i = 0; i < COUNT; ++i) {
                down[i] += part[i];
            }
        }
        assert_true(is_sum(&data, up, 0, COUNT, 5, &wrong));
        assert_true(is_sum(&data, down, 0, COUNT, 5, &wrong));
        assert_true(is_sum(&data, up + 17, 17, COUNT - 17, 5, &wrong));
        assert_false(is_sum(&data, up, 1, COUNT - 1, 5, &wrong));
        assert_false(is_sum(&data, up, 0, COUNT, 6, &wrong));
        up[2047] += 1;
        assert_false(is_sum(&data, up, 0, COUNT, 5, &wrong));
        assert_int_equal(wrong.element, 2047);
        assert_true(wrong.got - wrong.expected == 1);
    }
    assert_false(r2_bench_data_init(&data, R2_BENCH_FLOAT, 5000));
}

/* A contribution that is missing, taken twice or from another iteration changes each element. */
static void test_sums_tell_the_ranks(void **state)
{
    static int part[COUNT], sum[COUNT];
    r2_bench_wrong_t wrong;
    r2_bench_data_t data;

    (void) state;
    assert_true(r2_bench_data_init(&data, R2_BENCH_INT, 4));
    for (int twice = 0; twice < 4; ++twice) {
        for (int missing = 0; missing < 4; ++missing) {
            memset(sum, 0, sizeof(sum));
            for (int r = 0; r < 4; ++r) {
                r2_bench_data_fill(&data, part, COUNT, r == missing ? twice : r, 9, false);
                for (size_t i = 0; i < COUNT; ++i) {
                    sum[i] += part[i];
                }
            }
            for (size_t i = 0; i < COUNT; i += 997) {
                assert_true((missing == twice) == is_sum(&data, sum + i, i, 1, 9, &wrong));
            }
        }
    }
}

/* Compares with the rounding data of one rank. */
static bool is_sent(const r2_bench_data_t *data, const float *buffer, int rank)
{
    const r2_bench_piece_t piece = {.from_rank = rank, .to_rank = rank + 1, .count = COUNT};
    r2_bench_wrong_t wrong;

    return r2_bench_data_check(data, buffer, &piece, 1, true, &wrong);
}

/* Sums of rounding data depend on the order; whole numbers of the exact kind do not. */
static void test_rounding(void **state)
{
    static float parts[3][COUNT];
    r2_bench_data_t data;
    size_t different = 0;

    (void) state;
    assert_true(r2_bench_data_init(&data, R2_BENCH_FLOAT, 3));
    for (int r = 0; r < 3; ++r) {
        r2_bench_data_fill(&data, parts[r], COUNT, r, 1, true);
        assert_true(is_sent(&data, parts[r], r));
        assert_false(is_sent(&data, parts[r], r + 1));
    }
    for (size_t i = 0; i < COUNT; ++i) {
        volatile float left = parts[0][i] + parts[1][i];
        volatile float right = parts[1][i] + parts[2][i];

        different += left + parts[2][i] != parts[0][i] + right ? 1 : 0;
    }
    assert_true(different > COUNT / 20);
}

static void test_hash(void **state)
{
    unsigned char bytes[100];
    uint64_t before;

    (void) state;
    for (size_t i = 0; i < sizeof(bytes); ++i) {
        bytes[i] = (unsigned char) i;
    }
    for (size_t length = 0; length < sizeof(bytes); ++length) {
        before = r2_bench_data_hash(1, bytes, length);
        assert_true(before == r2_bench_data_hash(1, bytes, length));
        assert_true(before != r2_bench_data_hash(2, bytes, length));
        assert_true(before != r2_bench_data_hash(1, bytes, length + 1));
        for (size_t i = 0; i < length; ++i) {
            bytes[i] ^= 0x80;
            assert_true(before != r2_bench_data_hash(1, bytes, length));
            bytes[i] ^= 0x80;
        }
    }
}

static void assert_near(double got, double expected)
{
    assert_true(got > expected - 1e-9 && got < expected + 1e-9);
}

/* Calls of 1 s each every 2 s, 1 MB on the wire; the third one takes 4 s. */
static void test_series(void **state)
{
    r2_bench_series_t series = {.wire_bytes = 1e6};

    (void) state;
    assert_near(r2_bench_series_rate(&series, 0, 10), 0);
    assert_near(r2_bench_series_longest_gap(&series, 0, 10), 0);
    assert_near(r2_bench_series_median_gap(&series, 10), 0);
    assert_near(r2_bench_series_percentile(&series, 50), 0);
    assert_true(r2_bench_series_add(&series, 0, 1));
    assert_true(r2_bench_series_add(&series, 2, 1));
    assert_true(r2_bench_series_add(&series, 4, 4));
    assert_true(r2_bench_series_add(&series, 9, 1));

    assert_near(r2_bench_series_rate(&series, 0, 4), 1); /* time between calls does not count */
    assert_near(r2_bench_series_rate(&series, 4, 8), 0.25);
    assert_near(r2_bench_series_rate(&series, 5, 6), 0.25); /* a part of a call */
    assert_near(r2_bench_series_rate(&series, 2.5, 5),
                0.5); /* 0.5 s of the second, 1 s of the third */
    assert_near(r2_bench_series_rate(&series, 8.1, 8.9), 0); /* none */
    assert_int_equal(r2_bench_series_completed(&series, 0, 8), 2);
    assert_int_equal(r2_bench_series_completed(&series, 8, 11), 2);
    assert_near(r2_bench_series_longest_gap(&series, 0, 2), 2);     /* 1 .. 3 */
    assert_near(r2_bench_series_longest_gap(&series, 3.5, 4.5), 5); /* 3 .. 8 */
    assert_near(r2_bench_series_longest_gap(&series, 11, 12), 0);
    assert_near(r2_bench_series_median_gap(&series, 8.5), 2); /* 1, 2, 5 */
    assert_near(r2_bench_series_median_gap(&series, 4), 1.5); /* 1, 2 */
    assert_near(r2_bench_series_median_rate(&series, 100), 1);
    assert_near(r2_bench_series_percentile(&series, 75), 1); /* 1, 1, 1, 4 */
    assert_near(r2_bench_series_percentile(&series, 76), 4);
    r2_bench_series_fini(&series);
}

/* A call of 10 s alone; with 10 s of computation it takes as long as is not hidden. */
static void test_overlap(void **state)
{
    const r2_bench_overlap_times_t times = {.pure_s = 10, .compute_s = 10};
    const r2_bench_overlap_times_t none = {.compute_s = 10};
    r2_bench_overlap_t overlap = {.completed = 3};
    r2_bench_overlap_times_t means;

    (void) state;
    assert_near(r2_bench_overlap_percent(&times, 10), 100);
    assert_near(r2_bench_overlap_percent(&times, 12.5), 75);
    assert_near(r2_bench_overlap_percent(&times, 20), 0);
    assert_near(r2_bench_overlap_percent(&times, 30), 0);
    assert_near(r2_bench_overlap_percent(&times, 9), 100);
    assert_near(r2_bench_overlap_percent(&none, 10), 0);
    r2_bench_overlap_init(&overlap, 0.5, 7);
    assert_true(overlap.rounds > 0 && 7 == overlap.tests && 0 == overlap.completed);
    r2_bench_overlap_means(&overlap, &means);
    assert_near(means.pure_s, 0.5);
    assert_near(means.compute_s, 0);
}

/* Arguments of `r2_bench NAME` as words. @return the request, and the options in *options_p. */
static r2_bench_request_t parse(const char *name, const char *words, r2_bench_options_t *options_p)
{
    char text[200], error[256];
    char *argv[20] = {(char *) (uintptr_t) name};
    char *rest = NULL;
    int argc = 1;
    r2_bench_task_t task;

    assert_true(r2_bench_task_init(&task, "r2_bench", name));
    strcpy(text, words);
    for (char *word = strtok_r(text, " ", &rest); NULL != word; word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    optind = 0; /* glibc: from the start, also after an error */
    return r2_bench_options_init(options_p, argc, argv, &task, error);
}

/* All sizes that options stand for, as text. */
static const char *sizes_of(const char *words)
{
    static char text[128];
    r2_bench_options_t options;
    int used = 0;

    if (R2_BENCH_RUN != parse("bcast", words, &options)) {
        return "bad";
    }
    text[0] = '\0';
    for (size_t bytes = r2_bench_options_first(&options); 0 != bytes;
         bytes = r2_bench_options_next(&options, bytes)) {
        used += snprintf(text + used, sizeof(text) - (size_t) used, "%zu ", bytes);
    }
    return text;
}

static void test_sizes(void **state)
{
    (void) state;
    assert_string_equal(sizes_of("-m 3:20"), "3 6 12 ");
    assert_string_equal(sizes_of("-m 4:16"), "4 8 16 ");
    assert_string_equal(sizes_of("-m 8,1000,1K,16M"), "8 1000 1024 16777216 ");
    assert_string_equal(sizes_of("-m 1,3,9 -T mpi_int"), "4 9 ");
    assert_string_equal(sizes_of("-m 8,9 -m 2:4"), "2 4 ");
    assert_string_equal(sizes_of("-m 8,8"), "bad");
    assert_string_equal(sizes_of("-m 8,4"), "bad");
    assert_string_equal(sizes_of("-m 8,"), "bad");
    assert_string_equal(sizes_of("-m ,8"), "bad");
    assert_string_equal(sizes_of("-m 0,8"), "bad");
    assert_string_equal(sizes_of("-m 4:8,16"), "bad");
}

static void test_options(void **state)
{
    const r2_bench_kind_t *bcast = r2_bench_kind_find("bcast");
    r2_bench_options_t options;

    (void) state;
    assert_int_equal(parse("bcast", "-x 7 -u 3", &options), R2_BENCH_RUN);
    assert_int_equal(r2_bench_options_warmup(&options, 8), 7);
    assert_int_equal(parse("bcast", "-x 7 -u 3 -c", &options), R2_BENCH_RUN);
    assert_int_equal(r2_bench_options_warmup(&options, 8), 3);
    assert_int_equal(parse("bcast", "-x 7 -c", &options), R2_BENCH_RUN);
    assert_int_equal(r2_bench_options_warmup(&options, 8), 7);
    assert_true(SIZE_MAX == options.mem_limit_bytes);
    assert_int_equal(parse("bcast", "-T all -k fixed:3 -M 1K", &options), R2_BENCH_RUN);
    assert_int_equal(options.types_count, 4);
    assert_int_equal(r2_bench_options_first(&options), 1);
    assert_int_equal(options.root, 3);
    assert_int_equal(options.mem_limit_bytes, 1024);
    assert_int_equal(parse("scan", "-T all", &options), R2_BENCH_RUN);
    assert_int_equal(options.types_count, 3);
    assert_int_equal(parse("scan", "-k rotate", &options), R2_BENCH_BAD);
    assert_int_equal(parse("bcast_persistent", "-k rotate", &options), R2_BENCH_BAD);
    assert_int_equal(parse("ibcast", "-k rotate -t 5", &options), R2_BENCH_RUN);
    assert_int_equal(parse("bcast", "-t 5", &options), R2_BENCH_BAD);
    assert_int_equal(parse("bcast", "-c --plant-error send", &options), R2_BENCH_BAD);
    assert_int_equal(parse("barrier", "-c --plant-error early", &options), R2_BENCH_RUN);
    assert_int_equal(parse("bcast", "-c --plant-error all", &options), R2_BENCH_RUN);
    assert_int_equal(r2_bench_options_plant(&options, bcast, 0), R2_BENCH_PLANT_NONE);
    assert_int_equal(r2_bench_options_plant(&options, bcast, 2), R2_BENCH_PLANT_HOLE);
    assert_int_equal(r2_bench_options_plant(&options, bcast, 3), R2_BENCH_PLANT_NONE);
    assert_int_equal(r2_bench_options_plant(&options, bcast, R2_BENCH_PLANT_ALL),
                     R2_BENCH_PLANT_NONE);
    assert_int_equal(parse("bw", "", &options), R2_BENCH_RUN);
    assert_int_equal(options.window, 64);
    assert_int_equal(parse("mbw_mr", "-W 3", &options), R2_BENCH_RUN);
    assert_int_equal(options.window, 3);
    assert_int_equal(parse("latency", "-W 3", &options), R2_BENCH_BAD);
    assert_int_equal(parse("bw", "-W 0", &options), R2_BENCH_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_exact), cmocka_unit_test(test_sums_tell_the_ranks),
        cmocka_unit_test(test_rounding),       cmocka_unit_test(test_hash),
        cmocka_unit_test(test_series),         cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
