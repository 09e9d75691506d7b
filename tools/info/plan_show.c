/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --plan: as tables and as JSON.
 */
#include "r2_config.h"

#include "plan.h"

#include <inttypes.h>
#include <math.h>

#include "r2/json.h"
#include "r2/macros.h"
#include "sim/predict.h"

/* Shares that differ by less look alike. */
#define PLAN_SHARE_ALIKE 5e-5

/* ---- text */

static void plan_text_candidates(const info_plan_result_t *result, FILE *out)
{
    const double bound_ms = result->bound_s * 1e3;
    size_t count;
    const predict_algorithm_t *all = predict_table(&count);
    const predict_case_t ask = {.topo = &result->topo, .bytes = (double) result->ask->bytes};

    fprintf(out, "\nCandidates of the planner\n  %-20s %12s %12s\n", "name", "predicted ms",
            "over bound");
    for (uint32_t i = 0; i < result->prediction_count; ++i) {
        const char *name = result->predictions[i].algorithm;
        const uint64_t ns = result->predictions[i].ns;

        if (R2_COST_NEVER == ns) {
            fprintf(out, "  %-20s %12s\n", name, "never");
        } else {
            fprintf(out, "  %-20s %12.4f %12.3f\n", name, (double) ns / 1e6,
                    (double) ns / 1e6 / bound_ms);
        }
    }
    fprintf(out, "\nModels, without latency\n  %-20s %12s %12s\n", "name", "predicted ms",
            "over bound");
    for (size_t a = 0; a < count; ++a) {
        double seconds;

        if (R2_OK == all[a].predict(&ask, &seconds) && isfinite(seconds)) {
            fprintf(out, "  %-20s %12.4f %12.3f\n", all[a].name, seconds * 1e3,
                    seconds / result->bound_s);
        } else {
            fprintf(out, "  %-20s %12s\n", all[a].name, "never");
        }
    }
}

/** Rails and share of two hosts are the same, and neither has a name. */
static bool plan_hosts_alike(const info_plan_result_t *result, uint32_t a, uint32_t b)
{
    const topo_t *topo = &result->topo;
    bool alike = NULL == topo->names && result->ranks[a] == result->ranks[b] &&
                 fabs(result->shares[a] - result->shares[b]) < PLAN_SHARE_ALIKE;

    for (uint32_t r = 0; alike && r < topo->rail_count; ++r) {
        alike = topo_rail(topo, a, r) == topo_rail(topo, b, r);
    }
    return alike;
}

static void plan_text_hosts(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;
    char name[TOPO_NAME_BYTES], label[32];
    uint32_t end;

    fprintf(out,
            "\nHosts, their share of a weighted exchange, and MB/s of each rail\n"
            "  %-12s %-20s %5s %7s  rails\n",
            "host", "name", "ranks", "share");
    for (uint32_t h = 0; h < topo->host_count; h = end) {
        end = h + 1;
        while (end < topo->host_count && plan_hosts_alike(result, h, end)) {
            ++end;
        }
        topo_name_text(topo, h, name);
        snprintf(label, sizeof(label), "h%" PRIu32, h);
        if (end - h > 1) {
            snprintf(label, sizeof(label), "h%" PRIu32 "..h%" PRIu32, h, end - 1);
        }
        fprintf(out, "  %-12s %-20s %5" PRIu32 " %7.4f ", label, NULL == topo->names ? "-" : name,
                result->ranks[h], result->shares[h]);
        for (uint32_t r = 0; r < topo->rail_count; ++r) {
            if (topo_rail(topo, h, r) > 0) {
                fprintf(out, " %.4g", topo_rail(topo, h, r) / 1e6);
            } else {
                fprintf(out, " DEAD");
            }
        }
        fprintf(out, "\n");
    }
}

/** What times are predicted from; "usual" is what the planner takes where nothing was measured. */
static void plan_text_cost(const info_plan_result_t *result, FILE *out)
{
    const r2_cost_params_t *given = &result->real.input.cost;
    const r2_cost_params_t cost = r2_cost_params(given);

    fprintf(out,
            "  a step takes %.1f us%s, rails give %.4g %% of their rates, reductions %" PRIu32
            " MB/s%s%s\n",
            cost.alpha_ns / 1e3, 0 == given->alpha_ns ? " (usual)" : "",
            result->topo.derating * 100, cost.reduce_mbytes_per_s[R2_MEM_HOST],
            0 == given->reduce_mbytes_per_s[R2_MEM_HOST] ? " (usual)" : "",
            0 == given->crowded ? "" : ", ranks wait for processors");
}

