/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Bundles of messages: made, sealed, read.
 */
#include "r2_config.h"

#include "oob/bundle.h"

#include <sodium.h>
#include <string.h>

#include "base/util.h"
#include "rail/hello.h"

#define R2_BUNDLE_MAGIC        "r2.event"
#define R2_BUNDLE_MAGIC_BYTES  8u
#define R2_BUNDLE_HEADER_BYTES (R2_BUNDLE_MAGIC_BYTES + 4u)
#define R2_BUNDLE_ENTRY_BYTES  6u
#define R2_BUNDLE_HASH_BYTES   32u

void r2_bundle_begin(r2_bundle_t *bundle_p, uint32_t sender)
{
    memcpy(bundle_p->data, R2_BUNDLE_MAGIC, R2_BUNDLE_MAGIC_BYTES);
    r2_put_le(bundle_p->data + R2_BUNDLE_MAGIC_BYTES, sender, 4);
    bundle_p->bytes = R2_BUNDLE_HEADER_BYTES;
    bundle_p->count = 0;
}

bool r2_bundle_add(r2_bundle_t *bundle, uint32_t rank, const void *data, size_t bytes)
{
    uint8_t *at = bundle->data + bundle->bytes;

    if (bytes > R2_POST_BYTES_MAX || bundle->bytes + R2_BUNDLE_ENTRY_BYTES + bytes >
                                         sizeof(bundle->data) - R2_BUNDLE_HASH_BYTES) {
        return false;
    }
    r2_put_le(at, rank, 4);
    r2_put_le(at + 4, (uint32_t) bytes, 2);
    if (bytes > 0) {
        memcpy(at + R2_BUNDLE_ENTRY_BYTES, data, bytes);
    }
    bundle->bytes += R2_BUNDLE_ENTRY_BYTES + bytes;
    ++bundle->count;
    return true;
}

static void r2_bundle_hash(const uint8_t *data, size_t bytes, const uint8_t *key, uint8_t *hash_p)
{
    crypto_generichash(hash_p, R2_BUNDLE_HASH_BYTES, data, bytes, key, R2_JOB_KEY_BYTES);
}

void r2_bundle_seal(r2_bundle_t *bundle, const uint8_t *key)
{
    r2_bundle_hash(bundle->data, bundle->bytes, key, bundle->data + bundle->bytes);
    bundle->bytes += R2_BUNDLE_HASH_BYTES;
}

/** Bytes of the entry at `used`; 0: malformed. */
static size_t r2_bundle_entry(const uint8_t *at, size_t used, size_t bytes)
{
    size_t length;

    if (bytes - used < R2_BUNDLE_ENTRY_BYTES) {
        return 0;
    }
    length = (uint32_t) r2_get_le(at + used + 4, 2);
    return length > R2_POST_BYTES_MAX || length > bytes - used - R2_BUNDLE_ENTRY_BYTES
               ? 0
               : R2_BUNDLE_ENTRY_BYTES + length;
}

/** Is it whole, and of a process of this job? @param bytes without the hash. */
static bool r2_bundle_is_sound(const uint8_t *at, size_t bytes, const uint8_t *key, uint32_t size)
{
    uint8_t hash[R2_BUNDLE_HASH_BYTES];
    size_t taken;

    r2_bundle_hash(at, bytes, key, hash);
    if (0 != sodium_memcmp(hash, at + bytes, sizeof(hash)) ||
        0 != memcmp(at, R2_BUNDLE_MAGIC, R2_BUNDLE_MAGIC_BYTES) ||
        (uint32_t) r2_get_le(at + R2_BUNDLE_MAGIC_BYTES, 4) >= size) {
        return false;
    }
    for (size_t used = R2_BUNDLE_HEADER_BYTES; used < bytes; used += taken) {
        taken = r2_bundle_entry(at, used, bytes);
        if (0 == taken) {
            return false;
        }
    }
    return true;
}

r2_status_t r2_bundle_read(const void *data, size_t bytes, const uint8_t *key, uint32_t rank,
                           uint32_t size, const r2_post_upcalls_t *upcalls)
{
    const uint8_t *at = data;
    uint32_t sender;
    size_t taken;

    if (bytes < R2_BUNDLE_HEADER_BYTES + R2_BUNDLE_HASH_BYTES || bytes > R2_BUNDLE_BYTES_MAX ||
        !r2_bundle_is_sound(at, bytes - R2_BUNDLE_HASH_BYTES, key, size)) {
        return R2_ERR_WIRE;
    }
    bytes -= R2_BUNDLE_HASH_BYTES;
    sender = (uint32_t) r2_get_le(at + R2_BUNDLE_MAGIC_BYTES, 4);
    for (size_t used = R2_BUNDLE_HEADER_BYTES; used < bytes; used += taken) {
        taken = r2_bundle_entry(at, used, bytes);
        if ((uint32_t) r2_get_le(at + used, 4) == rank) {
            upcalls->received(upcalls->arg, sender, at + used + R2_BUNDLE_ENTRY_BYTES,
                              taken - R2_BUNDLE_ENTRY_BYTES);
        }
    }
    return R2_OK;
}
