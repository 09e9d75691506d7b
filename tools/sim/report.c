/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Results of r2_sim as table and JSON.
 */
#include "r2_config.h"

#include "sim/report.h"

#include <inttypes.h>

#include "r2/json.h"

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
    for (uint32_t f = ask->failures_first; f <= ask->failures_last; ++f) {
        for (size_t a = 0; a < ask->algorithm_count; ++a) {
            text_row(ask, result, f, a, out);
        }
        fprintf(out, "%8" PRIu32 "  %-13s %11s %12.4f\n", f, "(bound)", "",
                result->bound_over_healthy[f - ask->failures_first]);
    }
    return written(out);
}

static void json_cell(r2_json_t *json, const draws_cell_t *cell, const char *name,
                      uint32_t failures)
{
    r2_json_open(json, NULL, '{');
    r2_json_u64(json, "failures", failures);
    r2_json_string(json, "algorithm", name);
    r2_json_real(json, "seconds", cell->seconds);
    r2_json_real(json, "over_healthy", cell->over_healthy);
    r2_json_real(json, "over_healthy_p50", cell->over_healthy_p50);
    r2_json_real(json, "over_healthy_p99", cell->over_healthy_p99);
    r2_json_real(json, "over_bound", cell->over_bound);
    r2_json_u64(json, "no_path", cell->no_path);
    r2_json_close(json, '}');
}

static void json_rows(r2_json_t *json, const draws_case_t *ask, const draws_result_t *result)
{
    r2_json_open(json, "bound_over_healthy", '[');
    for (uint32_t f = ask->failures_first; f <= ask->failures_last; ++f) {
        r2_json_real(json, NULL, result->bound_over_healthy[f - ask->failures_first]);
    }
    r2_json_close(json, ']');
    r2_json_open(json, "rows", '[');
    for (uint32_t f = ask->failures_first; f <= ask->failures_last; ++f) {
        for (size_t a = 0; a < ask->algorithm_count; ++a) {
            json_cell(json, cell_at(ask, result, f, a), ask->algorithms[a]->name, f);
        }
    }
    r2_json_close(json, ']');
}

int report_json(const draws_case_t *ask, const draws_result_t *result, FILE *out)
{
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_u64(&json, "hosts", ask->topo->host_count);
    r2_json_u64(&json, "rails", ask->topo->rail_count);
    r2_json_string(&json, "network", ask->topo->flat ? "flat" : "aligned");
    r2_json_real(&json, "bytes", ask->bytes);
    r2_json_u64(&json, "seed", ask->seed);
    r2_json_u64(&json, "draws", ask->draw_count);
    r2_json_u64(&json, "failures_first", ask->failures_first);
    r2_json_real(&json, "healthy_bound_seconds", result->healthy_bound);
    r2_json_open(&json, "healthy_seconds", '{');
    for (size_t a = 0; a < ask->algorithm_count; ++a) {
        r2_json_real(&json, ask->algorithms[a]->name, result->healthy[a]);
    }
    r2_json_close(&json, '}');
    json_rows(&json, ask, result);
    r2_json_close(&json, '}');
    return R2_OK == r2_json_end_file(&json) ? 0 : -1;
}

static int schedule_json(const report_schedule_t *report, FILE *out)
{
    const flow_result_t *result = &report->result;
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_string(&json, "algorithm", report->algorithm);
    r2_json_real(&json, "bytes", report->bytes);
    r2_json_u64(&json, "hosts", report->topo->host_count);
    r2_json_u64(&json, "rails", report->topo->rail_count);
    r2_json_u64(&json, "ranks", report->topo->rank_count);
    r2_json_real(&json, "seconds", result->seconds);
    r2_json_real(&json, "over_bound", result->seconds / report->bound_s);
    r2_json_u64(&json, "messages", result->messages);
    r2_json_real(&json, "rail_bytes", result->bytes);
    r2_json_real(&json, "local_bytes", result->local_bytes);
    r2_json_real(&json, "busiest", result->busiest);
    r2_json_close(&json, '}');
    return R2_OK == r2_json_end_file(&json) ? 0 : -1;
}

int report_schedule(const report_schedule_t *report, bool json, FILE *out)
{
    const flow_result_t *result = &report->result;

    if (json) {
        return schedule_json(report, out);
    }
    fprintf(out,
            "allreduce %s of %.0f bytes, %" PRIu32 " hosts x %" PRIu32 " rails, %" PRIu32
            " ranks, row by row\n"
            "time %.4f ms, over bound %.4f, %" PRIu64
            " messages, busiest host sends %.1f %% of the "
            "time\n",
            report->algorithm, report->bytes, report->topo->host_count, report->topo->rail_count,
            report->topo->rank_count, result->seconds * 1e3, result->seconds / report->bound_s,
            result->messages, result->busiest * 100);
    return written(out);
}
