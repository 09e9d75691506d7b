/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * User buffers that are not contiguous: packing and unpacking at any offset.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "ompi/proc/proc.h"

/* At least two of the longest basic elements (complex long double, 32 bytes). */
#define R2_BUFFER_AROUND_BYTES 64

static struct ompi_datatype_t *r2_buffer_dtype(const mca_coll_r2_buffer_t *buffer, int block)
{
    return NULL != buffer->dtype ? buffer->dtype : buffer->dtypes[block];
}

/* A block seen by Open MPI's converter, at a packed offset. Basic elements are never split. */
static void r2_buffer_open(const mca_coll_r2_buffer_t *buffer, int block, bool unpack,
                           size_t *offset, opal_convertor_t *convertor)
{
    const opal_convertor_t *local = ompi_proc_local()->super.proc_convertor;
    const struct ompi_datatype_t *dtype = r2_buffer_dtype(buffer, block);
    uint64_t bytes = buffer->starts[block + 1] - buffer->starts[block];
    size_t count = bytes / mca_coll_r2_bytes(1, dtype);
    char *origin = buffer->base + buffer->displs[block];

    OBJ_CONSTRUCT(convertor, opal_convertor_t);
    if (unpack) {
        opal_convertor_copy_and_prepare_for_recv(local, &dtype->super, count, origin, 0, convertor);
    } else {
        opal_convertor_copy_and_prepare_for_send(local, &dtype->super, count, origin, 0, convertor);
    }
    opal_convertor_set_position(convertor, offset);
}

/* Packs from the basic element on that holds `offset`. @return bytes packed: whole elements. */
static size_t r2_buffer_pack(const mca_coll_r2_buffer_t *buffer, int block, uint64_t offset,
                             void *packed, size_t bytes, size_t *skipped_p)
{
    struct iovec iov = {.iov_base = packed, .iov_len = bytes};
    size_t position = offset, moved = bytes;
    uint32_t iov_count = 1;
    opal_convertor_t convertor;

    r2_buffer_open(buffer, block, false, &position, &convertor);
    *skipped_p = offset - position; /* a sending converter goes back to the start of the element */
    opal_convertor_pack(&convertor, &iov, &iov_count, &moved);
    OBJ_DESTRUCT(&convertor);
    return moved;
}

/* `offset` and `bytes` at boundaries of basic elements. */
static void r2_buffer_unpack(const mca_coll_r2_buffer_t *buffer, int block, uint64_t offset,
                             void *packed, size_t bytes)
{
    struct iovec iov = {.iov_base = packed, .iov_len = bytes};
    size_t position = offset, moved = bytes;
    uint32_t iov_count = 1;
    opal_convertor_t convertor;

    r2_buffer_open(buffer, block, true, &position, &convertor);
    opal_convertor_unpack(&convertor, &iov, &iov_count, &moved);
    OBJ_DESTRUCT(&convertor);
}

/* Start of the basic element that holds `offset`. */
static uint64_t r2_buffer_boundary(const mca_coll_r2_buffer_t *buffer, int block, uint64_t offset)
{
    size_t position = offset;
    opal_convertor_t convertor;

    r2_buffer_open(buffer, block, false, &position, &convertor);
    OBJ_DESTRUCT(&convertor);
    return position;
}

/* The few bytes at `offset` that belong to a split element: through a copy of the elements
 * around. */
static size_t r2_buffer_split(const mca_coll_r2_buffer_t *buffer, int block, uint64_t offset,
                              char *packed, size_t bytes, bool unpack)
{
    char around[R2_BUFFER_AROUND_BYTES];
    size_t skipped = 0;
    size_t moved = r2_buffer_pack(buffer, block, offset, around, sizeof(around), &skipped);
    size_t part = moved - skipped < bytes ? moved - skipped : bytes;

    memcpy(unpack ? around + skipped : packed, unpack ? packed : around + skipped, part);
    if (unpack) {
        r2_buffer_unpack(buffer, block, offset - skipped, around, moved);
    }
    return part;
}

/*
 * Messages are cut at any byte, but Open MPI's converter packs whole basic elements only: it goes
 * back to the start of one and stops before one that does not fit.
 */
static void r2_buffer_convert(const mca_coll_r2_buffer_t *buffer, int block, uint64_t offset,
                              char *packed, size_t bytes, bool unpack)
{
    while (bytes > 0) {
        uint64_t start = r2_buffer_boundary(buffer, block, offset);
        size_t part = 0;

        if (start != offset || bytes < R2_BUFFER_AROUND_BYTES) {
            part = r2_buffer_split(buffer, block, offset, packed, bytes, unpack);
        } else if (unpack) {
            part = r2_buffer_boundary(buffer, block, offset + bytes) - offset;
            r2_buffer_unpack(buffer, block, offset, packed, part);
        } else {
            part = r2_buffer_pack(buffer, block, offset, packed, bytes, &(size_t){0});
        }
        offset += part;
        packed += part;
        bytes -= part;
    }
}

