/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Peers: which ones r2 reaches, and what happens when one is lost.
 */
#include "btl_r2.h"

#include <stdlib.h>

#include "r2/log.h"

/*
 * Every process of the job, on this host too. This one as well: btl/self comes first for
 * messages, but one-sided communication wants one transport for all.
 */
static bool r2_proc_is_ours(const opal_proc_t *proc)
{
    const opal_proc_t *self = opal_proc_local_get();

    return proc->proc_name.jobid == self->proc_name.jobid &&
           proc->proc_name.vpid < r2_ctx_size(mca_btl_r2_component.ctx);
}

/* NULL: no memory. */
static mca_btl_r2_endpoint_t *r2_endpoint_add(opal_proc_t *proc)
{
    uint32_t rank = (uint32_t) proc->proc_name.vpid;
    mca_btl_r2_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = mca_btl_r2_component.endpoints[rank];
    if (NULL == endpoint) {
        endpoint = malloc(sizeof(*endpoint));
        mca_btl_r2_component.endpoints[rank] = endpoint;
    }
    if (NULL != endpoint) {
        endpoint->rank = rank;
        endpoint->same_host = OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
        endpoint->proc = proc;
    }
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return endpoint;
}

mca_btl_r2_endpoint_t *mca_btl_r2_endpoint_of(uint32_t rank)
{
    mca_btl_r2_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = mca_btl_r2_component.endpoints[rank];
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
        endpoints[i] = NULL;
        if (!agreed || !r2_proc_is_ours(procs[i])) {
            continue;
        }
        endpoints[i] = r2_endpoint_add(procs[i]);
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

static opal_proc_t *r2_proc_of(uint32_t rank)
{
    const mca_btl_r2_endpoint_t *endpoint;
    opal_proc_t *proc;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = mca_btl_r2_component.endpoints[rank];
    proc = NULL == endpoint ? NULL : endpoint->proc;
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return proc;
}

/* Messages were given up: the PML must not go on. */
void mca_btl_r2_lost(void *arg, uint32_t rank, r2_status_t status)
{
    char text[R2_ERROR_TEXT_BYTES];
    opal_proc_t *proc = r2_proc_of(rank);

    (void) arg;
    if (NULL == proc) {
        return;
    }
    r2_ctx_error_text(mca_btl_r2_component.ctx, text, sizeof(text));
    if ('\0' == text[0]) {
        snprintf(text, sizeof(text), "%s", r2_status_string(status));
    }
    if (0 == opal_process_info.my_local_rank) { /* mpirun may lose the help message */
        opal_output(0, "btl:r2: messages were lost: %s", text);
    }
    r2_log_lock();
    opal_show_help("help-btl-r2.txt", "lost", true, text);
    r2_log_unlock();
    if (NULL != mca_btl_r2_component.error) {
        mca_btl_r2_component.error(&mca_btl_r2_module, MCA_BTL_ERROR_FLAGS_FATAL, proc, text);
    }
}
