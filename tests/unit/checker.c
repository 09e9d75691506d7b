/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Checks schedules: form of the ops, agreement of ranks; then races, execution and results.
 */
#include "r2_config.h"

#include "checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "checker_parts.h"
#include "plan/algorithm.h"
#include "plan/host_fold.h"
#include "plan/kinds.h"
#include "plan/layout.h"

static const char *const flaw_names[R2_FLAW_COUNT] = {
    "none",     "op",        "in",       "align",  "scratch", "agree", "match", "race",
    "deadlock", "undefined", "operands", "result", "order",   "tree",  "flow"};

const char *r2_flaw_name(r2_flaw_t flaw)
{
    return flaw_names[flaw];
}

bool r2_check_fail(r2_check_report_t *report, r2_flaw_t flaw, const char *format, ...)
{
    va_list args;

    if (R2_FLAW_NONE == report->flaw) {
        report->flaw = flaw;
        va_start(args, format);
        vsnprintf(report->text, sizeof(report->text), format, args);
        va_end(args);
    }
    return false;
}

static r2_claim_t claim_of(r2_coll_kind_t kind, const char *algorithm)
{
    static const struct {
        const char *algorithm;
        r2_claim_t claim;
    } claims[] = {{"recursive-doubling", R2_CLAIM_RANK_ORDER},
                  {"hosts", R2_CLAIM_RANK_ORDER},
                  {"hierarchical", R2_CLAIM_RANK_ORDER},
                  {"binomial", R2_CLAIM_RANK_ORDER}};
    const r2_algorithm_t *one = r2_algorithm_find(kind, algorithm);

    if (!r2_kind(kind)->reduces || (NULL != one && R2_NEEDS_NOTHING != one->needs)) {
        return R2_CLAIM_EACH_ONCE;
    }
    for (size_t i = 0; i < r2_array_count(claims); ++i) {
        if (0 == strcmp(algorithm, claims[i].algorithm)) {
            return claims[i].claim;
        }
    }
    return R2_COLL_SCAN == kind || R2_COLL_EXSCAN == kind ? R2_CLAIM_RANK_ORDER
                                                          : R2_CLAIM_CANONICAL;
}

/** Arguments of one rank. In place concerns the root only where there is one. */
static void job_input(r2_check_job_t *job, int32_t rank, bool in_place)
{
    r2_plan_input_t *input = &job->inputs[rank];
    const r2_kind_t *kind = r2_kind(input->kind);

    input->rank = rank;
    input->in_place =
        in_place && (!kind->rooted || R2_COLL_BCAST == input->kind || rank == input->root);
    if (R2_SPAN_EDGES == kind->span) {
        job->edges[rank] = r2_check_edges(input);
    }
}

r2_status_t r2_check_job_init(r2_check_job_t *job, const r2_plan_input_t *common, uint64_t in_place)
{
    r2_status_t status = R2_OK;

    job->size = common->size;
    job->inputs = calloc((size_t) job->size, sizeof(*job->inputs));
    job->schedules = calloc((size_t) job->size, sizeof(*job->schedules));
    job->edges = calloc((size_t) job->size, sizeof(*job->edges));
    for (int32_t r = 0; r < job->size; ++r) {
        r2_status_t one;

        job->inputs[r] = *common;
        job_input(job, r, 0 != (in_place >> r & 1));
        one = r2_plan_build(&job->inputs[r], &job->schedules[r]);
        status = R2_OK == status ? one : status;
    }
    job->claim = claim_of(common->kind, job->schedules[0].algorithm);
    if (r2_kind(common->kind)->reduces && common->commutative &&
        (0 == strcmp(job->schedules[0].algorithm, "hierarchical") ||
         0 == strcmp(job->schedules[0].algorithm, "hosts")) &&
        !r2_host_fold_ordered(common)) {
        job->claim = R2_CLAIM_EACH_ONCE; /* hosts are folded, and their ranks are not in blocks */
    }
    return status;
}

