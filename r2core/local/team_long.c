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
 * What is only copied lies in contiguous memory mostly: its owner says where, the others read it
 * from there, one copy in place of two, and the owner stays until they have.
 */
#include "r2_config.h"

#include <string.h>
#include <unistd.h>

#include "local/team_parts.h"
#include "local/team_wait.h"

#define R2_LONG_PIECES       8u
#define R2_LONG_PIECE_BYTES  (16u << 10)
#define R2_LONG_DIRECT_BYTES (128u << 10) /* from here on the kernel costs less than a copy */
#define R2_LONG_CHUNK_BYTES  8192u
#define R2_LONG_TURNS        4000u /* pauses, for who cannot be read to be found dead */
#define R2_LONG_PAUSE_US     1000u

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
    bool direct; /* others read this member's data from where it is */
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

static r2_status_t r2_long_give(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const uint64_t number = pieces->first + k;
    r2_status_t status;

    if (!call->gives || pieces->direct || k >= pieces->count) {
        return R2_OK;
    }
    status = r2_long_taken(pieces, number - r2_min(number, (uint64_t) R2_SEGMENT_LONG_SLOTS));
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

/* Takes what a member gives from where it is. Where that fails the member has mostly ended. */
static r2_status_t r2_long_read(r2_team_t *team, int32_t i, uint64_t address, char *to,
                                uint64_t bytes)
{
    r2_status_t status = R2_OK;

    if (r2_process_fetch(&team->processes[i], address, to, bytes)) {
        return R2_OK;
    }
    for (uint32_t turn = 0; status >= 0 && turn < R2_LONG_TURNS; ++turn) {
        status = team->wait.pause(team->wait.arg, i, turn);
        if (R2_IN_PROGRESS == status) {
            usleep(R2_LONG_PAUSE_US);
        }
    }
    return status < 0 ? status : R2_ERR_SYSTEM;
}

/* @param address of the block. */
static r2_status_t r2_long_fetch(const r2_long_t *pieces, int32_t i, uint64_t address,
                                 r2_team_part_t part)
{
    const r2_team_call_t *call = pieces->call;
    char *place = r2_team_place(call, i, part.at);
    char chunk[R2_LONG_CHUNK_BYTES];
    r2_status_t status = R2_OK;

    if (NULL != place) {
        return r2_long_read(call->team, i, address + part.at, place, part.bytes);
    }
    for (uint64_t at = part.at; at < part.at + part.bytes && R2_OK == status; at += sizeof(chunk)) {
        const uint64_t bytes = r2_min(part.at + part.bytes - at, (uint64_t) sizeof(chunk));

        status = r2_long_read(call->team, i, address + at, chunk, bytes);
        if (R2_OK == status) {
            r2_team_copy(call, i, at, chunk, bytes);
        }
    }
    return status;
}

static _Atomic uint64_t *r2_long_source(const r2_team_t *team, int32_t member)
{
    return &r2_segment_member(&team->segment, member)->sources[team->calls % R2_SEGMENT_DIGESTS];
}

/* What is read from where it is, is read with the first piece, unless what this member still has to
 * give lies in the same place. */
static r2_status_t r2_long_take(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const uint64_t skip = call->kind->blocks ? (uint64_t) call->rank * call->block_bytes : 0;
    const r2_team_part_t part = r2_long_part(pieces, k);
    const bool whole = !call->kind->blocks || !call->args->in_place;
    const r2_team_part_t all = {.bytes = call->block_bytes};
    r2_status_t status = r2_long_hear_all(pieces, k);

    if (R2_OK == status && call->kind->reduces) {
        r2_team_take_folded(call, part, pieces->first + k, r2_long_from);
        return R2_OK;
    }
    for (int32_t i = 0; i < call->size && R2_OK == status; ++i) {
        const uint64_t source = i == call->rank ? 0 : atomic_load(r2_long_source(call->team, i));

        if (!r2_team_copies(call, i)) {
            continue;
        }
        if (0 == source) {
            r2_team_take_copy(call, i, part, pieces->first + k, r2_long_from);
        } else if (0 == k || !whole) {
            status = r2_long_fetch(pieces, i, source + skip, whole ? all : part);
        }
    }
    return status;
}

/* True if others can read this member's data from where it is, and nobody writes there before the
 * end. Memory of devices cannot be read so, though it is mapped. */
static bool r2_long_is_direct(const r2_team_call_t *call)
{
    const r2_team_t *team = call->team;
    const char *data = r2_team_data(call);
    const uint64_t bytes = call->block_bytes * (call->kind->blocks ? (uint64_t) call->size : 1);
    char byte;

    if (!call->gives || call->kind->reduces || NULL == team->processes || NULL == data ||
        call->block_bytes < R2_LONG_DIRECT_BYTES || (call->kind->blocks && call->args->in_place)) {
        return false;
    }
    return r2_process_fetch(&team->processes[call->rank], (uintptr_t) data, &byte, 1) &&
           r2_process_fetch(&team->processes[call->rank], (uintptr_t) data + bytes - 1, &byte, 1);
}

static void r2_long_offer(const r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;

    if (call->gives) {
        atomic_store(r2_long_source(call->team, call->rank),
                     pieces->direct ? (uintptr_t) r2_team_data(call) : 0);
    }
    if (pieces->direct) {
        r2_team_say(pieces->own, &pieces->own->given, pieces->first + pieces->count - 1);
    }
}

static r2_status_t r2_long_exchange(const r2_long_t *pieces)
{
    const r2_team_call_t *call = pieces->call;
    r2_status_t status;

    r2_long_offer(pieces);
    status = r2_long_give(pieces, 0);
    for (uint32_t k = 0; k < pieces->count && R2_OK == status; ++k) {
        status = r2_long_give(pieces, k + 1);
        if (R2_OK == status && call->takes) {
            status = r2_long_take(pieces, k);
        }
        if (R2_OK == status) {
            r2_long_end(pieces, k);
        }
    }
    return R2_OK == status && pieces->direct
               ? r2_long_taken(pieces, pieces->first + pieces->count - 1)
               : status;
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

/* Of each block, in one piece. What is only copied goes through in eight pieces or more, so that
 * who takes it works while the rest is put in. */
static uint64_t r2_long_part_bytes(const r2_team_call_t *call, bool shares)
{
    const uint64_t blocks = call->kind->blocks ? (uint64_t) call->size : 1;
    const uint64_t unit = r2_max(call->args->element_bytes, (uint64_t) 1);
    const uint64_t most = call->team->segment.piece_bytes / blocks;
    const uint64_t few =
        shares ? most : r2_max(call->block_bytes / R2_LONG_PIECES, R2_LONG_PIECE_BYTES / blocks);

    return r2_max(r2_min(most, few) / unit, (uint64_t) 1) * unit;
}

r2_status_t r2_team_run_long(const r2_team_call_t *call)
{
    r2_team_t *team = call->team;
    const bool shares = R2_COLL_ALLREDUCE == call->which || R2_COLL_REDUCE == call->which;
    r2_long_t pieces = {
        .call = call,
        .own = r2_segment_member(&team->segment, call->rank),
        .part_bytes = r2_long_part_bytes(call, shares),
        .first = team->pieces + 1,
        .direct = r2_long_is_direct(call),
    };

    pieces.count = (uint32_t) ((call->block_bytes + pieces.part_bytes - 1) / pieces.part_bytes);
    team->pieces += pieces.count;
    return shares ? r2_long_reduce(&pieces) : r2_long_exchange(&pieces);
}
