/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw.
 */
#include "call.h"

int mca_coll_r2_make_alltoall(mca_coll_r2_call_t *call, const void *sbuf,
                              mca_coll_r2_mpi_count_t scount, struct ompi_datatype_t *sdtype,
                              void *rbuf, mca_coll_r2_mpi_count_t rcount,
                              struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                              mca_coll_base_module_t *module)
{
    const int size = ompi_comm_size(comm);
    const mca_coll_r2_blocks_t from = {
        .base = sbuf, .block_count = size, .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t to = {
        .base = rbuf, .block_count = size, .count = rcount, .dtype = rdtype};
    int rc = mca_coll_r2_check_sides(&from, &to);
    uint64_t bytes;
    void *memory;

    mca_coll_r2_call_init(call, R2_COLL_ALLTOALL, comm, module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    bytes = mca_coll_r2_bytes(rcount, rdtype);
    call->args.in_place = MPI_IN_PLACE == sbuf;
    call->args.count = bytes;
    if (!call->args.in_place && mca_coll_r2_bytes(scount, sdtype) != bytes) {
        call->truncated = true;
        call->args.count =
            mca_coll_r2_bytes(scount, sdtype) < bytes ? mca_coll_r2_bytes(scount, sdtype) : bytes;
    }
    if (0 == bytes) {
        return MCA_COLL_R2_NOTHING;
    }
    rc = mca_coll_r2_stream_init(&call->out, &to, &call->args.out, &call->args.out_convertor);
    if (OMPI_SUCCESS != rc || call->args.in_place) {
        return rc;
    }
    rc = mca_coll_r2_stream_init(&call->in, &from, &memory, &call->args.in_convertor);
    call->args.in = memory;
    return rc;
}

/* Messages in the order of r2core's steps; in place it is the receive buffer that is sent. */
static int r2_alltoall_edges(mca_coll_r2_call_t *call, const mca_coll_r2_blocks_t *from,
                             const mca_coll_r2_blocks_t *to)
{
    mca_coll_r2_side_t sends, recvs;
    int rc = mca_coll_r2_check_sides(from, to);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->args.in_place = MPI_IN_PLACE == from->base;
    rc = mca_coll_r2_sides_init(call, &sends, call->args.in_place ? NULL : from, call->size, &recvs,
                                to, call->size);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (int step = 0; step < call->size; ++step) {
        int peer = (int) (((int64_t) step - call->rank + call->size) % call->size);

        mca_coll_r2_side_add(&recvs, peer, 0, peer);
        if (call->args.in_place) {
            sends.edges[sends.edge_count++] = recvs.edges[step];
        } else {
            mca_coll_r2_side_add(&sends, peer, 0, peer);
        }
    }
    mca_coll_r2_sides_done(call, &sends, &recvs);
    return OMPI_SUCCESS;
}

int mca_coll_r2_make_alltoallv(mca_coll_r2_call_t *call, const void *sbuf,
                               mca_coll_r2_mpi_counts_t scounts, mca_coll_r2_mpi_displs_t sdisps,
                               struct ompi_datatype_t *sdtype, void *rbuf,
                               mca_coll_r2_mpi_counts_t rcounts, mca_coll_r2_mpi_displs_t rdisps,
                               struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf,
                                       .block_count = ompi_comm_size(comm),
                                       .listed = true,
                                       .counts = mca_coll_r2_counts_of(scounts),
                                       .displs = mca_coll_r2_displs_of(sdisps),
                                       .dtype = sdtype};
    const mca_coll_r2_blocks_t to = {.base = rbuf,
                                     .block_count = ompi_comm_size(comm),
                                     .listed = true,
                                     .counts = mca_coll_r2_counts_of(rcounts),
                                     .displs = mca_coll_r2_displs_of(rdisps),
                                     .dtype = rdtype};

    mca_coll_r2_call_init(call, R2_COLL_ALLTOALLV, comm, module);
    return r2_alltoall_edges(call, &from, &to);
}

int mca_coll_r2_make_alltoallw(mca_coll_r2_call_t *call, const void *sbuf,
                               mca_coll_r2_mpi_counts_t scounts, mca_coll_r2_mpi_displs_t sdisps,
                               struct ompi_datatype_t *const *sdtypes, void *rbuf,
                               mca_coll_r2_mpi_counts_t rcounts, mca_coll_r2_mpi_displs_t rdisps,
                               struct ompi_datatype_t *const *rdtypes,
                               struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t from = {.base = sbuf,
                                       .block_count = ompi_comm_size(comm),
                                       .listed = true,
                                       .counts = mca_coll_r2_counts_of(scounts),
                                       .byte_displs = mca_coll_r2_displs_of(sdisps),
                                       .dtypes = sdtypes};
    const mca_coll_r2_blocks_t to = {.base = rbuf,
                                     .block_count = ompi_comm_size(comm),
                                     .listed = true,
                                     .counts = mca_coll_r2_counts_of(rcounts),
                                     .byte_displs = mca_coll_r2_displs_of(rdisps),
                                     .dtypes = rdtypes};

    mca_coll_r2_call_init(call, R2_COLL_ALLTOALLW, comm, module);
    return r2_alltoall_edges(call, &from, &to);
}
