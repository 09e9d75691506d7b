/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Active messages: unexpected messages of the links, taken by the engine and given to the user
 * outside its lock.
 *
 * An unexpected message that fits the budget of unexpected data arrives whole before anybody posts
 * a receive for it; one that does not asks, and gets its receive when there is room
 * (R2_P2P_GRANTED_MAX), peers in turn. So memory is bounded, and a process that computes holds what
 * its budget allows and does not look dead.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

static void r2_p2p_sent(void *arg, r2_status_t status)
{
    r2_p2p_finish(arg, status);
}

/* To this process: straight into the inbox. */
static r2_status_t r2_p2p_send_self(r2_p2p_t *p2p, uint8_t id, const void *data, size_t bytes)
{
    r2_p2p_inbound_t *inbound = r2_p2p_inbound_new(p2p, p2p->core->net.rank, id, bytes);

    if (NULL == inbound) {
        return R2_ERR_NO_MEMORY;
    }
    if (bytes > 0) {
        memcpy(inbound->data, data, bytes);
    }
    DL_APPEND(p2p->inbox, inbound);
    return R2_OK;
}

static r2_status_t r2_p2p_send_locked(r2_p2p_t *p2p, uint32_t rank, uint8_t id, const void *data,
                                      size_t bytes, r2_p2p_op_t *op)
{
    r2_link_t *link;
    r2_status_t status;

    if (p2p->core->net.rank == rank) {
        return r2_p2p_send_self(p2p, id, data, bytes);
    }
    status = r2_p2p_link(p2p, rank, &link);
    if (R2_OK != status) {
        return status;
    }
    if (NULL == op && !r2_link_copies(link, bytes)) {
        return R2_ERR_AGAIN;
    }
    return r2_p2p_am_send(p2p, link, id, data, bytes, NULL == op ? NULL : r2_p2p_sent, op);
}

r2_status_t r2_p2p_send(r2_p2p_t *p2p, uint32_t rank, uint8_t id, const void *data, size_t bytes,
                        r2_p2p_op_t *op)
{
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (bytes > R2_P2P_MESSAGE_MAX) {
        return R2_ERR_PARAM;
    }
    if (NULL != op) {
        op->p2p = p2p;
    }
    r2_core_enter(p2p->core);
    p2p->core->net.now_ns = r2_now_ns(p2p->core->clock);
    status = r2_p2p_send_locked(p2p, rank, id, data, bytes, op);
    r2_core_leave_started(p2p->core);
    return status;
}

static r2_status_t r2_p2p_pack_locked(r2_p2p_t *p2p, uint32_t rank, uint8_t id, size_t bytes,
                                      r2_p2p_pack_fn_t pack, void *arg)
{
    const uint32_t chunk_bytes = r2_p2p_chunk_bytes(p2p, bytes);
    r2_link_t *link;
    r2_status_t status = r2_p2p_link(p2p, rank, &link);
    void *block;

    if (R2_OK != status) {
        return status;
    }
    block = r2_link_block(link, bytes, chunk_bytes);
    if (NULL == block) {
        return R2_ERR_AGAIN;
    }
    status = pack(arg, block) ? r2_p2p_am_send_block(p2p, link, id, block, bytes) : R2_ERR_PARAM;
    if (R2_OK != status) {
        r2_link_block_free(link, block, bytes);
    }
    return status;
}

r2_status_t r2_p2p_send_packed(r2_p2p_t *p2p, uint32_t rank, uint8_t id, size_t bytes,
                               r2_p2p_pack_fn_t pack, void *arg)
{
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (bytes > R2_P2P_MESSAGE_MAX || p2p->core->net.rank == rank) {
        return R2_ERR_AGAIN;
    }
    r2_core_enter(p2p->core);
    p2p->core->net.now_ns = r2_now_ns(p2p->core->clock);
    status = r2_p2p_pack_locked(p2p, rank, id, bytes, pack, arg);
    r2_core_leave_started(p2p->core);
    return status;
}

static void r2_p2p_arrived(void *arg, r2_status_t status)
{
    r2_p2p_inbound_t *inbound = arg;
    r2_p2p_t *p2p = inbound->p2p;

    DL_DELETE(p2p->pending, inbound);
    p2p->granted_bytes -= inbound->bytes;
    p2p->peers[inbound->rank].granted_bytes -= inbound->bytes;
    if (R2_OK != status) {
        r2_p2p_inbound_put(inbound);
        return;
    }
    DL_APPEND(p2p->arrived, inbound);
}

