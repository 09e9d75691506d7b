/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How a node does what it is told.
 */
#include "r2_config.h"

#include "../open_files.h"
#include "node.h"

#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MESSAGES_MAX 200000 /* of one FILL */
#define STAY_TURNS   20     /* what stays under way for so long is stuck */
#define REST_TURNS   6000
#define REST_NAP_US  1000
#define BUSY_TURNS   1000 /* before naps */

/* ---- what differs between transports ---- */

static r2_status_t lane_address(lane_t *lane, char *address_p, size_t *bytes_p)
{
    r2_status_t status = me.tp.ops->ep_open(me.worker, lane, &lane->ep);

    return R2_OK == status ? me.tp.ops->ep_address(lane->ep, address_p, bytes_p) : status;
}

static r2_status_t lane_connect(lane_t *lane, const order_t *order)
{
    return me.tp.ops->ep_connect(lane->ep, order->address, order->address_bytes);
}

/* ---- orders ---- */

/** Progresses, and naps when there is nothing to do for long: peers need the processor, too. */
static void turn_politely(uint64_t *turns)
{
    *turns = 0 == turn() ? *turns + 1 : 0;
    if (*turns > BUSY_TURNS) {
        usleep(REST_NAP_US);
    }
}

static void obey_open(lane_t *lane, const order_t *order, answer_t *answer)
{
    if (NULL == me.worker &&
        R2_OK != me.tp.ops->worker_create(me.device, &node_callbacks, &me, &me.worker)) {
        complain("no worker");
        return;
    }
    if (NULL != lane->slots) {
        munmap(lane->slots, SLOTS * sizeof(slot_t));
    }
    memset(lane, 0, sizeof(*lane));
    lane->slots = mmap(NULL, SLOTS * sizeof(slot_t), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lane->rx_id = order->id;
    if (MAP_FAILED == lane->slots ||
        R2_OK != lane_address(lane, answer->address, &answer->address_bytes)) {
        complain("no memory or no address");
    }
}

/** Until `count` messages are stuck: the pipe is full, most likely in the middle of a message. */
static void obey_fill(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint32_t messages = 0;
    bool good = true;
    r2_prng_t prng;

    (void) answer;
    r2_prng_seed(&prng, order->seed);
    while (good && lane->under_way < order->count && messages < MESSAGES_MAX) {
        while (good && lane->under_way < order->count && messages++ < MESSAGES_MAX) {
            good = send_one(lane, order->size, &prng);
        }
        for (int i = 0; i < STAY_TURNS; ++i) {
            turn();
        }
    }
    if (good && lane->under_way < order->count) {
        complain("%u messages did not fill a lane whose peer does not read", messages);
    }
}

/** The worker comes to rest: its owner may sleep, and is not woken at once. */
static void obey_rest(lane_t *lane, const order_t *order, answer_t *answer)
{
    struct pollfd input = {.events = POLLIN};
    uint32_t events = 0, again = 0, woken = 0;

    (void) lane;
    (void) order;
    (void) answer;
    for (int i = 0; i < REST_TURNS && NULL != me.worker; ++i) {
        if (me.awake && 0 != me.lanes[0].under_way && i > BUSY_TURNS) {
            return;
        }
        if (0 != turn()) {
            ++events;
        } else if (R2_OK != me.tp.ops->worker_arm(me.worker)) {
            ++again;
        } else {
            input.fd = me.tp.ops->worker_fd(me.worker);
            if (0 == poll(&input, 1, 0)) {
                return;
            }
            ++woken;
        }
        if (i > BUSY_TURNS) {
            usleep(REST_NAP_US);
        }
    }
    if (NULL != me.worker) {
        complain("spins: events in %u turns, not armed after %u, woken after %u", events, again,
                 woken);
    }
}

/** Nothing is under way any more, and the memory is ours. */
static void lane_closed(lane_t *lane)
{
    lane->open = false;
    if (0 != lane->under_way) {
        complain("%u sends are not done when close has returned", lane->under_way);
    }
    if (me.unmap) {
        munmap(lane->slots, SLOTS * sizeof(slot_t));
        lane->slots = NULL;
    } else {
        memset(lane->slots, POISON, SLOTS * sizeof(slot_t));
    }
    me.unmap = !me.unmap;
}

static void obey_close(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint32_t under_way = lane->under_way;

    (void) order;
    (void) answer;
    if (NULL == lane->ep) {
        return; /* never opened */
    }
    me.inside = CLOSE;
    me.tp.ops->ep_close(lane->ep);
    me.inside = NOWHERE;
    lane->ep = NULL;
    if (!lane->open) {
        return; /* never connected */
    }
    if (lane->canceled > under_way) {
        complain("%u of %u sends canceled", lane->canceled, under_way);
    }
    lane_closed(lane);
}

static void obey_destroy(lane_t *lane, const order_t *order, answer_t *answer)
{
    (void) lane;
    (void) order;
    (void) answer;
    if (NULL == me.worker) {
        return;
    }
    me.inside = CLOSE;
    me.tp.ops->worker_destroy(me.worker);
    me.inside = NOWHERE;
    me.worker = NULL;
    for (uint32_t i = 0; i < CLOSING_LANES; ++i) {
        me.lanes[i].ep = NULL;
        if (me.lanes[i].open) {
            lane_closed(&me.lanes[i]);
        }
    }
}

static void obey_connect(lane_t *lane, const order_t *order, answer_t *answer)
{
    (void) answer;
    lane->tx_id = order->id;
    lane->open = R2_OK == lane_connect(lane, order);
    lane->failed = !lane->open; /* may be: the other end has gone */
}

static void obey_send(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint32_t count = 0;
    r2_prng_t prng;

    (void) answer;
    r2_prng_seed(&prng, order->seed);
    while (count < order->count && send_one(lane, order->size, &prng)) {
        ++count;
    }
}

static void obey_turn(lane_t *lane, const order_t *order, answer_t *answer)
{
    (void) lane;
    (void) answer;
    for (uint32_t i = 0; i < order->count; ++i) {
        turn();
    }
}

static void obey_await(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint64_t turns = 0;

    (void) answer;
    while ((lane->got < order->count || 0 != lane->under_way) && !lane->failed) {
        turn_politely(&turns);
    }
}

static void obey_failed(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint64_t turns = 0;

    (void) order;
    (void) answer;
    while (!lane->failed) {
        turn_politely(&turns);
    }
}

static void obey_count(lane_t *lane, const order_t *order, answer_t *answer)
{
    (void) lane;
    (void) order;
    answer->descriptors = open_files();
    answer->heap_bytes = mallinfo2().uordblks;
}

static void obey_leave(lane_t *lane, const order_t *order, answer_t *answer)
{
    obey_destroy(lane, order, answer);
    me.tp.ops->device_close(me.device);
    for (uint32_t i = 0; i < CLOSING_LANES; ++i) {
        if (NULL != me.lanes[i].slots) {
            munmap(me.lanes[i].slots, SLOTS * sizeof(slot_t));
        }
    }
}

static void (*const handlers[])(lane_t *lane, const order_t *order, answer_t *answer) = {
    [VERB_OPEN] = obey_open,       [VERB_CONNECT] = obey_connect, [VERB_SEND] = obey_send,
    [VERB_FILL] = obey_fill,       [VERB_TURN] = obey_turn,       [VERB_AWAIT] = obey_await,
    [VERB_FAILED] = obey_failed,   [VERB_REST] = obey_rest,       [VERB_CLOSE] = obey_close,
    [VERB_DESTROY] = obey_destroy, [VERB_COUNT] = obey_count,     [VERB_LEAVE] = obey_leave,
};

void obey(const order_t *order, answer_t *answer)
{
    lane_t *lane = &me.lanes[order->lane];

    handlers[order->verb](lane, order, answer);
    answer->failed = lane->failed;
    answer->under_way = lane->under_way;
    answer->sent = lane->sent;
    answer->got = lane->got;
}
