/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ping-pong, and windows of messages one way and both ways.
 */
#include "r2_config.h"

#include "pairs.h"

#include <stdlib.h>

enum { TAG_DATA = 1, TAG_DONE, TAG_MEET };

bool r2_bench_pairs_init(r2_bench_pairs_t *pairs, size_t window, size_t stride_bytes, int ranks,
                         int rank)
{
    int half = ranks / 2;

    pairs->requests = calloc(2 * window, sizeof(*pairs->requests));
    pairs->window = window;
    pairs->stride_bytes = stride_bytes;
    pairs->first = rank < half;
    pairs->peer = pairs->first ? rank + half : rank - half;
    return NULL != pairs->requests;
}

void r2_bench_pairs_fini(r2_bench_pairs_t *pairs)
{
    free(pairs->requests);
    pairs->requests = NULL;
}

void r2_bench_pairs_meet(const r2_bench_pairs_t *pairs, MPI_Comm comm)
{
    if (pairs->first) {
        MPI_Recv(NULL, 0, MPI_CHAR, pairs->peer, TAG_MEET, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(NULL, 0, MPI_CHAR, pairs->peer, TAG_MEET, comm);
    }
}

static void send(const r2_bench_pairs_t *pairs, const r2_bench_call_t *call)
{
    MPI_Send(call->send, call->count, call->type, pairs->peer, TAG_DATA, call->comm);
}

static void receive(const r2_bench_pairs_t *pairs, const r2_bench_call_t *call)
{
    MPI_Recv(call->recv, call->count, call->type, pairs->peer, TAG_DATA, call->comm,
             MPI_STATUS_IGNORE);
}

static void ping_pong(const r2_bench_pairs_t *pairs, const r2_bench_call_t *call)
{
    if (pairs->first) {
        send(pairs, call);
        receive(pairs, call);
    } else {
        receive(pairs, call);
        send(pairs, call);
    }
}

static void start_sends(const r2_bench_pairs_t *pairs, const r2_bench_call_t *call,
                        MPI_Request *requests)
{
    const char *place = call->send;

    for (size_t i = 0; i < pairs->window; ++i) {
        MPI_Isend(place + i * pairs->stride_bytes, call->count, call->type, pairs->peer, TAG_DATA,
                  call->comm, &requests[i]);
    }
}

static void start_receives(const r2_bench_pairs_t *pairs, const r2_bench_call_t *call,
                           MPI_Request *requests)
{
    char *place = call->recv;

    for (size_t i = 0; i < pairs->window; ++i) {
        MPI_Irecv(place + i * pairs->stride_bytes, call->count, call->type, pairs->peer, TAG_DATA,
                  call->comm, &requests[i]);
    }
}

/* A window from the first to the second, which then says that it has everything. */
static void one_way(r2_bench_pairs_t *pairs, const r2_bench_call_t *call)
{
    int window = (int) pairs->window;
    char done = 0;

    if (pairs->first) {
        start_sends(pairs, call, pairs->requests);
        MPI_Waitall(window, pairs->requests, MPI_STATUSES_IGNORE);
        MPI_Recv(&done, 1, MPI_CHAR, pairs->peer, TAG_DONE, call->comm, MPI_STATUS_IGNORE);
    } else {
        start_receives(pairs, call, pairs->requests);
        MPI_Waitall(window, pairs->requests, MPI_STATUSES_IGNORE);
        MPI_Send(&done, 1, MPI_CHAR, pairs->peer, TAG_DONE, call->comm);
    }
}

static void both_ways(r2_bench_pairs_t *pairs, const r2_bench_call_t *call)
{
    start_receives(pairs, call, pairs->requests);
    start_sends(pairs, call, pairs->requests + pairs->window);
    MPI_Waitall((int) (2 * pairs->window), pairs->requests, MPI_STATUSES_IGNORE);
}

void r2_bench_pairs_call(r2_bench_pairs_t *pairs, r2_bench_way_t way, const r2_bench_call_t *call)
{
    switch (way) {
    case R2_BENCH_NO_PAIRS:
        break;
    case R2_BENCH_PING_PONG:
        ping_pong(pairs, call);
        break;
    case R2_BENCH_ONE_WAY:
        one_way(pairs, call);
        break;
    case R2_BENCH_BOTH_WAYS:
        both_ways(pairs, call);
        break;
    }
}
