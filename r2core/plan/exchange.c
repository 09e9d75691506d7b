/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchange: every message goes straight from its sender to its receiver.
 *
 * Runs gather(v), scatter(v), alltoall(v)(w) and neighbourhood collectives: lists of messages out
 * of IN and into OUT. Alltoall of four ranks (columns overlap):
 *
 *            step 0      step 1      step 2      step 3
 *   rank 0   copies 0    with 1      with 2      with 3
 *   rank 1   with 3      with 0      copies 1    with 2
 *   rank 2   copies 2    with 3      with 0      with 1
 *   rank 3   with 1      with 2      copies 3    with 0
 *
 * Ranks meet in pairs: rank r and (s - r) mod n in step s. Step s waits for step s - window,
 * separately for sends and receives, so that a rank does not have to take in blocks of all others
 * at once. A message is of the same step at both ends (edges are listed so): by induction over
 * steps all of them complete.
 *
 * In place the block that a peer gets lies where its own goes. The lower of two ranks receives over
 * what it has sent, when that is acknowledged; the higher receives into staging memory and copies
 * when its own block is acknowledged. So neither waits for the other, and no rank needs to know
 * whether others work in place.
 *
 * Long blocks go in parts, as messages are packed whole and staging memory is bounded. The first
 * part is the short one, and each carries the length of the whole: if two ranks disagree about it,
 * they notice at once.
 *
 * Source: folklore (pairwise exchange); the pairing is that of a round-robin tournament.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/kinds.h"
#include "plan/ops.h"
#include "plan/slots.h"
#include "plan/thresholds.h"

enum { WINDOW = r2_threshold_exchange_window };

/** The lists of one rank. */
typedef struct exchange {
    const r2_plan_input_t *input;   /* borrowed */
    r2_schedule_t *schedule;        /* borrowed */
    const r2_edge_t *sends, *recvs; /* borrowed */
    uint32_t send_count, recv_count;
    uint64_t part_bytes; /* longest message */
    bool windowed;
    uint32_t sent[WINDOW],
        arrived[WINDOW]; /* last op of the step that had this place in the window */
    r2_slots_t slots;    /* in place */
} exchange_t;

/** Longest message: what may be packed at once, and twice in staging memory. Equal on all ranks. */
static uint64_t r2_exchange_part_bytes(const r2_plan_input_t *input)
{
    const uint64_t half = input->scratch_bytes / 2 / R2_SLOT_ALIGN * R2_SLOT_ALIGN;
    const uint64_t staged = r2_max(half, (uint64_t) R2_SLOT_ALIGN);

    return 0 == input->message_max_bytes ? staged : r2_min(staged, input->message_max_bytes);
}

static uint64_t r2_part_count(const exchange_t *e, uint64_t bytes)
{
    return (bytes + e->part_bytes - 1) / e->part_bytes;
}

/** Part k of an edge, as message; its place in *place_p. */
static r2_msg_t r2_exchange_part(const exchange_t *e, const r2_edge_t *edge, r2_buf_t buf,
                                 uint64_t k, r2_region_t *place_p)
{
    const uint64_t first_bytes = edge->bytes - (r2_part_count(e, edge->bytes) - 1) * e->part_bytes;
    const uint64_t offset = 0 == k ? 0 : first_bytes + (k - 1) * e->part_bytes;

    *place_p = r2_at(buf, edge->offset_bytes + offset);
    return (r2_msg_t){.peer = edge->peer,
                      .tag = (uint32_t) k * R2_EDGE_TAGS + edge->tag,
                      .mark = r2_digest_fold(0, edge->bytes),
                      .bytes = 0 == k ? first_bytes : e->part_bytes};
}

/** Parts are told apart by tags. */
static bool r2_parts_valid(const exchange_t *e, uint64_t bytes)
{
    return r2_part_count(e, bytes) <= UINT32_MAX / R2_EDGE_TAGS;
}

static bool r2_edge_valid(const exchange_t *e, const r2_edge_t *edge)
{
    return edge->peer >= 0 && edge->peer < e->input->size && edge->tag < R2_EDGE_TAGS &&
           r2_parts_valid(e, edge->bytes);
}

static uint32_t r2_exchange_send(exchange_t *e, const r2_edge_t *edge, uint32_t after)
{
    uint32_t op = R2_OP_NONE;

    for (uint64_t k = 0; k < r2_part_count(e, edge->bytes); ++k) {
        r2_region_t src;
        r2_msg_t msg =
            r2_exchange_part(e, edge, e->input->in_place ? R2_BUF_OUT : R2_BUF_IN, k, &src);

        op = r2_add_send(e->schedule, msg, src, R2_AFTER(after));
    }
    return op;
}

