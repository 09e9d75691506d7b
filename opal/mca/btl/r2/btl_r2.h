/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The byte transport r2: types and functions shared by its files.
 */
#ifndef MCA_BTL_R2_H
#define MCA_BTL_R2_H

#include "compat.h"

#include <pthread.h>
#include <stdint.h>

#include "r2/ctx.h"
#include "r2/p2p.h"
#include "r2/params.h"

#define R2_BTL_EAGER_BYTES      (65536 + 64) /* data of eager_bytes, and a header of the PML */
#define R2_BTL_EAGER_HOST_BYTES (32768 + 64) /* where all processes are on one host */

struct mca_btl_base_endpoint_t;

/**
 * Peers of one context of r2core: the processes of this job, or those of another one that it has
 * met. Written once, but for the endpoints, which are under the component's lock, and the context
 * of another job, which goes when that has ended (component's lock `alive`).
 */
typedef struct mca_btl_r2_job {
    opal_jobid_t id;
    r2_ctx_t *ctx; /* refcounted (this job), owned (another); NULL: not reached by r2, or ended */
    r2_p2p_t *p2p; /* owned */
    struct mca_btl_base_endpoint_t **endpoints; /* owned, by rank in ctx; NULL: not added yet */
    uint32_t size;                              /* of endpoints */
    unsigned adding;                            /* processes that are being added; atomic */
    struct mca_btl_r2_job *next;                /* owned: another job */
} mca_btl_r2_job_t;

/** A peer, or this process. Under the component's lock, but for job, rank and host. */
struct mca_btl_base_endpoint_t {
    mca_btl_r2_job_t *job; /* borrowed: lives until the component is closed */
    uint32_t rank;         /* process number in job->ctx */
    bool same_host;
    opal_proc_t *proc; /* borrowed; NULL: given up by the PML */
};
typedef struct mca_btl_base_endpoint_t mca_btl_r2_endpoint_t;

/** A message to be sent: header of the PML and data in a row. */
typedef struct mca_btl_r2_frag {
    mca_btl_base_descriptor_t base; /* first member */
    mca_btl_base_segment_t segment;
    mca_btl_r2_endpoint_t *endpoint; /* borrowed, while sent */
    size_t room_bytes;               /* of data */
    r2_p2p_op_t op;
    char data[];
} mca_btl_r2_frag_t;

/** The component. Written at start and end only, but for the endpoints. */
typedef struct mca_btl_r2_component {
    mca_btl_base_component_t super;
    r2_params_t params;
    char *fallback;       /* owned by the MCA variable: transports to select beside r2 */
    unsigned other_jobs;  /* that are reached by r2, at most */
    mca_btl_r2_job_t job; /* this one, and behind it others; ctx NULL: r2 cannot run here */
    mca_btl_base_module_error_cb_fn_t error;
    opal_mutex_t lock;
    opal_mutex_t connecting; /* who adds a job */
    pthread_rwlock_t alive;  /* contexts of other jobs: read by who drives them */
    int free_ids;            /* of communicators, when they were looked at; atomic */
    unsigned looks;          /* calls of mca_btl_r2_jobs_look(); atomic */
    bool refuses;            /* this job does without, and tells others */
    bool agreed;             /* all processes of the job use it */
    char why_not[1024];
} mca_btl_r2_component_t;

OPAL_DECLSPEC extern mca_btl_r2_component_t mca_btl_r2_component;
extern mca_btl_base_module_t mca_btl_r2_module;

/* abort.c */
/** Ends the job: others count on this process, which cannot go on. Returns only if Open MPI does.
 * @param what happened. */
void mca_btl_r2_abort(const char *what, r2_status_t status);

/* component.c */
/** Logs a line; configuration of contexts. */
void mca_btl_r2_log(void *arg, int level, const char *line);
/** Drives what is not r2's; configuration of contexts. */
void mca_btl_r2_idle(void *arg);
/** Do all processes of the job use r2? Not before the launcher's fence. If not, what this one has
 * of it is given back. */
bool mca_btl_r2_is_agreed(void);

/* osc.c */
/** When the components of all frameworks are open: has one-sided communication use r2. */
void mca_btl_r2_osc_settle(void);

