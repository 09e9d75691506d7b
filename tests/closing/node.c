/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A node: obeys orders with one worker of a transport, and watches what the transport does.
 */
#include "r2_config.h"

#include "closing.h"

#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "base/util.h"

#define SLOTS        48
#define POISON       0xdb
#define MESSAGES_MAX 200000 /* of one FILL */
#define STAY_TURNS   20     /* what stays under way for so long is stuck */
#define REST_TURNS   6000
#define REST_NAP_US  1000
#define BUSY_TURNS   1000 /* before naps */
#define MAGIC        0x636c6f73u

/** Header of a message, as long as those of the product. */
typedef struct header {
    uint32_t magic, seq;
    uint64_t id;
    uint32_t bytes, pad[17];
} header_t;

static_assert(88 == sizeof(header_t), "the product's");

/** A message on its way, with the memory that the transport reads. */
typedef struct slot {
    r2_tp_send_t op;
    header_t header;
    char data[CLOSING_DATA_MAX];
} slot_t;

typedef struct lane {
    r2_tp_ep_t *ep; /* owned */
    bool open, failed;
    uint64_t rx_id, tx_id;
    uint32_t sent, got, under_way;
    uint32_t canceled; /* inside close */
    slot_t *slots;     /* owned: mapped while the lane is open, or poisoned after it */
    bool busy[SLOTS];
} lane_t;

/** Where the transport is: which callbacks it may make. */
typedef enum inside { NOWHERE, PROGRESS, CLOSE, OTHER } inside_t;

static struct {
    r2_tp_t tp;
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    lane_t lanes[CLOSING_LANES];
    inside_t inside;
    char *pattern; /* owned: data of message n starts at n % 251 */
    char complaint[200];
    bool unmap; /* memory of a closed lane, or else fill it */
} me;

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
    va_list args;

    if ('\0' == me.complaint[0]) { /* the first one is the cause */
        va_start(args, format);
        vsnprintf(me.complaint, sizeof(me.complaint), format, args);
        va_end(args);
    }
}

/* ---- upcalls ---- */

static void on_received(void *arg, const void *bytes, size_t header_bytes, const void *data,
                        size_t data_bytes)
{
    lane_t *lane = NULL;
    header_t h;

    (void) arg;
    if (PROGRESS != me.inside) {
        complain("received outside of progress");
    }
    if (sizeof(h) != header_bytes) {
        complain("header of %zu bytes", header_bytes);
        return;
    }
    memcpy(&h, bytes, sizeof(h));
    for (uint32_t i = 0; i < CLOSING_LANES; i++) {
        /* A closed lane may still deliver: a ghost, which must be whole and right. */
        lane = h.id == me.lanes[i].rx_id ? &me.lanes[i] : lane;
    }
    if (MAGIC != h.magic || NULL == lane) {
        complain("garbled header: magic %x, id %llx", h.magic, (unsigned long long) h.id);
        return;
    }
    if (h.seq != lane->got) {
        complain("message %u instead of %u", h.seq, lane->got);
    }
    if (h.bytes != data_bytes || data_bytes > CLOSING_DATA_MAX ||
        (0 != data_bytes && 0 != memcmp(data, me.pattern + h.seq % 251, data_bytes))) {
        complain("message %u of %u bytes is garbled", h.seq, h.bytes);
    }
    lane->got++;
}

static void on_failed(void *arg, void *ep_arg, r2_status_t status)
{
    lane_t *lane = ep_arg;

    (void) arg;
    if (PROGRESS != me.inside || status >= 0) {
        complain("failed(%d) %s", status, PROGRESS == me.inside ? "" : "outside of progress");
    }
    if (!lane->open || lane->failed) {
        complain("%s lane failed", lane->open ? "a failed" : "a closed");
    }
    lane->failed = true;
}

static const r2_tp_callbacks_t callbacks = {.received = on_received, .failed = on_failed};

