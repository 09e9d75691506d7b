/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parcels: short messages of our own making. One that cannot be sent for want of memory is sent
 * later.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

r2_parcel_t *r2_parcel_new(r2_p2p_t *p2p, uint32_t rank, uint32_t row, uint64_t bytes)
{
    r2_parcel_t *parcel = malloc(sizeof(*parcel) + bytes);

    if (NULL != parcel) {
        *parcel = (r2_parcel_t){.p2p = p2p, .rank = rank, .row = row, .bytes = bytes};
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
        status = r2_p2p_call(p2p, link, parcel->row, parcel->data, parcel->bytes, r2_parcel_over,
                             parcel);
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

void r2_parcels_drop(r2_p2p_t *p2p, uint32_t rank)
{
    r2_parcel_t *parcel, *next;

    DL_FOREACH_SAFE(p2p->unsent, parcel, next) {
        if (parcel->rank == rank) {
            DL_DELETE(p2p->unsent, parcel);
            r2_parcel_free(parcel);
        }
    }
}

unsigned r2_parcels_retry(r2_p2p_t *p2p)
{
    r2_parcel_t *list = p2p->unsent, *parcel, *next;
    unsigned sent = 0;

    p2p->unsent = NULL;
    DL_FOREACH_SAFE(list, parcel, next) {
        DL_DELETE(list, parcel);
        if (r2_parcel_try(parcel)) {
            ++sent;
        } else {
            DL_APPEND(p2p->unsent, parcel);
        }
    }
    return sent;
}

void r2_p2p_parcels_fini(r2_p2p_t *p2p)
{
    r2_parcel_t *parcel, *next;

    DL_CONCAT(p2p->unsent, p2p->parcels);
    DL_FOREACH_SAFE(p2p->unsent, parcel, next) {
        free(parcel);
    }
}
