/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Fused ops: what a RECV op brings is reduced out of the transport's buffer, as it arrives.
 *
 *   RECV -> s, REDUCE s -> d                  d = chunk OP d
 *   COPY o -> d, RECV -> s, REDUCE s -> d     d = chunk OP o
 *   RECV -> d, REDUCE o -> d                  d = o OP chunk
 *
 * s is a slot that nobody else reads: it is not written then.
 *
 * The bits are those of the ops one by one: each element is reduced once, by the same function.
 */
#ifndef R2_EXEC_FUSE_H
#define R2_EXEC_FUSE_H

#include "r2/schedule.h"

struct r2_exec;

/**
 * Finds ops that may be fused: nothing but these waits for them or is waited for by them.
 * @param dependents, first_dependent as in r2_program_t.
 * @param partners [op_count], filled: of a RECV op its REDUCE op; of a REDUCE op its RECV op; of a
 *        COPY op the REDUCE op that does without it; else R2_OP_NONE. @return whether there are.
 */
bool r2_fuse_find(const r2_schedule_t *schedule, const uint32_t *dependents,
                  const uint32_t *first_dependent, uint32_t *partners);

/** True if what is fused in the program is fused in this run: its reduction may be called by any
 * thread, and its buffers lie as they are sent. */
bool r2_fuse_may(const struct r2_exec *exec);
/** True of an op that is fused in this run. */
bool r2_fuse_is(const struct r2_exec *exec, uint32_t op);
/** Takes a piece of what a fused RECV op brings (r2_link_sink_fn_t). @param arg the op's handle. */
void r2_fuse_take(void *arg, uint64_t offset, const void *data, uint64_t bytes);
/** True of a fused RECV op that adds to what is there: what was taken must not be taken again. */
bool r2_fuse_adds(const struct r2_exec *exec, uint32_t recv);
/** True if all that a fused REDUCE op is to do was done as its chunks came. */
bool r2_fuse_has_reduced(const struct r2_exec *exec, uint32_t reduce);
/** The COPY op that a fused REDUCE op does without; R2_OP_NONE: there is none. */
uint32_t r2_fuse_copy_of(const r2_schedule_t *schedule, const uint32_t *partners, uint32_t reduce);

#endif
