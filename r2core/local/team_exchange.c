/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchanges of long calls of a team: each member takes the pieces that it needs, and folds them if
 * they are to be reduced.
 *
 * Most data lies in contiguous memory: its owner offers it, the others read it from there, one
 * copy in place of two, and the owner stays until they have. Memory of devices cannot be read so,
 * though it is mapped, and a process may be forbidden what it was allowed before. Who cannot read
 * says so, and gets the pieces by slots; an owner that waits hears of it:
 *
 *   0  offers                              | waits: refused       >p >q ..    waits
 *   1           reads, cannot, refuses     |                 <p <q ..
 */
#include "r2_config.h"

#include <string.h>

#include "local/team_long.h"

#define R2_LONG_FOLD_BYTES 8192u
#define R2_LONG_PAIR_BYTES (2u << 20) /* as long as it stays in the caches */
#define R2_LONG_REFUSALS   4u /* exchanges in which one could not read, until nothing is offered */

/* Reads from what a member offers. @param at from its beginning. @return false: it could not be
 * read, or may have changed. */
static bool r2_long_fetch(const r2_long_t *pieces, int32_t i, uint64_t source, uint64_t at,
                          char *to, uint64_t bytes)
{
    const r2_team_t *team = pieces->call->team;

    if (R2_SEGMENT_WITHDRAWN == source || NULL == team->processes ||
        !r2_process_fetch(&team->processes[i], source + at, to, bytes)) {
        return false;
    }
    atomic_thread_fence(memory_order_seq_cst);
    return source == atomic_load(r2_long_source(pieces, i));
}

/* This member takes what is offered from slots. */
static r2_status_t r2_long_refuse(r2_long_t *pieces)
{
    pieces->refuses = true;
    r2_team_say(pieces->own, &pieces->own->refused, pieces->exchange);
    return R2_ERR_AGAIN;
}

/* Of what a member offers, where what is for this member begins. */
static uint64_t r2_long_skip(const r2_team_call_t *call)
{
    return call->kind->blocks ? (uint64_t) call->rank * call->block_bytes : 0;
}

/* Copies a part of what a member offers. @return R2_OK; R2_ERR_AGAIN: by slots. */
static r2_status_t r2_long_read(r2_long_t *pieces, int32_t i, uint64_t source, r2_team_part_t part)
{
    const r2_team_call_t *call = pieces->call;
    const uint64_t skip = r2_long_skip(call), end = part.at + part.bytes;
    const uint64_t room = call->team->segment.piece_bytes;
    char *place = r2_team_place(call, i, part.at), *chunk = call->team->segment.scratch;
    bool whole = true;

    if (NULL != place) {
        whole = r2_long_fetch(pieces, i, source, skip + part.at, place, part.bytes);
    }
    for (uint64_t at = part.at; NULL == place && whole && at < end; at += room) {
        const uint64_t bytes = r2_min(end - at, room);

        whole = r2_long_fetch(pieces, i, source, skip + at, chunk, bytes);
        if (whole) {
            r2_team_copy(call, i, at, chunk, bytes);
        }
    }
    return whole ? R2_OK : r2_long_refuse(pieces);
}

