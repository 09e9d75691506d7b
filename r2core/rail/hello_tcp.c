/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP hello driver: listeners, the guard against strangers, timers, the operations table.
 */
#include "r2_config.h"

#include "rail/hello_tcp.h"

#include <errno.h>
#include <net/if.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fork.h"
#include "base/util.h"

#define R2_HELLO_ACCEPTS_MAX 16 /* per listener and poll(), so that connections get their turn */
#define R2_HELLO_EVENTS_MAX  64

static void r2_hello_tcp_bind(void *instance, const r2_hello_upcalls_t *upcalls)
{
    r2_hello_tcp_t *hello = instance;

    hello->upcalls = *upcalls;
}

/** Watches a listener for connections, or not: connections then wait in the kernel. */
static void r2_hello_listener_watch(r2_hello_listener_t *listener, int operation)
{
    r2_hello_tcp_t *hello = listener->hello;
    const bool accepts = hello->has_key && 0 == hello->resume_ns;
    struct epoll_event event = {.events = accepts ? EPOLLIN : 0, .data.ptr = listener};

    epoll_ctl(hello->epoll_fd, operation, listener->fd, &event);
}

static void r2_hello_watch_all(r2_hello_tcp_t *hello)
{
    for (size_t i = 0; i < r2_array_count(hello->listeners); ++i) {
        if (hello->listeners[i].fd >= 0) {
            r2_hello_listener_watch(&hello->listeners[i], EPOLL_CTL_MOD);
        }
    }
}

static void r2_hello_tcp_key(void *instance, const uint8_t *key)
{
    r2_hello_tcp_t *hello = instance;

    memcpy(hello->key, key, sizeof(hello->key));
    hello->has_key = true;
    r2_hello_watch_all(hello);
}

/** A new listener: random id, random name; the port is the kernel's choice. */
static void r2_hello_listener_init(r2_hello_listener_t *listener)
{
    uint8_t name[16];
    char text[2 * sizeof(name) + 1];

    memset(&listener->address, 0, sizeof(listener->address));
    listener->address.rail_idx = (uint8_t) listener->rail_idx;
    listener->address.family = R2_RAILS_MAX == listener->rail_idx ? R2_HELLO_UNIX : R2_HELLO_INET;
    r2_hello_random(listener->address.id, sizeof(listener->address.id));
    if (R2_HELLO_UNIX == listener->address.family) {
        r2_hello_random(name, sizeof(name));
        sodium_bin2hex(text, sizeof(text), name, sizeof(name));
        memcpy(listener->address.name, "r2-", 3);
        memcpy(listener->address.name + 3, text, 2 * sizeof(name));
    }
}

/** Opens the socket, or opens it again where the old one cannot hear the NIC as it is now. */
static r2_status_t r2_hello_listener_open(r2_hello_listener_t *listener, const r2_nic_t *nic)
{
    const bool opened = listener->fd >= 0;
    const bool moved =
        opened && NULL != nic &&
        (nic->ifindex != listener->nic.ifindex ||
         (0 != listener->address.ipv4 && 0 != nic->ipv4 && nic->ipv4 != listener->address.ipv4));
    int fd, error;
    r2_status_t status;

    if (opened && !moved) {
        return R2_OK;
    }
    if (!opened) {
        r2_hello_listener_init(listener);
    }
    errno = 0;
    status = r2_hello_socket_listen(nic, &listener->address, &fd);
    if (R2_OK != status) {
        error = errno;
        r2_warn(listener->hello->log, "rail %u %s: cannot listen for hellos: %s",
                listener->rail_idx, NULL != nic ? nic->name : "local",
                0 != error ? strerror(error) : r2_status_string(status));
        errno = error;
        return status;
    }
    if (opened) {
        epoll_ctl(listener->hello->epoll_fd, EPOLL_CTL_DEL, listener->fd, NULL);
        r2_fd_close(listener->fd);
    }
    listener->fd = fd;
    if (NULL != nic && (!opened || 0 != listener->address.ipv4)) {
        listener->address.ipv4 = nic->ipv4;
    }
    r2_hello_listener_watch(listener, EPOLL_CTL_ADD);
    return R2_OK;
}

