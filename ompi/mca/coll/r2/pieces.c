/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reductions of types with holes: piece by piece through dense copies of bounded size.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

static void r2_pieces_copy(struct ompi_datatype_t *dtype, char *to, const char *from,
                           uint64_t count)
{
    ompi_datatype_copy_content_same_ddt(dtype, (int32_t) count, to, (char *) (uintptr_t) from);
}

/* One block of elements of the user's datatype. */
static void r2_pieces_block(const mca_coll_r2_call_t *call, char *base, uint64_t count,
                            uint64_t starts[2], mca_coll_r2_buffer_t *block_p)
{
    static ptrdiff_t origin = 0;

    starts[0] = 0;
    starts[1] = mca_coll_r2_bytes(count, call->reducer.dtype);
    *block_p = (mca_coll_r2_buffer_t){.base = base,
                                      .dtype = call->reducer.dtype,
                                      .block_count = 1,
                                      .starts = starts,
                                      .displs = &origin,
                                      .runs = &call->pieces->runs};
}

/* Between the user's buffer and a dense copy, neither before its first element's origin. */
static void r2_pieces_move(mca_coll_r2_call_t *call, const r2_mem_at_t *at, char *user, char *dense,
                           uint64_t count, bool store)
{
    mca_coll_r2_pieces_t *pieces = call->pieces;
    mca_coll_r2_buffer_t theirs, ours;
    r2_convertor_t buffer = {.runs = mca_coll_r2_buffer_runs, .arg = &theirs};
    uint64_t starts[2];

    if (mca_coll_r2_is_cpus(at)) {
        r2_pieces_copy(call->reducer.dtype, store ? user : dense, store ? dense : user, count);
        return;
    }
    if (0 == count || R2_OK != pieces->status) {
        return;
    }
    r2_pieces_block(call, user, count, starts, &theirs);
    r2_pieces_block(call, dense, count, starts, &ours);
    if (store) {
        mca_coll_r2_buffer_move(&ours, 0, pieces->packed, starts[1], false);
    }
    pieces->status =
        r2_mem_transfer(mca_coll_r2_component.ctx, at, &buffer, starts[1], pieces->packed, store);
    if (!store && R2_OK == pieces->status) {
        mca_coll_r2_buffer_move(&ours, 0, pieces->packed, starts[1], true);
    }
}

/* Pinned: copies of pageable memory are made one by one, under the engine lock. */
static r2_status_t r2_pieces_pack(mca_coll_r2_pieces_t *pieces, struct ompi_datatype_t *dtype)
{
    const r2_mem_at_t *at = mca_coll_r2_is_cpus(&pieces->in_at) ? &pieces->out_at : &pieces->in_at;
    r2_ctx_t *ctx = mca_coll_r2_component.ctx;
    r2_status_t status = r2_mem_block_get(ctx, at, mca_coll_r2_bytes(pieces->room, dtype),
                                          &pieces->block, &pieces->packed);

    if (R2_OK == status && OMPI_SUCCESS != mca_coll_r2_runs_create(dtype, &pieces->runs)) {
        r2_mem_block_put(ctx, pieces->block);
        pieces->block = NULL;
        pieces->packed = NULL;
        status = R2_ERR_NO_MEMORY;
    }
    return status;
}

r2_status_t mca_coll_r2_pieces_look(mca_coll_r2_call_t *call)
{
    mca_coll_r2_pieces_t *pieces = call->pieces;
    const ptrdiff_t first = mca_coll_r2_first_byte(call->reducer.dtype);
    r2_status_t status = r2_mem_find(mca_coll_r2_component.ctx, pieces->in + first, &pieces->in_at);

    pieces->status = R2_OK;
    if (R2_OK == status && !call->no_result) {
        status = r2_mem_find(mca_coll_r2_component.ctx, pieces->out + first, &pieces->out_at);
    }
    if (R2_OK == status && NULL == pieces->packed &&
        !(mca_coll_r2_is_cpus(&pieces->in_at) && mca_coll_r2_is_cpus(&pieces->out_at))) {
        status = r2_pieces_pack(pieces, call->reducer.dtype);
    }
    return status;
}

static uint64_t r2_pieces_total(const r2_coll_args_t *args, int size)
{
    uint64_t total = 0;

    if (R2_COLL_REDUCE_SCATTER_BLOCK == args->kind) {
        return args->count * (uint64_t) size;
    }
    for (int i = 0; R2_COLL_REDUCE_SCATTER == args->kind && i < size; ++i) {
        total += args->counts[i];
    }
    return R2_COLL_REDUCE_SCATTER == args->kind ? total : args->count;
}

