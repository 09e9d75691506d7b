/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * File descriptors: counting what is free, raising the limit, and UCX in a process that has too
 * few.
 */
#include "r2_config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/fds.h"
#include "r2/transport.h"

/* Children get a limit of their own: it cannot be taken back. */
static void in_child(int (*fn)(size_t), size_t arg)
{
    int how;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (0 == pid) {
        for (int fd = 3; fd < 1024; ++fd) { /* so that what is in use has the lowest numbers */
            close(fd);
        }
        _exit(fn(arg));
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    if (!WIFEXITED(how) || 0 != WEXITSTATUS(how)) {
        fail_msg("argument %zu: wait status %d", arg, how);
    }
}

static bool limit_to(size_t soft, size_t hard)
{
    struct rlimit limit = {soft, hard};

    return 0 == setrlimit(RLIMIT_NOFILE, &limit);
}

static size_t in_use(void)
{
    size_t count = 0;

    for (int fd = 0; fd < 1024; ++fd) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static int count_them(size_t unused)
{
    size_t used = in_use(), taken = 0;

    (void) unused;
    if (!limit_to(used + 5, used + 50) || 5 != r2_fds_free(100) || 3 != r2_fds_free(3) ||
        used + 5 != r2_fds_limit()) {
        return 1;
    }
    while (dup(0) >= 0) {
        ++taken;
    }
    if (5 != taken || 0 != r2_fds_free(100)) {
        return 2;
    }
    close((int) used + 2); /* in the middle */
    return 1 == r2_fds_free(100) ? 0 : 3;
}

static void free_ones_are_counted(void **state)
{
    (void) state;
    in_child(count_them, 0);
}

static int raise_it(size_t unused)
{
    size_t used = in_use();

    (void) unused;
    if (!limit_to(used + 5, used + 50) || 0 != r2_fds_raise(5) || used + 5 != r2_fds_limit()) {
        return 1;
    }
    if (7 != r2_fds_raise(12) || used + 12 != r2_fds_limit() || 12 != r2_fds_free(12)) {
        return 2;
    }
    /* not beyond the hard limit, and never down */
    return 38 == r2_fds_raise(1000) && used + 50 == r2_fds_limit() && 0 == r2_fds_raise(1) ? 0 : 3;
}

static void limit_is_raised_to_the_need(void **state)
{
    (void) state;
    in_child(raise_it, 0);
}

static void received(void *arg, const void *header, size_t header_bytes, const void *data,
                     size_t data_bytes)
{
    (void) arg;
    (void) header;
    (void) header_bytes;
    (void) data;
    (void) data_bytes;
}

static void failed(void *arg, void *ep_arg, r2_status_t status)
{
    (void) arg;
    (void) ep_arg;
    (void) status;
}

static r2_status_t join(r2_tp_t *tp, r2_tp_ep_t *from, r2_tp_ep_t *to)
{
    char address[R2_TP_ADDRESS_MAX];
    size_t bytes;
    r2_status_t status = tp->ops->ep_address(to, address, &bytes);

    return R2_OK == status ? tp->ops->ep_connect(from, address, bytes) : status;
}

/* Opens both ends of a lane as far as that goes, with no more descriptors than `room` beyond those
 * of the instance. */
static int open_with(size_t room)
{
    const r2_tp_device_config_t config = {.name = "lo", .segment_bytes = 16384};
    const r2_tp_callbacks_t callbacks = {.received = received, .failed = failed};
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    size_t used;
    r2_status_t status;
    r2_tp_ep_t *ends[2];
    r2_tp_t tp;
    bool promised;

    if (R2_OK != r2_tp_create(&tp)) {
        return 1;
    }
    used = in_use();
    if (!limit_to(used + room, used + room)) {
        return 2;
    }
    promised = tp.ops->has_room(tp.instance, 1, 1, 2);
    status = tp.ops->device_open(tp.instance, &config, &device);
    if (R2_OK != status) {
        r2_tp_destroy(&tp);
        return R2_ERR_NO_DESCRIPTORS == status && !promised ? 0 : 3;
    }
    status = tp.ops->worker_create(device, &callbacks, NULL, &worker);
    if (R2_OK != status) {
        tp.ops->device_close(device);
        r2_tp_destroy(&tp);
        return R2_ERR_NO_DESCRIPTORS == status && !promised ? 0 : 4;
    }
    if (R2_OK != tp.ops->ep_open(worker, NULL, &ends[0]) ||
        R2_OK != tp.ops->ep_open(worker, NULL, &ends[1])) {
        return 5;
    }
    status = join(&tp, ends[0], ends[1]);
    if (R2_OK == status) {
        status = join(&tp, ends[1], ends[0]);
    }
    for (int i = 0; i < 200; ++i) {
        tp.ops->worker_progress(worker);
        usleep(100);
    }
    while (dup(0) >= 0) { /* the application takes what is left */
    }
    for (int i = 0; i < 200; ++i) {
        tp.ops->worker_progress(worker);
    }
    tp.ops->worker_destroy(worker);
    tp.ops->device_close(device);
    r2_tp_destroy(&tp);
    return R2_OK == status || (R2_ERR_NO_DESCRIPTORS == status && !promised) ? 0 : 6;
}

/* UCX never aborts, whatever there is, and what was promised can be had. */
static void ucx_survives_any_limit(void **state)
{
    (void) state;
    for (size_t room = 0; room < 24; ++room) {
        in_child(open_with, room);
    }
}

enum { LANES = 8 };

static size_t most_in_use(r2_tp_t *tp, r2_tp_worker_t *const workers[2])
{
    size_t most = 0;

    for (int i = 0; i < 300; ++i) {
        tp->ops->worker_progress(workers[i % 2]);
        most = r2_max(most, in_use());
        usleep(20);
    }
    return most;
}

/* What a process reckons with is what there is: a thread, workers, both ends of some lanes. */
static int take_lanes(size_t local)
{
    const r2_tp_device_config_t config = {.name = 0 == local ? "lo" : NULL, .segment_bytes = 16384};
    const r2_tp_callbacks_t callbacks = {.received = received, .failed = failed};
    r2_tp_worker_t *workers[2];
    r2_tp_ep_t *ends[2];
    r2_tp_device_t *device;
    size_t used[4], most;
    r2_tp_t tp;

    if (R2_OK != r2_tp_create(&tp)) {
        return 1;
    }
    used[0] = in_use();
    if (R2_OK != tp.ops->device_open(tp.instance, &config, &device)) {
        return 2;
    }
    for (int i = 0; i < 2; ++i) {
        if (R2_OK != tp.ops->worker_create(device, &callbacks, NULL, &workers[i])) {
            return 3;
        }
        used[1 + i] = in_use();
    }
    for (int i = 0; i < LANES; ++i) {
        if (R2_OK != tp.ops->ep_open(workers[0], NULL, &ends[0]) ||
            R2_OK != tp.ops->ep_open(workers[1], NULL, &ends[1]) ||
            R2_OK != join(&tp, ends[0], ends[1]) || R2_OK != join(&tp, ends[1], ends[0])) {
            return 4;
        }
    }
    most = most_in_use(&tp, workers);
    used[3] = in_use();
    printf("%s: thread %zu, worker %zu; of one end of a lane %.2f, %.2f at the most\n",
           0 == local ? "tcp" : "shared memory", 2 * used[1] - used[0] - used[2], used[2] - used[1],
           (double) (used[3] - used[2]) / (2 * LANES), (double) (most - used[2]) / (2 * LANES));
    fflush(stdout);
    tp.ops->worker_destroy(workers[0]);
    tp.ops->worker_destroy(workers[1]);
    tp.ops->device_close(device);
    r2_tp_destroy(&tp);
    return 2 * used[1] - used[0] - used[2] <= R2_FDS_THREAD &&
                   used[2] - used[1] <= (0 == local ? R2_FDS_WORKER : R2_FDS_WORKER_LOCAL) &&
                   most - used[2] <= R2_FDS_EP * 2 * LANES
               ? 0
               : 5;
}

static void lanes_take_what_is_reckoned_with(void **state)
{
    (void) state;
    in_child(take_lanes, 0);
    in_child(take_lanes, 1);
}

/** Hosts without RDMA take nothing for it. */
static void ports_take_three_and_one(void **state)
{
    (void) state;
    assert_int_equal(r2_fds_of_ports(0), 0);
    assert_int_equal(r2_fds_of_ports(8), 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_take_three_and_one),
        cmocka_unit_test(free_ones_are_counted),
        cmocka_unit_test(limit_is_raised_to_the_need),
        cmocka_unit_test(ucx_survives_any_limit),
        cmocka_unit_test(lanes_take_what_is_reckoned_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
