/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point with memory of GPUs, over whatever PML is selected: functions around its own give
 * it packed copies in the host's memory. Other processes notice nothing.
 */
#ifndef MCA_COLL_R2_P2P_H
#define MCA_COLL_R2_P2P_H

#include "call.h"

#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/pml.h"

/** A buffer of a GPU and its packed copy. */
typedef struct mca_coll_r2_staged {
    mca_coll_r2_buffer_t buffer; /* one block */
    r2_convertor_t convertor;
    r2_mem_at_t at;
    uint64_t starts[2];    /* of the block: 0, and its packed bytes */
    ptrdiff_t displ;       /* of the block: 0 */
    r2_mem_block_t *block; /* owned: of the copy */
    void *copy; /* borrowed: of block; NULL: the buffer is the CPU's, or empty: none is needed */
} mca_coll_r2_staged_t;

/* staged.c */
/** Finds out where a buffer is, and allocates its copy. The datatype has to live until close.
 * @param rows_only a contiguous buffer of a GPU needs none: the PML reads it
 * @return OMPI_SUCCESS; OMPI_ERR_OUT_OF_RESOURCE, or MPI_ERR_OTHER: the driver has failed. Then
 * there is no copy, and nothing to close. */
int mca_coll_r2_staged_open(mca_coll_r2_staged_t *staged, const void *memory, size_t count,
                            struct ompi_datatype_t *dtype, bool rows_only);
/** Moves one to its final place; `from` is void then. */
void mca_coll_r2_staged_move(mca_coll_r2_staged_t *to, const mca_coll_r2_staged_t *from);
/** Packed bytes of the buffer. */
size_t mca_coll_r2_staged_bytes(const mca_coll_r2_staged_t *staged);
/** From the GPU to the copy, after what the application has started. Waits. @return as open. */
int mca_coll_r2_staged_load(mca_coll_r2_staged_t *staged);
/** The first `bytes` of the copy to the GPU. Waits. @return as open. */
int mca_coll_r2_staged_store(mca_coll_r2_staged_t *staged, size_t bytes);
void mca_coll_r2_staged_close(mca_coll_r2_staged_t *staged);

/** Where a message goes to or comes from. */
typedef struct mca_coll_r2_p2p_to {
    struct ompi_communicator_t *comm; /* borrowed */
    int peer, tag;
    bool sends;
    mca_pml_base_send_mode_t mode;   /* of a send */
    struct ompi_message_t **message; /* borrowed: of a matched receive, or NULL */
} mca_coll_r2_p2p_to_t;

/* p2p_request.c */
int mca_coll_r2_p2p_requests_init(void);
void mca_coll_r2_p2p_requests_fini(void);
/**
 * A request for a buffer that has a copy; takes over `staged`.
 * @param pml        the PML's own functions; outlives the request
 * @param persistent not started; else it is under way
 * @return OMPI_SUCCESS or an error, and no request.
 */
int mca_coll_r2_p2p_request(const mca_pml_base_module_t *pml, mca_coll_r2_staged_t *staged,
                            const mca_coll_r2_p2p_to_t *to, bool persistent,
                            ompi_request_t **request_p);
/** Is it one of these? */
bool mca_coll_r2_p2p_is_ours(const ompi_request_t *request);

#endif
