/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Staging of all runs: contexts and pinned memory, and which runs wait for copies.
 */
#include "r2_config.h"

#include "exec/staging.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/exec.h"

void r2_staging_init(r2_staging_t *staging, r2_mem_t *mem, size_t keep_bytes)
{
    memset(staging, 0, sizeof(*staging));
    staging->mem = mem;
    staging->reduce_bytes = R2_TOUCH_NO_GPU;
    staging->nic_bytes = UINT64_MAX;
    r2_pins_init(&staging->pins, mem, keep_bytes);
}

/* Also one of which a queue could not be made. */
static void r2_staging_close(r2_staging_place_t *place)
{
    r2_mem_queue_t *queues[] = {&place->loads, &place->stores, &place->reduces};

    for (size_t i = 0; i < r2_array_count(queues) && NULL != queues[i]->stream; ++i) {
        r2_mem_queue_fini(queues[i]);
    }
    r2_kernels_settle(&place->kernels);
    r2_mem_rates_fini(&place->rates); /* its launches end before modules go */
    r2_kernels_fini(&place->kernels);
    free(place);
}

void r2_staging_fini(r2_staging_t *staging)
{
    r2_pins_fini(&staging->pins);
    while (NULL != staging->places) {
        r2_staging_place_t *place = staging->places;

        staging->places = place->next;
        r2_staging_close(place);
    }
}

r2_staging_place_t *r2_staging_place(r2_staging_t *staging, const r2_mem_at_t *at)
{
    r2_staging_place_t *place = staging->places;

    while (NULL != place &&
           (place->loads.at.context != at->context || place->loads.at.device != at->device)) {
        place = place->next;
    }
    return place;
}

static const r2_near_gpu_t *r2_staging_near(const r2_staging_t *staging, const r2_mem_at_t *at)
{
    char pci[R2_MEM_PCI_BYTES];

    if (NULL == staging->near) {
        return NULL;
    }
    r2_mem_pci(staging->mem, at, pci);
    return r2_near_of(staging->near, pci);
}

static r2_status_t r2_staging_open(r2_staging_t *staging, const r2_mem_at_t *at)
{
    r2_staging_place_t *place = calloc(1, sizeof(*place));
    r2_status_t status;

    if (NULL == place) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_mem_queue_init(&place->loads, staging->mem, at);
    if (R2_OK == status) {
        status = r2_mem_queue_init(&place->stores, staging->mem, at);
    }
    if (R2_OK == status) {
        status = r2_mem_queue_init(&place->reduces, staging->mem, at);
    }
    if (R2_OK != status) {
        r2_staging_close(place);
        return status;
    }
    place->nics = r2_mem_nics(staging->mem, at);
    place->near = r2_staging_near(staging, at);
    place->reduce_bytes = staging->reduce_bytes;
    if (R2_STAGING_AUTO == place->reduce_bytes && 0 == staging->pins.keep_bytes) {
        place->reduce_bytes = R2_DEVICE_REDUCE_USUAL_BYTES; /* measuring would keep some pinned */
    }
    place->rates.limit_ns = R2_MEM_RATES_NS;
    if (R2_STAGING_AUTO == place->reduce_bytes) {
        place->kernels.loaded = r2_mem_rates_measure;
        place->kernels.loaded_arg = &place->rates;
    }
    if (NULL == staging->places) { /* all contexts can use it, also when this one is gone */
        staging->pins.at = (r2_mem_at_t){R2_MEM_PINNED, at->device, NULL};
    }
    LL_PREPEND(staging->places, place);
    return R2_OK;
}

static r2_status_t r2_staging_place_follow(r2_staging_place_t *place)
{
    r2_status_t status = r2_mem_queue_follow(&place->loads);

    if (R2_OK == status) {
        status = r2_mem_queue_follow(&place->stores);
    }
    return R2_OK == status ? r2_mem_queue_follow(&place->reduces) : status;
}

/* A new context may have the address of one that the application destroyed: then the newer queues
 * are found first, and those of the dead one are nobody's. */
