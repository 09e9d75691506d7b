/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One random collective: what it sends, what must arrive, the call itself.
 */
#include "mixed.h"

#include <stdio.h>
#include <string.h>

#if OMPI_MAJOR_VERSION >= 5
#    define MIX_INIT(Name) MPI_##Name##_init
#else
#    define MIX_INIT(Name) MPIX_##Name##_init
#endif

#define MIX_CALL(call, Name, name, ...)                                   \
    do {                                                                  \
        if (MIX_BLOCKING == (call)->mode) {                               \
            MPI_##Name(__VA_ARGS__);                                      \
        } else if (MIX_NONBLOCKING == (call)->mode) {                     \
            MPI_I##name(__VA_ARGS__, &(call)->request);                   \
        } else {                                                          \
            MIX_INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &(call)->request); \
        }                                                                 \
    } while (0)

/** Unit `unit` of what a rank has for another (or for all: to 0). */
static int value_of(const mix_call_t *call, int from, int to, int unit)
{
    uint32_t h = call->salt ^ (call->starts * 3266489917u) ^ ((uint32_t) from * 2654435761u) ^
                 ((uint32_t) to * 40503u) ^ ((uint32_t) unit * 2246822519u);

    h ^= h >> 15;
    h *= 2654435761u;
    return (int) (h ^ h >> 13);
}

/** Units between two ranks: uneven in the v forms, the same both ways. */
static int units_between(const mix_call_t *call, int a, int b)
{
    switch ((int) call->kind) {
    case MIX_GATHERV:
    case MIX_SCATTERV:
    case MIX_ALLGATHERV:
    case MIX_ALLTOALLV:
    case MIX_ALLTOALLW:
    case MIX_NEIGHBOR_ALLTOALLV:
        return call->units * ((a + b) % 3);
    default:
        return call->units;
    }
}

/** Types differ from rank to rank and from side to side, but for reductions. */
static mix_class_t class_of(const mix_call_t *call, int side)
{
    if (call->kind <= MIX_REDUCE_SCATTER_BLOCK) {
        return call->user_op ? (call->salt % 2 ? MIX_SWAPPED : MIX_PAIR) : MIX_DENSE;
    }
    return (mix_class_t) ((call->salt + (uint32_t) call->on->rank + 3u * (uint32_t) side) %
                          MIX_CLASS_COUNT);
}

static void open_side(mix_call_t *call, int side, int block_count, const int *units)
{
    const bool apart = units_between(call, 0, 2) != call->units;

    mix_side_init(0 == side ? &call->send : &call->recv, class_of(call, side), block_count, units,
                  apart);
}

/** Buffers of a reduction: `blocks` as the send side sees it. */
static void reduce_sides(mix_call_t *call, int blocks)
{
    const int n = call->on->size, rank = call->on->rank;
    const int last = MIX_SCAN == call->kind ? rank : MIX_EXSCAN == call->kind ? rank - 1 : n - 1;
    const bool here = MIX_REDUCE != call->kind || rank == call->root;
    const int step = call->user_op ? 2 : 1;
    mix_side_t *from = call->in_place ? &call->recv : &call->send;
    int units[MIX_MAX_RANKS] = {0};

    for (int b = 0; b < blocks; ++b) {
        units[b] = call->units;
    }
    open_side(call, 0, blocks, units);
    open_side(call, 1, call->in_place ? blocks : 1, units);
    for (int i = 0; i < blocks * call->units; ++i) {
        mix_side_put(from, i / call->units, i % call->units, value_of(call, rank, 0, i));
    }
    for (int i = 0; here && i < call->units; i += step) {
        const int at = (1 < blocks ? rank * call->units : 0) + i;
        int product[2] = {0, 0};

        for (int r = last; r >= 0; --r) {
            const int x[2] = {value_of(call, r, 0, at), value_of(call, r, 0, at + 1)};

            if (!call->user_op) {
                product[0] = (int) ((uint32_t) product[0] + (uint32_t) x[0]);
            } else if (r == last) {
                memcpy(product, x, sizeof(product));
            } else {
                mix_compose(x, product);
            }
        }
        for (int k = 0; last >= 0 && k < step; ++k) {
            mix_side_expect(&call->recv, 0, i + k, product[k]);
        }
    }
}