void mca_coll_r2_buffer_move(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    const mca_coll_r2_buffer_t *buffer = arg;
    int block = mca_coll_r2_buffer_block(buffer, offset);
    char *at = packed;

    while (bytes > 0) {
        uint64_t within = offset - buffer->starts[block];
        uint64_t rest = buffer->starts[block + 1] - offset;
        uint64_t part = rest < bytes ? rest : bytes;

        if (part > 0) {
            r2_buffer_convert(buffer, block, within, at, part, unpack);
        }
        at += part;
        offset += part;
        bytes -= part;
        ++block;
    }
}

uint64_t mca_coll_r2_bytes(size_t count, const struct ompi_datatype_t *dtype)
{
    size_t bytes;

    ompi_datatype_type_size(dtype, &bytes);
    return (uint64_t) count * bytes;
}

static struct ompi_datatype_t *r2_block_dtype(const mca_coll_r2_blocks_t *blocks, int block)
{
    return NULL != blocks->dtype ? blocks->dtype : blocks->dtypes[block];
}

size_t mca_coll_r2_block_count(const mca_coll_r2_blocks_t *blocks, int block)
{
    return mca_coll_r2_counts_given(blocks->counts) ? mca_coll_r2_count_at(blocks->counts, block)
                                                    : blocks->count;
}

uint64_t mca_coll_r2_block_bytes(const mca_coll_r2_blocks_t *blocks, int block)
{
    return mca_coll_r2_bytes(mca_coll_r2_block_count(blocks, block), r2_block_dtype(blocks, block));
}

/* Bytes from the base to the origin of a block. @param next where the one before it ends. */
static ptrdiff_t r2_block_displ(const mca_coll_r2_blocks_t *blocks, int block, ptrdiff_t extent,
                                ptrdiff_t next)
{
    if (mca_coll_r2_displs_given(blocks->displs)) {
        return mca_coll_r2_displ_at(blocks->displs, block) * extent;
    }
    return mca_coll_r2_displs_given(blocks->byte_displs)
               ? mca_coll_r2_displ_at(blocks->byte_displs, block)
               : next;
}

