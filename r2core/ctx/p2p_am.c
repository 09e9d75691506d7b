/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Unexpected messages of the links, and operations that are over: what all of point-to-point is
 * made of.
 */
#include "r2_config.h"

#include "ctx/p2p_state.h"

uint32_t r2_p2p_chunk_bytes(const r2_p2p_t *p2p, uint64_t bytes)
{
    const r2_params_t *params = &p2p->core->params;

    return (uint32_t) r2_min(r2_max(bytes / 256, (uint64_t) params->chunk_min_bytes),
                             r2_min(params->chunk_max_bytes, (size_t) R2_CHUNK_HELD_BYTES));
}

void r2_p2p_finish(r2_p2p_op_t *op, r2_status_t status)
{
    r2_p2p_t *p2p = op->p2p;

    op->status = status;
    op->next = NULL;
    if (NULL == p2p->finished) {
        p2p->finished = op;
    } else {
        p2p->finished_tail->next = op;
    }
    p2p->finished_tail = op;
}

r2_status_t r2_p2p_am_send(r2_p2p_t *p2p, r2_link_t *link, uint32_t am_id, const void *data,
                           uint64_t bytes, r2_link_done_fn_t done, void *arg)
{
    r2_link_send_t send = {
        .tag = {.comm_key = R2_LINK_UNEXPECTED_KEY, .coll_seq = p2p->next_seq, .id = am_id},
        .data = data,
        .bytes = bytes,
        .chunk_bytes = r2_p2p_chunk_bytes(p2p, bytes),
        .copied = NULL == done,
        .done = done,
        .arg = arg};

    ++p2p->next_seq;
    return r2_link_send(link, &send);
}

r2_status_t r2_p2p_am_send_block(r2_p2p_t *p2p, r2_link_t *link, uint32_t am_id, void *block,
                                 uint64_t bytes)
{
    r2_link_send_t send = {
        .tag = {.comm_key = R2_LINK_UNEXPECTED_KEY, .coll_seq = p2p->next_seq, .id = am_id},
        .block = block,
        .bytes = bytes,
        .chunk_bytes = r2_p2p_chunk_bytes(p2p, bytes)};

    ++p2p->next_seq;
    return r2_link_send(link, &send);
}

r2_status_t r2_p2p_link(r2_p2p_t *p2p, uint32_t rank, r2_link_t **link_p)
{
    r2_status_t status = r2_net_link(&p2p->core->net, rank, link_p);

    if (R2_OK == status) {
        p2p->peers[rank].talked = true;
    }
    return status;
}
