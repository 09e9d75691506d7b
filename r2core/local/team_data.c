/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What teams move: from the user's memory into slots, and out of slots into the user's memory.
 */
#include "r2_config.h"

#include <string.h>

#include "local/team_parts.h"

static const r2_team_kind_t r2_team_kinds[R2_COLL_KIND_COUNT] = {
    [R2_COLL_BARRIER] = {R2_WHO_ALL, R2_WHO_ALL, .known = true},
    [R2_COLL_ALLREDUCE] = {R2_WHO_ALL, R2_WHO_ALL, .reduces = true, .known = true},
    [R2_COLL_REDUCE] = {R2_WHO_ALL, R2_WHO_ROOT, .reduces = true, .known = true},
    [R2_COLL_SCAN] = {R2_WHO_ALL, R2_WHO_ALL, .reduces = true, .known = true},
    [R2_COLL_EXSCAN] = {R2_WHO_ALL, R2_WHO_ALL, .reduces = true, .known = true},
    [R2_COLL_REDUCE_SCATTER_BLOCK] = {R2_WHO_ALL, R2_WHO_ALL, .blocks = true, .reduces = true,
                                      .known = true},
    [R2_COLL_BCAST] = {R2_WHO_ROOT, R2_WHO_OTHERS, .known = true},
    [R2_COLL_ALLGATHER] = {R2_WHO_ALL, R2_WHO_ALL, .known = true},
    [R2_COLL_GATHER] = {R2_WHO_ALL, R2_WHO_ROOT, .known = true},
    [R2_COLL_SCATTER] = {R2_WHO_ROOT, R2_WHO_ALL, .blocks = true, .known = true},
    [R2_COLL_ALLTOALL] = {R2_WHO_ALL, R2_WHO_ALL, .blocks = true, .known = true},
};

const r2_team_kind_t *r2_team_kind(r2_coll_kind_t kind)
{
    return &r2_team_kinds[kind];
}

/* Where a call's input is: in place, and of a broadcast, in the output. */
static bool r2_team_reads_out(const r2_team_call_t *call)
{
    return R2_COLL_BCAST == call->which || (call->args->in_place && R2_COLL_SCATTER != call->which);
}

/* Where this member's data begins in its buffer. */
static uint64_t r2_team_start(const r2_team_call_t *call)
{
    const bool gathers = R2_COLL_ALLGATHER == call->which || R2_COLL_GATHER == call->which;

    return r2_team_reads_out(call) && gathers ? (uint64_t) call->rank * call->block_bytes : 0;
}

const char *r2_team_data(const r2_team_call_t *call)
{
    const r2_coll_args_t *args = call->args;
    const bool out = r2_team_reads_out(call);
    const r2_convertor_t *convertor = out ? &args->out_convertor : &args->in_convertor;

    return NULL == convertor->move
               ? (const char *) (out ? args->out : args->in) + r2_team_start(call)
               : NULL;
}

/* @param offset from where this member's data begins. */
static void r2_team_pack(const r2_team_call_t *call, uint64_t offset, char *packed, uint64_t bytes)
{
    const r2_coll_args_t *args = call->args;
    const char *data = r2_team_data(call);

    if (0 == bytes) {
        return;
    }
    if (NULL == data) {
        const r2_convertor_t *convertor =
            r2_team_reads_out(call) ? &args->out_convertor : &args->in_convertor;

        convertor->move(convertor->arg, r2_team_start(call) + offset, packed, bytes, false);
    } else {
        memcpy(packed, data + offset, bytes);
    }
}

const char *r2_team_own(const r2_team_call_t *call, uint64_t at)
{
    const uint64_t block = call->kind->blocks ? (uint64_t) call->rank * call->block_bytes : 0;
    const char *data = r2_team_data(call);

    return call->args->in_place || NULL == data ? NULL : data + block + at;
}

bool r2_team_is_alone(const r2_team_call_t *call)
{
    return call->rank == call->root && !call->shares &&
           (R2_COLL_GATHER == call->which || R2_COLL_REDUCE == call->which);
}

void r2_team_put(const r2_team_call_t *call, r2_team_part_t part, char *slot)
{
    const bool own = NULL == r2_team_own(call, 0);

    if (!call->kind->blocks) {
        r2_team_pack(call, part.at, slot, part.bytes);
        return;
    }
    for (int32_t i = 0; i < call->size; ++i) {
        if (i != call->rank || own) {
            r2_team_pack(call, (uint64_t) i * call->block_bytes + part.at,
                         slot + (uint64_t) i * part.bytes, part.bytes);
        }
    }
}

bool r2_team_needs(const r2_team_call_t *call, int32_t member)
{
    if (R2_WHO_ROOT == call->kind->gives) {
        return member == call->root;
    }
    return R2_COLL_SCAN == call->which     ? member <= call->rank
           : R2_COLL_EXSCAN == call->which ? member < call->rank
                                           : true;
}

