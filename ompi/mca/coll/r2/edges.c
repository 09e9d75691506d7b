/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls that are lists of messages: from blocks of user buffers to r2core's edges.
 */
#include "call.h"

#include <stdlib.h>
#include <string.h>

static void r2_side_fini(mca_coll_r2_side_t *side)
{
    free(side->edges);
    free(side->offsets);
    free(side->bytes);
}

/* @return memory for r2core in *memory_p. */
static int r2_side_init(mca_coll_r2_side_t *side, mca_coll_r2_buffer_t *buffer,
                        const mca_coll_r2_blocks_t *blocks, int edge_count, void **memory_p,
                        r2_convertor_t *convertor_p)
{
    const size_t room = NULL == blocks ? 0 : (size_t) blocks->block_count;

    memset(side, 0, sizeof(*side));
    side->edges = malloc(((size_t) edge_count + 1) * sizeof(*side->edges));
    side->offsets = malloc((room + 1) * sizeof(*side->offsets));
    side->bytes = malloc((room + 1) * sizeof(*side->bytes));
    if (NULL == side->edges || NULL == side->offsets || NULL == side->bytes) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (size_t i = 0; i < room; ++i) {
        side->bytes[i] = mca_coll_r2_block_bytes(blocks, (int) i);
    }
    return 0 == room
               ? OMPI_SUCCESS
               : mca_coll_r2_blocks_init(buffer, blocks, side->offsets, memory_p, convertor_p);
}

int mca_coll_r2_sides_init(mca_coll_r2_call_t *call, mca_coll_r2_side_t *sends,
                           const mca_coll_r2_blocks_t *from, int send_count,
                           mca_coll_r2_side_t *recvs, const mca_coll_r2_blocks_t *to,
                           int recv_count)
{
    void *memory = NULL;
    int rc = r2_side_init(sends, &call->in, from, send_count, &memory, &call->args.in_convertor);

    call->args.in = memory;
    memset(recvs, 0, sizeof(*recvs));
    if (OMPI_SUCCESS == rc) {
        rc = r2_side_init(recvs, &call->out, to, recv_count, &call->args.out,
                          &call->args.out_convertor);
    }
    if (OMPI_SUCCESS != rc) {
        r2_side_fini(sends);
        r2_side_fini(recvs);
    }
    return rc;
}

void mca_coll_r2_side_add(mca_coll_r2_side_t *side, int peer, uint32_t tag, int block)
{
    side->edges[side->edge_count++] = (r2_edge_t){.peer = peer,
                                                  .tag = tag,
                                                  .offset_bytes = side->offsets[block],
                                                  .bytes = side->bytes[block]};
}

/* What a rank sends to itself must be as long as what it takes from itself. */
static bool r2_sides_fit(const mca_coll_r2_call_t *call, const mca_coll_r2_side_t *sends,
                         const mca_coll_r2_side_t *recvs)
{
    for (uint32_t i = 0; i < sends->edge_count; ++i) {
        for (uint32_t k = 0; sends->edges[i].peer == call->rank && k < recvs->edge_count; ++k) {
            const r2_edge_t *from = &sends->edges[i], *to = &recvs->edges[k];

            if (to->peer == call->rank && to->tag == from->tag && to->bytes != from->bytes) {
                return false;
            }
        }
    }
    return true;
}

void mca_coll_r2_sides_done(mca_coll_r2_call_t *call, mca_coll_r2_side_t *sends,
                            mca_coll_r2_side_t *recvs)
{
    call->truncated = call->truncated || !r2_sides_fit(call, sends, recvs);
    call->sends = sends->edges;
    call->recvs = recvs->edges;
    call->args.sends = sends->edges;
    call->args.send_count = sends->edge_count;
    call->args.recvs = recvs->edges;
    call->args.recv_count = recvs->edge_count;
    sends->edges = NULL;
    recvs->edges = NULL;
    r2_side_fini(sends);
    r2_side_fini(recvs);
}
