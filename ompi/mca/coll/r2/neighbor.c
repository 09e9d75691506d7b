/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Neighbourhood collectives: MPI_Neighbor_allgather(v) and MPI_Neighbor_alltoall(v)(w).
 */
#include "call.h"

#include <stdlib.h>

#include "ompi/mca/topo/topo.h"

/** The neighbours of one rank: block i goes to target i, or comes from source i. */
typedef struct r2_neighbors {
    int *ranks;     /* owned: sources, then targets; MPI_PROC_NULL: there is none */
    uint32_t *tags; /* owned: parallel to ranks */
    int sources, targets;
} r2_neighbors_t;

static int r2_neighbors_alloc(r2_neighbors_t *neighbors, int sources, int targets)
{
    const size_t count = (size_t) sources + (size_t) targets + 1;

    neighbors->sources = sources;
    neighbors->targets = targets;
    neighbors->ranks = malloc(count * sizeof(*neighbors->ranks));
    neighbors->tags = malloc(count * sizeof(*neighbors->tags));
    return NULL == neighbors->ranks || NULL == neighbors->tags ? OMPI_ERR_OUT_OF_RESOURCE
                                                               : OMPI_SUCCESS;
}

static void r2_neighbors_free(r2_neighbors_t *neighbors)
{
    free(neighbors->ranks);
    free(neighbors->tags);
}

/* Several edges join the same two ranks: both ends count them in their order. */
static int r2_neighbors_count(const int *ranks, uint32_t *tags, int count, int size)
{
    uint32_t *edges = calloc((size_t) size, sizeof(*edges)); /* to each rank, so far */

    if (NULL == edges) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < count; ++i) {
        tags[i] = MPI_PROC_NULL == ranks[i] ? 0 : edges[ranks[i]]++;
    }
    free(edges);
    return OMPI_SUCCESS;
}

/* What goes down a dimension arrives as from above: message i is the peer's message i ^ 1. */
static int r2_neighbors_cart(r2_neighbors_t *neighbors, struct ompi_communicator_t *comm)
{
    const int dims = comm->c_topo->mtc.cart->ndims;
    int rc = r2_neighbors_alloc(neighbors, 2 * dims, 2 * dims);

    for (int dim = 0; OMPI_SUCCESS == rc && dim < dims; ++dim) {
        int *sources = neighbors->ranks + 2 * dim;
        int *targets = neighbors->ranks + 2 * dims + 2 * dim;

        rc = comm->c_topo->topo.cart.cart_shift(comm, dim, 1, &sources[0], &sources[1]);
        targets[0] = sources[0];
        targets[1] = sources[1];
        for (int side = 0; side < 2; ++side) {
            neighbors->tags[2 * dim + side] = (uint32_t) (2 * dim + side);
            neighbors->tags[2 * dims + 2 * dim + side] = (uint32_t) (2 * dim + 1 - side);
        }
    }
    return rc;
}

static int r2_neighbors_lists(r2_neighbors_t *neighbors, int size, const int *sources,
                              int source_count, const int *targets, int target_count)
{
    int rc = r2_neighbors_alloc(neighbors, source_count, target_count);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (int i = 0; i < source_count; ++i) {
        neighbors->ranks[i] = sources[i];
    }
    for (int i = 0; i < target_count; ++i) {
        neighbors->ranks[source_count + i] = targets[i];
    }
    rc = r2_neighbors_count(neighbors->ranks, neighbors->tags, source_count, size);
    return OMPI_SUCCESS != rc
               ? rc
               : r2_neighbors_count(neighbors->ranks + source_count, neighbors->tags + source_count,
                                    target_count, size);
}

static int r2_neighbors_get(r2_neighbors_t *neighbors, struct ompi_communicator_t *comm)
{
    *neighbors = (r2_neighbors_t){.ranks = NULL};
    if (OMPI_COMM_IS_CART(comm)) {
        return r2_neighbors_cart(neighbors, comm);
    }
    if (OMPI_COMM_IS_GRAPH(comm)) {
        const mca_topo_base_comm_graph_t *graph = comm->c_topo->mtc.graph;
        const int rank = ompi_comm_rank(comm);
        const int first = 0 == rank ? 0 : graph->index[rank - 1];
        const int count = graph->index[rank] - first;

        return r2_neighbors_lists(neighbors, ompi_comm_size(comm), graph->edges + first, count,
                                  graph->edges + first, count);
    }
    if (OMPI_COMM_IS_DIST_GRAPH(comm)) {
        const mca_topo_base_comm_dist_graph_t *graph = comm->c_topo->mtc.dist_graph;

        return r2_neighbors_lists(neighbors, ompi_comm_size(comm), graph->in, graph->indegree,
                                  graph->out, graph->outdegree);
    }
    return MCA_COLL_R2_DECLINED;
}

