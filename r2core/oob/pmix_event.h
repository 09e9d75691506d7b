/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Post driver "events": messages as PMIx events, carried by the launcher's daemons.
 */
#ifndef R2_OOB_PMIX_EVENT_H
#define R2_OOB_PMIX_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/logger.h"
#include "oob/post.h"

/*
 * The launcher broadcasts an event to its daemons, which give it to those of their processes that
 * it is for. Some launchers do not survive one: that of Open MPI 4.1 hangs, Slurm ends the step. So
 * it is found out from what the server is called whether it carries them, and never tried.
 *
 * One event is under way from a process at a time; what is to be said meanwhile goes together as
 * the next one. So the server's socket never has two small writes in a row, which Nagle's algorithm
 * and a late acknowledgement would hold for 40 ms, and a burst is few events.
 *
 * PMIx's thread copies what arrives, and wakes poll().
 */

/** What a server does with an event. */
typedef enum r2_pmix_server {
    R2_PMIX_SERVER_CARRIES, /* PRRTE from 3 on */
    R2_PMIX_SERVER_UNKNOWN, /* nobody has tried */
    R2_PMIX_SERVER_BREAKS   /* Open MPI's own before 5, Slurm: the job would not survive it */
} r2_pmix_server_t;

/**
 * What this process's server is. Asks nobody: it is known since PMIx_Init().
 * @param name_p what the server calls itself, "?" if it does not, up to `name_bytes`.
 */
r2_pmix_server_t r2_pmix_server_find(char *name_p, size_t name_bytes);

/** What a driver is made of. */
typedef struct r2_pmix_event_config {
    const r2_clock_t *clock; /* borrowed: outlives the driver */
    const r2_log_t *log;     /* borrowed: outlives the driver */
    uint32_t rank, size;     /* of the job that the server started */
} r2_pmix_event_config_t;

/**
 * Registers the handlers: for messages, and for deaths of processes, which the launcher tells where
 * jobs survive them. PMIx_Init() was called before and stays in force.
 * @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_NO_DESCRIPTORS, R2_ERR_SYSTEM.
 */
r2_status_t r2_pmix_event_create(const r2_pmix_event_config_t *config, r2_post_t *post_p);
/** Not from inside an upcall. What PMIx still holds of it is freed when PMIx gives it back. */
void r2_pmix_event_destroy(r2_post_t *post);

/** What a driver has done so far. */
typedef struct r2_pmix_event_counts {
    uint64_t sent_events, sent_messages, refused, received, dropped;
} r2_pmix_event_counts_t;

void r2_pmix_event_counts(const r2_post_t *post, r2_pmix_event_counts_t *counts_p);

#endif
