/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Waiting for members of a team, and telling them. For local/ only.
 */
#ifndef R2_LOCAL_TEAM_WAIT_H
#define R2_LOCAL_TEAM_WAIT_H

#include "local/team.h"

/** As r2_team_reach(), once looking has not helped. */
r2_status_t r2_team_wait_long(r2_team_t *team, int32_t member, const _Atomic uint64_t *at,
                              uint64_t number);

/** True if a member cannot read what this one offers in the exchange under way. */
bool r2_team_is_refused(const r2_team_t *team);

/** Waits until a member's number is there. @return R2_OK; R2_ERR_AGAIN: what this member offers is
 * refused; or as r2_team_run(). */
static inline r2_status_t r2_team_reach(r2_team_t *team, int32_t member, const _Atomic uint64_t *at,
                                        uint64_t number)
{
    return r2_segment_has(at, number) ? R2_OK : r2_team_wait_long(team, member, at, number);
}

/** Says how far this member has come. Who falls asleep at this moment misses it, for 1 ms. */
static inline void r2_team_say(r2_member_t *own, _Atomic uint64_t *at, uint64_t number)
{
    atomic_store_explicit(at, number, memory_order_release);
    if (0 != atomic_load_explicit(&own->sleepers, memory_order_relaxed)) {
        r2_team_ring(own);
    }
}

#endif
