/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What tests of registered memory share: registrations that are counted, and that take long.
 */
#ifndef R2_TESTS_TP_MEMORY_H
#define R2_TESTS_TP_MEMORY_H

#include <stdatomic.h>

#include "tp_sides.h"

#define CHUNKS      64u
#define WHOLE_BYTES ((size_t) CHUNKS * DATA_MAX)

/** Registering what is counted brings its pages in, as a device's driver does, and ends when the
 * test says so. */
typedef struct memory_slow {
    bool on;
    atomic_bool begun, may_end;
} memory_slow_t;

extern memory_slow_t memory_slow;

/** Counts what is registered between these addresses from now on. */
void memory_count(uintptr_t start, uintptr_t end);
uint32_t memory_registered(void);
/** The same of what was refused. */
uint32_t memory_refused(void);
/** Memory with the pattern in it, counted: packet n of a size may start at n. */
char *memory_map(char *at);
/** Sends all of some memory, a packet for each chunk, and waits until it is ours again. */
void memory_send(side_t *a, side_t *b, const char *memory, const r2_tp_memory_t *whole);
/** Waits. @return false: in vain. */
bool memory_spin(atomic_bool *what);

#endif
