/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --plan: as tables and as JSON.
 */
#include "r2_config.h"

#include "plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

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
    for (uint32_t i = 0; i < result->prediction_count; i++) {
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
    for (size_t a = 0; a < count; a++) {
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

    for (uint32_t r = 0; alike && r < topo->rail_count; r++) {
        alike = topo_rail(topo, a, r) == topo_rail(topo, b, r);
    }
    return alike;
}

static void plan_text_hosts(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;
    char name[TOPO_NAME_BYTES], label[32];
    uint32_t end;

    fprintf(out, "\nHosts, their share of a weighted exchange, and MB/s of each rail\n"
                 "  %-12s %-20s %5s %7s  rails\n", "host", "name", "ranks", "share");
    for (uint32_t h = 0; h < topo->host_count; h = end) {
        end = h + 1;
        while (end < topo->host_count && plan_hosts_alike(result, h, end)) {
            end++;
        }
        topo_name_text(topo, h, name);
        snprintf(label, sizeof(label), "h%" PRIu32, h);
        if (end - h > 1) {
            snprintf(label, sizeof(label), "h%" PRIu32 "..h%" PRIu32, h, end - 1);
        }
        fprintf(out, "  %-12s %-20s %5" PRIu32 " %7.4f ", label, NULL == topo->names ? "-" : name,
                result->ranks[h], result->shares[h]);
        for (uint32_t r = 0; r < topo->rail_count; r++) {
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

    fprintf(out, "  a step takes %.1f us%s, rails give %.4g %% of their rates, reductions %" PRIu32 " MB/s%s\n",
            cost.alpha_ns / 1e3, 0 == given->alpha_ns ? " (usual)" : "", result->topo.pace * 100,
            cost.reduce_mbytes_per_s[R2_MEM_HOST],
            0 == given->reduce_mbytes_per_s[R2_MEM_HOST] ? " (usual)" : "");
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
    for (size_t r = 0; r < result->range_count; r++) {
        fprintf(out, "  %10" PRIu64 "  %s\n", 0 == r ? 0 : result->ranges[r].from_bytes,
                result->ranges[r].choice);
    }
    plan_text_hosts(result, out);
    fprintf(out, "\nHost order of a ring\n ");
    for (uint32_t h = 0; h < topo->host_count; h++) {
        fprintf(out, " h%" PRIu32, result->order[h]);
    }
    fprintf(out, "\n");
    return 0 == fflush(out) && !ferror(out) ? 0 : -1;
}

/* ---- JSON */

static json_t *json_seconds(double seconds)
{
    return isfinite(seconds) ? json_real(seconds) : json_null();
}

static void json_candidates(const info_plan_result_t *result, json_t *planner, json_t *models)
{
    size_t count;
    const predict_algorithm_t *all = predict_table(&count);
    const predict_case_t ask = {.topo = &result->topo, .bytes = (double) result->ask->bytes};

    for (uint32_t i = 0; i < result->prediction_count; i++) {
        const uint64_t ns = result->predictions[i].ns;

        json_object_set_new(planner, result->predictions[i].algorithm,
                            R2_COST_NEVER == ns ? json_null() : json_real((double) ns / 1e9));
    }
    for (size_t a = 0; a < count; a++) {
        double seconds = INFINITY;

        if (R2_OK == all[a].predict(&ask, &seconds)) {
            json_object_set_new(models, all[a].name, json_seconds(seconds));
        }
    }
}

/** Bytes/s of each rail of each host as they are now. */
static json_t *json_rates(const topo_t *topo)
{
    json_t *hosts = json_array();

    for (uint32_t h = 0; h < topo->host_count; h++) {
        json_t *rails = json_array();

        for (uint32_t r = 0; r < topo->rail_count; r++) {
            json_array_append_new(rails, json_real(topo_rail(topo, h, r)));
        }
        json_array_append_new(hosts, rails);
    }
    return hosts;
}

static json_t *json_known(uint32_t number, double unit)
{
    return 0 == number ? json_null() : json_real(number * unit);
}

/** null: not measured, the planner takes what is usual. */
static json_t *json_cost(const r2_cost_params_t *cost)
{
    return json_pack("{s:o, s:o, s:o}", "step_seconds", json_known(cost->alpha_ns, 1e-9), "pace",
                     json_known(cost->rate_ppm, 1e-6), "reduce_bytes_per_s",
                     json_known(cost->reduce_mbytes_per_s[R2_MEM_HOST], 1e6));
}

int info_plan_json(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;
    json_t *planner = json_object(), *models = json_object(), *shares = json_array();
    json_t *order = json_array(), *ranges = json_array(), *names = json_array(), *all;
    char name[TOPO_NAME_BYTES];
    int rc;

    json_candidates(result, planner, models);
    for (uint32_t h = 0; h < topo->host_count; h++) {
        json_array_append_new(shares, json_real(result->shares[h]));
        json_array_append_new(order, json_integer(result->order[h]));
        topo_name_text(topo, h, name);
        json_array_append_new(names, json_string(name));
    }
    for (size_t r = 0; r < result->range_count; r++) {
        json_array_append_new(ranges,
                              json_pack("{s:I, s:s}", "from_bytes",
                                        (json_int_t) (0 == r ? 0 : result->ranges[r].from_bytes),
                                        "choice", result->ranges[r].choice));
    }
    all = json_pack("{s:I, s:i, s:i, s:s, s:i, s:f, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "bytes",
                    (json_int_t) result->ask->bytes, "hosts", (int) topo->host_count, "rails",
                    (int) topo->rail_count, "network", topo->flat ? "flat" : "aligned", "failures",
                    (int) topo_failures(topo), "bound_seconds", result->bound_s, "candidates",
                    planner, "models", models, "choice", result->choice, "simulated_seconds",
                    R2_OK == result->flow_status ? json_real(result->flow.seconds) : json_null(),
                    "ranges", ranges, "shares", shares, "host_order", order, "names", names,
                    "ranks", (int) topo->rank_count, "rates", json_rates(topo), "cost",
                    json_cost(&result->real.input.cost));
    if (NULL == all) {
        return -1;
    }
    rc = json_dumpf(all, out, JSON_INDENT(2));
    fprintf(out, "\n");
    json_decref(all);
    return 0 == rc && 0 == fflush(out) && !ferror(out) ? 0 : -1;
}