static uint32_t r2_exchange_recv(exchange_t *e, const r2_edge_t *edge, uint32_t after)
{
    uint32_t op = R2_OP_NONE;

    for (uint64_t k = 0; k < r2_part_count(e, edge->bytes); ++k) {
        r2_region_t dst;
        r2_msg_t msg = r2_exchange_part(e, edge, R2_BUF_OUT, k, &dst);

        op = r2_add_recv(e->schedule, msg, dst, R2_AFTER(after));
    }
    return op;
}

/** Copies what this rank sends to itself. */
static void r2_exchange_self(exchange_t *e, const r2_edge_t *from)
{
    for (uint32_t i = 0; i < e->recv_count; ++i) {
        const r2_edge_t *to = &e->recvs[i];

        if (to->peer == e->input->rank && to->tag == from->tag) {
            r2_add_copy(e->schedule, r2_at(R2_BUF_IN, from->offset_bytes),
                        r2_at(R2_BUF_OUT, to->offset_bytes), r2_min(from->bytes, to->bytes),
                        R2_AT_ONCE);
        }
    }
}

/** Keeps the last op of a step; a step without one leaves the op before it. */
static void r2_window_put(uint32_t *window, uint32_t step, uint32_t op)
{
    window[step % WINDOW] = R2_OP_NONE == op ? window[step % WINDOW] : op;
}

static uint32_t r2_window_get(const exchange_t *e, const uint32_t *window, uint32_t step)
{
    return e->windowed ? window[step % WINDOW] : R2_OP_NONE;
}

static void r2_exchange_step(exchange_t *e, uint32_t step)
{
    const int32_t rank = e->input->rank;

    if (step < e->recv_count && e->recvs[step].peer != rank) {
        r2_window_put(e->arrived, step,
                      r2_exchange_recv(e, &e->recvs[step], r2_window_get(e, e->arrived, step)));
    }
    if (step >= e->send_count) {
        return;
    }
    if (e->sends[step].peer == rank) {
        r2_exchange_self(e, &e->sends[step]);
    } else {
        r2_window_put(e->sent, step,
                      r2_exchange_send(e, &e->sends[step], r2_window_get(e, e->sent, step)));
    }
}

/** One step in place: part by part, both ways. */
static void r2_exchange_replace(exchange_t *e, uint32_t step)
{
    const r2_edge_t *edge = &e->recvs[step];
    const uint32_t send_after = r2_window_get(e, e->sent, step);
    const uint32_t recv_after = r2_window_get(e, e->arrived, step);
    uint32_t sent = R2_OP_NONE, arrived = R2_OP_NONE;

    for (uint64_t k = 0; edge->peer != e->input->rank && k < r2_part_count(e, edge->bytes); ++k) {
        r2_region_t place;
        r2_msg_t msg = r2_exchange_part(e, edge, R2_BUF_OUT, k, &place);

        sent = r2_add_send(e->schedule, msg, place, R2_AFTER(send_after));
        if (e->input->rank < edge->peer) {
            arrived = r2_add_recv(e->schedule, msg, place, R2_AFTER(sent, recv_after));
        } else {
            r2_slot_t slot = r2_slots_take(&e->slots);

            arrived = r2_add_recv(e->schedule, msg, slot.place, R2_AFTER(slot.free_op, recv_after));
            r2_slots_give(
                &e->slots, &slot,
                r2_add_copy(e->schedule, slot.place, place, msg.bytes, R2_AFTER(arrived, sent)));
        }
    }
    r2_window_put(e->sent, step, sent);
    r2_window_put(e->arrived, step, arrived);
}

/** Staged parts: all from lower ranks. */
static uint64_t r2_exchange_staged(const exchange_t *e)
{
    uint64_t parts = 0;

    for (uint32_t i = 0; e->input->in_place && i < e->recv_count; ++i) {
        parts += e->recvs[i].peer < e->input->rank ? r2_part_count(e, e->recvs[i].bytes) : 0;
    }
    return parts;
}

static r2_status_t r2_exchange_ops(exchange_t *e)
{
    const uint32_t steps = r2_max(e->send_count, e->recv_count);
    r2_status_t status =
        r2_slots_init(&e->slots, e->input, e->schedule, e->part_bytes, r2_exchange_staged(e));

    if (R2_OK != status) {
        return status;
    }
    for (uint32_t i = 0; i < WINDOW; ++i) {
        e->sent[i] = e->arrived[i] = R2_OP_NONE;
    }
    for (uint32_t step = 0; step < steps; ++step) {
        if (e->input->in_place) {
            r2_exchange_replace(e, step);
        } else {
            r2_exchange_step(e, step);
        }
    }
    r2_slots_fini(&e->slots);
    return R2_OK;
}

