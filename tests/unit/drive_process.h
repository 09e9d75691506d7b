/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One process with its real service thread, in real time, and doubles around it. For one source
 * file: all of it is static.
 */
#ifndef R2_TESTS_DRIVE_PROCESS_H
#define R2_TESTS_DRIVE_PROCESS_H

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "ctx/state.h"
#include "doubles/loop.h"
#include "doubles/nic_watch_sim.h"
#include "r2/p2p.h"
#include "thread_net.h"

#define RAILS 2

static void nap_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/** A hello driver whose only call ends by a timeout. */
typedef struct calls {
    int fd;
    const r2_ctx_t *ctx;          /* borrowed */
    _Atomic uint64_t seen_ns;     /* what the net took for now when it polled last */
    _Atomic uint64_t deadline_ns; /* of the call; R2_NEVER_NS: none */
    _Atomic unsigned polls, ended, listens;
} calls_t;

static void calls_bind(void *hello, const r2_hello_upcalls_t *upcalls)
{
    (void) hello;
    (void) upcalls;
}

static void calls_key(void *hello, const uint8_t *key)
{
    (void) hello;
    (void) key;
}

static r2_status_t calls_listen(void *hello, uint32_t rail_idx, const r2_nic_t *nic,
                                void *address_p, size_t *bytes_p)
{
    (void) rail_idx;
    (void) nic;
    atomic_fetch_add(&((calls_t *) hello)->listens, 1);
    memset(address_p, 0, 4);
    *bytes_p = 4;
    return R2_OK;
}

static int calls_fd(void *hello)
{
    return ((const calls_t *) hello)->fd;
}

static void calls_poll(void *hello)
{
    calls_t *calls = hello;
    uint64_t drained;

    (void) !read(calls->fd, &drained, sizeof(drained));
    atomic_store(&calls->seen_ns, calls->ctx->core.net.now_ns);
    atomic_fetch_add(&calls->polls, 1);
    if (r2_now_ns(r2_clock_system()) >= atomic_load(&calls->deadline_ns)) {
        atomic_store(&calls->deadline_ns, R2_NEVER_NS);
        atomic_fetch_add(&calls->ended, 1);
    }
}

static uint64_t calls_deadline_ns(void *hello)
{
    return atomic_load(&((const calls_t *) hello)->deadline_ns);
}

static const r2_hello_ops_t calls_ops = {
    .name = "calls",
    .bind = calls_bind,
    .key = calls_key,
    .listen = calls_listen,
    .fd = calls_fd,
    .poll = calls_poll,
    .deadline_ns = calls_deadline_ns,
};

static _Atomic int rails_are_busy; /* there is always something more to read */

static r2_status_t busy_arm(r2_tp_worker_t *worker)
{
    (void) worker;
    return 0 != atomic_load(&rails_are_busy) ? R2_ERR_AGAIN : R2_OK;
}

typedef struct process {
    calls_t calls;
    r2_tp_ops_t tp_ops; /* of the transport, and busy_arm() */
    r2_p2p_t *p2p;      /* owned; NULL: it has no user */
    r2_nic_watch_t watch;
    thread_net_t *net;
    r2_oob_loop_t *oob;
    r2_params_t params;
    r2_ctx_t *ctx;
} process_t;

static void process_up(process_t *process)
{
    static const uint8_t key[R2_JOB_KEY_BYTES] = "drive";
    r2_ctx_config_t config = {.params = &process->params};
    r2_ctx_parts_t parts = {.clock = r2_clock_system(), .nic_count = RAILS, .host_id = 1};
    char text[256] = "";

    memset(process, 0, sizeof(*process));
    process->calls.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    process->calls.deadline_ns = R2_NEVER_NS;
    process->net = thread_net_create();
    process->oob = r2_oob_loop_create(1, key);
    r2_params_init(&process->params);
    process->params.verbose = 0;
    for (uint32_t i = 0; i < RAILS; ++i) {
        parts.nics[i] =
            (r2_nic_t){.name = "rail0", .ifindex = i + 1, .ipv4 = i + 1, .carrier = true};
        parts.nics[i].name[4] = (char) ('0' + i);
    }
    assert_int_equal(r2_nic_watch_sim_create(parts.nics, RAILS, true, &process->watch), R2_OK);
    parts.tp = thread_net_rank(process->net);
    process->tp_ops = *parts.tp.ops;
    process->tp_ops.worker_arm = busy_arm;
    parts.tp.ops = &process->tp_ops;
    parts.hello = (r2_hello_t){&calls_ops, &process->calls};
    parts.oob = r2_oob_loop_rank(process->oob, 0);
    parts.watch = process->watch;
    snprintf(parts.host_name, sizeof(parts.host_name), "h0");
    if (R2_OK != r2_ctx_assemble(&config, &parts, &process->ctx, text, sizeof(text))) {
        fail_msg("%s", text);
    }
    process->calls.ctx = process->ctx;
    assert_int_equal(r2_service_create(process->ctx, &process->ctx->service), R2_OK);
}

static void process_down(process_t *process)
{
    r2_service_destroy(process->ctx->service);
    if (NULL != process->p2p) {
        r2_p2p_unbind(process->p2p);
    }
    r2_ctx_dismantle(process->ctx);
    r2_nic_watch_sim_destroy(&process->watch);
    r2_oob_loop_destroy(process->oob);
    thread_net_destroy(process->net);
    close(process->calls.fd);
}

static void process_wake(process_t *process)
{
    const uint64_t one = 1;

    assert_int_equal(write(process->calls.fd, &one, sizeof(one)), sizeof(one));
}

static uint64_t process_count(process_t *process, const uint64_t *counter)
{
    uint64_t count;

    r2_core_enter(&process->ctx->core);
    count = *counter;
    r2_core_leave(&process->ctx->core);
    return count;
}

static uint64_t process_wakeups(process_t *process)
{
    return process_count(process, &process->ctx->core.counters.service_wakeups);
}

static uint64_t process_takeovers(process_t *process)
{
    return process_count(process, &process->ctx->core.counters.service_takeovers);
}

#endif
