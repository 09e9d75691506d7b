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

/* The block that holds a packed offset. */
static int r2_buffer_block(const mca_coll_r2_buffer_t *buffer, uint64_t offset)
{
    int low = 0, high = buffer->block_count;

    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (buffer->starts[middle] <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A block seen by Open MPI's converter, at a packed offset. Basic elements are never split. */
static void r2_buffer_open(const mca_coll_r2_buffer_t *buffer, int block, bool unpack, size_t *offset,
                           opal_convertor_t *convertor)
{
    const opal_convertor_t *local = ompi_proc_local()->super.proc_convertor;
    size_t count = (buffer->starts[block + 1] - buffer->starts[block]) / buffer->type_bytes;
    char *origin = buffer->base + buffer->displs[block];

    OBJ_CONSTRUCT(convertor, opal_convertor_t);
    if (unpack) {
        opal_convertor_copy_and_prepare_for_recv(local, &buffer->dtype->super, count, origin, 0,
                                                 convertor);
    } else {
        opal_convertor_copy_and_prepare_for_send(local, &buffer->dtype->super, count, origin, 0,
                                                 convertor);
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

/* The few bytes at `offset` that belong to a split element: through a copy of the elements around. */
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

static void r2_buffer_move(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    const mca_coll_r2_buffer_t *buffer = arg;
    int block = r2_buffer_block(buffer, offset);
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

static int r2_buffer_blocks(mca_coll_r2_buffer_t *buffer, const int *counts, const int *disps,
                            int block_count)
{
    ptrdiff_t lb, extent, next = 0;

    buffer->starts = malloc(((size_t) block_count + 1) * sizeof(*buffer->starts));
    buffer->displs = malloc(((size_t) block_count + 1) * sizeof(*buffer->displs));
    if (NULL == buffer->starts || NULL == buffer->displs) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ompi_datatype_get_extent(buffer->dtype, &lb, &extent);
    buffer->starts[0] = 0;
    for (int i = 0; i < block_count; ++i) {
        buffer->starts[i + 1] = buffer->starts[i] + (uint64_t) counts[i] * buffer->type_bytes;
        buffer->displs[i] = NULL == disps ? next : (ptrdiff_t) disps[i] * extent;
        next += (ptrdiff_t) counts[i] * extent;
    }
    buffer->block_count = block_count;
    return OMPI_SUCCESS;
}

/* Blocks follow each other without holes: the buffer is one piece of memory. */
static bool r2_buffer_dense(const mca_coll_r2_buffer_t *buffer)
{
    for (int i = 0; i < buffer->block_count; ++i) {
        if (buffer->displs[i] != (ptrdiff_t) buffer->starts[i] &&
            buffer->starts[i + 1] != buffer->starts[i]) {
            return false;
        }
    }
    return true;
}

int mca_coll_r2_buffer_init(mca_coll_r2_buffer_t *buffer, const void *base,
                            struct ompi_datatype_t *dtype, const int *counts, const int *disps,
                            int block_count, void **memory_p, r2_mover_t *mover_p)
{
    ptrdiff_t true_lb, true_extent;
    int longest = 0;
    int rc;

    memset(buffer, 0, sizeof(*buffer));
    buffer->base = (char *) (uintptr_t) base;
    buffer->dtype = dtype;
    ompi_datatype_type_size(dtype, &buffer->type_bytes);
    ompi_datatype_get_true_extent(dtype, &true_lb, &true_extent);
    rc = r2_buffer_blocks(buffer, counts, disps, block_count);
    if (OMPI_SUCCESS != rc) {
        mca_coll_r2_buffer_fini(buffer);
        return rc;
    }
    for (int i = 0; i < block_count; ++i) {
        longest = counts[i] > longest ? counts[i] : longest;
    }
    mover_p->move = NULL;
    *memory_p = NULL;
    if (0 == buffer->starts[block_count]) {
        *memory_p = buffer->base;
    } else if (ompi_datatype_is_contiguous_memory_layout(dtype, block_count > 1 ? 2 : longest) &&
               r2_buffer_dense(buffer)) {
        *memory_p = buffer->base + true_lb;
    } else {
        mover_p->move = r2_buffer_move;
        mover_p->arg = buffer;
        return OMPI_SUCCESS;
    }
    mca_coll_r2_buffer_fini(buffer);
    return OMPI_SUCCESS;
}

void mca_coll_r2_buffer_fini(mca_coll_r2_buffer_t *buffer)
{
    free(buffer->starts);
    free(buffer->displs);
    buffer->starts = NULL;
    buffer->displs = NULL;
}
