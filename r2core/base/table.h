/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Tables of the data path: a list while it is short, then hashed. Adding never fails.
 */
#ifndef R2_BASE_TABLE_H
#define R2_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many are looked through one by one. */
#define R2_TABLE_SHORT 8u
/* At first; four times as many as soon as there are twice as many objects. */
#define R2_TABLE_BUCKETS 32u

/** First member of what a table holds. */
typedef struct r2_table_node {
    struct r2_table_node *prev, *next; /* in the order in which they were added */
    struct r2_table_node *chain;       /* of equal hash; while the table is hashed */
    uint64_t hash;                     /* the same */
} r2_table_node_t;

/**
 * Objects of others by a key inside of each. uthash frees its table when it gets empty, which the
 * tables of a link do in each call; this one keeps its buckets to the end. They are used from more
 * than R2_TABLE_SHORT objects on until it is empty: one burst does not make later ones pay.
 */
typedef struct r2_table {
    r2_table_node_t *first, *last;
    r2_table_node_t **buckets; /* owned; NULL: a list only */
    uint32_t bucket_count;     /* a power of two; 0 without */
    uint32_t count;
    uint16_t key_offset, key_bytes; /* of the key in each object */
    bool hashed;                    /* objects are in buckets: from too many for a list to none */
} r2_table_t;

/** @param key_offset from the start of an object, where its node is. */
void r2_table_init(r2_table_t *table, size_t key_offset, size_t key_bytes);
/** Forgets all that it holds. */
void r2_table_fini(r2_table_t *table);

/** @return the object with that key, or NULL. */
void *r2_table_find(const r2_table_t *table, const void *key);
/** @param object its key is set, and not there yet. Without memory for buckets finding is
 * slower. */
void r2_table_add(r2_table_t *table, void *object);
void r2_table_remove(r2_table_t *table, void *object);

static inline void *r2_table_next(const void *object)
{
    return NULL == object ? NULL : ((const r2_table_node_t *) object)->next;
}

/* All objects, oldest first. @param after of the same type: the one behind, as `object` may go. */
#define r2_table_foreach(table, object, after)                                                  \
    for ((object) = (void *) (table)->first, (after) = r2_table_next(object); NULL != (object); \
         (object) = (after), (after) = r2_table_next(object))

#endif
