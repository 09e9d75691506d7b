/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The side of the event driver that PMIx's thread sees. For oob/pmix*.c only.
 */
#ifndef R2_OOB_PMIX_PORT_H
#define R2_OOB_PMIX_PORT_H

#include <pmix.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oob/bundle.h"
#include "r2/status.h"

#define R2_PMIX_PARCELS_MAX 1024u /* that wait to be looked at; what comes then is dropped */

/** Something that PMIx's thread has taken in. */
typedef struct r2_pmix_parcel {
    struct r2_pmix_parcel *prev, *next;
    bool is_death; /* of process `rank`, by the launcher's word; else a bundle */
    uint32_t rank;
    size_t bytes;
    uint8_t data[];
} r2_pmix_parcel_t;

/** Handlers that are registered, what they took in, and the event that is under way. */
typedef struct r2_pmix_port r2_pmix_port_t;

/** Registers the handlers. @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_NO_DESCRIPTORS,
 * R2_ERR_SYSTEM. */
r2_status_t r2_pmix_port_open(r2_pmix_port_t **port_p);
/** A port that takes in one death when a job has ended, also if it ended before. For servers that
 * carry events; nothing is sent. @param nspace copied. @return as r2_pmix_port_open(). */
r2_status_t r2_pmix_port_open_end(const char *nspace, r2_pmix_port_t **port_p);
/** Takes the handlers back. It is freed when PMIx has given back all that it holds of it. */
void r2_pmix_port_close(r2_pmix_port_t *port);

/** Readable when something was taken in, or the event that was under way is with the server. */
int r2_pmix_port_fd(const r2_pmix_port_t *port);
/** Is an event under way to the server? */
bool r2_pmix_port_is_sending(r2_pmix_port_t *port);
/**
 * Sends an event to some processes of the job, while none is under way. Never blocks.
 * @param rank of this process. @param bundle copied.
 * @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_SYSTEM.
 */
r2_status_t r2_pmix_port_send(r2_pmix_port_t *port, uint32_t rank, const uint32_t *ranks,
                              uint32_t count, const r2_bundle_t *bundle);
/** All that was taken in, oldest first: a list that the caller owns. */
r2_pmix_parcel_t *r2_pmix_port_empty(r2_pmix_port_t *port);

#endif