int info_plan_text(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;

    fprintf(out,
            "Allreduce of %" PRIu64 " bytes, %" PRIu32 " hosts x %" PRIu32
            " rails, %s network, %" PRIu32 " failures\n  least time %.4f ms\n",
            result->ask->bytes, topo->host_count, topo->rail_count, topo->flat ? "flat" : "aligned",
            topo_failures(topo), result->bound_s * 1e3);
    plan_text_cost(result, out);
    plan_text_candidates(result, out);
    fprintf(out, "\nChoice\n  %s", result->choice);
    if (R2_OK == result->flow_status) {
        fprintf(out, ", simulated row by row %.4f ms, over bound %.3f", result->flow.seconds * 1e3,
                result->flow.seconds / result->bound_s);
    } else {
        fprintf(out, ", not simulated: %s",
                NULL == result->real.schedules ? "too many ranks"
                                               : r2_status_string(result->flow_status));
    }
    fprintf(out, "\n\nChoice by size, bytes from\n");
    for (size_t r = 0; r < result->range_count; ++r) {
        fprintf(out, "  %10" PRIu64 "  %s\n", 0 == r ? 0 : result->ranges[r].from_bytes,
                result->ranges[r].choice);
    }
    plan_text_hosts(result, out);
    fprintf(out, "\nHost order of a ring\n ");
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        fprintf(out, " h%" PRIu32, result->order[h]);
    }
    fprintf(out, "\n");
    return 0 == fflush(out) && !ferror(out) ? 0 : -1;
}

/* ---- JSON */

static void json_candidates(r2_json_t *json, const info_plan_result_t *result)
{
    size_t count;
    const predict_algorithm_t *all = predict_table(&count);
    const predict_case_t ask = {.topo = &result->topo, .bytes = (double) result->ask->bytes};

    r2_json_open(json, "candidates", '{');
    for (uint32_t i = 0; i < result->prediction_count; ++i) {
        const uint64_t ns = result->predictions[i].ns;

        r2_json_real(json, result->predictions[i].algorithm,
                     R2_COST_NEVER == ns ? INFINITY : (double) ns / 1e9);
    }
    r2_json_close(json, '}');
    r2_json_open(json, "models", '{');
    for (size_t a = 0; a < count; ++a) {
        double seconds = INFINITY;

        if (R2_OK == all[a].predict(&ask, &seconds)) {
            r2_json_real(json, all[a].name, seconds);
        }
    }
    r2_json_close(json, '}');
}

static void json_ranges(r2_json_t *json, const info_plan_result_t *result)
{
    r2_json_open(json, "ranges", '[');
    for (size_t r = 0; r < result->range_count; ++r) {
        r2_json_open(json, NULL, '{');
        r2_json_u64(json, "from_bytes", 0 == r ? 0 : result->ranges[r].from_bytes);
        r2_json_string(json, "choice", result->ranges[r].choice);
        r2_json_close(json, '}');
    }
    r2_json_close(json, ']');
}

static void json_hosts(r2_json_t *json, const info_plan_result_t *result)
{
    const topo_t *topo = &result->topo;
    char name[TOPO_NAME_BYTES];

    r2_json_open(json, "shares", '[');
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        r2_json_real(json, NULL, result->shares[h]);
    }
    r2_json_close(json, ']');
    r2_json_open(json, "host_order", '[');
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        r2_json_u64(json, NULL, result->order[h]);
    }
    r2_json_close(json, ']');
    r2_json_open(json, "names", '[');
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        topo_name_text(topo, h, name);
        r2_json_string(json, NULL, name);
    }
    r2_json_close(json, ']');
}

/** Bytes/s of each rail of each host as they are now. */
static void json_rates(r2_json_t *json, const topo_t *topo)
{
    r2_json_open(json, "rates", '[');
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        r2_json_open(json, NULL, '[');
        for (uint32_t r = 0; r < topo->rail_count; ++r) {
            r2_json_real(json, NULL, topo_rail(topo, h, r));
        }
        r2_json_close(json, ']');
    }
    r2_json_close(json, ']');
}

/** null: not measured, the planner takes what is usual. */
static void json_cost(r2_json_t *json, const r2_cost_params_t *cost)
{
    const struct {
        const char *key;
        uint32_t number;
        double unit;
    } rows[] = {{"step_seconds", cost->alpha_ns, 1e-9},
                {"pace", cost->rate_ppm, 1e-6},
                {"reduce_bytes_per_s", cost->reduce_mbytes_per_s[R2_MEM_HOST], 1e6}};

    r2_json_open(json, "cost", '{');
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        r2_json_real(json, rows[i].key,
                     0 == rows[i].number ? INFINITY : rows[i].number * rows[i].unit);
    }
    r2_json_bool(json, "crowded", 0 != cost->crowded);
    r2_json_close(json, '}');
}

int info_plan_json(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_u64(&json, "bytes", result->ask->bytes);
    r2_json_u64(&json, "hosts", topo->host_count);
    r2_json_u64(&json, "rails", topo->rail_count);
    r2_json_string(&json, "network", topo->flat ? "flat" : "aligned");
    r2_json_u64(&json, "failures", topo_failures(topo));
    r2_json_real(&json, "bound_seconds", result->bound_s);
    json_candidates(&json, result);
    r2_json_string(&json, "choice", result->choice);
    r2_json_real(&json, "simulated_seconds",
                 R2_OK == result->flow_status ? result->flow.seconds : INFINITY);
    json_ranges(&json, result);
    json_hosts(&json, result);
    r2_json_u64(&json, "ranks", topo->rank_count);
    json_rates(&json, topo);
    json_cost(&json, &result->real.input.cost);
    r2_json_close(&json, '}');
    return R2_OK == r2_json_end_file(&json) ? 0 : -1;
}