r2_status_t r2_staging_follow(r2_staging_t *staging, const r2_mem_at_t *at)
{
    r2_staging_place_t *place;
    r2_status_t status;

    if (r2_mem_traits(at->kind)->is_cpus) {
        return R2_OK;
    }
    place = r2_staging_place(staging, at);
    if (NULL != place && R2_OK == r2_staging_place_follow(place)) {
        return R2_OK;
    }
    if (NULL != place) { /* it may be the device that was reset */
        r2_pins_forget(&staging->pins);
    }
    status = r2_staging_open(staging, at);
    return R2_OK == status ? r2_staging_place_follow(staging->places) : status;
}

/* What was measured decides once: programs keep what they touch by that. */
uint64_t r2_staging_reduce_from(r2_staging_t *staging, r2_staging_place_t *place)
{
    const r2_mem_rates_t *measured = &place->rates;
    r2_device_rates_t rates;

    if (R2_STAGING_AUTO != place->reduce_bytes || !atomic_load(&measured->is_done)) {
        return place->reduce_bytes;
    }
    rates = measured->rates;
    rates.host_reduce_bytes_per_s =
        r2_min(rates.host_reduce_bytes_per_s, staging->host_reduce_bytes_per_s);
    place->reduce_bytes = r2_device_reduces_from(measured->is_known ? &rates : NULL,
                                                 measured->measured_ns, measured->limit_ns);
    if (NULL != staging->counters) {
        staging->counters->gpu_measure_us += measured->spent_ns / R2_NS_PER_US;
    }
    return place->reduce_bytes;
}

enum {
    R2_STAGING_ODD_ROWS = 3,      /* so many rows and less are odd pieces */
    R2_STAGING_ODD_BYTES = 16384, /* longer pieces are the copy engine's */
    R2_STAGING_ODD_LEAST = 4      /* fewer pieces are copies: no launch is quicker */
};

const r2_kernels_t *r2_staging_packer(r2_staging_place_t *place, const void *staged)
{
    r2_mem_reach_t reach = {0, 0};

    return r2_kernels_ask(&place->kernels, place->loads.mem, &place->loads.at,
                          (r2_kernel_t) R2_KERNEL_COPY) &&
                   r2_mem_queue_reaches(&place->loads, staged, 1, &reach)
               ? &place->kernels
               : NULL;
}

static r2_status_t r2_staging_copy_odd(const r2_staging_copy_t *copy)
{
    r2_status_t status = R2_OK;

    if (copy->odd_count >= R2_STAGING_ODD_LEAST) {
        return r2_kernels_copy(copy->kernels, copy->queue, &copy->odd, copy->odd_count);
    }
    for (uint32_t i = 0; R2_OK == status && i < copy->odd_count; ++i) {
        const r2_kernel_copy_t *piece = &copy->odd.piece[i];

        status = r2_mem_queue_copy(copy->queue, (void *) (uintptr_t) piece->to,
                                   (const void *) (uintptr_t) piece->from, piece->bytes);
    }
    return status;
}

static void r2_staging_end_odd(r2_staging_copy_t *copy)
{
    if (R2_OK == copy->status && copy->odd_count > 0) {
        copy->status = r2_staging_copy_odd(copy);
        copy->odd = (r2_kernel_copies_t){.piece = {{.bytes = 0}}};
    }
    copy->odd_count = 0;
}

static void r2_staging_add_odd(r2_staging_copy_t *copy, char *memory, char *packed)
{
    const uint64_t at = (uintptr_t) memory, staged = (uintptr_t) packed;

    copy->odd.piece[copy->odd_count++] =
        (r2_kernel_copy_t){.to = copy->is_store ? at : staged,
                           .from = copy->is_store ? staged : at,
                           .bytes = copy->rows.row_bytes};
    if (R2_KERNEL_COPIES == copy->odd_count) {
        r2_staging_end_odd(copy);
    }
}

/* Few rows that a kernel reaches: it copies them with other pieces. */
static bool r2_staging_is_odd(r2_staging_copy_t *copy)
{
    const r2_mem_rows_t *rows = &copy->rows;

    return NULL != copy->kernels && rows->rows <= R2_STAGING_ODD_ROWS &&
           rows->row_bytes <= R2_STAGING_ODD_BYTES &&
           r2_mem_queue_reaches(copy->queue, rows->memory,
                                (rows->rows - 1) * rows->pitch_bytes + rows->row_bytes,
                                &copy->reach);
}