/* jobs.c: what passes to other jobs */
/**
 * The peers of a job that this one has met; opened if need be, so that its processes hear of this
 * one. All processes of both call it. Does not wait for them.
 * @param job_p NULL: the job is left to another transport; else to be given back by
 * mca_btl_r2_job_added().
 * @return OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE.
 */
int mca_btl_r2_job_of(opal_jobid_t id, mca_btl_r2_job_t **job_p);
/**
 * Looks for communicators with jobs that this one has not met: who sends to it may wait for its
 * word before it sends itself (Open MPI 5.0 adds processes when they are first sent to). Cheap;
 * from all that waits.
 */
void mca_btl_r2_jobs_look(void);
/** A process of the job is added, or r2 does not reach it. */
void mca_btl_r2_job_added(mca_btl_r2_job_t *job);
/** Is the process in a communicator of this one? @param vpid OPAL_VPID_WILDCARD: any of the job. */
bool mca_btl_r2_is_connected(opal_jobid_t id, opal_vpid_t vpid);
/** Endpoints and point-to-point of a job whose context is there. */
r2_status_t mca_btl_r2_job_open(mca_btl_r2_job_t *job);
/** The opposite: what it has but the context. */
void mca_btl_r2_job_close(mca_btl_r2_job_t *job);
/** NULL: not added. */
mca_btl_r2_endpoint_t *mca_btl_r2_endpoint_of(const mca_btl_r2_job_t *job, uint32_t rank);
/** Gives back all other jobs. */
void mca_btl_r2_jobs_stop(void);
/** Drives the contexts of other jobs. @return events. */
unsigned mca_btl_r2_jobs_progress(void);

/* endpoint.c */
int mca_btl_r2_add_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                         mca_btl_r2_endpoint_t **endpoints, opal_bitmap_t *reachable);
int mca_btl_r2_del_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                         mca_btl_r2_endpoint_t **endpoints);
/** r2core lost a peer for good. @param arg its job. */
void mca_btl_r2_lost(void *arg, uint32_t rank, r2_status_t status);

/* frag.c */
mca_btl_base_descriptor_t *mca_btl_r2_alloc(mca_btl_base_module_t *btl,
                                            mca_btl_r2_endpoint_t *endpoint, uint8_t order,
                                            size_t size, uint32_t flags);
int mca_btl_r2_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *mca_btl_r2_prepare_src(mca_btl_base_module_t *btl,
                                                  mca_btl_r2_endpoint_t *endpoint,
                                                  opal_convertor_t *convertor, uint8_t order,
                                                  size_t reserve, size_t *size, uint32_t flags);

/* module.c */
int mca_btl_r2_error_of(r2_status_t status);
/** r2core received a message. @param arg the job of the sender. */
void mca_btl_r2_received(void *arg, uint32_t rank, uint8_t id, const void *data, size_t bytes);

/* params.c */
/** Reads coll/r2's parameters from all their sources. @param text_p on error: what is wrong. */
r2_status_t mca_btl_r2_params_read(r2_params_t *params, char *text_p, size_t text_bytes);

/**
 * Memory that NICs may read and write: what travels comes first. With coll_r2_direct only; without,
 * nothing is registered, and there is no handle.
 */
struct mca_btl_base_registration_handle_t {
    r2_p2p_memory_t memory;
    r2_p2p_region_t *region; /* owned; not told */
};
_Static_assert(sizeof(r2_p2p_memory_t) <= MCA_BTL_REG_HANDLE_MAX_SIZE, "Open MPI keeps no more");

/* rdma.c: one-sided, by NICs or by the peer's application threads (r2/p2p.h) */
/** Has the module register memory, where coll_r2_direct says so. */
void mca_btl_r2_register_init(mca_btl_base_module_t *module);
int mca_btl_r2_put(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint, void *local_address,
                   uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                   int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                   void *cbdata);
int mca_btl_r2_get(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint, void *local_address,
                   uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                   int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                   void *cbdata);
int mca_btl_r2_atomic_op(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                         uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                         mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                         mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_r2_atomic_fop(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                          void *local_address, uint64_t remote_address,
                          mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle,
                          mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                          mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_r2_atomic_cswap(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                            void *local_address, uint64_t remote_address,
                            mca_btl_base_registration_handle_t *local_handle,
                            mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                            uint64_t value, int flags, int order,
                            mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                            void *cbdata);

#endif
