/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The engine over links that the test plays.
 */
#ifndef R2_TESTS_EXEC_LINKS_H
#define R2_TESTS_EXEC_LINKS_H

/* Their functions are reached, the links below take the place of the real ones. */
#include "exec/device.c"
#include "exec/engine.c"
#include "exec/exec.c"
#include "exec/fuse.c"
#include "exec/landing.c"
#include "exec/landing_step.c"
#include "exec/loan.c"
#include "exec/loan_host.c"
#include "exec/loan_read.c"
#include "exec/loan_step.c"
#include "exec/nic.c"
#include "exec/ops.c"
#include "exec/pins.c"
#include "exec/place.c"
#include "exec/program.c"
#include "exec/stage.c"
#include "exec/staging.c"
#include "exec/stream.c"
#include "exec/touch.c"
#include "mem/cuda_driver.c"
#include "mem/functions.c"
#include "mem/kernels.c"
#include "mem/mem.c"
#include "mem/queue.c"
#include "mem/rates.c"
#include "mem/share.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/pool.h"
#include "base/util.h"

#define CALLS_MAX 256

/** A send or a receive that the engine started. */
typedef struct call {
    bool send, over;
    uint32_t tag;
    const char *data;
    uint64_t bytes;
    r2_link_done_fn_t done;
    r2_link_sink_fn_t sink;
    void *arg;
    bool filling;   /* a send of which nothing was there when it was started */
    uint64_t ready; /* of one: what is */
    r2_link_arrived_fn_t arrived;
    r2_tp_memory_t gpu;
    void *gpu_data; /* a receive's */
    r2_link_fetch_fn_t fetch;
    const r2_near_t *near;
    const char *fetched; /* NULL: not told */
} call_t;

static r2_net_t links_net;
static call_t calls[CALLS_MAX];
static uint32_t call_count;
static r2_status_t next_status;  /* of the next call; R2_IN_PROGRESS: by complete() */
static uint32_t refused_link;    /* rank whose link cannot be had; UINT32_MAX: none */
static bool may_keep;            /* all sends were handed to the transport */
static uint32_t asked;           /* messages that acknowledgements were asked for */
static uint32_t kept, keep_most; /* copies that were made; for more there is no memory */
static bool was_brief;           /* of the newest send */
static bool beside;              /* all peers are on this host */
static bool lends;               /* and read memory of each other */
static uint32_t linked_rank;     /* whose link was asked for last */
static uint32_t far_rank;        /* of a process of another host; UINT32_MAX: none */
static uint64_t unreadable_from; /* of it; UINT64_MAX: all of it can be read */
static uint64_t unreadable_to;   /* and no more */
static uint32_t words_left;      /* so many words of it can be read */
static bool is_busy;             /* much is under way to all peers */
static bool reads_gpus;          /* NICs do */
static bool puts_to_gpus;        /* and peers' */

r2_status_t r2_net_link(r2_net_t *net, uint32_t rank, struct r2_link **link_p)
{
    (void) net;
    *link_p = NULL;
    linked_rank = rank;
    return rank == refused_link ? R2_ERR_NOT_FOUND : R2_OK;
}

static inline r2_status_t note(bool send, uint32_t tag, const void *data, uint64_t bytes,
                               r2_link_done_fn_t done, r2_link_sink_fn_t sink, void *arg)
{
    r2_status_t status = next_status;

    assert_true(call_count < CALLS_MAX);
    calls[call_count++] = (call_t){.send = send,
                                   .over = R2_IN_PROGRESS != status,
                                   .tag = tag,
                                   .data = data,
                                   .bytes = bytes,
                                   .done = done,
                                   .sink = sink,
                                   .arg = arg};
    next_status = R2_IN_PROGRESS;
    return status;
}

bool r2_link_is_beside(const r2_link_t *link)
{
    (void) link;
    return beside;
}

bool r2_link_lends(const r2_link_t *link)
{
    (void) link;
    return lends && linked_rank != far_rank;
}

bool r2_link_fetch(const r2_link_t *link, uint64_t pid, uint64_t address, void *to, uint64_t bytes)
{
    (void) link;
    assert_int_equal(pid, getpid());
    if (address >= unreadable_from && address < unreadable_to) {
        return false;
    }
    if (sizeof(uint64_t) == bytes && 0 == words_left--) {
        return false;
    }
    memcpy(to, (const void *) (uintptr_t) address, bytes);
    return true;
}

bool r2_link_is_quiet(const r2_link_t *link, uint64_t bytes)
{
    (void) link, (void) bytes;
    return !is_busy;
}

bool r2_link_reads_gpus(const r2_link_t *link)
{
    (void) link;
    return reads_gpus;
}

bool r2_link_puts_to_gpus(const r2_link_t *link)
{
    (void) link;
    return puts_to_gpus;
}

