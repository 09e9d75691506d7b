/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One-sided: get, put and atomic operations, as questions of r2core. Memory needs no registration;
 * what is registered (coll_r2_direct) is read and written by NICs, where they can.
 */
#include "btl_r2.h"

#include <stdlib.h>
#include <string.h>

/** An operation under way. */
typedef struct r2_btl_rdma {
    r2_p2p_op_t op;
    mca_btl_r2_endpoint_t *endpoint; /* borrowed */
    void *local;
    mca_btl_base_registration_handle_t *handle;
    mca_btl_base_rdma_completion_fn_t done;
    void *context, *data;
} r2_btl_rdma_t;

static void r2_rdma_done(r2_p2p_op_t *op, r2_status_t status)
{
    r2_btl_rdma_t *rdma = op->arg;

    rdma->done(&mca_btl_r2_module, rdma->endpoint, rdma->local, rdma->handle, rdma->context,
               rdma->data, R2_OK == status ? OPAL_SUCCESS : OPAL_ERR_UNREACH);
    free(rdma);
}

/* NULL: no memory. */
static r2_btl_rdma_t *r2_rdma_new(mca_btl_r2_endpoint_t *endpoint, void *local,
                                  mca_btl_base_registration_handle_t *handle,
                                  mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    r2_btl_rdma_t *rdma = malloc(sizeof(*rdma));

    if (NULL != rdma) {
        *rdma = (r2_btl_rdma_t) {.op = {.done = r2_rdma_done, .arg = rdma},
                                 .endpoint = endpoint,
                                 .local = local,
                                 .handle = handle,
                                 .done = done,
                                 .context = context,
                                 .data = data};
    }
    return rdma;
}

static int r2_rdma_started(r2_btl_rdma_t *rdma, r2_status_t status)
{
    if (R2_IN_PROGRESS == status) {
        return OPAL_SUCCESS;
    }
    free(rdma);
    return R2_ERR_PARAM == status ? OPAL_ERR_NOT_AVAILABLE : mca_btl_r2_error_of(status);
}

/* @param handle what the peer has told of its memory; NULL: nothing. */
static int r2_rdma_move(mca_btl_r2_endpoint_t *endpoint, r2_btl_rdma_t *rdma, bool put,
                        uint64_t remote, const mca_btl_base_registration_handle_t *handle,
                        size_t size)
{
    r2_p2p_t *p2p = endpoint->job->p2p;
    r2_p2p_memory_t memory = {.count = 0};

    if (NULL == rdma) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != handle && NULL != mca_btl_r2_module.btl_register_mem) {
        memcpy(&memory, handle, sizeof(memory)); /* in a message: at any address */
    }
    return r2_rdma_started(
        rdma,
        put ? r2_p2p_write(p2p, endpoint->rank, rdma->local, remote, size, &memory, &rdma->op)
            : r2_p2p_read(p2p, endpoint->rank, rdma->local, remote, size, &memory, &rdma->op));
}

static mca_btl_base_registration_handle_t *r2_btl_register_mem(mca_btl_base_module_t *btl,
                                                               mca_btl_r2_endpoint_t *endpoint,
                                                               void *base, size_t size,
                                                               uint32_t flags)
{
    mca_btl_base_registration_handle_t *handle = malloc(sizeof(*handle));

    (void) btl;
    (void) endpoint;
    (void) flags;
    if (NULL != handle && R2_OK != r2_p2p_register(mca_btl_r2_component.job.p2p, base, size,
                                                   &handle->memory, &handle->region)) {
        free(handle);
        handle = NULL;
    }
    return handle;
}

static int r2_btl_deregister_mem(mca_btl_base_module_t *btl,
                                 mca_btl_base_registration_handle_t *handle)
{
    (void) btl;
    r2_p2p_deregister(handle->region);
    free(handle);
    return OPAL_SUCCESS;
}

void mca_btl_r2_register_init(mca_btl_base_module_t *module)
{
    if (mca_btl_r2_component.params.direct) {
        module->btl_register_mem = r2_btl_register_mem;
        module->btl_deregister_mem = r2_btl_deregister_mem;
        module->btl_registration_handle_size = sizeof(r2_p2p_memory_t);
    }
}