bool r2_p2p_take_whole(r2_p2p_t *p2p, uint32_t rank, const r2_tag_t *tag, const void *data,
                       uint64_t bytes)
{
    r2_p2p_inbound_t *inbound = r2_p2p_inbound_new(p2p, rank, tag->id, bytes);

    if (NULL == inbound) {
        return false;
    }
    if (bytes > 0) {
        memcpy(inbound->data, data, bytes);
    }
    p2p->peers[rank].talked = true;
    DL_APPEND(p2p->arrived, inbound);
    return true;
}

/* Posts the receive of a call. @return false: there is no memory now, or the link is broken. */
static bool r2_p2p_take(r2_p2p_t *p2p, r2_link_t *link, const r2_tag_t *tag, uint64_t bytes)
{
    const uint32_t rank = r2_link_peer(link);
    r2_p2p_inbound_t *inbound = r2_p2p_inbound_new(p2p, rank, tag->id, bytes);
    r2_link_recv_t recv = {.tag = *tag, .bytes = bytes, .done = r2_p2p_arrived, .arg = inbound};
    r2_status_t status;

    if (NULL == inbound) {
        return false;
    }
    p2p->peers[rank].talked = true;
    recv.data = inbound->data;
    p2p->granted_bytes += bytes;
    p2p->peers[rank].granted_bytes += bytes;
    DL_APPEND(p2p->pending, inbound);
    status = r2_link_recv(link, &recv);
    if (R2_IN_PROGRESS != status) {
        r2_p2p_arrived(inbound, status);
    }
    return status >= 0;
}

/* The next unexpected message of a kind; longer ones than anybody may send are thrown away, or they
 * would bar the others. */
static bool r2_p2p_next_unexpected(r2_p2p_t *p2p, r2_unexpected_t which, r2_link_t **link_p,
                                   r2_tag_t *tag_p, uint64_t *bytes_p)
{
    r2_net_t *net = &p2p->core->net;

    while (r2_net_unexpected(net, which, link_p, tag_p, bytes_p)) {
        if (*bytes_p <= R2_P2P_MESSAGE_MAX) {
            return true;
        }
        r2_net_unexpected_refuse(net, which);
    }
    return false;
}

/* Unexpected messages that ask: in turn, as far as there is room for all or the peer has nothing
 * else on its way. */
static unsigned r2_p2p_take_asking(r2_p2p_t *p2p)
{
    r2_net_t *net = &p2p->core->net;
    uint32_t links = net->unexpected_count[R2_UNEXPECTED_ASKING];
    unsigned taken = 0;
    r2_link_t *link;
    r2_tag_t tag;
    uint64_t bytes;

    while (links > 0 && r2_p2p_next_unexpected(p2p, R2_UNEXPECTED_ASKING, &link, &tag, &bytes)) {
        bool room = p2p->granted_bytes < R2_P2P_GRANTED_MAX ||
                    0 == p2p->peers[r2_link_peer(link)].granted_bytes;

        if (room && !r2_p2p_take(p2p, link, &tag, bytes)) {
            return taken;
        }
        taken += room ? 1 : 0;
        links = room ? net->unexpected_count[R2_UNEXPECTED_ASKING] : links - 1;
        r2_net_unexpected_turn(net, R2_UNEXPECTED_ASKING);
    }
    return taken;
}

static unsigned r2_p2p_take_calls(r2_p2p_t *p2p)
{
    unsigned taken = 0;
    r2_link_t *link;
    r2_tag_t tag;
    uint64_t bytes;

    while (r2_p2p_next_unexpected(p2p, R2_UNEXPECTED_COMPLETE, &link, &tag, &bytes) &&
           r2_p2p_take(p2p, link, &tag, bytes)) {
        ++taken;
    }
    return taken + r2_p2p_take_asking(p2p);
}

/* For the user, or for one of our own ids. */
static void r2_p2p_sort(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound)
{
    static const r2_p2p_am_fn_t takers[] = {
        [R2_P2P_AM_GET - R2_P2P_AM_IDS] = r2_p2p_requested,
        [R2_P2P_AM_RELEASE - R2_P2P_AM_IDS] = r2_p2p_get_released,
        [R2_P2P_AM_REQUEST - R2_P2P_AM_IDS] = r2_p2p_requested,
        [R2_P2P_AM_REPLY - R2_P2P_AM_IDS] = r2_p2p_rma_replied,
    };
    size_t own = (size_t) inbound->am_id - R2_P2P_AM_IDS;

    if (inbound->am_id < R2_P2P_AM_IDS) {
        DL_APPEND(p2p->inbox, inbound);
    } else if (own < sizeof(takers) / sizeof(takers[0])) {
        takers[own](p2p, inbound);
    } else {
        ++p2p->core->counters.rx_malformed;
        r2_p2p_inbound_put(inbound);
    }
}

