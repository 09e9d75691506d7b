/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --plan: candidates with predicted times, the choice, shares, host order.
 */
#include "r2_config.h"

#include "plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "r2/macros.h"
#include "r2/nic.h"
#include "r2/params.h"
#include "sim/draw.h"
#include "sim/picture.h"
#include "sim/predict.h"

#define PLAN_TEXT_OF_(token) #token
#define PLAN_TEXT_OF(token)  PLAN_TEXT_OF_(token)

/* Hosts like this one, if nothing is said. */
#define PLAN_HOSTS 4u
/* More ranks on less hosts take minutes to simulate. */
#define PLAN_RANKS_MAX 64

r2_status_t info_plan_here(uint32_t hosts, topo_t *topo_p, char *error_p, size_t error_bytes)
{
    r2_nic_t nics[R2_RAILS_MAX];
    r2_params_t params;
    size_t count = 0;
    r2_status_t status;

    r2_params_init(&params);
    status = r2_params_from_env(&params, error_p, error_bytes);
    if (R2_OK == status) {
        status = r2_nics_find_rails(&params, nics, &count, error_p, error_bytes);
    }
    if (R2_OK == status) {
        status = topo_init(topo_p, hosts, (uint32_t) count, 1);
    }
    for (uint32_t i = 0; R2_OK == status && i < hosts * count; ++i) {
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
        r2_plan_input_t input =
            real_input(&result->real.topology, R2_COLL_ALLREDUCE, bytes, result->ask->algorithm);
        plan_range_t *range = &result->ranges[result->range_count];

        input.cost = result->real.input.cost;
        status = r2_plan_describe(&input, range->choice, sizeof(range->choice));
        range->from_bytes = bytes;
        if (0 == result->range_count ||
            0 != strcmp(range->choice, result->ranges[result->range_count - 1].choice)) {
            ++result->range_count;
        }
    }
    return status;
}

/** Hosts in the order of the ring of ranks, which goes by host. */
static r2_status_t plan_order(info_plan_result_t *result)
{
    const topo_t *topo = &result->topo;
    int32_t *ring = malloc(topo->rank_count * sizeof(*ring));
    r2_status_t status =
        NULL == ring ? R2_ERR_NO_MEMORY
                     : r2_order_ring(&result->real.topology, (int32_t) topo->rank_count, ring);
    uint32_t count = 0;

    for (uint32_t r = 0; R2_OK == status && r < topo->rank_count; ++r) {
        const uint32_t host = topo->host_of[ring[r]];

        ++result->ranks[host];
        if (1 == result->ranks[host]) {
            result->order[count++] = host;
        }
    }
    free(ring);
    return status;
}

static bool plan_is_simulated(const topo_t *topo)
{
    return topo->rank_count <= PLAN_RANKS_MAX || topo_is_rank_per_host(topo);
}

/** Schedules are built only to be simulated. */
static r2_status_t plan_schedules(info_plan_result_t *result)
{
    const topo_t *topo = &result->topo;
    const uint64_t bytes = result->ask->bytes;
    const char *name = result->ask->algorithm;

    return plan_is_simulated(topo) ? real_build(&result->real, topo, R2_COLL_ALLREDUCE, bytes, name)
                                   : real_init(&result->real, topo, R2_COLL_ALLREDUCE, bytes, name);
}

static r2_status_t plan_make(info_plan_result_t *result)
{
    const topo_t *topo = &result->topo;
    const predict_case_t ask = {.topo = topo, .bytes = (double) result->ask->bytes};
    r2_status_t status = plan_schedules(result);

    if (R2_OK != status) {
        return status;
    }
    result->real.input.topology = &result->real.topology;
    result->shares = malloc(topo->host_count * sizeof(*result->shares));
    result->order = malloc(topo->host_count * sizeof(*result->order));
    result->ranks = calloc(topo->host_count, sizeof(*result->ranks));
    if (NULL == result->shares || NULL == result->order || NULL == result->ranks) {
        return R2_ERR_NO_MEMORY;
    }
    result->bound_s = predict_bound(&ask);
    result->flow_status = real_run(&result->real, topo, NULL, NULL, &result->flow);
    status = plan_order(result);
    if (R2_OK == status) {
        status = r2_plan_shares(&result->real.topology, result->shares);
    }
    if (R2_OK == status) {
        status =
            r2_plan_predict(&result->real.input, result->predictions, &result->prediction_count);
    }
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
    free(result->ranks);
}

