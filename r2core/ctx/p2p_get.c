/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reading a peer's memory: request, data straight to its place, release.
 *
 *   reader                          owner
 *   posts the receive of the data
 *   GET (address, bytes, id)  --->
 *                             <---  data, over all rails
 *                             <---  RELEASE (id): acknowledged, no transport refers to the memory
 *   done
 *
 * The data alone does not end a get: an owner that frees its memory then could have a copy of a
 * chunk under way on a slow rail still read from it. A release that tells of an error ends a get
 * that has no data yet.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

static void r2_p2p_get_over(r2_p2p_get_t *get)
{
    HASH_DEL(get->p2p->gets, get);
    r2_p2p_finish(get->op, get->status);
    free(get);
}

bool r2_p2p_awaits(const r2_p2p_t *p2p, const r2_tag_t *tag)
{
    const uint32_t id = tag->coll_seq;
    r2_p2p_get_t *get;

    HASH_FIND(hh, p2p->gets, &id, sizeof(id), get);
    return NULL != get;
}

static void r2_p2p_get_here(void *arg, r2_status_t status)
{
    r2_p2p_get_t *get = arg;

    get->here = true;
    get->status = R2_OK == get->status ? status : get->status;
    if (get->released || R2_OK != status) {
        r2_p2p_get_over(get);
    }
}

static void r2_get_request_put(r2_am_buf_t *buf, const r2_get_request_t *request)
{
    memcpy(buf->data, request, sizeof(*request));
}

static r2_tag_t r2_get_tag(uint32_t id)
{
    return (r2_tag_t){.comm_key = R2_P2P_DATA_KEY, .coll_seq = id};
}

static r2_status_t r2_p2p_get_start(r2_p2p_get_t *get, void *local, uint64_t remote, uint64_t bytes)
{
    r2_p2p_t *p2p = get->p2p;
    r2_get_request_t request = {.address = remote, .bytes = bytes, .id = get->id};
    r2_link_recv_t recv = {.tag = r2_get_tag(get->id),
                           .data = local,
                           .bytes = bytes,
                           .granted_p = &request.granted_bytes,
                           .done = r2_p2p_get_here,
                           .arg = get};
    r2_am_buf_t *buf = r2_am_buf_new(p2p, get->rank, R2_P2P_AM_GET, sizeof(request));
    r2_link_t *link;
    r2_status_t status = NULL == buf ? R2_ERR_NO_MEMORY : r2_p2p_link(p2p, get->rank, &link);

    if (R2_OK == status) {
        status = r2_link_recv(link, &recv);
    }
    if (R2_IN_PROGRESS != status) {
        r2_am_buf_free(buf);
        return status < 0 ? status : R2_ERR_WIRE;
    }
    /* A link that breaks now ends the receive, and with it the get. */
    r2_get_request_put(buf, &request);
    r2_am_buf_post(buf);
    return R2_IN_PROGRESS;
}

r2_status_t r2_p2p_get_long(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                            uint64_t bytes, r2_p2p_op_t *op)
{
    r2_p2p_get_t *get = calloc(1, sizeof(*get));
    r2_status_t status;

    if (NULL == get) {
        return R2_ERR_NO_MEMORY;
    }
    op->p2p = p2p;
    get->p2p = p2p;
    get->op = op;
    get->rank = rank;
    get->id = p2p->next_get++;
    HASH_ADD(hh, p2p->gets, id, sizeof(get->id), get);
    if (!r2_hash_has(&get->hh)) {
        free(get);
        return R2_ERR_NO_MEMORY;
    }
    status = r2_p2p_get_start(get, local, remote, bytes);
    if (R2_IN_PROGRESS != status) {
        HASH_DEL(p2p->gets, get);
        free(get);
    }
    return status;
}

static void r2_p2p_served(void *arg, r2_status_t status)
{
    r2_p2p_serve_t *serve = arg;

    serve->status = status;
    DL_DELETE(serve->p2p->serving, serve);
    DL_APPEND(serve->p2p->served, serve);
}

static void r2_p2p_serve_free(r2_p2p_serve_t *serve)
{
    r2_am_buf_free(serve->release);
    free(serve);
}

