/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Tables of the data path.
 */
#include "r2_config.h"

#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

void r2_table_init(r2_table_t *table, size_t key_offset, size_t key_bytes)
{
    *table = (r2_table_t){.key_offset = (uint16_t) key_offset, .key_bytes = (uint16_t) key_bytes};
}

void r2_table_fini(r2_table_t *table)
{
    free(table->buckets);
    r2_table_init(table, table->key_offset, table->key_bytes);
}

static const void *r2_table_key(const r2_table_t *table, const r2_table_node_t *node)
{
    return (const char *) node + table->key_offset;
}

static bool r2_table_is(const r2_table_t *table, const r2_table_node_t *node, const void *key)
{
    return 0 == memcmp(r2_table_key(table, node), key, table->key_bytes);
}

static r2_table_node_t **r2_table_bucket(const r2_table_t *table, uint64_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static void r2_table_chain(r2_table_t *table, r2_table_node_t *node)
{
    r2_table_node_t **bucket;

    node->hash = r2_hash(r2_table_key(table, node), table->key_bytes);
    bucket = r2_table_bucket(table, node->hash);
    node->chain = *bucket;
    *bucket = node;
}

void *r2_table_find(const r2_table_t *table, const void *key)
{
    r2_table_node_t *node = table->last;
    uint64_t hash;

    if (table->count <= R2_TABLE_SHORT || !table->hashed) {
        while (NULL != node && !r2_table_is(table, node, key)) {
            node = node->prev;
        }
        return node;
    }
    hash = r2_hash(key, table->key_bytes);
    node = *r2_table_bucket(table, hash);
    while (NULL != node && (node->hash != hash || !r2_table_is(table, node, key))) {
        node = node->chain;
    }
    return node;
}

/* With more buckets, if there is memory for them. */
static void r2_table_grow(r2_table_t *table)
{
    const uint32_t count = NULL == table->buckets ? R2_TABLE_BUCKETS : 4 * table->bucket_count;
    r2_table_node_t **buckets = calloc(count, sizeof(*buckets));

    if (NULL != buckets) {
        free(table->buckets);
        table->buckets = buckets;
        table->bucket_count = count;
        table->hashed = false;
    }
}

/* Too many for a list: everything finds its place in the buckets, anew if there are more. */
static void r2_table_use_buckets(r2_table_t *table)
{
    if (table->count / 2 >= table->bucket_count) {
        r2_table_grow(table);
    }
    if (table->hashed || NULL == table->buckets) {
        return;
    }
    table->hashed = true;
    for (r2_table_node_t *node = table->first; NULL != node; node = node->next) {
        r2_table_chain(table, node);
    }
}

void r2_table_add(r2_table_t *table, void *object)
{
    r2_table_node_t *node = object;

    *node = (r2_table_node_t){.prev = table->last};
    if (NULL == table->last) {
        table->first = node;
    } else {
        table->last->next = node;
    }
    table->last = node;
    ++table->count;
    if (table->hashed) {
        r2_table_chain(table, node);
    }
    if (table->count > R2_TABLE_SHORT) {
        r2_table_use_buckets(table);
    }
}

void r2_table_remove(r2_table_t *table, void *object)
{
    r2_table_node_t *node = object;

    *(NULL == node->prev ? &table->first : &node->prev->next) = node->next;
    *(NULL == node->next ? &table->last : &node->next->prev) = node->prev;
    --table->count;
    if (table->hashed) {
        r2_table_node_t **at = r2_table_bucket(table, node->hash);

        while (*at != node) {
            at = &(*at)->chain;
        }
        *at = node->chain;
    }
    table->hashed = table->hashed && table->count > 0;
}
