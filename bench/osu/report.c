/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Prints tables, CSV and progress of the benchmarks.
 */
#include "r2_config.h"

#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A fault that took effect, in the order of time. */
typedef struct mark {
    double at_s; /* as the series */
    const r2_bench_fault_t *fault;
} mark_t;

bool r2_bench_report_init(r2_bench_report_t *report, const r2_bench_task_t *task,
                          const r2_bench_options_t *options, int ranks, int hosts)
{
    memset(report, 0, sizeof(*report));
    report->task = task;
    report->options = options;
    report->ranks = ranks;
    report->hosts = hosts;
    report->terminal = isatty(STDERR_FILENO);
    report->next_progress_s = 1;
    report->progress = options->progress || report->terminal;
    if (NULL == options->csv) {
        return true;
    }
    report->csv = fopen(options->csv, "w");
    if (NULL == report->csv) {
        return false;
    }
    fprintf(report->csv, "# program %s\n# ranks %d\n# hosts %d\n", task->program, ranks, hosts);
    if (options->line_rate > 0) {
        fprintf(report->csv, "# line_rate %g\n", options->line_rate);
    }
    fprintf(report->csv, "time_s,iteration,bytes,latency_us,bus_mb_per_s\n");
    return 0 == fflush(report->csv);
}

bool r2_bench_report_fini(r2_bench_report_t *report)
{
    FILE *csv = report->csv;
    bool bad;

    report->csv = NULL;
    if (NULL == csv) {
        return true;
    }
    bad = 0 != ferror(csv);
    return 0 == fclose(csv) && !bad;
}

/* A number, or "-" if it is negative, that is unknown. */
static void print_known(const char *label, double value, double scale, const char *unit)
{
    if (value < 0) {
        printf("%s -", label);
    } else {
        printf("%s %.*f%s", label, scale < 1 ? 1 : 0, value * scale, unit);
    }
}

void r2_bench_report_validation(const r2_bench_report_t *report, uint64_t iterations,
                                uint64_t wrong)
{
    printf("# validation: %" PRIu64 " iterations on %d rank%s, %" PRIu64 " wrong results\n",
           iterations, report->ranks, 1 == report->ranks ? "" : "s", wrong);
    fflush(stdout);
}

/* ---- faults ---- */

static int compare_marks(const void *a, const void *b)
{
    double x = ((const mark_t *) a)->at_s;
    double y = ((const mark_t *) b)->at_s;

    return (x > y) - (x < y);
}

/* Faults that were carried out. @param marks_p [faults_count] @return how many. */
static unsigned collect_marks(const r2_bench_options_t *options, const r2_bench_effect_t *effects,
                              double zero_s, mark_t *marks_p)
{
    unsigned count = 0;

    for (unsigned i = 0; i < options->faults_count; ++i) {
        if (effects[i].done && 0 == effects[i].status) {
            marks_p[count].at_s = effects[i].at_s - zero_s;
            marks_p[count].fault = &options->faults[i];
            ++count;
        }
    }
    qsort(marks_p, count, sizeof(*marks_p), compare_marks);
    return count;
}

static bool same_place(const r2_bench_fault_t *a, const r2_bench_fault_t *b)
{
    return 0 == strcmp(a->words[a->words_count - 1], b->words[b->words_count - 1]) &&
           0 == strcmp(a->words[a->words_count - 2], b->words[b->words_count - 2]);
}

/* Is the word "heal" among those before host and rail? */
static bool is_heal(const r2_bench_fault_t *fault)
{
    for (unsigned i = 0; i + 2 < fault->words_count; ++i) {
        if (0 == strcmp(fault->words[i], "heal")) {
            return true;
        }
    }
    return false;
}

/* Is anything broken after the first `count` marks? */
static bool broken_after(const mark_t *marks, unsigned count)
{
    for (unsigned i = 0; i < count; ++i) {
        bool healed = is_heal(marks[i].fault);

        for (unsigned j = i + 1; j < count && !healed; ++j) {
            healed = is_heal(marks[j].fault) && same_place(marks[i].fault, marks[j].fault);
        }
        if (!healed) {
            return true;
        }
    }
    return false;
}

static void print_share(double value, double whole)
{
    if (value > 0 && whole > 0) {
        printf("%11.1f", 100 * value / whole);
    } else {
        printf("%11s", "-");
    }
}

/* Longest gap in the second after the fault, and how much longer that is than usual; before the
 * first fault the usual one. */
static void print_gap(const r2_bench_series_t *series, const mark_t *mark, double usual_s)
{
    double gap_s =
        NULL != mark ? r2_bench_series_longest_gap(series, mark->at_s, mark->at_s + 1) : usual_s;

    if (gap_s > 0) {
        printf("%10.1f", gap_s * 1e3);
    } else {
        printf("%10s", "-");
    }
    if (NULL != mark && gap_s > 0 && usual_s > 0) {
        printf("%11.1f", gap_s > usual_s ? (gap_s - usual_s) * 1e3 : 0.0);
    } else {
        printf("%11s", "-");
    }
    printf("  %s\n", NULL != mark ? mark->fault->text : "-");
}

void r2_bench_report_counters(const r2_bench_row_t *row)
{
    printf("# ");
    print_known("re-sent:", row->resent_bytes, 1, " bytes");
    print_known("; longest delivery gap:", row->gap_ns, 1e-6, " ms");
    print_known("; lanes failed:", row->lanes_failed, 1, "");
    print_known("; calls run by r2 on rank 0:", row->collectives, 1, "");
    printf("\n");
    fflush(stdout);
}

