/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The transports: TCP over the loopback device, UCX over shared memory and RDMA, in one and in two
 * processes.
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
    for (uint32_t i = 0; i < COUNT; ++i) {
        packet_wait(&packets[i], &a);
        assert_int_equal(packets[i].status, R2_OK);
    }
    assert_int_equal(b.received, COUNT);
    pair_close(&a, &b);
    free(packets);
}

static bool is_tcp(void)
{
    return NULL != device_name && NULL == device_tls;
}

/** TCP knows what the path carried once something was acknowledged; the others never do. */
static void test_path_rate(void **state)
{
    enum { COUNT = 40 };
    static packet_t packets[COUNT];
    uint64_t window_bytes = 0;
    side_t a, b;

    (void) state;
    side_open(&a);
    side_offer(&a);
    assert_true(NULL == tp.ops->ep_path_rate || 0 == tp.ops->ep_path_rate(a.ep, &window_bytes));
    side_close(&a);
    pair_open(&a, &b);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packet_send(&packets[i], &a, i, 65536, pattern + i % 251) >= 0);
    }
    assert_true(progress_until(&a, &b, &b.received, COUNT));
    for (uint32_t i = 0; i < COUNT; ++i) {
        packet_wait(&packets[i], &a);
    }
    if (is_tcp()) {
        assert_true(tp.ops->ep_path_rate(a.ep, &window_bytes) > 1000000 && window_bytes > 1000);
    } else {
        assert_true(NULL == tp.ops->ep_path_rate || 0 == tp.ops->ep_path_rate(a.ep, &window_bytes));
    }
    pair_close(&a, &b);
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
    arm(&b);
    assert_int_equal(tp.ops->worker_signals(b.worker), is_tcp());
    for (uint32_t i = 1; i <= 50 && is_tcp();
         ++i) { /* read all the time: it leaves the epoll set */
        packet_t packet;

        assert_true(packet_send(&packet, &a, i, 8, pattern + i) >= 0);
        packet_wait(&packet, &a);
        assert_true(progress_until(&b, NULL, &b.received, i));
    }
    b.received = 0;
    for (uint32_t i = 1; i <= 50 && is_tcp(); ++i) {
        struct pollfd input = {.fd = tp.ops->worker_fd(b.worker), .events = POLLIN};
        packet_t packet;

        arm(&b); /* a worker that is read all the time signals no more */
        while (0 != poll(&input, 1, 0)) {
            arm(&b); /* connections are being set up */
            tp.ops->worker_progress(b.worker);
        }
        assert_true(tp.ops->worker_signals(b.worker));
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
 * connection hears nothing; who connects is refused. Ports, which are drawn, decide who does. Over
 * RDMA nobody answers, for longer than is waited here.
 */
static void test_connect_to_nobody(void **state)
{
    enum { TRIES = 64 };
    uint32_t refused = 0;

    (void) state;
    for (int i = 0; i < TRIES; ++i) {
        refused += connect_to_nobody();
    }
    assert_true(!is_tcp() || (refused > 0 && refused < TRIES));
}

/* UCX's mark of an Ethernet port, in the first byte of a device's address. */
#define RDMA_ETHERNET 8

/** An address of another kind is refused: over RDMA Ethernet and InfiniBand do not go together. */
static void test_connect_to_another_kind(void **state)
{
    const size_t at = sizeof(uint32_t) + 1; /* behind process and length */
    char address[R2_TP_ADDRESS_MAX];
    size_t bytes;
    side_t a, b;

    (void) state;
    side_open(&a);
    side_open(&b);
    side_offer(&a);
    side_offer(&b);
    assert_int_equal(tp.ops->ep_address(b.ep, address, &bytes), R2_OK);
    address[at] ^= is_tcp() ? 0 : RDMA_ETHERNET;
    assert_int_equal(tp.ops->ep_connect(a.ep, address, is_tcp() ? bytes - 1 : bytes),
                     R2_ERR_NO_PATH);
    address[at] ^= is_tcp() ? 0 : RDMA_ETHERNET;
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
    device_tls = NULL;
    return 0;
}

static int use_shared_memory(void **state)
{
    (void) state;
    device_name = NULL;
    device_tls = NULL;
    return 0;
}

static int use_rc(void **state)
{
    (void) state;
    device_name = "soft0:1";
    device_tls = "rc_verbs";
    return 0;
}

static int use_ud(void **state)
{
    (void) state;
    device_name = "soft0:1";
    device_tls = "ud_verbs";
    return 0;
}

#define BOTH(test)                                        \
    {"lo/" #test, test, use_lo, NULL, NULL},              \
    {                                                     \
        "shm/" #test, test, use_shared_memory, NULL, NULL \
    }

#define RC(test)                              \
    {                                         \
        "rc/" #test, test, use_rc, NULL, NULL \
    }

#define UD(test)                              \
    {                                         \
        "ud/" #test, test, use_ud, NULL, NULL \
    }

static const struct CMUnitTest over_datagrams[] = {
    UD(test_sizes),
    UD(test_many_in_flight),
    UD(test_close_with_sends_pending),
    UD(test_close_leaves_other_lanes),
    UD(test_generations),
    UD(test_close_while_connecting),
    UD(test_wiring_gives_back),
    UD(test_wakeup),
    UD(test_signals),
    UD(test_wakeup_of_sender),
    UD(test_two_processes),
    UD(test_peer_stopped),
    UD(test_connect_to_nobody),
    UD(test_connect_to_another_kind),
    UD(test_nothing_is_granted),
    UD(test_device_dies),
    UD(test_gid_moves),
};

static const struct CMUnitTest over_rdma[] = {
    RC(test_sizes),
    RC(test_many_in_flight),
    RC(test_close_with_sends_pending),
    RC(test_close_leaves_other_lanes),
    RC(test_generations),
    RC(test_close_while_connecting),
    RC(test_wiring_gives_back),
    RC(test_wakeup),
    RC(test_signals),
    RC(test_wakeup_of_sender),
    RC(test_two_processes),
    RC(test_peer_stopped),
    RC(test_peer_killed_with_sends_pending),
    RC(test_peer_killed_while_connecting),
    RC(test_connect_to_nobody),
    RC(test_connect_to_another_kind),
    RC(test_memory_is_registered_once),
    RC(test_memory_is_unmapped),
    RC(test_memory_of_neighbours),
    RC(test_memory_is_refused),
    RC(test_memory_is_short),
    RC(test_memory_is_used_up),
    RC(test_memory_is_pinned_beside),
    RC(test_pinning_joins_neighbours),
    RC(test_pinning_does_without_neighbours),
    RC(test_pinning_keeps_nobody_waiting),
    RC(test_long_packets_are_not_copied),
    RC(test_worker_locks_little),
    RC(test_puts_land_before_their_header),
    RC(test_puts_need_no_process),
    RC(test_gets_need_no_process),
    RC(test_gets_end_with_their_endpoint),
    RC(test_close_with_puts_pending),
    RC(test_late_puts_land_until_the_receiver_closes),
    RC(test_late_puts_end_with_the_device),
    RC(test_granted_memory_is_unmapped),
    RC(test_puts_end_with_their_memory),
    RC(test_silent_drop),
    RC(test_port_down),
    RC(test_flap),
    RC(test_device_dies),
    RC(test_gid_moves),
    RC(test_rail_offers),
    RC(test_no_put_without_the_other_process),
    RC(test_rail_descriptors),
    RC(test_rail_after_death),
    RC(test_rail_refused),
    RC(test_rail_worker_after_death),
    RC(test_rail_gid_moves),
    RC(test_rail_tells_refusals),
};

static const struct CMUnitTest over_tcp_and_shared_memory[] = {
    BOTH(test_sizes),
    BOTH(test_many_in_flight),
    BOTH(test_path_rate),
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
    {"lo/test_peer_stopped", test_peer_stopped, use_lo, NULL, NULL},
    BOTH(test_peer_killed_with_sends_pending),
    BOTH(test_peer_killed_while_connecting),
    BOTH(test_nothing_is_granted),
    BOTH(test_connect_to_nobody),
    {"lo/test_connect_to_another_kind", test_connect_to_another_kind, use_lo, NULL, NULL},
    {"lo/test_portions", test_portions, use_lo, NULL, NULL},
    {"lo/test_landing", test_landing, use_lo, NULL, NULL},
    {"lo/test_landing_behind_short", test_landing_behind_short, use_lo, NULL, NULL},
    {"lo/test_landing_off", test_landing_off, use_lo, NULL, NULL},
    {"lo/test_landing_fails", test_landing_fails, use_lo, NULL, NULL},
    {"lo/test_wrong_frames", test_wrong_frames, use_lo, NULL, NULL},
    {"lo/test_strangers", test_strangers, use_lo, NULL, NULL},
    {"lo/test_wrong_peer", test_wrong_peer, use_lo, NULL, NULL},
    {"lo/test_one_endpoint", test_one_endpoint, use_lo, NULL, NULL},
    {"lo/test_reading_on", test_reading_on, use_lo, NULL, NULL},
    {"shm/test_forked_child", test_forked_child, use_shared_memory, NULL, NULL},
    {"test_no_device", test_no_device, use_lo, NULL, NULL},
};

/** With `--rc` or `--ud` as first argument: over RDMA devices soft0 and soft1. Another one: that
 * test. */
int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    bool is_rc, is_ud;
    int failed;

    pattern = malloc(DATA_MAX + 512);
    if (length <= 0 || NULL == pattern || R2_OK != r2_tp_create(&tp)) {
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < DATA_MAX + 512; ++i) {
        pattern[i] = (unsigned char) (i * 2654435761u >> 13);
    }
    if (argc >= 4 && 0 == strcmp(argv[1], "--peer")) {
        device_name = '\0' == argv[3][0] ? NULL : argv[3];
        device_tls = argc > 4 ? argv[4] : NULL;
        return peer_main(atoi(argv[2]));
    }
    is_rc = argc > 1 && 0 == strcmp(argv[1], "--rc");
    is_ud = argc > 1 && 0 == strcmp(argv[1], "--ud");
    if (argc > 1 + (is_rc || is_ud)) {
        cmocka_set_test_filter(argv[1 + (is_rc || is_ud)]);
    }
    failed = is_rc   ? cmocka_run_group_tests(over_rdma, NULL, NULL)
             : is_ud ? cmocka_run_group_tests(over_datagrams, NULL, NULL)
                     : cmocka_run_group_tests(over_tcp_and_shared_memory, NULL, NULL);
    r2_tp_destroy(&tp);
    free(pattern);
    return failed;
}
