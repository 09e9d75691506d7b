/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ends of the TCP hello driver for tests: real sockets on lo, a clock that the test moves.
 */
#ifndef R2_TESTS_HELLO_ENDS_H
#define R2_TESTS_HELLO_ENDS_H

#include "r2_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "moved_clock.h"
#include "rail/hello.h"
#include "rail/hello_auth.h"

#define T_CALLS 256

/** One end: driver, what it heard, what it answers. */
typedef struct t_end {
    r2_hello_t hello;
    uint8_t address[R2_HELLO_ADDRESS_MAX]; /* of rail 0 or of the local rail */
    size_t address_bytes;
    unsigned requests;
    uint64_t token; /* of the last request */
    uint32_t rail_idx;
    uint8_t request[R2_HELLO_BYTES_MAX];
    size_t request_bytes;
    bool hold;      /* do not answer */
    bool stay;      /* calls may wait for a process that is stopped */
    unsigned waits; /* how often that was asked */
    unsigned results;
    r2_status_t status[T_CALLS]; /* by call id; R2_IN_PROGRESS: none yet */
    uint8_t reply[R2_HELLO_BYTES_MAX];
    size_t reply_bytes;
} t_end_t;

static void t_request(void *arg, uint32_t rail_idx, uint64_t token, const void *request,
                      size_t bytes)
{
    t_end_t *end = arg;

    ++end->requests;
    end->token = token;
    end->rail_idx = rail_idx;
    memcpy(end->request, request, bytes);
    end->request_bytes = bytes;
    if (!end->hold) {
        end->hello.ops->reply(end->hello.instance, token, request, bytes); /* echo */
    }
}

static void t_result(void *arg, uint64_t connect_id, r2_status_t status, const void *reply,
                     size_t bytes)
{
    t_end_t *end = arg;

    assert_true(connect_id < T_CALLS);
    assert_int_equal(end->status[connect_id], R2_IN_PROGRESS);
    end->status[connect_id] = status;
    ++end->results;
    end->reply_bytes = bytes;
    if (bytes > 0) {
        memcpy(end->reply, reply, bytes);
    }
}

static bool t_waits(void *arg, uint64_t connect_id)
{
    t_end_t *end = arg;

    assert_int_equal(end->status[connect_id], R2_IN_PROGRESS);
    ++end->waits;
    return end->stay;
}

static inline r2_nic_t t_lo(void)
{
    r2_nic_t nic = {.name = "lo", .ifindex = 1, .ipv4 = htonl(INADDR_LOOPBACK), .carrier = true};

    return nic;
}

static inline void t_listen(t_end_t *end, uint32_t rail_idx)
{
    const r2_nic_t nic = t_lo();

    assert_int_equal(end->hello.ops->listen(end->hello.instance, rail_idx,
                                            R2_RAILS_MAX == rail_idx ? NULL : &nic, end->address,
                                            &end->address_bytes),
                     R2_OK);
}

/** Makes an end without key and without listeners. */
static inline t_end_t *t_bare(void)
{
    t_end_t *end = calloc(1, sizeof(*end));
    const r2_hello_upcalls_t upcalls = {
        .request = t_request, .result = t_result, .waits = t_waits, .arg = end};

    t_log.level = NULL != getenv("T_VERBOSE") ? R2_LOG_TRACE : R2_LOG_ERROR;
    for (size_t i = 0; i < T_CALLS; ++i) {
        end->status[i] = R2_IN_PROGRESS;
    }
    assert_int_equal(r2_hello_tcp_create(&t_clock, &t_log, &end->hello), R2_OK);
    end->hello.ops->bind(end->hello.instance, &upcalls);
    return end;
}

static inline t_end_t *t_end_new(uint32_t rail_idx)
{
    t_end_t *end = t_bare();

    end->hello.ops->key(end->hello.instance, t_key);
    t_listen(end, rail_idx);
    return end;
}

static inline void t_end_free(t_end_t *end)
{
    r2_hello_tcp_destroy(&end->hello);
    free(end);
}

static inline r2_status_t t_call(t_end_t *from, uint32_t rail_idx, const t_end_t *to,
                                 const void *request, size_t bytes, uint64_t id)
{
    return from->hello.ops->call(from->hello.instance, rail_idx, to->address, to->address_bytes,
                                 request, bytes, R2_NS_PER_S, id);
}

static inline void t_poll(t_end_t *end)
{
    end->hello.ops->poll(end->hello.instance);
}

/** Drives both ends until the caller has `results`. @param other may be NULL. */
static inline void t_run(t_end_t *caller, t_end_t *other, unsigned results)
{
    struct pollfd fds[2] = {{caller->hello.ops->fd(caller->hello.instance), POLLIN, 0}, {-1, 0, 0}};

    if (NULL != other) {
        fds[1].fd = other->hello.ops->fd(other->hello.instance);
        fds[1].events = POLLIN;
    }
    while (caller->results < results) {
        assert_true(poll(fds, 2, T_WAIT_MS) > 0);
        t_poll(caller);
        if (NULL != other) {
            t_poll(other);
        }
    }
}

/** Polls an end while it has news, and at least once. */
static inline void t_drain(t_end_t *end)
{
    struct pollfd fd = {end->hello.ops->fd(end->hello.instance), POLLIN, 0};

    do {
        t_poll(end);
    } while (poll(&fd, 1, 20) > 0);
}

/* A stranger: a plain socket on lo. */

static inline int t_connect(const t_end_t *to)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval wait = {T_WAIT_MS / 1000, 0};
    const int on = 1;

    memcpy(&in.sin_addr, to->address + 4, 4);
    memcpy(&in.sin_port, to->address + 8, 2);
    assert_int_equal(connect(fd, (const struct sockaddr *) &in, sizeof(in)), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    return fd;
}

static inline void t_write(int fd, const void *bytes_from, size_t bytes)
{
    assert_int_equal(send(fd, bytes_from, bytes, MSG_NOSIGNAL), bytes);
}

/** True if the other end has closed (after `end` handled its news). */
static inline bool t_closed(t_end_t *end, int fd)
{
    uint8_t rest[4096];
    ssize_t got;

    t_drain(end);
    do {
        got = recv(fd, rest, sizeof(rest), MSG_DONTWAIT);
    } while (got > 0);
    return 0 == got || ECONNRESET == errno;
}

/** A stranger who knows the key: handshake up to and with its proof. */
static inline int t_handshake(t_end_t *to, const uint8_t *key, r2_hello_session_t *session_p)
{
    uint8_t nonce[R2_HELLO_NONCE_BYTES] = {7};
    uint8_t answer[R2_HELLO_MAGIC_BYTES + R2_HELLO_NONCE_BYTES + R2_HELLO_PROOF_BYTES];
    const int fd = t_connect(to);

    t_write(fd, R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES);
    t_write(fd, nonce, sizeof(nonce));
    t_drain(to);
    assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    r2_hello_session_init(session_p, key, 0, to->address + 10, nonce,
                          answer + R2_HELLO_MAGIC_BYTES);
    t_write(fd, session_p->proof[R2_HELLO_CLIENT], R2_HELLO_PROOF_BYTES);
    return fd;
}

#endif
