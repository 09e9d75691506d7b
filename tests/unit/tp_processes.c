/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport between two processes, one of which is killed.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void exchange_addresses(int fd, side_t *side)
{
    char address[R2_TP_ADDRESS_MAX] = {0};
    size_t bytes;
    uint64_t length;

    side_offer(side);
    assert_int_equal(tp.ops->ep_address(side->ep, address, &bytes), R2_OK);
    length = bytes;
    assert_int_equal(write(fd, &length, sizeof(length)), sizeof(length));
    assert_int_equal(write(fd, address, sizeof(address)), sizeof(address));
    assert_int_equal(recv(fd, &length, sizeof(length), MSG_WAITALL), sizeof(length));
    assert_int_equal(recv(fd, address, sizeof(address), MSG_WAITALL), sizeof(address));
    assert_int_equal(tp.ops->ep_connect(side->ep, address, length), R2_OK);
}

int peer_main(int fd)
{
    packet_t packet = {.done = true};
    side_t side;
    uint32_t number = 0;

    alarm(60);
    side_open(&side);
    side.echo = true;
    exchange_addresses(fd, &side);
    for (;;) {
        tp.ops->worker_progress(side.worker);
        if (side.wrong > 0) {
            return EXIT_FAILURE;
        }
        if (side.owed > 0 && packet.done) {
            --side.owed;
            ++number;
            packet_send(&packet, &side, number, 4096, pattern + number % 251);
        }
    }
}

static pid_t peer_start(int *fd_p)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (0 == pid) {
        char text[16];

        close(fds[0]);
        snprintf(text, sizeof(text), "%d", fds[1]);
        execl(self_path, self_path, "--peer", text, NULL == device_name ? "" : device_name,
              device_tls, (char *) NULL);
        _exit(127);
    }
    close(fds[1]);
    *fd_p = fds[0];
    return pid;
}

