/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Functions around those of the selected PML, as pml/monitoring has them: all of MPI's
 * point-to-point goes through one table.
 */
#include "p2p.h"

#include <mpi-ext.h>
#include <string.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/message/message.h"

/* Set once, before any function of ours is in the table. */
static mca_pml_base_module_t r2_pml_selected;

/* It reads contiguous memory of GPUs by itself. Set once, as the above. */
static bool r2_pml_reads_contiguous;

static int r2_pml_open(mca_coll_r2_staged_t *staged, const void *memory, size_t count,
                       struct ompi_datatype_t *dtype)
{
    return mca_coll_r2_staged_open(staged, memory, count, dtype, r2_pml_reads_contiguous);
}

static bool r2_pml_is_copied(int rc, const mca_coll_r2_staged_t *staged)
{
    return OMPI_SUCCESS == rc && NULL != staged->copy;
}

static int r2_pml_send(const void *memory, size_t count, struct ompi_datatype_t *dtype, int dst,
                       int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc
                   ? rc
                   : r2_pml_selected.pml_send(memory, count, dtype, dst, tag, mode, comm);
    }
    rc = mca_coll_r2_staged_load(&staged);
    if (OMPI_SUCCESS == rc) {
        rc = r2_pml_selected.pml_send(staged.copy, mca_coll_r2_staged_bytes(&staged), MPI_BYTE, dst,
                                      tag, mode, comm);
    }
    mca_coll_r2_staged_close(&staged);
    return rc;
}

/* What came goes to the GPU. @return rc, or why it could not. */
static int r2_pml_received(int rc, mca_coll_r2_staged_t *staged, const ompi_status_public_t *came,
                           ompi_status_public_t *status_p)
{
    if (OMPI_SUCCESS == rc) {
        rc = mca_coll_r2_staged_store(staged, came->_ucount);
    }
    mca_coll_r2_staged_close(staged);
    if (MPI_STATUS_IGNORE != status_p) {
        OMPI_COPY_STATUS(status_p, *came, false);
    }
    return rc;
}

static int r2_pml_recv(void *memory, size_t count, struct ompi_datatype_t *dtype, int src, int tag,
                       struct ompi_communicator_t *comm, ompi_status_public_t *status_p)
{
    ompi_status_public_t came = ompi_status_empty;
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc
                   ? rc
                   : r2_pml_selected.pml_recv(memory, count, dtype, src, tag, comm, status_p);
    }
    rc = r2_pml_selected.pml_recv(staged.copy, mca_coll_r2_staged_bytes(&staged), MPI_BYTE, src,
                                  tag, comm, &came);
    return r2_pml_received(rc, &staged, &came, status_p);
}

static int r2_pml_mrecv(void *memory, size_t count, struct ompi_datatype_t *dtype,
                        struct ompi_message_t **message, ompi_status_public_t *status_p)
{
    ompi_status_public_t came = ompi_status_empty;
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc
                   ? rc
                   : r2_pml_selected.pml_mrecv(memory, count, dtype, message, status_p);
    }
    rc = r2_pml_selected.pml_mrecv(staged.copy, mca_coll_r2_staged_bytes(&staged), MPI_BYTE,
                                   message, &came);
    return r2_pml_received(rc, &staged, &came, status_p);
}

static int r2_pml_isend(const void *memory, size_t count, struct ompi_datatype_t *dtype, int dst,
                        int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                        ompi_request_t **request_p)
{
    const mca_coll_r2_p2p_to_t to = {comm, dst, tag, true, mode, NULL};
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc ? rc
                                  : r2_pml_selected.pml_isend(memory, count, dtype, dst, tag, mode,
                                                              comm, request_p);
    }
    return mca_coll_r2_p2p_request(&r2_pml_selected, &staged, &to, false, request_p);
}

static int r2_pml_isend_init(const void *memory, size_t count, struct ompi_datatype_t *dtype,
                             int dst, int tag, mca_pml_base_send_mode_t mode,
                             struct ompi_communicator_t *comm, ompi_request_t **request_p)
{
    const mca_coll_r2_p2p_to_t to = {comm, dst, tag, true, mode, NULL};
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc ? rc
                                  : r2_pml_selected.pml_isend_init(memory, count, dtype, dst, tag,
                                                                   mode, comm, request_p);
    }
    return mca_coll_r2_p2p_request(&r2_pml_selected, &staged, &to, true, request_p);
}

static int r2_pml_irecv(void *memory, size_t count, struct ompi_datatype_t *dtype, int src, int tag,
                        struct ompi_communicator_t *comm, ompi_request_t **request_p)
{
    const mca_coll_r2_p2p_to_t to = {.comm = comm, .peer = src, .tag = tag};
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc
                   ? rc
                   : r2_pml_selected.pml_irecv(memory, count, dtype, src, tag, comm, request_p);
    }
    return mca_coll_r2_p2p_request(&r2_pml_selected, &staged, &to, false, request_p);
}

