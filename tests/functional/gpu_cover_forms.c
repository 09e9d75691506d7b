/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * All forms of collectives, in three ways, for gpu_cover.
 */
#include "gpu_cover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    define INIT(Name) MPIX_##Name##_init
#endif

/* Counts and places of blocks: unlike each other, with gaps. */
typedef struct blocks {
    int out_counts[RANKS_MAX], in_counts[RANKS_MAX], displs[RANKS_MAX];
    int byte_displs[RANKS_MAX];
    MPI_Aint aint_displs[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
    int gathered[RANKS_MAX]; /* of each rank */
} blocks_t;

enum { BLOCKING, NONBLOCKING, PERSISTENT };

static int way_of(const cover_case_t *what)
{
    return 0 == strcmp(what->way, "blocking")      ? BLOCKING
           : 0 == strcmp(what->way, "nonblocking") ? NONBLOCKING
                                                   : PERSISTENT;
}

static void describe(const cover_case_t *what, int others, blocks_t *blocks_p)
{
    const int room = what->count + 3;

    for (int i = 0; i < RANKS_MAX; ++i) {
        const int peer = i < cover_size ? i : 0;

        blocks_p->out_counts[i] = blocks_p->in_counts[i] = what->count + (cover_rank + peer) % 3;
        blocks_p->gathered[i] = what->count + peer % 3;
        blocks_p->displs[i] = i * room;
        blocks_p->byte_displs[i] = (int) ((size_t) (i * room) * cover_extent(what));
        blocks_p->aint_displs[i] = blocks_p->byte_displs[i];
        blocks_p->types[i] = what->dtype;
        if (others) { /* neighbors: as much either way */
            blocks_p->out_counts[i] = blocks_p->in_counts[i] = what->count + 1;
        }
    }
}

/* A call in its way; a persistent one twice. */
#define CALL(Name, name, ...)                                                       \
    do {                                                                            \
        if (BLOCKING == way) {                                                      \
            return MPI_##Name(__VA_ARGS__);                                         \
        }                                                                           \
        rc = NONBLOCKING == way ? MPI_I##name(__VA_ARGS__, &request)                \
                                : INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &request); \
        return MPI_SUCCESS == rc ? finish(way, &request) : rc;                      \
    } while (0)

static int finish(int way, MPI_Request *request)
{
    int rc = MPI_SUCCESS;

    if (PERSISTENT == way) {
        rc = MPI_Start(request);
    }
    rc = MPI_SUCCESS == rc ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
    if (PERSISTENT == way) {
        MPI_Request_free(request);
    }
    return rc;
}

static int is(const cover_case_t *what, const char *form)
{
    return 0 == strcmp(what->form, form);
}

static int reduction(const cover_case_t *what, const void *in, void *out, const blocks_t *blocks)
{
    const MPI_Comm comm = cover_comm;
    const int way = way_of(what), root = what->index % cover_size;
    MPI_Request request;
    int rc;

    if (is(what, "allreduce")) {
        CALL(Allreduce, allreduce, in, out, what->count, what->dtype, what->reduce, comm);
    } else if (is(what, "reduce")) {
        CALL(Reduce, reduce, in, out, what->count, what->dtype, what->reduce, root, comm);
    } else if (is(what, "scan")) {
        CALL(Scan, scan, in, out, what->count, what->dtype, what->reduce, comm);
    } else if (is(what, "exscan")) {
        CALL(Exscan, exscan, in, out, what->count, what->dtype, what->reduce, comm);
    } else if (is(what, "reduce_scatter")) {
        CALL(Reduce_scatter, reduce_scatter, in, out, blocks->gathered, what->dtype, what->reduce,
             comm);
    }
    CALL(Reduce_scatter_block, reduce_scatter_block, in, out, what->count, what->dtype,
         what->reduce, comm);
}

