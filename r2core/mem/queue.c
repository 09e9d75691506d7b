/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A stream of r2's own, and its tickets.
 */
#include "r2_config.h"

#include "mem/queue.h"

#include <stdint.h>
#include <string.h>

#include "base/util.h"

static r2_status_t r2_mem_queue_event(r2_mem_t *mem, r2_cu_event_t *event_p)
{
    return r2_mem_check(mem, mem->driver.event_create(event_p, R2_CU_EVENT_DISABLE_TIMING),
                        "cuEventCreate");
}

/* In the memory's context. */
static r2_status_t r2_mem_queue_create(r2_mem_queue_t *queue)
{
    r2_mem_t *mem = queue->mem;
    r2_status_t status =
        r2_mem_check(mem, mem->driver.stream_create(&queue->stream, R2_CU_STREAM_NON_BLOCKING),
                     "cuStreamCreate");

    if (R2_OK == status) {
        status = r2_mem_queue_event(mem, &queue->application);
    }
    for (uint32_t i = 0; R2_OK == status && i < R2_MEM_TICKETS; ++i) {
        status = r2_mem_queue_event(mem, &queue->events[i]);
    }
    return status;
}

/* In the memory's context; what could not be created is NULL. */
static void r2_mem_queue_destroy(r2_mem_queue_t *queue)
{
    const r2_cuda_driver_t *driver = &queue->mem->driver;

    for (uint32_t i = 0; i < R2_MEM_TICKETS && NULL != queue->events[i]; ++i) {
        (void) driver->event_destroy(queue->events[i]);
    }
    if (NULL != queue->application) {
        (void) driver->event_destroy(queue->application);
    }
    if (NULL != queue->stream) {
        (void) driver->stream_destroy(queue->stream);
    }
}

r2_status_t r2_mem_queue_init(r2_mem_queue_t *queue, r2_mem_t *mem, const r2_mem_at_t *at)
{
    r2_status_t status;

    memset(queue, 0, sizeof(*queue));
    queue->mem = mem;
    queue->at = *at;
    status = r2_mem_enter(mem, at);
    if (R2_OK != status) {
        return status;
    }
    status = r2_mem_queue_create(queue);
    if (R2_OK != status) {
        r2_mem_queue_destroy(queue);
        queue->stream = NULL;
    }
    r2_mem_leave(mem);
    return status;
}

void r2_mem_queue_fini(r2_mem_queue_t *queue)
{
    (void) r2_mem_queue_drain(queue);
    if (R2_OK == r2_mem_enter(queue->mem, &queue->at)) {
        r2_mem_queue_destroy(queue);
        r2_mem_leave(queue->mem);
    }
}

r2_status_t r2_mem_queue_follow(r2_mem_queue_t *queue)
{
    r2_mem_t *mem = queue->mem;
    r2_status_t status = r2_mem_enter(mem, &queue->at);

    if (R2_OK != status) {
        return status;
    }
    status = r2_mem_check(mem, mem->driver.event_record(queue->application, NULL), "cuEventRecord");
    if (R2_OK == status) {
        status = r2_mem_check(mem, mem->driver.stream_wait(queue->stream, queue->application, 0),
                              "cuStreamWaitEvent");
    }
    r2_mem_leave(mem);
    return status;
}

r2_status_t r2_mem_queue_copy(r2_mem_queue_t *queue, void *to, const void *from, size_t bytes)
{
    r2_mem_t *mem = queue->mem;
    r2_status_t status = r2_mem_enter(mem, &queue->at);

    if (R2_OK != status) {
        return status;
    }
    status =
        r2_mem_check(mem, mem->driver.copy((uintptr_t) to, (uintptr_t) from, bytes, queue->stream),
                     "cuMemcpyAsync");
    r2_mem_leave(mem);
    return status;
}

/* Drivers take no longer pitch: their attribute MAX_PITCH. */
#define R2_MEM_PITCH_MAX ((size_t) INT32_MAX)

static bool r2_mem_is_within(const r2_mem_reach_t *reach, uintptr_t first, size_t bytes)
{
    return first >= reach->start && reach->bytes >= bytes &&
           first - reach->start <= reach->bytes - bytes;
}

/* The driver's memory around an address: none, if it does not know it. */
static r2_mem_reach_t r2_mem_around(const r2_mem_t *mem, uintptr_t at)
{
    r2_cu_attribute_t which[] = {R2_CU_ATTRIBUTE_RANGE_START, R2_CU_ATTRIBUTE_RANGE_BYTES};
    r2_cu_at_t start = 0;
    size_t bytes = 0;
    void *data[] = {&start, &bytes};

    if (R2_CU_OK != mem->driver.pointer_attributes(r2_array_count(which), which, data, at)) {
        bytes = 0;
    }
    return (r2_mem_reach_t){(uintptr_t) start, bytes};
}

/* Rows may be of several allocations, even of a device's memory and the host's: then they only
 * happen to be as far apart, and are no memory that a copy in two dimensions reaches. */