void r2_check_job_fini(r2_check_job_t *job)
{
    for (int32_t r = 0; r < job->size; ++r) {
        r2_schedule_fini(&job->schedules[r]);
        free(job->edges[r]);
    }
    free(job->edges);
    free(job->schedules);
    free(job->inputs);
}

static uint64_t own_count(const r2_plan_input_t *input)
{
    return NULL == input->counts ? input->count : input->counts[input->rank];
}

static uint64_t allgatherv_count(const r2_plan_input_t *input)
{
    uint64_t end = 0;

    for (int32_t r = 0; NULL != input->displs && r < input->size; ++r) {
        end = r2_max(end, input->displs[r] + input->counts[r]);
    }
    return NULL != input->displs ? end : r2_input_total_count(input);
}

static uint64_t out_count(const r2_plan_input_t *input)
{
    if (R2_COLL_REDUCE_SCATTER == input->kind || R2_COLL_REDUCE_SCATTER_BLOCK == input->kind) {
        return input->in_place ? r2_input_total_count(input) : own_count(input);
    }
    if (R2_COLL_REDUCE == input->kind && input->rank != input->root) {
        return 0;
    }
    return R2_COLL_ALLGATHERV == input->kind ? allgatherv_count(input)
                                             : r2_input_total_count(input);
}

static uint64_t in_count(const r2_plan_input_t *input)
{
    if (R2_COLL_ALLGATHER == input->kind || R2_COLL_ALLGATHERV == input->kind) {
        return own_count(input);
    }
    return r2_kind(input->kind)->reduces ? r2_input_total_count(input) : 0;
}

/** In place nothing is read from IN; but scatter's root keeps its blocks there. */
static bool has_no_in(const r2_plan_input_t *input)
{
    return input->in_place && R2_COLL_SCATTER != input->kind;
}

uint64_t r2_check_buf_bytes(const r2_check_job_t *job, int32_t rank, r2_buf_t buf)
{
    const r2_plan_input_t *input = &job->inputs[rank];

    if (R2_BUF_SCRATCH == buf) {
        return job->schedules[rank].scratch_bytes;
    }
    if (R2_BUF_IN == buf && has_no_in(input)) {
        return 0;
    }
    if (r2_check_moves(input->kind)) {
        return r2_check_moved_bytes(input, buf);
    }
    return (R2_BUF_IN == buf ? in_count(input) : out_count(input)) * input->element_bytes;
}

/* ---- form of ops */

static bool region_inside(const r2_check_job_t *job, int32_t rank, r2_region_t region,
                          uint64_t bytes)
{
    uint64_t length = r2_check_buf_bytes(job, rank, region.buf);

    return region.offset_bytes <= length && bytes <= length - region.offset_bytes;
}

static bool region_aligned(const r2_plan_input_t *input, r2_region_t region)
{
    /* staging memory is aligned for the type's words; the caller's buffers for whole elements */
    uint64_t word = input->element_bytes & (~input->element_bytes + 1);
    uint64_t unit =
        R2_BUF_SCRATCH == region.buf ? r2_min(word, R2_SLOT_ALIGN) : input->element_bytes;

    return 0 == region.offset_bytes % unit;
}

static bool check_op_local(const r2_check_job_t *job, int32_t rank, uint32_t at,
                           r2_check_report_t *report)
{
    const r2_plan_input_t *input = &job->inputs[rank];
    const r2_op_t *op = &job->schedules[rank].ops[at];

    if (op->src.buf == op->dst.buf && op->src.offset_bytes < op->dst.offset_bytes + op->bytes &&
        op->dst.offset_bytes < op->src.offset_bytes + op->bytes) {
        return r2_check_fail(report, R2_FLAW_OP, "rank %d op %u: regions overlap", rank, at);
    }
    if (R2_OP_REDUCE == op->kind &&
        (0 != op->bytes % input->element_bytes || !region_aligned(input, op->src) ||
         !region_aligned(input, op->dst))) {
        return r2_check_fail(report, R2_FLAW_ALIGN, "rank %d op %u: splits an element", rank, at);
    }
    return true;
}

