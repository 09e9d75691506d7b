/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Streams: a thread each, which takes a seeded time before every operation, and makes copies in two
 * halves.
 */
#include "fakecuda/lib/fc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static __thread fc_stream_t *own_stream; /* of the thread */

uint64_t fc_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* ---- what a stream executes, without the lock */

static void sleep_until(uint64_t then_ns)
{
    struct timespec then = {(time_t) (then_ns / 1000000000u), (long) (then_ns % 1000000000u)};

    while (0 != clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL)) {
    }
}

static void pause_of(uint64_t place, uint64_t seq)
{
    if (0 != fc.delay_us) {
        sleep_until(fc_now_ns() + fc_hash(fc.seed, place, seq) % (1000 * fc.delay_us + 1));
    }
}

/* One copy at a time in each direction of a device. @return when it has to end; 0: at any time. */
static uint64_t book_engine(int device, int engine, size_t bytes)
{
    uint64_t *free_ns = &fc.engine_free_ns[device][engine], now = fc_now_ns();

    if (0 == fc.copy_mbytes_per_s) {
        return 0;
    }
    *free_ns = (*free_ns > now ? *free_ns : now) + bytes * 1000 / fc.copy_mbytes_per_s;
    return *free_ns;
}

/* Bytes [from, to) of each row. */
static void copy_rows(const fc_op_t *op, size_t from, size_t to)
{
    for (size_t row = 0; row < op->rows; ++row) {
        memmove(op->to + row * op->to_pitch + from, op->from + row * op->from_pitch + from,
                to - from);
    }
}

/* Half done is what sees who does not wait. */
static void copy(const fc_stream_t *stream, const fc_op_t *op, uint64_t end_ns)
{
    size_t half = 0 == fc.delay_us ? op->bytes : op->bytes / 2;

    copy_rows(op, 0, half);
    if (half < op->bytes) {
        pause_of((uint64_t) stream->place + FC_STREAMS, op->seq);
        copy_rows(op, half, op->bytes);
    }
    if (0 != end_ns) {
        sleep_until(end_ns);
    }
}

static void run_kernel(const fc_op_t *op)
{
    uint64_t end_ns = fc_now_ns() + 1000 * fc.launch_us;

    if (0 != fc.kernel_mbytes_per_s) {
        end_ns += op->bytes * 1000 / fc.kernel_mbytes_per_s;
    }
    op->kernel->run(&op->grid, op->params);
    if (0 != fc.launch_us || 0 != fc.kernel_mbytes_per_s) {
        sleep_until(end_ns);
    }
}

static void execute(const fc_stream_t *stream, const fc_op_t *op, uint64_t end_ns)
{
    switch (op->kind) {
    case FC_OP_COPY:
        copy(stream, op, end_ns);
        break;
    case FC_OP_FILL:
        for (size_t i = 0; i < op->bytes; i += op->width) {
            memcpy(op->to + i, &op->value, op->width);
        }
        break;
    case FC_OP_KERNEL:
        run_kernel(op);
        break;
    case FC_OP_HOST:
        fc_in_host_function = true;
        op->fn(op->fn_arg);
        fc_in_host_function = false;
        break;
    case FC_OP_NOTHING:
    case FC_OP_RECORD:
    case FC_OP_FREE:
        break;
    }
}

/* ---- its thread */

static void finish(fc_stream_t *stream, fc_op_t *op)
{
    fc_alloc_t *alloc;

    if (FC_OP_RECORD == op->kind && op->event->ticket == op->event_ticket) {
        op->event->time_ns = fc_now_ns();
    }
    if (FC_OP_FREE == op->kind && NULL != (alloc = fc_find(op->freed)) && !alloc->is_freed) {
        fc_release(alloc);
    }
    stream->head = op->next;
    if (NULL == stream->head) {
        stream->tail = &stream->head;
    }
    fc.done[stream->place] = op->seq;
    free(op->owned);
    free(op);
    pthread_cond_broadcast(&fc.changed);
}

/* An error of the device is seen by later calls; nothing is executed any more, host functions are
 * not either. */
static void run_one(fc_stream_t *stream, fc_op_t *op)
{
    CUresult rc = fc_fault("exec");
    bool is_copy = FC_OP_COPY == op->kind;
    uint64_t end_ns =
        is_copy ? book_engine(stream->ctx->device, op->engine, op->rows * op->bytes) : 0;

    if (CUDA_SUCCESS != rc && CUDA_SUCCESS == stream->ctx->sticky) {
        stream->ctx->sticky = rc;
    }
    rc = stream->ctx->sticky;
    if (FC_OP_HOST == op->kind) { /* it may touch what was before it */
        fc_host_knows(&op->after);
    }
    fc_unlock();
    pause_of((uint64_t) stream->place, op->seq);
    if (CUDA_SUCCESS == rc) {
        execute(stream, op, end_ns);
    }
    fc_lock();
    finish(stream, op);
}

