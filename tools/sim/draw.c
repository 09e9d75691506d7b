/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A schedule as a picture: what is drawn.
 */
#include "r2_config.h"

#include "sim/draw.h"

#include <stdbool.h>
#include <stdlib.h>

#include "r2/json.h"
#include "r2/macros.h"

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

    for (uint32_t bin = (uint32_t) (begin_s / draw->bin_s); bin < DRAW_BINS; ++bin) {
        const double low = r2_max(begin_s, bin * draw->bin_s);
        const double high = r2_min(end_s, (bin + 1) * draw->bin_s);

        if (high <= low) {
            break;
        }
        out[bin] += (high - low) * rate;
        in[bin] += (high - low) * rate;
    }
}

/** Hosts with less than the fastest, then others, as many as have room; from top to bottom by
 * index. */
static void draw_choose(draw_t *draw)
{
    const topo_t *topo = draw->topo;
    bool chosen[DRAW_HOSTS_MAX] = {false};
    uint32_t count = 0;
    double most = 0;

    for (uint32_t host = 0; host < topo->host_count; ++host) {
        most = r2_max(most, topo_host(topo, host));
    }
    for (int pass = 0; pass < 2; ++pass) {
        for (uint32_t host = 0; host < topo->host_count && count < DRAW_BANDS_MAX; ++host) {
            if (!chosen[host] && (1 == pass || topo_host(topo, host) < most)) {
                chosen[host] = true;
                ++count;
            }
        }
    }
    for (uint32_t host = 0; host < topo->host_count; ++host) {
        if (chosen[host]) {
            draw->shown[draw->shown_count++] = host;
        }
    }
}

/** What one rail of a host moves in each bin, as a part of what the fastest host can. */
static void draw_rails(const draw_t *draw, r2_json_t *json, const char *key, uint32_t direction,
                       uint32_t host, double full_rate)
{
    r2_json_open(json, key, '[');
    for (uint32_t rail = 0; rail < draw->rails; ++rail) {
        const double *bytes = &draw->bytes[draw_at(draw, direction, host, rail)];

        r2_json_open(json, NULL, '[');
        for (uint32_t bin = 0; bin < DRAW_BINS; ++bin) {
            r2_json_real(json, NULL, bytes[bin] / draw->bin_s / full_rate);
        }
        r2_json_close(json, ']');
    }
    r2_json_close(json, ']');
}

static void draw_bands(const draw_t *draw, r2_json_t *json)
{
    char name[TOPO_NAME_BYTES];
    double full_rate = 0;

    for (uint32_t host = 0; host < draw->topo->host_count; ++host) {
        full_rate = r2_max(full_rate, topo_host(draw->topo, host));
    }
    r2_json_open(json, "bands", '[');
    for (uint32_t band = 0; band < draw->shown_count; ++band) {
        topo_name_text(draw->topo, draw->shown[band], name);
        r2_json_open(json, NULL, '{');
        r2_json_string(json, "host", name);
        draw_rails(draw, json, "sends", 0, draw->shown[band], full_rate);
        draw_rails(draw, json, "takes", 1, draw->shown[band], full_rate);
        r2_json_close(json, '}');
    }
    r2_json_close(json, ']');
}

static r2_status_t draw_write(const draw_t *draw, const real_t *real, double seconds, FILE *out)
{
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_string(&json, "algorithm", real->schedules[0].algorithm);
    r2_json_u64(&json, "bytes", real->input.count * real->input.element_bytes);
    r2_json_real(&json, "seconds", seconds);
    r2_json_u64(&json, "hosts", draw->topo->host_count);
    r2_json_string(&json, "network", draw->topo->flat ? "flat" : "aligned");
    draw_bands(draw, &json);
    r2_json_close(&json, '}');
    return r2_json_end_file(&json);
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
        status = draw_write(&draw, real, result.seconds, out);
    }
    free(draw.bytes);
    return status;
}
