/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is wrong with the maps of a fake world for health machines.
 */
#include "r2_config.h"

#include "health_world.h"

#include <stdio.h>

static bool others_answer(const world_t *world, uint32_t a, uint32_t b)
{
    uint32_t rail;

    for (rail = 0; rail < world->rail_count; ++rail) {
        if (world_answers(world, a, b, rail)) {
            return true;
        }
    }
    return false;
}

/* A host none of whose processes runs has nobody who could tell that its rail is well again. */
static bool host_lives(const world_t *world, uint32_t host)
{
    uint32_t rank;

    for (rank = host * world->per_host; rank < (host + 1) * world->per_host; ++rank) {
        if (world_runs(world, rank)) {
            return true;
        }
    }
    return false;
}

const char *world_wrong(world_t *world)
{
    const r2_health_map_t *first = NULL;
    static char text[160];
    uint32_t rank, a, b, rail;

    for (rank = 0; rank < world->rank_count; ++rank) {
        const r2_health_map_t *map = r2_health_map(world->machines[rank].health);

        if (!world_runs(world, rank)) {
            continue;
        }
        first = NULL == first ? map : first;
        if (r2_health_map_digest(map) != r2_health_map_digest(first)) {
            (void) snprintf(text, sizeof(text), "map of rank %u differs", rank);
            return text;
        }
    }
    for (a = 0; NULL != first && a < world->host_count * world->host_count; ++a) {
        b = a / world->host_count;
        for (rail = 0; rail < world->rail_count && b < a % world->host_count; ++rail) {
            uint32_t host = a % world->host_count;
            bool open = r2_health_map_between(first, host, b, rail) > 0;
            bool answers = world_answers(world, host, b, rail);

            if (open != answers && (answers || others_answer(world, host, b)) &&
                host_lives(world, host) && host_lives(world, b)) {
                (void) snprintf(text, sizeof(text), "hosts %u and %u rail %u: map says %s", host, b,
                                rail, open ? "open" : "dead");
                return text;
            }
        }
    }
    return NULL;
}
