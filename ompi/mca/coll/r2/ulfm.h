/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Communicators that the application revokes, or that lose a process, under ULFM (Open MPI 5.0,
 * mpirun --with-ft ulfm). Elsewhere nothing.
 */
#ifndef MCA_COLL_R2_ULFM_H
#define MCA_COLL_R2_ULFM_H

#include "coll_r2.h"

/** A call that has ended with what Open MPI has not heard of yet. */
typedef struct mca_coll_r2_parked {
    struct mca_coll_r2_parked *next; /* borrowed */
    mca_coll_r2_module_t *module;    /* borrowed: its communicator outlives the call */
    r2_status_t status;
    uint64_t since_us;
    r2_coll_done_fn_t done;
    void *arg;
} mca_coll_r2_parked_t;

#if MCA_COLL_R2_HAS_ULFM

/**
 * Before Open MPI's agreement begins, whose parameters are registered: it goes by a star, unless
 * the user has chosen. By its binary tree MPIX_Comm_agree of 5.0 waits for ever on 12 processes, 3
 * on each host.
 */
void mca_coll_r2_ulfm_settle(void);
/** From now on its calls end with the communicator. @param comm outlives the module. */
void mca_coll_r2_ulfm_watch(mca_coll_r2_module_t *module, struct ompi_communicator_t *comm);
/** The module goes; harmless if it was not watched. */
void mca_coll_r2_ulfm_forget(mca_coll_r2_module_t *module);
/** @return R2_OK, or why Open MPI wants no more collectives on it: R2_ERR_REVOKED,
 * R2_ERR_PEER_GONE. */
r2_status_t mca_coll_r2_ulfm_mark(const mca_coll_r2_module_t *module);
/** Ends the calls of communicators that Open MPI has marked since, and parked ones. Any thread,
 * outside of all locks of r2; cheap if called often. */
void mca_coll_r2_ulfm_look(void);
/** Before a blocking call returns a death or a revocation: waits, half a second at most and not
 * again, until Open MPI has heard of it. Any other status: at once. */
void mca_coll_r2_ulfm_await(mca_coll_r2_module_t *module, r2_status_t status);
/**
 * The same for a call that must not wait. @param parked of the caller, until done is called.
 * @return true: done(arg, status) comes later; false: there is nothing to wait for.
 */
bool mca_coll_r2_ulfm_park(mca_coll_r2_module_t *module, r2_status_t status,
                           mca_coll_r2_parked_t *parked, r2_coll_done_fn_t done, void *arg);

#else

static inline void mca_coll_r2_ulfm_settle(void)
{
}

static inline void mca_coll_r2_ulfm_watch(mca_coll_r2_module_t *module,
                                          struct ompi_communicator_t *comm)
{
    (void) module;
    (void) comm;
}

static inline void mca_coll_r2_ulfm_forget(mca_coll_r2_module_t *module)
{
    (void) module;
}

static inline r2_status_t mca_coll_r2_ulfm_mark(const mca_coll_r2_module_t *module)
{
    (void) module;
    return R2_OK;
}

static inline void mca_coll_r2_ulfm_look(void)
{
}

static inline void mca_coll_r2_ulfm_await(mca_coll_r2_module_t *module, r2_status_t status)
{
    (void) module;
    (void) status;
}

static inline bool mca_coll_r2_ulfm_park(mca_coll_r2_module_t *module, r2_status_t status,
                                         mca_coll_r2_parked_t *parked, r2_coll_done_fn_t done,
                                         void *arg)
{
    (void) module;
    (void) status;
    (void) parked;
    (void) done;
    (void) arg;
    return false;
}

#endif

#endif
