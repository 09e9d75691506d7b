/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Guards, poison, planted errors and validation of the benchmarks' buffers.
 */
#include "r2_config.h"

#include "payload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD_BYTES = 4096, /* before and behind each buffer: also its alignment */
    POISON = 0xa5,      /* of guards and of receive buffers before the call */
    MAX_COMPLAINTS = 3, /* of one rank and size */
};

static bool buffer_init(r2_bench_buffer_t *buffer, size_t bytes)
{
    size_t all_bytes = bytes + 2 * (size_t) GUARD_BYTES;
    void *memory = NULL;

    if (0 != posix_memalign(&memory, GUARD_BYTES, all_bytes)) {
        return false;
    }
    buffer->memory = memory;
    buffer->data = buffer->memory + GUARD_BYTES;
    buffer->bytes = bytes;
    memset(buffer->memory, POISON, all_bytes);
    return true;
}

static void buffer_fini(r2_bench_buffer_t *buffer)
{
    free(buffer->memory);
    buffer->memory = NULL;
}

static bool guard_is_whole(const unsigned char *guard)
{
    for (size_t i = 0; i < GUARD_BYTES; ++i) {
        if (POISON != guard[i]) {
            return false;
        }
    }
    return true;
}

static void poison_guards(r2_bench_buffer_t *buffer)
{
    memset(buffer->memory, POISON, GUARD_BYTES);
    memset(buffer->data + buffer->bytes, POISON, GUARD_BYTES);
}

static bool guards_are_whole(const r2_bench_buffer_t *buffer)
{
    return guard_is_whole(buffer->memory) && guard_is_whole(buffer->data + buffer->bytes);
}

bool r2_bench_payload_init(r2_bench_payload_t *payload, const r2_bench_ops_t *ops,
                           const r2_bench_options_t *options, const r2_bench_data_t *data, int rank,
                           size_t bytes)
{
    size_t unit = r2_bench_type_bytes(options->type);

    memset(payload, 0, sizeof(*payload));
    payload->ops = ops;
    payload->options = options;
    payload->data = data;
    payload->rank = rank;
    payload->size_bytes = bytes;
    payload->counts = calloc((size_t) data->ranks, sizeof(*payload->counts));
    if (NULL == payload->counts) {
        return false;
    }
    payload->shape.counts = payload->counts;
    ops->shape(bytes / unit, data->ranks, rank, &payload->shape);
    if (!buffer_init(&payload->send, payload->shape.send_count * unit) ||
        !buffer_init(&payload->recv, payload->shape.recv_count * unit)) {
        r2_bench_payload_fini(payload);
        return false;
    }
    return true;
}

void r2_bench_payload_fini(r2_bench_payload_t *payload)
{
    buffer_fini(&payload->send);
    buffer_fini(&payload->recv);
    free(payload->counts);
    payload->counts = NULL;
}

/* With -c and --digest, they take turns: the sums of rounding data are not known beforehand. */
static bool is_rounding(const r2_bench_payload_t *payload, uint64_t turn)
{
    return payload->options->digest && (!payload->options->validate || 1 == turn % 2);
}

void r2_bench_payload_prepare(r2_bench_payload_t *payload, uint64_t turn)
{
    r2_bench_data_fill(payload->data, payload->send.data, payload->shape.send_count, payload->rank,
                       turn, is_rounding(payload, turn));
    memset(payload->recv.data, POISON, payload->recv.bytes);
}

/* The defect of --plant-error, on the last rank in the second iteration. */
static void plant(const r2_bench_payload_t *payload, uint64_t turn)
{
    size_t unit = r2_bench_type_bytes(payload->options->type);

    if (1 != turn || payload->rank != payload->data->ranks - 1 || payload->recv.bytes < unit) {
        return;
    }
    switch (payload->options->plant) {
    case R2_BENCH_PLANT_NONE:
        break;
    case R2_BENCH_PLANT_SUM:
        payload->recv.data[payload->recv.bytes / 2 / unit * unit] ^= 1;
        break;
    case R2_BENCH_PLANT_HOLE:
        memset(payload->recv.data + payload->recv.bytes - unit, POISON, unit);
        break;
    case R2_BENCH_PLANT_SEND:
        payload->send.data[0] ^= 1;
        break;
    case R2_BENCH_PLANT_GUARD:
        payload->recv.data[payload->recv.bytes] ^= 1;
        break;
    }
}

/* Checks the receive buffer. @return true if it is right, else *wrong_p is set. */
static bool check_result(const r2_bench_payload_t *payload, uint64_t turn,
                         r2_bench_wrong_t *wrong_p)
{
    size_t unit = r2_bench_type_bytes(payload->options->type);
    size_t count = payload->shape.send_count;

    if (R2_BENCH_SUM == payload->ops->result) {
        return is_rounding(payload, turn) ||
               r2_bench_data_check_sum(payload->data, payload->recv.data, payload->shape.first,
                                       payload->shape.recv_count, turn, wrong_p);
    }
    for (int r = 0; r < payload->data->ranks; ++r) {
        const unsigned char *part = payload->recv.data + (size_t) r * count * unit;

        if (!r2_bench_data_check_sent(payload->data, part, count, r, turn,
                                      is_rounding(payload, turn), wrong_p)) {
            wrong_p->element += (size_t) r * count;
            return false;
        }
    }
    return true;
}

static void complain(r2_bench_payload_t *payload, uint64_t turn, const char *text)
{
    if (payload->complaints++ < MAX_COMPLAINTS) {
        fprintf(stderr, "%s: rank %d, %zu bytes, iteration %" PRIu64 ": %s\n",
                payload->ops->program, payload->rank, payload->size_bytes, turn, text);
    }
}

/* Checks everything about one iteration. */
static void validate(r2_bench_payload_t *payload, uint64_t turn)
{
    r2_bench_wrong_t wrong = {0};
    char text[160];
    bool right = true;

    if (!check_result(payload, turn, &wrong)) {
        snprintf(text, sizeof(text), "element %zu of the result is %.9g, expected %.9g",
                 wrong.element, wrong.got, wrong.expected);
        complain(payload, turn, text);
        right = false;
    }
    if (!r2_bench_data_check_sent(payload->data, payload->send.data, payload->shape.send_count,
                                  payload->rank, turn, is_rounding(payload, turn), &wrong)) {
        snprintf(text, sizeof(text), "element %zu of the send buffer was changed from %.9g to %.9g",
                 wrong.element, wrong.expected, wrong.got);
        complain(payload, turn, text);
        right = false;
    }
    if (!guards_are_whole(&payload->recv) || !guards_are_whole(&payload->send)) {
        complain(payload, turn, "memory beside a buffer was written");
        poison_guards(&payload->recv);
        poison_guards(&payload->send);
        right = false;
    }
    payload->wrong += right ? 0 : 1;
}

void r2_bench_payload_check(r2_bench_payload_t *payload, uint64_t turn)
{
    plant(payload, turn);
    if (payload->options->validate) {
        validate(payload, turn);
    }
    if (payload->options->digest) {
        payload->digest =
            r2_bench_data_hash(payload->digest, payload->recv.data, payload->recv.bytes);
    }
}
