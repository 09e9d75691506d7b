/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is known, in lines for people: help texts and logs.
 */
#include "r2_config.h"

#include "health/machine.h"

#include <stdarg.h>
#include <stdio.h>

/** Lines under way. */
typedef struct r2_health_lines {
    const r2_health_t *health; /* borrowed */
    uint64_t now_ns;
    char *text; /* borrowed */
    size_t bytes, used;
} r2_health_lines_t;

static void __attribute__((format(printf, 2, 3)))
r2_lines_add(r2_health_lines_t *lines, const char *format, ...)
{
    va_list args;
    int bytes;

    va_start(args, format);
    bytes = lines->used < lines->bytes
                ? vsnprintf(lines->text + lines->used, lines->bytes - lines->used, format, args)
                : 0;
    va_end(args);
    lines->used += bytes > 0 ? (size_t) bytes : 0;
}

static void r2_lines_name(r2_health_lines_t *lines, uint32_t host, uint32_t rail)
{
    const r2_health_t *health = lines->health;
    char text[128];

    if (NULL != health->ports.name) {
        health->ports.name(health->ports.arg, host, rail, text, sizeof(text));
        r2_lines_add(lines, "  %s: ", text);
    } else {
        r2_lines_add(lines, "  rail %u of %s: ", rail, health->hosts->hosts[host].name);
    }
}

/* One rail of a host, with its way to another host if one is given. */
static void r2_lines_rail(r2_health_lines_t *lines, uint32_t host, uint32_t rail, bool cut)
{
    const r2_health_t *health = lines->health;
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, host, rail);
    uint64_t accused_ns = health->accused_ns[r2_health_at(health, host, rail)];
    uint64_t since_ns = health->since_ns[r2_health_at(health, host, rail)];

    r2_lines_name(lines, host, rail);
    r2_lines_add(lines, "%s", r2_verdict_name((r2_verdict_t) entry->verdict));
    if (R2_CAPACITY_FULL != entry->capacity) {
        r2_lines_add(lines, ", direction %s, capacity %u/%u",
                     r2_direction_name((r2_direction_t) entry->direction), entry->capacity,
                     R2_CAPACITY_FULL);
    }
    if (0 != entry->version) {
        r2_lines_add(lines, ", for %.1f s",
                     (double) (lines->now_ns - r2_min(since_ns, lines->now_ns)) / R2_NS_PER_S);
    }
    if (0 != accused_ns) {
        r2_lines_add(lines, ", found dead from here for %.1f s",
                     (double) (lines->now_ns - r2_min(accused_ns, lines->now_ns)) / R2_NS_PER_S);
    }
    r2_lines_add(lines, "%s\n", cut ? ", no path between the two hosts" : "");
}

static void r2_lines_gone(r2_health_lines_t *lines, uint32_t host)
{
    const r2_health_t *health = lines->health;
    uint32_t rank;

    for (rank = health->lowest[host]; R2_NOBODY != rank; rank = health->next_member[rank]) {
        if (health->gone[rank]) {
            r2_lines_add(lines, "  rank %u on %s: its process is gone\n", rank,
                         health->hosts->hosts[host].name);
        }
    }
}

static r2_health_lines_t r2_lines_begin(const r2_health_t *health, uint64_t now_ns, char *text_p,
                                        size_t text_bytes)
{
    if (text_bytes > 0) {
        text_p[0] = '\0';
    }
    return (r2_health_lines_t){
        .health = health, .now_ns = now_ns, .text = text_p, .bytes = text_bytes};
}

void r2_health_describe(const r2_health_t *health, uint32_t host_a, uint32_t host_b,
                        uint64_t now_ns, char *text_p, size_t text_bytes)
{
    r2_health_lines_t lines = r2_lines_begin(health, now_ns, text_p, text_bytes);
    const uint32_t hosts[] = {host_a, host_b};
    uint32_t idx, rail;

    if (host_a >= health->map.host_count || host_b >= health->map.host_count) {
        return;
    }
    for (idx = 0; idx < r2_array_count(hosts); ++idx) {
        for (rail = 0; rail < r2_rails_of(health, hosts[idx]); ++rail) {
            r2_lines_rail(&lines, hosts[idx], rail,
                          r2_health_map_is_cut(&health->map, host_a, host_b, rail));
        }
    }
    r2_lines_gone(&lines, host_b);
}

void r2_health_describe_broken(const r2_health_t *health, uint64_t now_ns, char *text_p,
                               size_t text_bytes)
{
    r2_health_lines_t lines = r2_lines_begin(health, now_ns, text_p, text_bytes);
    const r2_health_map_t *map = &health->map;
    uint32_t host, rail, idx;

    for (host = 0; host < map->host_count; ++host) {
        for (rail = 0; rail < r2_rails_of(health, host); ++rail) {
            if (R2_CAPACITY_FULL != r2_health_map_entry(map, host, rail)->capacity ||
                0 != health->accused_ns[r2_health_at(health, host, rail)]) {
                r2_lines_rail(&lines, host, rail, false);
            }
        }
        r2_lines_gone(&lines, host);
    }
    for (idx = 0; idx < map->exception_count; ++idx) {
        const r2_health_exception_t *path = &map->exceptions[idx];

        if (1 == path->version % 2) {
            r2_lines_name(&lines, path->host_a, path->rail);
            r2_lines_add(&lines, "no path to %s\n", health->hosts->hosts[path->host_b].name);
        }
    }
}