/* @return false: there is no memory for it now. */
static bool r2_p2p_serve(r2_p2p_t *p2p, uint32_t rank, const r2_get_request_t *request)
{
    r2_p2p_serve_t *serve = calloc(1, sizeof(*serve));
    r2_link_send_t send = {.tag = r2_get_tag(request->id),
                           .data = (const void *) (uintptr_t) request->address,
                           .bytes = request->bytes,
                           .chunk_bytes = r2_p2p_chunk_bytes(p2p, request->bytes),
                           .granted_bytes = request->granted_bytes,
                           .done = r2_p2p_served,
                           .arg = serve};
    r2_am_buf_t *release = r2_am_buf_answer(p2p, rank, R2_P2P_AM_RELEASE, sizeof(*request));
    r2_link_t *link;
    r2_status_t status;

    if (NULL == serve || NULL == release) {
        r2_am_buf_free(release);
        free(serve);
        return false;
    }
    *serve = (r2_p2p_serve_t){.p2p = p2p, .id = request->id, .release = release};
    status = r2_p2p_link(p2p, rank, &link);
    status = R2_OK == status ? r2_link_send(link, &send) : status;
    if (R2_ERR_NO_MEMORY == status) {
        r2_p2p_serve_free(serve);
        return false;
    }
    DL_APPEND(p2p->serving, serve);
    if (R2_IN_PROGRESS != status) {
        r2_p2p_served(serve, status);
    }
    return true;
}

/* @return false: malformed, and counted. */
static bool r2_get_request_read(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound,
                                r2_get_request_t *request_p)
{
    if (sizeof(*request_p) != inbound->bytes) {
        ++p2p->core->counters.rx_malformed;
        return false;
    }
    memcpy(request_p, inbound->data, sizeof(*request_p));
    return true;
}

bool r2_p2p_get_serve(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    r2_get_request_t request;

    return !r2_get_request_read(p2p, inbound, &request) ||
           r2_p2p_serve(p2p, inbound->rank, &request);
}

/* The owner could not send: what it may have sent is not wanted any more. */
static void r2_p2p_get_refused(r2_p2p_get_t *get, r2_status_t status)
{
    r2_link_t *link = r2_core_link(get->p2p->core, get->rank);
    const r2_tag_t tag = r2_get_tag(get->id);
    const bool posted = !get->here;

    get->status = status;
    r2_p2p_get_over(get);
    if (posted) {
        r2_link_unpost(link, &tag); /* what is still under way of it is for a get that is over */
    }
}

static void r2_p2p_get_answered(r2_p2p_t *p2p, uint32_t rank, const r2_get_request_t *answer)
{
    uint32_t id = answer->id;
    r2_p2p_get_t *get;

    HASH_FIND(hh, p2p->gets, &id, sizeof(id), get);
    if (NULL == get || get->rank != rank || answer->status > 0) {
        ++p2p->core->counters.rx_malformed;
        return;
    }
    if (R2_OK != answer->status) {
        r2_p2p_get_refused(get, (r2_status_t) answer->status);
        return;
    }
    get->released = true;
    if (get->here) {
        r2_p2p_get_over(get);
    }
}

void r2_p2p_get_released(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound)
{
    r2_get_request_t answer;

    if (r2_get_request_read(p2p, inbound, &answer)) {
        r2_p2p_get_answered(p2p, inbound->rank, &answer);
    }
    r2_p2p_inbound_put(inbound);
}

void r2_p2p_release(r2_p2p_t *p2p)
{
    while (NULL != p2p->served) {
        r2_p2p_serve_t *serve = p2p->served;
        r2_get_request_t answer = {.id = serve->id, .status = (int32_t) serve->status};

        DL_DELETE(p2p->served, serve);
        r2_get_request_put(serve->release, &answer);
        /* On a broken link the reader's receive is ended by its own side of the link. */
        r2_am_buf_post(serve->release);
        free(serve);
    }
}

void r2_p2p_get_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status)
{
    r2_p2p_get_t *get, *next;

    HASH_ITER(hh, p2p->gets, get, next)
    {
        if (get->rank == rank && get->here) {
            get->status = status;
            r2_p2p_get_over(get);
        }
    }
}

void r2_p2p_get_fini(r2_p2p_t *p2p)
{
    r2_p2p_get_t *get, *next;

    HASH_ITER(hh, p2p->gets, get, next)
    {
        HASH_DEL(p2p->gets, get);
        free(get);
    }
    DL_CONCAT(p2p->served, p2p->serving);
    while (NULL != p2p->served) {
        r2_p2p_serve_t *serve = p2p->served;

        DL_DELETE(p2p->served, serve);
        r2_p2p_serve_free(serve);
    }
}