static uint64_t r2_long_offered(const r2_long_t *pieces, int32_t i)
{
    return i == pieces->call->rank || pieces->refuses ? 0 : atomic_load(r2_long_source(pieces, i));
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
        const uint64_t source = r2_long_offered(pieces, i);

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

/* The x of a member. @param room if it is read from where it is. @return NULL: by slots. */
static const char *r2_long_x(r2_long_t *pieces, int32_t i, uint32_t k, char *room)
{
    const r2_team_call_t *call = pieces->call;
    const r2_team_part_t part = r2_long_part(pieces, k);
    const uint64_t source = r2_long_offered(pieces, i);

    if (0 == source) {
        return r2_long_from(call, i, pieces->first + k) +
               (call->kind->blocks ? (uint64_t) call->rank * part.bytes : 0);
    }
    return r2_long_fetch(pieces, i, source, r2_long_skip(call) + part.at, room, part.bytes) ? room
                                                                                            : NULL;
}

/* Of two members the first one has room for all of x[1] where the result goes: it reads that at
 * once, and lets its owner go before it folds. @return false: piece by piece. */
static bool r2_long_reduce_pair(r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;
    const r2_coll_args_t *args = call->args;
    const char *own = r2_team_own(call, 0);
    const bool fits = 2 == call->size && 0 == call->rank && call->block_bytes <= R2_LONG_PAIR_BYTES;
    const uint64_t source = fits ? r2_long_offered(pieces, 1) : 0;

    if (0 == source || 1 != r2_team_last(call) || NULL == own || own == args->out ||
        !r2_long_fetch(pieces, 1, source, r2_long_skip(call), args->out, call->block_bytes)) {
        return false;
    }
    r2_long_end(pieces, pieces->count - 1);
    args->reduce(args->reduce_arg, own, args->out, call->block_bytes / args->element_bytes);
    pieces->whole = true;
    return true;
}

/* As r2_team_fold(). This member's x may lie where the result goes, and is there again if others
 * come by slots. */
static r2_status_t r2_long_reduce(r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const r2_coll_args_t *args = call->args;
    const r2_team_part_t part = r2_long_part(pieces, k);
    const int32_t last = r2_team_last(call);
    char *to = (char *) args->out + part.at, *scratch = call->team->segment.scratch;
    char *saved = scratch + call->team->segment.piece_bytes;
    const char *own = r2_team_own(call, part.at);
    const bool same = own == to;

    if (same) {
        own = memcpy(saved, to, part.bytes);
    }
    for (int32_t i = last; i >= 0; --i) {
        const char *x = i == call->rank && NULL != own
                            ? own
                            : r2_long_x(pieces, i, k, i == last ? to : scratch);

        if (NULL == x) {
            if (same) {
                memcpy(to, saved, part.bytes);
            }
            return r2_long_refuse(pieces);
        }
        if (i < last) {
            args->reduce(args->reduce_arg, x, to, part.bytes / args->element_bytes);
        } else if (x != to) {
            memcpy(to, x, part.bytes);
        }
    }
    return R2_OK;
}

static r2_status_t r2_long_take(r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const r2_status_t status = r2_long_hear_all(pieces, k);

    if (R2_OK != status) {
        return status;
    }
    if (!call->kind->reduces) {
        return r2_long_copy(pieces, k);
    }
    return pieces->whole || (0 == k && r2_long_reduce_pair(pieces)) ? R2_OK
                                                                    : r2_long_reduce(pieces, k);
}

/* True if others may read this member's data from where it is: nobody writes there before the
 * end. Parts that are folded so are long enough for a call of the kernel each. */
static bool r2_long_is_direct(const r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;
    const r2_team_t *team = call->team;
    const bool mixed = call->args->in_place && (call->kind->blocks || call->kind->reduces);
    /* the owner had to stay while all of it is folded; by slots it works meanwhile */
    const bool rooted = R2_COLL_REDUCE == call->which && call->block_bytes > R2_LONG_PAIR_BYTES;

    return call->gives && NULL != team->processes && team->refusals < R2_LONG_REFUSALS &&
           call->block_bytes >= team->direct_bytes && !mixed && !rooted &&
           NULL != r2_team_data(call) &&
           (!call->kind->reduces ||
            (team->folds_direct && pieces->part_bytes >= R2_LONG_FOLD_BYTES));
}

static void r2_long_offer(r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;

    pieces->exchange = ++call->team->exchanges;
    pieces->direct = call->team->offers = r2_long_is_direct(pieces);
    if (call->gives) {
        atomic_store_explicit(r2_long_source(pieces, call->rank),
                              pieces->direct ? (uintptr_t) r2_team_data(call) : 0,
                              memory_order_relaxed);
    }
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
    if (R2_OK == status && !pieces->whole) {
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

r2_status_t r2_long_exchange(r2_long_t *pieces)
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
