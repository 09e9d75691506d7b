/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The probe driver for Ethernet: requests to the peer's kernel, timers, the operations table.
 */
#include "r2_config.h"

#include "rail/probe_tcp.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fork.h"
#include "base/util.h"
#include "rail/probe_parts.h"

#define R2_PROBE_EVENTS_MAX 64

/* ---- requests ---- */

/** Closes with a reset, so that nothing of the connection is left at either end. */
static void r2_probe_asker_close(r2_probe_asker_t *asker)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    if (asker->fd >= 0) {
        epoll_ctl(asker->request->rail->probe->epoll_fd, EPOLL_CTL_DEL, asker->fd, NULL);
        setsockopt(asker->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        r2_fd_close(asker->fd);
        asker->fd = -1;
    }
}

/** Ends a request; its result is told by the next poll(). */
static void r2_probe_finish(r2_probe_request_t *request, r2_probe_answer_t answer)
{
    request->done = true;
    request->answer = answer;
    request->rail->probe->next_ns = 0; /* the next poll() tells */
    r2_probe_put_drop(request);
    r2_probe_asker_close(&request->askers[0]);
    r2_probe_asker_close(&request->askers[1]);
}

/** What an attempt to connect came to: the other kernel answered, or it did not, or we could not
 * ask. */
static void r2_probe_asker_outcome(r2_probe_asker_t *asker, r2_status_t status, int error)
{
    r2_probe_request_t *request = asker->request;

    if (R2_OK == status || R2_ERR_REFUSED == status || ECONNRESET == error) {
        request->sent = true;
        request->rtt_ns = r2_now_ns(request->rail->probe->clock) - asker->sent_ns;
        r2_probe_finish(request, R2_PROBE_ALIVE);
    } else {
        /* No route, no neighbour: silence, unless nothing could be sent. */
        request->sent |=
            R2_ERR_NO_DEVICE != status && R2_ERR_AGAIN != status && R2_ERR_NO_MEMORY != status;
        r2_probe_asker_close(asker);
    }
}

static void r2_probe_connect(r2_probe_request_t *request, uint32_t turn, uint64_t now_ns)
{
    r2_probe_asker_t *asker = &request->askers[turn];
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = asker};
    r2_status_t status;

    asker->sent_ns = now_ns;
    status = r2_hello_socket_connect(&request->rail->nic, &request->to[turn], &asker->fd);
    if (R2_IN_PROGRESS != status) {
        r2_probe_asker_outcome(asker, status, 0);
    } else if (0 != epoll_ctl(request->rail->probe->epoll_fd, EPOLL_CTL_ADD, asker->fd, &event)) {
        r2_probe_asker_outcome(asker, R2_ERR_AGAIN, 0);
    } else {
        request->sent = true;
    }
}

static void r2_probe_asker_event(r2_probe_asker_t *asker)
{
    int error = 0;
    socklen_t error_bytes = sizeof(error);

    if (asker->request->done || asker->fd < 0) {
        return; /* the other asker's answer was handled after epoll named this one */
    }
    if (0 != getsockopt(asker->fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes)) {
        error = EIO;
    }
    r2_probe_asker_outcome(asker, 0 == error ? R2_OK : r2_hello_socket_status(error), error);
}

/** Begins what is due: a put where there is one, else the quiet port, then the hello listener. */
static void r2_probe_begin(r2_probe_request_t *request, bool carrier, uint64_t now_ns)
{
    while (!request->done && NULL == request->put && request->begun < 2 &&
           request->start_ns[request->begun] <= now_ns) {
        if (carrier && 0 == request->begun && r2_probe_put_begin(request, now_ns)) {
            return;
        }
        if (carrier) {
            r2_probe_connect(request, request->begun, now_ns);
        } else if (0 == request->begun) {
            r2_probe_finish(request, R2_PROBE_UNABLE);
        }
        ++request->begun;
    }
}

/** Does what is due for one request. */
static void r2_probe_advance(r2_probe_request_t *request, uint64_t now_ns)
{
    const bool carrier = r2_probe_rail_carrier(request->rail);
    r2_probe_answer_t answer;

    if (NULL != request->put && r2_probe_put_advance(request, now_ns, &answer)) {
        r2_probe_finish(request, answer);
    }
    r2_probe_begin(request, carrier, now_ns);
    if (!request->done && request->deadline_ns <= now_ns) {
        r2_probe_finish(request, request->sent && carrier ? R2_PROBE_SILENT : R2_PROBE_UNABLE);
    }
}