static bool r2_mem_rows_are_together(const r2_mem_t *mem, const r2_mem_rows_t *rows)
{
    const size_t span = (rows->rows - 1) * rows->pitch_bytes + rows->row_bytes;
    r2_mem_reach_t around;

    if (rows->pitch_bytes > R2_MEM_PITCH_MAX) {
        return false;
    }
    around = r2_mem_around(mem, (uintptr_t) rows->memory);
    return r2_mem_is_within(&around, (uintptr_t) rows->memory, span);
}

bool r2_mem_queue_reaches(const r2_mem_queue_t *queue, const void *memory, size_t bytes,
                          r2_mem_reach_t *reach_p)
{
    const uintptr_t first = (uintptr_t) memory;
    r2_mem_at_t at;

    if (r2_mem_is_within(reach_p, first, bytes)) {
        return true;
    }
    if (R2_OK != r2_mem_look(queue->mem, memory, &at) || R2_MEM_HOST == at.kind ||
        (R2_MEM_PINNED != at.kind && at.device != queue->at.device)) {
        return false;
    }
    *reach_p = r2_mem_around(queue->mem, first);
    return r2_mem_is_within(reach_p, first, bytes);
}

static r2_cu_copy2d_t r2_mem_rows_copy(const r2_mem_rows_t *rows, bool is_store)
{
    const uintptr_t memory = (uintptr_t) rows->memory, packed = (uintptr_t) rows->packed;

    return (r2_cu_copy2d_t){.from_type = R2_CU_TYPE_UNIFIED,
                            .from = is_store ? packed : memory,
                            .from_pitch_bytes = is_store ? rows->row_bytes : rows->pitch_bytes,
                            .to_type = R2_CU_TYPE_UNIFIED,
                            .to = is_store ? memory : packed,
                            .to_pitch_bytes = is_store ? rows->pitch_bytes : rows->row_bytes,
                            .row_bytes = rows->row_bytes,
                            .rows = rows->rows};
}

r2_status_t r2_mem_queue_copy_rows(r2_mem_queue_t *queue, const r2_mem_rows_t *rows, bool is_store)
{
    r2_mem_t *mem = queue->mem;
    r2_status_t status = R2_OK;

    if (rows->rows > 1 && r2_mem_rows_are_together(mem, rows)) {
        const r2_cu_copy2d_t what = r2_mem_rows_copy(rows, is_store);

        status = r2_mem_enter(mem, &queue->at);
        if (R2_OK == status) {
            status =
                r2_mem_check(mem, mem->driver.copy_rows(&what, queue->stream), "cuMemcpy2DAsync");
            r2_mem_leave(mem);
        }
        return status;
    }
    for (size_t row = 0; R2_OK == status && row < rows->rows; ++row) {
        char *memory = rows->memory + row * rows->pitch_bytes;
        char *packed = rows->packed + row * rows->row_bytes;

        status = r2_mem_queue_copy(queue, is_store ? memory : packed, is_store ? packed : memory,
                                   rows->row_bytes);
    }
    return status;
}

/* The event of the next ticket had another one before. */
r2_status_t r2_mem_queue_room(r2_mem_queue_t *queue)
{
    const uint64_t ticket = queue->newest + 1;

    return ticket > R2_MEM_TICKETS ? r2_mem_queue_test(queue, ticket - R2_MEM_TICKETS) : R2_OK;
}

r2_status_t r2_mem_queue_mark(r2_mem_queue_t *queue, uint64_t *ticket_p)
{
    r2_mem_t *mem = queue->mem;
    uint64_t ticket = queue->newest + 1;
    r2_status_t status = r2_mem_queue_room(queue);

    if (R2_OK != status) {
        return R2_IN_PROGRESS == status ? R2_ERR_AGAIN : status;
    }
    status = r2_mem_enter(mem, &queue->at);
    if (R2_OK != status) {
        return status;
    }
    status = r2_mem_check(
        mem, mem->driver.event_record(queue->events[ticket % R2_MEM_TICKETS], queue->stream),
        "cuEventRecord");
    r2_mem_leave(mem);
    if (R2_OK == status) {
        queue->newest = ticket;
        *ticket_p = ticket;
    }
    return status;
}

/* Copies of one stream end in order: a ticket that is done stands for all before it. */
r2_status_t r2_mem_queue_test(r2_mem_queue_t *queue, uint64_t ticket)
{
    r2_status_t status;

    if (ticket <= queue->done) {
        return R2_OK;
    }
    status = r2_mem_check(queue->mem,
                          queue->mem->driver.event_query(queue->events[ticket % R2_MEM_TICKETS]),
                          "cuEventQuery");
    if (R2_OK == status) {
        queue->done = ticket;
    }
    return status;
}

r2_status_t r2_mem_queue_drain(r2_mem_queue_t *queue)
{
    r2_mem_t *mem = queue->mem;
    r2_status_t status = r2_mem_enter(mem, &queue->at);

    if (R2_OK != status) {
        return status;
    }
    status = r2_mem_check(mem, mem->driver.stream_sync(queue->stream), "cuStreamSynchronize");
    r2_mem_leave(mem);
    if (R2_OK == status) {
        queue->done = queue->newest;
    }
    return status;
}
