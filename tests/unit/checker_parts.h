/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parts of the schedule checker.
 */
#ifndef R2_TESTS_CHECKER_PARTS_H
#define R2_TESTS_CHECKER_PARTS_H

#include "checker.h"

enum { R2_BUF_KINDS = 3 };

/** Notes a flaw unless there is one already. @return false, for `return r2_check_fail(...)`. */
bool r2_check_fail(r2_check_report_t *report, r2_flaw_t flaw, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Length in bytes of a buffer of one rank. */
uint64_t r2_check_buf_bytes(const r2_check_job_t *job, int32_t rank, r2_buf_t buf);

/* ---- collectives that move blocks (checker_moves.c) */

/** Gather, scatter, alltoall and their kin. */
bool r2_check_moves(r2_coll_kind_t kind);
bool r2_check_by_edges(const r2_plan_input_t *input);
/**
 * Gives a rank its lists of messages, of uneven lengths; adjusts in_place to what it means for
 * them.
 * @return what to free.
 */
r2_edge_t *r2_check_edges(r2_plan_input_t *input);
uint64_t r2_check_moved_bytes(const r2_plan_input_t *input, r2_buf_t buf);

/* ---- races: dependencies of one rank order all ops that touch the same bytes (checker_race.c) */

bool r2_check_races(const r2_check_job_t *job, int32_t rank, r2_check_report_t *report);

/* ---- values: what each byte of memory holds (checker_values.c) */

/** A byte: which tree of contributions it is, and of which byte of the vector or block. */
typedef struct r2_value {
    uint32_t tree; /* index into trees */
    uint32_t position;
} r2_value_t;

#define R2_TREE_UNDEFINED UINT32_MAX

/** A product of contributions. Equal trees have equal indices; tree r < size is rank r's own. */
typedef struct r2_tree {
    uint32_t left, right; /* operands; unused for a single contribution */
    uint64_t ranks;       /* who is in it */
    int32_t low, high;    /* ordered product of ranks low..high; low < 0: not in rank order */
} r2_tree_t;

/** Fills in what OUT of a rank must hold in the end. */
void r2_check_expect_moved(const r2_check_job_t *job, int32_t rank, r2_value_t *expected);

/** All memory of all ranks. */
typedef struct r2_memory {
    r2_value_t **bytes; /* owned; [rank * R2_BUF_KINDS + buf] */
    r2_tree_t *trees;   /* owned */
    uint32_t tree_count, tree_room;
    uint32_t *buckets; /* owned; hash of trees */
    uint32_t bucket_count;
} r2_memory_t;

void r2_memory_init(r2_memory_t *memory, const r2_check_job_t *job);
void r2_memory_fini(r2_memory_t *memory, const r2_check_job_t *job);

/** Carries out a COPY or REDUCE of a rank, or the delivery of a message (SEND op, RECV op). */
bool r2_memory_local(r2_memory_t *memory, const r2_check_job_t *job, int32_t rank,
                     const r2_op_t *op, r2_check_report_t *report);
bool r2_memory_deliver(r2_memory_t *memory, const r2_check_job_t *job, int32_t from,
                       const r2_op_t *send, int32_t to, const r2_op_t *recv,
                       r2_check_report_t *report);

/** Compares the results of all ranks with what the collective must give. */
bool r2_memory_results(r2_memory_t *memory, const r2_check_job_t *job, r2_check_report_t *report);

/* ---- execution (checker_run.c) */

bool r2_check_execute(const r2_check_job_t *job, r2_memory_t *memory, r2_check_report_t *report);

#endif
