/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One way to drive a process: for its application, its service thread and the simulator.
 */
#ifndef R2_CTX_DRIVE_H
#define R2_CTX_DRIVE_H

#include <stdint.h>

#include "r2/ctx.h"

/** What one drive may do. */
typedef enum r2_drive_flag {
    R2_DRIVE_RAILS = 1,  /* read the rails; else only what sources brought is worked off */
    R2_DRIVE_MEMORY = 2, /* write receive buffers, start ops, run predefined operations */
    R2_DRIVE_ASYNC = 4,  /* the same with parameter async_progress only */
    R2_DRIVE_USER = 8,   /* what may run code of the user, or begin calls: operations, datatypes,
                            active messages, map syncs */
    R2_DRIVE_SEND = 16,  /* send at once what the detector wants sent: nobody drives right after */
    /* nothing but to look whether what is waited for has come; if it has, what that asks for */
    R2_DRIVE_GLANCE = 32,
} r2_drive_flag_t;

/** Who drives: the only differences between them, each with its reason. */
typedef enum r2_drive {
    /* It is inside of a call of r2: its memory and its code are at r2's disposal. It comes back. */
    R2_DRIVE_APP = R2_DRIVE_RAILS | R2_DRIVE_MEMORY | R2_DRIVE_USER,
    /* It has just done so, there was nothing, and it waits. */
    R2_DRIVE_APP_GLANCE = R2_DRIVE_APP | R2_DRIVE_GLANCE,
    /* The application is away and may be in the middle of anything: its code is not run, and its
     * memory is written only if it allows so, or if a thread waits for a call meanwhile. */
    R2_DRIVE_SERVICE = R2_DRIVE_RAILS | R2_DRIVE_ASYNC,
    /* The service thread, woken by a source while the application drives: the rails are left to the
     * application, whose next drive is up to takeover_us away. */
    R2_DRIVE_WOKEN = R2_DRIVE_SEND,
} r2_drive_t;

/**
 * Polls sources that are due, then rails, timers, the detector and ops, once. Takes the engine
 * lock; an application is told afterwards what is complete.
 * @return number of events; 0: there was nothing to do.
 */
unsigned r2_ctx_drive(r2_ctx_t *ctx, r2_drive_t who);
/** The same inside of the engine lock, without telling. */
unsigned r2_ctx_drive_locked(r2_ctx_t *ctx, r2_drive_t who);

/** Next time a drive has work because of a timer; R2_NEVER_NS: none. Engine lock. */
uint64_t r2_ctx_deadline_ns(const r2_ctx_t *ctx);

#endif