static lane_t *lane_of(const slot_t *slot, size_t *idx_p)
{
    for (uint32_t i = 0; i < CLOSING_LANES; i++) {
        lane_t *lane = &me.lanes[i];

        if (NULL != lane->slots && slot >= lane->slots && slot < lane->slots + SLOTS) {
            *idx_p = (size_t) (slot - lane->slots);
            return lane;
        }
    }
    return NULL;
}

static void on_sent(r2_tp_send_t *op, r2_status_t status)
{
    slot_t *slot = r2_container_of(op, slot_t, op);
    size_t idx;
    lane_t *lane = lane_of(slot, &idx);

    if (NULL == lane || !lane->busy[idx]) {
        complain("sent(%d) for what is not under way", status);
        return;
    }
    lane->busy[idx] = false;
    lane->under_way--;
    if (PROGRESS == me.inside) {
        if (status < 0 && !lane->failed && R2_ERR_CANCELED == status) {
            complain("canceled in progress on a lane that nobody has closed");
        }
        memset(slot, POISON, sizeof(*slot));
    } else if (CLOSE == me.inside && R2_ERR_CANCELED == status) {
        lane->canceled++; /* its memory is free when close has returned */
    } else {
        complain("sent(%d) %s", status, CLOSE == me.inside ? "inside close" : "out of the blue");
    }
}

/* ---- what differs between transports ---- */

static r2_status_t lane_address(const lane_t *lane, char *address_p, size_t *bytes_p)
{
    (void) lane;
    return me.tp.ops->worker_address(me.worker, address_p, bytes_p);
}

static r2_status_t lane_connect(lane_t *lane, const order_t *order)
{
    return me.tp.ops->ep_create(me.worker, order->address, order->address_bytes, lane, &lane->ep);
}

/* ---- orders ---- */