static int r2_pieces_counts(mca_coll_r2_pieces_t *pieces, mca_coll_r2_call_t *call)
{
    if (R2_COLL_REDUCE_SCATTER != call->args.kind &&
        R2_COLL_REDUCE_SCATTER_BLOCK != call->args.kind) {
        return OMPI_SUCCESS;
    }
    pieces->counts = calloc((size_t) call->size, sizeof(*pieces->counts));
    pieces->all_counts = calloc((size_t) call->size, sizeof(*pieces->all_counts));
    if (NULL == pieces->counts || NULL == pieces->all_counts) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < call->size; ++i) {
        pieces->all_counts[i] = NULL == call->args.counts ? call->args.count : call->args.counts[i];
    }
    call->args.kind = R2_COLL_REDUCE_SCATTER;
    return OMPI_SUCCESS;
}

int mca_coll_r2_pieces_create(mca_coll_r2_call_t *call, const void *in, void *out)
{
    mca_coll_r2_pieces_t *pieces = calloc(1, sizeof(*pieces));
    uint64_t extent = call->args.element_bytes;
    uint64_t half = mca_coll_r2_component.params.pack_bytes / 2;

    if (NULL == pieces) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    call->pieces = pieces;
    pieces->in = call->args.in_place ? out : in;
    pieces->out = out;
    pieces->rank = call->rank;
    pieces->total = r2_pieces_total(&call->args, call->size);
    pieces->room = half / extent > 0 ? half / extent : 1;
    pieces->room = pieces->room < pieces->total ? pieces->room : pieces->total;
    pieces->room = pieces->room < INT32_MAX ? pieces->room : INT32_MAX;
    pieces->dense_in = calloc(pieces->room + 1, extent);
    pieces->dense_out = calloc(pieces->room + 1, extent);
    if (NULL == pieces->dense_in || NULL == pieces->dense_out ||
        OMPI_SUCCESS != r2_pieces_counts(pieces, call)) {
        mca_coll_r2_pieces_destroy(pieces);
        call->pieces = NULL;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    call->args.in_place = false;
    call->args.in = pieces->dense_in;
    call->args.out = pieces->dense_out;
    return OMPI_SUCCESS;
}

void mca_coll_r2_pieces_destroy(mca_coll_r2_pieces_t *pieces)
{
    free(pieces->dense_in);
    free(pieces->dense_out);
    free(pieces->counts);
    free(pieces->all_counts);
    r2_mem_block_put(mca_coll_r2_component.ctx, pieces->block);
    free(pieces->runs);
    free(pieces);
}

static uint64_t r2_pieces_length(const mca_coll_r2_pieces_t *pieces)
{
    uint64_t rest = pieces->total - pieces->done;

    return rest < pieces->room ? rest : pieces->room;
}

uint32_t mca_coll_r2_pieces_count(const mca_coll_r2_pieces_t *pieces)
{
    return (uint32_t) ((pieces->total + pieces->room - 1) / pieces->room);
}

/* Part of each rank's block that lies in [from, to) of the whole vector. */
static void r2_pieces_overlaps(mca_coll_r2_pieces_t *pieces, int size, uint64_t from, uint64_t to)
{
    uint64_t start = 0;

    for (int i = 0; i < size; ++i) {
        uint64_t end = start + pieces->all_counts[i];
        uint64_t low = start > from ? start : from;
        uint64_t high = end < to ? end : to;

        pieces->counts[i] = low < high ? high - low : 0;
        start = end;
    }
}

bool mca_coll_r2_pieces_load(mca_coll_r2_call_t *call)
{
    mca_coll_r2_pieces_t *pieces = call->pieces;
    uint64_t length = r2_pieces_length(pieces);

    if (0 == length) {
        return false;
    }
    r2_pieces_move(call, &pieces->in_at,
                   (char *) (uintptr_t) pieces->in + pieces->done * call->args.element_bytes,
                   pieces->dense_in - mca_coll_r2_first_byte(call->reducer.dtype), length, false);
    call->args.count = length;
    if (NULL != pieces->counts) {
        r2_pieces_overlaps(pieces, call->size, pieces->done, pieces->done + length);
        call->args.counts = pieces->counts;
    }
    return true;
}

void mca_coll_r2_pieces_store(mca_coll_r2_call_t *call)
{
    mca_coll_r2_pieces_t *pieces = call->pieces;
    uint64_t length = r2_pieces_length(pieces);
    uint64_t ours = NULL == pieces->counts ? length : pieces->counts[pieces->rank];

    if (call->no_result) {
        ours = 0;
    }
    r2_pieces_move(call, &pieces->out_at, pieces->out + pieces->written * call->args.element_bytes,
                   pieces->dense_out - mca_coll_r2_first_byte(call->reducer.dtype), ours, true);
    pieces->written += ours;
    pieces->done += length;
}

void mca_coll_r2_pieces_rewind(mca_coll_r2_pieces_t *pieces)
{
    pieces->done = 0;
    pieces->written = 0;
}
