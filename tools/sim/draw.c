/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A schedule as a picture.
 */
#include "r2_config.h"

#include "sim/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "r2/macros.h"

/* Pixels. A band has sending above its line and taking in below it. */
enum {
    DRAW_LEFT = 110,
    DRAW_NAME_CHARS = 14,
    DRAW_TOP = 46,
    DRAW_WIDTH = 900,
    DRAW_HALF = 22,
    DRAW_BAND = 52,
    DRAW_BOTTOM = 44
};
/* Heights that differ by less look alike, pixels. */
#define DRAW_STEP 0.25

enum { DRAW_BINS = 300, DRAW_DIRECTIONS = 2 };
/* More hosts have no band each: those with less than the others come first. */
enum { DRAW_BANDS_MAX = 32 };

typedef struct draw {
    const topo_t *topo; /* borrowed */
    uint32_t rails;
    double bin_s;
    uint32_t shown[DRAW_BANDS_MAX], shown_count; /* hosts that have a band, from top to bottom */
    double *bytes; /* owned; [((direction * hosts + host) * rails + rail) * bins + bin] */
} draw_t;

static size_t draw_at(const draw_t *draw, uint32_t direction, uint32_t host, uint32_t rail)
{
    return (((size_t) direction * draw->topo->host_count + host) * draw->rails + rail) * DRAW_BINS;
}

/** Spreads a piece over the bins that it touches. */
static void draw_piece(void *arg, uint32_t from, uint32_t to, uint32_t rail, double begin_s,
                       double end_s, double rate)
{
    const draw_t *draw = arg;
    double *out = &draw->bytes[draw_at(draw, 0, from, rail)];
    double *in = &draw->bytes[draw_at(draw, 1, to, rail)];

    for (uint32_t bin = (uint32_t) (begin_s / draw->bin_s); bin < DRAW_BINS; bin++) {
        const double low = r2_max(begin_s, bin * draw->bin_s);
        const double high = r2_min(end_s, (bin + 1) * draw->bin_s);

        if (high <= low) {
            break;
        }
        out[bin] += (high - low) * rate;
        in[bin] += (high - low) * rate;
    }
}

/** Evenly spaced hues. */
static void draw_colour(const draw_t *draw, uint32_t rail, char *text_p, size_t text_bytes)
{
    snprintf(text_p, text_bytes, "hsl(%u,65%%,55%%)",
             (unsigned) (210 + 360 * rail / draw->rails) % 360);
}

/** Height of `rails` rails stacked in one bin, pixels. */
static double draw_height(const draw_t *draw, uint32_t direction, uint32_t host, uint32_t rails,
                          uint32_t bin, double full_rate)
{
    double bytes = 0;

    for (uint32_t rail = 0; rail < rails; rail++) {
        bytes += draw->bytes[draw_at(draw, direction, host, rail) + bin];
    }
    return DRAW_HALF * bytes / draw->bin_s / full_rate;
}

/** One edge of an area, as steps from left to right or back; steps of equal height are one. */
static void draw_edge(const double *heights, double base, double sign, bool back, FILE *out)
{
    const double step = (double) DRAW_WIDTH / DRAW_BINS;

    for (int i = 0; i < DRAW_BINS; i++) {
        const int bin = back ? DRAW_BINS - 1 - i : i;
        const int next = back ? bin - 1 : bin + 1;

        if (0 == i) {
            fprintf(out, "%.1f,%.1f", DRAW_LEFT + (back ? DRAW_WIDTH : 0.0),
                    base + sign * heights[bin]);
        }
        if (i + 1 == DRAW_BINS || fabs(heights[bin] - heights[next]) >= DRAW_STEP) {
            fprintf(out, "H%.1f", DRAW_LEFT + (back ? bin : bin + 1) * step);
        }
        if (i + 1 < DRAW_BINS && fabs(heights[bin] - heights[next]) >= DRAW_STEP) {
            fprintf(out, "V%.1f", base + sign * heights[next]);
        }
    }
}

/** Area between the stacks below and with one rail. */
static void draw_area(const draw_t *draw, uint32_t direction, uint32_t band, uint32_t rail,
                      double full_rate, FILE *out)
{
    const uint32_t host = draw->shown[band];
    const double base = DRAW_TOP + DRAW_BAND * band + DRAW_BAND / 2.0;
    const double sign = 0 == direction ? -1 : 1;
    double with[DRAW_BINS], below[DRAW_BINS];
    char colour[32];

    for (uint32_t bin = 0; bin < DRAW_BINS; bin++) {
        with[bin] = draw_height(draw, direction, host, rail + 1, bin, full_rate);
        below[bin] = draw_height(draw, direction, host, rail, bin, full_rate);
    }
    draw_colour(draw, rail, colour, sizeof(colour));
    fprintf(out, "<path fill=\"%s\" d=\"M", colour);
    draw_edge(with, base, sign, false, out);
    fprintf(out, "L");
    draw_edge(below, base, sign, true, out);
    fprintf(out, "z\"/>\n");
}

