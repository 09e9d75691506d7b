/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One connection of the TCP hello driver: a state machine over a non-blocking socket.
 */
#include "r2_config.h"

#include "rail/hello_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fork.h"
#include "base/util.h"

/*
 * call()   -> CONNECTING -> GREETED -> ASKED -> result
 * accept() -> STRANGER -> CHALLENGED -> PROVEN -> SERVING -> ANSWERING
 *             (counted as strangers)
 */

/** A state: what runs when all the bytes it wants have come. An error ends the connection. */
typedef struct r2_hello_row {
    const char *name;
    r2_status_t (*input)(r2_hello_conn_t *conn);
} r2_hello_row_t;

static r2_status_t r2_hello_greeted(r2_hello_conn_t *conn);
static r2_status_t r2_hello_requested(r2_hello_conn_t *conn);
static r2_status_t r2_hello_stranger(r2_hello_conn_t *conn);
static r2_status_t r2_hello_challenged(r2_hello_conn_t *conn);
static r2_status_t r2_hello_proven(r2_hello_conn_t *conn);
static r2_status_t r2_hello_unwanted(r2_hello_conn_t *conn);

static const r2_hello_row_t r2_hello_rows[] = {
    [R2_HELLO_CONNECTING] = {"connecting", NULL},
    [R2_HELLO_GREETED] = {"greeted", r2_hello_greeted},
    [R2_HELLO_REQUESTED] = {"asked", r2_hello_requested},
    [R2_HELLO_STRANGER] = {"stranger", r2_hello_stranger},
    [R2_HELLO_CHALLENGED] = {"challenged", r2_hello_challenged},
    [R2_HELLO_PROVEN] = {"proven", r2_hello_proven},
    [R2_HELLO_SERVING] = {"serving", r2_hello_unwanted},
    [R2_HELLO_ANSWERING] = {"answering", r2_hello_unwanted},
    [R2_HELLO_CLOSED] = {"closed", NULL},
};

const char *r2_hello_state_name(r2_hello_state_t state)
{
    return r2_hello_rows[state].name;
}

static bool r2_hello_is_client(const r2_hello_conn_t *conn)
{
    return conn->state <= R2_HELLO_REQUESTED;
}

static bool r2_hello_is_stranger(const r2_hello_conn_t *conn)
{
    return R2_HELLO_STRANGER == conn->state || R2_HELLO_CHALLENGED == conn->state;
}

/** Goes to a state that waits for `want_bytes` from now on. */
static void r2_hello_wait(r2_hello_conn_t *conn, r2_hello_state_t state, size_t want_bytes)
{
    conn->state = state;
    conn->want_bytes = want_bytes;
    conn->rx_bytes = 0;
}

