/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Prints the table of a benchmark.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <stdio.h>

#include "report.h"

/* A barrier has none. */
static bool has_sizes(const r2_bench_report_t *report)
{
    return R2_BENCH_NO_DATA != report->task->kind->result;
}

const unsigned r2_bench_tails[R2_BENCH_TAILS] = {50, 90, 99};

/* Column names or a row of numbers: the columns are named once. */
typedef struct line {
    const r2_bench_report_t *report;
    const r2_bench_row_t *row; /* NULL: names */
} line_t;

static void print_number(const line_t *line, int width, const char *name, int decimals,
                         double value)
{
    if (NULL == line->row) {
        printf("%*s", width, name);
    } else {
        printf("%*.*f", width, decimals, value);
    }
}

static void print_word(const line_t *line, int width, const char *name, const char *word)
{
    printf("%*s", width, NULL == line->row ? name : word);
}

static r2_bench_way_t way_of(const line_t *line)
{
    return line->report->task->kind->way;
}

/* Microseconds from the start to the end of a message: half a round trip. */
static double latency_us(const line_t *line, double call_s)
{
    return (R2_BENCH_PING_PONG == way_of(line) ? call_s / 2 : call_s) * 1e6;
}

static void print_latency(const line_t *line, const r2_bench_row_t *row)
{
    print_number(line, 15, "Avg Latency(us)", 2, latency_us(line, row->avg_s));
    if (line->report->options->full) {
        print_number(line, 18, "Min Latency(us)", 2, latency_us(line, row->min_s));
        print_number(line, 18, "Max Latency(us)", 2, latency_us(line, row->max_s));
        print_number(line, 12, "Iterations", 0, (double) row->iterations);
    }
}

/* Where the time of a nonblocking collective went. */
static void print_overlap(const line_t *line, const r2_bench_row_t *row)
{
    const r2_bench_overlap_times_t *times = &row->overlap;

    print_number(line, 15, "Overall(us)", 2, row->avg_s * 1e6);
    print_number(line, 18, "Compute(us)", 2, times->compute_s * 1e6);
    if (line->report->options->full) {
        print_number(line, 18, "Coll. Init(us)", 2, times->start_s * 1e6);
        print_number(line, 18, "MPI_Test(us)", 2, times->test_s * 1e6);
        print_number(line, 18, "MPI_Wait(us)", 2, times->wait_s * 1e6);
    }
    print_number(line, 18, "Pure Comm.(us)", 2, times->pure_s * 1e6);
    print_number(line, 18, "Overlap(%)", 2, r2_bench_overlap_percent(times, row->avg_s));
}

/* Windows of messages: @return MB/s of all pairs. */
static double pairs_rate(const line_t *line, double call_s, double bytes)
{
    double windows = R2_BENCH_BOTH_WAYS == way_of(line) ? 2 : line->report->ranks / 2;

    return call_s > 0 ? windows * bytes / call_s * 1e-6 : 0;
}

/* @param bytes of a window */
static void print_pairs(const line_t *line, const r2_bench_row_t *row, double bytes)
{
    double rate = pairs_rate(line, row->avg_s, bytes);

    if (line->report->task->kind->many_pairs) {
        print_number(line, 15, "MB/s", 2, rate);
        print_number(line, 18, "Messages/s", 2,
                     row->bytes > 0 ? rate * 1e6 / (double) row->bytes : 0);
    } else {
        print_number(line, 15, "Bandwidth(MB/s)", 2, rate);
    }
    if (line->report->options->full) {
        print_number(line, 12, "Iterations", 0, (double) row->iterations);
    }
}

static void print_tails(const line_t *line, const r2_bench_row_t *row, double bytes)
{
    bool windows = way_of(line) >= R2_BENCH_ONE_WAY;
    char name[32];

    for (int i = 0; i < R2_BENCH_TAILS; ++i) {
        snprintf(name, sizeof(name), "P%u Tail %s", r2_bench_tails[i],
                 windows ? "BW(MB/s)" : "Lat(us)");
        print_number(line, 18, name, 2,
                     windows ? pairs_rate(line, row->tail_s[i], bytes)
                             : latency_us(line, row->tail_s[i]));
    }
}

