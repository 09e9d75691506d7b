/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Requests of peers: answered, or kept until they can be.
 *
 * A request is answered only when memory for the answer is there, so that nothing is done twice,
 * and what is done is always told. Else it waits, in the order in which requests came from that
 * peer: for the peer to take the answers under way to it (R2_P2P_ANSWERS_MAX), or for memory. Where
 * memory is short for R2_P2P_SHORT_NS the peer is given up: who asked must not wait for ever.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

void r2_p2p_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status)
{
    r2_p2p_get_lost(p2p, rank, status);
    r2_p2p_rma_lost(p2p, rank, status);
    /* Of others there is nothing to lose: what is sent to them now is refused. */
    if (p2p->peers[rank].talked && R2_OK == p2p->peers[rank].lost) {
        p2p->peers[rank].lost = status;
        ++p2p->lost_count;
    }
}

/* @return false: not now. */
static bool r2_p2p_answer(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    return R2_P2P_AM_GET == inbound->am_id ? r2_p2p_get_serve(p2p, inbound)
                                           : r2_p2p_rma_serve(p2p, inbound);
}

void r2_p2p_requested(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound)
{
    r2_p2p_peer_t *peer = &p2p->peers[inbound->rank];

    if (NULL == peer->waiting && r2_p2p_answer(p2p, inbound)) {
        r2_p2p_inbound_put(inbound);
    } else { /* behind those that wait: in order */
        DL_APPEND(peer->waiting, inbound);
        ++p2p->waiting_count;
    }
}

/* Takes the oldest request of a peer off. */
static void r2_p2p_waited(r2_p2p_t *p2p, uint32_t rank)
{
    r2_p2p_inbound_t *inbound = p2p->peers[rank].waiting;

    DL_DELETE(p2p->peers[rank].waiting, inbound);
    --p2p->waiting_count;
    r2_p2p_inbound_put(inbound);
}

static void r2_p2p_drop_waiting(r2_p2p_t *p2p, uint32_t rank)
{
    while (NULL != p2p->peers[rank].waiting) {
        r2_p2p_waited(p2p, rank);
    }
}

/* Who waits for an answer that cannot be made would wait for ever: the user ends the job. */
static void r2_p2p_give_up(r2_p2p_t *p2p, uint32_t rank)
{
    r2_p2p_drop_waiting(p2p, rank);
    r2_am_bufs_drop(p2p, rank);
    p2p->peers[rank].short_since_ns = 0;
    r2_error(&p2p->core->log, "peer %u: given up, no memory to answer it", rank);
    r2_p2p_lost(p2p, rank, R2_ERR_NO_MEMORY);
}

static unsigned r2_p2p_retry_peer(r2_p2p_t *p2p, uint32_t rank)
{
    r2_p2p_peer_t *peer = &p2p->peers[rank];
    unsigned answered = 0;

    while (NULL != peer->waiting && r2_p2p_answer(p2p, peer->waiting)) {
        r2_p2p_waited(p2p, rank);
        ++answered;
    }
    if (0 != peer->short_since_ns &&
        p2p->core->net.now_ns - peer->short_since_ns >= R2_P2P_SHORT_NS) {
        r2_p2p_give_up(p2p, rank);
    }
    return answered;
}

unsigned r2_p2p_retry(r2_p2p_t *p2p)
{
    unsigned events = 0;

    if (0 == p2p->waiting_count && NULL == p2p->unsent) {
        return 0;
    }
    events += r2_am_bufs_retry(p2p);
    for (uint32_t rank = 0; rank < p2p->core->net.size; ++rank) {
        events += r2_p2p_retry_peer(p2p, rank);
    }
    return events;
}

void r2_p2p_requests_fini(r2_p2p_t *p2p)
{
    for (uint32_t rank = 0; rank < p2p->core->net.size; ++rank) {
        r2_p2p_drop_waiting(p2p, rank);
    }
}