static void *stream_main(void *arg)
{
    fc_stream_t *stream = arg;

    fc_lock();
    while (NULL != stream->head || !stream->is_destroyed) {
        if (NULL == stream->head || !fc_reached(&stream->head->after)) {
            pthread_cond_wait(&fc.changed, &fc.lock);
        } else {
            run_one(stream, stream->head);
        }
    }
    fc.last_seq[stream->place] = stream->newest;
    fc.streams[stream->place] = NULL; /* it is never freed: late uses are found */
    fc_unlock();
    return NULL;
}

/* Signals are the application's, except for what tells a wrong touch. */
static bool start_thread(fc_stream_t *stream)
{
    sigset_t all, old;
    pthread_t thread;
    bool is_there;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    is_there = 0 == pthread_create(&thread, NULL, stream_main, stream);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (is_there) {
        pthread_detach(thread);
    }
    return is_there;
}

fc_stream_t *fc_stream_new(fc_ctx_t *ctx, unsigned flags, bool is_null)
{
    fc_stream_t *stream = calloc(1, sizeof(*stream));
    int place = 0;

    while (place < FC_STREAMS && NULL != fc.streams[place]) {
        ++place;
    }
    if (NULL == stream || FC_STREAMS == place) {
        free(stream);
        return NULL;
    }
    stream->place = place;
    stream->ctx = ctx;
    stream->flags = flags;
    stream->is_null = is_null;
    stream->tail = &stream->head;
    stream->newest = fc.last_seq[place];
    stream->clock = fc.host;
    stream->clock.seq[place] = stream->newest;
    if (!start_thread(stream)) {
        free(stream);
        return NULL;
    }
    fc.streams[place] = stream;
    return stream;
}

void fc_stream_end(fc_stream_t *stream)
{
    stream->is_destroyed = true;
    pthread_cond_broadcast(&fc.changed);
}

/* ---- operations */

fc_op_t *fc_op_new(fc_op_kind_t kind, const char *name)
{
    fc_op_t *op = calloc(1, sizeof(*op));

    if (NULL == op) {
        abort();
    }
    op->kind = kind;
    op->name = name;
    return op;
}

static bool is_blocking(const fc_stream_t *stream)
{
    return 0 == (stream->flags & CU_STREAM_NON_BLOCKING);
}

/* The legacy default stream and blocking ones come after each other. */
static void join(fc_stream_t *stream)
{
    for (int i = 0; is_blocking(stream) && i < FC_STREAMS; ++i) {
        const fc_stream_t *other = fc.streams[i];
        if (NULL != other && other != stream && other->ctx == stream->ctx && is_blocking(other) &&
            (stream->is_null || other->is_null)) {
            fc_merge(&stream->clock, &other->clock);
        }
    }
}

void fc_join_blocking(fc_stream_t *stream)
{
    if (stream->is_null) {
        join(stream);
    }
}

void fc_enqueue(fc_stream_t *stream, fc_op_t *op, const fc_span_t *spans, int span_count)
{
    fc_guard();
    fc_merge(&stream->clock, &fc.host);
    join(stream);
    op->after = stream->clock;
    op->seq = ++stream->newest;
    stream->clock.seq[stream->place] = op->seq;
    for (int i = 0; i < span_count; ++i) {
        fc_note_span(&spans[i], stream->place, op);
    }
    *stream->tail = op;
    stream->tail = &op->next;
    pthread_cond_broadcast(&fc.changed);
}

/* ---- handles */

static fc_stream_t *stream_of_thread(fc_ctx_t *ctx)
{
    if (NULL == own_stream || own_stream->ctx != ctx) {
        own_stream = fc_stream_new(ctx, 0, false);
    }
    return own_stream;
}

fc_stream_t *fc_stream(CUstream handle, CUresult *rc_p)
{
    fc_ctx_t *ctx = fc_ctx();
    fc_stream_t *stream = NULL;

    if (NULL == handle || CU_STREAM_LEGACY == handle) {
        return ctx->null_stream;
    }
    if (CU_STREAM_PER_THREAD == handle) {
        return stream_of_thread(ctx);
    }
    for (int i = 0; i < FC_STREAMS; ++i) {
        stream = fc.streams[i] == handle ? fc.streams[i] : stream;
    }
    if (NULL == stream || stream->is_destroyed || stream->is_null) {
        *rc_p = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    if (stream->ctx != ctx) {
        fc_mistake(FC_wrong_context, "stream %d of a context on device %d is used in one on %d",
                   stream->place, stream->ctx->device, ctx->device);
        *rc_p = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    return stream;
}
