/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Event log: one line of JSON for everything that happens to rails and peers (docs/events.md).
 */
#ifndef R2_TELEMETRY_EVENTS_H
#define R2_TELEMETRY_EVENTS_H

#include "base/clock.h"
#include "base/logger.h"
#include "r2/nic.h"
#include "r2/status.h"

#define R2_EVENTS_VERSION      1u       /* of the schema */
#define R2_EVENTS_LINE_BYTES   8192u    /* longest line */
#define R2_EVENTS_QUEUE_BYTES  262144u  /* lines that wait for being written; more are lost,
and counted */
#define R2_EVENTS_SAMPLE_NS    100000000ull /* throughput is sampled this often at most */

/** What happened. */
typedef enum r2_event_type {
#define R2_EVENT(upper, lower, fields, help) R2_EVENT_##upper,
#include "telemetry/events.def"
#undef R2_EVENT
    R2_EVENT_COUNT
} r2_event_type_t;

#define R2_EVENT_CTYPE_U32    uint32_t
#define R2_EVENT_CTYPE_U64    uint64_t
#define R2_EVENT_CTYPE_STRING const char *
#define R2_EVENT_CTYPE_BOOL   bool
#define R2_EVENT_CTYPE_NICS   const r2_nic_t *
#define R2_EVENT_CTYPE_TOTALS const uint64_t *

/**
 * One event. Only the fields of its type are written (events.def); pointers are borrowed during
 * r2_events_add().
 */
typedef struct r2_event {
    r2_event_type_t type;
    uint64_t time_ns;    /* of the clock */
    uint32_t rail_count; /* entries of rails, tx_bytes, rx_bytes */
#define R2_EVENT_FIELD(name, kind, help) R2_EVENT_CTYPE_##kind name;
#include "telemetry/events.def"
#undef R2_EVENT_FIELD
} r2_event_t;

/** An event without fields. */
r2_event_t r2_event(r2_event_type_t type, uint64_t time_ns);

/** "start", "suspect", ... */
const char *r2_event_name(r2_event_type_t type);

/**
 * The event log of one process. Any thread may add and flush: a lock that is held for copying one
 * line guards the queue, another one the file. All functions but create() take NULL: no event file.
 */
typedef struct r2_events r2_events_t;

/**
 * Opens the event file. Lines are appended; each is written whole, so processes may share a file.
 * @param pattern parameter event_file: %h host, %r rank, %p process id, %% a percent sign. Empty:
 * no file.
 * @param log     borrowed: outlives the log. Gets one warning when writing fails.
 * @param clock   borrowed: outlives the log. Times of events are taken from it.
 * @param events_p NULL if there is no file.
 * @param text_p  on error: what is wrong, naming the parameter.
 * @return R2_OK, R2_ERR_PARAM (pattern, or the file cannot be opened), R2_ERR_NO_MEMORY,
 * R2_ERR_SYSTEM.
 */
r2_status_t r2_events_create(const char *pattern, const char *host, uint32_t rank,
                             const r2_log_t *log, const r2_clock_t *clock, r2_events_t **events_p,
                             char *text_p, size_t text_bytes);

/** Queues one line. Never waits for the file, never fails: what does not fit is counted as lost. */
void r2_events_add(r2_events_t *events, const r2_event_t *event);

/** True when a sample of throughput is due: asked on every progress pass, costs two comparisons. */
bool r2_events_sample_due(const r2_events_t *events, uint64_t now_ns);
/**
 * Queues what was transferred since the last sample; nothing if it was nothing twice in a row.
 * One thread at a time (the engine lock).
 * @param tx_bytes, rx_bytes totals since the start, `rail_count` entries.
 */
void r2_events_sample(r2_events_t *events, const uint64_t *tx_bytes, const uint64_t *rx_bytes,
                      uint32_t rail_count, uint64_t now_ns);

/** Becomes readable when lines are queued and stays so until r2_events_flush(). @return -1: no
 * file. */
int r2_events_fd(const r2_events_t *events);
/** Writes what is queued. May wait for the disk: not under the engine lock. */
void r2_events_flush(r2_events_t *events);

/** Writes the rest and an `end` line, closes the file. */
void r2_events_destroy(r2_events_t *events);

#endif
