/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes of ucx_flaps: workers, control path, packets, states.
 */
#include "r2_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <utlist.h>

#include "ucx_flaps.h"

process_t me;

uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * R2_NS_PER_S + (uint64_t) now.tv_nsec;
}

uint64_t random_u64(void)
{
    me.random = me.random * 6364136223846793005u + 1442695040888963407u;
    return me.random >> 20 ^ me.random << 40;
}

/* ---- how long calls of the transport take ---- */

watch_t watch_start(void)
{
    return (watch_t){clock_ns(CLOCK_THREAD_CPUTIME_ID), clock_ns(CLOCK_MONOTONIC)};
}

void watch_end(watch_t start)
{
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
    uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC) - start.wall_ns;

    me.cpu_max_ns = r2_max(me.cpu_max_ns, cpu_ns);
    me.wall_max_ns = r2_max(me.wall_max_ns, wall_ns);
}

/* ---- worker generations ---- */

static const r2_tp_callbacks_t callbacks;

static generation_t *generation_get(uint32_t rank)
{
    generation_t *g = me.generations;

    if (NULL == g || 0 != (g->served & 1u << rank)) {
        watch_t watch = watch_start();
        r2_status_t status;

        g = calloc(1, sizeof(*g));
        status = NULL == g ? R2_ERR_NO_MEMORY
                           : me.tp.ops->worker_create(me.device, &callbacks, g, &g->worker);
        watch_end(watch);
        if (R2_OK != status) {
            free(g);
            return NULL;
        }
        LL_PREPEND(me.generations, g);
        ++me.workers;
        me.workers_max = r2_max(me.workers_max, me.workers);
    }
    ++g->users;
    return g;
}

void generations_sweep(void)
{
    generation_t *g, *next;

    LL_FOREACH_SAFE(me.generations, g, next) {
        if (0 == g->users && g != me.generations) {
            watch_t watch = watch_start();

            LL_DELETE(me.generations, g);
            me.tp.ops->worker_destroy(g->worker);
            free(g);
            --me.workers;
            watch_end(watch);
        }
    }
}

/* ---- control path ---- */

static void control_send(uint32_t rank, uint32_t kind, uint64_t id, uint64_t reply_to,
                         r2_tp_ep_t *ep)
{
    control_t message = {.kind = kind, .from = me.rank, .id = id, .reply_to = reply_to};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t bytes = 0;

    if (NULL != ep) {
        me.tp.ops->ep_address(ep, message.address, &bytes);
        message.address_bytes = bytes;
    }
    snprintf(to.sun_path, sizeof(to.sun_path), "%s/%u", me.folder, rank);
    /* Lost when the peer is not there: calls are repeated. */
    sendto(me.control, &message, sizeof(message), MSG_DONTWAIT, (struct sockaddr *) &to,
           sizeof(to));
}

/* ---- packets ---- */

static void on_sent(r2_tp_send_t *op, r2_status_t status)
{
    packet_t *packet = r2_container_of(op, packet_t, op);

    (void) status;
    LL_PREPEND(me.spare, packet);
}

/** @return false: no packet to spare, or the lane is broken. */
static bool packet_send(lane_t *lane, uint32_t kind, uint32_t seq, uint32_t bytes, const char *data)
{
    packet_t *packet = me.spare;
    r2_status_t status;

    if (NULL == packet) {
        return false;
    }
    me.spare = packet->next;
    packet->header = (header_t){.magic = MAGIC,
                                .kind = kind,
                                .id = lane->tx_id,
                                .seq = seq,
                                .bytes = bytes,
                                .acked = lane->got};
    packet->op = (r2_tp_send_t){.header = &packet->header,
                                .header_bytes = sizeof(packet->header),
                                .data = 0 == bytes ? NULL : data,
                                .data_bytes = bytes,
                                .sent = on_sent};
    status = me.tp.ops->send(lane->ep, &packet->op);
    if (R2_IN_PROGRESS != status) {
        LL_PREPEND(me.spare, packet);
    }
    lane->failed = lane->failed || status < 0;
    return status >= 0;
}

