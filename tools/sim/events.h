/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Queue of events of a simulation: a binary heap, earliest first, equal times in order of
 * insertion.
 */
#ifndef R2_TOOLS_EVENTS_H
#define R2_TOOLS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

typedef struct event {
    double at_s;
    uint64_t number; /* order of insertion: set by events_add() */
    uint32_t kind, what;
    uint32_t stamp; /* the user's: to recognise events that no longer count */
} event_t;

typedef struct events {
    event_t *heap; /* owned */
    size_t count, room;
    uint64_t number;
} events_t;

/** @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t events_add(events_t *events, event_t event);
/** Takes the earliest out. @return false: none. */
bool events_take(events_t *events, event_t *event_p);
void events_fini(events_t *events);

#endif