/* ---- the table ---- */

static void r2_probe_tcp_bind(void *instance, const r2_probe_upcalls_t *upcalls)
{
    r2_probe_tcp_t *probe = instance;

    probe->upcalls = *upcalls;
}

static void r2_probe_tcp_share(void *instance, uint32_t processes)
{
    r2_probe_tcp_t *probe = instance;

    for (size_t i = 0; i < r2_array_count(probe->rails); ++i) {
        probe->rails[i].limit.rate = r2_probe_limit_rate(processes);
    }
}

static void r2_probe_tcp_key(void *instance, const uint8_t *key)
{
    r2_probe_tcp_t *probe = instance;

    r2_beacon_key(key, probe->beacon_key);
    probe->has_key = true;
}

static r2_status_t r2_probe_tcp_listen(void *instance, uint32_t rail_idx, const r2_nic_t *nic,
                                       void *address_p, size_t *bytes_p)
{
    r2_probe_tcp_t *probe = instance;
    uint8_t *to = address_p;
    r2_probe_rail_t *rail;
    r2_status_t status;

    if (rail_idx >= R2_RAILS_MAX || NULL == nic) {
        return R2_ERR_PARAM;
    }
    rail = &probe->rails[rail_idx];
    status = r2_probe_rail_open(rail, nic);
    if (R2_OK != status) {
        return status;
    }
    to[0] = R2_PROBE_ADDRESS_VERSION;
    to[1] = (uint8_t) rail->put.bytes;
    to[2] = (uint8_t) (rail->udp_port >> 8);
    to[3] = (uint8_t) rail->udp_port;
    to[4] = (uint8_t) (rail->quiet_port >> 8);
    to[5] = (uint8_t) rail->quiet_port;
    memcpy(to + R2_PROBE_ADDRESS_BYTES, rail->put.address, rail->put.bytes);
    *bytes_p = R2_PROBE_ADDRESS_BYTES + rail->put.bytes;
    return R2_OK;
}

/** Never trusts the bytes. @param udp_p and quiet_p ports of the peer. */
static bool r2_probe_address_decode(const void *hello_from, size_t hello_bytes, const void *from,
                                    size_t bytes, r2_hello_address_t *hello_p, uint16_t *udp_p,
                                    uint16_t *quiet_p)
{
    const uint8_t *at = from;

    if (R2_OK != r2_hello_address_decode(hello_from, hello_bytes, hello_p) ||
        R2_HELLO_INET != hello_p->family || bytes < R2_PROBE_ADDRESS_BYTES ||
        R2_PROBE_ADDRESS_VERSION != at[0] || at[1] != bytes - R2_PROBE_ADDRESS_BYTES ||
        at[1] > R2_PUT_ADDRESS_MAX) {
        return false;
    }
    *udp_p = (uint16_t) (at[2] << 8 | at[3]);
    *quiet_p = (uint16_t) (at[4] << 8 | at[5]);
    return 0 != *udp_p && 0 != *quiet_p;
}

/** Finds out when the next timer is due. */
static void r2_probe_next_timer(r2_probe_tcp_t *probe)
{
    const r2_probe_request_t *request;
    const r2_probe_waiting_t *beacon;

    probe->next_ns = R2_NEVER_NS;
    DL_FOREACH(probe->requests, request) {
        const uint64_t due_ns = NULL != request->put ? request->put_ns
                                : request->begun < 2 ? request->start_ns[request->begun]
                                                     : request->deadline_ns;

        probe->next_ns = r2_min(probe->next_ns, request->done ? 0 : due_ns);
    }
    DL_FOREACH(probe->waiting, beacon) {
        probe->next_ns = r2_min(probe->next_ns, beacon->start_ns);
    }
}