static void on_failed(void *arg, void *ep_arg, r2_status_t status)
{
    lane_t *lane = ep_arg;

    (void) arg;
    (void) status;
    lane->failed = true;
}

static void on_data(lane_t *lane, const header_t *header, const void *data, size_t data_bytes)
{
    if (header->seq != lane->got || header->bytes != data_bytes || data_bytes > DATA_MAX ||
        (0 != data_bytes && 0 != memcmp(data, me.pattern + header->seq % 251, data_bytes))) {
        ++me.wrong;
    }
    ++lane->got;
    lane->ack_owed = true;
    ++me.delivered;
    me.bytes += data_bytes;
}

static void on_received(void *arg, const void *bytes, size_t header_bytes, const void *data,
                        size_t data_bytes)
{
    lane_t *lane = NULL;
    header_t header;

    (void) arg;
    if (sizeof(header) != header_bytes) {
        ++me.wrong;
        return;
    }
    memcpy(&header, bytes, sizeof(header));
    if (MAGIC != header.magic) {
        ++me.wrong;
        return;
    }
    for (uint32_t i = 0; i < me.ranks; ++i) {
        if (me.lanes[i].state >= WIRING && me.lanes[i].rx_id == header.id) {
            lane = &me.lanes[i];
        }
    }
    if (NULL == lane) {
        ++me.ghosts;
        return;
    }
    lane->hello_seen = lane->hello_seen || HELLO == header.kind;
    lane->hello_owed = lane->hello_owed || HELLO == header.kind;
    lane->hello_acked = lane->hello_acked || HELLO != header.kind;
    if (DATA == header.kind) {
        on_data(lane, &header, data, data_bytes);
    }
    if (lane->acked < header.acked) {
        lane->acked = header.acked;
        lane->progress_ns = me.now_ns;
    }
}

static const r2_tp_callbacks_t callbacks = {.received = on_received, .failed = on_failed};

/* ---- lanes ---- */

static void lane_enter(lane_t *lane, state_t state)
{
    lane->state = state;
    lane->since_ns = lane->progress_ns = me.now_ns;
}

void lane_close(lane_t *lane, bool tell)
{
    if (NULL != lane->ep) {
        watch_t watch = watch_start();

        me.tp.ops->ep_close(lane->ep);
        watch_end(watch);
        if (NULL != lane->buffer) {
            munmap(lane->buffer, BUFFER_BYTES);
        }
        lane->buffer = NULL;
        lane->ep = NULL;
        if (tell && lane->state >= WIRING) {
            control_send(lane->rank, NOTICE, 0, lane->tx_id, NULL);
        }
    }
    if (NULL != lane->generation) {
        --lane->generation->users;
        lane->generation = NULL;
    }
    lane_enter(lane, DOWN);
    lane->failed = false;
    lane->retry_ns = me.now_ns + RETRY_NS + random_u64() % RETRY_NS;
}

static bool has_carrier(void)
{
    char text[4] = "";
    FILE *file = fopen(me.carrier, "r");

    if (NULL != file) {
        if (NULL == fgets(text, sizeof(text), file)) {
            text[0] = '\0';
        }
        fclose(file);
    }
    return '1' == text[0];
}

/** Opens an endpoint to be offered, on a worker that has not served this peer. */
static bool lane_offer(lane_t *lane)
{
    lane->generation = has_carrier() ? generation_get(lane->rank) : NULL;
    if (NULL == lane->generation) {
        return false;
    }
    if (R2_OK != me.tp.ops->ep_open(lane->generation->worker, lane, &lane->ep)) {
        --lane->generation->users;
        lane->generation = NULL;
        lane->ep = NULL;
        return false;
    }
    lane->rx_id = random_u64();
    return true;
}

