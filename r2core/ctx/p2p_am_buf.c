/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * AM buffers: short messages of our own making. One that cannot be sent for want of memory is sent
 * later.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

r2_am_buf_t *r2_am_buf_new(r2_p2p_t *p2p, uint32_t rank, uint32_t am_id, uint64_t bytes)
{
    r2_am_buf_t *buf = malloc(sizeof(*buf) + bytes);

    if (NULL != buf) {
        *buf = (r2_am_buf_t){.p2p = p2p, .rank = rank, .am_id = am_id, .bytes = bytes};
    }
    return buf;
}

void r2_am_buf_free(r2_am_buf_t *buf)
{
    if (NULL != buf) {
        buf->p2p->peers[buf->rank].answer_bytes -= buf->answer_bytes;
        free(buf);
    }
}

/* No transport refers to it any more, or nobody will ever want it. */
static void r2_am_buf_over(void *arg, r2_status_t status)
{
    r2_am_buf_t *buf = arg;

    (void) status;
    DL_DELETE(buf->p2p->am_bufs, buf);
    r2_am_buf_free(buf);
}

r2_status_t r2_am_buf_send(r2_am_buf_t *buf)
{
    r2_p2p_t *p2p = buf->p2p;
    r2_link_t *link;
    r2_status_t status = r2_p2p_link(p2p, buf->rank, &link);

    if (R2_OK == status) {
        DL_APPEND(p2p->am_bufs, buf);
        status = r2_p2p_am_send(p2p, link, buf->am_id, buf->data, buf->bytes, r2_am_buf_over, buf);
        if (R2_IN_PROGRESS == status) {
            return R2_OK;
        }
        DL_DELETE(p2p->am_bufs, buf);
    }
    if (R2_OK == status) {
        r2_am_buf_free(buf);
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
static bool r2_am_buf_try(r2_am_buf_t *buf)
{
    r2_p2p_t *p2p = buf->p2p;
    uint32_t rank = buf->rank;
    r2_status_t status = r2_am_buf_send(buf);

    if (R2_ERR_NO_MEMORY == status) {
        r2_p2p_short(p2p, rank);
        return false;
    }
    p2p->peers[rank].short_since_ns = 0;
    if (R2_OK != status) { /* on a broken link the other side ends what it waits for by itself */
        r2_am_buf_free(buf);
    }
    return true;
}

void r2_am_buf_post(r2_am_buf_t *buf)
{
    r2_p2p_t *p2p = buf->p2p;

    if (!r2_am_buf_try(buf)) {
        DL_APPEND(p2p->unsent, buf);
    }
}

r2_am_buf_t *r2_am_buf_answer(r2_p2p_t *p2p, uint32_t rank, uint32_t am_id, uint64_t bytes)
{
    r2_am_buf_t *buf = r2_am_buf_new(p2p, rank, am_id, bytes);

    if (NULL == buf) {
        r2_p2p_short(p2p, rank);
        return NULL;
    }
    buf->answer_bytes = sizeof(*buf) + bytes;
    p2p->peers[rank].answer_bytes += buf->answer_bytes;
    p2p->peers[rank].short_since_ns = 0;
    return buf;
}

bool r2_p2p_answers_full(const r2_p2p_t *p2p, uint32_t rank)
{
    return p2p->peers[rank].answer_bytes >= R2_P2P_ANSWERS_MAX;
}

void r2_am_bufs_drop(r2_p2p_t *p2p, uint32_t rank)
{
    r2_am_buf_t *buf, *next;

    DL_FOREACH_SAFE(p2p->unsent, buf, next) {
        if (buf->rank == rank) {
            DL_DELETE(p2p->unsent, buf);
            r2_am_buf_free(buf);
        }
    }
}

unsigned r2_am_bufs_retry(r2_p2p_t *p2p)
{
    r2_am_buf_t *list = p2p->unsent, *buf, *next;
    unsigned sent = 0;

    p2p->unsent = NULL;
    DL_FOREACH_SAFE(list, buf, next) {
        DL_DELETE(list, buf);
        if (r2_am_buf_try(buf)) {
            ++sent;
        } else {
            DL_APPEND(p2p->unsent, buf);
        }
    }
    return sent;
}

void r2_p2p_am_bufs_fini(r2_p2p_t *p2p)
{
    r2_am_buf_t *buf, *next;

    DL_CONCAT(p2p->unsent, p2p->am_bufs);
    DL_FOREACH_SAFE(p2p->unsent, buf, next) {
        free(buf);
    }
}
