/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pieces of long calls of a team: put into slots, waited for.
 */
#include "r2_config.h"

#include "local/team_long.h"

r2_status_t r2_long_taken(const r2_long_t *pieces, uint64_t number)
{
    r2_team_t *team = pieces->call->team;
    r2_status_t status = R2_OK;

    for (int32_t i = 0; i < team->segment.size && R2_OK == status; ++i) {
        if (i != team->segment.rank) {
            status = r2_team_reach(team, i, &r2_segment_member(&team->segment, i)->taken, number);
        }
    }
    return status;
}

/* Puts a piece into its slot. @param at which says how many are there. */
static r2_status_t r2_long_put(const r2_long_t *pieces, uint32_t k, _Atomic uint64_t *at)
{
    const r2_team_call_t *call = pieces->call;
    const uint64_t number = pieces->first + k;
    const r2_status_t status =
        r2_long_taken(pieces, number - r2_min(number, (uint64_t) R2_SEGMENT_LONG_SLOTS));

    if (R2_OK == status) {
        r2_team_put(call, r2_long_part(pieces, k),
                    r2_segment_piece(&call->team->segment, call->rank, number));
        r2_team_say(pieces->own, at, number);
    }
    return status;
}

r2_status_t r2_long_give(r2_long_t *pieces, uint32_t k)
{
    r2_member_t *own = pieces->own;
    r2_status_t status = R2_OK;

    if (!pieces->call->gives || (pieces->direct && !pieces->is_refused)) {
        return R2_OK;
    }
    while (pieces->put <= k && pieces->put < pieces->count && R2_OK == status) {
        status = r2_long_put(pieces, pieces->put, pieces->direct ? &own->given_again : &own->given);
        pieces->put += R2_OK == status ? 1 : 0;
    }
    return status;
}

/* Waits for a piece of a member. With the first one is seen whether it makes the same call. */
static r2_status_t r2_long_hear(const r2_long_t *pieces, int32_t i, uint32_t k)
{
    r2_team_t *team = pieces->call->team;
    const r2_member_t *member = r2_segment_member(&team->segment, i);
    const bool again = pieces->refuses && 0 != atomic_load(r2_long_source(pieces, i));
    const r2_status_t status =
        r2_team_reach(team, i, again ? &member->given_again : &member->given, pieces->first + k);

    if (R2_OK == status && 0 == k &&
        team->digest != atomic_load_explicit(&member->digests[team->calls % R2_SEGMENT_DIGESTS],
                                             memory_order_relaxed)) {
        team->odd = i;
        return R2_ERR_PLAN_MISMATCH;
    }
    return status;
}

r2_status_t r2_long_hear_all(const r2_long_t *pieces, uint32_t k)
{
    r2_status_t status = R2_OK;

    for (int32_t i = 0; i < pieces->call->size && R2_OK == status; ++i) {
        if (i != pieces->call->rank && r2_team_needs(pieces->call, i)) {
            status = r2_long_hear(pieces, i, k);
        }
    }
    return status;
}
