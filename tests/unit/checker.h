/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Proves properties of the schedules of all ranks of a collective, by symbolic execution.
 */
#ifndef R2_TESTS_CHECKER_H
#define R2_TESTS_CHECKER_H

#include "r2/planner.h"

/* Contributions are kept as bits of one word. */
#define R2_CHECK_RANKS_MAX 64

/** What is wrong with a set of schedules. */
typedef enum r2_flaw {
    R2_FLAW_NONE,
    R2_FLAW_OP,       /* an op is malformed: dependency, peer, length, region */
    R2_FLAW_IN,       /* writes the send buffer, or names it in place */
    R2_FLAW_ALIGN,    /* a reduction splits an element */
    R2_FLAW_SCRATCH,  /* more staging memory than allowed */
    R2_FLAW_AGREE,    /* ranks differ in digest, algorithm or chunk length */
    R2_FLAW_MATCH,    /* a message without its other end, or two with one name, or lengths differ */
    R2_FLAW_RACE,     /* two ops use the same bytes, one writes, neither waits for the other */
    R2_FLAW_DEADLOCK, /* ops that never start, if sends complete only when received */
    R2_FLAW_UNDEFINED, /* reads memory that nobody has set */
    R2_FLAW_OPERANDS,  /* joins different elements, or a contribution twice */
    R2_FLAW_RESULT,    /* a result lacks a contribution, is another element, or a gap was written */
    R2_FLAW_ORDER,     /* contributions are not in rank order */
    R2_FLAW_TREE,      /* reduction trees differ between elements or ranks */
    R2_FLAW_FLOW,      /* a rank may finish before another has started */
    R2_FLAW_COUNT
} r2_flaw_t;

const char *r2_flaw_name(r2_flaw_t flaw);

/** What an algorithm promises about its reductions. */
typedef enum r2_claim {
    R2_CLAIM_EACH_ONCE,  /* all contributions, each once */
    R2_CLAIM_RANK_ORDER, /* and in rank order, one tree for all elements on all ranks */
    R2_CLAIM_CANONICAL   /* and that tree is x0 OP (x1 OP (... OP x[n-1])) */
} r2_claim_t;

/** The schedules of all ranks. */
typedef struct r2_check_job {
    int32_t size;
    r2_plan_input_t *inputs;  /* owned; counts and displs in it are borrowed */
    r2_schedule_t *schedules; /* owned */
    r2_edge_t **edges;        /* owned; per rank, its lists of messages, or NULL */
    r2_claim_t claim;
} r2_check_job_t;

/** First flaw that was found. */
typedef struct r2_check_report {
    r2_flaw_t flaw;
    char text[200];
} r2_check_report_t;

/**
 * Has the schedules of all ranks made.
 * @param common     arguments; rank and in_place are set for each rank.
 * @param in_place   bit r: rank r works in place.
 * @return status of the first rank that failed, else R2_OK.
 */
r2_status_t r2_check_job_init(r2_check_job_t *job, const r2_plan_input_t *common,
                              uint64_t in_place);
void r2_check_job_fini(r2_check_job_t *job);

/** Checks everything. @return report_p->flaw. */
r2_flaw_t r2_check_job_run(const r2_check_job_t *job, r2_check_report_t *report_p);

#endif