/** Rank `from` sends its block for `to`: what of it is at which side of this rank. */
static void block_sent(mix_call_t *call, int block, int from, int to, int units)
{
    for (int i = 0; i < units; ++i) {
        mix_side_put(&call->send, block, i, value_of(call, from, to, i));
    }
}

static void block_taken(mix_call_t *call, int block, int from, int to, int units)
{
    for (int i = 0; i < units; ++i) {
        mix_side_expect(&call->recv, block, i, value_of(call, from, to, i));
    }
}

/** In place a block lies in the receive buffer, for `to`, before the call. */
static void block_there(mix_call_t *call, int block, int from, int to, int units)
{
    for (int i = 0; i < units; ++i) {
        mix_side_put(&call->recv, block, i, value_of(call, from, to, i));
    }
}

static void gather_sides(mix_call_t *call, bool all)
{
    const int n = call->on->size, rank = call->on->rank;
    const bool takes = all || rank == call->root;
    int units[MIX_MAX_RANKS] = {0};
    int mine;

    for (int r = 0; r < n; ++r) {
        units[r] = units_between(call, all ? 0 : call->root, r);
    }
    mine = units[rank];
    open_side(call, 0, 1, &mine);
    open_side(call, 1, takes ? n : 0, units);
    if (call->in_place && takes) {
        block_there(call, rank, rank, 0, mine);
    } else {
        block_sent(call, 0, rank, 0, mine);
    }
    for (int r = 0; takes && r < n; ++r) {
        block_taken(call, r, r, 0, units[r]);
    }
}

static void scatter_sides(mix_call_t *call)
{
    const int n = call->on->size, rank = call->on->rank;
    const bool gives = rank == call->root, keeps = gives && call->in_place;
    int units[MIX_MAX_RANKS] = {0};
    int mine;

    for (int r = 0; r < n; ++r) {
        units[r] = units_between(call, call->root, r);
    }
    mine = units[rank];
    open_side(call, 0, gives ? n : 0, units);
    open_side(call, 1, keeps ? 0 : 1, &mine);
    for (int r = 0; gives && r < n; ++r) {
        block_sent(call, r, rank, r, units[r]);
    }
    if (!keeps) {
        block_taken(call, 0, call->root, rank, mine);
    }
}

static void alltoall_sides(mix_call_t *call)
{
    const int n = call->on->size, rank = call->on->rank;
    int units[MIX_MAX_RANKS] = {0};

    for (int r = 0; r < n; ++r) {
        units[r] = units_between(call, rank, r);
    }
    open_side(call, 0, n, units);
    open_side(call, 1, n, units);
    for (int r = 0; r < n; ++r) {
        if (call->in_place) {
            block_there(call, r, rank, r, units[r]);
        } else {
            block_sent(call, r, rank, r, units[r]);
        }
    }
    for (int r = 0; r < n; ++r) {
        block_taken(call, r, r, rank, units[r]);
    }
}

/** A ring: block 0 goes down and comes from below, block 1 goes up and comes from above. */
static void neighbor_sides(mix_call_t *call)
{
    const int n = call->on->size, rank = call->on->rank;
    const int down = (rank + n - 1) % n, up = (rank + 1) % n;
    const int sent[2] = {units_between(call, rank, 0), units_between(call, rank, 1)};
    const int taken[2] = {units_between(call, down, 1), units_between(call, up, 0)};

    open_side(call, 0, 2, sent);
    open_side(call, 1, 2, taken);
    block_sent(call, 0, rank, 0, sent[0]);
    block_sent(call, 1, rank, 1, sent[1]);
    block_taken(call, 0, down, 1, taken[0]);
    block_taken(call, 1, up, 0, taken[1]);
}

