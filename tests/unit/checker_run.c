/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Executes the schedules of all ranks together: matches messages, finds deadlocks.
 *
 * A send completes only when its receive has completed, whatever its length, and an op starts only
 * when all ops that it waits for are complete. What is waited for is fixed, so if one order of
 * events ends with all ops complete, every order does.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "checker_parts.h"

/** An op of one rank, numbered over all ranks. */
typedef struct node {
    int32_t rank;
    uint32_t op;
    uint32_t waiting;    /* ops it waits for that are not complete */
    uint32_t first_next; /* into run_t.next: who waits for it */
    uint32_t next_count;
    uint32_t other_end; /* node of the other end of a message */
    bool started;
    uint64_t heard; /* ranks that had started before it completed */
} node_t;

typedef struct run {
    const r2_check_job_t *job; /* borrowed */
    r2_memory_t *memory;       /* borrowed */
    node_t *nodes;             /* owned */
    uint32_t *base;            /* owned; first node of a rank */
    uint32_t *next;            /* owned */
    uint32_t *ready;           /* owned; stack */
    uint32_t node_count, ready_count, done_count;
} run_t;

static const r2_op_t *op_of(const run_t *run, uint32_t node)
{
    return &run->job->schedules[run->nodes[node].rank].ops[run->nodes[node].op];
}

static void run_init(run_t *run)
{
    const r2_check_job_t *job = run->job;
    uint32_t nodes = 0, deps = 0, at = 0;

    run->base = calloc((size_t) job->size + 1, sizeof(*run->base));
    for (int32_t r = 0; r < job->size; ++r) {
        run->base[r] = nodes;
        nodes += job->schedules[r].op_count;
        deps += job->schedules[r].dep_count;
    }
    run->base[job->size] = nodes;
    run->node_count = nodes;
    run->nodes = calloc((size_t) nodes + 1, sizeof(*run->nodes));
    run->next = calloc((size_t) deps + 1, sizeof(*run->next));
    run->ready = calloc((size_t) nodes + 1, sizeof(*run->ready));
    for (int32_t r = 0; r < job->size; ++r) {
        const r2_schedule_t *schedule = &job->schedules[r];

        for (uint32_t i = 0; i < schedule->op_count; ++i) {
            const r2_op_t *op = &schedule->ops[i];

            run->nodes[run->base[r] + i] =
                (node_t){.rank = r, .op = i, .waiting = op->dep_count, .other_end = R2_OP_NONE};
            for (uint32_t d = 0; d < op->dep_count; ++d) {
                run->nodes[run->base[r] + schedule->deps[op->first_dep + d]].next_count++;
            }
        }
    }
    for (uint32_t n = 0; n < nodes; ++n) {
        run->nodes[n].first_next = at;
        at += run->nodes[n].next_count;
        run->nodes[n].next_count = 0;
    }
    for (uint32_t n = 0; n < nodes; ++n) {
        const r2_schedule_t *schedule = &job->schedules[run->nodes[n].rank];
        const r2_op_t *op = op_of(run, n);

        for (uint32_t d = 0; d < op->dep_count; ++d) {
            node_t *dep =
                &run->nodes[run->base[run->nodes[n].rank] + schedule->deps[op->first_dep + d]];

            run->next[dep->first_next + dep->next_count++] = n;
        }
    }
}

static void run_fini(run_t *run)
{
    free(run->base);
    free(run->nodes);
    free(run->next);
    free(run->ready);
}

/* ---- messages */

typedef struct end {
    int32_t from, to;
    uint32_t tag, node;
    int kind;
} end_t;

static int compare_ends(const void *a, const void *b)
{
    const end_t *l = a, *r = b;

    if (l->from != r->from) {
        return l->from < r->from ? -1 : 1;
    }
    if (l->to != r->to) {
        return l->to < r->to ? -1 : 1;
    }
    if (l->tag != r->tag) {
        return l->tag < r->tag ? -1 : 1;
    }
    return (l->kind > r->kind) - (l->kind < r->kind);
}

static bool same_message(const end_t *l, const end_t *r)
{
    return l->from == r->from && l->to == r->to && l->tag == r->tag;
}

/** Sorted ends must come in pairs: a send, then its receive. */
static bool match_pairs(run_t *run, const end_t *ends, uint32_t count, r2_check_report_t *report)
{
    for (uint32_t i = 0; i < count; i += 2) {
        const end_t *send = &ends[i], *recv = &ends[i + 1];

        if (i + 1 == count || !same_message(send, recv) || R2_OP_SEND != send->kind ||
            R2_OP_RECV != recv->kind || (i + 2 < count && same_message(send, &ends[i + 2])) ||
            op_of(run, send->node)->bytes != op_of(run, recv->node)->bytes) {
            return r2_check_fail(report, R2_FLAW_MATCH, "message %d to %d tag %u", send->from,
                                 send->to, send->tag);
        }
        run->nodes[send->node].other_end = recv->node;
        run->nodes[recv->node].other_end = send->node;
    }
    return true;
}

