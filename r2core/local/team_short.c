/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Short calls of a team. Three members, call c; > puts into its slot, < takes out of one:
 *
 *   allreduce, few   0: >0 <1 <2, folds     1: >1 <0 <2, folds     2: >2 <0 <1, folds
 *   allreduce, many  0: <1 <2, folds, >0    1: >1 <0               2: >2 <0
 *   bcast by 0       0: >0                  1: <0                  2: <0
 *
 * Slots are used in turn, 16 lines for what fits one, else 4 of up to 8 KiB. Before a member writes
 * into the one of call c - 16, or c - 4, all others have finished that call; mostly it knows that
 * from what it has heard since.
 */
#include "r2_config.h"

#include <string.h>

#include "local/team_parts.h"
#include "local/team_wait.h"

/* More members than this do not all read what all say: the lines that travel would be the square
 * of their number. One folds for all. */
#define R2_TEAM_FEW 8

static const char *r2_short_from(const r2_team_call_t *call, int32_t member, uint64_t number)
{
    return (const char *) r2_segment_slot(&call->team->segment, member, number, call->line)->data;
}

/* Waits until the slot for this call is free. */
static r2_status_t r2_short_room(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    const uint64_t slots = call->line ? R2_SEGMENT_LINES : R2_SEGMENT_SLOTS;
    const uint64_t wanted = team->calls - r2_min(team->calls, slots);
    uint64_t least = team->calls - 1;

    if (team->done >= wanted) {
        return R2_OK;
    }
    for (int32_t i = 0; i < team->segment.size; ++i) {
        const r2_member_t *member = r2_segment_member(&team->segment, i);
        const r2_status_t status =
            i == team->segment.rank ? R2_OK : r2_team_reach(team, i, &member->done, wanted);
        uint64_t done;

        if (R2_OK != status) {
            return status;
        }
        done = i == team->segment.rank ? least : atomic_load(&member->done);
        least = r2_min(done, least);
    }
    team->done = least;
    return R2_OK;
}

static void r2_short_say(r2_team_t *team, r2_slot_t *slot)
{
    slot->digest = team->digest;
    r2_team_say(r2_segment_member(&team->segment, team->segment.rank), &slot->number, team->calls);
}

static r2_status_t r2_short_give(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    r2_slot_t *slot = r2_segment_slot(&team->segment, call->rank, team->calls, call->line);
    const r2_status_t status = r2_short_room(call);

    if (R2_OK == status) {
        r2_team_put(call, (r2_team_part_t){.bytes = call->block_bytes}, (char *) slot->data);
        r2_short_say(team, slot);
    }
    return status;
}

/* Waits for what a member has put into its slot for this call. */
static r2_status_t r2_short_hear(const r2_team_call_t *call, int32_t member)
{
    r2_team_t *team = call->team;
    const r2_slot_t *slot = r2_segment_slot(&team->segment, member, team->calls, call->line);
    const r2_status_t status = r2_team_reach(team, member, &slot->number, team->calls);

    if (R2_OK == status &&
        (team->calls != atomic_load_explicit(&slot->number, memory_order_relaxed) ||
         team->digest != slot->digest)) {
        team->odd = member;
        return R2_ERR_PLAN_MISMATCH;
    }
    return status;
}

static r2_status_t r2_short_hear_all(const r2_team_call_t *call)
{
    r2_status_t status = R2_OK;

    for (int32_t i = 0; i < call->size && R2_OK == status; ++i) {
        if (i != call->rank && r2_team_needs(call, i)) {
            status = r2_short_hear(call, i);
        }
    }
    return status;
}

/* Many members: the first one folds what all have given, and gives it to all. */
static r2_status_t r2_short_first(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    r2_slot_t *slot = r2_segment_slot(&team->segment, call->rank, team->calls, call->line);
    const r2_team_fold_t fold = {
        .last = call->size - 1,
        .number = team->calls,
        .from = r2_short_from,
        .own = call->args->in_place ? call->args->out : call->args->in,
    };
    r2_status_t status = r2_short_room(call);

    if (R2_OK == status) {
        status = r2_short_hear_all(call);
    }
    if (R2_OK == status) {
        r2_team_fold(call, &fold, (char *) slot->data, call->block_bytes);
        r2_short_say(team, slot);
    }
    return status;
}

static r2_status_t r2_short_by_first(const r2_team_call_t *call)
{
    r2_status_t status = 0 == call->rank ? r2_short_first(call) : r2_short_give(call);

    if (R2_OK == status && 0 != call->rank) {
        status = r2_short_hear(call, 0);
    }
    if (R2_OK == status && call->block_bytes > 0) {
        memcpy(call->args->out, r2_short_from(call, 0, call->team->calls), call->block_bytes);
    }
    return status;
}

r2_status_t r2_team_run_short(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    r2_status_t status = R2_OK;
    const bool all = R2_COLL_BARRIER == call->which || R2_COLL_ALLREDUCE == call->which;

    if (all && call->size > R2_TEAM_FEW) {
        status = r2_short_by_first(call);
    } else {
        status = call->gives ? r2_short_give(call) : R2_OK;
        if (R2_OK == status && call->takes) {
            status = r2_short_hear_all(call);
        }
        if (R2_OK == status && call->takes && call->block_bytes > 0) {
            r2_team_take(call, (r2_team_part_t){.bytes = call->block_bytes}, team->calls,
                         r2_short_from);
        }
    }
    if (R2_OK == status && all) {
        team->done = team->calls - 1; /* all have begun this one */
    }
    return status;
}
