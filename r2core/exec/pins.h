/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory for runs, kept for runs to come. What is known of it lies elsewhere: it is gone
 * with the device's context, and may not even be read then.
 */
#ifndef R2_EXEC_PINS_H
#define R2_EXEC_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/mem.h"

typedef struct r2_pin {
    struct r2_pin *next;
    char *memory; /* owned */
    size_t bytes;
    uint64_t id;  /* r2_mem_id(): says whether it is still there */
    bool is_heap; /* pinned memory was short */
} r2_pin_t;

typedef struct r2_pins {
    r2_mem_t *mem;  /* borrowed */
    r2_mem_at_t at; /* where it belongs */
    r2_pin_t *free; /* owned list, newest first */
    size_t kept_bytes, keep_bytes;
    uint32_t forgets; /* calls of r2_pins_forget(); from the first one on the driver is asked */
} r2_pins_t;

enum { R2_PINS_OF_RUN = 3 }; /* the most that a run takes: copies of two buffers, staging memory */

/** What a run to come takes. */
typedef struct r2_pins_wanted {
    uint32_t count;
    size_t bytes[R2_PINS_OF_RUN];
    r2_pin_t *pins[R2_PINS_OF_RUN]; /* owned; NULL: not there yet */
} r2_pins_wanted_t;

/** @param keep_bytes the most that is kept. */
void r2_pins_init(r2_pins_t *pins, r2_mem_t *mem, size_t keep_bytes);
/** All were given back. Also for zeros. */
void r2_pins_fini(r2_pins_t *pins);

/** Memory that the driver copies to and from, aligned to 64 bytes. Pinned, or where that is short
 * any: copies are slower then. @return NULL: there is none. */
r2_pin_t *r2_pins_get(r2_pins_t *pins, size_t bytes);
/** As r2_pins_get(), of what is kept only. @return NULL: none of that length. */
r2_pin_t *r2_pins_kept(r2_pins_t *pins, size_t bytes);
/** As r2_pins_get(), anew. Without the engine lock: drivers take long for it, and may wait for the
 * application's work. @param at r2_pins_t.at. */
r2_pin_t *r2_pins_new(r2_mem_t *mem, const r2_mem_at_t *at, size_t bytes);
/** Takes what is kept of what is wanted. @return true: that is all of it. */
bool r2_pins_take(r2_pins_t *pins, r2_pins_wanted_t *wanted);
/** Pins the rest, as r2_pins_new(). */
void r2_pins_fill(r2_mem_t *mem, const r2_mem_at_t *at, r2_pins_wanted_t *wanted);
/** All of it is kept for the next run, however much that is until the next r2_pins_put(); not what
 * went with a device that was reset meanwhile. */
void r2_pins_give(r2_pins_t *pins, r2_pins_wanted_t *wanted);
/** As r2_pins_give() for one, and what is kept beyond the most goes. @param pin NULL: nothing. */
void r2_pins_put(r2_pins_t *pins, r2_pin_t *pin);
/** A device may have been reset: what went with it is not kept any more. */
void r2_pins_forget(r2_pins_t *pins);

#endif
