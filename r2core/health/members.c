/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Members of hosts: who writes for a host, and who acts when that one does not answer.
 */
#include "r2_config.h"

#include "health/machine.h"

/** The nth process of a host that is not known to be gone, modulo their number. */
uint32_t r2_members_nth(const r2_health_t *health, uint32_t host, uint32_t nth)
{
    uint32_t rank, count = 0;

    for (rank = health->lowest[host]; R2_NOBODY != rank; rank = health->next_member[rank]) {
        count += !health->gone[rank];
    }
    if (0 == count) {
        return R2_NOBODY;
    }
    nth %= count;
    for (rank = health->lowest[host]; R2_NOBODY != rank; rank = health->next_member[rank]) {
        if (!health->gone[rank] && 0 == nth--) {
            break;
        }
    }
    return rank;
}

/** How many processes of our host come before us. */
uint32_t r2_members_position(const r2_health_t *health)
{
    uint32_t rank, position = 0;

    for (rank = health->lowest[health->own_host]; rank < health->self.rank;
         rank = health->next_member[rank]) {
        position += !health->gone[rank];
    }
    return position;
}

bool r2_members_is_owner(const r2_health_t *health)
{
    return 0 == r2_members_position(health);
}

bool r2_health_is_first(const r2_health_t *health)
{
    return r2_members_is_owner(health);
}

/** Host that goes by this name on the wire. @return false: no host does. */
bool r2_members_host(const r2_health_t *health, uint32_t rank, uint32_t *host_p)
{
    uint32_t host;

    if (rank >= health->hosts->rank_count) {
        return false;
    }
    host = health->hosts->host_of[rank];
    if (host >= health->hosts->host_count || health->lowest[host] != rank) {
        return false;
    }
    *host_p = host;
    return true;
}
