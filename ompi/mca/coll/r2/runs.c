/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers of GPUs' memory that are not contiguous: the pieces of which they consist, for the
 * driver's copies.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

#define R2_RUNS_AT_A_TIME 64

/** One element of a datatype: pieces of contiguous memory in the order of its packed stream. */
struct mca_coll_r2_runs {
    uint64_t element_bytes; /* packed */
    ptrdiff_t extent;
    uint32_t count, room;
    struct {
        ptrdiff_t displ; /* from the element's origin */
        uint64_t start;  /* in its packed stream; of `count`: element_bytes */
    } runs[];
};

ptrdiff_t mca_coll_r2_first_byte(const struct ompi_datatype_t *dtype)
{
    ptrdiff_t true_lb, true_extent;

    ompi_datatype_get_true_extent(dtype, &true_lb, &true_extent);
    return true_lb;
}

/* @param runs_p may move. @return OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE. */
static int r2_runs_add(mca_coll_r2_runs_t **runs_p, ptrdiff_t displ, uint64_t bytes)
{
    mca_coll_r2_runs_t *runs = *runs_p;
    const uint32_t last = runs->count - 1;

    if (runs->count > 0 && displ - runs->runs[last].displ ==
                               (ptrdiff_t) (runs->element_bytes - runs->runs[last].start)) {
        runs->element_bytes += bytes;
        return OMPI_SUCCESS;
    }
    if (runs->count == runs->room) {
        const uint32_t room = 2 * runs->room;

        runs = realloc(runs, sizeof(*runs) + (room + 1) * sizeof(runs->runs[0]));
        if (NULL == runs) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        runs->room = room;
        *runs_p = runs;
    }
    runs->runs[runs->count].displ = displ;
    runs->runs[runs->count].start = runs->element_bytes;
    ++runs->count;
    runs->element_bytes += bytes;
    return OMPI_SUCCESS;
}

/* What Open MPI's converter would copy of one element, without touching it. */
static int r2_runs_fill(mca_coll_r2_runs_t **runs_p, const struct ompi_datatype_t *dtype)
{
    static char origin;
    opal_convertor_t convertor;
    struct iovec iov[R2_RUNS_AT_A_TIME];
    int rc = OMPI_SUCCESS, done = 0;

    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_proc_local()->super.proc_convertor, &dtype->super,
                                             1, &origin, 0, &convertor);
    while (OMPI_SUCCESS == rc && 0 == done) {
        uint32_t count = R2_RUNS_AT_A_TIME;
        size_t bytes = SIZE_MAX;

        done = opal_convertor_raw(&convertor, iov, &count, &bytes);
        for (uint32_t i = 0; OMPI_SUCCESS == rc && i < count; ++i) {
            rc = r2_runs_add(runs_p, (char *) iov[i].iov_base - &origin, iov[i].iov_len);
        }
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}

int mca_coll_r2_runs_create(const struct ompi_datatype_t *dtype, mca_coll_r2_runs_t **runs_p)
{
    const uint32_t room = 4;
    mca_coll_r2_runs_t *runs =
        malloc(sizeof(*runs) + (room + 1) * sizeof(((mca_coll_r2_runs_t *) 0)->runs[0]));
    ptrdiff_t lb;
    int rc;

    if (NULL == runs) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *runs = (mca_coll_r2_runs_t){.room = room};
    ompi_datatype_get_extent(dtype, &lb, &runs->extent);
    rc = r2_runs_fill(&runs, dtype);
    if (OMPI_SUCCESS != rc) {
        free(runs);
        return rc;
    }
    runs->runs[runs->count].start = runs->element_bytes;
    *runs_p = runs;
    return OMPI_SUCCESS;
}