static unsigned turn(void)
{
    unsigned events;

    if (NULL == me.worker) {
        return 0;
    }
    me.inside = PROGRESS;
    events = me.tp.ops->worker_progress(me.worker);
    me.inside = NOWHERE;
    return events;
}

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
        R2_OK != me.tp.ops->worker_create(me.device, &callbacks, &me, &me.worker)) {
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

/** Sends one message. @return false: no slot is left, or the lane is broken. */
static bool send_one(lane_t *lane, size_kind_t size, r2_prng_t *prng)
{
    static const uint32_t sizes[] = {8, 4000, CLOSING_DATA_MAX, 0, 200, 65536};
    const uint32_t bytes =
        sizes[SIZE_MIXED == size ? r2_prng_below(prng, r2_array_count(sizes)) : (uint64_t) size];
    uint32_t idx = 0;
    slot_t *slot;
    r2_status_t status;

    while (idx < SLOTS && lane->busy[idx]) {
        idx++;
    }
    if (SLOTS == idx || lane->failed) {
        return false;
    }
    slot = &lane->slots[idx];
    slot->header = (header_t){.magic = MAGIC, .seq = lane->sent, .id = lane->tx_id, .bytes = bytes};
    memcpy(slot->data, me.pattern + lane->sent % 251, bytes);
    slot->op = (r2_tp_send_t){.header = &slot->header,
                              .header_bytes = sizeof(slot->header),
                              .data = 0 == bytes ? NULL : slot->data,
                              .data_bytes = bytes,
                              .sent = on_sent};
    me.inside = OTHER;
    status = me.tp.ops->send(lane->ep, &slot->op);
    me.inside = NOWHERE;
    if (R2_IN_PROGRESS == status) {
        lane->busy[idx] = true;
        lane->under_way++;
    } else {
        memset(slot, POISON, sizeof(*slot) - sizeof(slot->data) + bytes);
    }
    lane->sent += status >= 0;
    return status >= 0;
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
        for (int i = 0; i < STAY_TURNS; i++) {
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
    for (int i = 0; i < REST_TURNS && NULL != me.worker; i++) {
        if (0 != turn()) {
            events++;
        } else if (R2_OK != me.tp.ops->worker_arm(me.worker)) {
            again++;
        } else {
            input.fd = me.tp.ops->worker_fd(me.worker);
            if (0 == poll(&input, 1, 0)) {
                return;
            }
            woken++;
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
    if (!lane->open) {
        return; /* never connected */
    }
    me.inside = CLOSE;
    me.tp.ops->ep_close(lane->ep);
    me.inside = NOWHERE;
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
    for (uint32_t i = 0; i < CLOSING_LANES; i++) {
        if (me.lanes[i].open) {
            lane_closed(&me.lanes[i]);
        }
    }
}

static uint32_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (NULL != folder && NULL != readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

static void obey_connect(lane_t *lane, const order_t *order, answer_t *answer)
{
    (void) answer;
    lane->tx_id = order->id;
    lane->open = R2_OK == lane_connect(lane, order);
    if (!lane->open) {
        complain("cannot connect");
    }
}

static void obey_send(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint32_t count = 0;
    r2_prng_t prng;

    (void) answer;
    r2_prng_seed(&prng, order->seed);
    while (count < order->count && send_one(lane, order->size, &prng)) {
        count++;
    }
}

static void obey_turn(lane_t *lane, const order_t *order, answer_t *answer)
{
    (void) lane;
    (void) answer;
    for (uint32_t i = 0; i < order->count; i++) {
        turn();
    }
}

static void obey_await(lane_t *lane, const order_t *order, answer_t *answer)
{
    uint64_t turns = 0;

    (void) answer;
    while (lane->got < order->count && !lane->failed) {
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
    answer->descriptors = count_descriptors();
    answer->heap_bytes = mallinfo2().uordblks;
}

static void obey_leave(lane_t *lane, const order_t *order, answer_t *answer)
{
    obey_destroy(lane, order, answer);
    me.tp.ops->device_close(me.device);
    for (uint32_t i = 0; i < CLOSING_LANES; i++) {
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

static void obey(const order_t *order, answer_t *answer)
{
    lane_t *lane = &me.lanes[order->lane];

    handlers[order->verb](lane, order, answer);
    answer->failed = lane->failed;
    answer->under_way = lane->under_way;
    answer->sent = lane->sent;
    answer->got = lane->got;
}

static void start(const closing_transport_t *transport, const char *device)
{
    r2_tp_device_config_t config = {.name = device,
                                    .segment_bytes = CLOSING_DATA_MAX + sizeof(header_t)};

    mallopt(M_PERTURB, POISON); /* freed memory shows, if it is used */
    me.pattern = malloc(CLOSING_DATA_MAX + 256);
    for (uint32_t i = 0; NULL != me.pattern && i < CLOSING_DATA_MAX + 256; i++) {
        me.pattern[i] = (char) (i * 2654435761u >> 13);
    }
    if (NULL == me.pattern || R2_OK != transport->create(&me.tp) ||
        R2_OK != me.tp.ops->device_open(me.tp.instance, &config, &me.device)) {
        fprintf(stderr, "cannot open %s on %s\n", transport->name, NULL == device ? "-" : device);
        exit(2);
    }
}

void closing_node(const closing_transport_t *transport, const char *device, int socket)
{
    order_t order;

    start(transport, device);
    do {
        answer_t answer = {.complaint = ""};

        if (sizeof(order) != recv(socket, &order, sizeof(order), 0)) {
            exit(3); /* the director is gone */
        }
        obey(&order, &answer);
        memcpy(answer.complaint, me.complaint, sizeof(answer.complaint));
        if (sizeof(answer) != send(socket, &answer, sizeof(answer), MSG_NOSIGNAL)) {
            exit(3);
        }
    } while (VERB_LEAVE != order.verb);
    transport->destroy(&me.tp);
    free(me.pattern);
    exit(0);
}
