/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A node: one worker of a transport, and what the transport does with it.
 */
#include "r2_config.h"

#include "node.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

#define MAGIC 0x636c6f73u

#ifdef __SANITIZE_ADDRESS__
/* UCX 1.13 loses about 100 bytes of settings with each device. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libuct.so";
}
#endif

node_self_t me;

void complain(const char *format, ...)
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
    for (uint32_t i = 0; i < CLOSING_LANES; ++i) {
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
    ++lane->got;
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

const r2_tp_callbacks_t node_callbacks = {.received = on_received, .failed = on_failed};

static lane_t *lane_of(const slot_t *slot, size_t *idx_p)
{
    for (uint32_t i = 0; i < CLOSING_LANES; ++i) {
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
    --lane->under_way;
    if (PROGRESS == me.inside) {
        if (status < 0 && !lane->failed && R2_ERR_CANCELED == status) {
            complain("canceled in progress on a lane that nobody has closed");
        }
        memset(slot, POISON, sizeof(*slot));
    } else if (CLOSE == me.inside && R2_ERR_CANCELED == status) {
        ++lane->canceled; /* its memory is free when close has returned */
    } else {
        complain("sent(%d) %s", status, CLOSE == me.inside ? "inside close" : "out of the blue");
    }
}

unsigned turn(void)
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

bool send_one(lane_t *lane, size_kind_t size, r2_prng_t *prng)
{
    static const uint32_t sizes[] = {8, 4000, CLOSING_DATA_MAX, 0, 200, 65536};
    const uint32_t bytes =
        sizes[SIZE_MIXED == size ? r2_prng_below(prng, r2_array_count(sizes)) : (uint64_t) size];
    uint32_t idx = 0;
    slot_t *slot;
    r2_status_t status;

    while (idx < SLOTS && lane->busy[idx]) {
        ++idx;
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
        ++lane->under_way;
    } else {
        memset(slot, POISON, sizeof(*slot) - sizeof(slot->data) + bytes);
    }
    lane->sent += status >= 0;
    return status >= 0;
}

static void start(const closing_transport_t *transport, const char *device)
{
    r2_tp_device_config_t config = {.name = device,
                                    .segment_bytes = CLOSING_DATA_MAX + sizeof(header_t)};

    me.awake = NULL == device;
    mallopt(M_PERTURB, POISON); /* freed memory shows, if it is used */
    me.pattern = malloc(CLOSING_DATA_MAX + 256);
    for (uint32_t i = 0; NULL != me.pattern && i < CLOSING_DATA_MAX + 256; ++i) {
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
