/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The hash of all tables.
 */
#include "r2_config.h"

#include "base/hash.h"

#include <stdint.h>
#include <string.h>

#define R2_HASH_START 0x9e3779b97f4a7c15ull
#define R2_HASH_PRIME 0xff51afd7ed558ccdull

static uint64_t r2_hash_join(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * R2_HASH_PRIME;
    return hash ^ hash >> 32;
}

uint64_t r2_hash(const void *key, size_t bytes)
{
    uint64_t hash = R2_HASH_START ^ bytes, word;

    for (; bytes >= sizeof(word); bytes -= sizeof(word)) {
        memcpy(&word, key, sizeof(word));
        hash = r2_hash_join(hash, word);
        key = (const char *) key + sizeof(word);
    }
    word = 0;
    memcpy(&word, key, bytes);
    return r2_hash_join(hash, word);
}
