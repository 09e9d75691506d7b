/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted time of an allreduce: the direct exchanges by simulation of their flows, the bound, the
 * table.
 */
#include "r2_config.h"

#include "sim/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "r2/macros.h"
#include "sim/rings.h"
#include "sim/streams.h"

/* Messages that wait for each other in a direct exchange: contribution, result. */
#define PREDICT_DIRECT_STEPS 2

double predict_bound(const predict_case_t *ask)
{
    const topo_t *topo = ask->topo;
    double least = INFINITY, sum = 0;

    if (topo->host_count < 2) {
        return 0;
    }
    for (uint32_t h = 0; h < topo->host_count; ++h) {
        const double rate = topo_host(topo, h);

        least = r2_min(least, rate);
        sum += rate;
    }
    return r2_max(ask->bytes / least, 2.0 * (topo->host_count - 1) * ask->bytes / sum);
}

/** Hosts that share no rail own nothing: then they need not exchange anything. */
static void drop_strangers(const topo_t *topo, double *shares_p)
{
    if (0 == topo_failures(topo)) {
        return;
    }
    for (uint32_t a = 0; a < topo->host_count; ++a) {
        for (uint32_t b = a + 1; b < topo->host_count; ++b) {
            if (!(topo_pair(topo, a, b) > 0)) {
                shares_p[a] = 0;
                shares_p[b] = 0;
            }
        }
    }
}

void predict_shares(const predict_case_t *ask, double *shares_p)
{
    const topo_t *topo = ask->topo;
    const double bound = predict_bound(ask);
    const uint32_t n = topo->host_count;
    double sum = 0;

    for (uint32_t h = 0; h < n; ++h) {
        shares_p[h] = n < 3 ? 1.0 / n : (bound * topo_host(topo, h) / ask->bytes - 1) / (n - 2);
        shares_p[h] = r2_max(shares_p[h], 0.0);
    }
    drop_strangers(topo, shares_p);
    for (uint32_t h = 0; h < n; ++h) {
        sum += shares_p[h];
    }
    for (uint32_t h = 0; h < n && sum > 0; ++h) {
        shares_p[h] /= sum;
    }
}

/** Contribution to the receiver's share and result of the sender's, on their way at the same
 * time. */
static r2_status_t predict_exchange(const predict_case_t *ask, const double *shares,
                                    double *seconds_p)
{
    streams_t streams;
    double *bytes, seconds = INFINITY;
    r2_status_t status = streams_init(&streams, ask->topo);

    if (R2_OK != status) {
        return status;
    }
    bytes = malloc((size_t) streams.class_count * streams.class_count * sizeof(*bytes));
    if (NULL == bytes) {
        status = R2_ERR_NO_MEMORY;
    } else {
        for (uint32_t k = 0; k < streams.class_count; ++k) {
            for (uint32_t l = 0; l < streams.class_count; ++l) {
                bytes[(size_t) k * streams.class_count + l] =
                    ask->bytes * (shares[streams.first[k]] + shares[streams.first[l]]);
            }
        }
        status = streams_run(&streams, bytes, &seconds);
    }
    free(bytes);
    streams_fini(&streams);
    *seconds_p = seconds + PREDICT_DIRECT_STEPS * ask->topo->latency_s;
    return status;
}

static r2_status_t predict_direct(const predict_case_t *ask, double *seconds_p, bool weighted)
{
    double *shares = malloc(ask->topo->host_count * sizeof(*shares));
    r2_status_t status;

    if (NULL == shares) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t h = 0; h < ask->topo->host_count; ++h) {
        shares[h] = 1.0 / ask->topo->host_count;
    }
    if (weighted) {
        predict_shares(ask, shares);
    }
    status = predict_exchange(ask, shares, seconds_p);
    free(shares);
    return status;
}

static r2_status_t predict_equal(const predict_case_t *ask, double *seconds_p)
{
    return predict_direct(ask, seconds_p, false);
}

static r2_status_t predict_weighted(const predict_case_t *ask, double *seconds_p)
{
    return predict_direct(ask, seconds_p, true);
}

static const predict_algorithm_t algorithms[] = {
    {"ring", rings_failover}, /* ring; the next rail carries what a dead one should */
    {"balance", rings_balance}, /* ring; all rails that are left share the load */
    /* two rings, the second without the slow hosts, then a broadcast */
    {"r2-allreduce", rings_two},
    {"recursive", rings_recursive}, /* the planner's rings of tiers, or one where that is faster */
    {"direct", predict_equal}, /* direct exchange, equal shares, pipelined */
    {"weighted", predict_weighted}, /* direct exchange, shares by bandwidth, pipelined */
};

const predict_algorithm_t *predict_table(size_t *count_p)
{
    *count_p = r2_array_count(algorithms);
    return algorithms;
}

const predict_algorithm_t *predict_find(const char *name)
{
    for (size_t i = 0; i < r2_array_count(algorithms); ++i) {
        if (0 == strcmp(algorithms[i].name, name)) {
            return &algorithms[i];
        }
    }
    return NULL;
}
