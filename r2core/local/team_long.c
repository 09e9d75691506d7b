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
 *
 * What is only copied lies in contiguous memory mostly: its owner offers it, the others read it
 * from there, one copy in place of two, and the owner stays until they have. Memory of devices
 * cannot be read so, though it is mapped, and a process may be forbidden what it was allowed
 * before. Who cannot read says so, and gets the pieces by slots; an owner that waits hears of it:
 *
 *   0  offers                              | waits: refused       >p >q ..    waits
 *   1           reads, cannot, refuses     |                 <p <q ..
 */
#include "r2_config.h"

#include <string.h>

#include "local/team_parts.h"
#include "local/team_wait.h"

#define R2_LONG_PIECES      8u
#define R2_LONG_PIECE_BYTES (16u << 10)
#define R2_LONG_CHUNK_BYTES 8192u
#define R2_LONG_REFUSALS    4u /* calls in which one could not read, until nothing is offered */

static const char *r2_long_from(const r2_team_call_t *call, int32_t member, uint64_t number)
{
    return r2_segment_piece(&call->team->segment, member, number);
}

/** The pieces of a call. */
typedef struct r2_long {
    const r2_team_call_t *call; /* borrowed */
    r2_member_t *own;           /* borrowed: in the segment */
    uint64_t part_bytes;        /* of each block, in one piece */
    uint64_t first;             /* number of the first piece */
    uint32_t count;
    bool direct;     /* others read this member's data from where it is */
    bool is_refused; /* one of them cannot, and gets it by the slots */
    uint32_t put;    /* pieces that are in this member's slots, or were */
    bool refuses;    /* this member cannot read what others offer, and takes it from their slots */
    bool kept;       /* what it gives itself is in its place */
} r2_long_t;

static r2_team_part_t r2_long_part(const r2_long_t *pieces, uint32_t k)
{
    const uint64_t at = (uint64_t) k * pieces->part_bytes;

    return (r2_team_part_t){.at = at,
                            .bytes = r2_min(pieces->part_bytes, pieces->call->block_bytes - at)};
}

/* Waits until all others have finished with a piece. */
static r2_status_t r2_long_taken(const r2_long_t *pieces, uint64_t number)
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

/* All up to a piece; none as long as members read this one's data from where it is. */
static r2_status_t r2_long_give(r2_long_t *pieces, uint32_t k)
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

static _Atomic uint64_t *r2_long_source(const r2_team_t *team, int32_t member)
{
    return &r2_segment_member(&team->segment, member)->sources[team->calls % R2_SEGMENT_DIGESTS];
}

