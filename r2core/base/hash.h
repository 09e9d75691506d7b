/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hash tables: uthash, as r2 uses it.
 */
#ifndef R2_HASH_H
#define R2_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef UTHASH_H
#    error "include base/hash.h instead of uthash.h: without memory that ends the process"
#endif

/** Hash of some bytes; all of its bits are good. */
uint64_t r2_hash(const void *key, size_t bytes);

/* Where there is no memory for the table an element is not added, and r2_hash_has() tells. */
#define HASH_NONFATAL_OOM                 1
#define HASH_FUNCTION(key, bytes, hash_p) ((hash_p) = (unsigned) r2_hash((key), (bytes)))
#include <uthash.h>

/** After HASH_ADD: false if there was no memory for the table. @param hh of the element. */
static inline bool r2_hash_has(const UT_hash_handle *hh)
{
    return NULL != hh->tbl;
}

#endif