int mca_btl_r2_get(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint, void *local_address,
                   uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                   int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                   void *cbdata)
{
    (void) btl;
    (void) flags;
    (void) order;
    return r2_rdma_move(
        endpoint, r2_rdma_new(endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata),
        false, remote_address, remote_handle, size);
}

int mca_btl_r2_put(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint, void *local_address,
                   uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                   mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                   int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                   void *cbdata)
{
    (void) btl;
    (void) flags;
    (void) order;
    return r2_rdma_move(
        endpoint, r2_rdma_new(endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata),
        true, remote_address, remote_handle, size);
}

/* @return false: r2core does not have the operation; the caller composes it of others. */
static bool r2_rdma_verb(mca_btl_base_atomic_op_t op, r2_p2p_verb_t *verb_p)
{
    static const struct {
        mca_btl_base_atomic_op_t op;
        r2_p2p_verb_t verb;
    } verbs[] = {
        {MCA_BTL_ATOMIC_ADD, R2_P2P_ADD},   {MCA_BTL_ATOMIC_AND, R2_P2P_AND},
        {MCA_BTL_ATOMIC_OR, R2_P2P_OR},     {MCA_BTL_ATOMIC_XOR, R2_P2P_XOR},
        {MCA_BTL_ATOMIC_SWAP, R2_P2P_SWAP},
    };

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); ++i) {
        if (verbs[i].op == op) {
            *verb_p = verbs[i].verb;
            return true;
        }
    }
    return false;
}

/*
 * osc/rdma of Open MPI 4.1 repeats an atomic operation for ever, unless it is done or "not
 * supported": then it goes on with get and put, and these tell of what is really wrong.
 * @param rdma consumed; NULL: no memory.
 */
static int r2_rdma_update(r2_btl_rdma_t *rdma, uint64_t remote_address, int flags,
                          r2_p2p_update_t *update)
{
    int rc;

    if (NULL == rdma) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    update->bytes = 0 != (flags & MCA_BTL_ATOMIC_FLAG_32BIT) ? 4 : 8;
    rc = r2_rdma_started(rdma, r2_p2p_update(rdma->endpoint->job->p2p, rdma->endpoint->rank,
                                             rdma->local, remote_address, update, &rdma->op));
    return OPAL_SUCCESS == rc || OPAL_ERR_OUT_OF_RESOURCE == rc ? rc : OPAL_ERR_NOT_SUPPORTED;
}

int mca_btl_r2_atomic_fop(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                          void *local_address, uint64_t remote_address,
                          mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle,
                          mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                          mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    r2_p2p_update_t update = {.operand = operand};

    (void) btl;
    (void) remote_handle;
    (void) order;
    if (0 != (flags & MCA_BTL_ATOMIC_FLAG_FLOAT) || !r2_rdma_verb(op, &update.verb)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return r2_rdma_update(
        r2_rdma_new(endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata),
        remote_address, flags, &update);
}

int mca_btl_r2_atomic_op(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                         uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                         mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                         mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    return mca_btl_r2_atomic_fop(btl, endpoint, NULL, remote_address, NULL, remote_handle, op,
                                 operand, flags, order, cbfunc, cbcontext, cbdata);
}

int mca_btl_r2_atomic_cswap(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                            void *local_address, uint64_t remote_address,
                            mca_btl_base_registration_handle_t *local_handle,
                            mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                            uint64_t value, int flags, int order,
                            mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    r2_p2p_update_t update = {
        .verb = R2_P2P_COMPARE_SWAP, .operand = value, .compare = compare};

    (void) btl;
    (void) remote_handle;
    (void) order;
    /*
     * The address may be one of the caller's own mapping (4.1). Without this osc/rdma locks and
     * compares by itself; the locks of that host's windows are reached directly (r2_btl_init()).
     * 5.0 gives addresses of the owner, and takes "not supported" for done: the update was lost.
     */
    if (0 != (flags & MCA_BTL_ATOMIC_FLAG_FLOAT) ||
        (MCA_BTL_R2_OSC_OWN_MAPPING && endpoint->same_host)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return r2_rdma_update(
        r2_rdma_new(endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata),
        remote_address, flags, &update);
}
