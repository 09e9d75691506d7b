/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * An event as a line of JSON.
 */
#ifndef R2_TELEMETRY_EVENT_LINE_H
#define R2_TELEMETRY_EVENT_LINE_H

#include "telemetry/events.h"

/** Whose events they are. */
typedef struct r2_event_origin {
    char host[64];
    uint32_t rank;
    int64_t wall_offset_ns; /* time of day less the clock, as of the start */
} r2_event_origin_t;

/**
 * Prints an event.
 * @param line_p R2_EVENTS_LINE_BYTES; not terminated by zero.
 * @return length of the line with its newline; 0: it does not fit.
 */
size_t r2_event_line(const r2_event_t *event, const r2_event_origin_t *origin, char *line_p);

#endif
