/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The checker catches broken schedules: every mutation, at every op where it can be made.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/algorithm.h"
#include "plan/kinds.h"
#include "schedule_cases.h"

/** Breaks a schedule at an op. @return false: not possible at this op. */
typedef bool (*mutate_fn_t)(r2_check_job_t *job, int32_t rank, uint32_t at);

static bool is_message(const r2_op_t *op)
{
    return R2_OP_SEND == op->kind || R2_OP_RECV == op->kind;
}

static bool drop_first_dep(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    if (0 == op->dep_count) {
        return false;
    }
    ++op->first_dep;
    --op->dep_count;
    return true;
}

static bool drop_last_dep(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    if (0 == op->dep_count) {
        return false;
    }
    --op->dep_count;
    return true;
}

static bool drop_middle_dep(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];
    uint32_t *deps = &job->schedules[rank].deps[op->first_dep];

    if (3 > op->dep_count) {
        return false;
    }
    deps[1 + at % (op->dep_count - 2)] = deps[0];
    return true;
}

static bool move_src(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    op->src.offset_bytes += job->inputs[rank].element_bytes;
    return R2_OP_RECV != op->kind && R2_COLL_BARRIER != job->inputs[rank].kind;
}

static bool move_dst(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    op->dst.offset_bytes += job->inputs[rank].element_bytes;
    return R2_OP_SEND != op->kind && R2_COLL_BARRIER != job->inputs[rank].kind;
}

static bool split_element(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    --op->bytes;
    return R2_OP_REDUCE == op->kind;
}

static bool shorten(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    op->bytes -= job->inputs[rank].element_bytes;
    return true;
}

/** Takes an op out; what waited for it waits for its dependencies no more. */
static bool remove_op(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_schedule_t old = job->schedules[rank];
    r2_schedule_t *made = &job->schedules[rank];

    r2_schedule_init(made);
    made->scratch_bytes = old.scratch_bytes;
    made->chunk_bytes = old.chunk_bytes;
    made->digest = old.digest;
    made->algorithm = old.algorithm;
    for (uint32_t i = 0; i < old.op_count; ++i) {
        uint32_t *deps = &old.deps[old.ops[i].first_dep];

        for (uint32_t d = 0; d < old.ops[i].dep_count; ++d) {
            deps[d] = at == deps[d] ? R2_OP_NONE : deps[d] - (deps[d] > at ? 1 : 0);
        }
        if (i != at) {
            r2_schedule_add(made, &old.ops[i], deps, old.ops[i].dep_count);
        }
    }
    r2_schedule_fini(&old);
    return true;
}

/** The same reduction once more, at the end, after all that works on the same memory. */
static bool reduce_twice(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_schedule_t *schedule = &job->schedules[rank];
    const r2_op_t op = schedule->ops[at];
    uint32_t *all = malloc(schedule->op_count * sizeof(*all));

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        all[i] = i;
    }
    r2_schedule_add(schedule, &op, all, schedule->op_count);
    free(all);
    return R2_OP_REDUCE == op.kind;
}

static bool copy_instead(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    if (R2_OP_REDUCE != op->kind) {
        return false;
    }
    op->kind = R2_OP_COPY;
    return true;
}

static bool swap_operands(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];
    const r2_region_t src = op->src;

    op->src = op->dst;
    op->dst = src;
    return R2_OP_REDUCE == op->kind;
}

/** Two contributions change places: each once, in the wrong order. */
static bool swap_received(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *ops = job->schedules[rank].ops;

    for (uint32_t i = at + 1; i < job->schedules[rank].op_count; ++i) {
        if (R2_OP_RECV == ops[at].kind && R2_OP_RECV == ops[i].kind &&
            ops[at].bytes == ops[i].bytes && ops[at].tag == ops[i].tag &&
            0 != memcmp(&ops[at].dst, &ops[i].dst, sizeof(ops[i].dst)) &&
            R2_COLL_BARRIER != job->inputs[rank].kind) {
            const r2_region_t dst = ops[at].dst;

            ops[at].dst = ops[i].dst;
            ops[i].dst = dst;
            return true;
        }
    }
    return false;
}

