/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Folds contributions in two levels: those of each host first, then the hosts' partial results.
 */
#ifndef R2_PLAN_HOST_FOLD_H
#define R2_PLAN_HOST_FOLD_H

#include "plan/by_host.h"
#include "plan/layout.h"
#include "plan/ops.h"

/** Kinds of messages of one part; tags of a part are R2_HOST_TAGS in a row. */
enum { R2_TAG_CONTRIBUTE, R2_TAG_PARTIAL, R2_TAG_RESULT, R2_TAG_DELIVER, R2_HOST_TAGS };

/** Places of staging memory, used round robin. */
typedef struct r2_host_pool {
    uint32_t first, count; /* slots */
    uint64_t next;
} r2_host_pool_t;

/**
 * State while parts of a vector are folded, in one order on all ranks.
 *
 * Order of n ranks on h hosts: on each host acc = x[last]; then acc = x[j] OP acc down to its first
 * rank; then the same of the hosts' partial results. It depends on which ranks are on which host,
 * not on who folds. Staging memory is used in the order of the parts, and nothing in it waits for
 * what comes later: no circle of ranks waits for each other.
 */
typedef struct r2_host_fold {
    const r2_plan_input_t *input; /* borrowed: outlives the fold */
    r2_schedule_t *schedule;      /* borrowed: outlives the fold */
    r2_by_host_t by;
    uint32_t host;          /* of this rank */
    uint64_t segment_bytes; /* of the longest block */
    uint32_t segments;
    uint64_t slot_bytes; /* from one slot to the next */
    uint32_t *slot_free; /* owned; the op that frees a slot */
    r2_host_pool_t slots, partials, results;
} r2_host_fold_t;

/** A segment of a block: what is folded at once, each host's part of it by one of its ranks. */
typedef struct r2_host_part {
    uint32_t piece, pieces; /* who that is: r2_by_host_handler() */
    uint32_t segment;
    uint32_t tag; /* of the first kind */
    uint64_t bytes;
    r2_region_t own; /* this rank's contribution */
} r2_host_part_t;

/** What this host contributes. */
typedef struct r2_host_partial {
    r2_region_t place;
    uint32_t ready; /* op after which it is there */
    uint32_t slot;  /* R2_OP_NONE: not in staging memory, but this rank's own contribution */
} r2_host_partial_t;

/** Finds the ranks of each host. @return R2_OK or R2_ERR_NO_MEMORY; r2_host_fold_fini() in both
 * cases. */
r2_status_t r2_host_fold_init(r2_host_fold_t *fold, const r2_plan_input_t *input,
                              r2_schedule_t *schedule);
/**
 * Chooses the length of segments, and divides staging memory.
 * @param blocks that the vector is cut into. @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_host_fold_stage(r2_host_fold_t *fold, uint64_t largest_bytes, uint32_t blocks);
void r2_host_fold_fini(r2_host_fold_t *fold);

/**
 * Cuts the vector into pieces for shares of hosts: as many each as the host with most ranks has.
 * Their lengths go into the digest.
 * @param weight [host]; shares are in proportion; all zeros: equal.
 * @param whole  no pieces: one rank of each host handles all of a share.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_host_layout(r2_host_fold_t *fold, const uint64_t *weight, bool whole,
                           r2_layout_t *layout_p);
/** Part i of such a layout, in the order segment, share, piece: fold->segments x pieces of them. */
r2_host_part_t r2_host_part(const r2_host_fold_t *fold, const r2_layout_t *pieces, uint32_t i);

/** Least staging memory that makes progress, bytes. */
uint64_t r2_host_fold_scratch(const r2_plan_input_t *input);
/** Are the ranks of hosts in blocks, in the order of hosts? Else operations must commute. */
bool r2_host_fold_ordered(const r2_plan_input_t *input);
/** Is the order of reduction right for the operation? */
bool r2_host_fold_fits(const r2_plan_input_t *input);

static inline int32_t r2_host_handler(const r2_host_fold_t *fold, const r2_host_part_t *part,
                                      uint32_t host)
{
    return r2_by_host_handler(&fold->by, host, part->piece, part->pieces);
}

r2_msg_t r2_host_message(const r2_host_part_t *part, int32_t peer, uint32_t kind);

/** Gives this rank's contribution to the handler of its host. @return the op. */
uint32_t r2_host_contribute(r2_host_fold_t *fold, const r2_host_part_t *part);
/** The handler's side: takes in and folds what its host contributes. */
r2_host_partial_t r2_host_fold_own(r2_host_fold_t *fold, const r2_host_part_t *part);
/** Sends it to another rank and frees its place. @return the op that read this rank's own
 * contribution last. */
uint32_t r2_host_pass(r2_host_fold_t *fold, const r2_host_part_t *part,
                      const r2_host_partial_t *partial, int32_t peer);

/** A slot for a result that cannot be folded where it belongs. */
uint32_t r2_host_result_take(r2_host_fold_t *fold);
static inline r2_region_t r2_host_slot(const r2_host_fold_t *fold, uint32_t slot)
{
    return r2_at(R2_BUF_SCRATCH, slot * fold->slot_bytes);
}

/**
 * Folds the partial results of all hosts.
 * @param acc where. @param acc_free op after which it may be written. @return the op after which
 * the result is there.
 */
uint32_t r2_host_fold_all(r2_host_fold_t *fold, const r2_host_part_t *part,
                          const r2_host_partial_t *partial, r2_region_t acc, uint32_t acc_free);

#endif
