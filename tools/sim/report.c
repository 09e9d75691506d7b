/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Results of r2_sim as table and JSON.
 */
#include "r2_config.h"

#include "sim/report.h"

#include <inttypes.h>
#include <jansson.h>

static const draws_cell_t *cell_at(const draws_case_t *ask, const draws_result_t *result,
                                   uint32_t failures, size_t algorithm)
{
    return &result->cells[(size_t) (failures - ask->failures_first) * ask->algorithm_count +
                          algorithm];
}

static int written(FILE *out)
{
    return 0 == fflush(out) && !ferror(out) ? 0 : -1;
}

static void text_row(const draws_case_t *ask, const draws_result_t *result, uint32_t failures,
                     size_t a, FILE *out)
{
    const draws_cell_t *cell = cell_at(ask, result, failures, a);

    fprintf(out, "%8" PRIu32 "  %-13s", failures, ask->algorithms[a]->name);
    if (cell->no_path == ask->draw_count) {
        fprintf(out, "  no path between hosts that must exchange\n");
        return;
    }
    fprintf(out, " %11.4f %12.4f %10.4f %11.2f %11.2f", cell->seconds * 1e3, cell->over_healthy,
            cell->over_bound, (cell->over_healthy - 1) * 100, (cell->over_healthy_p99 - 1) * 100);
    if (cell->no_path > 0) {
        fprintf(out, "  (%" PRIu32 " draws without a path left out)", cell->no_path);
    }
    fprintf(out, "\n");
}

int report_text(const draws_case_t *ask, const draws_result_t *result, FILE *out)
{
    const topo_t *topo = ask->topo;

    fprintf(out,
            "allreduce of %.0f bytes, %" PRIu32 " hosts x %" PRIu32 " rails, %s network, "
            "%" PRIu32 " draws, seed %" PRIu64 "\n"
            "least time with nothing broken %.4f ms\n\n",
            ask->bytes, topo->host_count, topo->rail_count, topo->flat ? "flat" : "aligned",
            ask->draw_count, ask->seed, result->healthy_bound * 1e3);
    fprintf(out, "failures  %-13s %11s %12s %10s %11s %11s\n", "algorithm", "time ms",
            "over healthy", "over bound", "overhead %", "99th perc.%");
    for (uint32_t f = ask->failures_first; f <= ask->failures_last; f++) {
        for (size_t a = 0; a < ask->algorithm_count; a++) {
            text_row(ask, result, f, a, out);
        }
        fprintf(out, "%8" PRIu32 "  %-13s %11s %12.4f\n", f, "(bound)", "",
                result->bound_over_healthy[f - ask->failures_first]);
    }
    return written(out);
}

static json_t *json_cell(const draws_cell_t *cell, const char *name, uint32_t failures)
{
    return json_pack("{s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:i}", "failures", (int) failures,
                     "algorithm", name, "seconds", cell->seconds, "over_healthy",
                     cell->over_healthy, "over_healthy_p50", cell->over_healthy_p50,
                     "over_healthy_p99", cell->over_healthy_p99, "over_bound", cell->over_bound,
                     "no_path", (int) cell->no_path);
}

int report_json(const draws_case_t *ask, const draws_result_t *result, FILE *out)
{
    json_t *rows = json_array(), *healthy = json_object(), *bound = json_array(), *all;
    int rc;

    for (size_t a = 0; a < ask->algorithm_count; a++) {
        json_object_set_new(healthy, ask->algorithms[a]->name, json_real(result->healthy[a]));
    }
    for (uint32_t f = ask->failures_first; f <= ask->failures_last; f++) {
        json_array_append_new(bound,
                              json_real(result->bound_over_healthy[f - ask->failures_first]));
        for (size_t a = 0; a < ask->algorithm_count; a++) {
            json_array_append_new(
                rows, json_cell(cell_at(ask, result, f, a), ask->algorithms[a]->name, f));
        }
    }
    all = json_pack("{s:i, s:i, s:s, s:f, s:I, s:i, s:i, s:f, s:o, s:o, s:o}", "hosts",
                    (int) ask->topo->host_count, "rails", (int) ask->topo->rail_count, "network",
                    ask->topo->flat ? "flat" : "aligned", "bytes", ask->bytes, "seed",
                    (json_int_t) ask->seed, "draws", (int) ask->draw_count, "failures_first",
                    (int) ask->failures_first, "healthy_bound_seconds", result->healthy_bound,
                    "healthy_seconds", healthy, "bound_over_healthy", bound, "rows", rows);
    if (NULL == all) {
        return -1;
    }
    rc = json_dumpf(all, out, JSON_INDENT(2));
    fprintf(out, "\n");
    json_decref(all);
    return 0 == rc ? written(out) : -1;
}

int report_schedule(const report_schedule_t *report, bool json, FILE *out)
{
    const flow_result_t *result = &report->result;
    json_t *all;
    int rc = 0;

    if (!json) {
        fprintf(out,
                "allreduce %s of %.0f bytes, %" PRIu32 " hosts x %" PRIu32 " rails, %" PRIu32
                " ranks, row by row\n"
                "time %.4f ms, over bound %.4f, %" PRIu64
                " messages, busiest host sends %.1f %% of the "
                "time\n",
                report->algorithm, report->bytes, report->topo->host_count,
                report->topo->rail_count, report->topo->rank_count, result->seconds * 1e3,
                result->seconds / report->bound_s, result->messages, result->busiest * 100);
        return written(out);
    }
    all = json_pack("{s:s, s:f, s:i, s:i, s:i, s:f, s:f, s:I, s:f, s:f, s:f}", "algorithm", report->algorithm,
                    "bytes", report->bytes, "hosts", (int) report->topo->host_count, "rails",
                    (int) report->topo->rail_count, "ranks", (int) report->topo->rank_count,
                    "seconds", result->seconds, "over_bound", result->seconds / report->bound_s,
                    "messages", (json_int_t) result->messages, "rail_bytes", result->bytes,
                    "local_bytes", result->local_bytes, "busiest", result->busiest);
    if (NULL == all) {
        return -1;
    }
    rc = json_dumpf(all, out, JSON_INDENT(2));
    fprintf(out, "\n");
    json_decref(all);
    return 0 == rc ? written(out) : -1;
}