/* Where blocks lie: of `from` there is one for all targets, or one for each. */
static int r2_neighbors_make(mca_coll_r2_call_t *call, const r2_neighbors_t *neighbors,
                             const mca_coll_r2_blocks_t *from, const mca_coll_r2_blocks_t *to,
                             bool same)
{
    mca_coll_r2_side_t sends, recvs;
    int rc;

    rc = mca_coll_r2_sides_init(call, &sends, from, neighbors->targets, &recvs, to,
                                neighbors->sources);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (int i = 0; i < neighbors->sources; ++i) {
        if (MPI_PROC_NULL != neighbors->ranks[i]) {
            mca_coll_r2_side_add(&recvs, neighbors->ranks[i], neighbors->tags[i], i);
        }
    }
    for (int i = 0; i < neighbors->targets; ++i) {
        const int at = neighbors->sources + i;

        if (MPI_PROC_NULL != neighbors->ranks[at]) {
            mca_coll_r2_side_add(&sends, neighbors->ranks[at], neighbors->tags[at], same ? 0 : i);
        }
    }
    mca_coll_r2_sides_done(call, &sends, &recvs);
    return OMPI_SUCCESS;
}

static int r2_neighbor_make(mca_coll_r2_call_t *call, mca_coll_r2_blocks_t from,
                            mca_coll_r2_blocks_t to, bool same, struct ompi_communicator_t *comm,
                            mca_coll_base_module_t *module)
{
    r2_neighbors_t neighbors;
    int rc = r2_neighbors_get(&neighbors, comm);

    mca_coll_r2_call_init(call, R2_COLL_NEIGHBOR, comm, module);
    if (OMPI_SUCCESS == rc) {
        from.block_count = same ? 1 : neighbors.targets;
        to.block_count = neighbors.sources;
        rc = mca_coll_r2_check_sides(&from, &to);
    }
    if (OMPI_SUCCESS == rc) {
        rc = r2_neighbors_make(call, &neighbors, &from, &to, same);
    }
    r2_neighbors_free(&neighbors);
    return rc;
}

int mca_coll_r2_make_neighbor_allgather(mca_coll_r2_call_t *call, const void *sbuf,
                                        mca_coll_r2_mpi_count_t scount,
                                        struct ompi_datatype_t *sdtype, void *rbuf,
                                        mca_coll_r2_mpi_count_t rcount,
                                        struct ompi_datatype_t *rdtype,
                                        struct ompi_communicator_t *comm,
                                        mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf, .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t to = {.base = rbuf, .count = rcount, .dtype = rdtype};

    return r2_neighbor_make(call, from, to, true, comm, module);
}

int mca_coll_r2_make_neighbor_allgatherv(
    mca_coll_r2_call_t *call, const void *sbuf, mca_coll_r2_mpi_count_t scount,
    struct ompi_datatype_t *sdtype, void *rbuf, mca_coll_r2_mpi_counts_t rcounts,
    mca_coll_r2_mpi_displs_t disps, struct ompi_datatype_t *rdtype,
    struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf, .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t to = {.base = rbuf,
                                     .listed = true,
                                     .counts = mca_coll_r2_counts_of(rcounts),
                                     .displs = mca_coll_r2_displs_of(disps),
                                     .dtype = rdtype};

    return r2_neighbor_make(call, from, to, true, comm, module);
}

int mca_coll_r2_make_neighbor_alltoall(mca_coll_r2_call_t *call, const void *sbuf,
                                       mca_coll_r2_mpi_count_t scount,
                                       struct ompi_datatype_t *sdtype, void *rbuf,
                                       mca_coll_r2_mpi_count_t rcount,
                                       struct ompi_datatype_t *rdtype,
                                       struct ompi_communicator_t *comm,
                                       mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf, .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t to = {.base = rbuf, .count = rcount, .dtype = rdtype};

    return r2_neighbor_make(call, from, to, false, comm, module);
}

int mca_coll_r2_make_neighbor_alltoallv(
    mca_coll_r2_call_t *call, const void *sbuf, mca_coll_r2_mpi_counts_t scounts,
    mca_coll_r2_mpi_displs_t sdisps, struct ompi_datatype_t *sdtype, void *rbuf,
    mca_coll_r2_mpi_counts_t rcounts, mca_coll_r2_mpi_displs_t rdisps,
    struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
    mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf,
                                       .listed = true,
                                       .counts = mca_coll_r2_counts_of(scounts),
                                       .displs = mca_coll_r2_displs_of(sdisps),
                                       .dtype = sdtype};
    const mca_coll_r2_blocks_t to = {.base = rbuf,
                                     .listed = true,
                                     .counts = mca_coll_r2_counts_of(rcounts),
                                     .displs = mca_coll_r2_displs_of(rdisps),
                                     .dtype = rdtype};

    return r2_neighbor_make(call, from, to, false, comm, module);
}

int mca_coll_r2_make_neighbor_alltoallw(
    mca_coll_r2_call_t *call, const void *sbuf, mca_coll_r2_mpi_counts_t scounts,
    mca_coll_r2_mpi_far_displs_t sdisps, struct ompi_datatype_t *const *sdtypes, void *rbuf,
    mca_coll_r2_mpi_counts_t rcounts, mca_coll_r2_mpi_far_displs_t rdisps,
    struct ompi_datatype_t *const *rdtypes, struct ompi_communicator_t *comm,
    mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf,
                                       .listed = true,
                                       .counts = mca_coll_r2_counts_of(scounts),
                                       .byte_displs = mca_coll_r2_far_displs_of(sdisps),
                                       .dtypes = sdtypes};
    const mca_coll_r2_blocks_t to = {.base = rbuf,
                                     .listed = true,
                                     .counts = mca_coll_r2_counts_of(rcounts),
                                     .byte_displs = mca_coll_r2_far_displs_of(rdisps),
                                     .dtypes = rdtypes};

    return r2_neighbor_make(call, from, to, false, comm, module);
}