void r2_link_fetched(r2_tx_message_t *message, const void *data)
{
    call_t *call = (call_t *) (void *) message;

    assert_true(!call->over && NULL == call->fetched);
    call->fetched = data;
}

/* Of a receive that is there. */
void r2_link_unpost(r2_link_t *link, const r2_tag_t *tag)
{
    (void) link;
    for (uint32_t i = 0; i < call_count; ++i) {
        if (!calls[i].send && tag->id == calls[i].tag) {
            calls[i].over = true;
        }
    }
}

r2_status_t r2_link_send(r2_link_t *link, const r2_link_send_t *args)
{
    (void) link;
    r2_status_t status;

    was_brief = args->brief;
    *args->message_p = (r2_tx_message_t *) (void *) &calls[call_count];
    status = note(true, args->tag.id, args->data, args->bytes, args->done, NULL, args->arg);
    calls[call_count - 1].filling = args->filling;
    calls[call_count - 1].near = args->near;
    if (NULL != args->gpu) {
        calls[call_count - 1].gpu = *args->gpu;
        calls[call_count - 1].fetch = args->fetch;
    }
    return status;
}

r2_status_t r2_link_recv(r2_link_t *link, const r2_link_recv_t *args)
{
    (void) link;
    const r2_status_t status =
        note(false, args->tag.id, args->data, args->bytes, args->done, args->sink, args->arg);

    calls[call_count - 1].arrived = args->arrived;
    if (NULL != args->gpu) {
        calls[call_count - 1].gpu = *args->gpu;
        calls[call_count - 1].gpu_data = args->gpu_data;
    }
    return status;
}

void r2_link_ready(r2_tx_message_t *message, uint64_t bytes)
{
    call_t *call = (call_t *) (void *) message;

    assert_true(call->filling && call->ready <= bytes);
    call->ready = bytes;
}

void r2_link_ask(r2_tx_message_t *message)
{
    assert_false(((const call_t *) (const void *) message)->over);
    ++asked;
}

bool r2_link_may_keep(const r2_tx_message_t *message)
{
    return may_keep && !((const call_t *) (const void *) message)->over;
}

bool r2_link_keep(r2_tx_message_t *message)
{
    if (kept == keep_most) {
        return false;
    }
    ++kept;
    ((call_t *) (void *) message)->over = true;
    return true;
}

static inline void complete(uint32_t call, r2_status_t status)
{
    assert_true(call < call_count && !calls[call].over);
    calls[call].over = true;
    calls[call].done(calls[call].arg, status);
}

static r2_engine_t engine;
static uint32_t reduced; /* elements */
static const uint32_t ranks[] = {0, 1, 2, 3};

static inline void add_bytes(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        ((uint8_t *) inout)[i] = (uint8_t) (((uint8_t *) inout)[i] + ((const uint8_t *) in)[i]);
    }
    reduced += (uint32_t) count;
}

static inline int set_up(void **state)
{
    (void) state;
    r2_engine_init(&engine, &links_net, 1 << 20);
    call_count = reduced = kept = asked = 0;
    keep_most = CALLS_MAX;
    may_keep = beside = lends = false;
    unreadable_from = unreadable_to = UINT64_MAX;
    far_rank = words_left = UINT32_MAX;
    next_status = R2_IN_PROGRESS;
    refused_link = UINT32_MAX;
    return 0;
}

static inline int tear_down(void **state)
{
    (void) state;
    r2_engine_fini(&engine);
    return 0;
}

static inline r2_exec_args_t arguments(const void *in, void *out)
{
    return (r2_exec_args_t){.in = in,
                            .out = out,
                            .reduce = add_bytes,
                            .element_bytes = 1,
                            .ranks = ranks,
                            .tag.comm_key = 1,
                            .pack_bytes = 100};
}

static inline void prepare(r2_exec_t *exec, r2_schedule_t *schedule, const r2_exec_args_t *args)
{
    r2_program_t *program;

    assert_int_equal(schedule->status, R2_OK);
    assert_int_equal(r2_program_create(schedule, &program), R2_OK);
    r2_schedule_fini(schedule);
    assert_int_equal(r2_exec_init(exec, &engine, args, program), R2_OK);
    r2_exec_start(exec);
}

static inline void start(r2_exec_t *exec, r2_schedule_t *schedule, const r2_exec_args_t *args)
{
    prepare(exec, schedule, args);
    r2_engine_run(&engine, true);
}

static inline void add_sends(r2_schedule_t *schedule, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; ++i) {
        r2_schedule_add(schedule,
                        &(r2_op_t){.kind = R2_OP_SEND,
                                   .peer = 1,
                                   .tag = i,
                                   .bytes = bytes,
                                   .src = {R2_BUF_IN, i * bytes}},
                        NULL, 0);
    }
}

#endif
