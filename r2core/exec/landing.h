/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Landings: messages that NICs of peers put to memory of a GPU, where the user has it.
 *
 * The link gives what is not put to the copy that stands for the buffer (chunks before the grant,
 * what is sent again, lanes without puts). When all of a message is there, that part is stored, and
 * what NICs have written is made visible to the GPU; then the op is complete, and the copy has
 * nothing of it. A message of which nothing was put is stored as any other.
 *
 * Engine lock.
 */
#ifndef R2_EXEC_LANDING_H
#define R2_EXEC_LANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/schedule.h"

struct r2_exec;
struct r2_exec_op;

/** A part of a message that is in the copy. */
typedef struct r2_landing_span {
    struct r2_landing_span *next;
    uint64_t offset, bytes;
} r2_landing_span_t;

/** Of one RECV op. */
typedef struct r2_landing {
    struct r2_landing *next;  /* in exec->landings */
    struct r2_exec_op *op;    /* borrowed */
    r2_landing_span_t *spans; /* owned list: blocks of the engine; newest first */
    uint64_t copied_bytes;    /* in all of them */
    uint64_t ticket;          /* of their stores; 0: not started */
    bool is_whole;            /* the message is here */
    bool is_short;            /* there was no memory to note a span */
} r2_landing_t;

/** An op that NICs write for begins. @return false: there is no memory for it. */
bool r2_landing_new(struct r2_exec *exec, struct r2_exec_op *handle);
/** An r2_link_sink_fn_t: a part of the message comes by itself. @param arg the op's handle */
void r2_landing_take(void *arg, uint64_t offset, const void *data, uint64_t bytes);
/** The message of an op is complete. @return true: so is the op, and the copy has all of it. */
bool r2_landing_is_copy(struct r2_exec_op *handle);
/** Goes on with messages that are complete (landing_step.c). @return ops that ended. */
unsigned r2_landings_run(struct r2_exec *exec);
/** Gives their memory back. */
void r2_landings_free(struct r2_exec *exec);
/* of landing*.c */
uint32_t r2_landing_index(const r2_landing_t *landing);
const r2_op_t *r2_landing_op(const r2_landing_t *landing);
void r2_landing_free(r2_landing_t *landing);

#endif