/* Waits for a piece of a member. With the first one is seen whether it makes the same call. */
static r2_status_t r2_long_hear(const r2_long_t *pieces, int32_t i, uint32_t k)
{
    r2_team_t *team = pieces->call->team;
    const r2_member_t *member = r2_segment_member(&team->segment, i);
    const bool again = pieces->refuses && 0 != atomic_load(r2_long_source(team, i));
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

/* @param address of the block. @return false: it could not be read, or may have changed. */
static bool r2_long_fetch(const r2_long_t *pieces, int32_t i, uint64_t source, r2_team_part_t part)
{
    const r2_team_call_t *call = pieces->call;
    const r2_process_t *process = &call->team->processes[i];
    const uint64_t skip = call->kind->blocks ? (uint64_t) call->rank * call->block_bytes : 0;
    char *place = r2_team_place(call, i, part.at);
    char chunk[R2_LONG_CHUNK_BYTES];
    bool whole = true;

    if (NULL != place) {
        whole = r2_process_fetch(process, source + skip + part.at, place, part.bytes);
    }
    for (uint64_t at = part.at; NULL == place && whole && at < part.at + part.bytes;
         at += sizeof(chunk)) {
        const uint64_t bytes = r2_min(part.at + part.bytes - at, (uint64_t) sizeof(chunk));

        whole = r2_process_fetch(process, source + skip + at, chunk, bytes);
        if (whole) {
            r2_team_copy(call, i, at, chunk, bytes);
        }
    }
    atomic_thread_fence(memory_order_seq_cst);
    return whole && source == atomic_load(r2_long_source(call->team, i));
}

/* Takes a part of what a member offers. @return R2_OK; R2_ERR_AGAIN: by slots. */
static r2_status_t r2_long_read(r2_long_t *pieces, int32_t i, uint64_t source, r2_team_part_t part)
{
    r2_team_t *team = pieces->call->team;

    if (NULL != team->processes && r2_long_fetch(pieces, i, source, part)) {
        return R2_OK;
    }
    pieces->refuses = true;
    r2_team_say(pieces->own, &pieces->own->refused, team->calls);
    return R2_ERR_AGAIN;
}

/* What is read from where it is, is read with the first piece, unless what this member still has to
 * give lies in the same place. Members begin with the next one, so that not all read from one. */
static r2_status_t r2_long_copy(r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const r2_team_part_t part = r2_long_part(pieces, k);
    const bool whole = !call->kind->blocks || !call->args->in_place;
    const r2_team_part_t all = {.bytes = call->block_bytes};
    const bool keeps = r2_team_keeps(call);
    r2_status_t status = R2_OK;

    for (int32_t step = 1; step <= call->size && R2_OK == status; ++step) {
        const int32_t i = (call->rank + step) % call->size;
        const uint64_t source =
            i == call->rank || pieces->refuses ? 0 : atomic_load(r2_long_source(call->team, i));

        if (!r2_team_copies(call, i) || (keeps && i == call->rank)) {
            continue;
        }
        if (0 == source) {
            r2_team_take_copy(call, i, part, pieces->first + k, r2_long_from);
        } else if (0 == k || !whole) {
            status = r2_long_read(pieces, i, source, whole ? all : part);
        }
    }
    return status;
}

static r2_status_t r2_long_take(r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const r2_status_t status = r2_long_hear_all(pieces, k);

    if (R2_OK != status) {
        return status;
    }
    if (call->kind->reduces) {
        r2_team_take_folded(call, r2_long_part(pieces, k), pieces->first + k, r2_long_from);
        return R2_OK;
    }
    return r2_long_copy(pieces, k);
}

/* True if others may read this member's data from where it is: nobody writes there before the
 * end. */
static bool r2_long_is_direct(const r2_team_call_t *call)
{
    const r2_team_t *team = call->team;

    return call->gives && !call->kind->reduces && NULL != team->processes &&
           team->refusals < R2_LONG_REFUSALS && call->block_bytes >= team->direct_bytes &&
           !(call->kind->blocks && call->args->in_place) && NULL != r2_team_data(call);
}

static void r2_long_offer(const r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;

    if (call->gives) {
        atomic_store_explicit(r2_long_source(call->team, call->rank),
                              pieces->direct ? (uintptr_t) r2_team_data(call) : 0,
                              memory_order_relaxed);
    }
    call->team->offers = pieces->direct;
    if (pieces->direct) {
        r2_team_say(pieces->own, &pieces->own->given, pieces->first + pieces->count - 1);
    }
}

static r2_status_t r2_long_step(r2_long_t *pieces, uint32_t k)
{
    r2_status_t status = r2_long_give(pieces, k + 1);

    if (R2_OK == status && pieces->call->takes) {
        status = r2_long_take(pieces, k);
    }
    if (R2_OK == status) {
        r2_long_end(pieces, k);
    }
    return status;
}

/* What this member keeps to itself is copied while others read. */
static r2_status_t r2_long_last(r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;
    r2_status_t status;

    if (call->takes && !call->kind->reduces && !pieces->kept && r2_team_keeps(call)) {
        r2_team_keep(call);
    }
    pieces->kept = true;
    status = r2_long_give(pieces, pieces->count);
    return R2_OK == status && pieces->direct
               ? r2_long_taken(pieces, pieces->first + pieces->count - 1)
               : status;
}

/* A member cannot read what is offered: it comes by slots, and the step is made once more. */
static void r2_long_heed(r2_long_t *pieces)
{
    r2_team_t *team = pieces->call->team;

    if (team->offers && r2_team_is_refused(team)) {
        pieces->is_refused = true;
        team->offers = false;
        ++team->refusals;
    }
}

static r2_status_t r2_long_exchange(r2_long_t *pieces)
{
    r2_status_t status = R2_OK;
    uint32_t k = 0;

    r2_long_offer(pieces);
    while (k <= pieces->count && R2_OK == status) {
        status = k < pieces->count ? r2_long_step(pieces, k) : r2_long_last(pieces);
        if (R2_ERR_AGAIN == status) {
            r2_long_heed(pieces);
            status = R2_OK;
        } else {
            ++k;
        }
    }
    pieces->call->team->offers = false;
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
    const uint64_t number = pieces->first + k;
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
    const uint64_t number = pieces->first + k;
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

static r2_status_t r2_long_reduce(r2_long_t *pieces)
{
    r2_status_t status = R2_OK;

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

/* Of each block, in one piece. What is only copied goes through in eight pieces or more, so that
 * who takes it works while the rest is put in. */
static uint64_t r2_long_part_bytes(const r2_team_call_t *call)
{
    const uint64_t blocks = call->kind->blocks ? (uint64_t) call->size : 1;
    const uint64_t unit = r2_max(call->args->element_bytes, (uint64_t) 1);
    const uint64_t most = call->team->segment.piece_bytes / blocks;
    const uint64_t few =
        call->shares ? most
                     : r2_max(call->block_bytes / R2_LONG_PIECES, R2_LONG_PIECE_BYTES / blocks);

    return r2_max(r2_min(most, few) / unit, (uint64_t) 1) * unit;
}

r2_status_t r2_team_run_long(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    r2_long_t pieces = {
        .call = call,
        .own = r2_segment_member(&team->segment, call->rank),
        .part_bytes = r2_long_part_bytes(call),
        .first = team->pieces + 1,
        .direct = r2_long_is_direct(call),
    };

    pieces.count = (uint32_t) ((call->block_bytes + pieces.part_bytes - 1) / pieces.part_bytes);
    team->pieces += pieces.count;
    return call->shares ? r2_long_reduce(&pieces) : r2_long_exchange(&pieces);
}