static int rooted(const cover_case_t *what, const void *in, void *out, const blocks_t *blocks)
{
    const MPI_Comm comm = cover_comm;
    const int way = way_of(what), root = what->index % cover_size, n = what->count;
    const MPI_Datatype t = what->dtype;
    MPI_Request request;
    int rc;

    if (is(what, "barrier")) {
        CALL(Barrier, barrier, comm);
    } else if (is(what, "bcast")) {
        CALL(Bcast, bcast, out, n, t, root, comm);
    } else if (is(what, "gather")) {
        CALL(Gather, gather, in, n, t, out, n, t, root, comm);
    } else if (is(what, "gatherv")) {
        CALL(Gatherv, gatherv, in, blocks->gathered[cover_rank], t, out, blocks->gathered,
             blocks->displs, t, root, comm);
    } else if (is(what, "scatter")) {
        /* in place is said by the receive buffer */
        CALL(Scatter, scatter, MPI_IN_PLACE == in ? out : in, n, t,
             MPI_IN_PLACE == in ? MPI_IN_PLACE : out, n, t, root, comm);
    }
    CALL(Scatterv, scatterv, MPI_IN_PLACE == in ? out : in, blocks->gathered, blocks->displs, t,
         MPI_IN_PLACE == in ? MPI_IN_PLACE : out, blocks->gathered[cover_rank], t, root, comm);
}

static int unrooted(const cover_case_t *what, const void *in, void *out, const blocks_t *b)
{
    const MPI_Comm comm = cover_comm;
    const int way = way_of(what), n = what->count;
    const MPI_Datatype t = what->dtype;
    MPI_Request request;
    int rc;

    if (is(what, "allgather")) {
        CALL(Allgather, allgather, in, n, t, out, n, t, comm);
    } else if (is(what, "allgatherv")) {
        CALL(Allgatherv, allgatherv, in, b->gathered[cover_rank], t, out, b->gathered, b->displs, t,
             comm);
    } else if (is(what, "alltoall")) {
        CALL(Alltoall, alltoall, in, n, t, out, n, t, comm);
    } else if (is(what, "alltoallv")) {
        CALL(Alltoallv, alltoallv, in, b->out_counts, b->displs, t, out, b->in_counts, b->displs, t,
             comm);
    }
    CALL(Alltoallw, alltoallw, in, b->out_counts, b->byte_displs, b->types, out, b->in_counts,
         b->byte_displs, b->types, comm);
}

static int neighbor(const cover_case_t *what, const void *in, void *out, const blocks_t *b,
                    MPI_Comm ring)
{
    const int way = way_of(what), n = what->count;
    const MPI_Datatype t = what->dtype;
    MPI_Request request;
    int rc;

    if (is(what, "neighbor_allgather")) {
        CALL(Neighbor_allgather, neighbor_allgather, in, n, t, out, n, t, ring);
    } else if (is(what, "neighbor_allgatherv")) {
        CALL(Neighbor_allgatherv, neighbor_allgatherv, in, b->out_counts[0], t, out, b->in_counts,
             b->displs, t, ring);
    } else if (is(what, "neighbor_alltoall")) {
        CALL(Neighbor_alltoall, neighbor_alltoall, in, n, t, out, n, t, ring);
    } else if (is(what, "neighbor_alltoallv")) {
        CALL(Neighbor_alltoallv, neighbor_alltoallv, in, b->out_counts, b->displs, t, out,
             b->in_counts, b->displs, t, ring);
    }
    CALL(Neighbor_alltoallw, neighbor_alltoallw, in, b->out_counts, b->aint_displs, b->types, out,
         b->in_counts, b->aint_displs, b->types, ring);
}

int cover_reduces(const cover_case_t *what)
{
    return NULL != strstr(what->form, "reduce") || NULL != strstr(what->form, "scan");
}

int cover_takes_in_place(const cover_case_t *what)
{
    const int is_root = what->index % cover_size == cover_rank;

    if (is(what, "gather") || is(what, "gatherv") || is(what, "scatter") || is(what, "scatterv") ||
        is(what, "reduce")) {
        return is_root;
    }
    return cover_reduces(what) || 0 == strncmp(what->form, "all", 3);
}

int cover_call(const cover_case_t *what, const void *in, void *out, MPI_Comm ring)
{
    const int neighbors = 0 == strncmp(what->form, "neighbor", 8);
    blocks_t blocks;

    describe(what, neighbors, &blocks);
    if (neighbors) {
        return neighbor(what, in, out, &blocks, ring);
    }
    if (cover_reduces(what)) {
        return reduction(what, in, out, &blocks);
    }
    if (0 == strncmp(what->form, "all", 3)) {
        return unrooted(what, in, out, &blocks);
    }
    return rooted(what, in, out, &blocks);
}