static r2_status_t r2_hello_tcp_listen(void *instance, uint32_t rail_idx, const r2_nic_t *nic,
                                       void *address_p, size_t *bytes_p)
{
    r2_hello_tcp_t *hello = instance;
    r2_hello_listener_t *listener;
    r2_hello_address_t address;
    r2_status_t status;

    if (rail_idx > R2_RAILS_MAX || (rail_idx < R2_RAILS_MAX && NULL == nic)) {
        return R2_ERR_PARAM;
    }
    listener = &hello->listeners[rail_idx];
    status = r2_hello_listener_open(listener, R2_RAILS_MAX == rail_idx ? NULL : nic);
    if (R2_OK != status) {
        return status;
    }
    address = listener->address;
    if (R2_RAILS_MAX != rail_idx) {
        listener->nic = *nic;
        address.ipv4 = 0 != nic->ipv4 ? nic->ipv4 : address.ipv4;
    }
    *bytes_p = r2_hello_address_encode(&address, address_p);
    return R2_OK;
}

/**
 * A device that was made anew has another index, and the old listener is deaf. Calls are how lanes
 * are healed, so they look after it.
 */
static void r2_hello_listener_follow(r2_hello_listener_t *listener)
{
    r2_nic_t nic = listener->nic;

    nic.ifindex = if_nametoindex(r2_nic_netdev(&nic));
    if (0 != nic.ifindex && R2_OK == r2_hello_listener_open(listener, &nic)) {
        listener->nic.ifindex = nic.ifindex;
    }
}

static r2_status_t r2_hello_tcp_call(void *instance, uint32_t rail_idx, const void *address_from,
                                     size_t address_bytes, const void *request, size_t bytes,
                                     uint64_t timeout_ns, uint64_t connect_id)
{
    r2_hello_tcp_t *hello = instance;
    r2_hello_address_t address;
    int fd;
    r2_status_t status;

    if (rail_idx > R2_RAILS_MAX || bytes > R2_HELLO_BYTES_MAX) {
        return R2_ERR_PARAM;
    }
    status = r2_hello_address_decode(address_from, address_bytes, &address);
    if (R2_OK != status || (R2_RAILS_MAX == rail_idx) != (R2_HELLO_UNIX == address.family)) {
        return R2_ERR_WIRE;
    }
    if (!hello->has_key) {
        return R2_ERR_AGAIN;
    }
    if (hello->listeners[rail_idx].fd < 0) {
        return R2_ERR_NO_DEVICE;
    }
    if (R2_RAILS_MAX != rail_idx) {
        r2_hello_listener_follow(&hello->listeners[rail_idx]);
    }
    status = r2_hello_socket_connect(&hello->listeners[rail_idx].nic, &address, &fd);
    if (status < 0) {
        return status;
    }
    return r2_hello_conn_call(hello, rail_idx, fd, R2_OK == status, &address, request, bytes,
                              timeout_ns, connect_id);
}

static bool r2_hello_tcp_cancel(void *instance, uint64_t connect_id)
{
    r2_hello_tcp_t *hello = instance;
    r2_hello_conn_t *conn;

    DL_FOREACH(hello->conns, conn) {
        if (conn->state < R2_HELLO_REQUESTED && connect_id == conn->id) {
            r2_hello_conn_close(conn);
            return true;
        }
    }
    return false;
}

static bool r2_hello_tcp_connected(void *instance, uint64_t connect_id)
{
    const r2_hello_tcp_t *hello = instance;
    const r2_hello_conn_t *conn;

    DL_FOREACH(hello->conns, conn) {
        if (R2_HELLO_CONNECTING == conn->state && connect_id == conn->id) {
            return false;
        }
    }
    return true;
}

static void r2_hello_tcp_reply(void *instance, uint64_t token, const void *reply, size_t bytes)
{
    r2_hello_tcp_t *hello = instance;
    r2_hello_conn_t *conn;

    DL_FOREACH(hello->conns, conn) {
        if (R2_HELLO_SERVING == conn->state && token == conn->id) {
            r2_hello_conn_reply(conn, reply, bytes);
            return;
        }
    }
}

static int r2_hello_tcp_fd(void *instance)
{
    const r2_hello_tcp_t *hello = instance;

    return hello->epoll_fd;
}

