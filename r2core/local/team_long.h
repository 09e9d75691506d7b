/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The pieces of a long call of a team. For local/team_*.c only.
 */
#ifndef R2_LOCAL_TEAM_LONG_H
#define R2_LOCAL_TEAM_LONG_H

#include "local/team_parts.h"
#include "local/team_wait.h"

/** The pieces of a call, or of a part of it. */
typedef struct r2_long {
    const r2_team_call_t *call; /* borrowed */
    r2_member_t *own;           /* borrowed: in the segment */
    uint64_t part_bytes;        /* of each block, in one piece */
    uint64_t first;             /* number of the first piece */
    uint64_t exchange;          /* number of this one; exchanges only */
    uint32_t count;
    uint32_t put;    /* pieces that are in this member's slots, or were */
    bool direct;     /* others read this member's data from where it is */
    bool is_refused; /* one of them cannot, and gets it by the slots */
    bool refuses;    /* this member cannot read what others offer, and takes it from their slots */
    bool kept;       /* what it gives itself is in its place */
    bool whole;      /* it has taken all pieces at once */
} r2_long_t;

/** The slot of a piece of a member, as r2_team_from_fn_t. */
static inline const char *r2_long_from(const r2_team_call_t *call, int32_t member, uint64_t number)
{
    return r2_segment_piece(&call->team->segment, member, number);
}

static inline r2_team_part_t r2_long_part(const r2_long_t *pieces, uint32_t k)
{
    const uint64_t at = (uint64_t) k * pieces->part_bytes;

    return (r2_team_part_t){.at = at,
                            .bytes = r2_min(pieces->part_bytes, pieces->call->block_bytes - at)};
}

/** Says that this member has finished with a piece. */
static inline void r2_long_end(const r2_long_t *pieces, uint32_t k)
{
    r2_team_say(pieces->own, &pieces->own->taken, pieces->first + k);
}

/** Where a member says where its data is, in an exchange. */
static inline _Atomic uint64_t *r2_long_source(const r2_long_t *pieces, int32_t member)
{
    return &r2_segment_member(&pieces->call->team->segment, member)
                ->sources[pieces->exchange % R2_SEGMENT_DIGESTS];
}

/* team_pieces.c; each returns as r2_team_reach() */
/** Waits until all others have finished with a piece. */
r2_status_t r2_long_taken(const r2_long_t *pieces, uint64_t number);
/** Puts all pieces up to one into slots; none as long as members read this one's data from where
 * it is. */
r2_status_t r2_long_give(r2_long_t *pieces, uint32_t k);
/** Waits for a piece of all members whose data this one needs. */
r2_status_t r2_long_hear_all(const r2_long_t *pieces, uint32_t k);

/* team_exchange.c, team_shares.c */
/** Each member takes what it needs from where others have put it, or from where it is. */
r2_status_t r2_long_exchange(r2_long_t *pieces);
/** Each member reduces its share of each piece. */
r2_status_t r2_long_shares(r2_long_t *pieces);

#endif