unsigned r2_p2p_collect(r2_p2p_t *p2p)
{
    unsigned taken = r2_p2p_retry(p2p);

    taken += r2_p2p_take_calls(p2p);
    while (NULL != p2p->arrived) {
        r2_p2p_inbound_t *inbound = p2p->arrived;

        DL_DELETE(p2p->arrived, inbound);
        r2_p2p_sort(p2p, inbound);
        ++taken;
    }
    r2_p2p_release(p2p);
    return taken + r2_p2p_parts_start(p2p);
}

/* Where there is no memory to tell it, it is told later. */
static void r2_p2p_take_lost(r2_p2p_t *p2p, r2_p2p_completions_t *completions_p)
{
    completions_p->lost = malloc(p2p->lost_count * sizeof(*completions_p->lost));
    for (uint32_t rank = 0; NULL != completions_p->lost && p2p->lost_count > 0; ++rank) {
        if (R2_OK != p2p->peers[rank].lost) {
            completions_p->lost[completions_p->lost_count++] =
                (r2_p2p_loss_t){rank, p2p->peers[rank].lost};
            p2p->peers[rank].lost = R2_OK;
            --p2p->lost_count;
        }
    }
}

void r2_p2p_take_completions(r2_p2p_t *p2p, r2_p2p_completions_t *completions_p)
{
    *completions_p =
        (r2_p2p_completions_t){.p2p = p2p, .inbox = p2p->inbox, .finished = p2p->finished};
    p2p->inbox = NULL;
    p2p->finished = NULL;
    if (p2p->lost_count > 0) {
        r2_p2p_take_lost(p2p, completions_p);
    }
}

void r2_p2p_tell(const r2_p2p_completions_t *completions)
{
    r2_p2p_t *p2p = completions->p2p;
    r2_p2p_inbound_t *inbox = completions->inbox, *inbound, *next;
    r2_p2p_op_t *finished = completions->finished;

    DL_FOREACH_SAFE(inbox, inbound, next) {
        p2p->handlers.received(p2p->handlers.arg, inbound->rank, (uint8_t) inbound->am_id,
                               inbound->data, inbound->bytes);
        r2_p2p_inbound_told(inbound);
    }
    while (NULL != finished) {
        r2_p2p_op_t *op = finished;

        finished = op->next;
        op->done(op, op->status);
    }
    for (uint32_t i = 0; i < completions->lost_count; ++i) {
        p2p->handlers.lost(p2p->handlers.arg, completions->lost[i].rank,
                           completions->lost[i].status);
    }
    free(completions->lost);
}

r2_status_t r2_p2p_create(r2_core_t *core, const r2_p2p_handlers_t *handlers, r2_p2p_t **p2p_p)
{
    r2_p2p_t *p2p = calloc(1, sizeof(*p2p));

    if (NULL == p2p) {
        return R2_ERR_NO_MEMORY;
    }
    p2p->core = core;
    p2p->handlers = *handlers;
    p2p->peers = calloc(core->net.size, sizeof(*p2p->peers));
    if (NULL == p2p->peers) {
        free(p2p);
        return R2_ERR_NO_MEMORY;
    }
    p2p->next_seq = (uint32_t) core->net.first_seq;
    p2p->next_get = (uint32_t) core->net.first_seq;
    p2p->next_rma = (uint32_t) core->net.first_seq;
    *p2p_p = p2p;
    return R2_OK;
}

void r2_p2p_withdraw(r2_p2p_t *p2p)
{
    r2_links_t links = r2_core_links(p2p->core, 0);
    r2_link_t *link;

    while (NULL != (link = r2_links_next(&links))) {
        r2_link_withdraw(link, R2_LINK_UNEXPECTED_KEY);
        r2_link_withdraw(link, R2_P2P_DATA_KEY);
        r2_direct_withdraw(link);
    }
}

void r2_p2p_destroy(r2_p2p_t *p2p)
{
    r2_p2p_inbound_t *inbound, *next;

    DL_CONCAT(p2p->arrived, p2p->inbox);
    DL_CONCAT(p2p->arrived, p2p->pending);
    DL_FOREACH_SAFE(p2p->arrived, inbound, next) {
        r2_p2p_inbound_put(inbound);
    }
    r2_p2p_inbound_take_back(p2p);
    r2_p2p_direct_fini(p2p);
    r2_p2p_get_fini(p2p);
    r2_p2p_rma_fini(p2p);
    r2_p2p_requests_fini(p2p);
    r2_p2p_am_bufs_fini(p2p);
    free(p2p->peers);
    free(p2p);
}
