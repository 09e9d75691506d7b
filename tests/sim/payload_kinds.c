/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Payloads of prefix sums, rooted and personalised collectives: shapes, values, expected results.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "payload_parts.h"
#include "plan/kinds.h"

/* Edges of one rank, each way, of neighbour collectives: chords of a ring, two between the same
 * ranks, and to itself. */
static const int32_t neighbors[] = {1, 1, 3, 0};

bool payload_by_edges(r2_coll_kind_t kind)
{
    return R2_SPAN_EDGES == r2_kind(kind)->span;
}

bool payload_in_place(const payload_call_t *call, int32_t rank)
{
    const scenario_step_t *step = call->step;
    const r2_coll_kind_t kind = step->coll;

    if (R2_COLL_REDUCE == kind || R2_COLL_GATHER == kind) {
        return step->in_place && rank == step->root;
    }
    /* scatter: at the root the result then has no memory */
    return step->in_place && R2_COLL_BCAST != kind && R2_COLL_BARRIER != kind &&
           R2_COLL_SCATTER != kind && !payload_by_edges(kind);
}

/* ---- edges ---- */

/** Elements that one rank sends to another in messages of a list. */
static uint64_t edge_count(const payload_call_t *call, int32_t from, int32_t to)
{
    const uint64_t h = payload_mix(call->salt, (uint64_t) from * 64 + (uint64_t) to);

    return 0 == h % 5 ? 0 : (h >> 8) % (2 * call->step->count + 1);
}

/** Behind the edges before it, with a gap now and then. */
static void append(const payload_call_t *call, r2_edge_t *edges, uint32_t *count, int32_t peer,
                   uint64_t elements)
{
    uint64_t offset = 0;
    uint32_t tag = 0;

    for (uint32_t i = 0; i < *count; ++i) {
        offset = edges[i].offset_bytes + edges[i].bytes + i % 2 * call->element_bytes;
        tag += edges[i].peer == peer ? 1 : 0;
    }
    edges[(*count)++] = (r2_edge_t){
        .peer = peer, .tag = tag, .offset_bytes = offset, .bytes = elements * call->element_bytes};
}

static int32_t around(const payload_call_t *call, int32_t rank, int32_t step)
{
    return ((rank + step) % call->size + call->size) % call->size;
}

/** Edges of a root: one for each rank, from the next on. */
static void edges_of_root(const payload_call_t *call, bool sends, r2_edge_t *edges, uint32_t *count)
{
    const int32_t root = call->step->root;

    for (int32_t i = 1; i <= call->size; ++i) {
        const int32_t peer = around(call, root, call->size == i ? 0 : i);

        append(call, edges, count, peer,
               sends ? edge_count(call, root, peer) : edge_count(call, peer, root));
    }
}

static void edges_of_gatherv(const payload_call_t *call, int32_t rank, payload_edges_t *edges)
{
    const int32_t root = call->step->root;

    append(call, edges->sends, &edges->send_count, root, edge_count(call, rank, root));
    if (rank == root) {
        edges_of_root(call, false, edges->recvs, &edges->recv_count);
    }
}

static void edges_of_scatterv(const payload_call_t *call, int32_t rank, payload_edges_t *edges)
{
    const int32_t root = call->step->root;

    append(call, edges->recvs, &edges->recv_count, root, edge_count(call, root, rank));
    if (rank == root) {
        edges_of_root(call, true, edges->sends, &edges->send_count);
    }
}

static void edges_of_alltoall(const payload_call_t *call, int32_t rank, payload_edges_t *edges)
{
    for (int32_t i = 0; i < call->size; ++i) {
        const int32_t peer = around(call, i, -rank);

        append(call, edges->sends, &edges->send_count, peer, edge_count(call, rank, peer));
        append(call, edges->recvs, &edges->recv_count, peer, edge_count(call, peer, rank));
    }
}

static void edges_of_neighbors(const payload_call_t *call, int32_t rank, payload_edges_t *edges)
{
    for (uint32_t i = 0; i < r2_array_count(neighbors); ++i) {
        const uint64_t elements = call->step->count * ((i + 1) % r2_array_count(neighbors));

        append(call, edges->sends, &edges->send_count, around(call, rank, neighbors[i]), elements);
        append(call, edges->recvs, &edges->recv_count, around(call, rank, -neighbors[i]), elements);
    }
}

typedef void (*edges_fn_t)(const payload_call_t *call, int32_t rank, payload_edges_t *edges);

static const edges_fn_t edges_fns[R2_COLL_KIND_COUNT] = {
    [R2_COLL_GATHERV] = edges_of_gatherv,    [R2_COLL_SCATTERV] = edges_of_scatterv,
    [R2_COLL_ALLTOALLV] = edges_of_alltoall, [R2_COLL_ALLTOALLW] = edges_of_alltoall,
    [R2_COLL_NEIGHBOR] = edges_of_neighbors,
};

bool payload_edges_init(payload_call_t *call)
{
    const size_t most = (size_t) call->size + r2_array_count(neighbors);

    if (!payload_by_edges(call->step->coll)) {
        return true;
    }
    call->edges = calloc((size_t) call->size, sizeof(*call->edges));
    for (int32_t r = 0; NULL != call->edges && r < call->size; ++r) {
        call->edges[r].sends = calloc(2 * most, sizeof(*call->edges[r].sends));
        if (NULL == call->edges[r].sends) {
            return false;
        }
        call->edges[r].recvs = call->edges[r].sends + most;
        edges_fns[call->step->coll](call, r, &call->edges[r]);
    }
    return NULL != call->edges;
}

void payload_edges_fini(payload_call_t *call)
{
    for (int32_t r = 0; NULL != call->edges && r < call->size; ++r) {
        free(call->edges[r].sends);
    }
    free(call->edges);
    call->edges = NULL;
}

