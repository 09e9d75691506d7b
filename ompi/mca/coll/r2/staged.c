/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers of point-to-point in memory of a GPU: a packed copy in the host's, which any PML sends
 * and receives.
 */
#include "p2p.h"

#include <string.h>

static void r2_staged_settle(mca_coll_r2_staged_t *staged)
{
    staged->buffer.starts = staged->starts;
    staged->buffer.displs = &staged->displ;
    staged->convertor = (r2_convertor_t){.runs = mca_coll_r2_buffer_runs, .arg = &staged->buffer};
}

static int r2_staged_error(r2_status_t status)
{
    static bool told;

    if (R2_OK == status) {
        return OMPI_SUCCESS;
    }
    if (R2_ERR_NO_MEMORY == status) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!__atomic_test_and_set(&told, __ATOMIC_RELAXED)) {
        opal_output(0, "coll:r2: point-to-point: memory of a GPU could not be copied: %s",
                    r2_status_string(status));
    }
    return MPI_ERR_OTHER;
}

/* By one query: what is not at MPI_BOTTOM lies in one piece of memory. Most buffers are the
 * CPU's. */
static r2_status_t r2_staged_look(const void *memory, const struct ompi_datatype_t *dtype,
                                  bool *is_cpus_p)
{
    r2_mem_at_t at = {.kind = R2_MEM_HOST};
    r2_status_t status;

    if (MPI_BOTTOM == memory) {
        *is_cpus_p = false; /* unknown */
        return R2_OK;
    }
    status = r2_mem_find(mca_coll_r2_component.ctx,
                         (const char *) memory + mca_coll_r2_first_byte(dtype), &at);
    *is_cpus_p = mca_coll_r2_is_cpus(&at);
    return status;
}

/**
 * True if pml/ucx hands elements of the type to UCX as they lie, whatever their number; others it
 * packs with Open MPI's convertor, which must not touch a GPU's memory.
 */
static bool mca_coll_r2_staged_is_plain(struct ompi_datatype_t *dtype)
{
    MPI_Aint lb, extent;

    ompi_datatype_get_extent(dtype, &lb, &extent);
    return 0 == lb && ompi_datatype_is_contiguous_memory_layout(dtype, 2);
}

int mca_coll_r2_staged_open(mca_coll_r2_staged_t *staged, const void *memory, size_t count,
                            struct ompi_datatype_t *dtype, bool rows_only)
{
    r2_mem_at_t at = {.kind = R2_MEM_HOST};
    bool is_cpus = true;
    size_t unit;
    r2_status_t status = R2_OK;

    staged->copy = NULL;
    ompi_datatype_type_size(dtype, &unit);
    if (0 != count && 0 != unit && !(rows_only && mca_coll_r2_staged_is_plain(dtype))) {
        status = r2_staged_look(memory, dtype, &is_cpus);
    }
    if (R2_OK != status || is_cpus) {
        return r2_staged_error(status);
    }
    memset(staged, 0, sizeof(*staged));
    staged->buffer.base = (char *) (uintptr_t) memory;
    staged->buffer.dtype = dtype;
    staged->buffer.block_count = 1;
    staged->starts[1] = (uint64_t) count * unit;
    r2_staged_settle(staged);
    status = mca_coll_r2_buffer_look(&staged->buffer, &at);
    if (R2_OK != status || mca_coll_r2_is_cpus(&at)) {
        mca_coll_r2_buffer_runs_fini(&staged->buffer);
        return r2_staged_error(status);
    }
    staged->at = at;
    status = r2_mem_block_get(mca_coll_r2_component.ctx, &at, staged->starts[1], &staged->block,
                              &staged->copy);
    if (R2_OK != status) {
        mca_coll_r2_buffer_runs_fini(&staged->buffer);
    }
    return r2_staged_error(status);
}

void mca_coll_r2_staged_move(mca_coll_r2_staged_t *to, const mca_coll_r2_staged_t *from)
{
    *to = *from;
    r2_staged_settle(to);
}

size_t mca_coll_r2_staged_bytes(const mca_coll_r2_staged_t *staged)
{
    return staged->starts[1];
}

int mca_coll_r2_staged_load(mca_coll_r2_staged_t *staged)
{
    return r2_staged_error(r2_mem_transfer(mca_coll_r2_component.ctx, &staged->at,
                                           &staged->convertor, staged->starts[1], staged->copy,
                                           false));
}

int mca_coll_r2_staged_store(mca_coll_r2_staged_t *staged, size_t bytes)
{
    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    return r2_staged_error(r2_mem_transfer(mca_coll_r2_component.ctx, &staged->at,
                                           &staged->convertor, bytes, staged->copy, true));
}

void mca_coll_r2_staged_close(mca_coll_r2_staged_t *staged)
{
    if (NULL != staged->copy) {
        mca_coll_r2_buffer_runs_fini(&staged->buffer);
        r2_mem_block_put(mca_coll_r2_component.ctx, staged->block);
        staged->copy = NULL;
    }
}
