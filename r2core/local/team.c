/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Teams: which calls are theirs, how they begin and end, and members that make other ones.
 */
#include "r2_config.h"

#include "local/team_parts.h"
#include "local/team_wait.h"

/* Who makes no call any more is that many calls ahead. */
#define R2_TEAM_PARTED (1u << 30)

static uint32_t r2_team_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t) (hash >> 32);
}

uint32_t r2_team_digest(const r2_coll_args_t *args)
{
    const uint64_t what =
        (uint64_t) args->kind << 33 | (uint64_t) args->commutative << 32 | (uint32_t) args->root;

    return r2_team_mix(args->element_bytes + 31 * args->meaning,
                       args->count + UINT64_C(0x100000001b3) * what);
}

r2_team_way_t r2_team_way(const r2_segment_t *segment, const r2_coll_args_t *args)
{
    const r2_team_kind_t *kind = r2_team_kind(args->kind);
    const uint64_t blocks = kind->blocks ? (uint64_t) segment->size : 1;

    if (!kind->known || args->parts > 1 || NULL != args->counts || NULL != args->displs) {
        return R2_TEAM_NONE;
    }
    if (args->count * args->element_bytes * blocks <= segment->slot_bytes) {
        return R2_TEAM_SHORT;
    }
    return args->element_bytes * blocks <= segment->piece_bytes ? R2_TEAM_LONG : R2_TEAM_NONE;
}

bool r2_team_is_slower(const r2_coll_args_t *args)
{
    static const struct {
        r2_coll_kind_t kind;
        uint64_t from, below; /* bytes of a block */
    } rows[] = {
        {R2_COLL_SCATTER, 24 << 10, 128 << 10},
        {R2_COLL_GATHER, 96 << 10, UINT64_MAX},
        {R2_COLL_ALLTOALL, 24 << 10, UINT64_MAX},
    };
    const uint64_t bytes = args->count * args->element_bytes;

    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        if (args->kind == rows[i].kind && bytes >= rows[i].from && bytes < rows[i].below) {
            return true;
        }
    }
    return false;
}

/* The call has failed: its caller may use the memory that members still read. Not what goes by
 * slots: that of an earlier exchange may still be read from there. */
static void r2_team_withdraw(r2_team_t *team)
{
    r2_member_t *own = r2_segment_member(&team->segment, team->segment.rank);
    _Atomic uint64_t *source = &own->sources[team->exchanges % R2_SEGMENT_DIGESTS];

    if (0 != atomic_load(source)) {
        atomic_store(source, R2_SEGMENT_WITHDRAWN);
    }
    team->offers = false;
}

static void r2_team_tell(r2_team_t *team)
{
    r2_member_t *own = r2_segment_member(&team->segment, team->segment.rank);

    atomic_store_explicit(&own->digests[team->calls % R2_SEGMENT_DIGESTS], team->digest,
                          memory_order_relaxed);
    atomic_store_explicit(&own->begun, (uint64_t) team->place << 32 | (uint32_t) team->calls,
                          memory_order_release);
}

r2_status_t r2_team_run(r2_team_t *team, const r2_coll_args_t *args, r2_team_way_t way,
                        uint32_t place)
{
    r2_member_t *own = r2_segment_member(&team->segment, team->segment.rank);
    const bool shares = R2_TEAM_LONG == way && r2_team_long_shares(team, args);
    const r2_team_call_t call = r2_team_call_of(team, args, shares);
    r2_status_t status;

    ++team->calls;
    team->place = team->places[team->calls % R2_SEGMENT_DIGESTS] = place;
    team->digest = r2_team_mix((uint64_t) place << 32 | team->digest, r2_team_digest(args));
    r2_team_tell(team);
    status = R2_TEAM_SHORT == way ? r2_team_run_short(&call) : r2_team_run_long(&call);
    if (R2_OK == status) {
        r2_team_say(own, &own->done, team->calls);
    } else {
        r2_team_withdraw(team);
    }
    return status;
}

void r2_team_elsewhere(r2_team_t *team, uint32_t place)
{
    team->place = place;
    r2_team_tell(team);
}

void r2_team_part(r2_team_t *team)
{
    r2_team_elsewhere(team, team->place + R2_TEAM_PARTED);
}

/* Where this member was when it made the call that another one has to begin next. */
static uint32_t r2_team_place_of(const r2_team_t *team, uint32_t call)
{
    return (uint32_t) team->calls - call < R2_SEGMENT_DIGESTS
               ? team->places[call % R2_SEGMENT_DIGESTS]
               : team->place;
}

/* A member that has not begun a call that this one has made, but one behind it, never will. */
static r2_status_t r2_team_compare(const r2_team_t *team, const r2_member_t *member)
{
    const uint64_t begun = atomic_load_explicit(&member->begun, memory_order_acquire);
    const uint32_t calls = (uint32_t) begun, place = (uint32_t) (begun >> 32);
    const uint32_t newest = (uint32_t) team->calls;

    if (r2_seq_lt(calls, newest)) {
        const uint32_t ahead = place - r2_team_place_of(team, calls + 1);

        return ahead >= R2_TEAM_PARTED * 2   ? R2_OK
               : ahead >= R2_TEAM_PARTED / 2 ? R2_ERR_NOT_FOUND
                                             : R2_ERR_PLAN_MISMATCH;
    }
    if (calls - newest < R2_SEGMENT_DIGESTS &&
        team->digest != atomic_load_explicit(&member->digests[team->calls % R2_SEGMENT_DIGESTS],
                                             memory_order_relaxed)) {
        /* one that went on meanwhile may have written another call's there */
        atomic_thread_fence(memory_order_acquire);
        return (uint32_t) atomic_load_explicit(&member->begun, memory_order_relaxed) - newest <
                       R2_SEGMENT_DIGESTS - 1
                   ? R2_ERR_PLAN_MISMATCH
                   : R2_OK;
    }
    return R2_OK;
}

r2_status_t r2_team_look(r2_team_t *team)
{
    r2_status_t status = R2_OK;

    for (int32_t i = 0; i < team->segment.size && R2_OK == status; ++i) {
        status = r2_team_compare(team, r2_segment_member(&team->segment, i));
        team->odd = i;
    }
    return status;
}