/* ---- the whole */

static r2_status_t plan_picture(const void *arg, FILE *json)
{
    const info_plan_result_t *result = arg;

    return draw_schedule(&result->real, &result->topo, json);
}

static int plan_draw(const info_plan_result_t *result)
{
    const char *why = NULL;
    r2_status_t status;

    if (!plan_is_simulated(&result->topo)) {
        why =
            "no more than " PLAN_TEXT_OF(PLAN_RANKS_MAX) " ranks can be drawn, or one on each host";
    } else if (result->topo.host_count > DRAW_HOSTS_MAX) {
        why = "no more than " PLAN_TEXT_OF(DRAW_HOSTS_MAX) " hosts can be drawn";
    } else {
        status = picture_draw(result->ask->draw, plan_picture, result);
        why = R2_ERR_NOT_FOUND == status ? "r2_timeline draws it, and is not there"
              : R2_OK == status          ? NULL
                                         : r2_status_string(status);
    }
    if (NULL != why) {
        fprintf(stderr, "r2_info: %s: %s\n", result->ask->draw, why);
        return -1;
    }
    return 0;
}

/** What a job of these processes plans from. *topo_p is made on rank 0 only. */
static r2_status_t plan_of_job(topo_t *topo_p, bool *first_p, char *error_p, size_t error_bytes)
{
    char *text = NULL;
    FILE *in;
    r2_status_t status = info_job_run(&text, error_p, error_bytes);

    *first_p = NULL != text;
    if (R2_OK != status || NULL == text) {
        free(text);
        return status;
    }
    in = fmemopen(text, strlen(text), "r");
    status = NULL == in ? R2_ERR_NO_MEMORY : topo_read(in, "the job", topo_p, error_p, error_bytes);
    if (NULL != in) {
        fclose(in);
    }
    free(text);
    return status;
}

static int plan_show(info_plan_result_t *result, FILE *out)
{
    const info_plan_ask_t *ask = result->ask;
    r2_status_t status;
    int rc;

    if (result->topo.host_count < 2) {
        fprintf(stderr, "r2_info: a plan needs 2 hosts or more%s\n",
                ask->job ? ": give mpirun more, and --map-by node" : "");
        return ask->job ? 1 : 2;
    }
    status = plan_make(result);
    if (R2_OK != status) {
        fprintf(stderr, "r2_info: %s\n", r2_status_string(status));
        return 1;
    }
    rc = ask->json ? info_plan_json(result, out) : info_plan_text(result, out);
    if (0 == rc && NULL != ask->draw) {
        rc = plan_draw(result);
    }
    return 0 == rc ? 0 : 1;
}

int info_plan(const info_plan_ask_t *ask, FILE *out)
{
    info_plan_result_t result = {.ask = ask};
    char error[4096] = "";
    bool first = true;
    r2_status_t status;
    int rc = 0;

    if (ask->job) {
        status = plan_of_job(&result.topo, &first, error, sizeof(error));
    } else if (NULL != ask->file) {
        status = topo_load(ask->file, &result.topo, error, sizeof(error));
    } else {
        status = info_plan_here(0 == ask->hosts ? PLAN_HOSTS : ask->hosts, &result.topo, error,
                                sizeof(error));
    }
    if (R2_OK != status) {
        fprintf(stderr, "r2_info: %s\n", '\0' != error[0] ? error : r2_status_string(status));
        return NULL != ask->file ? 2 : 1;
    }
    if (first) { /* else rank 0 shows it */
        rc = plan_show(&result, out);
        plan_free(&result);
    }
    return rc;
}
