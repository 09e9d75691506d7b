/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Gather, MPI_Gatherv, MPI_Scatter and MPI_Scatterv.
 */
#include "call.h"

/*
 * The root's own block is its own matter: where its arguments contradict each other, it is left out
 * and the call fails there, and no other rank notices.
 */
static bool r2_own_block_fits(mca_coll_r2_call_t *call, const void *own, size_t scount,
                              struct ompi_datatype_t *sdtype, size_t rcount,
                              struct ompi_datatype_t *rdtype)
{
    if (MPI_IN_PLACE == own) {
        return false;
    }
    call->truncated = mca_coll_r2_bytes(scount, sdtype) != mca_coll_r2_bytes(rcount, rdtype);
    return !call->truncated;
}

static int r2_input_init(mca_coll_r2_call_t *call, const mca_coll_r2_blocks_t *blocks)
{
    void *memory;
    int rc = mca_coll_r2_stream_init(&call->in, blocks, &memory, &call->args.in_convertor);

    call->args.in = memory;
    return rc;
}

static int r2_output_init(mca_coll_r2_call_t *call, const mca_coll_r2_blocks_t *blocks)
{
    return mca_coll_r2_stream_init(&call->out, blocks, &call->args.out, &call->args.out_convertor);
}

int mca_coll_r2_make_gather(mca_coll_r2_call_t *call, const void *sbuf,
                            mca_coll_r2_mpi_count_t scount, struct ompi_datatype_t *sdtype,
                            void *rbuf, mca_coll_r2_mpi_count_t rcount,
                            struct ompi_datatype_t *rdtype, int root,
                            struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t one = {
        .base = sbuf, .block_count = 1, .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t all = {
        .base = rbuf, .block_count = ompi_comm_size(comm), .count = rcount, .dtype = rdtype};
    int rc;

    mca_coll_r2_call_init(call, R2_COLL_GATHER, comm, module);
    rc = mca_coll_r2_check_sides(&one, root == call->rank ? &all : NULL);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->args.root = root;
    if (root != call->rank) {
        call->args.count = mca_coll_r2_bytes(scount, sdtype);
        return 0 == call->args.count ? MCA_COLL_R2_NOTHING : r2_input_init(call, &one);
    }
    call->args.count = mca_coll_r2_bytes(rcount, rdtype);
    if (0 == call->args.count) {
        return MCA_COLL_R2_NOTHING;
    }
    call->args.in_place = !r2_own_block_fits(call, sbuf, scount, sdtype, rcount, rdtype);
    if (!call->args.in_place) {
        rc = r2_input_init(call, &one);
    }
    return OMPI_SUCCESS == rc ? r2_output_init(call, &all) : rc;
}

int mca_coll_r2_make_scatter(mca_coll_r2_call_t *call, const void *sbuf,
                             mca_coll_r2_mpi_count_t scount, struct ompi_datatype_t *sdtype,
                             void *rbuf, mca_coll_r2_mpi_count_t rcount,
                             struct ompi_datatype_t *rdtype, int root,
                             struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t all = {
        .base = sbuf, .block_count = ompi_comm_size(comm), .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t one = {
        .base = rbuf, .block_count = 1, .count = rcount, .dtype = rdtype};
    int rc;

    mca_coll_r2_call_init(call, R2_COLL_SCATTER, comm, module);
    rc = mca_coll_r2_check_sides(root == call->rank ? &all : NULL, &one);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->args.root = root;
    if (root != call->rank) {
        call->args.count = mca_coll_r2_bytes(rcount, rdtype);
        return 0 == call->args.count ? MCA_COLL_R2_NOTHING : r2_output_init(call, &one);
    }
    call->args.count = mca_coll_r2_bytes(scount, sdtype);
    if (0 == call->args.count) {
        return MCA_COLL_R2_NOTHING;
    }
    call->args.in_place = !r2_own_block_fits(call, rbuf, scount, sdtype, rcount, rdtype);
    if (!call->args.in_place) {
        rc = r2_output_init(call, &one);
    }
    return OMPI_SUCCESS == rc ? r2_input_init(call, &all) : rc;
}

/* Blocks of the root from its own on, around the circle; with `own` false without that one. */
static void r2_root_edges(const mca_coll_r2_call_t *call, mca_coll_r2_side_t *side, bool own)
{
    for (int step = own ? 0 : 1; step < call->size; ++step) {
        int peer = (int) (((int64_t) call->rank + step) % call->size);

        mca_coll_r2_side_add(side, peer, 0, peer);
    }
}

int mca_coll_r2_make_gatherv(mca_coll_r2_call_t *call, const void *sbuf,
                             mca_coll_r2_mpi_count_t scount, struct ompi_datatype_t *sdtype,
                             void *rbuf, mca_coll_r2_mpi_counts_t rcounts,
                             mca_coll_r2_mpi_displs_t disps, struct ompi_datatype_t *rdtype,
                             int root, struct ompi_communicator_t *comm,
                             mca_coll_base_module_t *module)
{
    const bool is_root = root == ompi_comm_rank(comm);
    const mca_coll_r2_blocks_t one = {
        .base = sbuf, .block_count = 1, .count = scount, .dtype = sdtype};
    const mca_coll_r2_blocks_t all = {.base = rbuf,
                                      .block_count = is_root ? ompi_comm_size(comm) : 0,
                                      .listed = true,
                                      .counts = mca_coll_r2_counts_of(rcounts),
                                      .displs = mca_coll_r2_displs_of(disps),
                                      .dtype = rdtype};
    mca_coll_r2_side_t sends, recvs;
    bool own;
    int rc;

    mca_coll_r2_call_init(call, R2_COLL_GATHERV, comm, module);
    rc = mca_coll_r2_check_sides(&one, &all);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->args.root = root;
    own = is_root && r2_own_block_fits(call, sbuf, scount, sdtype,
                                       mca_coll_r2_count_at(all.counts, root), rdtype);
    rc = mca_coll_r2_sides_init(call, &sends, !is_root || own ? &one : NULL, 1, &recvs, &all,
                                all.block_count);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (is_root) {
        r2_root_edges(call, &recvs, own);
    }
    if (!is_root || own) {
        mca_coll_r2_side_add(&sends, root, 0, 0);
    }
    mca_coll_r2_sides_done(call, &sends, &recvs);
    return OMPI_SUCCESS;
}

int mca_coll_r2_make_scatterv(mca_coll_r2_call_t *call, const void *sbuf,
                              mca_coll_r2_mpi_counts_t scounts, mca_coll_r2_mpi_displs_t disps,
                              struct ompi_datatype_t *sdtype, void *rbuf,
                              mca_coll_r2_mpi_count_t rcount, struct ompi_datatype_t *rdtype,
                              int root, struct ompi_communicator_t *comm,
                              mca_coll_base_module_t *module)
{
    const bool is_root = root == ompi_comm_rank(comm);
    const mca_coll_r2_blocks_t all = {.base = sbuf,
                                      .block_count = is_root ? ompi_comm_size(comm) : 0,
                                      .listed = true,
                                      .counts = mca_coll_r2_counts_of(scounts),
                                      .displs = mca_coll_r2_displs_of(disps),
                                      .dtype = sdtype};
    const mca_coll_r2_blocks_t one = {
        .base = rbuf, .block_count = 1, .count = rcount, .dtype = rdtype};
    mca_coll_r2_side_t sends, recvs;
    bool own;
    int rc;

    mca_coll_r2_call_init(call, R2_COLL_SCATTERV, comm, module);
    rc = mca_coll_r2_check_sides(&all, &one);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->args.root = root;
    own = is_root && r2_own_block_fits(call, rbuf, mca_coll_r2_count_at(all.counts, root), sdtype,
                                       rcount, rdtype);
    rc = mca_coll_r2_sides_init(call, &sends, &all, all.block_count, &recvs,
                                !is_root || own ? &one : NULL, 1);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (is_root) {
        r2_root_edges(call, &sends, own);
    }
    if (!is_root || own) {
        mca_coll_r2_side_add(&recvs, root, 0, 0);
    }
    mca_coll_r2_sides_done(call, &sends, &recvs);
    return OMPI_SUCCESS;
}