static void lane_call(lane_t *lane)
{
    if (!lane_offer(lane)) {
        lane->retry_ns = me.now_ns + RETRY_NS;
        return;
    }
    control_send(lane->rank, CALL, lane->rx_id, 0, lane->ep);
    lane_enter(lane, CALLING);
}

/** Connects the endpoint and says HELLO. The lane has made its offer. */
static void lane_wire(lane_t *lane, const control_t *message)
{
    watch_t watch = watch_start();
    r2_status_t status;

    lane->generation->served |= 1u << lane->rank;
    status = me.tp.ops->ep_connect(lane->ep, message->address, message->address_bytes);
    watch_end(watch);
    if (R2_OK != status) {
        lane_close(lane, false);
        return;
    }
    lane->buffer =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == lane->buffer) {
        abort();
    }
    memcpy(lane->buffer, me.pattern, BUFFER_BYTES);
    lane->tx_id = message->id;
    lane->hello_seen = lane->hello_acked = lane->hello_owed = lane->ack_owed = false;
    lane->sent = lane->acked = lane->got = 0;
    lane_enter(lane, WIRING);
    packet_send(lane, HELLO, 0, 0, NULL);
}

static void lane_answer(lane_t *lane, const control_t *message)
{
    if (CALLING == lane->state) {
        return; /* the lower rank calls */
    }
    lane_close(lane, false);
    if (!lane_offer(lane)) {
        return;
    }
    control_send(lane->rank, ANSWER, lane->rx_id, message->id, lane->ep);
    lane_wire(lane, message);
}

void control_receive(void)
{
    control_t message;

    while (sizeof(message) == recv(me.control, &message, sizeof(message), MSG_DONTWAIT)) {
        lane_t *lane = &me.lanes[message.from % RANKS_MAX];

        if (CALL == message.kind) {
            lane_answer(lane, &message);
        } else if (ANSWER == message.kind && CALLING == lane->state &&
                   message.reply_to == lane->rx_id) {
            lane_wire(lane, &message);
        } else if (NOTICE == message.kind && lane->state >= WIRING &&
                   message.reply_to == lane->rx_id) {
            ++me.notices;
            lane_close(lane, false);
        }
    }
}

static void lane_load(lane_t *lane)
{
    while (lane->sent - lane->acked < WINDOW) {
        uint32_t bytes = 0 == random_u64() % 3 ? (uint32_t) (random_u64() % 200)
                                               : (uint32_t) (random_u64() % (DATA_MAX + 1));

        if (!packet_send(lane, DATA, lane->sent, bytes, lane->buffer + lane->sent % 251)) {
            return;
        }
        lane->ack_owed = false;
        ++lane->sent;
    }
}

static void lane_step(lane_t *lane)
{
    bool late;

    if (lane->failed) {
        ++me.failures;
        lane_close(lane, true);
        return;
    }
    if (lane->hello_owed && packet_send(lane, HELLO_ACK, 0, 0, NULL)) {
        lane->hello_owed = false;
    }
    if (WIRING == lane->state && lane->hello_seen && lane->hello_acked) {
        lane_enter(lane, UP);
        ++me.ups;
    }
    if (UP == lane->state) {
        lane_load(lane);
    }
    if (lane->ack_owed && packet_send(lane, ACK, 0, 0, NULL)) {
        lane->ack_owed = false;
    }
    late = UP == lane->state && me.now_ns - lane->progress_ns > SILENCE_NS;
    if (late || (WIRING == lane->state && me.now_ns - lane->since_ns > WIRING_NS)) {
        me.timeouts += late;
        me.wiring += !late;
        lane_close(lane, true);
    }
}

void lane_turn(lane_t *lane)
{
    switch (lane->state) {
    case DOWN:
        if (me.rank < lane->rank && me.now_ns >= lane->retry_ns) {
            lane_call(lane);
        }
        break;
    case CALLING:
        if (me.now_ns - lane->since_ns > CALL_NS) {
            lane_close(lane, false);
        }
        break;
    case WIRING:
    case UP:
        lane_step(lane);
        break;
    }
}
