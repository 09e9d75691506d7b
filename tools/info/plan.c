/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --plan: candidates with predicted times, the choice, shares, host order.
 */
#include "r2_config.h"

#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "plan/forecast.h"
#include "plan/order.h"
#include "r2/nic.h"
#include "r2/params.h"
#include "sim/draw.h"
#include "sim/predict.h"
#include "sim/real.h"

/* Sizes whose choices are listed, bytes. */
#define PLAN_SIZE_FIRST ((uint64_t) 1024)
#define PLAN_SIZE_LAST  ((uint64_t) 1 << 30)
#define PLAN_SIZES_MAX  21u
#define PLAN_TEXT_BYTES 160u

/** From this size on the planner chooses this. */
typedef struct plan_range {
    uint64_t from_bytes;
    char choice[PLAN_TEXT_BYTES];
} plan_range_t;

/** All that is shown. */
typedef struct info_plan_result {
    const info_plan_ask_t *ask; /* borrowed */
    topo_t topo;
    real_t real; /* the chosen schedule */
    r2_forecast_t forecast;
    char choice[PLAN_TEXT_BYTES];
    flow_result_t flow; /* of the chosen schedule */
    r2_status_t flow_status;
    double bound_s;
    double *shares; /* owned; [host], the planner's */
    int32_t *order; /* owned; [host], the planner's */
    plan_range_t ranges[PLAN_SIZES_MAX];
    size_t range_count;
} info_plan_result_t;

r2_status_t info_plan_here(uint32_t hosts, topo_t *topo_p, char *error_p, size_t error_bytes)
{
    r2_nic_t nics[R2_RAILS_MAX];
    r2_params_t params;
    size_t count = 0;
    r2_status_t status;

    r2_params_init(&params);
    status = r2_params_from_env(&params, error_p, error_bytes);
    if (R2_OK == status) {
        status = r2_nics_find(params.rails, params.address_family_any, nics, &count, error_p,
                              error_bytes);
    }
    if (R2_OK == status) {
        status = topo_init(topo_p, hosts, (uint32_t) count, 1);
    }
    for (uint32_t i = 0; R2_OK == status && i < hosts * count; i++) {
        const r2_nic_t *nic = &nics[i % count];

        /* a NIC of unknown speed counts as 1 Gbit/s */
        topo_p->rate[i] = 0 == nic->speed_bytes_per_s ? 125e6 : (double) nic->speed_bytes_per_s;
        topo_p->left[i] = nic->carrier ? 1 : 0;
    }
    return status;
}

/** What is chosen for every power of two; equal neighbours are joined. */
static r2_status_t plan_ranges(info_plan_result_t *result)
{
    r2_status_t status = R2_OK;

    for (uint64_t bytes = PLAN_SIZE_FIRST; R2_OK == status && bytes <= PLAN_SIZE_LAST; bytes *= 2) {
        r2_plan_input_t input = real_input(&result->real.topology, R2_COLL_ALLREDUCE, bytes, NULL);
        plan_range_t *range = &result->ranges[result->range_count];

        status = r2_plan_describe(&input, range->choice, sizeof(range->choice));
        range->from_bytes = bytes;
        if (0 == result->range_count ||
            0 != strcmp(range->choice, result->ranges[result->range_count - 1].choice)) {
            result->range_count++;
        }
    }
    return status;
}

static r2_status_t plan_shares(info_plan_result_t *result)
{
    r2_classes_t classes;
    r2_shares_t shares;
    double sum = 0;
    r2_status_t status = r2_classes_init(&classes, &result->real.topology, R2_MEMBERS_RANKS);

    if (R2_OK != status) {
        return status;
    }
    status = r2_shares_solve(&shares, &classes);
    if (R2_OK == status) {
        for (uint32_t h = 0; h < shares.host_count; h++) {
            sum += (double) shares.weight[h];
        }
        for (uint32_t h = 0; h < shares.host_count; h++) {
            result->shares[h] = sum > 0 ? (double) shares.weight[h] / sum : 0;
        }
        r2_shares_fini(&shares);
    }
    r2_classes_fini(&classes);
    return status;
}

