/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Allgather and MPI_Allgatherv.
 */
#include "call.h"

#include <stdlib.h>

/*
 * One rank's arguments. Ranks may describe equal data by different types: r2core sees bytes only. A
 * block that is not as long as this rank's own arguments say is an error that no other rank may
 * wait for: the call is made with the shorter of the two, and fails where plans then differ, or
 * here.
 * @param block_bytes this rank's block in the receive buffer; @return bytes to gather, in *bytes_p.
 */
static int r2_allgather_input(mca_coll_r2_call_t *call, const void *sbuf, size_t scount,
                              struct ompi_datatype_t *sdtype, uint64_t block_bytes,
                              uint64_t *bytes_p)
{
    const mca_coll_r2_blocks_t blocks = {
        .base = sbuf, .block_count = 1, .count = scount, .dtype = sdtype};
    uint64_t bytes;
    void *memory;
    int rc;

    *bytes_p = block_bytes;
    if (MPI_IN_PLACE == sbuf) {
        call->args.in_place = true;
        return OMPI_SUCCESS;
    }
    rc = mca_coll_r2_stream_init(&call->in, &blocks, &memory, &call->args.in_convertor);
    call->args.in = memory;
    bytes = mca_coll_r2_bytes(scount, sdtype);
    if (bytes != block_bytes) {
        call->truncated = true;
        *bytes_p = bytes < block_bytes ? bytes : block_bytes;
    }
    return rc;
}

static int r2_allgather_check(const void *sbuf, size_t scount, struct ompi_datatype_t *sdtype,
                              const mca_coll_r2_blocks_t *to)
{
    const mca_coll_r2_blocks_t from = {
        .base = sbuf, .block_count = 1, .count = scount, .dtype = sdtype};

    return mca_coll_r2_check_sides(&from, to);
}

int mca_coll_r2_make_allgather(mca_coll_r2_call_t *call, const void *sbuf,
                               mca_coll_r2_mpi_count_t scount, struct ompi_datatype_t *sdtype,
                               void *rbuf, mca_coll_r2_mpi_count_t rcount,
                               struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t blocks = {
        .base = rbuf, .block_count = ompi_comm_size(comm), .count = rcount, .dtype = rdtype};
    uint64_t bytes;
    int rc;

    mca_coll_r2_call_init(call, R2_COLL_ALLGATHER, comm, module);
    rc = r2_allgather_check(sbuf, scount, sdtype, &blocks);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    bytes = mca_coll_r2_bytes(rcount, rdtype);
    if (0 == bytes) {
        return MCA_COLL_R2_NOTHING;
    }
    rc = mca_coll_r2_stream_init(&call->out, &blocks, &call->args.out, &call->args.out_convertor);
    return OMPI_SUCCESS != rc
               ? rc
               : r2_allgather_input(call, sbuf, scount, sdtype, bytes, &call->args.count);
}

/* Bytes per rank. The receive buffer is reached block by block, wherever disps puts the blocks. */
int mca_coll_r2_make_allgatherv(mca_coll_r2_call_t *call, const void *sbuf,
                                mca_coll_r2_mpi_count_t scount, struct ompi_datatype_t *sdtype,
                                void *rbuf, mca_coll_r2_mpi_counts_t rcounts,
                                mca_coll_r2_mpi_displs_t disps, struct ompi_datatype_t *rdtype,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t blocks = {.base = rbuf,
                                         .block_count = ompi_comm_size(comm),
                                         .listed = true,
                                         .counts = mca_coll_r2_counts_of(rcounts),
                                         .displs = mca_coll_r2_displs_of(disps),
                                         .dtype = rdtype};
    uint64_t total = 0;
    int rc;

    mca_coll_r2_call_init(call, R2_COLL_ALLGATHERV, comm, module);
    rc = r2_allgather_check(sbuf, scount, sdtype, &blocks);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (int i = 0; i < call->size; ++i) {
        total += mca_coll_r2_bytes(mca_coll_r2_count_at(blocks.counts, i), rdtype);
    }
    if (0 == total) {
        return MCA_COLL_R2_NOTHING;
    }
    call->counts = malloc((size_t) call->size * sizeof(*call->counts));
    if (NULL == call->counts) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < call->size; ++i) {
        call->counts[i] = mca_coll_r2_bytes(mca_coll_r2_count_at(blocks.counts, i), rdtype);
    }
    call->args.counts = call->counts;
    rc = mca_coll_r2_stream_init(&call->out, &blocks, &call->args.out, &call->args.out_convertor);
    return OMPI_SUCCESS != rc
               ? rc
               : r2_allgather_input(call, sbuf, scount, sdtype, call->counts[call->rank],
                                    &call->counts[call->rank]);
}