void test_two_processes(void **state)
{
    static const uint32_t sizes[] = {0, 1, 8, 4096, 65536, DATA_MAX};
    packet_t packets[8];
    side_t side;
    int fd;
    pid_t pid = peer_start(&fd);

    (void) state;
    side_open(&side);
    exchange_addresses(fd, &side);
    for (uint32_t round = 0; round < 60; ++round) {
        uint32_t bytes = sizes[round % r2_array_count(sizes)];
        uint32_t count = 0 == round ? 1 : r2_array_count(packets);

        for (uint32_t i = 0; i < count; ++i) {
            assert_true(packet_send(&packets[i], &side, round + i, bytes, pattern + (round + i)) >=
                        0);
        }
        side.received = 0;
        assert_true(progress_until(&side, NULL, &side.received, count));
        for (uint32_t i = 0; i < count; ++i) {
            while (!packets[i].done) {
                tp.ops->worker_progress(side.worker);
            }
        }
    }
    assert_int_equal(side.wrong, 0);
    assert_int_equal(side.failed, 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (NULL != device_tls) {
        /* RDMA: only who sends hears of it */
        assert_true(packet_send(&packets[0], &side, 0, 8, pattern) >= 0);
    }
    if (NULL == device_tls || 0 != strcmp(device_tls, "ud_verbs")) { /* datagrams: after 10 min */
        assert_true(progress_until(&side, NULL, &side.failed, 1));
        assert_ptr_equal(side.failed_arg, &side);
        assert_true(packet_send(&packets[1], &side, 0, 8, pattern) < 0);
    }
    tp.ops->ep_close(side.ep);
    assert_true(packets[0].done);
    side_close(&side);
    close(fd);
}

/** The peer is killed while it owes us the reading of many packets. */
void test_peer_killed_with_sends_pending(void **state)
{
    enum { COUNT = 200 };
    packet_t *packets = calloc(COUNT, sizeof(*packets));
    uint32_t count = 0;
    side_t side;
    int fd;
    pid_t pid = peer_start(&fd);

    (void) state;
    assert_non_null(packets);
    side_open(&side);
    exchange_addresses(fd, &side);
    assert_true(packet_send(&packets[0], &side, 0, 0, NULL) >= 0);
    assert_true(progress_until(&side, NULL, &side.received, 1));
    kill(pid, SIGSTOP);
    while (count < COUNT && packet_send(&packets[count], &side, 0, DATA_MAX, pattern) >= 0) {
        ++count;
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(progress_until(&side, NULL, &side.failed, 1));
    tp.ops->ep_close(side.ep);
    for (uint32_t i = 0; i < count; ++i) {
        assert_true(packets[i].done);
    }
    side_close(&side);
    close(fd);
    free(packets);
}

/**
 * A peer that is stopped is no dead one, however much is sent to it; over RDMA its NIC goes on, and
 * lets us wait for room. What was sent arrives when it goes on.
 */
void test_peer_stopped(void **state)
{
    enum { COUNT = 200 };
    packet_t *packets = calloc(COUNT, sizeof(*packets));
    side_t side;
    uint64_t end_ns;
    int fd;
    pid_t pid = peer_start(&fd);

    (void) state;
    assert_non_null(packets);
    side_open(&side);
    exchange_addresses(fd, &side);
    assert_true(packet_send(&packets[0], &side, 0, 0, NULL) >= 0);
    assert_true(progress_until(&side, NULL, &side.received, 1));
    kill(pid, SIGSTOP);
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packet_send(&packets[i], &side, i, DATA_MAX, pattern + i) >= 0);
    }
    end_ns = now_ns() + 2 * R2_NS_PER_S;
    while (now_ns() < end_ns) {
        tp.ops->worker_progress(side.worker);
    }
    assert_int_equal(side.failed, 0);
    assert_false(packets[COUNT - 1].done);
    kill(pid, SIGCONT);
    assert_true(progress_until(&side, NULL, &side.received, 1 + COUNT));
    /* over RDMA the answer may come before the NIC's word that the question has arrived */
    end_ns = now_ns() + 10 * R2_NS_PER_S;
    while (!packets[COUNT - 1].done && now_ns() < end_ns) {
        tp.ops->worker_progress(side.worker);
    }
    for (uint32_t i = 0; i < COUNT; ++i) {
        assert_true(packets[i].done);
        assert_int_equal(packets[i].status, R2_OK);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    side_close(&side);
    close(fd);
    free(packets);
}

/** The peer is killed at any point of connection set-up. */
void test_peer_killed_while_connecting(void **state)
{
    packet_t packets[4];
    side_t side;

    (void) state;
    side_open(&side);
    for (unsigned round = 0; round < 20; ++round) {
        uint64_t end_ns;
        int fd;
        pid_t pid = peer_start(&fd);

        tp.ops->worker_destroy(side.worker);
        assert_int_equal(tp.ops->worker_create(side.device, &callbacks, &side, &side.worker),
                         R2_OK);
        exchange_addresses(fd, &side);
        for (uint32_t i = 0; i < r2_array_count(packets); ++i) {
            assert_true(packet_send(&packets[i], &side, i, DATA_MAX, pattern + i) >= 0);
        }
        end_ns = now_ns() + round * 20 * R2_NS_PER_US;
        while (now_ns() < end_ns) {
            tp.ops->worker_progress(side.worker);
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        for (int i = 0; i < 100; ++i) {
            tp.ops->worker_progress(side.worker);
        }
        tp.ops->ep_close(side.ep);
        close(fd);
    }
    assert_int_equal(side.wrong, 0);
    side_close(&side);
}

/** A child of fork() has what watches the peer's process: that does not keep the parent awake. */
void test_forked_child(void **state)
{
    side_t side;
    packet_t packet;
    int fd;
    pid_t child, pid = peer_start(&fd);

    (void) state;
    side_open(&side);
    exchange_addresses(fd, &side);
    assert_true(packet_send(&packet, &side, 0, 0, NULL) >= 0);
    assert_true(progress_until(&side, NULL, &side.received, 1));
    child = fork();
    assert_true(child >= 0);
    if (0 == child) {
        alarm(60);
        for (;;) {
            pause();
        }
    }
    tp.ops->ep_close(side.ep);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_sleeps(&side);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    side_close(&side);
    close(fd);
}