static r2_status_t plan_make(info_plan_result_t *result)
{
    const topo_t *topo = &result->topo;
    const predict_case_t ask = {.topo = topo, .bytes = (double) result->ask->bytes};
    r2_status_t status =
        real_build(&result->real, topo, R2_COLL_ALLREDUCE, result->ask->bytes, NULL);

    if (R2_OK != status) {
        return status;
    }
    result->real.input.topology = &result->real.topology;
    result->shares = malloc(topo->host_count * sizeof(*result->shares));
    result->order = malloc(topo->host_count * sizeof(*result->order));
    if (NULL == result->shares || NULL == result->order) {
        return R2_ERR_NO_MEMORY;
    }
    result->bound_s = predict_bound(&ask);
    result->flow_status = real_run(&result->real, topo, NULL, NULL, &result->flow);
    status = r2_order_ring(&result->real.topology, (int32_t) topo->host_count, result->order);
    status = R2_OK == status ? plan_shares(result) : status;
    status =
        R2_OK != status ? status : r2_forecast_allreduce(&result->real.input, &result->forecast);
    if (R2_OK == status) {
        status = r2_plan_describe(&result->real.input, result->choice, sizeof(result->choice));
    }
    return R2_OK == status ? plan_ranges(result) : status;
}

static void plan_free(info_plan_result_t *result)
{
    real_fini(&result->real);
    topo_fini(&result->topo);
    free(result->shares);
    free(result->order);
}

/* ---- text */