static void r2_staging_end_rows(r2_staging_copy_t *copy)
{
    r2_mem_rows_t *rows = &copy->rows;

    if (R2_OK == copy->status && rows->rows > 0 && r2_staging_is_odd(copy)) {
        for (size_t row = 0; row < rows->rows; ++row) {
            r2_staging_add_odd(copy, rows->memory + row * rows->pitch_bytes,
                               rows->packed + row * rows->row_bytes);
        }
    } else if (R2_OK == copy->status && rows->rows > 0) {
        copy->status = r2_mem_queue_copy_rows(copy->queue, rows, copy->is_store);
    }
    rows->rows = 0;
}

r2_status_t r2_staging_end(r2_staging_copy_t *copy)
{
    r2_staging_end_rows(copy);
    r2_staging_end_odd(copy);
    return copy->status;
}

/* The second row tells how far they are apart; rows that go backwards are no rows of the driver.
 * @return false: a piece does not continue the rows. */
static bool r2_staging_is_row(r2_mem_rows_t *rows, const char *memory, const char *packed,
                              uint64_t bytes)
{
    const uintptr_t at = (uintptr_t) memory, first = (uintptr_t) rows->memory;

    if (0 == rows->rows || bytes != rows->row_bytes ||
        packed != rows->packed + rows->rows * rows->row_bytes) {
        return false;
    }
    if (1 == rows->rows && at > first && at - first >= bytes) {
        rows->pitch_bytes = at - first;
    }
    return rows->pitch_bytes > 0 && at == first + rows->rows * rows->pitch_bytes;
}

void r2_staging_piece(void *arg, void *memory, uint64_t offset, uint64_t bytes)
{
    r2_staging_copy_t *copy = arg;
    char *packed = copy->staged + offset;

    if (r2_staging_is_row(&copy->rows, memory, packed, bytes)) {
        ++copy->rows.rows;
        return;
    }
    r2_staging_end_rows(copy);
    if (R2_OK == copy->status) {
        copy->rows = (r2_mem_rows_t){
            .memory = memory, .packed = packed, .row_bytes = bytes, .rows = 1};
    }
}

/* What was reduced is in memory that is pinned as copies are. */
const r2_near_t *r2_stage_near(const r2_exec_t *exec, uint32_t op)
{
    const r2_buf_t buf = exec->schedule->ops[op].src.buf;
    const r2_staging_place_t *place = NULL;
    const r2_near_t *near;

    for (uint32_t i = 0; NULL != exec->stage && NULL == place && i < R2_TOUCH_SIDES; ++i) {
        if (R2_BUF_SCRATCH == buf || i == (R2_BUF_IN == buf ? 0u : 1u)) {
            place = exec->stage->sides[i].place;
        }
    }
    if (NULL == place || NULL == place->near) {
        return NULL;
    }
    near = exec->ops[op].by_nic ? &place->near->itself : &place->near->copies;
    return near->tells ? near : NULL;
}

/* ---- who waits ---- */

bool r2_stage_is_busy(const r2_staged_t *stage)
{
    return stage->waiting_count > 0 || stage->written_head < stage->written_tail ||
           0 != stage->stored || stage->ahead < stage->load_count || stage->fetches > 0 ||
           stage->landed > 0 || stage->reduce_head < stage->reduce_tail ||
           stage->arriving_count > 0;
}

void r2_stage_leave(r2_exec_t *exec)
{
    if (exec->in_copying) {
        exec->in_copying = false;
        r2_staging_count(&exec->engine->staging, -1);
        DL_DELETE2(exec->engine->staging.copying, exec, copying_prev, copying_next);
    }
}

void r2_stage_await(r2_exec_t *exec)
{
    if (!exec->in_copying && !exec->over) {
        exec->in_copying = true;
        r2_staging_count(&exec->engine->staging, 1);
        DL_APPEND2(exec->engine->staging.copying, exec, copying_prev, copying_next);
    }
}