static bool change_peer(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    op->peer = (op->peer + 1) % job->size;
    return is_message(op);
}

static bool change_tag(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    ++op->tag;
    return is_message(op);
}

static bool write_in(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    op->dst.buf = R2_BUF_IN;
    return R2_OP_SEND != op->kind;
}

static bool wait_for_itself(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    r2_op_t *op = &job->schedules[rank].ops[at];

    if (0 == op->dep_count) {
        return false;
    }
    job->schedules[rank].deps[op->first_dep] = at;
    return true;
}

/** Op 0 only: a value that ranks must share, or a bound. */
static bool change_digest(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    ++job->schedules[rank].digest;
    return 0 == at;
}

/** Where a rank knows its own messages only, chunks are its own matter, too. */
static bool change_chunk(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    ++job->schedules[rank].chunk_bytes;
    return 0 == at && R2_SPAN_EDGES != r2_kind(job->inputs[rank].kind)->span;
}

static bool take_scratch(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    job->schedules[rank].scratch_bytes = job->inputs[rank].scratch_bytes + 1;
    return 0 == at;
}

/** All ranks' sends wait for a receive that starts at once: nobody begins. */
static bool receive_first(r2_check_job_t *job, int32_t rank, uint32_t at)
{
    if (0 != at || 0 != rank || R2_COLL_BCAST == job->inputs[0].kind) {
        return false;
    }
    for (int32_t r = 0; r < job->size; ++r) {
        r2_schedule_t *schedule = &job->schedules[r];
        r2_schedule_t made;
        uint32_t recv = 0;

        r2_schedule_init(&made);
        while (recv < schedule->op_count &&
               (R2_OP_RECV != schedule->ops[recv].kind || 0 < schedule->ops[recv].dep_count)) {
            ++recv;
        }
        if (recv == schedule->op_count) {
            return false;
        }
        /* the receive becomes op 0, others move up by one */
        r2_schedule_add(&made, &schedule->ops[recv], NULL, 0);
        for (uint32_t i = 0; i < schedule->op_count; ++i) {
            const r2_op_t *op = &schedule->ops[i];
            uint32_t deps[64] = {0};
            uint32_t count = R2_OP_SEND == op->kind ? 1 : 0;

            for (uint32_t d = 0; d < op->dep_count; ++d) {
                uint32_t dep = schedule->deps[op->first_dep + d];

                deps[count++] = dep == recv ? 0 : dep + (dep < recv ? 1 : 0);
            }
            if (i != recv) {
                r2_schedule_add(&made, op, deps, count);
            }
        }
        made.scratch_bytes = schedule->scratch_bytes;
        made.chunk_bytes = schedule->chunk_bytes;
        made.digest = schedule->digest;
        made.algorithm = schedule->algorithm;
        r2_schedule_fini(schedule);
        *schedule = made;
    }
    return true;
}

typedef struct mutation {
    const char *name;
    mutate_fn_t mutate;
    r2_flaw_t flaw; /* must be found at least once; R2_FLAW_NONE: any */
} mutation_t;

static const mutation_t mutations[] = {
    {"drop_first_dep", drop_first_dep, R2_FLAW_RACE},
    {"drop_last_dep", drop_last_dep, R2_FLAW_FLOW},
    {"drop_middle_dep", drop_middle_dep, R2_FLAW_FLOW},
    {"move_src", move_src, R2_FLAW_RESULT},
    {"move_dst", move_dst, R2_FLAW_RACE},
    {"split_element", split_element, R2_FLAW_ALIGN},
    {"shorten", shorten, R2_FLAW_MATCH},
    {"remove_op", remove_op, R2_FLAW_RESULT},
    {"reduce_twice", reduce_twice, R2_FLAW_OPERANDS},
    {"copy_instead", copy_instead, R2_FLAW_RESULT},
    {"swap_operands", swap_operands, R2_FLAW_IN},
    {"swap_received", swap_received, R2_FLAW_ORDER},
    {"change_peer", change_peer, R2_FLAW_MATCH},
    {"change_tag", change_tag, R2_FLAW_MATCH},
    {"write_in", write_in, R2_FLAW_IN},
    {"wait_for_itself", wait_for_itself, R2_FLAW_OP},
    {"change_digest", change_digest, R2_FLAW_AGREE},
    {"change_chunk", change_chunk, R2_FLAW_AGREE},
    {"take_scratch", take_scratch, R2_FLAW_SCRATCH},
    {"receive_first", receive_first, R2_FLAW_DEADLOCK},
};

