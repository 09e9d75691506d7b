/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The plot of r2_sim: SVG without other programs.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <math.h>

#include "r2/macros.h"
#include "sim/report.h"

/* Picture and the area of the curves, pixels. */
enum {
    PLOT_WIDTH = 860,
    PLOT_HEIGHT = 480,
    PLOT_LEFT = 70,
    PLOT_TOP = 50,
    PLOT_W = 560,
    PLOT_H = 370
};

/* Okabe and Ito, "Color Universal Design", 2008: told apart by everyone. */
static const char *const plot_colours[] = {"#d55e00", "#e69f00", "#cc79a7", "#0072b2",
                                           "#56b4e9", "#009e73", "#000000"};

typedef struct plot {
    const draws_case_t *ask;      /* borrowed */
    const draws_result_t *result; /* borrowed */
    double top;                   /* largest overhead shown, % */
    FILE *out;
} plot_t;

static double plot_x(const plot_t *plot, uint32_t failures)
{
    const uint32_t steps = plot->ask->failures_last - plot->ask->failures_first;

    return PLOT_LEFT + (0 == steps
                            ? PLOT_W / 2.0
                            : (double) PLOT_W * (failures - plot->ask->failures_first) / steps);
}

static double plot_y(const plot_t *plot, double percent)
{
    return PLOT_TOP + PLOT_H * (1 - r2_max(r2_min(percent, plot->top), 0.0) / plot->top);
}

static const draws_cell_t *plot_cell(const plot_t *plot, uint32_t failures, size_t algorithm)
{
    return &plot->result->cells[(size_t) (failures - plot->ask->failures_first) *
                                    plot->ask->algorithm_count +
                                algorithm];
}

/** A round number at or above the largest mean and percentile. */
static double plot_top(const plot_t *plot)
{
    double most = 1, unit;

    for (uint32_t f = plot->ask->failures_first; f <= plot->ask->failures_last; f++) {
        for (size_t a = 0; a < plot->ask->algorithm_count; a++) {
            most = r2_max(most, (plot_cell(plot, f, a)->over_healthy_p99 - 1) * 100);
        }
    }
    unit = pow(10, floor(log10(most)));
    return ceil(most / unit) * unit;
}

static void plot_axes(const plot_t *plot)
{
    const draws_case_t *ask = plot->ask;

    fprintf(plot->out,
            "<text x=\"%d\" y=\"28\" font-size=\"15\">allreduce of %.0f bytes, %" PRIu32
            " hosts x %" PRIu32 " rails, %" PRIu32 " draws</text>\n",
            PLOT_LEFT, ask->bytes, ask->topo->host_count, ask->topo->rail_count, ask->draw_count);
    for (int tick = 0; tick <= 5; tick++) {
        const double percent = plot->top * tick / 5;

        fprintf(plot->out,
                "<path d=\"M%d %.1fh%d\" stroke=\"#ddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g %%</text>\n",
                PLOT_LEFT, plot_y(plot, percent), PLOT_W, PLOT_LEFT - 6, plot_y(plot, percent) + 4,
                percent);
    }
    for (uint32_t f = ask->failures_first; f <= ask->failures_last; f++) {
        fprintf(plot->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu32 "</text>\n",
                plot_x(plot, f), PLOT_TOP + PLOT_H + 18, f);
    }
    fprintf(plot->out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">dead NICs</text>\n"
            "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">"
            "overhead</text>\n",
            PLOT_LEFT + PLOT_W / 2, PLOT_TOP + PLOT_H + 38, PLOT_TOP + PLOT_H / 2);
}

static double mean_of(const plot_t *plot, uint32_t failures, size_t a)
{
    return plot_cell(plot, failures, a)->over_healthy;
}

static double tail_of(const plot_t *plot, uint32_t failures, size_t a)
{
    return plot_cell(plot, failures, a)->over_healthy_p99;
}

static double bound_of(const plot_t *plot, uint32_t failures, size_t a)
{
    (void) a;
    return plot->result->bound_over_healthy[failures - plot->ask->failures_first];
}

/** One curve; a cell without any time is left out. */
static void plot_curve(const plot_t *plot, size_t a, const char *style,
                       double (*value_of)(const plot_t *plot, uint32_t failures, size_t a))
{
    fprintf(plot->out, "<polyline fill=\"none\" %s points=\"", style);
    for (uint32_t f = plot->ask->failures_first; f <= plot->ask->failures_last; f++) {
        const double value = value_of(plot, f, a);

        if (value > 0) {
            fprintf(plot->out, "%.1f,%.1f ", plot_x(plot, f), plot_y(plot, (value - 1) * 100));
        }
    }
    fprintf(plot->out, "\"/>\n");
}

static void plot_key(const plot_t *plot, size_t row, const char *colour, const char *text)
{
    const int x = PLOT_LEFT + PLOT_W + 20, y = PLOT_TOP + 14 + 22 * (int) row;

    fprintf(plot->out,
            "<path d=\"M%d %dh24\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"%d\" "
            "y=\"%d\">%s</text>\n",
            x, y - 4, colour, x + 30, y, text);
}

int report_plot(const draws_case_t *ask, const draws_result_t *result, FILE *out)
{
    plot_t plot = {.ask = ask, .result = result, .out = out};
    char style[128];

    plot.top = plot_top(&plot);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            PLOT_WIDTH, PLOT_HEIGHT);
    plot_axes(&plot);
    for (size_t a = 0; a < ask->algorithm_count; a++) {
        const char *colour = plot_colours[a % r2_array_count(plot_colours)];

        snprintf(style, sizeof(style), "stroke=\"%s\" stroke-width=\"2\"", colour);
        plot_curve(&plot, a, style, mean_of);
        snprintf(style, sizeof(style), "stroke=\"%s\" stroke-dasharray=\"3 4\"", colour);
        plot_curve(&plot, a, style, tail_of);
        plot_key(&plot, a, colour, ask->algorithms[a]->name);
    }
    plot_curve(&plot, 0, "stroke=\"#888\" stroke-dasharray=\"8 4\"", bound_of);
    plot_key(&plot, ask->algorithm_count, "#888", "bound (long dashes)");
    fprintf(out, "<text x=\"%d\" y=\"%d\">short dashes: 99th percentile</text>\n",
            PLOT_LEFT + PLOT_W + 20, PLOT_TOP + 14 + 22 * (int) (ask->algorithm_count + 1));
    fprintf(out, "</svg>\n");
    return 0 == fflush(out) && !ferror(out) ? 0 : -1;
}