/** Stops accepting until `resume_ns` or, if all slots were taken (full), until one is free. */
static void r2_hello_pause(r2_hello_tcp_t *hello, uint64_t resume_ns, bool full)
{
    hello->resume_ns = resume_ns;
    hello->full = full;
    hello->next_ns = r2_min(hello->next_ns, resume_ns);
    r2_hello_watch_all(hello);
}

static void r2_hello_resume(r2_hello_tcp_t *hello)
{
    hello->resume_ns = 0;
    r2_hello_watch_all(hello);
}

/**
 * When all slots are taken by strangers, the oldest must go, but it may be a peer in the middle of
 * its proof: it has a moment of grace, for which others wait in the kernel's queue.
 * @return true if the next connection may be accepted.
 */
static bool r2_hello_may_accept(r2_hello_tcp_t *hello, uint64_t now_ns)
{
    if (hello->stranger_count < R2_HELLO_STRANGERS_MAX) {
        return true;
    }
    if (now_ns - hello->strangers->since_ns >= R2_HELLO_GRACE_NS) {
        return true;
    }
    r2_hello_pause(hello, hello->strangers->since_ns + R2_HELLO_GRACE_NS, true);
    return false;
}

static void r2_hello_accept(r2_hello_listener_t *listener)
{
    r2_hello_tcp_t *hello = listener->hello;
    const uint64_t now_ns = r2_now_ns(hello->clock);

    if (!hello->has_key) {
        return; /* only an error can wake us: without a key nobody is let in */
    }
    for (int i = 0; i < R2_HELLO_ACCEPTS_MAX && r2_hello_may_accept(hello, now_ns); ++i) {
        const int fd = r2_fd_keep(accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));

        if (fd < 0) {
            if (EMFILE == errno || ENFILE == errno || ENOBUFS == errno || ENOMEM == errno) {
                if (NULL != hello->strangers) {
                    r2_hello_conn_fail(hello->strangers, R2_ERR_AGAIN);
                }
                r2_hello_pause(hello, now_ns + R2_HELLO_GRACE_NS, false);
            }
            return;
        }
        if (hello->stranger_count >= R2_HELLO_STRANGERS_MAX) {
            r2_hello_conn_fail(hello->strangers, R2_ERR_AGAIN);
        }
        r2_hello_conn_accept(listener, fd, now_ns);
    }
}

/** The first overdue connection of a list, or NULL. */
static r2_hello_conn_t *r2_hello_overdue(r2_hello_conn_t *list, uint64_t now_ns)
{
    r2_hello_conn_t *conn;

    DL_FOREACH(list, conn) {
        if (conn->deadline_ns <= now_ns) {
            return conn;
        }
    }
    return NULL;
}

/** A call that is connected may wait for a process that is stopped. @return false: it is to end. */
static bool r2_hello_may_wait(r2_hello_conn_t *conn, uint64_t now_ns)
{
    const r2_hello_upcalls_t *upcalls = &conn->hello->upcalls;

    if (R2_HELLO_GREETED != conn->state || NULL == upcalls->waits ||
        !upcalls->waits(upcalls->arg, conn->id)) {
        return false;
    }
    conn->timeout_ns = r2_max(conn->timeout_ns, r2_min(2 * conn->timeout_ns, R2_HELLO_WAIT_NS));
    conn->deadline_ns = now_ns + conn->timeout_ns;
    return true;
}

/** Ends what is overdue. Upcalls may change the lists: each search starts anew. */
static void r2_hello_timers(r2_hello_tcp_t *hello, uint64_t now_ns)
{
    r2_hello_conn_t *conn;

    while (NULL != (conn = r2_hello_overdue(hello->strangers, now_ns)) ||
           NULL != (conn = r2_hello_overdue(hello->conns, now_ns))) {
        if (!r2_hello_may_wait(conn, now_ns)) {
            r2_hello_conn_fail(conn, R2_HELLO_CONNECTING == conn->state ? R2_ERR_TIMEOUT
                                                                        : R2_ERR_UNRESPONSIVE);
        }
    }
    DL_FOREACH(hello->conns, conn) {
        r2_hello_conn_dial(conn, now_ns);
    }
}

