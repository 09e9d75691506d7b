/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Health map: merging of changes, lookups, digest.
 */
#include "r2_config.h"

#include "model/health_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "r2/nic.h"

r2_status_t r2_health_map_init(r2_health_map_t *map, uint32_t host_count, uint32_t rail_count)
{
    const size_t count = (size_t) host_count * rail_count;

    if (0 == host_count || 0 == rail_count || rail_count > R2_RAILS_MAX) {
        return R2_ERR_PARAM;
    }
    memset(map, 0, sizeof(*map));
    map->entries = calloc(count, sizeof(map->entries[0]));
    if (NULL == map->entries) {
        return R2_ERR_NO_MEMORY;
    }
    map->host_count = host_count;
    map->rail_count = rail_count;
    r2_health_map_reset(map);
    return R2_OK;
}

void r2_health_map_reset(r2_health_map_t *map)
{
    const size_t count = (size_t) map->host_count * map->rail_count;

    memset(map->entries, 0, count * sizeof(map->entries[0]));
    for (size_t idx = 0; idx < count; ++idx) {
        map->entries[idx].capacity = R2_CAPACITY_FULL;
    }
    memset(map->exceptions, 0, sizeof(map->exceptions));
    map->exception_count = 0;
}

void r2_health_map_fini(r2_health_map_t *map)
{
    free(map->entries);
    memset(map, 0, sizeof(*map));
}

void r2_health_map_copy(r2_health_map_t *to, const r2_health_map_t *from)
{
    r2_assert(to->host_count == from->host_count && to->rail_count == from->rail_count);
    memcpy(to->entries, from->entries,
           (size_t) from->host_count * from->rail_count * sizeof(from->entries[0]));
    memcpy(to->exceptions, from->exceptions, sizeof(from->exceptions));
    to->exception_count = from->exception_count;
}

const r2_health_entry_t *r2_health_map_entry(const r2_health_map_t *map, uint32_t host,
                                             uint32_t rail)
{
    r2_assert(host < map->host_count && rail < map->rail_count);
    return &map->entries[(size_t) host * map->rail_count + rail];
}

/* Order of exceptions in the array: < 0 if a comes first. */
static int r2_path_compare(const r2_health_exception_t *a, const r2_health_exception_t *b)
{
    if (a->host_a != b->host_a) {
        return a->host_a < b->host_a ? -1 : 1;
    }
    if (a->host_b != b->host_b) {
        return a->host_b < b->host_b ? -1 : 1;
    }
    return a->rail == b->rail ? 0 : (a->rail < b->rail ? -1 : 1);
}