static bool r2_team_is(const r2_team_call_t *call, r2_team_who_t who)
{
    return R2_WHO_ALL == who ||
           (call->rank == call->root ? R2_WHO_ROOT == who : R2_WHO_OTHERS == who);
}

r2_team_call_t r2_team_call_of(r2_team_t *team, const r2_coll_args_t *args, bool shares)
{
    r2_team_call_t call = {
        .team = team,
        .args = args,
        .kind = r2_team_kind(args->kind),
        .which = args->kind,
        .size = team->segment.size,
        .rank = team->segment.rank,
        .root = args->root,
        .block_bytes = R2_COLL_BARRIER == args->kind ? 0 : args->count * args->element_bytes,
        .shares = shares,
    };

    call.gives = r2_team_is(&call, call.kind->gives) &&
                 (!r2_team_is_alone(&call) || NULL == r2_team_own(&call, 0));
    call.takes = r2_team_is(&call, call.kind->takes);
    call.line =
        call.block_bytes * (call.kind->blocks ? (uint64_t) call.size : 1) <= R2_SEGMENT_LINE_BYTES;
    return call;
}

int32_t r2_team_last(const r2_team_call_t *call)
{
    return R2_COLL_SCAN == call->which     ? call->rank
           : R2_COLL_EXSCAN == call->which ? call->rank - 1
                                           : call->size - 1;
}

void r2_team_fold(const r2_team_call_t *call, const r2_team_fold_t *fold, char *to, uint64_t bytes)
{
    const r2_coll_args_t *args = call->args;

    for (int32_t i = fold->last; i >= 0 && bytes > 0; --i) {
        const char *x = i == call->rank && NULL != fold->own
                            ? fold->own
                            : fold->from(call, i, fold->number) + fold->skip;

        if (i == fold->last) {
            memcpy(to, x, bytes);
        } else {
            args->reduce(args->reduce_arg, x, to, bytes / args->element_bytes);
        }
    }
}

void r2_team_take_folded(const r2_team_call_t *call, r2_team_part_t part, uint64_t number,
                         r2_team_from_fn_t from)
{
    const r2_team_fold_t fold = {
        .last = r2_team_last(call),
        .number = number,
        .from = from,
        .skip = call->kind->blocks ? (uint64_t) call->rank * part.bytes : 0,
        .own = r2_team_own(call, part.at),
    };

    r2_team_fold(call, &fold, (char *) call->args->out + part.at, part.bytes);
}

bool r2_team_copies(const r2_team_call_t *call, int32_t member)
{
    return r2_team_needs(call, member) && (member != call->rank || !call->args->in_place);
}

bool r2_team_keeps(const r2_team_call_t *call)
{
    return r2_team_copies(call, call->rank) && NULL != r2_team_own(call, 0);
}

/* Of who gathers, behind what other members gave. */
static uint64_t r2_team_offset(const r2_team_call_t *call, int32_t member, uint64_t at)
{
    return R2_WHO_ROOT == call->kind->gives ? at : (uint64_t) member * call->block_bytes + at;
}

char *r2_team_place(const r2_team_call_t *call, int32_t member, uint64_t at)
{
    return NULL == call->args->out_convertor.move
               ? (char *) call->args->out + r2_team_offset(call, member, at)
               : NULL;
}

void r2_team_copy(const r2_team_call_t *call, int32_t member, uint64_t at, const char *from,
                  uint64_t bytes)
{
    const r2_convertor_t *convertor = &call->args->out_convertor;
    char *to = r2_team_place(call, member, at);

    if (NULL == to) { /* reads it only */
        convertor->move(convertor->arg, r2_team_offset(call, member, at), (char *) (uintptr_t) from,
                        bytes, true);
    } else if (bytes > 0) {
        memcpy(to, from, bytes);
    }
}

void r2_team_keep(const r2_team_call_t *call)
{
    r2_team_copy(call, call->rank, 0, r2_team_own(call, 0), call->block_bytes);
}

void r2_team_take_copy(const r2_team_call_t *call, int32_t member, r2_team_part_t part,
                       uint64_t number, r2_team_from_fn_t from)
{
    const uint64_t skip = call->kind->blocks ? (uint64_t) call->rank * part.bytes : 0;

    r2_team_copy(call, member, part.at, from(call, member, number) + skip, part.bytes);
}

void r2_team_take(const r2_team_call_t *call, r2_team_part_t part, uint64_t number,
                  r2_team_from_fn_t from)
{
    bool keeps;

    if (call->kind->reduces) {
        r2_team_take_folded(call, part, number, from);
        return;
    }
    keeps = r2_team_keeps(call);
    for (int32_t i = 0; i < call->size; ++i) {
        if (i == call->rank && keeps) {
            r2_team_keep(call);
        } else if (r2_team_copies(call, i)) {
            r2_team_take_copy(call, i, part, number, from);
        }
    }
}
