/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sources: what has to be looked at beside the rails, in one table.
 */
#ifndef R2_CTX_SOURCE_H
#define R2_CTX_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Hello, out-of-band messages, probes, NICs, event file, plan file. Its descriptor wakes the
 * service thread. Engine lock, but for `flush`.
 */
typedef struct r2_source {
    const char *name; /* borrowed: static */
    int fd;           /* readable when there is something to do; -1: none, each drive polls */
    bool ready;       /* has no descriptor, or it woke a thread since the newest poll */
    /** Handles what is there and timeouts, never blocks. Engine lock. NULL: only flush() is
     * needed. */
    void (*poll)(void *instance);
    /** When poll() must be called for a timeout. NULL: never. */
    uint64_t (*deadline_ns)(void *instance);
    /** What may block: by the service thread, without the engine lock. NULL: nothing does. */
    void (*flush)(void *instance);
    void *instance; /* borrowed: outlives the table */
} r2_source_t;

#define R2_SOURCES_MAX 8

/** All sources of a process, in the order in which they are polled. Filled before threads start. */
typedef struct r2_sources {
    r2_source_t at[R2_SOURCES_MAX];
    uint32_t count;
} r2_sources_t;

void r2_sources_add(r2_sources_t *sources, const r2_source_t *source);
/** Polls who is ready, who has no descriptor, and whose time has come. Engine lock. */
static inline void r2_sources_poll(r2_sources_t *sources, uint64_t now_ns)
{
    const r2_source_t *end = sources->at + sources->count;

    for (r2_source_t *source = sources->at; source < end; ++source) {
        if (source->ready ||
            (NULL != source->deadline_ns && now_ns >= source->deadline_ns(source->instance))) {
            source->ready = source->fd < 0;
            source->poll(source->instance);
        }
    }
}

/** When r2_sources_poll() has work because of a timer; R2_NEVER_NS: none. Engine lock. */
uint64_t r2_sources_deadline_ns(const r2_sources_t *sources);
/** Writes what was queued for files. Service thread, without the engine lock. */
void r2_sources_flush(const r2_sources_t *sources);

#endif