static bool match_messages(run_t *run, r2_check_report_t *report)
{
    end_t *ends = malloc(((size_t) run->node_count + 1) * sizeof(*ends));
    uint32_t count = 0;
    bool good;

    for (uint32_t n = 0; n < run->node_count; ++n) {
        const r2_op_t *op = op_of(run, n);
        int32_t rank = run->nodes[n].rank;

        if (R2_OP_SEND == op->kind) {
            ends[count++] = (end_t){
                .from = rank, .to = op->peer, .tag = op->tag, .node = n, .kind = R2_OP_SEND};
        } else if (R2_OP_RECV == op->kind) {
            ends[count++] = (end_t){
                .from = op->peer, .to = rank, .tag = op->tag, .node = n, .kind = R2_OP_RECV};
        }
    }
    qsort(ends, count, sizeof(*ends), compare_ends);
    good = match_pairs(run, ends, count, report);
    free(ends);
    return good;
}

/* ---- execution */

static void complete(run_t *run, uint32_t n)
{
    node_t *node = &run->nodes[n];

    ++run->done_count;
    for (uint32_t i = 0; i < node->next_count; ++i) {
        node_t *next = &run->nodes[run->next[node->first_next + i]];

        next->heard |= node->heard;
        --next->waiting;
        if (0 == next->waiting) {
            run->ready[run->ready_count++] = run->next[node->first_next + i];
        }
    }
}

static bool start(run_t *run, uint32_t n, r2_check_report_t *report)
{
    node_t *node = &run->nodes[n];
    const r2_op_t *op = op_of(run, n);
    uint32_t send, recv;

    node->started = true;
    node->heard |= (uint64_t) 1 << node->rank;
    if (R2_OP_COPY == op->kind || R2_OP_REDUCE == op->kind) {
        if (!r2_memory_local(run->memory, run->job, node->rank, op, report)) {
            return false;
        }
        complete(run, n);
        return true;
    }
    if (!run->nodes[node->other_end].started) {
        return true;
    }
    send = R2_OP_SEND == op->kind ? n : node->other_end;
    recv = R2_OP_SEND == op->kind ? node->other_end : n;
    if (!r2_memory_deliver(run->memory, run->job, run->nodes[send].rank, op_of(run, send),
                           run->nodes[recv].rank, op_of(run, recv), report)) {
        return false;
    }
    /* an acknowledgement is not counted as news of the receiver */
    run->nodes[recv].heard |= run->nodes[send].heard;
    complete(run, recv);
    complete(run, send);
    return true;
}

static bool check_all_done(const run_t *run, r2_check_report_t *report)
{
    for (uint32_t n = 0; run->done_count < run->node_count && n < run->node_count; ++n) {
        if (!run->nodes[n].started) {
            return r2_check_fail(report, R2_FLAW_DEADLOCK, "rank %d op %u never starts",
                                 run->nodes[n].rank, run->nodes[n].op);
        }
    }
    return run->done_count == run->node_count ||
           r2_check_fail(report, R2_FLAW_DEADLOCK, "%u ops never complete",
                         run->node_count - run->done_count);
}

/** After a barrier, every rank has heard from every other. */
static bool check_flow(const run_t *run, r2_check_report_t *report)
{
    const uint64_t all = UINT64_MAX >> (64 - run->job->size);

    if (R2_COLL_BARRIER != run->job->inputs[0].kind) {
        return true;
    }
    for (int32_t r = 0; r < run->job->size; ++r) {
        uint64_t heard = (uint64_t) 1 << r;

        for (uint32_t n = run->base[r]; n < run->base[r + 1]; ++n) {
            heard |= run->nodes[n].heard;
        }
        if (heard != all) {
            return r2_check_fail(report, R2_FLAW_FLOW, "rank %d has heard of %lx only", r,
                                 (unsigned long) heard);
        }
    }
    return true;
}

bool r2_check_execute(const r2_check_job_t *job, r2_memory_t *memory, r2_check_report_t *report)
{
    run_t run = {.job = job, .memory = memory};
    bool good;

    run_init(&run);
    good = match_messages(&run, report);
    for (uint32_t n = 0; n < run.node_count; ++n) {
        if (0 == run.nodes[n].waiting) {
            run.ready[run.ready_count++] = n;
        }
    }
    while (good && run.ready_count > 0) {
        good = start(&run, run.ready[--run.ready_count], report);
    }
    good = good && check_all_done(&run, report) && check_flow(&run, report);
    run_fini(&run);
    return good;
}