static r2_status_t r2_build_edges(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    exchange_t e = {.input = input,
                    .schedule = schedule,
                    .sends = input->sends,
                    .recvs = input->recvs,
                    .send_count = input->send_count,
                    .recv_count = input->recv_count,
                    .part_bytes = r2_exchange_part_bytes(input),
                    .windowed = R2_COLL_NEIGHBOR != input->kind};

    for (uint32_t i = 0; i < e.send_count; ++i) {
        if (!r2_edge_valid(&e, &e.sends[i])) {
            return R2_ERR_PARAM;
        }
    }
    for (uint32_t i = 0; i < e.recv_count; ++i) {
        if (!r2_edge_valid(&e, &e.recvs[i])) {
            return R2_ERR_PARAM;
        }
    }
    return r2_exchange_ops(&e);
}

/** An edge of a collective with equal blocks; with `whole` the other end has only this block. */
static r2_edge_t r2_block_edge(const r2_plan_input_t *input, int32_t peer, bool whole)
{
    const uint64_t bytes = input->count * input->element_bytes;

    return (r2_edge_t){
        .peer = peer, .offset_bytes = whole ? (uint64_t) peer * bytes : 0, .bytes = bytes};
}

static void r2_exchange_alltoall_edges(const r2_plan_input_t *input, exchange_t *e,
                                       r2_edge_t *sends, r2_edge_t *recvs)
{
    for (int32_t step = 0; step < input->size; ++step) {
        const int32_t peer = (int32_t) (((int64_t) step - input->rank + input->size) % input->size);

        sends[step] = recvs[step] = r2_block_edge(input, peer, true);
    }
    e->send_count = e->recv_count = (uint32_t) input->size;
}

/** The root's blocks, from its own on around the circle; everyone else's one. @return their
 * number. */
static uint32_t r2_rooted_edges(const r2_plan_input_t *input, r2_edge_t *blocks, r2_edge_t *one)
{
    *one = r2_block_edge(input, input->root, false);
    if (input->rank != input->root) {
        return 0;
    }
    for (int32_t step = 0; step < input->size; ++step) {
        blocks[step] = r2_block_edge(input, r2_input_peer(input, step), true);
    }
    return (uint32_t) input->size;
}

static r2_status_t r2_build_blocks(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    r2_edge_t *edges = malloc(2 * (size_t) input->size * sizeof(*edges));
    exchange_t e = {.input = input, .schedule = schedule, .windowed = true};
    r2_plan_input_t there = *input; /* only alltoall replaces blocks */
    r2_status_t status;

    e.part_bytes = r2_exchange_part_bytes(input);
    if (NULL == edges || !r2_parts_valid(&e, input->count * input->element_bytes)) {
        free(edges);
        return NULL == edges ? R2_ERR_NO_MEMORY : R2_ERR_PARAM;
    }
    e.sends = edges;
    e.recvs = edges + input->size;
    if (R2_COLL_ALLTOALL == input->kind) {
        r2_exchange_alltoall_edges(input, &e, edges, edges + input->size);
    } else {
        const bool gather = R2_COLL_GATHER == input->kind;
        const bool one = !(input->in_place && input->rank == input->root);
        r2_edge_t *many = gather ? edges + input->size : edges;
        r2_edge_t *single = gather ? edges : edges + input->size;
        uint32_t blocks = r2_rooted_edges(input, many, single);

        e.send_count = gather ? (one ? 1 : 0) : blocks;
        e.recv_count = gather ? blocks : (one ? 1 : 0);
        there.in_place = false;
        e.input = &there;
    }
    r2_plan_note_message(schedule, r2_min(input->count * input->element_bytes, e.part_bytes));
    status = r2_exchange_ops(&e);
    free(edges);
    return status;
}

const r2_algorithm_t r2_gather_linear = {
    .name = "linear", .instead = R2_INSTEAD("linear"), .build = r2_build_blocks};
const r2_algorithm_t r2_scatter_linear = {
    .name = "linear", .instead = R2_INSTEAD("linear"), .build = r2_build_blocks};
const r2_algorithm_t r2_alltoall_pairwise = {
    .name = "pairwise", .instead = R2_INSTEAD("pairwise"), .build = r2_build_blocks};
const r2_algorithm_t r2_exchange_edges = {.name = "exchange", .build = r2_build_edges};
