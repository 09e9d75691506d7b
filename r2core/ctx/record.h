/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Writes what happens to rails and peers into the event file, and measures what faults cost.
 */
#ifndef R2_CTX_RECORD_H
#define R2_CTX_RECORD_H

#include "ctx/core.h"
#include "ctx/estimator.h"
#include "ctx/host_table.h"
#include "ctx/source.h"
#include "telemetry/events.h"
#include "telemetry/gap.h"
#include "telemetry/snapshot.h"

/** Observes a process. Engine lock. */
typedef struct r2_record {
    r2_core_t *core;                 /* borrowed */
    r2_observer_t observer;          /* in core->observers */
    const r2_estimator_t *estimator; /* borrowed */
    const char *host_name;           /* borrowed */
    const r2_hosts_t *hosts;         /* borrowed: of the job; NULL: not known yet */
    const r2_plan_env_t *env; /* borrowed: what plans of the job are made from; NULL: not told */
    r2_events_t *events;      /* owned; NULL: no event file, only gaps are measured */
    r2_snapshot_t *plan_file; /* owned; NULL: none (rank 0 alone has one) */
    r2_gap_t gap;
} r2_record_t;

/** Observes a process from now on; the caller opens files. @param host_name, estimator outlive
 * it. */
void r2_record_init(r2_record_t *record, r2_core_t *core, const r2_estimator_t *estimator,
                    const char *host_name);
/** Closes the files. Nothing is observed any more. */
void r2_record_fini(r2_record_t *record);
/** Adds the files that are open: what is queued for them is written by the service thread. */
void r2_record_sources(const r2_record_t *record, r2_sources_t *sources);
/** First line of the event file. */
void r2_record_start(r2_record_t *record);
/**
 * What plans of the job are made from, as text.
 * @return owned by the caller; NULL: nothing is agreed, or no memory.
 */
char *r2_record_plan_text(const r2_record_t *record);

#endif
