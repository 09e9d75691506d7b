/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What plans of the job are made from, as a topology file: what r2_info --plan shows of a running
 * job.
 */
#include "r2_config.h"

#include "ctx/plan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/util.h"

static void r2_plan_text_head(const r2_plan_text_t *what, FILE *out)
{
    const r2_topology_t *topology = &what->env->topology;
    time_t now = time(NULL);
    char when[32] = "";
    struct tm utc;

    if (NULL != gmtime_r(&now, &utc)) {
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    fprintf(out,
            "# r2 %s, rank %u on %s, %s: what all ranks make plans from. Show it with r2_info "
            "--plan FILE\n"
            "hosts %u\nrails %u\nranks %d\nrate %u\n%s",
            R2_VERSION, what->rank, what->host_name, when, topology->host_count,
            topology->rail_count, topology->rank_count, r2_max(topology->rate_mbytes_per_s[0], 1u),
            topology->any_pairing ? "any-pairing\n" : "");
}

static void r2_plan_text_cost(const r2_cost_params_t *cost, FILE *out)
{
    if (0 != cost->alpha_ns) {
        fprintf(out, "latency %uns\n", cost->alpha_ns);
    }
    if (0 != cost->rate_ppm) {
        fprintf(out, "pace %u.%04u%%\n", cost->rate_ppm / 10000, cost->rate_ppm % 10000);
    }
    if (0 != cost->reduce_mbytes_per_s[R2_MEM_HOST]) {
        fprintf(out, "reduce %u\n", cost->reduce_mbytes_per_s[R2_MEM_HOST]);
    }
    if (0 != cost->crowded) {
        fprintf(out, "crowded\n");
    }
}

static void r2_plan_text_rails(const r2_topology_t *topology, uint32_t host, const r2_host_t *is,
                               FILE *out)
{
    for (uint32_t rail = 0; rail < topology->rail_count; ++rail) {
        const uint32_t at = host * topology->rail_count + rail;
        const uint32_t rate = topology->rate_mbytes_per_s[at];

        if (rail >= is->rail_count) {
            fprintf(out, "fail h%u rail%u # %s has no such rail\n", host, rail, is->name);
            continue;
        }
        if (rate != topology->rate_mbytes_per_s[0]) {
            fprintf(out, "rate-of h%u rail%u %u\n", host, rail, r2_max(rate, 1u));
        }
        if (R2_CAPACITY_FULL != topology->capacity[at]) {
            fprintf(out, "capacity h%u rail%u %u # %s of %s\n", host, rail, topology->capacity[at],
                    is->rails[rail].name, is->name);
        }
    }
}

static void r2_plan_text_print(const r2_plan_text_t *what, FILE *out)
{
    const r2_topology_t *topology = &what->env->topology;

    r2_plan_text_head(what, out);
    r2_plan_text_cost(what->cost, out);
    for (uint32_t host = 0; host < topology->host_count; ++host) {
        const r2_host_t *is = &what->hosts->hosts[what->env->map_host[host]];

        fprintf(out, "name h%u %s\n", host, is->name);
        r2_plan_text_rails(topology, host, is, out);
    }
    for (uint32_t i = 0; i < topology->cut_count; ++i) {
        const r2_topology_cut_t *cut = &topology->cuts[i];

        fprintf(out, "cut h%u h%u rail%u\n", cut->host_a, cut->host_b, cut->rail);
    }
    for (int32_t rank = 0; rank < topology->rank_count; ++rank) {
        if (topology->rank_count != (int32_t) topology->host_count ||
            topology->host_of[rank] != (uint32_t) rank) {
            fprintf(out, "host-of %d h%u\n", rank, topology->host_of[rank]);
        }
    }
}

char *r2_plan_text(const r2_plan_text_t *what)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (NULL == out) {
        return NULL;
    }
    r2_plan_text_print(what, out);
    if (0 != fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}
