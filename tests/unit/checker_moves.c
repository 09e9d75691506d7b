/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives that move blocks: which messages their ranks exchange, and what must be where in the
 * end.
 */
#include "r2_config.h"

#include <stdlib.h>

#include "base/util.h"
#include "checker_parts.h"
#include "plan/kinds.h"
#include "plan/layout.h"

enum { NEIGHBORS = 4 };

static bool is_scatter(r2_coll_kind_t kind)
{
    return R2_COLL_SCATTER == kind || R2_COLL_SCATTERV == kind;
}

static bool is_rooted_list(r2_coll_kind_t kind)
{
    return R2_COLL_GATHERV == kind || R2_COLL_SCATTERV == kind;
}

bool r2_check_by_edges(const r2_plan_input_t *input)
{
    return R2_SPAN_EDGES == r2_kind(input->kind)->span;
}

/** Elements between two ranks: average, double, none, something odd; the same both ways. */
static uint64_t edge_count(const r2_plan_input_t *input, int32_t a, int32_t b)
{
    const uint64_t counts[] = {2 * input->count, 0, input->count, input->count / 2 + 1};

    return 0 == input->count ? 0 : counts[(a + b) % 4];
}

/** Appends an edge behind those before it, with a gap. */
static void append(r2_edge_t *edges, uint32_t *count, int32_t peer, uint64_t bytes)
{
    uint64_t offset = 3;
    uint32_t tag = 0;

    for (uint32_t i = 0; i < *count; ++i) {
        offset = edges[i].offset_bytes + edges[i].bytes + i % 3;
        tag += edges[i].peer == peer ? 1 : 0;
    }
    edges[(*count)++] =
        (r2_edge_t){.peer = peer, .tag = tag, .offset_bytes = offset, .bytes = bytes};
}

static void edges_all(r2_plan_input_t *input, r2_edge_t *sends, r2_edge_t *recvs)
{
    for (int32_t i = 0; i < input->size; ++i) {
        const int32_t peer = (i - input->rank + input->size) % input->size;
        const uint64_t bytes = edge_count(input, input->rank, peer) * input->element_bytes;

        append(sends, &input->send_count, peer, bytes);
        append(recvs, &input->recv_count, peer, bytes);
    }
}

static void edges_rooted(r2_plan_input_t *input, bool in_place, r2_edge_t *many,
                         uint32_t *many_count, r2_edge_t *one, uint32_t *one_count)
{
    const bool root = input->rank == input->root;

    for (int32_t i = in_place ? 1 : 0; root && i < input->size; ++i) {
        const int32_t peer = r2_input_peer(input, i);

        append(many, many_count, peer, edge_count(input, 0, peer) * input->element_bytes);
    }
    if (!root || !in_place) {
        append(one, one_count, input->root,
               edge_count(input, 0, input->rank) * input->element_bytes);
    }
}

/** A ring with double edges, chords and each rank itself: on few ranks many edges join the same
 * two. */
static void edges_neighbors(r2_plan_input_t *input, r2_edge_t *sends, r2_edge_t *recvs)
{
    static const int32_t steps[NEIGHBORS] = {1, 1, 3, 0};

    for (uint32_t i = 0; i < NEIGHBORS; ++i) {
        const uint64_t bytes = input->count * ((i + 1) % NEIGHBORS) * input->element_bytes;

        append(sends, &input->send_count, r2_input_peer(input, steps[i]), bytes);
        append(recvs, &input->recv_count, r2_input_peer(input, -steps[i]), bytes);
    }
}

r2_edge_t *r2_check_edges(r2_plan_input_t *input)
{
    const size_t most = (size_t) r2_max(input->size, (int32_t) NEIGHBORS);
    r2_edge_t *sends = calloc(2 * most, sizeof(*sends)), *recvs = sends + most;
    const bool in_place = input->in_place;

    input->sends = sends;
    input->recvs = recvs;
    input->send_count = input->recv_count = 0;
    if (R2_COLL_NEIGHBOR == input->kind) {
        input->in_place = false;
        edges_neighbors(input, sends, recvs);
    } else if (is_rooted_list(input->kind)) {
        input->in_place = false; /* in place nothing goes to oneself, and that is all */
        if (is_scatter(input->kind)) {
            edges_rooted(input, in_place, sends, &input->send_count, recvs, &input->recv_count);
        } else {
            edges_rooted(input, in_place, recvs, &input->recv_count, sends, &input->send_count);
        }
    } else {
        edges_all(input, sends, recvs);
    }
    return sends;
}

static uint64_t edges_end(const r2_edge_t *edges, uint32_t count)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < count; ++i) {
        end = r2_max(end, edges[i].offset_bytes + edges[i].bytes);
    }
    return end;
}

uint64_t r2_check_moved_bytes(const r2_plan_input_t *input, r2_buf_t buf)
{
    const bool root = input->rank == input->root;
    const uint64_t block = input->count * input->element_bytes;
    const uint64_t all = block * (uint64_t) input->size;

    if (r2_check_by_edges(input)) {
        return R2_BUF_IN == buf ? edges_end(input->sends, input->send_count)
                                : edges_end(input->recvs, input->recv_count);
    }
    if (R2_COLL_ALLTOALL == input->kind) {
        return all;
    }
    if ((R2_COLL_GATHER == input->kind) == (R2_BUF_OUT == buf)) {
        return root ? all : 0;
    }
    return root && input->in_place ? 0 : block;
}

static void fill(r2_value_t *bytes, uint64_t length, int32_t rank, uint64_t position)
{
    for (uint64_t i = 0; i < length; ++i) {
        bytes[i] = (r2_value_t){.tree = (uint32_t) rank, .position = (uint32_t) (position + i)};
    }
}

/** What the edge of a rank brings: the memory of the edge of the same name at the other end. */
static void expect_edge(const r2_check_job_t *job, int32_t rank, const r2_edge_t *recv,
                        r2_value_t *expected)
{
    const r2_plan_input_t *from = &job->inputs[recv->peer];

    for (uint32_t i = 0; i < from->send_count; ++i) {
        const r2_edge_t *send = &from->sends[i];

        if (send->peer == rank && send->tag == recv->tag) {
            fill(expected + recv->offset_bytes, recv->bytes, recv->peer, send->offset_bytes);
        }
    }
}

void r2_check_expect_moved(const r2_check_job_t *job, int32_t rank, r2_value_t *expected)
{
    const r2_plan_input_t *input = &job->inputs[rank];
    const uint64_t block = input->count * input->element_bytes;

    for (uint32_t i = 0; r2_check_by_edges(input) && i < input->recv_count; ++i) {
        expect_edge(job, rank, &input->recvs[i], expected);
    }
    for (int32_t r = 0; R2_COLL_ALLTOALL == input->kind && r < job->size; ++r) {
        fill(expected + (uint64_t) r * block, block, r, (uint64_t) rank * block);
    }
    for (int32_t r = 0; R2_COLL_GATHER == input->kind && rank == input->root && r < job->size;
         ++r) {
        fill(expected + (uint64_t) r * block, block, r, 0);
    }
    if (R2_COLL_SCATTER == input->kind) {
        fill(expected, r2_check_moved_bytes(input, R2_BUF_OUT), input->root,
             (uint64_t) rank * block);
    }
}

bool r2_check_moves(r2_coll_kind_t kind)
{
    return kind >= R2_COLL_GATHER;
}
