/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Allgather, MPI_Allgatherv and MPI_Iallgather.
 */
#include "call.h"

#include <stdlib.h>

/*
 * One rank's arguments. Ranks may describe equal data by different types: r2core sees bytes only. A
 * block that is not as long as this rank's own arguments say is an error that no other rank may wait
 * for: the call is made with the shorter of the two, and fails where plans then differ, or here.
 * @param block_bytes this rank's block in the receive buffer; @return bytes to gather, in *bytes_p.
 */
static int r2_allgather_input(mca_coll_r2_call_t *call, const void *sbuf, int scount,
                              struct ompi_datatype_t *sdtype, uint64_t block_bytes, uint64_t *bytes_p)
{
    size_t type_bytes;
    uint64_t bytes;
    void *memory;
    int rc;

    *bytes_p = block_bytes;
    if (MPI_IN_PLACE == sbuf) {
        call->args.in_place = true;
        return OMPI_SUCCESS;
    }
    rc = mca_coll_r2_buffer_init(&call->in, sbuf, sdtype, &scount, NULL, 1, &memory,
                                 &call->args.in_mover);
    call->args.in = memory;
    ompi_datatype_type_size(sdtype, &type_bytes);
    bytes = (uint64_t) scount * type_bytes;
    if (bytes != block_bytes) {
        call->truncated = true;
        *bytes_p = bytes < block_bytes ? bytes : block_bytes;
    }
    return rc;
}

static int r2_allgather_call(mca_coll_r2_call_t *call, const void *sbuf, int scount,
                             struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                             struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                             mca_coll_base_module_t *module)
{
    int *rcounts, rc;
    size_t type_bytes;

    mca_coll_r2_call_init(call, R2_COLL_ALLGATHER, comm, module);
    rcounts = malloc((size_t) call->size * sizeof(*rcounts));
    if (NULL == rcounts) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < call->size; ++i) {
        rcounts[i] = rcount;
    }
    ompi_datatype_type_size(rdtype, &type_bytes);
    rc = mca_coll_r2_buffer_init(&call->out, rbuf, rdtype, rcounts, NULL, call->size, &call->args.out,
                                 &call->args.out_mover);
    free(rcounts);
    if (OMPI_SUCCESS == rc) {
        rc = r2_allgather_input(call, sbuf, scount, sdtype, (uint64_t) rcount * type_bytes,
                                &call->args.count);
    }
    if (OMPI_SUCCESS != rc) {
        mca_coll_r2_call_fini(call);
    }
    return rc;
}

static bool r2_allgather_empty(int rcount, struct ompi_datatype_t *rdtype)
{
    size_t type_bytes;

    ompi_datatype_type_size(rdtype, &type_bytes);
    return 0 == rcount || 0 == type_bytes;
}

int mca_coll_r2_allgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                          int rcount, struct ompi_datatype_t *rdtype,
                          struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;
    int rc;

    if (r2_allgather_empty(rcount, rdtype)) {
        return OMPI_SUCCESS;
    }
    ++mca_coll_r2_component.calls.allgather;
    rc = r2_allgather_call(&call, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_run(&call) : rc;
}

int mca_coll_r2_iallgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                           int rcount, struct ompi_datatype_t *rdtype,
                           struct ompi_communicator_t *comm, ompi_request_t **request,
                           mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;
    int rc;

    if (r2_allgather_empty(rcount, rdtype)) {
        return mca_coll_r2_call_nothing(request);
    }
    ++mca_coll_r2_component.calls.iallgather;
    rc = r2_allgather_call(&call, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_start(&call, comm, request) : rc;
}

/* Bytes per rank. The receive buffer is reached block by block, wherever disps puts the blocks. */
static int r2_allgatherv_call(mca_coll_r2_call_t *call, const void *sbuf, int scount,
                              struct ompi_datatype_t *sdtype, void *rbuf, const int *rcounts,
                              const int *disps, struct ompi_datatype_t *rdtype, uint64_t *counts)
{
    size_t type_bytes;
    int rc;

    ompi_datatype_type_size(rdtype, &type_bytes);
    for (int i = 0; i < call->size; ++i) {
        counts[i] = (uint64_t) rcounts[i] * type_bytes;
    }
    call->args.counts = counts;
    rc = mca_coll_r2_buffer_init(&call->out, rbuf, rdtype, rcounts, disps, call->size,
                                 &call->args.out, &call->args.out_mover);
    if (OMPI_SUCCESS == rc) {
        rc = r2_allgather_input(call, sbuf, scount, sdtype, counts[call->rank], &counts[call->rank]);
    }
    if (OMPI_SUCCESS != rc) {
        mca_coll_r2_call_fini(call);
    }
    return rc;
}

int mca_coll_r2_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                           const int *rcounts, const int *disps, struct ompi_datatype_t *rdtype,
                           struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;
    uint64_t *counts, total = 0;
    size_t type_bytes;
    int rc;

    ompi_datatype_type_size(rdtype, &type_bytes);
    for (int i = 0; i < ompi_comm_size(comm); ++i) {
        total += (uint64_t) rcounts[i] * type_bytes;
    }
    if (0 == total) {
        return OMPI_SUCCESS;
    }
    counts = malloc((size_t) ompi_comm_size(comm) * sizeof(*counts));
    if (NULL == counts) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ++mca_coll_r2_component.calls.allgatherv;
    mca_coll_r2_call_init(&call, R2_COLL_ALLGATHERV, comm, module);
    rc = r2_allgatherv_call(&call, sbuf, scount, sdtype, rbuf, rcounts, disps, rdtype, counts);
    if (OMPI_SUCCESS == rc) {
        rc = mca_coll_r2_call_run(&call);
    }
    free(counts);
    return rc;
}