/** Finds out when the next timer is due. */
static void r2_hello_next_timer(r2_hello_tcp_t *hello)
{
    r2_hello_conn_t *conn;

    hello->next_ns = 0 != hello->resume_ns ? hello->resume_ns : R2_NEVER_NS;
    DL_FOREACH(hello->strangers, conn) {
        hello->next_ns = r2_min(hello->next_ns, conn->deadline_ns);
    }
    DL_FOREACH(hello->conns, conn) {
        hello->next_ns = r2_min(hello->next_ns, conn->deadline_ns);
        if (R2_HELLO_CONNECTING == conn->state) {
            hello->next_ns = r2_min(hello->next_ns, conn->dial_ns);
        }
    }
}

static void r2_hello_tcp_poll(void *instance)
{
    r2_hello_tcp_t *hello = instance;
    struct epoll_event events[R2_HELLO_EVENTS_MAX];
    const uint64_t now_ns = r2_now_ns(hello->clock);
    const bool due = hello->next_ns <= now_ns;
    const int count = epoll_wait(hello->epoll_fd, events, R2_HELLO_EVENTS_MAX, 0);

    hello->polling = true;
    for (int i = 0; i < count; ++i) {
        const r2_hello_source_t *source = events[i].data.ptr;

        if (R2_HELLO_LISTENER == *source) {
            r2_hello_accept(events[i].data.ptr);
        } else {
            r2_hello_conn_event(events[i].data.ptr, events[i].events);
        }
    }
    if (due) {
        r2_hello_timers(hello, now_ns);
    }
    hello->polling = false;
    if (0 != hello->resume_ns &&
        (hello->resume_ns <= now_ns ||
         (hello->full && hello->stranger_count < R2_HELLO_STRANGERS_MAX))) {
        r2_hello_resume(hello);
    }
    if (due || NULL != hello->dead) {
        r2_hello_conn_reap(hello);
        r2_hello_next_timer(hello);
    }
}

static uint64_t r2_hello_tcp_deadline_ns(void *instance)
{
    const r2_hello_tcp_t *hello = instance;

    return hello->next_ns;
}

static const r2_hello_ops_t r2_hello_tcp_ops = {
    .name = "tcp",
    .bind = r2_hello_tcp_bind,
    .key = r2_hello_tcp_key,
    .listen = r2_hello_tcp_listen,
    .call = r2_hello_tcp_call,
    .cancel = r2_hello_tcp_cancel,
    .connected = r2_hello_tcp_connected,
    .reply = r2_hello_tcp_reply,
    .fd = r2_hello_tcp_fd,
    .poll = r2_hello_tcp_poll,
    .deadline_ns = r2_hello_tcp_deadline_ns,
};

r2_status_t r2_hello_tcp_create(const r2_clock_t *clock, const r2_log_t *log, r2_hello_t *hello_p)
{
    r2_hello_tcp_t *hello;

    if (sodium_init() < 0) {
        return R2_ERR_SYSTEM;
    }
    hello = calloc(1, sizeof(*hello));
    if (NULL == hello) {
        return R2_ERR_NO_MEMORY;
    }
    hello->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (hello->epoll_fd < 0) {
        free(hello);
        return R2_ERR_SYSTEM;
    }
    hello->clock = clock;
    hello->log = log;
    hello->next_ns = R2_NEVER_NS;
    for (uint32_t i = 0; i < r2_array_count(hello->listeners); ++i) {
        hello->listeners[i].source = R2_HELLO_LISTENER;
        hello->listeners[i].rail_idx = i;
        hello->listeners[i].fd = -1;
        hello->listeners[i].hello = hello;
    }
    hello_p->ops = &r2_hello_tcp_ops;
    hello_p->instance = hello;
    return R2_OK;
}

void r2_hello_tcp_destroy(r2_hello_t *hello_at)
{
    r2_hello_tcp_t *hello = hello_at->instance;

    if (NULL == hello) {
        return;
    }
    while (NULL != hello->strangers) {
        r2_hello_conn_close(hello->strangers);
    }
    while (NULL != hello->conns) {
        r2_hello_conn_close(hello->conns);
    }
    for (size_t i = 0; i < r2_array_count(hello->listeners); ++i) {
        if (hello->listeners[i].fd >= 0) {
            r2_fd_close(hello->listeners[i].fd);
        }
    }
    r2_fd_close(hello->epoll_fd);
    sodium_memzero(hello->key, sizeof(hello->key));
    free(hello);
    hello_at->instance = NULL;
    hello_at->ops = NULL;
}