static void bcast_sides(mix_call_t *call)
{
    open_side(call, 0, 0, NULL);
    open_side(call, 1, 1, &call->units);
    if (call->on->rank == call->root) {
        block_there(call, 0, call->root, 0, call->units);
    }
    block_taken(call, 0, call->root, 0, call->units);
}

static void open_sides(mix_call_t *call)
{
    switch (call->kind) {
    case MIX_ALLREDUCE:
    case MIX_REDUCE:
    case MIX_SCAN:
    case MIX_EXSCAN:
        reduce_sides(call, 1);
        break;
    case MIX_REDUCE_SCATTER_BLOCK:
        reduce_sides(call, call->on->size);
        break;
    case MIX_GATHER:
    case MIX_GATHERV:
        gather_sides(call, false);
        break;
    case MIX_ALLGATHER:
    case MIX_ALLGATHERV:
        gather_sides(call, true);
        break;
    case MIX_SCATTER:
    case MIX_SCATTERV:
        scatter_sides(call);
        break;
    case MIX_ALLTOALL:
    case MIX_ALLTOALLV:
    case MIX_ALLTOALLW:
        alltoall_sides(call);
        break;
    case MIX_NEIGHBOR_ALLTOALLV:
        neighbor_sides(call);
        break;
    case MIX_BCAST:
        bcast_sides(call);
        break;
    case MIX_BARRIER:
    case MIX_KIND_COUNT:
        open_side(call, 0, 0, NULL);
        open_side(call, 1, 0, NULL);
        break;
    }
}

static void start_reduction(mix_call_t *call, void *in)
{
    const MPI_Op op = call->user_op ? mix_op() : MPI_SUM;
    const MPI_Datatype type = mix_type(call->recv.class);
    const int count = call->recv.counts[0];
    void *out = mix_side_base(&call->recv);
    MPI_Comm comm = call->on->comm;

    switch ((int) call->kind) {
    case MIX_ALLREDUCE:
        MIX_CALL(call, Allreduce, allreduce, in, out, count, type, op, comm);
        break;
    case MIX_REDUCE:
        MIX_CALL(call, Reduce, reduce, in, out, count, type, op, call->root, comm);
        break;
    case MIX_SCAN:
        MIX_CALL(call, Scan, scan, in, out, count, type, op, comm);
        break;
    case MIX_EXSCAN:
        MIX_CALL(call, Exscan, exscan, in, out, count, type, op, comm);
        break;
    default:
        MIX_CALL(call, Reduce_scatter_block, reduce_scatter_block, in, out, count, type, op, comm);
        break;
    }
}

static void start_rooted(mix_call_t *call, void *in, void *out)
{
    const mix_side_t *s = &call->send, *r = &call->recv;
    const MPI_Datatype st = mix_type(s->class), rt = mix_type(r->class);
    MPI_Comm comm = call->on->comm;

    switch ((int) call->kind) {
    case MIX_BCAST:
        MIX_CALL(call, Bcast, bcast, out, r->counts[0], rt, call->root, comm);
        break;
    case MIX_GATHER:
        MIX_CALL(call, Gather, gather, in, s->counts[0], st, out, r->counts[0], rt, call->root,
                 comm);
        break;
    case MIX_GATHERV:
        MIX_CALL(call, Gatherv, gatherv, in, s->counts[0], st, out, r->counts, r->displs, rt,
                 call->root, comm);
        break;
    case MIX_SCATTER:
        MIX_CALL(call, Scatter, scatter, in, s->counts[0], st, out, r->counts[0], rt, call->root,
                 comm);
        break;
    default:
        MIX_CALL(call, Scatterv, scatterv, in, s->counts, s->displs, st, out, r->counts[0], rt,
                 call->root, comm);
        break;
    }
}