/* The run of an element that holds a byte of its packed stream. */
static uint32_t r2_runs_at(const mca_coll_r2_runs_t *runs, uint64_t offset)
{
    uint32_t low = 0, high = runs->count;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (runs->runs[middle].start <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- of a buffer ---- */

int mca_coll_r2_buffer_block(const mca_coll_r2_buffer_t *buffer, uint64_t offset)
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

/* Pieces that follow each other in memory are told as one. */
typedef struct r2_runs_told {
    r2_run_fn_t found;
    void *arg;
    char *memory;
    uint64_t offset, bytes;
} r2_runs_told_t;

static void r2_runs_tell(r2_runs_told_t *told, char *memory, uint64_t offset, uint64_t bytes)
{
    if (told->bytes > 0 && (0 == bytes || memory != told->memory + told->bytes)) {
        told->found(told->arg, told->memory, told->offset, told->bytes);
        told->bytes = 0;
    }
    if (0 == told->bytes) {
        told->memory = memory;
        told->offset = offset;
    }
    told->bytes += bytes;
}

/* `bytes` at `within` of a row of elements whose first one has its origin there. */
static void r2_runs_walk(const mca_coll_r2_runs_t *runs, char *origin, uint64_t within,
                         uint64_t offset, uint64_t bytes, r2_runs_told_t *told)
{
    uint64_t element = within / runs->element_bytes;
    uint64_t at = within % runs->element_bytes;
    uint32_t run = r2_runs_at(runs, at);

    while (bytes > 0) {
        const uint64_t rest = runs->runs[run + 1].start - at;
        const uint64_t part = rest < bytes ? rest : bytes;
        char *memory = origin + (ptrdiff_t) element * runs->extent + runs->runs[run].displ;

        r2_runs_tell(told, memory + (at - runs->runs[run].start), offset, part);
        offset += part;
        bytes -= part;
        at += part;
        if (++run == runs->count) {
            run = 0;
            at = 0;
            ++element;
        }
    }
}

void mca_coll_r2_buffer_runs(void *arg, uint64_t offset, uint64_t bytes, r2_run_fn_t found,
                             void *found_arg)
{
    const mca_coll_r2_buffer_t *buffer = arg;
    r2_runs_told_t told = {.found = found, .arg = found_arg};
    int block = mca_coll_r2_buffer_block(buffer, offset);

    while (bytes > 0) {
        const uint64_t rest = buffer->starts[block + 1] - offset;
        const uint64_t part = rest < bytes ? rest : bytes;

        if (part > 0) {
            r2_runs_walk(buffer->runs[NULL == buffer->dtype ? block : 0],
                         buffer->base + buffer->displs[block], offset - buffer->starts[block],
                         offset, part, &told);
        }
        offset += part;
        bytes -= part;
        ++block;
    }
    r2_runs_tell(&told, NULL, 0, 0);
}

int mca_coll_r2_buffer_runs_init(mca_coll_r2_buffer_t *buffer)
{
    const int lists = NULL == buffer->dtype ? buffer->block_count : 1;
    int rc = OMPI_SUCCESS;

    if (NULL != buffer->runs) {
        return OMPI_SUCCESS;
    }
    buffer->runs = calloc((size_t) lists, sizeof(*buffer->runs));
    if (NULL == buffer->runs) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; OMPI_SUCCESS == rc && i < lists; ++i) {
        if (buffer->starts[i + 1] > buffer->starts[i] || NULL != buffer->dtype) {
            rc = mca_coll_r2_runs_create(NULL == buffer->dtype ? buffer->dtypes[i] : buffer->dtype,
                                         &buffer->runs[i]);
        }
    }
    return rc;
}

static const mca_coll_r2_runs_t *r2_runs_of(const mca_coll_r2_buffer_t *buffer, int block)
{
    return buffer->runs[NULL == buffer->dtype ? block : 0];
}

uint32_t mca_coll_r2_buffer_run_count(const mca_coll_r2_buffer_t *buffer, int block)
{
    return r2_runs_of(buffer, block)->count;
}

ptrdiff_t mca_coll_r2_buffer_run(const mca_coll_r2_buffer_t *buffer, int block, uint32_t idx)
{
    return r2_runs_of(buffer, block)->runs[idx].displ;
}

void mca_coll_r2_buffer_runs_fini(mca_coll_r2_buffer_t *buffer)
{
    for (int i = 0; NULL != buffer->runs && i < (NULL == buffer->dtype ? buffer->block_count : 1);
         ++i) {
        free(buffer->runs[i]);
    }
    free(buffer->runs);
    buffer->runs = NULL;
}
