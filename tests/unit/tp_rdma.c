/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport over RDMA: what NICs do when they fail.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include "transport/put.h"

void nic_fault(const char *words)
{
    char command[128];

    snprintf(command, sizeof(command), "LD_PRELOAD= \"$SOFTVERBS\" fault soft0 %s", words);
    assert_int_equal(system(command), 0);
}

/** Sends both ways until both have got something. */
static void assert_works(side_t *a, side_t *b)
{
    packet_t packets[2];

    a->received = b->received = 0;
    assert_true(packet_send(&packets[0], a, 1, DATA_MAX, pattern + 1) >= 0);
    assert_true(packet_send(&packets[1], b, 2, DATA_MAX, pattern + 2) >= 0);
    assert_true(progress_until(a, b, &a->received, 1));
    assert_true(progress_until(a, b, &b->received, 1));
    while (!packets[0].done || !packets[1].done) {
        tp.ops->worker_progress(a->worker);
        tp.ops->worker_progress(b->worker);
    }
}

/**
 * A fault with packets of all sizes in flight: both ends are told, what was given to UCX comes back
 * with the end of the lane, and a new lane of the same workers works after the repair.
 */
static void fail_and_heal(const char *fault, const char *repair)
{
    enum { COUNT = 120 };
    packet_t *packets = calloc(COUNT, sizeof(*packets)), other;
    side_t a, b;
    uint32_t count = 0;

    assert_non_null(packets);
    pair_open(&a, &b);
    nic_fault(fault);
    for (; count < COUNT; ++count) {
        packet_send(&packets[count], &a, count, count % 3 * (DATA_MAX / 2), pattern + count);
    }
    assert_true(packet_send(&other, &b, 0, 8, pattern) >= 0);
    assert_true(progress_until(&a, &b, &a.failed, 1));
    assert_true(progress_until(&a, &b, &b.failed, 1));
    assert_int_equal(a.failed + b.failed, 2);
    assert_true(packet_send(&other, &a, 0, 8, pattern) < 0);
    tp.ops->ep_close(a.ep);
    tp.ops->ep_close(b.ep);
    for (uint32_t i = 0; i < count; ++i) {
        assert_true(packets[i].done);
    }
    free(packets);
    nic_fault(repair);
    side_connect(&a, &b);
    assert_works(&a, &b);
    pair_close(&a, &b);
}

void test_silent_drop(void **state)
{
    (void) state;
    fail_and_heal("drop 1", "heal");
}

void test_port_down(void **state)
{
    (void) state;
    fail_and_heal("port-down", "heal");
}

/** A short loss is none. */
void test_flap(void **state)
{
    enum { COUNT = 20 };
    packet_t packets[COUNT];
    side_t a, b;
    uint64_t end_ns;

    (void) state;
    pair_open(&a, &b);
    nic_fault("drop 1");
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packet_send(&packets[i], &a, i, DATA_MAX, pattern + i) >= 0);
    }
    end_ns = now_ns() + 100 * R2_NS_PER_MS;
    while (now_ns() < end_ns) {
        tp.ops->worker_progress(a.worker);
        tp.ops->worker_progress(b.worker);
    }
    nic_fault("heal");
    assert_true(progress_until(&a, &b, &b.received, COUNT));
    assert_int_equal(a.failed + b.failed, 0);
    pair_close(&a, &b);
}

/**
 * A dead device tells nothing more of what it was given. It comes back with the end of the lane,
 * and a device that is opened anew works.
 */
void test_device_dies(void **state)
{
    enum { COUNT = 60 };
    packet_t *packets = calloc(COUNT, sizeof(*packets));
    uint64_t end_ns;
    side_t a, b;

    (void) state;
    assert_non_null(packets);
    pair_open(&a, &b);
    nic_fault("fatal");
    for (uint32_t i = 0; i < COUNT; ++i) {
        packet_send(&packets[i], &a, i, DATA_MAX, pattern + i);
    }
    end_ns = now_ns() + 100 * R2_NS_PER_MS;
    while (now_ns() < end_ns) {
        tp.ops->worker_progress(a.worker);
        tp.ops->worker_progress(b.worker);
    }
    tp.ops->ep_close(a.ep);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packets[i].done);
    }
    free(packets);
    pair_close(&a, &b);
    nic_fault("heal");
    pair_open(&a, &b);
    assert_works(&a, &b);
    pair_close(&a, &b);
}

/** The address has another place in the table: workers that are made from then on find it. */
void test_gid_moves(void **state)
{
    side_t a, b;

    (void) state;
    side_open(&a);
    side_open(&b);
    for (int i = 0; i < 3; ++i) {
        nic_fault(0 == i % 2 ? "gid 0 2" : "gid 0 1");
        tp.ops->worker_destroy(a.worker);
        tp.ops->worker_destroy(b.worker);
        assert_int_equal(tp.ops->worker_create(a.device, &callbacks, &a, &a.worker), R2_OK);
        assert_int_equal(tp.ops->worker_create(b.device, &callbacks, &b, &b.worker), R2_OK);
        side_connect(&a, &b);
        assert_works(&a, &b);
    }
    nic_fault("heal");
    pair_close(&a, &b);
}

/**
 * A probe by a put must reach a NIC whose process does nothing for it. rc_verbs connects both ends'
 * queue pairs, which takes the other process, and says so when a target is made of it; dc_mlx5
 * needs none, and is the hardware's alone. Probes connect by TCP then, or ask lanes.
 */
void test_no_put_without_the_other_process(void **state)
{
    const r2_put_t put = r2_put_ucx(r2_tp_ucx(&tp));
    char address[R2_PUT_ADDRESS_MAX];
    r2_put_device_t *device;
    r2_put_end_t *target;
    size_t bytes;

    (void) state;
    assert_int_equal(put.ops->device_open(put.instance, device_name, "dc_mlx5", &device),
                     R2_ERR_NO_DEVICE);
    assert_int_equal(put.ops->device_open(put.instance, device_name, "rc_verbs", &device), R2_OK);
    assert_int_equal(put.ops->target(device, address, &bytes, &target), R2_ERR_UNSUPPORTED);
    put.ops->device_close(device);
}
