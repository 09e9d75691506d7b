/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Guards, poison, planted errors and validation of the benchmarks' buffers.
 */
#include "r2_config.h"

#include "payload.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD_BYTES = 4096, /* before and behind each buffer: also its alignment */
    POISON = 0xa5,      /* of guards and of receive buffers before the call */
    MAX_COMPLAINTS = 5, /* of one rank and size */
};

static size_t whole_bytes(const r2_bench_buffer_t *buffer)
{
    return buffer->bytes + 2 * (size_t) GUARD_BYTES;
}

/* What was written here goes to the GPU, where the buffer is there. */
static void buffer_write(const r2_bench_buffer_t *buffer)
{
    if (NULL != buffer->gpus) {
        r2_bench_place_write(buffer->gpus, buffer->memory, whole_bytes(buffer));
    }
}

static void buffer_read(r2_bench_buffer_t *buffer)
{
    if (NULL != buffer->gpus) {
        r2_bench_place_read(buffer->memory, buffer->gpus, whole_bytes(buffer));
    }
}

static bool buffer_init(r2_bench_buffer_t *buffer, r2_bench_place_t place, size_t bytes)
{
    void *memory = NULL;

    buffer->bytes = bytes;
    if (0 != posix_memalign(&memory, GUARD_BYTES, whole_bytes(buffer))) {
        return false;
    }
    buffer->memory = memory;
    buffer->data = buffer->given = buffer->memory + GUARD_BYTES;
    memset(buffer->memory, POISON, whole_bytes(buffer));
    if (R2_BENCH_IN_HOST == place) {
        return true;
    }
    buffer->gpus = r2_bench_place_alloc(place, whole_bytes(buffer));
    if (NULL == buffer->gpus) {
        return false;
    }
    buffer->given = (unsigned char *) buffer->gpus + GUARD_BYTES;
    buffer_write(buffer);
    return true;
}

static void buffer_fini(r2_bench_buffer_t *buffer)
{
    r2_bench_place_free(buffer->gpus);
    free(buffer->memory);
    buffer->gpus = NULL;
    buffer->memory = NULL;
}