static uint64_t edges_end(const payload_call_t *call, const r2_edge_t *edges, uint32_t count)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < count; ++i) {
        end = r2_max(end, edges[i].offset_bytes + edges[i].bytes);
    }
    return end / call->element_bytes;
}

/* ---- shapes, in elements ---- */

/* What a buffer has: a block, one for each rank, or that at the root only. */
typedef enum extent { EXTENT_BLOCK, EXTENT_ALL, EXTENT_ROOT_BLOCK, EXTENT_ROOT_ALL } extent_t;

static const struct {
    extent_t in, out;
} extents[R2_COLL_KIND_COUNT] = {
    [R2_COLL_REDUCE] = {EXTENT_BLOCK, EXTENT_ROOT_BLOCK},
    [R2_COLL_GATHER] = {EXTENT_BLOCK, EXTENT_ROOT_ALL},
    [R2_COLL_SCATTER] = {EXTENT_ROOT_ALL, EXTENT_BLOCK},
    [R2_COLL_ALLTOALL] = {EXTENT_ALL, EXTENT_ALL},
    [R2_COLL_SCAN] = {EXTENT_BLOCK, EXTENT_BLOCK},
    [R2_COLL_EXSCAN] = {EXTENT_BLOCK, EXTENT_BLOCK},
};

static uint64_t extent_count(const payload_call_t *call, int32_t rank, extent_t extent)
{
    const bool root_only = EXTENT_ROOT_BLOCK == extent || EXTENT_ROOT_ALL == extent;
    const bool all = EXTENT_ALL == extent || EXTENT_ROOT_ALL == extent;

    if (root_only && rank != call->step->root) {
        return 0;
    }
    return call->step->count * (all ? (uint64_t) call->size : 1);
}

payload_shape_t payload_kind_shape(const payload_call_t *call, int32_t rank)
{
    const r2_coll_kind_t kind = call->step->coll;

    if (payload_by_edges(kind)) {
        const payload_edges_t *edges = &call->edges[rank];

        return (payload_shape_t){edges_end(call, edges->sends, edges->send_count),
                                 edges_end(call, edges->recvs, edges->recv_count)};
    }
    return (payload_shape_t){extent_count(call, rank, extents[kind].in),
                             extent_count(call, rank, extents[kind].out)};
}

uint64_t payload_kind_place(const payload_call_t *call, int32_t rank)
{
    return R2_COLL_GATHER == call->step->coll && payload_in_place(call, rank)
               ? (uint64_t) rank * call->step->count
               : 0;
}

/* ---- expected results ---- */

/** The sum of ranks 0 to `last`. */
static bool expect_prefix(const payload_call_t *call, int32_t last, uint8_t *expected)
{
    const uint64_t count = call->step->count;
    uint8_t *next = malloc(count * call->element_bytes + 1);

    if (NULL == next) {
        return false;
    }
    payload_put(call, last, 0, count, expected);
    for (int32_t r = last; r-- > 0;) {
        payload_put(call, r, 0, count, next);
        payload_reduce(call, next, expected, count);
    }
    free(next);
    return true;
}

static bool expect_reduce(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    return rank != call->step->root || expect_prefix(call, call->size - 1, expected);
}

static bool expect_exscan(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    return 0 == rank || expect_prefix(call, rank - 1, expected);
}

static bool expect_gather(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    const uint64_t count = call->step->count;

    for (int32_t r = 0; rank == call->step->root && r < call->size; ++r) {
        payload_put(call, r, 0, count, expected + (uint64_t) r * count * call->element_bytes);
    }
    return true;
}

static bool expect_scatter(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    payload_put(call, call->step->root, (uint64_t) rank * call->step->count, call->step->count,
                expected);
    return true;
}

static bool expect_alltoall(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    const uint64_t count = call->step->count;

    for (int32_t r = 0; r < call->size; ++r) {
        payload_put(call, r, (uint64_t) rank * count, count,
                    expected + (uint64_t) r * count * call->element_bytes);
    }
    return true;
}

/** What the edge of the same name at the other end gives. */
static bool expect_edges(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    for (uint32_t i = 0; i < call->edges[rank].recv_count; ++i) {
        const r2_edge_t *recv = &call->edges[rank].recvs[i];
        const payload_edges_t *from = &call->edges[recv->peer];

        for (uint32_t k = 0; k < from->send_count; ++k) {
            if (from->sends[k].peer == rank && from->sends[k].tag == recv->tag) {
                payload_put(call, recv->peer, from->sends[k].offset_bytes / call->element_bytes,
                            recv->bytes / call->element_bytes, expected + recv->offset_bytes);
            }
        }
    }
    return true;
}

typedef bool (*expect_fn_t)(const payload_call_t *call, int32_t rank, uint8_t *expected);

static const expect_fn_t expect_fns[R2_COLL_KIND_COUNT] = {
    [R2_COLL_REDUCE] = expect_reduce,   [R2_COLL_SCAN] = expect_prefix,
    [R2_COLL_EXSCAN] = expect_exscan,   [R2_COLL_GATHER] = expect_gather,
    [R2_COLL_GATHERV] = expect_edges,   [R2_COLL_SCATTER] = expect_scatter,
    [R2_COLL_SCATTERV] = expect_edges,  [R2_COLL_ALLTOALL] = expect_alltoall,
    [R2_COLL_ALLTOALLV] = expect_edges, [R2_COLL_ALLTOALLW] = expect_edges,
    [R2_COLL_NEIGHBOR] = expect_edges,
};

bool payload_kind_expect(const payload_call_t *call, int32_t rank, uint8_t *expected)
{
    return expect_fns[call->step->coll](call, rank, expected);
}
