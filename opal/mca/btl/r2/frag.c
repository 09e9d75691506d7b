/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Fragments: memory for a header of the PML and the data behind it.
 */
#include "btl_r2.h"

#include <stddef.h>
#include <stdlib.h>

mca_btl_base_descriptor_t *mca_btl_r2_alloc(mca_btl_base_module_t *btl,
                                            mca_btl_r2_endpoint_t *endpoint, uint8_t order,
                                            size_t size, uint32_t flags)
{
    mca_btl_r2_frag_t *frag;

    (void) endpoint;
    (void) order;
    if (size > btl->btl_max_send_size) {
        return NULL;
    }
    frag = malloc(sizeof(*frag) + size);
    if (NULL == frag) {
        return NULL;
    }
    OBJ_CONSTRUCT(&frag->base, mca_btl_base_descriptor_t);
    frag->segment.seg_addr.pval = frag->data;
    frag->segment.seg_len = size;
    frag->room_bytes = size;
    frag->base.des_segments = &frag->segment;
    frag->base.des_segment_count = 1;
    frag->base.des_flags = flags;
    frag->base.des_cbfunc = NULL;
    frag->base.order = MCA_BTL_NO_ORDER;
    return &frag->base;
}

int mca_btl_r2_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    (void) btl;
    OBJ_DESTRUCT(descriptor);
    free(descriptor);
    return OPAL_SUCCESS;
}

/* Always packed: contiguous long messages are not sent this way, the receiver gets them. */
mca_btl_base_descriptor_t *mca_btl_r2_prepare_src(mca_btl_base_module_t *btl,
                                                  mca_btl_r2_endpoint_t *endpoint,
                                                  opal_convertor_t *convertor, uint8_t order,
                                                  size_t reserve, size_t *size, uint32_t flags)
{
    size_t room = btl->btl_max_send_size - reserve;
    size_t packed = *size < room ? *size : room;
    mca_btl_r2_frag_t *frag =
        (mca_btl_r2_frag_t *) mca_btl_r2_alloc(btl, endpoint, order, reserve + packed, flags);
    struct iovec iov;
    uint32_t iov_count = 1;

    if (NULL == frag) {
        return NULL;
    }
    iov.iov_base = frag->data + reserve;
    iov.iov_len = packed;
    if (0 > opal_convertor_pack(convertor, &iov, &iov_count, &packed)) {
        mca_btl_r2_free(btl, &frag->base);
        return NULL;
    }
    frag->segment.seg_len = reserve + packed;
    *size = packed;
    return &frag->base;
}
