/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Long calls of a team: in pieces that stay in the caches, through four long slots of each member.
 *
 * Each piece is a step as that of a short call. A member writes into a slot again when all others
 * have taken the piece that was there.
 *
 * An allreduce is one of three:
 *
 *   shares     of each piece a member folds its share for all (team_shares.c)
 *   blocks     a member folds a block of the whole for all, from where it is, then all read the
 *              blocks of the others from where they are (team_exchange.c, twice)
 *   rest       elements that are fewer than members: all fold all of them
 */
#include "r2_config.h"

#include "local/team_long.h"

#define R2_LONG_PIECES      8u
#define R2_LONG_PIECE_BYTES (16u << 10)

/* Of each block, in one piece. What is only copied goes through in eight pieces or more, so that
 * who takes it works while the rest is put in. What is folded from where it is needs few calls of
 * the kernel. The same on all members. */
static uint64_t r2_long_part_bytes(const r2_team_call_t *call)
{
    const r2_team_t *team = call->team;
    const uint64_t blocks = call->kind->blocks ? (uint64_t) call->size : 1;
    const uint64_t unit = r2_max(call->args->element_bytes, (uint64_t) 1);
    const uint64_t most = team->segment.piece_bytes / blocks;
    const bool reads =
        call->kind->reduces && team->folds_direct && call->block_bytes >= team->direct_bytes;
    const uint64_t few = r2_max(call->block_bytes / R2_LONG_PIECES, R2_LONG_PIECE_BYTES / blocks);

    return r2_max((call->shares || reads ? most : r2_min(most, few)) / unit, (uint64_t) 1) * unit;
}

static r2_status_t r2_long_run(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    r2_long_t pieces = {
        .call = call,
        .own = r2_segment_member(&team->segment, call->rank),
        .part_bytes = r2_long_part_bytes(call),
        .first = team->pieces + 1,
    };

    pieces.count = (uint32_t) ((call->block_bytes + pieces.part_bytes - 1) / pieces.part_bytes);
    team->pieces += pieces.count;
    return call->shares ? r2_long_shares(&pieces) : r2_long_exchange(&pieces);
}

/* ---- blocks ---- */

/* The same on all members. A slot has room for an element of each block, too. */
static bool r2_long_has_blocks(const r2_team_t *team, const r2_coll_args_t *args)
{
    const uint64_t size = (uint64_t) team->segment.size;

    return R2_COLL_ALLREDUCE == args->kind && team->folds_direct &&
           args->element_bytes * size <= team->segment.piece_bytes &&
           args->count / size * args->element_bytes >= team->direct_bytes;
}

bool r2_team_long_shares(const r2_team_t *team, const r2_coll_args_t *args)
{
    return (R2_COLL_ALLREDUCE == args->kind && !r2_long_has_blocks(team, args)) ||
           (R2_COLL_REDUCE == args->kind && team->segment.size > 2);
}

static r2_status_t r2_long_part_of(r2_team_t *team, const r2_coll_args_t *args)
{
    const r2_team_call_t call = r2_team_call_of(team, args, false);

    return 0 == args->count ? R2_OK : r2_long_run(&call);
}

/* Whatever lies in place is read by the others before this member writes there. */
static r2_status_t r2_long_blocks(r2_team_t *team, const r2_coll_args_t *args)
{
    const uint64_t size = (uint64_t) team->segment.size, element = args->element_bytes;
    const uint64_t block = args->count / size * element, rest = size * block;
    const char *in = args->in_place ? args->out : args->in;
    char *out = args->out;
    r2_coll_args_t part = *args;
    r2_status_t status;

    part.kind = R2_COLL_REDUCE_SCATTER_BLOCK;
    part.in = in;
    part.out = out + (uint64_t) team->segment.rank * block;
    part.in_place = false;
    part.count = args->count / size;
    status = r2_long_part_of(team, &part);
    if (R2_OK == status) {
        part = (r2_coll_args_t){.kind = R2_COLL_ALLGATHER, .out = out, .in_place = true,
                                .count = block, .element_bytes = 1};
        status = r2_long_part_of(team, &part);
    }
    if (R2_OK == status) {
        part = *args;
        part.in = in + rest;
        part.out = out + rest;
        part.count = args->count % size;
        status = r2_long_part_of(team, &part);
    }
    return status;
}

r2_status_t r2_team_run_long(const r2_team_call_t *call)
{
    return R2_COLL_ALLREDUCE == call->which && !call->shares
               ? r2_long_blocks(call->team, call->args)
               : r2_long_run(call);
}
