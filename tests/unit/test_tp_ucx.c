/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport over the loopback device and over shared memory, in one and in two processes.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_sizes(void **state)
{
    static const uint32_t sizes[] = {0, 1, 8, 4096, 65536, DATA_MAX};
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (size_t i = 0; i < r2_array_count(sizes); ++i) {
        uint32_t number = (uint32_t) (100 * i + 7);
        packet_t packet;

        b.received = 0;
        assert_true(packet_send(&packet, &a, number, sizes[i], pattern + number % 251) >= 0);
        assert_true(progress_until(&a, &b, &b.received, 1));
        assert_int_equal(b.last, number);
        while (!packet.done) {
            tp.ops->worker_progress(a.worker);
        }
        assert_int_equal(packet.status, R2_OK);
    }
    pair_close(&a, &b);
}

static void test_many_in_flight(void **state)
{
    enum { COUNT = 400 };
    packet_t *packets = calloc(COUNT, sizeof(*packets));
    uint32_t pending = 0;
    side_t a, b;

    (void) state;
    assert_non_null(packets);
    pair_open(&a, &b);
    for (uint32_t i = 0; i < COUNT; ++i) {
        pending += R2_IN_PROGRESS ==
                   packet_send(&packets[i], &a, i, i % 2 ? 65536 : 33, pattern + i % 251);
    }
    assert_true(pending > 0);
    assert_true(progress_until(&a, &b, &b.received, COUNT));
    for (int i = 0; i < 100; ++i) {
        tp.ops->worker_progress(a.worker);
    }
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packets[i].done);
        assert_int_equal(packets[i].status, R2_OK);
    }
    assert_int_equal(b.received, COUNT);
    pair_close(&a, &b);
    free(packets);
}

/** Progresses until the worker may sleep. */
static void arm(side_t *side)
{
    while (R2_OK != tp.ops->worker_arm(side->worker)) {
        tp.ops->worker_progress(side->worker);
    }
}

/* An armed worker sleeps until something comes: at first, what is left of connecting. */
void assert_sleeps(side_t *side)
{
    struct pollfd input = {.fd = tp.ops->worker_fd(side->worker), .events = POLLIN};
    uint32_t wakes = 0;

    assert_true(input.fd >= 0);
    for (arm(side); 0 != poll(&input, 1, 0); arm(side)) {
        assert_true(wakes++ < 2);
        tp.ops->worker_progress(side->worker);
    }
}

static void test_wakeup(void **state)
{
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    for (uint32_t i = 1; i <= 50; ++i) {
        struct pollfd input = {.fd = tp.ops->worker_fd(b.worker), .events = POLLIN};
        packet_t packet;

        assert_sleeps(&b);
        assert_true(packet_send(&packet, &a, i, 8, pattern + i) >= 0);
        while (!packet.done) {
            tp.ops->worker_progress(a.worker);
        }
        /* within the host the packet is there: no timer may stand in for its signal */
        assert_int_equal(poll(&input, 1, NULL == device_name ? 0 : 5000), 1);
        assert_true(progress_until(&b, NULL, &b.received, i));
    }
    pair_close(&a, &b);
}

/** A worker that says so needs no look, and no arming, before its descriptor can be read. */
static void test_signals(void **state)
{
    side_t a, b;

    (void) state;
    pair_open(&a, &b);
    assert_int_equal(tp.ops->worker_signals(b.worker), NULL != device_name);
    for (uint32_t i = 1; i <= 50 && NULL != device_name; ++i) {
        struct pollfd input = {.fd = tp.ops->worker_fd(b.worker), .events = POLLIN};
        packet_t packet;

        while (0 != poll(&input, 1, 0)) {
            arm(&b); /* connections are being set up */
            tp.ops->worker_progress(b.worker);
        }
        assert_true(packet_send(&packet, &a, i, 8, pattern + i) >= 0);
        while (!packet.done) {
            assert_false(tp.ops->worker_signals(a.worker));
            tp.ops->worker_progress(a.worker);
        }
        assert_int_equal(poll(&input, 1, 5000), 1);
        assert_true(progress_until(&b, NULL, &b.received, i));
    }
    pair_close(&a, &b);
}

/** A sender whose packets wait sleeps no longer than its peer does not read. */
static void test_wakeup_of_sender(void **state)
{
    enum { COUNT = 200 };
    packet_t *packets = calloc(COUNT, sizeof(*packets));
    side_t a, b;
    uint32_t waits = 0;

    (void) state;
    assert_non_null(packets);
    pair_open(&a, &b);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packet_send(&packets[i], &a, i, DATA_MAX, pattern + i) >= 0);
    }
    assert_false(packets[COUNT - 1].done);
    while (!packets[COUNT - 1].done) {
        struct pollfd input = {.fd = tp.ops->worker_fd(a.worker), .events = POLLIN};

        if (R2_OK == tp.ops->worker_arm(a.worker)) {
            while (0 == poll(&input, 1, 0) && b.received < COUNT) {
                tp.ops->worker_progress(b.worker);
            }
            assert_int_equal(poll(&input, 1, 1000), 1);
            ++waits;
        }
        tp.ops->worker_progress(a.worker);
        if (NULL == device_name) {
            tp.ops->worker_progress(
                b.worker); /* shared memory: a sender with packets stays awake */
        }
    }
    assert_true(waits > 0 || NULL == device_name);
    assert_true(progress_until(&a, &b, &b.received, COUNT));
    pair_close(&a, &b);
    free(packets);
}