static bool check_op(const r2_check_job_t *job, int32_t rank, uint32_t at,
                     r2_check_report_t *report)
{
    const r2_schedule_t *schedule = &job->schedules[rank];
    const r2_op_t *op = &schedule->ops[at];
    const bool message = R2_OP_SEND == op->kind || R2_OP_RECV == op->kind;
    const bool writes = R2_OP_SEND != op->kind, reads = R2_OP_RECV != op->kind;

    for (uint32_t d = 0; d < op->dep_count; ++d) {
        if (schedule->deps[op->first_dep + d] >= at) {
            return r2_check_fail(report, R2_FLAW_OP, "rank %d op %u waits for a later op", rank,
                                 at);
        }
    }
    if (0 == op->bytes ||
        (message && (op->peer < 0 || op->peer >= job->size || op->peer == rank))) {
        return r2_check_fail(report, R2_FLAW_OP, "rank %d op %u: peer %d, %lu bytes", rank, at,
                             op->peer, (unsigned long) op->bytes);
    }
    if ((writes && R2_BUF_IN == op->dst.buf) ||
        (has_no_in(&job->inputs[rank]) && reads && R2_BUF_IN == op->src.buf)) {
        return r2_check_fail(report, R2_FLAW_IN, "rank %d op %u misuses IN", rank, at);
    }
    if ((reads && !region_inside(job, rank, op->src, op->bytes)) ||
        (writes && !region_inside(job, rank, op->dst, op->bytes))) {
        return r2_check_fail(report, R2_FLAW_OP, "rank %d op %u leaves its buffer", rank, at);
    }
    return message || check_op_local(job, rank, at, report);
}

static bool check_schedule(const r2_check_job_t *job, int32_t rank, r2_check_report_t *report)
{
    const r2_schedule_t *schedule = &job->schedules[rank], *first = &job->schedules[0];
    const r2_plan_input_t *input = &job->inputs[rank];
    /* elements are not split: two of them are the least */
    uint64_t least = 2 * r2_round_up(input->element_bytes, R2_SLOT_ALIGN);

    const bool chunks_agree =
        r2_check_by_edges(input) || schedule->chunk_bytes == first->chunk_bytes;

    if (schedule->digest != first->digest || !chunks_agree ||
        0 != strcmp(schedule->algorithm, first->algorithm) || 0 == schedule->chunk_bytes ||
        schedule->chunk_bytes > input->chunk_max_bytes) {
        return r2_check_fail(report, R2_FLAW_AGREE, "rank %d: digest, algorithm or chunks", rank);
    }
    if (schedule->scratch_bytes > r2_max(input->scratch_bytes, least)) {
        return r2_check_fail(report, R2_FLAW_SCRATCH, "rank %d: %lu bytes of staging memory", rank,
                             (unsigned long) schedule->scratch_bytes);
    }
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        if (!check_op(job, rank, i, report)) {
            return false;
        }
    }
    return true;
}

r2_flaw_t r2_check_job_run(const r2_check_job_t *job, r2_check_report_t *report_p)
{
    r2_memory_t memory;

    report_p->flaw = R2_FLAW_NONE;
    report_p->text[0] = '\0';
    for (int32_t r = 0; r < job->size; ++r) {
        if (!check_schedule(job, r, report_p) || !r2_check_races(job, r, report_p)) {
            return report_p->flaw;
        }
    }
    r2_memory_init(&memory, job);
    if (r2_check_execute(job, &memory, report_p)) {
        r2_memory_results(&memory, job, report_p);
    }
    r2_memory_fini(&memory, job);
    return report_p->flaw;
}