static const r2_case_t *cases;
static size_t case_count;

typedef struct tally {
    unsigned made, caught;
    unsigned flaws[R2_FLAW_COUNT];
} tally_t;

/** Makes one mutant. @return false: this op does not exist. */
static bool try_mutant(const r2_plan_input_t *input, uint64_t in_place, const mutation_t *mutation,
                       int32_t rank, uint32_t at, tally_t *tally)
{
    r2_check_job_t job;
    r2_check_report_t report;
    bool exists;

    assert_int_equal(R2_OK, r2_check_job_init(&job, input, in_place));
    exists = at < job.schedules[rank].op_count;
    if (exists && mutation->mutate(&job, rank, at)) {
        r2_check_job_run(&job, &report);
        ++tally->made;
        tally->caught += R2_FLAW_NONE != report.flaw ? 1 : 0;
        ++tally->flaws[report.flaw];
        if (R2_FLAW_NONE == report.flaw) {
            print_error("%s missed: collective %d %s size %d in place %lx rank %d op %u\n",
                        mutation->name, (int) input->kind, job.schedules[0].algorithm, input->size,
                        (unsigned long) in_place, rank, at);
        }
    }
    r2_check_job_fini(&job);
    return exists;
}

static void try_mutants(const r2_plan_input_t *input, uint64_t in_place, const mutation_t *mutation,
                        tally_t *tally)
{
    for (int32_t rank = 0; rank < input->size; ++rank) {
        uint32_t at = 0;

        while (try_mutant(input, in_place, mutation, rank, at, tally)) {
            ++at;
        }
    }
}

static void try_everywhere(const mutation_t *mutation, tally_t *tally)
{
    const int32_t sizes[] = {2, 3, 5, 6, 16};

    for (size_t i = 0; i < case_count; ++i) {
        for (size_t n = 0; n < r2_array_count(sizes); ++n) {
            const int32_t size = sizes[n];
            r2_plan_input_t input = r2_case_input(&cases[i], size, 3 * (uint64_t) size + 1, 4);
            r2_uneven_t uneven;

            if (NULL == input.algorithm && NULL != r2_algorithms_of(input.kind)[1]) {
                continue; /* each has its own case */
            }
            if (6 < size && R2_COLL_BARRIER != input.kind &&
                (NULL == input.algorithm || 0 != strcmp("bruck", input.algorithm))) {
                continue; /* many ranks only where ops then wait for more */
            }
            /* few slots, so that they are used again */
            input.scratch_bytes = 3 * 64;
            if (NULL != input.algorithm && 0 == strcmp("recursive-doubling", input.algorithm)) {
                input.scratch_bytes = 4096;
                input.copy_max_bytes = 3 == size ? 0 : 8192;
            }
            r2_case_uneven(&input, &uneven, 5, false);
            try_mutants(&input, 0, mutation, tally);
            try_mutants(&input, UINT64_MAX, mutation, tally);
        }
    }
}

static void test_mutants(void **state)
{
    unsigned missed = 0;

    (void) state;
    for (size_t m = 0; m < r2_array_count(mutations); ++m) {
        tally_t tally = {.made = 0};

        try_everywhere(&mutations[m], &tally);
        print_message("%-16s %6u made, %6u caught:", mutations[m].name, tally.made, tally.caught);
        for (int f = 1; f < R2_FLAW_COUNT; ++f) {
            if (0 < tally.flaws[f]) {
                print_message(" %s %u", r2_flaw_name((r2_flaw_t) f), tally.flaws[f]);
            }
        }
        print_message("\n");
        assert_int_not_equal(0, tally.made);
        assert_int_not_equal(0, tally.flaws[mutations[m].flaw]);
        missed += tally.made - tally.caught;
    }
    assert_int_equal(0, missed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};

    cases = r2_cases(&case_count);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