static r2_status_t r2_probe_tcp_probe(void *instance, uint32_t rail_idx, const void *hello_address,
                                      size_t hello_address_bytes, const void *address,
                                      size_t address_bytes, uint64_t timeout_ns, uint64_t probe_id)
{
    r2_probe_tcp_t *probe = instance;
    const uint64_t now_ns = r2_now_ns(probe->clock);
    r2_probe_request_t *request;
    r2_hello_address_t to;
    uint16_t udp_port, quiet_port;

    if (rail_idx >= R2_RAILS_MAX || '\0' == probe->rails[rail_idx].nic.name[0] ||
        !r2_probe_address_decode(hello_address, hello_address_bytes, address, address_bytes, &to,
                                 &udp_port, &quiet_port)) {
        return R2_ERR_PARAM;
    }
    request = calloc(1, sizeof(*request));
    if (NULL == request ||
        !r2_probe_limit_take(&probe->rails[rail_idx].limit, now_ns, &request->start_ns[0])) {
        free(request);
        return R2_ERR_NO_MEMORY;
    }
    request->rail = &probe->rails[rail_idx];
    request->to[0] = request->to[1] = to;
    request->to[0].port = quiet_port;
    request->id = probe_id;
    request->put_bytes = address_bytes - R2_PROBE_ADDRESS_BYTES;
    memcpy(request->put_address, (const uint8_t *) address + R2_PROBE_ADDRESS_BYTES,
           request->put_bytes);
    request->deadline_ns =
        request->start_ns[0] + r2_min(timeout_ns, R2_NEVER_NS - request->start_ns[0]);
    request->start_ns[1] = request->start_ns[0] + (request->deadline_ns - request->start_ns[0]) / 2;
    for (size_t i = 0; i < r2_array_count(request->askers); ++i) {
        request->askers[i] =
            (r2_probe_asker_t){.source = R2_PROBE_ASKER, .fd = -1, .request = request};
    }
    DL_APPEND(probe->requests, request);
    r2_probe_rail_follow(request->rail);
    r2_probe_advance(request, now_ns);
    r2_probe_next_timer(probe);
    return R2_OK;
}

static void r2_probe_tcp_beacon(void *instance, uint32_t rail_idx, const void *hello_address,
                                size_t hello_address_bytes, const void *address,
                                size_t address_bytes, uint32_t own_rank, uint64_t beacon_id)
{
    r2_probe_tcp_t *probe = instance;
    const uint64_t now_ns = r2_now_ns(probe->clock);
    r2_probe_waiting_t beacon = {.to.sin_family = AF_INET};
    r2_beacon_place_t place;
    r2_probe_waiting_t *waiting;
    r2_hello_address_t hello;
    uint16_t quiet_port;

    if (rail_idx >= R2_RAILS_MAX || probe->rails[rail_idx].udp_fd < 0 || !probe->has_key ||
        !r2_probe_address_decode(hello_address, hello_address_bytes, address, address_bytes, &hello,
                                 &place.port, &quiet_port) ||
        0 == hello.ipv4) {
        return;
    }
    beacon.rail = &probe->rails[rail_idx];
    place.rail_idx = hello.rail_idx;
    place.ipv4 = hello.ipv4;
    if (!r2_probe_limit_take(&beacon.rail->limit, now_ns, &beacon.start_ns)) {
        return;
    }
    beacon.to.sin_port = htons(place.port);
    beacon.to.sin_addr.s_addr = place.ipv4;
    r2_beacon_seal(probe->beacon_key, &place, own_rank, beacon_id, beacon.datagram);
    r2_probe_rail_follow(beacon.rail);
    if (beacon.start_ns <= now_ns) {
        r2_probe_rail_send(beacon.rail, &beacon.to, beacon.datagram);
    } else if (NULL != (waiting = malloc(sizeof(*waiting)))) {
        *waiting = beacon;
        DL_APPEND(probe->waiting, waiting);
        probe->next_ns = r2_min(probe->next_ns, beacon.start_ns);
    }
}

static int r2_probe_tcp_fd(void *instance)
{
    const r2_probe_tcp_t *probe = instance;

    return probe->epoll_fd;
}

/** @return a request whose result is to be told, or NULL. */
static r2_probe_request_t *r2_probe_next_done(const r2_probe_tcp_t *probe)
{
    r2_probe_request_t *request;

    DL_FOREACH(probe->requests, request) {
        if (request->done) {
            return request;
        }
    }
    return NULL;
}

static void r2_probe_timers(r2_probe_tcp_t *probe, uint64_t now_ns)
{
    r2_probe_request_t *request;
    r2_probe_waiting_t *beacon, *next;

    DL_FOREACH(probe->requests, request) {
        if (!request->done) {
            r2_probe_advance(request, now_ns);
        }
    }
    DL_FOREACH_SAFE(probe->waiting, beacon, next) {
        if (beacon->start_ns <= now_ns) {
            DL_DELETE(probe->waiting, beacon);
            r2_probe_rail_send(beacon->rail, &beacon->to, beacon->datagram);
            free(beacon);
        }
    }
}

