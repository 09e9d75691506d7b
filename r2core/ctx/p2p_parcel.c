/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parcels: short messages of our own making, and questions of peers that wait until one can be made.
 *
 * A question is answered only when memory for the answer is there, so that nothing is done twice, and
 * what is done is always told. Else it waits, in the order in which questions came from that peer: for the peer
 * to take the answers under way to it (R2_P2P_ANSWERS_MAX), or for memory. Where memory is short for
 * R2_P2P_SHORT_NS the peer is given up: who asked must not wait for ever.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p.h"

r2_parcel_t *r2_parcel_new(r2_p2p_t *p2p, uint32_t rank, uint32_t row, uint64_t bytes)
{
    r2_parcel_t *parcel = malloc(sizeof(*parcel) + bytes);

    if (NULL != parcel) {
        *parcel = (r2_parcel_t) {.p2p = p2p, .rank = rank, .row = row, .bytes = bytes};
    }
    return parcel;
}

void r2_parcel_free(r2_parcel_t *parcel)
{
    if (NULL != parcel) {
        parcel->p2p->peers[parcel->rank].answer_bytes -= parcel->answer_bytes;
        free(parcel);
    }
}

/* No transport refers to it any more, or nobody will ever want it. */
static void r2_parcel_over(void *arg, r2_status_t status)
{
    r2_parcel_t *parcel = arg;

    (void) status;
    DL_DELETE(parcel->p2p->parcels, parcel);
    r2_parcel_free(parcel);
}

r2_status_t r2_parcel_send(r2_parcel_t *parcel)
{
    r2_p2p_t *p2p = parcel->p2p;
    r2_link_t *link;
    r2_status_t status = r2_p2p_link(p2p, parcel->rank, &link);

    if (R2_OK == status) {
        DL_APPEND(p2p->parcels, parcel);
        status = r2_p2p_call(p2p, link, parcel->row, parcel->data, parcel->bytes, r2_parcel_over, parcel);
        if (R2_IN_PROGRESS == status) {
            return R2_OK;
        }
        DL_DELETE(p2p->parcels, parcel);
    }
    if (R2_OK == status) {
        r2_parcel_free(parcel);
    }
    return status;
}

/* Memory is short for a peer's sake. */
static void r2_p2p_short(r2_p2p_t *p2p, uint32_t rank)
{
    r2_p2p_peer_t *peer = &p2p->peers[rank];

    if (0 == peer->short_since_ns) {
        peer->short_since_ns = p2p->core->net.now_ns;
        r2_warn(&p2p->core->log, "peer %u: no memory to answer it now", rank);
    }
}

/* @return false: there is no memory to send it now. */
static bool r2_parcel_try(r2_parcel_t *parcel)
{
    r2_p2p_t *p2p = parcel->p2p;
    uint32_t rank = parcel->rank;
    r2_status_t status = r2_parcel_send(parcel);

    if (R2_ERR_NO_MEMORY == status) {
        r2_p2p_short(p2p, rank);
        return false;
    }
    p2p->peers[rank].short_since_ns = 0;
    if (R2_OK != status) { /* on a broken link the other side ends what it waits for by itself */
        r2_parcel_free(parcel);
    }
    return true;
}

void r2_parcel_post(r2_parcel_t *parcel)
{
    r2_p2p_t *p2p = parcel->p2p;

    if (!r2_parcel_try(parcel)) {
        DL_APPEND(p2p->unsent, parcel);
    }
}

r2_parcel_t *r2_parcel_answer(r2_p2p_t *p2p, uint32_t rank, uint32_t row, uint64_t bytes)
{
    r2_parcel_t *parcel = r2_parcel_new(p2p, rank, row, bytes);

    if (NULL == parcel) {
        r2_p2p_short(p2p, rank);
        return NULL;
    }
    parcel->answer_bytes = sizeof(*parcel) + bytes;
    p2p->peers[rank].answer_bytes += parcel->answer_bytes;
    p2p->peers[rank].short_since_ns = 0;
    return parcel;
}

bool r2_p2p_answers_full(const r2_p2p_t *p2p, uint32_t rank)
{
    return p2p->peers[rank].answer_bytes >= R2_P2P_ANSWERS_MAX;
}

/* @return false: not now. */
static bool r2_p2p_answer(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    return R2_P2P_ROW_GET == inbound->row ? r2_p2p_get_asked(p2p, inbound)
                                          : r2_p2p_ask_asked(p2p, inbound);
}

void r2_p2p_asked_by(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound)
{
    r2_p2p_peer_t *peer = &p2p->peers[inbound->rank];

    if (NULL == peer->waiting && r2_p2p_answer(p2p, inbound)) {
        free(inbound);
    } else { /* behind those that wait: in order */
        DL_APPEND(peer->waiting, inbound);
        ++p2p->waiting_count;
    }
}

/* Takes the oldest question of a peer off. */
static void r2_p2p_waited(r2_p2p_t *p2p, uint32_t rank)
{
    r2_p2p_inbound_t *inbound = p2p->peers[rank].waiting;

    DL_DELETE(p2p->peers[rank].waiting, inbound);
    --p2p->waiting_count;
    free(inbound);
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
    r2_parcel_t *parcel, *next;

    r2_p2p_drop_waiting(p2p, rank);
    DL_FOREACH_SAFE(p2p->unsent, parcel, next)
    {
        if (parcel->rank == rank) {
            DL_DELETE(p2p->unsent, parcel);
            r2_parcel_free(parcel);
        }
    }
    p2p->peers[rank].short_since_ns = 0;
    r2_error(&p2p->core->log, "peer %u: given up, no memory to answer it", rank);
    r2_p2p_lost(p2p, rank, R2_ERR_NO_MEMORY);
}

static unsigned r2_p2p_retry_unsent(r2_p2p_t *p2p)
{
    r2_parcel_t *list = p2p->unsent, *parcel, *next;
    unsigned sent = 0;

    p2p->unsent = NULL;
    DL_FOREACH_SAFE(list, parcel, next)
    {
        DL_DELETE(list, parcel);
        if (r2_parcel_try(parcel)) {
            ++sent;
        } else {
            DL_APPEND(p2p->unsent, parcel);
        }
    }
    return sent;
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
    events += r2_p2p_retry_unsent(p2p);
    for (uint32_t rank = 0; rank < p2p->core->net.size; ++rank) {
        events += r2_p2p_retry_peer(p2p, rank);
    }
    return events;
}

void r2_p2p_parcels_fini(r2_p2p_t *p2p)
{
    r2_parcel_t *parcel, *next;

    for (uint32_t rank = 0; rank < p2p->core->net.size; ++rank) {
        r2_p2p_drop_waiting(p2p, rank);
    }
    DL_CONCAT(p2p->unsent, p2p->parcels);
    DL_FOREACH_SAFE(p2p->unsent, parcel, next)
    {
        free(parcel);
    }
}