/** A host's name; what XML would take for markup is left out, and so is what does not fit. */
static void draw_name(const char *name, FILE *out)
{
    for (size_t i = 0; i < DRAW_NAME_CHARS && '\0' != name[i]; i++) {
        fputc(NULL == strchr("<>&", name[i]) ? name[i] : '_', out);
    }
}

/** Hosts with less than the fastest, then others, as many as have room; from top to bottom by index. */
static void draw_choose(draw_t *draw)
{
    const topo_t *topo = draw->topo;
    bool chosen[DRAW_HOSTS_MAX] = {false};
    uint32_t count = 0;
    double most = 0;

    for (uint32_t host = 0; host < topo->host_count; host++) {
        most = r2_max(most, topo_host(topo, host));
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t host = 0; host < topo->host_count && count < DRAW_BANDS_MAX; host++) {
            if (!chosen[host] && (1 == pass || topo_host(topo, host) < most)) {
                chosen[host] = true;
                count++;
            }
        }
    }
    for (uint32_t host = 0; host < topo->host_count; host++) {
        if (chosen[host]) {
            draw->shown[draw->shown_count++] = host;
        }
    }
}

static void draw_frame(const draw_t *draw, const real_t *real, double seconds, FILE *out)
{
    const uint32_t hosts = draw->topo->host_count;
    const unsigned bottom = DRAW_TOP + DRAW_BAND * draw->shown_count;
    char colour[32], name[TOPO_NAME_BYTES];

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"18\" font-size=\"14\">%s, %" PRIu64
            " bytes: above the line what a host "
            "sends, below what it takes in</text>\n",
            DRAW_LEFT + DRAW_WIDTH + 50, bottom + DRAW_BOTTOM, DRAW_LEFT,
            real->schedules[0].algorithm, real->input.count * real->input.element_bytes);
    if (hosts > draw->shown_count) {
        fprintf(out, "<text x=\"%d\" y=\"%u\">and %" PRIu32 " hosts more</text>\n", DRAW_LEFT, bottom + 38,
                hosts - draw->shown_count);
    }
    for (uint32_t rail = 0; rail < draw->rails; rail++) {
        draw_colour(draw, rail, colour, sizeof(colour));
        fprintf(out, "<text x=\"%u\" y=\"36\" fill=\"%s\">%s%" PRIu32 "</text>\n",
                DRAW_LEFT + 50 * rail, colour,
                draw->topo->flat ? "all rails of host, network " : "rail", rail);
    }
    for (uint32_t band = 0; band < draw->shown_count; band++) {
        topo_name_text(draw->topo, draw->shown[band], name);
        fprintf(out, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">", DRAW_LEFT - 8,
                DRAW_TOP + DRAW_BAND * band + DRAW_BAND / 2 + 4);
        draw_name(name, out);
        fprintf(out, "</text>\n");
    }
    for (unsigned tick = 0; tick <= 5; tick++) {
        fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%.4g ms</text>\n",
                DRAW_LEFT + DRAW_WIDTH * tick / 5, bottom + 20, seconds * tick / 5 * 1e3);
    }
}

static void draw_bands(const draw_t *draw, FILE *out)
{
    double full_rate = 0;

    for (uint32_t host = 0; host < draw->topo->host_count; host++) {
        full_rate = r2_max(full_rate, topo_host(draw->topo, host));
    }
    for (uint32_t band = 0; band < draw->shown_count; band++) {
        for (uint32_t rail = 0; rail < draw->rails; rail++) {
            draw_area(draw, 0, band, rail, full_rate, out);
            draw_area(draw, 1, band, rail, full_rate, out);
        }
        fprintf(out, "<path d=\"M%d %uh%d\" stroke=\"#333\"/>\n", DRAW_LEFT,
                DRAW_TOP + DRAW_BAND * band + DRAW_BAND / 2, DRAW_WIDTH);
    }
}

r2_status_t draw_schedule(const real_t *real, const topo_t *topo, FILE *out)
{
    draw_t draw = {.topo = topo, .rails = topo->flat ? 1 : topo->rail_count};
    flow_result_t result;
    r2_status_t status;

    if (topo->host_count > DRAW_HOSTS_MAX) {
        return R2_ERR_UNSUPPORTED;
    }
    status = real_run(real, topo, NULL, NULL, &result); /* how long it is */
    if (R2_OK != status) {
        return status;
    }
    draw.bin_s = r2_max(result.seconds, 1e-12) / DRAW_BINS;
    draw.bytes = calloc((size_t) DRAW_DIRECTIONS * topo->host_count * draw.rails * DRAW_BINS,
                        sizeof(*draw.bytes));
    if (NULL == draw.bytes) {
        return R2_ERR_NO_MEMORY;
    }
    status = real_run(real, topo, draw_piece, &draw, &result);
    if (R2_OK == status) {
        draw_choose(&draw);
        draw_frame(&draw, real, result.seconds, out);
        draw_bands(&draw, out);
        fprintf(out, "</svg>\n");
        status = 0 == fflush(out) && !ferror(out) ? R2_OK : R2_ERR_SYSTEM;
    }
    free(draw.bytes);
    return status;
}
