/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Peers: which ones r2 reaches, and what happens when one is lost.
 */
#include "btl_r2.h"

#include <stdlib.h>

#include "opal/mca/common/r2/help.h"
#include "r2/log.h"

/*
 * Peers: every process of the job, on this host too. This one as well: btl/self comes first for
 * messages, but one-sided communication wants one transport for all. Processes of other jobs, if
 * both jobs use r2.
 */
static mca_btl_r2_job_t *r2_job_of(const opal_proc_t *proc)
{
    mca_btl_r2_job_t *own = &mca_btl_r2_component.job;

    if (own->id == proc->proc_name.jobid) { /* without a context if this job does without r2 */
        return NULL != own->ctx && proc->proc_name.vpid < r2_ctx_size(own->ctx) ? own : NULL;
    }
    return mca_btl_r2_job_of(proc->proc_name.jobid);
}

/* @return false: its process does without r2. */
static bool r2_rank_of(const mca_btl_r2_job_t *job, const opal_proc_t *proc, uint32_t *rank_p)
{
    *rank_p = (uint32_t) proc->proc_name.vpid;
    if (&mca_btl_r2_component.job == job) {
        return true;
    }
    *rank_p = r2_ctx_other_rank(job->ctx, *rank_p);
    return *rank_p < r2_ctx_size(job->ctx) &&
           (NULL != mca_btl_r2_endpoint_of(job, *rank_p) ||
            R2_OK == r2_ctx_meet(job->ctx, (uint32_t) proc->proc_name.vpid));
}

/* NULL: no memory. */
static mca_btl_r2_endpoint_t *r2_endpoint_add(mca_btl_r2_job_t *job, uint32_t rank,
                                              opal_proc_t *proc)
{
    mca_btl_r2_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = job->endpoints[rank];
    if (NULL == endpoint) {
        endpoint = malloc(sizeof(*endpoint));
        job->endpoints[rank] = endpoint;
    }
    if (NULL != endpoint) {
        endpoint->job = job;
        endpoint->rank = rank;
        endpoint->same_host = OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
        endpoint->proc = proc;
    }
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return endpoint;
}

mca_btl_r2_endpoint_t *mca_btl_r2_endpoint_of(const mca_btl_r2_job_t *job, uint32_t rank)
{
    mca_btl_r2_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = job->endpoints[rank];
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return endpoint;
}

int mca_btl_r2_add_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                         mca_btl_r2_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    const bool agreed = mca_btl_r2_is_agreed();

    (void) btl;
    if (agreed) {
        mca_btl_r2_osc_settle();
    }
    for (size_t i = 0; i < nprocs; ++i) {
        mca_btl_r2_job_t *job = r2_job_of(procs[i]);
        uint32_t rank;

        endpoints[i] = NULL;
        if (NULL == job || !agreed || !r2_rank_of(job, procs[i], &rank)) {
            continue;
        }
        endpoints[i] = r2_endpoint_add(job, rank, procs[i]);
        if (NULL == endpoints[i]) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        if (NULL != reachable) {
            opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return OPAL_SUCCESS;
}

/* May be called more than once for a peer: endpoints live until the component is closed. */
int mca_btl_r2_del_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                         mca_btl_r2_endpoint_t **endpoints)
{
    (void) btl;
    (void) procs;
    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    for (size_t i = 0; i < nprocs; ++i) {
        if (NULL != endpoints[i]) {
            endpoints[i]->proc = NULL;
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return OPAL_SUCCESS;
}

static opal_proc_t *r2_proc_of(const mca_btl_r2_job_t *job, uint32_t rank)
{
    const mca_btl_r2_endpoint_t *endpoint;
    opal_proc_t *proc;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = job->endpoints[rank];
    proc = NULL == endpoint ? NULL : endpoint->proc;
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return proc;
}

/* Messages were given up: the PML must not go on. */
void mca_btl_r2_lost(void *arg, uint32_t rank, r2_status_t status)
{
    char text[R2_ERROR_TEXT_BYTES];
    const mca_btl_r2_job_t *job = arg;
    opal_proc_t *proc = r2_proc_of(job, rank);

    if (NULL == proc) {
        return;
    }
    r2_ctx_error_text(job->ctx, text, sizeof(text));
    if ('\0' == text[0]) {
        snprintf(text, sizeof(text), "%s", r2_status_string(status));
    }
    if (0 == opal_process_info.my_local_rank) { /* mpirun may lose the help message */
        opal_output(0, "btl:r2: messages were lost: %s", text);
    }
    r2_log_lock();
    mca_common_r2_help("help-btl-r2.txt", "lost", text);
    r2_log_unlock();
    if (NULL != mca_btl_r2_component.error) {
        mca_btl_r2_component.error(&mca_btl_r2_module, MCA_BTL_ERROR_FLAGS_FATAL, proc, text);
    }
}