static bool is_poison(const unsigned char *place, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        if (POISON != place[i]) {
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
    return is_poison(buffer->memory, GUARD_BYTES) &&
           is_poison(buffer->data + buffer->bytes, GUARD_BYTES);
}

static MPI_Datatype mpi_type(r2_bench_type_t type)
{
    switch (type) {
    case R2_BENCH_CHAR:
        return MPI_CHAR;
    case R2_BENCH_INT:
        return MPI_INT;
    case R2_BENCH_FLOAT:
        return MPI_FLOAT;
    case R2_BENCH_DOUBLE:
        return MPI_DOUBLE;
    }
    return MPI_DATATYPE_NULL;
}

/* Arguments that stay the same in all iterations: a part for each rank. */
static bool lists_init(r2_bench_payload_t *payload)
{
    size_t unit = r2_bench_type_bytes(payload->options->type);
    size_t ranks = (size_t) payload->data->ranks;
    int *counts = calloc(3 * ranks, sizeof(*counts));
    MPI_Datatype *types = calloc(ranks, sizeof(*types));
    size_t first = 0; /* beyond int only where the call takes no lists */

    payload->numbers = counts;
    payload->types = types;
    if (NULL == counts || NULL == types) {
        return false;
    }
    for (size_t i = 0; i < ranks; ++i) {
        counts[i] =
            (int) r2_bench_kind_part(payload->task->kind, payload->elements, (int) ranks, (int) i);
        counts[ranks + i] = (int) first;
        counts[2 * ranks + i] = (int) (first * unit);
        types[i] = mpi_type(payload->options->type);
        first += (size_t) counts[i];
    }
    payload->call.counts = counts;
    payload->call.displs = counts + ranks;
    payload->call.offsets = counts + 2 * ranks;
    payload->call.types = types;
    return true;
}

/* Does every displacement fit the integer that the call takes, whatever rank is the root? */
static bool lists_fit(const r2_bench_payload_t *payload)
{
    const r2_bench_kind_t *kind = payload->task->kind;
    bool in_bytes = R2_BENCH_ALLTOALLW == kind->id;
    size_t unit = in_bytes ? r2_bench_type_bytes(payload->options->type) : 1;

    return !kind->lists || payload->elements * (size_t) payload->data->ranks <= INT_MAX / unit;
}

/* Messages of a window share a buffer, but not where they are checked. */
static size_t count_slots(const r2_bench_options_t *options)
{
    return options->validate || options->digest ? (size_t) options->window : 1;
}

size_t r2_bench_payload_bytes(const r2_bench_kind_t *kind, const r2_bench_options_t *options,
                              int ranks, size_t bytes)
{
    size_t unit = r2_bench_type_bytes(options->type);
    r2_bench_shape_t shape;

    r2_bench_kind_shape(kind, bytes / unit * count_slots(options), ranks, 0, 0, &shape);
    return (shape.send_count + shape.recv_space) * unit;
}

const char *r2_bench_payload_init(r2_bench_payload_t *payload, const r2_bench_task_t *task,
                                  const r2_bench_options_t *options, const r2_bench_data_t *data,
                                  int rank, size_t bytes)
{
    size_t unit = r2_bench_type_bytes(options->type);
    r2_bench_shape_t most_shape; /* in the iterations in which this rank is the root */

    memset(payload, 0, sizeof(*payload));
    payload->task = task;
    payload->options = options;
    payload->data = data;
    payload->rank = rank;
    payload->size_bytes = bytes;
    payload->slots = count_slots(options);
    payload->elements = bytes / unit * payload->slots;
    if (!lists_fit(payload)) {
        return "displacements above 2^31 - 1: choose a smaller -m";
    }
    r2_bench_kind_shape(task->kind, payload->elements, data->ranks, rank,
                        options->rotate_root ? rank : options->root, &most_shape);
    if (!lists_init(payload) ||
        !buffer_init(&payload->send, options->place, most_shape.send_count * unit) ||
        !buffer_init(&payload->recv, options->place, most_shape.recv_space * unit)) {
        r2_bench_payload_fini(payload);
        return "not enough memory for the buffers: choose a smaller -m";
    }
    r2_bench_payload_turn(payload, 0);
    return NULL;
}

void r2_bench_payload_fini(r2_bench_payload_t *payload)
{
    buffer_fini(&payload->send);
    buffer_fini(&payload->recv);
    free(payload->numbers);
    free(payload->types);
    payload->numbers = NULL;
    payload->types = NULL;
}

void r2_bench_payload_turn(r2_bench_payload_t *payload, uint64_t turn)
{
    r2_bench_call_t *call = &payload->call;

    call->root = payload->options->rotate_root ? (int) (turn % (uint64_t) payload->data->ranks)
                                               : payload->options->root;
    r2_bench_kind_shape(payload->task->kind, payload->elements, payload->data->ranks, payload->rank,
                        call->root, &payload->shape);
    call->send = payload->send.given;
    call->recv = payload->recv.given;
    call->count = (int) (payload->shape.count / payload->slots);
    call->type = mpi_type(payload->options->type);
    call->comm = MPI_COMM_WORLD;
}

/* With -c and --digest, they take turns: the sums of rounding data are not known beforehand. */
static bool is_rounding(const r2_bench_payload_t *payload, uint64_t turn)
{
    return payload->options->digest && (!payload->options->validate || 1 == turn % 2);
}

void r2_bench_payload_prepare(r2_bench_payload_t *payload, uint64_t turn)
{
    const r2_bench_kind_t *kind = payload->task->kind;
    bool rounding = is_rounding(payload, turn);

    r2_bench_data_fill(payload->data, payload->send.data, payload->shape.send_count, payload->rank,
                       turn, rounding);
    memset(payload->recv.data, POISON, payload->recv.bytes);
    if (R2_BENCH_OF_ROOT == kind->result && R2_BENCH_NOTHING == kind->send &&
        payload->rank == payload->call.root) {
        r2_bench_data_fill(payload->data, payload->recv.data, payload->shape.recv_count,
                           payload->rank, turn, rounding);
    }
    buffer_write(&payload->send);
    buffer_write(&payload->recv);
}

/* The last rank that has the buffer that is to be damaged. */
static int planted_rank(const r2_bench_payload_t *payload, bool in_send)
{
    int rank = payload->data->ranks;
    r2_bench_shape_t shape;
    size_t count = 0;

    while (0 == count && rank > 0) {
        --rank;
        r2_bench_kind_shape(payload->task->kind, payload->elements, payload->data->ranks, rank,
                            payload->call.root, &shape);
        count = in_send ? shape.send_count : shape.recv_count;
    }
    return rank;
}

/* The defect of --plant-error that is due. @return true if there is one. */
static bool plant(const r2_bench_payload_t *payload, uint64_t turn)
{
    size_t unit = r2_bench_type_bytes(payload->options->type);
    size_t result_bytes = payload->shape.recv_count * unit;
    r2_bench_plant_t defect = r2_bench_options_plant(payload->options, payload->task->kind, turn);
    bool in_send = R2_BENCH_PLANT_SEND == defect;

    if (R2_BENCH_PLANT_NONE == defect || payload->rank != planted_rank(payload, in_send) ||
        (in_send ? payload->send.bytes : result_bytes) < unit) {
        return false;
    }
    switch (defect) {
    case R2_BENCH_PLANT_NONE:
    case R2_BENCH_PLANT_EARLY:
    case R2_BENCH_PLANT_ALL:
        break;
    case R2_BENCH_PLANT_SUM:
        payload->recv.data[result_bytes / 2 / unit * unit] ^= 1;
        break;
    case R2_BENCH_PLANT_HOLE:
        memset(payload->recv.data + result_bytes - unit, POISON, unit);
        break;
    case R2_BENCH_PLANT_SEND:
        payload->send.data[0] ^= 1;
        break;
    case R2_BENCH_PLANT_GUARD:
        payload->recv.data[payload->recv.bytes] ^= 1;
        break;
    }
    return true;
}

/* The copies of what a call left in memory of a GPU. A planted defect goes there, and is found from
 * there. */
static void fetch(r2_bench_payload_t *payload, uint64_t turn)
{
    r2_bench_buffer_t *buffers[] = {&payload->send, &payload->recv};
    const size_t count = sizeof(buffers) / sizeof(buffers[0]);

    for (size_t i = 0; i < count; ++i) {
        buffer_read(buffers[i]);
    }
    if (!plant(payload, turn)) {
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        buffer_write(buffers[i]);
        if (NULL != buffers[i]->gpus) {
            memset(buffers[i]->memory, 0, whole_bytes(buffers[i]));
        }
        buffer_read(buffers[i]);
    }
}

/* Checks the receive buffer. @return true if it is right, else *wrong_p is set. */
static bool check_result(const r2_bench_payload_t *payload, uint64_t turn,
                         r2_bench_wrong_t *wrong_p)
{
    size_t unit = r2_bench_type_bytes(payload->options->type);
    bool rounding = is_rounding(payload, turn);
    r2_bench_piece_t piece;
    size_t done = 0;

    if (rounding && r2_bench_kind_reduces(payload->task->kind)) {
        return true; /* the digest tells */
    }
    for (size_t i = 0; i < payload->shape.pieces; ++i) {
        r2_bench_kind_piece(payload->task->kind, &payload->shape, payload->data->ranks,
                            payload->rank, payload->call.root, i, &piece);
        if (!r2_bench_data_check(payload->data, payload->recv.data + done * unit, &piece, turn,
                                 rounding, wrong_p)) {
            wrong_p->element += done;
            return false;
        }
        done += piece.count;
    }
    return true;
}

void r2_bench_payload_complain(r2_bench_payload_t *payload, uint64_t turn, const char *text)
{
    if (payload->complaints++ < MAX_COMPLAINTS) {
        fprintf(stderr, "%s: rank %d, %zu bytes, iteration %" PRIu64 ": %s\n",
                payload->task->program, payload->rank, payload->size_bytes, turn, text);
    }
}

/* Checks everything about one iteration. */
static void validate(r2_bench_payload_t *payload, uint64_t turn)
{
    const r2_bench_piece_t sent = {.from_rank = payload->rank,
                                   .to_rank = payload->rank + 1,
                                   .count = payload->shape.send_count};
    r2_bench_wrong_t wrong = {0};
    char text[160];
    bool right = true;

    if (!check_result(payload, turn, &wrong)) {
        snprintf(text, sizeof(text), "element %zu of the result is %.9g, expected %.9g",
                 wrong.element, wrong.got, wrong.expected);
        r2_bench_payload_complain(payload, turn, text);
        right = false;
    }
    if (!r2_bench_data_check(payload->data, payload->send.data, &sent, turn,
                             is_rounding(payload, turn), &wrong)) {
        snprintf(text, sizeof(text), "element %zu of the send buffer was changed from %.9g to %.9g",
                 wrong.element, wrong.expected, wrong.got);
        r2_bench_payload_complain(payload, turn, text);
        right = false;
    }
    if (0 == payload->shape.recv_space && !is_poison(payload->recv.data, payload->recv.bytes)) {
        r2_bench_payload_complain(payload, turn, "a rank that receives nothing got something");
        right = false;
    }
    if (!guards_are_whole(&payload->recv) || !guards_are_whole(&payload->send)) {
        r2_bench_payload_complain(payload, turn, "memory beside a buffer was written");
        poison_guards(&payload->recv); /* for the next iteration, which writes them */
        poison_guards(&payload->send);
        right = false;
    }
    payload->wrong += right ? 0 : 1;
}

void r2_bench_payload_check(r2_bench_payload_t *payload, uint64_t turn)
{
    fetch(payload, turn);
    if (payload->options->validate) {
        validate(payload, turn);
    }
    if (payload->options->digest) {
        payload->digest = r2_bench_data_hash(payload->digest, payload->recv.data,
                                             payload->shape.recv_count *
                                                 r2_bench_type_bytes(payload->options->type));
    }
}