/** @param source first member of what the event belongs to. */
static void r2_probe_event(r2_probe_source_t *source)
{
    switch (*source) {
    case R2_PROBE_RAIL:
        r2_probe_rail_hear(r2_container_of(source, r2_probe_rail_t, source));
        break;
    case R2_PROBE_ASKER:
        r2_probe_asker_event(r2_container_of(source, r2_probe_asker_t, source));
        break;
    case R2_PROBE_TARGET:
        r2_probe_put_serve(r2_container_of(source, r2_probe_rail_t, put.source));
        break;
    }
}

static void r2_probe_tcp_poll(void *instance)
{
    r2_probe_tcp_t *probe = instance;
    struct epoll_event events[R2_PROBE_EVENTS_MAX];
    const uint64_t now_ns = r2_now_ns(probe->clock);
    const int count = epoll_wait(probe->epoll_fd, events, R2_PROBE_EVENTS_MAX, 0);
    r2_probe_request_t *request;

    for (int i = 0; i < count; ++i) {
        r2_probe_event(events[i].data.ptr);
    }
    /* where more may have come it is read first: after we were stopped all is late */
    if (count < R2_PROBE_EVENTS_MAX && probe->next_ns <= now_ns) {
        r2_probe_timers(probe, now_ns);
    }
    while (NULL != (request = r2_probe_next_done(probe))) {
        DL_DELETE(probe->requests, request);
        probe->upcalls.result(probe->upcalls.arg, request->id, request->answer, request->rtt_ns);
        free(request);
    }
    r2_probe_next_timer(probe);
}

static uint64_t r2_probe_tcp_deadline_ns(void *instance)
{
    const r2_probe_tcp_t *probe = instance;

    return probe->next_ns;
}

r2_status_t r2_probe_tcp_create(const r2_clock_t *clock, const r2_log_t *log, const r2_put_t *put,
                                const char *choice, r2_probe_t *probe_p)
{
    static const r2_probe_ops_t ops = {
        .name = "tcp",
        .bind = r2_probe_tcp_bind,
        .share = r2_probe_tcp_share,
        .key = r2_probe_tcp_key,
        .listen = r2_probe_tcp_listen,
        .probe = r2_probe_tcp_probe,
        .beacon = r2_probe_tcp_beacon,
        .fd = r2_probe_tcp_fd,
        .poll = r2_probe_tcp_poll,
        .deadline_ns = r2_probe_tcp_deadline_ns,
    };
    r2_probe_choice_t chosen;
    r2_probe_tcp_t *probe;

    if (!r2_probe_choice_find(choice, &chosen)) {
        return R2_ERR_PARAM;
    }
    if (sodium_init() < 0) {
        return R2_ERR_SYSTEM;
    }
    probe = calloc(1, sizeof(*probe));
    if (NULL == probe) {
        return R2_ERR_NO_MEMORY;
    }
    probe->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (probe->epoll_fd < 0) {
        free(probe);
        return R2_ERR_SYSTEM;
    }
    probe->put = *put;
    probe->choice = chosen;
    probe->clock = clock;
    probe->log = log;
    probe->next_ns = R2_NEVER_NS;
    for (uint32_t i = 0; i < R2_RAILS_MAX; ++i) {
        probe->rails[i].source = R2_PROBE_RAIL;
        probe->rails[i].idx = i;
        probe->rails[i].put.source = R2_PROBE_TARGET;
        probe->rails[i].udp_fd = probe->rails[i].quiet_fd = -1;
        probe->rails[i].probe = probe;
    }
    probe_p->ops = &ops;
    probe_p->instance = probe;
    return R2_OK;
}

void r2_probe_tcp_destroy(r2_probe_t *probe_at)
{
    r2_probe_tcp_t *probe = probe_at->instance;
    r2_probe_request_t *request, *request_next;
    r2_probe_waiting_t *beacon, *beacon_next;

    if (NULL == probe) {
        return;
    }
    DL_FOREACH_SAFE(probe->requests, request, request_next) {
        r2_probe_asker_close(&request->askers[0]);
        r2_probe_asker_close(&request->askers[1]);
        r2_probe_put_drop(request);
        free(request);
    }
    probe->requests = NULL; /* rails look for theirs */
    DL_FOREACH_SAFE(probe->waiting, beacon, beacon_next) {
        free(beacon);
    }
    for (size_t i = 0; i < R2_RAILS_MAX; ++i) {
        r2_probe_rail_close(&probe->rails[i]);
    }
    r2_fd_close(probe->epoll_fd);
    sodium_memzero(probe->beacon_key, sizeof(probe->beacon_key));
    free(probe);
    probe_at->instance = NULL;
    probe_at->ops = NULL;
}