static int r2_pml_irecv_init(void *memory, size_t count, struct ompi_datatype_t *dtype, int src,
                             int tag, struct ompi_communicator_t *comm, ompi_request_t **request_p)
{
    const mca_coll_r2_p2p_to_t to = {.comm = comm, .peer = src, .tag = tag};
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc ? rc
                                  : r2_pml_selected.pml_irecv_init(memory, count, dtype, src, tag,
                                                                   comm, request_p);
    }
    return mca_coll_r2_p2p_request(&r2_pml_selected, &staged, &to, true, request_p);
}

static int r2_pml_imrecv(void *memory, size_t count, struct ompi_datatype_t *dtype,
                         struct ompi_message_t **message, ompi_request_t **request_p)
{
    const mca_coll_r2_p2p_to_t to = {.comm = (*message)->comm,
                                     .peer = (*message)->peer,
                                     .tag = MPI_ANY_TAG,
                                     .message = message};
    mca_coll_r2_staged_t staged;
    int rc = r2_pml_open(&staged, memory, count, dtype);

    if (!r2_pml_is_copied(rc, &staged)) {
        return OMPI_SUCCESS != rc
                   ? rc
                   : r2_pml_selected.pml_imrecv(memory, count, dtype, message, request_p);
    }
    return mca_coll_r2_p2p_request(&r2_pml_selected, &staged, &to, false, request_p);
}

static bool r2_pml_is_pmls(const ompi_request_t *request)
{
    return NULL != request && OMPI_REQUEST_PML == request->req_type;
}

/* Of several requests some may be ours; each knows how it is started. Others than the PML's are
 * passed over, as PMLs do. */
static int r2_pml_start(size_t count, ompi_request_t **requests)
{
    int rc = OMPI_SUCCESS;
    size_t ours = 0;

    while (ours < count &&
           !(r2_pml_is_pmls(requests[ours]) && mca_coll_r2_p2p_is_ours(requests[ours]))) {
        ++ours;
    }
    if (ours == count) {
        return r2_pml_selected.pml_start(count, requests);
    }
    for (size_t i = 0; OMPI_SUCCESS == rc && i < count; ++i) {
        if (r2_pml_is_pmls(requests[i])) {
            rc = requests[i]->req_start(1, &requests[i]);
        }
    }
    return rc;
}

/* Does Open MPI take such memory by itself? Then it may well have a better way. */
static bool r2_pml_is_built_in(void)
{
#ifdef OMPI_HAVE_MPI_EXT_CUDA
    return 0 != MPIX_Query_cuda_support();
#else
    return false;
#endif
}

/* Is it all left to the PML? Else, what of it? */
static bool r2_pml_is_left(bool *contiguous_p)
{
    const char *word = mca_coll_r2_component.params.gpu_p2p;
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    const bool is_auto = 0 == strcmp(word, "auto");

    *contiguous_p = is_auto && 0 == strcmp(pml, "ucx") && r2_mem_is_ucx_s();
    return 0 == strcmp(word, "pml") || (is_auto && r2_pml_is_built_in());
}

void mca_coll_r2_p2p_begin(void)
{
    if (!r2_mem_differs(mca_coll_r2_component.ctx) || r2_pml_is_left(&r2_pml_reads_contiguous) ||
        OMPI_SUCCESS != mca_coll_r2_p2p_requests_init()) {
        return;
    }
    r2_pml_selected = mca_pml;
    mca_pml.pml_send = r2_pml_send;
    mca_pml.pml_recv = r2_pml_recv;
    mca_pml.pml_mrecv = r2_pml_mrecv;
    mca_pml.pml_isend = r2_pml_isend;
    mca_pml.pml_isend_init = r2_pml_isend_init;
    mca_pml.pml_irecv = r2_pml_irecv;
    mca_pml.pml_irecv_init = r2_pml_irecv_init;
    mca_pml.pml_imrecv = r2_pml_imrecv;
    mca_pml.pml_start = r2_pml_start;
    mca_coll_r2_component.p2p_cuda = true;
}

/* No message is under way any more: MPI_Finalize. */
void mca_coll_r2_p2p_end(void)
{
    if (!mca_coll_r2_component.p2p_cuda) {
        return;
    }
    mca_coll_r2_component.p2p_cuda = false;
    mca_pml.pml_send = r2_pml_selected.pml_send;
    mca_pml.pml_recv = r2_pml_selected.pml_recv;
    mca_pml.pml_mrecv = r2_pml_selected.pml_mrecv;
    mca_pml.pml_isend = r2_pml_selected.pml_isend;
    mca_pml.pml_isend_init = r2_pml_selected.pml_isend_init;
    mca_pml.pml_irecv = r2_pml_selected.pml_irecv;
    mca_pml.pml_irecv_init = r2_pml_selected.pml_irecv_init;
    mca_pml.pml_imrecv = r2_pml_selected.pml_imrecv;
    mca_pml.pml_start = r2_pml_selected.pml_start;
    mca_coll_r2_p2p_requests_fini();
}