/* First exception that does not come before `path`. */
static uint32_t r2_path_find(const r2_health_map_t *map, const r2_health_exception_t *path)
{
    uint32_t low = 0, high = map->exception_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (r2_path_compare(&map->exceptions[middle], path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool r2_health_map_is_cut(const r2_health_map_t *map, uint32_t host_a, uint32_t host_b,
                          uint32_t rail)
{
    const r2_health_exception_t path = {
        .host_a = r2_min(host_a, host_b), .host_b = r2_max(host_a, host_b), .rail = rail};
    uint32_t at = r2_path_find(map, &path);

    return at < map->exception_count && 0 == r2_path_compare(&map->exceptions[at], &path) &&
           1 == map->exceptions[at].version % 2;
}

uint32_t r2_health_map_between(const r2_health_map_t *map, uint32_t host_a, uint32_t host_b,
                               uint32_t rail)
{
    if (r2_health_map_is_cut(map, host_a, host_b, rail)) {
        return 0;
    }
    return r2_min(r2_health_map_entry(map, host_a, rail)->capacity,
                  r2_health_map_entry(map, host_b, rail)->capacity);
}

/* True if a is kept rather than b. */
static bool r2_path_outlasts(const r2_health_exception_t *a, const r2_health_exception_t *b)
{
    return a->version != b->version ? a->version > b->version : r2_path_compare(a, b) > 0;
}

/* The exception that goes first when there is no place. */
static uint32_t r2_path_weakest(const r2_health_map_t *map)
{
    uint32_t idx, weakest = 0;

    for (idx = 1; idx < map->exception_count; ++idx) {
        if (r2_path_outlasts(&map->exceptions[weakest], &map->exceptions[idx])) {
            weakest = idx;
        }
    }
    return weakest;
}

/*
 * What is left after any sequence of changes are the R2_HEALTH_EXCEPTIONS_MAX strongest of all
 * paths, each with its highest version: versions only grow, so one of them is never put out, and
 * one that was put out never comes back with an old version.
 */
static bool r2_path_merge(r2_health_map_t *map, const r2_health_exception_t *path)
{
    uint32_t at = r2_path_find(map, path), weakest;

    if (at < map->exception_count && 0 == r2_path_compare(&map->exceptions[at], path)) {
        if (path->version <= map->exceptions[at].version) {
            return false;
        }
        map->exceptions[at].version = path->version;
        return true;
    }
    if (R2_HEALTH_EXCEPTIONS_MAX == map->exception_count) {
        weakest = r2_path_weakest(map);
        if (!r2_path_outlasts(path, &map->exceptions[weakest])) {
            return false;
        }
        --map->exception_count;
        memmove(&map->exceptions[weakest], &map->exceptions[weakest + 1],
                (map->exception_count - weakest) * sizeof(*path));
        at -= at > weakest;
    }
    memmove(&map->exceptions[at + 1], &map->exceptions[at],
            (map->exception_count - at) * sizeof(*path));
    map->exceptions[at] = *path;
    ++map->exception_count;
    return true;
}

/* Total order of entries, so that merging never depends on who came first. */
static bool r2_entry_wins(const r2_health_entry_t *a, const r2_health_entry_t *b)
{
    if (a->version != b->version) {
        return a->version > b->version;
    }
    if (a->capacity != b->capacity) {
        return a->capacity < b->capacity;
    }
    return a->verdict != b->verdict ? a->verdict < b->verdict : a->direction < b->direction;
}

bool r2_health_map_merge(r2_health_map_t *map, const r2_health_change_t *change)
{
    const r2_health_exception_t path = {.host_a = r2_min(change->host_a, change->host_b),
                                        .host_b = r2_max(change->host_a, change->host_b),
                                        .rail = change->rail,
                                        .version = change->entry.version};
    r2_health_entry_t *entry;

    if (change->host_a >= map->host_count || change->rail >= map->rail_count ||
        change->entry.version > R2_HEALTH_VERSION_MAX) {
        return false;
    }
    if (change->is_path) {
        return change->host_b < map->host_count && change->host_a != change->host_b &&
               path.version > 0 && r2_path_merge(map, &path);
    }
    entry = &map->entries[(size_t) change->host_a * map->rail_count + change->rail];
    if (change->entry.capacity > R2_CAPACITY_FULL || !r2_entry_wins(&change->entry, entry)) {
        return false;
    }
    *entry = change->entry;
    entry->reserved = 0;
    return true;
}

bool r2_health_map_join(r2_health_map_t *map, const r2_health_map_t *other)
{
    const uint32_t count = other->host_count * other->rail_count;
    bool changed = false;

    for (uint32_t idx = 0; idx < count; ++idx) {
        const r2_health_change_t change = {.host_a = idx / other->rail_count,
                                           .rail = idx % other->rail_count,
                                           .entry = other->entries[idx]};

        changed = r2_health_map_merge(map, &change) || changed;
    }
    for (uint32_t idx = 0; idx < other->exception_count; ++idx) {
        const r2_health_exception_t *path = &other->exceptions[idx];
        const r2_health_change_t change = {.is_path = true, .host_a = path->host_a,
                                           .host_b = path->host_b, .rail = path->rail,
                                           .entry = {.version = path->version}};

        changed = r2_health_map_merge(map, &change) || changed;
    }
    return changed;
}

bool r2_health_map_equal(const r2_health_map_t *a, const r2_health_map_t *b)
{
    return a->host_count == b->host_count && a->rail_count == b->rail_count &&
           a->exception_count == b->exception_count &&
           0 == memcmp(a->entries, b->entries,
                       (size_t) a->host_count * a->rail_count * sizeof(a->entries[0])) &&
           0 == memcmp(a->exceptions, b->exceptions, a->exception_count * sizeof(a->exceptions[0]));
}

uint32_t r2_health_map_path_version(const r2_health_map_t *map, bool broken)
{
    uint32_t idx, version = 0;

    for (idx = 0; idx < map->exception_count; ++idx) {
        version = r2_max(version, map->exceptions[idx].version);
    }
    version += 1 + (broken == (0 == (version + 1) % 2));
    return r2_min(version, R2_HEALTH_VERSION_MAX);
}

/* One step of FNV-1a over 64-bit words, with a shift so that high bits reach low ones. */
static uint64_t r2_digest_add(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * 0x100000001b3ull;
    return digest ^ (digest >> 29);
}

uint64_t r2_health_map_digest(const r2_health_map_t *map)
{
    size_t idx, count = (size_t) map->host_count * map->rail_count;
    uint64_t digest = 0xcbf29ce484222325ull;

    digest = r2_digest_add(digest, (uint64_t) map->host_count << 32 | map->rail_count);
    for (idx = 0; idx < count; ++idx) {
        digest = r2_digest_add(digest, map->entries[idx].capacity);
    }
    for (idx = 0; idx < map->exception_count; ++idx) {
        const r2_health_exception_t *path = &map->exceptions[idx];

        if (1 == path->version % 2) {
            digest = r2_digest_add(digest, (uint64_t) path->host_a << 32 | path->host_b);
            digest = r2_digest_add(digest, path->rail);
        }
    }
    return digest;
}

uint64_t r2_health_map_digest_all(const r2_health_map_t *map)
{
    const size_t count = (size_t) map->host_count * map->rail_count;
    uint64_t digest = r2_health_map_digest(map);

    for (size_t idx = 0; idx < count; ++idx) {
        const r2_health_entry_t *entry = &map->entries[idx];

        digest = r2_digest_add(digest, (uint64_t) entry->version << 32 | entry->verdict << 8 |
                                           entry->direction);
    }
    for (uint32_t idx = 0; idx < map->exception_count; ++idx) {
        digest = r2_digest_add(digest, map->exceptions[idx].version);
    }
    return digest;
}

/** Index in the topology of a host of the map, or host_count. */
static uint32_t r2_host_find(const r2_topology_t *topology, const uint32_t *map_host, uint32_t host)
{
    uint32_t h = 0;

    while (h < topology->host_count && map_host[h] != host) {
        ++h;
    }
    return h;
}

bool r2_health_map_apply(const r2_health_map_t *map, const uint32_t *map_host,
                         r2_topology_t *topology)
{
    bool all = topology->rail_count == map->rail_count;

    for (uint32_t h = 0; all && h < topology->host_count; ++h) {
        for (uint32_t rail = 0; rail < map->rail_count; ++rail) {
            r2_topology_set_capacity(topology, h, rail,
                                     r2_health_map_entry(map, map_host[h], rail)->capacity);
        }
    }
    topology->cut_count = 0;
    for (uint32_t e = 0; all && e < map->exception_count; ++e) {
        const r2_health_exception_t *path = &map->exceptions[e];
        const uint32_t a = r2_host_find(topology, map_host, path->host_a);
        const uint32_t b = r2_host_find(topology, map_host, path->host_b);

        if (a < topology->host_count && b < topology->host_count &&
            r2_health_map_is_cut(map, path->host_a, path->host_b, path->rail)) {
            all = r2_topology_cut(topology, a, b, path->rail);
        }
    }
    return all;
}
