/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sums and medians over the iterations of one message size.
 */
#include "r2_config.h"

#include "series.h"

#include <stdlib.h>

static double end_of(const r2_bench_sample_t *sample)
{
    return sample->start_s + sample->took_s;
}

bool r2_bench_series_add(r2_bench_series_t *series, double start_s, double took_s)
{
    if (series->count == series->capacity) {
        size_t capacity = 0 == series->capacity ? 1024 : 2 * series->capacity;
        r2_bench_sample_t *samples = realloc(series->samples, capacity * sizeof(*samples));

        if (NULL == samples) {
            return false;
        }
        series->samples = samples;
        series->capacity = capacity;
    }
    series->samples[series->count].start_s = start_s;
    series->samples[series->count].took_s = took_s;
    ++series->count;
    return true;
}

void r2_bench_series_fini(r2_bench_series_t *series)
{
    free(series->samples);
    series->samples = NULL;
    series->count = 0;
    series->capacity = 0;
}

double r2_bench_series_rate(const r2_bench_series_t *series, double from_s, double to_s)
{
    double bytes = 0;
    double busy_s = 0;

    for (size_t i = 0; i < series->count; ++i) {
        const r2_bench_sample_t *sample = &series->samples[i];
        double begin_s = sample->start_s > from_s ? sample->start_s : from_s;
        double end_s = end_of(sample) < to_s ? end_of(sample) : to_s;

        if (end_s > begin_s && sample->took_s > 0) {
            bytes += series->wire_bytes * (end_s - begin_s) / sample->took_s;
            busy_s += end_s - begin_s;
        }
    }
    return busy_s > 0 ? bytes / busy_s * 1e-6 : 0;
}

size_t r2_bench_series_completed(const r2_bench_series_t *series, double from_s, double to_s)
{
    size_t completed = 0;

    for (size_t i = 0; i < series->count; ++i) {
        double end_s = end_of(&series->samples[i]);

        completed += end_s >= from_s && end_s < to_s ? 1 : 0;
    }
    return completed;
}

/* The end of the iteration before, or the start of the first. */
static double previous_end(const r2_bench_series_t *series, size_t i)
{
    return 0 == i ? series->samples[0].start_s : end_of(&series->samples[i - 1]);
}

double r2_bench_series_longest_gap(const r2_bench_series_t *series, double from_s, double to_s)
{
    double longest_s = 0;

    for (size_t i = 0; i < series->count; ++i) {
        double begin_s = previous_end(series, i);
        double end_s = end_of(&series->samples[i]);

        if (end_s > from_s && begin_s < to_s && end_s - begin_s > longest_s) {
            longest_s = end_s - begin_s;
        }
    }
    return longest_s;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double *values, size_t count)
{
    if (0 == count) {
        return 0;
    }
    qsort(values, count, sizeof(*values), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double r2_bench_series_median_gap(const r2_bench_series_t *series, double to_s)
{
    double *gaps = calloc(series->count + 1, sizeof(*gaps));
    size_t count = 0;
    double result;

    for (size_t i = 0; NULL != gaps && i < series->count; ++i) {
        if (end_of(&series->samples[i]) < to_s) {
            gaps[count++] = end_of(&series->samples[i]) - previous_end(series, i);
        }
    }
    result = median(gaps, count);
    free(gaps);
    return result;
}

double r2_bench_series_median_rate(const r2_bench_series_t *series, double to_s)
{
    double *rates = calloc(series->count + 1, sizeof(*rates));
    size_t count = 0;
    double result;

    for (size_t i = 0; NULL != rates && i < series->count; ++i) {
        if (end_of(&series->samples[i]) < to_s && series->samples[i].took_s > 0) {
            rates[count++] = series->wire_bytes / series->samples[i].took_s * 1e-6;
        }
    }
    result = median(rates, count);
    free(rates);
    return result;
}

double r2_bench_series_percentile(const r2_bench_series_t *series, unsigned percent)
{
    double *times = calloc(series->count + 1, sizeof(*times));
    size_t rank = (series->count * percent + 99) / 100; /* the nearest one: at least one */
    double result = 0;

    for (size_t i = 0; NULL != times && i < series->count; ++i) {
        times[i] = series->samples[i].took_s;
    }
    if (NULL != times && rank > 0) {
        qsort(times, series->count, sizeof(*times), compare);
        result = times[rank - 1];
    }
    free(times);
    return result;
}