/** @return whether an endpoint that is connected to what is gone has failed */
static bool connect_to_nobody(void)
{
    char address[R2_TP_ADDRESS_MAX];
    size_t bytes;
    packet_t packet;
    side_t a, b;
    uint32_t failed;

    side_open(&a);
    side_open(&b);
    side_offer(&a);
    side_offer(&b);
    assert_int_equal(tp.ops->ep_address(b.ep, address, &bytes), R2_OK);
    side_close(&b);
    if (R2_OK != tp.ops->ep_connect(a.ep, address, bytes)) {
        ++a.failed;
    } else if (packet_send(&packet, &a, 0, 8, pattern) >= 0) {
        for (int i = 0; i < 1000 && 0 == a.failed; ++i) {
            tp.ops->worker_progress(a.worker);
        }
        tp.ops->ep_close(a.ep);
        assert_true(packet.done);
    }
    assert_int_equal(a.received, 0);
    failed = a.failed;
    side_close(&a);
    return failed > 0;
}

/**
 * Opening towards a worker that is gone is no crash. Who waits for the other's
 * connection hears nothing; who connects is refused. Ports, which are drawn, decide who does.
 */
static void test_connect_to_nobody(void **state)
{
    enum { TRIES = 64 };
    uint32_t refused = 0;

    (void) state;
    for (int i = 0; i < TRIES; ++i) {
        refused += connect_to_nobody();
    }
    assert_true(NULL == device_name || (refused > 0 && refused < TRIES));
}

/** An address of another family is refused: UCX would write more than it has room for. */
static void test_connect_to_another_family(void **state)
{
    enum { FAMILY_AT = sizeof(uint32_t) + 1 + 1 }; /* behind process, length and flags */
    char address[R2_TP_ADDRESS_MAX];
    size_t bytes;
    side_t a, b;

    (void) state;
    side_open(&a);
    side_open(&b);
    side_offer(&a);
    side_offer(&b);
    assert_int_equal(tp.ops->ep_address(b.ep, address, &bytes), R2_OK);
    assert_int_equal(address[FAMILY_AT], AF_INET);
    address[FAMILY_AT] = AF_INET6;
    assert_int_equal(tp.ops->ep_connect(a.ep, address, bytes), R2_ERR_NO_PATH);
    address[FAMILY_AT] = AF_INET;
    assert_int_equal(tp.ops->ep_connect(a.ep, address, bytes), R2_OK);
    side_close(&a);
    side_close(&b);
}

/** A NIC that is not there is a quiet R2_ERR_NO_DEVICE. */
static void test_no_device(void **state)
{
    r2_tp_device_config_t config = {.name = "r2nonesuch0", .segment_bytes = SEGMENT_MAX};
    r2_tp_device_t *device;
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    r2_status_t status;

    (void) state;
    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    status = tp.ops->device_open(tp.instance, &config, &device);
    fflush(NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(status, R2_ERR_NO_DEVICE);
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
    fclose(file);
}

static int use_lo(void **state)
{
    (void) state;
    device_name = "lo";
    return 0;
}

static int use_shared_memory(void **state)
{
    (void) state;
    device_name = NULL;
    return 0;
}

#define BOTH(test)                                        \
    {"lo/" #test, test, use_lo, NULL, NULL},              \
    {                                                     \
        "shm/" #test, test, use_shared_memory, NULL, NULL \
    }

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_sizes),
        BOTH(test_many_in_flight),
        BOTH(test_close_with_sends_pending),
        BOTH(test_close_leaves_other_lanes),
        BOTH(test_generations),
        BOTH(test_close_while_connecting),
        BOTH(test_wiring_gives_back),
        {"lo/test_connections_break", test_connections_break, use_lo, NULL, NULL},
        BOTH(test_wakeup),
        BOTH(test_signals),
        BOTH(test_wakeup_of_sender),
        BOTH(test_two_processes),
        BOTH(test_peer_killed_with_sends_pending),
        BOTH(test_peer_killed_while_connecting),
        BOTH(test_connect_to_nobody),
        {"lo/test_connect_to_another_family", test_connect_to_another_family, use_lo, NULL, NULL},
        {"shm/test_forked_child", test_forked_child, use_shared_memory, NULL, NULL},
        {"test_no_device", test_no_device, use_lo, NULL, NULL},
    };
    ssize_t length = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    int failed;

    if (length <= 0 || R2_OK != r2_tp_ucx_create(&tp)) {
        return EXIT_FAILURE;
    }
    pattern = malloc(DATA_MAX + 512);
    if (NULL == pattern) {
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < DATA_MAX + 512; ++i) {
        pattern[i] = (unsigned char) (i * 2654435761u >> 13);
    }
    if (4 == argc && 0 == strcmp(argv[1], "--peer")) {
        device_name = '\0' == argv[3][0] ? NULL : argv[3];
        return peer_main(atoi(argv[2]));
    }
    if (2 == argc) {
        cmocka_set_test_filter(argv[1]);
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    r2_tp_ucx_destroy(&tp);
    free(pattern);
    return failed;
}
