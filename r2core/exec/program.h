/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Programs: a schedule with all that a run derives from it alone.
 */
#ifndef R2_EXEC_PROGRAM_H
#define R2_EXEC_PROGRAM_H

#include "exec/touch.h"
#include "r2/schedule.h"

/**
 * What calls of one shape do on this rank. Nobody changes it once it is made: what changes in a
 * run belongs to the run (r2_exec_t), so that many runs may share one. Engine lock.
 */
typedef struct r2_program {
    r2_schedule_t schedule;          /* its ops and dependencies lie behind this struct */
    const uint32_t *dependents;      /* ops that wait, grouped by the op they wait for */
    const uint32_t *first_dependent; /* op_count + 1 indices into dependents */
    const uint32_t *starts;          /* ops that wait for none */
    uint32_t start_count;
    uint32_t users;
    uint64_t sent_bytes;      /* by all SEND ops */
    uint32_t sends;           /* SEND ops */
    bool awaits_sends;        /* ops wait for SEND ops */
    size_t bytes;             /* of all this; grows with `touch` */
    const uint32_t *partners; /* r2_fuse_find(); NULL: no ops may be fused */
    r2_touch_t *touch; /* owned list: for each length from which on the GPU reduced in a run */
} r2_program_t;

/**
 * Copies a schedule into a program with one user.
 * @param program_p to be given back by r2_program_put(). @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_program_create(const r2_schedule_t *schedule, r2_program_t **program_p);
/**
 * True of a SEND op that waits for one RECV op alone and sends what that brings: it may begin with
 * the first bytes that arrive. Not if they are one chunk.
 */
bool r2_program_passes_on(const r2_program_t *program, uint32_t op);
/** What its ops touch: worked out when a run needs it first.
 * @param gpu_bytes as r2_touch_create(): few different ones @return NULL: no memory. */
const r2_touch_t *r2_program_touch(r2_program_t *program, uint64_t gpu_bytes);
/** One user more. */
r2_program_t *r2_program_get(r2_program_t *program);
/** One user less: the last one frees it. NULL: nothing. */
void r2_program_put(r2_program_t *program);

#endif
