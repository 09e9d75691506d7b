/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages of one process to several, as the payload of an event.
 */
#ifndef R2_OOB_BUNDLE_H
#define R2_OOB_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oob/post.h"

/*
 * Magic, rank of the sender u32, then for each message the rank that it is for u32, its length u16
 * and its bytes; last a keyed hash of all that is before it. Little endian. Whoever has not the job
 * key can neither make one nor change one; an old one that comes again is a duplicate.
 */

#define R2_BUNDLE_BYTES_MAX 8192 /* with the hash */

typedef struct r2_bundle {
    size_t bytes;
    uint32_t count; /* messages */
    uint8_t data[R2_BUNDLE_BYTES_MAX];
} r2_bundle_t;

/** An empty one. */
void r2_bundle_begin(r2_bundle_t *bundle_p, uint32_t sender);
/** @return false: no room is left for it. */
bool r2_bundle_add(r2_bundle_t *bundle, uint32_t rank, const void *data, size_t bytes);
/** Adds the hash: nothing can be added behind it. @param key R2_JOB_KEY_BYTES. */
void r2_bundle_seal(r2_bundle_t *bundle, const uint8_t *key);
/**
 * Gives what is for one rank to the upcalls. @param key R2_JOB_KEY_BYTES.
 * @param size number of processes of the job.
 * @return R2_OK, R2_ERR_WIRE: not of this job or malformed, and nothing was given.
 */
r2_status_t r2_bundle_read(const void *data, size_t bytes, const uint8_t *key, uint32_t rank,
                           uint32_t size, const r2_post_upcalls_t *upcalls);

#endif