static void start_alltoallw(mix_call_t *call, void *in, void *out)
{
    const mix_side_t *s = &call->send, *r = &call->recv;

    for (int i = 0; i < call->on->size; ++i) {
        call->types[0][i] = mix_type(s->class);
        call->types[1][i] = mix_type(r->class);
    }
    MIX_CALL(call, Alltoallw, alltoallw, in, s->counts, s->byte_displs, call->types[0], out,
             r->counts, r->byte_displs, call->types[1], call->on->comm);
}

static void start_all(mix_call_t *call, void *in, void *out)
{
    const mix_side_t *s = &call->send, *r = &call->recv;
    const MPI_Datatype st = mix_type(s->class), rt = mix_type(r->class);
    MPI_Comm comm = call->on->comm;

    switch ((int) call->kind) {
    case MIX_ALLGATHER:
        MIX_CALL(call, Allgather, allgather, in, s->counts[0], st, out, r->counts[0], rt, comm);
        break;
    case MIX_ALLGATHERV:
        MIX_CALL(call, Allgatherv, allgatherv, in, s->counts[0], st, out, r->counts, r->displs, rt,
                 comm);
        break;
    case MIX_ALLTOALL:
        MIX_CALL(call, Alltoall, alltoall, in, s->counts[0], st, out, r->counts[0], rt, comm);
        break;
    case MIX_ALLTOALLV:
        MIX_CALL(call, Alltoallv, alltoallv, in, s->counts, s->displs, st, out, r->counts,
                 r->displs, rt, comm);
        break;
    case MIX_ALLTOALLW:
        start_alltoallw(call, in, out);
        break;
    case MIX_NEIGHBOR_ALLTOALLV:
        MIX_CALL(call, Neighbor_alltoallv, neighbor_alltoallv, in, s->counts, s->displs, st, out,
                 r->counts, r->displs, rt, comm);
        break;
    default:
        MIX_CALL(call, Barrier, barrier, comm);
        break;
    }
}

void mix_call_start(mix_call_t *call)
{
    const bool rooted =
        MIX_REDUCE == call->kind || (MIX_BCAST <= call->kind && MIX_SCATTERV >= call->kind);
    const bool scatter = MIX_SCATTER == call->kind || MIX_SCATTERV == call->kind;
    void *in, *out;

    if (MIX_NEIGHBOR_ALLTOALLV == call->kind || MIX_BCAST == call->kind ||
        (rooted && call->on->rank != call->root)) {
        call->in_place = false;
    }
    call->request = MPI_REQUEST_NULL;
    open_sides(call);
    in = call->in_place && !scatter ? MPI_IN_PLACE : mix_side_base(&call->send);
    out = call->in_place && scatter ? MPI_IN_PLACE : mix_side_base(&call->recv);
    if (call->kind <= MIX_REDUCE_SCATTER_BLOCK) {
        start_reduction(call, in);
    } else if (rooted) {
        start_rooted(call, in, out);
    } else {
        start_all(call, in, out);
    }
}

void mix_call_refill(mix_call_t *call)
{
    ++call->starts;
    open_sides(call);
}

unsigned mix_call_check(const mix_call_t *call)
{
    const bool sent = mix_side_right(&call->send);
    /* exscan leaves rank 0's result undefined */
    const bool taken =
        (MIX_EXSCAN == call->kind && 0 == call->on->rank) || mix_side_right(&call->recv);

    if (!sent || !taken) {
        fprintf(stderr,
                "# kind %d mode %d rank %d of %d, %d units, root %d, in place %d, user op %d, "
                "salt %u, start %u: wrong %s\n",
                (int) call->kind, (int) call->mode, call->on->rank, call->on->size, call->units,
                call->root, (int) call->in_place, (int) call->user_op, call->salt, call->starts,
                sent ? "result" : "send buffer");
    }
    return sent && taken ? 0 : 1;
}

void mix_call_end(mix_call_t *call)
{
    if (MPI_REQUEST_NULL != call->request) {
        MPI_Request_free(&call->request);
    }
    mix_side_fini(&call->send);
    mix_side_fini(&call->recv);
}
