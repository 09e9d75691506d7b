/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Long calls of a team: in pieces that stay in the caches, through four long slots of each member.
 *
 * Each piece is a step as that of a short call. Of allreduce and reduce each member folds its share
 * of a piece for all. Two members, pieces p, q, r; > puts into its slot, + folds its share into
 * its slot, < takes the shares of all:
 *
 *   >p >q +p >r +q <p +r <q <r
 *
 * A member writes into a slot again when all others have taken the piece that was there.
 */
#include "r2_config.h"

#include <string.h>

#include "local/team_parts.h"
#include "local/team_wait.h"

static const char *r2_long_from(const r2_team_call_t *call, int32_t member, uint32_t number)
{
    return r2_segment_piece(&call->team->segment, member, number);
}

/** The pieces of a call. */
typedef struct r2_long {
    const r2_team_call_t *call; /* borrowed */
    r2_member_t *own;           /* borrowed: in the segment */
    uint64_t part_bytes;        /* of each block, in one piece */
    uint32_t first, count;      /* number of the first piece; how many */
} r2_long_t;

static r2_team_part_t r2_long_part(const r2_long_t *pieces, uint32_t k)
{
    const uint64_t at = (uint64_t) k * pieces->part_bytes;

    return (r2_team_part_t){.at = at,
                            .bytes = r2_min(pieces->part_bytes, pieces->call->block_bytes - at)};
}

static r2_status_t r2_long_room(const r2_long_t *pieces, uint32_t number)
{
    r2_team_t *team = pieces->call->team;
    r2_status_t status = R2_OK;

    for (int32_t i = 0; i < team->segment.size && R2_OK == status; ++i) {
        if (i != team->segment.rank) {
            status = r2_team_reach(team, i, &r2_segment_member(&team->segment, i)->taken,
                                   number - R2_SEGMENT_LONG_SLOTS);
        }
    }
    return status;
}

static r2_status_t r2_long_give(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const uint32_t number = pieces->first + k;
    r2_status_t status;

    if (!call->gives || k >= pieces->count) {
        return R2_OK;
    }
    status = r2_long_room(pieces, number);
    if (R2_OK == status) {
        r2_team_put(call, r2_long_part(pieces, k),
                    r2_segment_piece(&call->team->segment, call->rank, number));
        r2_team_say(pieces->own, &pieces->own->given, number);
    }
    return status;
}

/* Waits for a piece of a member. With the first one is seen whether it makes the same call. */
static r2_status_t r2_long_hear(const r2_long_t *pieces, int32_t i, uint32_t k)
{
    r2_team_t *team = pieces->call->team;
    const r2_member_t *member = r2_segment_member(&team->segment, i);
    const r2_status_t status = r2_team_reach(team, i, &member->given, pieces->first + k);

    if (R2_OK == status && 0 == k &&
        team->digest != atomic_load_explicit(&member->digests[team->calls % R2_SEGMENT_DIGESTS],
                                             memory_order_relaxed)) {
        team->odd = i;
        return R2_ERR_PLAN_MISMATCH;
    }
    return status;
}

static r2_status_t r2_long_hear_all(const r2_long_t *pieces, uint32_t k)
{
    r2_status_t status = R2_OK;

    for (int32_t i = 0; i < pieces->call->size && R2_OK == status; ++i) {
        if (i != pieces->call->rank && r2_team_needs(pieces->call, i)) {
            status = r2_long_hear(pieces, i, k);
        }
    }
    return status;
}

static void r2_long_end(const r2_long_t *pieces, uint32_t k)
{
    r2_team_say(pieces->own, &pieces->own->taken, pieces->first + k);
}

static r2_status_t r2_long_exchange(const r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;
    r2_status_t status = r2_long_give(pieces, 0);

    for (uint32_t k = 0; k < pieces->count && R2_OK == status; ++k) {
        status = r2_long_give(pieces, k + 1);
        if (R2_OK == status && call->takes) {
            status = r2_long_hear_all(pieces, k);
        }
        if (R2_OK == status && call->takes) {
            r2_team_take(call, r2_long_part(pieces, k), pieces->first + k, r2_long_from);
        }
        if (R2_OK == status) {
            r2_long_end(pieces, k);
        }
    }
    return status;
}