static void print_bus(const line_t *line, double call_s, double bytes)
{
    double line_rate = line->report->options->line_rate;
    double rate = call_s > 0 ? bytes / call_s * 1e-6 : 0;

    if (R2_BENCH_NO_PAIRS == way_of(line)) {
        print_number(line, 15, "Bus BW(MB/s)", 2, rate);
    }
    if (line_rate > 0) {
        print_number(line, 9, "% line", 1, 100 * rate / line_rate);
    }
}

/* A line of the table. @param row NULL: the names of the columns. */
static void print_line(const r2_bench_report_t *report, const r2_bench_row_t *row, double bytes)
{
    static const r2_bench_row_t none;
    const line_t line = {.report = report, .row = row};
    bool overlapped = R2_BENCH_NONBLOCKING == report->task->form;
    char word[32];

    row = NULL == row ? &none : row;
    if (has_sizes(report)) {
        snprintf(word, sizeof(word), "%zu", row->bytes);
        print_word(&line, -16, "# Size", word);
    } else {
        print_word(&line, 2, "# ", "");
    }
    if (overlapped) {
        print_overlap(&line, row);
    } else if (way_of(&line) >= R2_BENCH_ONE_WAY) {
        print_pairs(&line, row, bytes);
    } else {
        print_latency(&line, row);
    }
    if (report->options->tails) {
        print_tails(&line, row, bytes);
    }
    if (report->options->validate) {
        print_word(&line, 13, "Validation", 0 == row->wrong ? "Pass" : "Fail");
    }
    if (has_sizes(report)) {
        print_bus(&line, overlapped ? row->overlap.pure_s : row->avg_s, bytes);
    }
    if (report->options->digest) {
        snprintf(word, sizeof(word), "%016" PRIx64, row->digest);
        print_word(&line, 18, "Digest", word);
    }
    printf("\n");
    fflush(stdout);
}

void r2_bench_report_head(const r2_bench_report_t *report)
{
    const r2_bench_kind_t *kind = report->task->kind;

    if (NULL != report->csv && report->options->types_count > 1) {
        fprintf(report->csv, "# type %s\n", r2_bench_type_name(report->options->type));
    }
    printf("# r2 MPI %s%s%s Test v%s, %s\n", r2_bench_form_title(report->task->form), kind->title,
           R2_BENCH_NO_PAIRS == kind->way ? " Latency" : "", R2_VERSION,
           r2_bench_type_name(report->options->type));
    if (R2_BENCH_IN_HOST != report->options->place) {
        printf("# buffers: %s\n", r2_bench_place_name(report->options->place));
    }
    printf("# %d rank%s on %d host%s", report->ranks, 1 == report->ranks ? "" : "s", report->hosts,
           1 == report->hosts ? "" : "s");
    if (kind->way >= R2_BENCH_ONE_WAY) {
        printf("; pairs: %d, window size: %" PRIu64, report->ranks / 2, report->options->window);
    } else if (has_sizes(report) && R2_BENCH_NO_PAIRS == kind->way) {
        printf("; bus bandwidth = %s / %s, h = %d %s", r2_bench_kind_bus_text(kind),
               R2_BENCH_NONBLOCKING == report->task->form ? "pure communication" : "avg latency",
               1 == report->hosts ? report->ranks : report->hosts,
               1 == report->hosts ? "(ranks)" : "(hosts)");
    }
    printf("\n");
    if (R2_BENCH_NONBLOCKING == report->task->form) {
        printf("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n");
    }
    print_line(report, NULL, 0);
}

void r2_bench_report_row(const r2_bench_report_t *report, const r2_bench_row_t *row,
                         const r2_bench_series_t *series)
{
    print_line(report, row, series->wire_bytes);
}