static r2_hello_conn_t *r2_hello_conn_new(r2_hello_tcp_t *hello, int fd, uint32_t events,
                                          size_t request_bytes)
{
    r2_hello_conn_t *conn = calloc(1, sizeof(*conn) + request_bytes);
    struct epoll_event event = {.events = events};

    if (NULL == conn) {
        return NULL;
    }
    event.data.ptr = conn;
    if (0 != epoll_ctl(hello->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        free(conn);
        return NULL;
    }
    conn->source = R2_HELLO_CONN;
    conn->hello = hello;
    conn->fd = fd;
    conn->events = events;
    return conn;
}

void r2_hello_conn_close(r2_hello_conn_t *conn)
{
    r2_hello_tcp_t *hello = conn->hello;

    if (R2_HELLO_CLOSED == conn->state) {
        return;
    }
    if (r2_hello_is_stranger(conn)) {
        DL_DELETE(hello->strangers, conn);
        --hello->stranger_count;
    } else {
        DL_DELETE(hello->conns, conn);
    }
    /* Taken out by hand: a copy of the descriptor in a forked child would keep the event alive. */
    epoll_ctl(hello->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    r2_fd_close(conn->fd);
    conn->fd = -1;
    conn->state = R2_HELLO_CLOSED;
    r2_hello_session_fini(&conn->session);
    DL_APPEND(hello->dead, conn);
    if (!hello->polling) {
        r2_hello_conn_reap(hello);
    }
}

void r2_hello_conn_reap(r2_hello_tcp_t *hello)
{
    r2_hello_conn_t *conn, *next;

    DL_FOREACH_SAFE(hello->dead, conn, next) {
        DL_DELETE(hello->dead, conn);
        free(conn);
    }
}

void r2_hello_conn_fail(r2_hello_conn_t *conn, r2_status_t status)
{
    r2_hello_tcp_t *hello = conn->hello;
    const bool client = r2_hello_is_client(conn);

    r2_debug(hello->log, "rail %u hello %s ended: %s", conn->rail_idx,
             r2_hello_state_name(conn->state), r2_status_string(status));
    r2_hello_conn_close(conn);
    if (client) {
        hello->upcalls.result(hello->upcalls.arg, conn->id, status, NULL, 0);
    }
}

/** Sends what is queued, as far as it goes, and watches for room when it does not go. */
static r2_status_t r2_hello_flush(r2_hello_conn_t *conn)
{
    uint32_t events = EPOLLIN;

    while (conn->sent_bytes < conn->tx_bytes) {
        const ssize_t sent = send(conn->fd, conn->tx + conn->sent_bytes,
                                  conn->tx_bytes - conn->sent_bytes, MSG_NOSIGNAL);

        if (sent >= 0) {
            conn->sent_bytes += (size_t) sent;
        } else if (EAGAIN == errno) {
            events |= EPOLLOUT;
            break;
        } else if (EINTR != errno) {
            return R2_ERR_LANE_DOWN;
        }
    }
    if (events != conn->events) {
        struct epoll_event event = {.events = events, .data.ptr = conn};

        conn->events = events;
        epoll_ctl(conn->hello->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event);
    }
    return R2_OK;
}

/** Queues bytes behind what is queued. The protocol never queues more than fits. */
static void r2_hello_queue(r2_hello_conn_t *conn, const void *bytes_from, size_t bytes)
{
    if (conn->sent_bytes == conn->tx_bytes) {
        conn->sent_bytes = conn->tx_bytes = 0;
    }
    r2_assert(conn->tx_bytes + bytes <= sizeof(conn->tx));
    memcpy(conn->tx + conn->tx_bytes, bytes_from, bytes);
    conn->tx_bytes += bytes;
}

static void r2_hello_queue_frame(r2_hello_conn_t *conn, r2_hello_role_t role, const void *payload,
                                 size_t bytes)
{
    uint8_t frame[R2_HELLO_FRAME_MAX];
    const size_t frame_bytes = r2_hello_frame_seal(&conn->session, role, payload, bytes, frame);

    r2_hello_queue(conn, frame, frame_bytes);
}

/** Client: connected. Sends magic and nonce. */
static r2_status_t r2_hello_greet(r2_hello_conn_t *conn)
{
    r2_hello_queue(conn, R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES);
    r2_hello_queue(conn, conn->nonce, sizeof(conn->nonce));
    r2_hello_wait(conn, R2_HELLO_GREETED,
                  R2_HELLO_MAGIC_BYTES + R2_HELLO_NONCE_BYTES + R2_HELLO_PROOF_BYTES);
    return r2_hello_flush(conn);
}

/** Client: the server's magic, nonce and proof are here. Sends our proof and the request. */
static r2_status_t r2_hello_greeted(r2_hello_conn_t *conn)
{
    const uint8_t *server_nonce = conn->rx + R2_HELLO_MAGIC_BYTES;

    if (0 != memcmp(conn->rx, R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES)) {
        return R2_ERR_AUTH;
    }
    r2_hello_session_init(&conn->session, conn->hello->key, conn->rail_idx, conn->listener_id,
                          conn->nonce, server_nonce);
    if (R2_OK != r2_hello_proof_check(&conn->session, R2_HELLO_SERVER,
                                      server_nonce + R2_HELLO_NONCE_BYTES)) {
        return R2_ERR_AUTH;
    }
    r2_hello_queue(conn, conn->session.proof[R2_HELLO_CLIENT], R2_HELLO_PROOF_BYTES);
    r2_hello_queue_frame(conn, R2_HELLO_CLIENT, conn->request, conn->request_bytes);
    r2_hello_wait(conn, R2_HELLO_REQUESTED, R2_HELLO_FRAME_HEADER_BYTES);
    return r2_hello_flush(conn);
}

/** Client: the reply's header, then the whole reply is here. */
static r2_status_t r2_hello_requested(r2_hello_conn_t *conn)
{
    r2_hello_tcp_t *hello = conn->hello;
    const uint8_t *payload;
    size_t bytes;
    r2_status_t status;

    if (R2_HELLO_FRAME_HEADER_BYTES == conn->want_bytes) {
        return r2_hello_frame_length(conn->rx, &conn->want_bytes);
    }
    status = r2_hello_frame_open(&conn->session, R2_HELLO_SERVER, conn->rx, conn->rx_bytes,
                                 &payload, &bytes);
    if (R2_OK != status) {
        return status;
    }
    r2_hello_conn_close(conn); /* the bytes stay until the end of poll() */
    hello->upcalls.result(hello->upcalls.arg, conn->id, R2_OK, payload, bytes);
    return R2_OK;
}

/** Server: a client's magic and nonce are here. Sends our nonce and proof. */
static r2_status_t r2_hello_stranger(r2_hello_conn_t *conn)
{
    if (0 != memcmp(conn->rx, R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES)) {
        return R2_ERR_AUTH;
    }
    r2_hello_random(conn->nonce, sizeof(conn->nonce));
    r2_hello_session_init(&conn->session, conn->hello->key, conn->rail_idx, conn->listener_id,
                          conn->rx + R2_HELLO_MAGIC_BYTES, conn->nonce);
    r2_hello_queue(conn, R2_HELLO_MAGIC, R2_HELLO_MAGIC_BYTES);
    r2_hello_queue(conn, conn->nonce, sizeof(conn->nonce));
    r2_hello_queue(conn, conn->session.proof[R2_HELLO_SERVER], R2_HELLO_PROOF_BYTES);
    r2_hello_wait(conn, R2_HELLO_CHALLENGED, R2_HELLO_PROOF_BYTES);
    return r2_hello_flush(conn);
}

/** Server: the client's proof is here. From now on it is no stranger. */
static r2_status_t r2_hello_challenged(r2_hello_conn_t *conn)
{
    r2_hello_tcp_t *hello = conn->hello;

    if (R2_OK != r2_hello_proof_check(&conn->session, R2_HELLO_CLIENT, conn->rx)) {
        return R2_ERR_AUTH;
    }
    DL_DELETE(hello->strangers, conn);
    --hello->stranger_count;
    DL_APPEND(hello->conns, conn);
    conn->deadline_ns = conn->since_ns + R2_HELLO_SERVE_NS;
    r2_hello_wait(conn, R2_HELLO_PROVEN, R2_HELLO_FRAME_HEADER_BYTES);
    return R2_OK;
}

/** Server: the request's header, then the whole request is here. */
static r2_status_t r2_hello_proven(r2_hello_conn_t *conn)
{
    r2_hello_tcp_t *hello = conn->hello;
    const uint8_t *payload;
    size_t bytes;
    r2_status_t status;

    if (R2_HELLO_FRAME_HEADER_BYTES == conn->want_bytes) {
        return r2_hello_frame_length(conn->rx, &conn->want_bytes);
    }
    status = r2_hello_frame_open(&conn->session, R2_HELLO_CLIENT, conn->rx, conn->rx_bytes,
                                 &payload, &bytes);
    if (R2_OK != status) {
        return status;
    }
    r2_hello_wait(conn, R2_HELLO_SERVING, 1);
    hello->upcalls.request(hello->upcalls.arg, conn->rail_idx, conn->id, payload, bytes);
    return R2_OK;
}

/** Server: bytes after the request, for example the request once more. */
static r2_status_t r2_hello_unwanted(r2_hello_conn_t *conn)
{
    (void) conn;
    return R2_ERR_WIRE;
}

void r2_hello_conn_reply(r2_hello_conn_t *conn, const void *reply, size_t bytes)
{
    if (bytes > R2_HELLO_BYTES_MAX) {
        r2_error(conn->hello->log, "rail %u hello reply of %zu bytes is too long", conn->rail_idx,
                 bytes);
        r2_hello_conn_close(conn);
        return;
    }
    r2_hello_queue_frame(conn, R2_HELLO_SERVER, reply, bytes);
    conn->state = R2_HELLO_ANSWERING;
    if (R2_OK != r2_hello_flush(conn) || conn->sent_bytes == conn->tx_bytes) {
        r2_hello_conn_close(conn);
    }
}

/** Reads as long as there is something, running the state's handler whenever it has what it
 * wants. */
static r2_status_t r2_hello_read(r2_hello_conn_t *conn)
{
    while (R2_HELLO_CLOSED != conn->state) {
        const ssize_t got =
            recv(conn->fd, conn->rx + conn->rx_bytes, conn->want_bytes - conn->rx_bytes, 0);

        if (0 == got) {
            return R2_ERR_LANE_DOWN;
        }
        if (got < 0) {
            if (EINTR == errno) {
                continue;
            }
            return EAGAIN == errno ? R2_OK : R2_ERR_LANE_DOWN;
        }
        conn->rx_bytes += (size_t) got;
        if (conn->rx_bytes == conn->want_bytes) {
            const r2_status_t status = r2_hello_rows[conn->state].input(conn);

            if (status < 0) {
                return status;
            }
        }
    }
    return R2_OK;
}

static r2_status_t r2_hello_connected(r2_hello_conn_t *conn)
{
    int error = 0;
    socklen_t error_bytes = sizeof(error);

    if (0 != getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes)) {
        return R2_ERR_LANE_DOWN;
    }
    return 0 == error ? r2_hello_greet(conn) : r2_hello_socket_status(error);
}

void r2_hello_conn_event(r2_hello_conn_t *conn, uint32_t events)
{
    r2_status_t status = R2_OK;

    if (R2_HELLO_CLOSED == conn->state) {
        return; /* closed by an upcall after epoll named it */
    }
    if (R2_HELLO_CONNECTING == conn->state) {
        status = r2_hello_connected(conn);
    } else if (0 != (events & EPOLLOUT)) {
        status = r2_hello_flush(conn);
        if (R2_OK == status && R2_HELLO_ANSWERING == conn->state &&
            conn->sent_bytes == conn->tx_bytes) {
            r2_hello_conn_close(conn);
        }
    }
    if (status >= 0 && R2_HELLO_CLOSED != conn->state &&
        0 != (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        status = r2_hello_read(conn);
    }
    if (status < 0 && R2_HELLO_CLOSED != conn->state) {
        r2_hello_conn_fail(conn, status);
    }
}

void r2_hello_conn_dial(r2_hello_conn_t *conn, uint64_t now_ns)
{
    r2_hello_tcp_t *hello = conn->hello;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = conn};
    int fd;

    if (R2_HELLO_CONNECTING != conn->state || now_ns < conn->dial_ns) {
        return;
    }
    conn->dial_ns = now_ns + 2 * (conn->dial_ns - conn->since_ns);
    if (r2_hello_socket_connect(&hello->listeners[conn->own_idx].nic, &conn->address, &fd) < 0) {
        return;
    }
    if (0 != epoll_ctl(hello->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        r2_fd_close(fd);
        return;
    }
    epoll_ctl(hello->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    r2_fd_close(conn->fd);
    conn->fd = fd;
    conn->events = event.events;
}

r2_status_t r2_hello_conn_call(r2_hello_tcp_t *hello, uint32_t own_idx, int fd, bool connected,
                               const r2_hello_address_t *address, const void *request, size_t bytes,
                               uint64_t timeout_ns, uint64_t connect_id)
{
    const uint64_t now_ns = r2_now_ns(hello->clock);
    r2_hello_conn_t *conn = r2_hello_conn_new(hello, fd, connected ? EPOLLIN : EPOLLOUT, bytes);
    r2_status_t status;

    if (NULL == conn) {
        r2_fd_close(fd);
        return R2_ERR_NO_MEMORY;
    }
    conn->id = connect_id;
    conn->since_ns = now_ns;
    conn->timeout_ns = r2_clamp_u64(timeout_ns, 1, R2_NEVER_NS / 2 - now_ns);
    conn->deadline_ns = now_ns + conn->timeout_ns;
    conn->dial_ns = now_ns + R2_HELLO_DIAL_NS;
    conn->own_idx = own_idx;
    conn->address = *address;
    conn->rail_idx = address->rail_idx;
    memcpy(conn->listener_id, address->id, sizeof(conn->listener_id));
    r2_hello_random(conn->nonce, sizeof(conn->nonce));
    conn->request_bytes = bytes;
    if (bytes > 0) {
        memcpy(conn->request, request, bytes);
    }
    conn->state = R2_HELLO_CONNECTING;
    DL_APPEND(hello->conns, conn);
    hello->next_ns = r2_min(hello->next_ns, r2_min(conn->dial_ns, conn->deadline_ns));
    if (connected) {
        status = r2_hello_greet(conn);
        if (R2_OK != status) {
            r2_hello_conn_close(conn);
            return status;
        }
    }
    return R2_OK;
}

void r2_hello_conn_accept(r2_hello_listener_t *listener, int fd, uint64_t now_ns)
{
    r2_hello_tcp_t *hello = listener->hello;
    r2_hello_conn_t *conn = r2_hello_conn_new(hello, fd, EPOLLIN, 0);

    if (NULL == conn) {
        r2_fd_close(fd);
        return;
    }
    conn->id = hello->next_token++;
    conn->since_ns = now_ns;
    conn->deadline_ns = now_ns + R2_HELLO_STRANGER_NS;
    conn->rail_idx = listener->rail_idx;
    memcpy(conn->listener_id, listener->address.id, sizeof(conn->listener_id));
    DL_APPEND(hello->strangers, conn);
    ++hello->stranger_count;
    r2_hello_wait(conn, R2_HELLO_STRANGER, R2_HELLO_MAGIC_BYTES + R2_HELLO_NONCE_BYTES);
    hello->next_ns = r2_min(hello->next_ns, conn->deadline_ns);
    r2_hello_conn_event(conn, EPOLLIN); /* the greeting is often here already */
}
