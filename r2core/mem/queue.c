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
