/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two ends of a transport in one process.
 */
#include "r2_config.h"

#include "tp_sides.h"

#ifdef __SANITIZE_ADDRESS__
/* UCX 1.13 loses about 100 bytes of settings with each context. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libuct.so";
}
#endif

r2_tp_t tp;
const char *device_name;
const char *device_tls;
unsigned char *pattern;
char self_path[4096];

static void on_received(void *arg, const void *header, size_t header_bytes, const void *data,
                        size_t data_bytes)
{
    side_t *side = arg;
    header_t h;

    if (sizeof(h) != header_bytes) {
        ++side->wrong;
        return;
    }
    memcpy(&h, header, sizeof(h));
    if (h.bytes != data_bytes ||
        (0 != data_bytes && 0 != memcmp(data, pattern + h.number % 251, data_bytes))) {
        ++side->wrong;
    }
    side->landed += NULL != data && data == side->landing;
    side->aligned += data_bytes >= 50000 && 0 == (uintptr_t) data % 64;
    ++side->received;
    side->last = h.number;
    side->owed += side->echo;
}

static void *on_land(void *arg, const void *header, size_t header_bytes, size_t data_bytes)
{
    side_t *side = arg;
    header_t h;

    assert_int_equal(sizeof(h), header_bytes);
    memcpy(&h, header, sizeof(h));
    assert_int_equal(h.bytes, data_bytes);
    if (NULL == side->landing || 0 == h.number % 2) {
        return NULL;
    }
    ++side->landings;
    return side->landing;
}

static void on_failed(void *arg, void *ep_arg, r2_status_t status)
{
    side_t *side = arg;

    assert_true(status < 0);
    ++side->failed;
    side->failed_arg = ep_arg;
}

static bool on_takes_more(void *arg)
{
    return ((side_t *) arg)->takes_more;
}

const r2_tp_callbacks_t callbacks = {.received = on_received,
                                     .land = on_land,
                                     .takes_more = on_takes_more,
                                     .failed = on_failed};

static void on_sent(r2_tp_send_t *op, r2_status_t status)
{
    packet_t *packet = r2_container_of(op, packet_t, op);

    assert_false(packet->done);
    packet->done = true;
    packet->status = status;
}

r2_status_t packet_send(packet_t *packet, side_t *side, uint32_t number, uint32_t bytes,
                        const void *data)
{
    return packet_send_part(packet, side, number, bytes, data, NULL);
}

r2_status_t packet_send_part(packet_t *packet, side_t *side, uint32_t number, uint32_t bytes,
                             const void *data, const r2_tp_memory_t *whole)
{
    r2_status_t status;

    memset(packet, 0, sizeof(*packet));
    packet->header.number = number;
    packet->header.bytes = bytes;
    packet->op = (r2_tp_send_t){.header = &packet->header,
                                .header_bytes = sizeof(packet->header),
                                .data = 0 == bytes ? NULL : data,
                                .data_bytes = bytes,
                                .memory = whole,
                                .sent = on_sent};
    status = tp.ops->send(side->ep, &packet->op);
    if (R2_IN_PROGRESS != status) {
        packet->done = true;
        packet->status = status;
    }
    return status;
}

void packet_wait(const packet_t *packet, side_t *side)
{
    const uint64_t end_ns = now_ns() + 10 * R2_NS_PER_S;

    while (!packet->done && now_ns() < end_ns) {
        tp.ops->worker_progress(side->worker);
    }
    assert_true(packet->done);
}

uint64_t now_ns(void)
{
    return r2_now_ns(r2_clock_system());
}

void side_open(side_t *side)
{
    r2_tp_device_config_t config = {
        .name = device_name, .tls = device_tls, .segment_bytes = SEGMENT_MAX,
        .gid_index = -1};

    memset(side, 0, sizeof(*side));
    assert_int_equal(tp.ops->device_open(tp.instance, &config, &side->device), R2_OK);
    assert_int_equal(tp.ops->worker_create(side->device, &callbacks, side, &side->worker), R2_OK);
}

void side_close(side_t *side)
{
    tp.ops->worker_destroy(side->worker);
    tp.ops->device_close(side->device);
}

void side_offer(side_t *side)
{
    assert_int_equal(tp.ops->ep_open(side->worker, side, &side->ep), R2_OK);
}

void side_join(side_t *from, const side_t *to)
{
    char address[R2_TP_ADDRESS_MAX];
    size_t bytes;

    assert_int_equal(tp.ops->ep_address(to->ep, address, &bytes), R2_OK);
    assert_int_equal(tp.ops->ep_connect(from->ep, address, bytes), R2_OK);
}

void side_connect(side_t *a, side_t *b)
{
    side_offer(a);
    side_offer(b);
    side_join(a, b);
    side_join(b, a);
}

bool progress_until(side_t *a, side_t *b, const uint32_t *count, uint32_t target)
{
    uint64_t end_ns = now_ns() + 10 * R2_NS_PER_S;

    while (*count < target && now_ns() < end_ns) {
        tp.ops->worker_progress(a->worker);
        if (NULL != b) {
            tp.ops->worker_progress(b->worker);
        }
    }
    return *count >= target;
}

void pair_open(side_t *a, side_t *b)
{
    const char *name = device_name;
    packet_t hello[2];

    side_open(a);
    device_name = NULL == device_tls ? name : "soft1:1"; /* within one NIC there are no packets */
    side_open(b);
    device_name = name;
    side_connect(a, b);
    assert_true(packet_send(&hello[0], a, 0, 0, NULL) >= 0);
    assert_true(packet_send(&hello[1], b, 0, 0, NULL) >= 0);
    assert_true(progress_until(a, b, &a->received, 1));
    assert_true(progress_until(a, b, &b->received, 1));
    a->received = b->received = 0;
}

void pair_close(side_t *a, side_t *b)
{
    assert_int_equal(a->wrong + b->wrong, 0);
    side_close(a);
    side_close(b);
}
