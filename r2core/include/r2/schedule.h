/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Schedules: a collective as ops of send, receive, reduce and copy with dependencies. Data, not
 * code. Of the planner's library (r2/planner.h): not installed.
 */
#ifndef R2_SCHEDULE_H
#define R2_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

typedef enum r2_op_kind {
    R2_OP_SEND,   /* src -> peer; complete when delivered (acknowledged) and src is free again */
    R2_OP_RECV,   /* peer -> dst; complete when all bytes are in dst */
    R2_OP_REDUCE, /* dst = src OP dst: src is the LEFT operand (MPI_Op convention in, inout) */
    R2_OP_COPY    /* dst = src */
} r2_op_kind_t;

/** Which memory an op works on. With in_place, IN and OUT are the same memory (see
 * r2_plan_input_t). */
typedef enum r2_buf {
    R2_BUF_IN,     /* the caller's send buffer: never written */
    R2_BUF_OUT,    /* the caller's receive buffer */
    R2_BUF_SCRATCH /* staging memory of schedule->scratch_bytes */
} r2_buf_t;

/** A region: `bytes` from `offset_bytes` of a buffer. */
typedef struct r2_region {
    r2_buf_t buf;
    uint64_t offset_bytes;
} r2_region_t;

/** One op. It may start when all ops it depends on are complete. */
typedef struct r2_op {
    r2_op_kind_t kind;
    uint32_t order; /* sends: lower ones go first in the queue of a link */
    int32_t peer;   /* rank in the communicator; SEND and RECV only */
    uint32_t tag;   /* SEND and RECV: unique per (source, destination) in this schedule */
    /* SEND and RECV: folded into the digest of the message: what only its two ends know */
    uint32_t mark;
    uint64_t bytes;     /* length of the region(s); a multiple of the element for REDUCE; > 0 */
    r2_region_t src;    /* SEND, REDUCE, COPY */
    r2_region_t dst;    /* RECV, REDUCE, COPY */
    bool frees_src;     /* REDUCE: until src is written again, no other op reads it */
    uint32_t first_dep; /* index into deps[] */
    uint32_t dep_count;
} r2_op_t;

/** The schedule of one rank. Ops depend on earlier ops only. */
typedef struct r2_schedule {
    r2_op_t *ops; /* owned */
    uint32_t op_count, op_room;
    uint32_t *deps; /* owned; indices of ops */
    uint32_t dep_count, dep_room;
    uint64_t scratch_bytes;
    uint64_t chunk_bytes;  /* unit of striping for its messages */
    uint64_t call_bytes;   /* of all ranks' counts, as its kind adds them up */
    uint32_t crowded;      /* r2_cost_params_t that it was made from */
    bool minds_crowds;     /* of an allgather: it is another one where ranks wait for processors */
    uint32_t digest;       /* equal on all ranks that made the same plan */
    const char *algorithm; /* static name, for the log */
    r2_status_t status;    /* first error while building (R2_ERR_NO_MEMORY) */
} r2_schedule_t;

/** Makes an empty schedule in the caller's memory. */
void r2_schedule_init(r2_schedule_t *schedule);
void r2_schedule_fini(r2_schedule_t *schedule);

/**
 * Appends an op. Out of memory is kept in schedule->status and later calls do nothing.
 * @param deps ops it waits for, R2_OP_NONE entries are skipped.
 * @return index of the op, or R2_OP_NONE.
 */
#define R2_OP_NONE UINT32_MAX

/* Chunks of whole vectors of this many bytes are reduced one by one as if all of an op were reduced
 * at once: what implementations take apart at the end of a vector is at the op's end alone. */
#define R2_REDUCE_GRAIN_BYTES 64u
uint32_t r2_schedule_add(r2_schedule_t *schedule, const r2_op_t *op, const uint32_t *deps,
                         uint32_t dep_count);

/* A plan digest has the kind of collective in its low bits, so that ranks that disagree can tell
 * what others called. */
#define R2_DIGEST_KIND_BITS 5u

/** Digest helper: folds `value` into a 32-bit FNV-1a hash. */
uint32_t r2_digest_fold(uint32_t digest, uint64_t value);

#endif