static void plan_text_candidates(const info_plan_result_t *result, FILE *out)
{
    const double bound_ms = result->bound_s * 1e3;
    size_t count;
    const predict_algorithm_t *all = predict_table(&count);
    const predict_case_t ask = {.topo = &result->topo, .bytes = (double) result->ask->bytes};

    fprintf(out, "\nCandidates of the planner\n  %-20s %12s %12s\n", "name", "predicted ms",
            "over bound");
    for (r2_forecast_kind_t k = 0; k < R2_FORECAST_COUNT; k++) {
        const uint64_t ns = result->forecast.ns[k];

        if (R2_COST_NEVER == ns) {
            fprintf(out, "  %-20s %12s\n", r2_forecast_name(k), "never");
        } else {
            fprintf(out, "  %-20s %12.4f %12.3f\n", r2_forecast_name(k), (double) ns / 1e6,
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

static int plan_text(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;

    fprintf(out,
            "Allreduce of %" PRIu64 " bytes, %" PRIu32 " hosts x %" PRIu32
            " rails, %s network, %" PRIu32 " failures\n  least time %.4f ms\n",
            result->ask->bytes, topo->host_count, topo->rail_count, topo->flat ? "flat" : "aligned",
            topo_failures(topo), result->bound_s * 1e3);
    plan_text_candidates(result, out);
    fprintf(out, "\nChoice\n  %s", result->choice);
    if (R2_OK == result->flow_status) {
        fprintf(out, ", simulated row by row %.4f ms, over bound %.3f", result->flow.seconds * 1e3,
                result->flow.seconds / result->bound_s);
    } else {
        fprintf(out, ", cannot be simulated: %s", r2_status_string(result->flow_status));
    }
    fprintf(out, "\n\nChoice by size, bytes from\n");
    for (size_t r = 0; r < result->range_count; r++) {
        fprintf(out, "  %10" PRIu64 "  %s\n", 0 == r ? 0 : result->ranges[r].from_bytes,
                result->ranges[r].choice);
    }
    fprintf(out, "\nShares of a weighted exchange\n ");
    for (uint32_t h = 0; h < topo->host_count; h++) {
        fprintf(out, " h%" PRIu32 " %.4f", h, result->shares[h]);
    }
    fprintf(out, "\n\nHost order of a ring\n ");
    for (uint32_t h = 0; h < topo->host_count; h++) {
        fprintf(out, " h%" PRId32, result->order[h]);
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

    for (r2_forecast_kind_t k = 0; k < R2_FORECAST_COUNT; k++) {
        const uint64_t ns = result->forecast.ns[k];

        json_object_set_new(planner, r2_forecast_name(k),
                            R2_COST_NEVER == ns ? json_null() : json_real((double) ns / 1e9));
    }
    for (size_t a = 0; a < count; a++) {
        double seconds = INFINITY;

        if (R2_OK == all[a].predict(&ask, &seconds)) {
            json_object_set_new(models, all[a].name, json_seconds(seconds));
        }
    }
}

static int plan_json(const info_plan_result_t *result, FILE *out)
{
    const topo_t *topo = &result->topo;
    json_t *planner = json_object(), *models = json_object(), *shares = json_array();
    json_t *order = json_array(), *ranges = json_array(), *all;
    int rc;

    json_candidates(result, planner, models);
    for (uint32_t h = 0; h < topo->host_count; h++) {
        json_array_append_new(shares, json_real(result->shares[h]));
        json_array_append_new(order, json_integer(result->order[h]));
    }
    for (size_t r = 0; r < result->range_count; r++) {
        json_array_append_new(ranges,
                              json_pack("{s:I, s:s}", "from_bytes",
                                        (json_int_t) (0 == r ? 0 : result->ranges[r].from_bytes),
                                        "choice", result->ranges[r].choice));
    }
    all = json_pack("{s:I, s:i, s:i, s:s, s:i, s:f, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "bytes",
                    (json_int_t) result->ask->bytes, "hosts", (int) topo->host_count, "rails",
                    (int) topo->rail_count, "network", topo->flat ? "flat" : "aligned", "failures",
                    (int) topo_failures(topo), "bound_seconds", result->bound_s, "candidates",
                    planner, "models", models, "choice", result->choice, "simulated_seconds",
                    R2_OK == result->flow_status ? json_real(result->flow.seconds) : json_null(),
                    "ranges", ranges, "shares", shares, "host_order", order);
    if (NULL == all) {
        return -1;
    }
    rc = json_dumpf(all, out, JSON_INDENT(2));
    fprintf(out, "\n");
    json_decref(all);
    return 0 == rc && 0 == fflush(out) && !ferror(out) ? 0 : -1;
}

/* ---- the whole */

static int plan_draw(const info_plan_result_t *result)
{
    FILE *svg = fopen(result->ask->draw, "we");
    r2_status_t status;

    if (NULL == svg) {
        fprintf(stderr, "r2_info: %s: %s\n", result->ask->draw, strerror(errno));
        return -1;
    }
    status = draw_schedule(&result->real, &result->topo, svg);
    if (0 != fclose(svg) && R2_OK == status) {
        status = R2_ERR_SYSTEM;
    }
    if (R2_OK != status) {
        fprintf(stderr, "r2_info: %s: %s\n", result->ask->draw, r2_status_string(status));
    }
    return R2_OK == status ? 0 : -1;
}

int info_plan(const info_plan_ask_t *ask, FILE *out)
{
    info_plan_result_t result = {.ask = ask};
    char error[1024] = "";
    r2_status_t status;
    int rc;

    status = NULL != ask->file ? topo_load(ask->file, &result.topo, error, sizeof(error))
                               : info_plan_here(ask->hosts, &result.topo, error, sizeof(error));
    if (R2_OK != status) {
        fprintf(stderr, "r2_info: %s\n", '\0' != error[0] ? error : r2_status_string(status));
        return NULL != ask->file ? 2 : 1;
    }
    if (result.topo.host_count < 2) {
        fprintf(stderr, "r2_info: a plan needs 2 hosts or more\n");
        plan_free(&result);
        return 2;
    }
    status = plan_make(&result);
    if (R2_OK != status) {
        fprintf(stderr, "r2_info: %s\n", r2_status_string(status));
        plan_free(&result);
        return 1;
    }
    rc = ask->json ? plan_json(&result, out) : plan_text(&result, out);
    if (0 == rc && NULL != ask->draw) {
        rc = plan_draw(&result);
    }
    plan_free(&result);
    return 0 == rc ? 0 : 1;
}