void r2_bench_report_phases(const r2_bench_report_t *report, const r2_bench_row_t *row,
                            const r2_bench_series_t *series, const r2_bench_effect_t *effects,
                            double zero_s)
{
    const r2_bench_options_t *options = report->options;
    mark_t *marks = calloc(options->faults_count + 1, sizeof(*marks));
    const r2_bench_sample_t *last = &series->samples[series->count - 1];
    double end_s = last->start_s + last->took_s;
    double from_s = series->samples[0].start_s;
    double healthy = 0;
    double usual_s = 0;
    unsigned count;

    if (NULL == marks) {
        return;
    }
    count = collect_marks(options, effects, zero_s, marks);
    if (0 == count || marks[0].at_s > end_s) {
        free(marks);
        return; /* nothing has happened yet */
    }
    printf("#\n# faults, %zu bytes: bus bandwidth; gap = longest time between the ends of two "
           "iterations\n"
           "# in the second after the fault; before the first fault the median; extra = gap less "
           "that\n"
           "# %-8s%9s%9s%12s%11s%11s%11s%10s%11s  %s\n",
           row->bytes, "Phase", "From(s)", "To(s)", "Iterations", "MB/s", "% healthy", "% line",
           "Gap(ms)", "Extra(ms)", "Fault");
    for (unsigned i = 0; i <= count; ++i) {
        const mark_t *mark = i > 0 ? &marks[i - 1] : NULL;
        double to_s = i < count ? marks[i].at_s : end_s;
        double rate;

        if (to_s < from_s || (NULL != mark && mark->at_s > end_s)) {
            continue; /* took effect before or after this size */
        }
        to_s = to_s < end_s ? to_s : end_s;
        rate = r2_bench_series_rate(series, from_s, to_s);
        if (NULL == mark) {
            healthy = rate;
            usual_s = r2_bench_series_median_gap(series, to_s);
        }
        printf("  %-8s%9.3f%9.3f%12zu%11.2f",
               NULL == mark             ? "before"
               : broken_after(marks, i) ? "during"
                                        : "after",
               from_s, to_s,
               r2_bench_series_completed(series, from_s, to_s == end_s ? to_s + 1 : to_s), rate);
        print_share(rate, healthy);
        print_share(rate, options->line_rate);
        print_gap(series, mark, usual_s);
        from_s = to_s;
    }
    fflush(stdout);
    free(marks);
}

unsigned r2_bench_report_failed_faults(const r2_bench_report_t *report,
                                       const r2_bench_effect_t *effects)
{
    const r2_bench_options_t *options = report->options;
    unsigned failed = 0;

    for (unsigned i = 0; i < options->faults_count; ++i) {
        const char *text = options->faults[i].text;

        if (!effects[i].done) {
            fprintf(stderr, "%s: fault '%s' was not carried out: the run ended first\n",
                    report->task->program, text);
            ++failed;
        } else if (0 != effects[i].status) {
            fprintf(stderr, "%s: fault '%s': %s %s: exit status %d\n", report->task->program, text,
                    options->fault_cmd, text, effects[i].status);
            ++failed;
        }
    }
    return failed;
}

/* ---- CSV ---- */

void r2_bench_report_csv(const r2_bench_report_t *report, size_t bytes,
                         const r2_bench_series_t *series, const r2_bench_effect_t *effects,
                         double zero_s)
{
    FILE *csv = report->csv;
    mark_t *marks;
    double end_s = 0;
    unsigned count = 0;

    if (NULL == csv) {
        return;
    }
    for (size_t i = 0; i < series->count; ++i) {
        const r2_bench_sample_t *sample = &series->samples[i];
        const double now_s = sample->start_s + sample->took_s;

        /* From our start, for as long as the slowest rank took, who may have begun before us: the
         * next one may seem to end sooner. */
        end_s = now_s > end_s ? now_s : end_s;
        fprintf(csv, "%.6f,%zu,%zu,%.2f,%.3f\n", end_s, i, bytes, sample->took_s * 1e6,
                sample->took_s > 0 ? series->wire_bytes / sample->took_s * 1e-6 : 0);
    }
    marks = calloc(report->options->faults_count + 1, sizeof(*marks));
    if (NULL != marks) {
        count = collect_marks(report->options, effects, zero_s, marks);
        for (unsigned i = 0; i < count; ++i) {
            if (marks[i].at_s >= series->samples[0].start_s) {
                fprintf(csv, "# fault %.6f %s\n", marks[i].at_s, marks[i].fault->text);
            }
        }
        fprintf(csv, "# healthy_median %.3f\n",
                r2_bench_series_median_rate(series, count > 0 ? marks[0].at_s : 1e300));
        free(marks);
    }
    fflush(csv);
}

/* ---- progress ---- */

void r2_bench_report_progress(r2_bench_report_t *report, size_t bytes,
                              const r2_bench_series_t *series, double now_s)
{
    double rate;

    if (!report->progress || now_s < report->next_progress_s || 0 == series->count) {
        return;
    }
    rate = r2_bench_series_rate(series, report->next_progress_s - 1, now_s);
    fprintf(stderr, "%s%s: %zu bytes, %.1f s, iteration %zu, %.2f MB/s%s",
            report->terminal ? "\r" : "", report->task->program, bytes, now_s, series->count, rate,
            report->terminal ? "   " : "\n");
    fflush(stderr);
    report->next_progress_s = now_s + 1;
    report->last_count = series->count;
}

void r2_bench_report_progress_end(r2_bench_report_t *report)
{
    if (report->progress && report->terminal && report->last_count > 0) {
        fprintf(stderr, "\n");
    }
    report->last_count = 0;
}
