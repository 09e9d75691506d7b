/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The module: sending and receiving.
 */
#include "btl_r2.h"

#include <stddef.h>
#include <string.h>

int mca_btl_r2_error_of(r2_status_t status)
{
    return R2_ERR_NO_MEMORY == status ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERR_UNREACH;
}

static void r2_frag_sent(r2_p2p_op_t *op, r2_status_t status)
{
    mca_btl_r2_frag_t *frag = op->arg;
    bool ours = 0 != (frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

    /* The callback may give the fragment back, or use it again, unless it is ours. */
    if (NULL != frag->base.des_cbfunc) {
        frag->base.des_cbfunc(&mca_btl_r2_module, frag->endpoint, &frag->base,
                              R2_OK == status ? OPAL_SUCCESS : OPAL_ERR_UNREACH);
    }
    if (ours) {
        mca_btl_r2_free(&mca_btl_r2_module, &frag->base);
    }
}

static int r2_btl_send(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                       mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    mca_btl_r2_frag_t *frag = (mca_btl_r2_frag_t *) descriptor;
    bool always = 0 != (descriptor->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    r2_status_t status;

    frag->endpoint = endpoint;
    frag->op.done = r2_frag_sent;
    frag->op.arg = frag;
    descriptor->des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK; /* unless it is complete at once */
    status = r2_p2p_send(endpoint->job->p2p, endpoint->rank, tag, frag->data, frag->segment.seg_len,
                         &frag->op);
    if (R2_OK != status) {
        return R2_IN_PROGRESS == status ? OPAL_SUCCESS : mca_btl_r2_error_of(status);
    }
    if (always) {
        r2_frag_sent(&frag->op, status);
        return OPAL_SUCCESS;
    }
    if (0 != (descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)) {
        mca_btl_r2_free(btl, descriptor);
    }
    return 1;
}

void mca_btl_r2_received(void *arg, uint32_t rank, uint8_t id, const void *data, size_t bytes)
{
    const mca_btl_active_message_callback_t *call = &mca_btl_base_active_message_trigger[id];
    mca_btl_base_segment_t segment = {.seg_len = bytes};
    mca_btl_r2_room_t room;

    segment.seg_addr.pval = mca_btl_r2_with_room(&room, data, bytes);
    if (NULL != call->cbfunc) {
        mca_btl_r2_call(call, mca_btl_r2_endpoint_of(arg, rank), id, &segment);
    }
}

/** A message that is written where the link keeps it. */
typedef struct r2_btl_packing {
    opal_convertor_t *convertor;
    const void *header;
    size_t header_bytes, bytes;
} r2_btl_packing_t;

static bool r2_btl_pack(void *arg, void *to)
{
    const r2_btl_packing_t *packing = arg;
    struct iovec iov = {.iov_base = (char *) to + packing->header_bytes, .iov_len = packing->bytes};
    uint32_t iov_count = 1;
    size_t packed = packing->bytes;

    memcpy(to, packing->header, packing->header_bytes);
    return 0 == packing->bytes ||
           (0 <= opal_convertor_pack(packing->convertor, &iov, &iov_count, &packed) &&
            packed == packing->bytes);
}

/* Messages that leave at once, without a fragment. */
static int r2_btl_sendi(mca_btl_base_module_t *btl, mca_btl_r2_endpoint_t *endpoint,
                        opal_convertor_t *convertor, void *header, size_t header_size,
                        size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                        mca_btl_base_descriptor_t **descriptor)
{
    r2_btl_packing_t packing = {convertor, header, header_size, payload_size};

    /* If it fails the PML sets the convertor back. */
    if (header_size + payload_size <= R2_BTL_EAGER_BYTES &&
        R2_OK == r2_p2p_send_packed(endpoint->job->p2p, endpoint->rank, tag,
                                    header_size + payload_size, r2_btl_pack, &packing)) {
        return OPAL_SUCCESS;
    }
    if (NULL != descriptor) {
        *descriptor = mca_btl_r2_alloc(btl, endpoint, order, header_size + payload_size, flags);
    }
    return OPAL_ERR_RESOURCE_BUSY;
}

static int r2_btl_register_error(mca_btl_base_module_t *btl,
                                 mca_btl_base_module_error_cb_fn_t cbfunc)
{
    (void) btl;
    mca_btl_r2_component.error = cbfunc;
    return OPAL_SUCCESS;
}

static int r2_btl_finalize(mca_btl_base_module_t *btl)
{
    (void) btl;
    return OPAL_SUCCESS; /* the component's close does it: it owns the context */
}

mca_btl_base_module_t mca_btl_r2_module = {
    .btl_component = &mca_btl_r2_component.super,
    .btl_add_procs = mca_btl_r2_add_procs,
    .btl_del_procs = mca_btl_r2_del_procs,
    .btl_finalize = r2_btl_finalize,
    .btl_alloc = mca_btl_r2_alloc,
    .btl_free = mca_btl_r2_free,
    .btl_prepare_src = mca_btl_r2_prepare_src,
    .btl_send = r2_btl_send,
    .btl_sendi = r2_btl_sendi,
    .btl_put = mca_btl_r2_put,
    .btl_get = mca_btl_r2_get,
    .btl_atomic_op = mca_btl_r2_atomic_op,
    .btl_atomic_fop = mca_btl_r2_atomic_fop,
    .btl_atomic_cswap = mca_btl_r2_atomic_cswap,
    .btl_register_error = r2_btl_register_error,
};
