/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Copies to and from memory of the CUDA driver: a stream of r2's own, and tickets that tell how far
 * it is. Nothing blocks but r2_mem_queue_drain() and r2_mem_queue_fini(), and nothing is allocated
 * after r2_mem_queue_init().
 *
 * One thread at a time (the engine lock). The application's current context stays.
 */
#ifndef R2_MEM_QUEUE_H
#define R2_MEM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/mem.h"

enum { R2_MEM_TICKETS = 64 }; /* not tested yet, of one queue */

typedef struct r2_mem_queue {
    r2_mem_t *mem;  /* borrowed: outlives the queue */
    r2_mem_at_t at; /* its memory: whose context and device the stream has */
    r2_cu_stream_t stream;
    r2_cu_event_t events[R2_MEM_TICKETS]; /* of ticket N: N modulo their number */
    r2_cu_event_t application;            /* its work, when a queue begins to follow it */
    uint64_t newest, done;                /* tickets */
} r2_mem_queue_t;

/** @param at  memory that is_drivers @return R2_OK; R2_ERR_NO_MEMORY, R2_ERR_GPU, and no queue: its
 * stream is NULL. */
r2_status_t r2_mem_queue_init(r2_mem_queue_t *queue, r2_mem_t *mem, const r2_mem_at_t *at);

/** Waits for what is under way. */
void r2_mem_queue_fini(r2_mem_queue_t *queue);

/** What is copied from now on comes after all that the application has started in the context's
 * default stream and in streams that wait for it. Streams of the kind CU_STREAM_NON_BLOCKING do
 * not: there the application waits itself, as MPI programs do. */
r2_status_t r2_mem_queue_follow(r2_mem_queue_t *queue);

/** Starts a copy; what it reads and writes belongs to the driver until a ticket of later is done.
 * At least one side is the queue's memory, the other any memory that the driver knows.
 * @return R2_OK; R2_ERR_GPU. */
r2_status_t r2_mem_queue_copy(r2_mem_queue_t *queue, void *to, const void *from, size_t bytes);

/** Rows of memory on one side, packed memory on the other. */
typedef struct r2_mem_rows {
    char *memory; /* the first row */
    char *packed;
    size_t row_bytes, rows;
    size_t pitch_bytes; /* in memory, from row to row: not less than row_bytes */
} r2_mem_rows_t;

/** As r2_mem_queue_copy(), for rows: by one copy where the driver says that all of them are in one
 * piece of its memory, else one by one. @param is_store to memory */
r2_status_t r2_mem_queue_copy_rows(r2_mem_queue_t *queue, const r2_mem_rows_t *rows, bool is_store);

/** Memory that kernels of a queue reach, found by a query; zeros: none. */
typedef struct r2_mem_reach {
    uintptr_t start;
    size_t bytes;
} r2_mem_reach_t;

/** Does a kernel in this queue reach all of a piece of memory? @param reach_p what was found last,
 * and is then what holds the piece: pieces of one memory take one query */
bool r2_mem_queue_reaches(const r2_mem_queue_t *queue, const void *memory, size_t bytes,
                          r2_mem_reach_t *reach_p);

/** @return R2_OK: r2_mem_queue_mark() will have a ticket; R2_IN_PROGRESS: older ones are not done;
 * R2_ERR_GPU. */
r2_status_t r2_mem_queue_room(r2_mem_queue_t *queue);

/** A ticket for all copies so far. @return R2_OK; R2_ERR_AGAIN: test older ones first;
 * R2_ERR_GPU. */
r2_status_t r2_mem_queue_mark(r2_mem_queue_t *queue, uint64_t *ticket_p);

/** @return R2_OK: these copies have ended; R2_IN_PROGRESS; R2_ERR_GPU: what they wrote is
 * unknown. */
r2_status_t r2_mem_queue_test(r2_mem_queue_t *queue, uint64_t ticket);

/** Waits until all copies have ended, well or not: then their memory is nobody's but the owner's.
 * @return R2_OK; R2_ERR_GPU. */
r2_status_t r2_mem_queue_drain(r2_mem_queue_t *queue);

#endif