static int r2_buffer_blocks(mca_coll_r2_buffer_t *buffer, const mca_coll_r2_blocks_t *blocks)
{
    const size_t room = (size_t) blocks->block_count + 1;
    ptrdiff_t lb, extent, next = 0;

    buffer->base = (char *) (uintptr_t) blocks->base;
    buffer->dtype = blocks->dtype;
    buffer->block_count = blocks->block_count;
    buffer->starts = malloc(room * sizeof(*buffer->starts));
    buffer->displs = malloc(room * sizeof(*buffer->displs));
    buffer->dtypes = NULL == blocks->dtype ? malloc(room * sizeof(*buffer->dtypes)) : NULL;
    if (NULL == buffer->starts || NULL == buffer->displs ||
        (NULL == blocks->dtype && NULL == buffer->dtypes)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    buffer->starts[0] = 0;
    for (int i = 0; i < blocks->block_count; ++i) {
        struct ompi_datatype_t *dtype = r2_block_dtype(blocks, i);

        ompi_datatype_get_extent(dtype, &lb, &extent);
        buffer->starts[i + 1] = buffer->starts[i] + mca_coll_r2_block_bytes(blocks, i);
        buffer->displs[i] = r2_block_displ(blocks, i, extent, next);
        next += (ptrdiff_t) mca_coll_r2_block_count(blocks, i) * extent;
        if (NULL != buffer->dtypes) {
            buffer->dtypes[i] = dtype;
        }
    }
    return OMPI_SUCCESS;
}

static bool r2_block_empty(const mca_coll_r2_buffer_t *buffer, int block)
{
    return buffer->starts[block + 1] == buffer->starts[block];
}

/* Every block is one piece of memory. */
static bool r2_buffer_solid(const mca_coll_r2_buffer_t *buffer, const mca_coll_r2_blocks_t *blocks)
{
    for (int i = 0; i < buffer->block_count; ++i) {
        if (!r2_block_empty(buffer, i) &&
            !ompi_datatype_is_contiguous_memory_layout(r2_block_dtype(blocks, i),
                                                       mca_coll_r2_block_count(blocks, i))) {
            return false;
        }
    }
    return true;
}

/* Bytes from the base to the first byte of a solid block. */
static ptrdiff_t r2_block_first(const mca_coll_r2_buffer_t *buffer, int block)
{
    return buffer->displs[block] + mca_coll_r2_first_byte(r2_buffer_dtype(buffer, block));
}

/* Solid blocks follow each other without holes: the buffer is one piece of memory. */
static bool r2_buffer_dense(const mca_coll_r2_buffer_t *buffer, ptrdiff_t first)
{
    for (int i = 0; i < buffer->block_count; ++i) {
        if (!r2_block_empty(buffer, i) &&
            r2_block_first(buffer, i) - first != (ptrdiff_t) buffer->starts[i]) {
            return false;
        }
    }
    return true;
}

/* The lowest byte of solid blocks, from the base; 0 if there are none. */
static ptrdiff_t r2_buffer_lowest(const mca_coll_r2_buffer_t *buffer)
{
    ptrdiff_t lowest = 0;
    bool found = false;

    for (int i = 0; i < buffer->block_count; ++i) {
        if (!r2_block_empty(buffer, i) && (!found || r2_block_first(buffer, i) < lowest)) {
            lowest = r2_block_first(buffer, i);
            found = true;
        }
    }
    return lowest;
}

/* Most calls: equal blocks of one type, one after another and without holes. */
static bool r2_blocks_are_plain(const mca_coll_r2_blocks_t *blocks)
{
    const bool several = blocks->block_count > 1 || blocks->count > 1;

    return NULL != blocks->dtype && !blocks->listed && !mca_coll_r2_displs_given(blocks->displs) &&
           !mca_coll_r2_displs_given(blocks->byte_displs) && blocks->block_count > 0 &&
           mca_coll_r2_bytes(blocks->count, blocks->dtype) > 0 &&
           ompi_datatype_is_contiguous_memory_layout(blocks->dtype, several ? 2 : 1);
}

int mca_coll_r2_stream_init(mca_coll_r2_buffer_t *buffer, const mca_coll_r2_blocks_t *blocks,
                            void **memory_p, r2_convertor_t *convertor_p)
{
    ptrdiff_t lowest;
    int rc;

    memset(buffer, 0, sizeof(*buffer));
    convertor_p->move = NULL;
    *memory_p = NULL;
    if (r2_blocks_are_plain(blocks)) {
        *memory_p = (char *) (uintptr_t) blocks->base + mca_coll_r2_first_byte(blocks->dtype);
        return OMPI_SUCCESS;
    }
    rc = r2_buffer_blocks(buffer, blocks);
    if (OMPI_SUCCESS != rc) {
        mca_coll_r2_buffer_fini(buffer);
        return rc;
    }
    if (r2_buffer_solid(buffer, blocks)) {
        lowest = r2_buffer_lowest(buffer);
        if (r2_buffer_dense(buffer, lowest)) {
            *memory_p = buffer->base + lowest;
            mca_coll_r2_buffer_fini(buffer);
            return OMPI_SUCCESS;
        }
    }
    convertor_p->move = mca_coll_r2_buffer_move;
    convertor_p->runs = mca_coll_r2_buffer_runs;
    convertor_p->arg = buffer;
    return OMPI_SUCCESS;
}

int mca_coll_r2_blocks_init(mca_coll_r2_buffer_t *buffer, const mca_coll_r2_blocks_t *blocks,
                            uint64_t *offsets_p, void **memory_p, r2_convertor_t *convertor_p)
{
    ptrdiff_t lowest;
    int rc;

    memset(buffer, 0, sizeof(*buffer));
    convertor_p->move = NULL;
    *memory_p = NULL;
    rc = r2_buffer_blocks(buffer, blocks);
    if (OMPI_SUCCESS != rc) {
        mca_coll_r2_buffer_fini(buffer);
        return rc;
    }
    if (!r2_buffer_solid(buffer, blocks)) {
        memcpy(offsets_p, buffer->starts, (size_t) blocks->block_count * sizeof(*offsets_p));
        convertor_p->move = mca_coll_r2_buffer_move;
        convertor_p->runs = mca_coll_r2_buffer_runs;
        convertor_p->arg = buffer;
        return OMPI_SUCCESS;
    }
    lowest = r2_buffer_lowest(buffer);
    for (int i = 0; i < blocks->block_count; ++i) {
        offsets_p[i] =
            r2_block_empty(buffer, i) ? 0 : (uint64_t) (r2_block_first(buffer, i) - lowest);
    }
    *memory_p = buffer->base + lowest;
    mca_coll_r2_buffer_fini(buffer);
    return OMPI_SUCCESS;
}

void mca_coll_r2_buffer_fini(mca_coll_r2_buffer_t *buffer)
{
    mca_coll_r2_buffer_runs_fini(buffer);
    free(buffer->starts);
    free(buffer->displs);
    free(buffer->dtypes);
    buffer->starts = NULL;
    buffer->displs = NULL;
    buffer->dtypes = NULL;
}