/* ---- shares ---- */

/* Where the share of a member begins in a piece: at a line, if elements do. */
static uint64_t r2_long_share(const r2_team_call_t *call, uint64_t bytes, int32_t member)
{
    const uint64_t element = call->args->element_bytes;
    const uint64_t unit = 0 == R2_SEGMENT_LINE % element ? (uint64_t) R2_SEGMENT_LINE : element;

    return member >= call->size ? bytes
                                : bytes / unit * (uint64_t) member / (uint64_t) call->size * unit;
}

static r2_status_t r2_long_fold(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const r2_coll_args_t *args = call->args;
    const uint32_t number = pieces->first + k;
    const r2_team_part_t part = r2_long_part(pieces, k);
    const uint64_t begin = r2_long_share(call, part.bytes, call->rank);
    const uint64_t end = r2_long_share(call, part.bytes, call->rank + 1);
    const r2_team_fold_t fold = {
        .last = call->size - 1,
        .number = number,
        .from = r2_long_from,
        .skip = begin,
        .own = (args->in_place ? (const char *) args->out : args->in) + part.at + begin,
    };
    const r2_status_t status = r2_long_hear_all(pieces, k);

    if (R2_OK == status) {
        r2_team_fold(call, &fold,
                     r2_segment_piece(&call->team->segment, call->rank, number) + begin,
                     end - begin);
        r2_team_say(pieces->own, &pieces->own->folded, number);
    }
    return status;
}

static r2_status_t r2_long_collect(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const uint32_t number = pieces->first + k;
    const r2_team_part_t part = r2_long_part(pieces, k);
    r2_status_t status = R2_OK;

    for (int32_t step = 0; step < call->size && call->takes && R2_OK == status; ++step) {
        const int32_t i = (call->rank + step) % call->size;
        const uint64_t begin = r2_long_share(call, part.bytes, i);
        const uint64_t end = r2_long_share(call, part.bytes, i + 1);

        status = 0 == step
                     ? R2_OK
                     : r2_team_reach(call->team, i,
                                     &r2_segment_member(&call->team->segment, i)->folded, number);
        if (R2_OK == status && end > begin) {
            memcpy((char *) call->args->out + part.at + begin,
                   r2_long_from(call, i, number) + begin, end - begin);
        }
    }
    if (R2_OK == status) {
        r2_long_end(pieces, k);
    }
    return status;
}

static r2_status_t r2_long_reduce(const r2_long_t *pieces)
{
    r2_status_t status = r2_long_give(pieces, 0);

    for (uint32_t k = 0; k <= pieces->count && R2_OK == status; ++k) {
        status = r2_long_give(pieces, k + 1);
        if (R2_OK == status && k < pieces->count) {
            status = r2_long_fold(pieces, k);
        }
        if (R2_OK == status && k > 0) {
            status = r2_long_collect(pieces, k - 1);
        }
    }
    return status;
}

r2_status_t r2_team_run_long(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    const uint64_t blocks = call->kind->blocks ? (uint64_t) call->size : 1;
    const uint64_t unit = r2_max(call->args->element_bytes, (uint64_t) 1);
    r2_long_t pieces = {
        .call = call,
        .own = r2_segment_member(&team->segment, call->rank),
        .part_bytes = team->segment.piece_bytes / blocks / unit * unit,
        .first = team->pieces + 1,
    };

    pieces.count = (uint32_t) ((call->block_bytes + pieces.part_bytes - 1) / pieces.part_bytes);
    team->pieces += pieces.count;
    return R2_COLL_ALLREDUCE == call->which || R2_COLL_REDUCE == call->which
               ? r2_long_reduce(&pieces)
               : r2_long_exchange(&pieces);
}
