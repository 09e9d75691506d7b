/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Requests about a peer's memory: short reads, writes, updates of integers; each is done by the
 * peer's application threads and answered.
 *
 *   asks                                   has the memory
 *   READ   (address, bytes)           -->
 *                                     <--  REPLY, data
 *   WRITE  (address, bytes), data     -->  copies
 *                                     <--  REPLY
 *   PULL   (address, bytes, source)   -->  gets the data as in p2p_get.c
 *                                     <--  REPLY
 *   FENCED (as PULL), connection      -->  closes the connection, then as PULL
 *                                     <--  REPLY
 *   UPDATE (address, verb, operand)   -->  atomic instruction
 *                                     <--  REPLY, old value
 *
 * Messages may overtake each other: what has to come later is asked after the reply.
 */
#include "r2_config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/p2p_state.h"

/* The AM buffer of an answer: the reply, then its data. */
static r2_am_buf_t *r2_rma_answer_new(r2_p2p_t *p2p, uint32_t rank, uint32_t id, uint64_t bytes)
{
    r2_p2p_reply_t reply = {.id = id};
    r2_am_buf_t *buf = r2_am_buf_answer(p2p, rank, R2_P2P_AM_REPLY, sizeof(reply) + bytes);

    if (NULL != buf) {
        memcpy(buf->data, &reply, sizeof(reply));
    }
    return buf;
}

static void *r2_rma_answer_data(r2_am_buf_t *buf)
{
    return buf->data + sizeof(r2_p2p_reply_t);
}

/* Without data if it is an error. Consumes the AM buffer. */
static void r2_rma_answer(r2_am_buf_t *buf, r2_status_t status)
{
    int32_t value = (int32_t) status;

    memcpy(buf->data + offsetof(r2_p2p_reply_t, status), &value, sizeof(value));
    if (R2_OK != status) {
        buf->bytes = sizeof(r2_p2p_reply_t);
    }
    r2_am_buf_post(buf);
}

static uint64_t r2_rma_new_value(const r2_rma_request_t *request, uint64_t old)
{
    switch ((r2_p2p_verb_t) request->verb) {
    case R2_P2P_ADD:
        return old + request->operand;
    case R2_P2P_AND:
        return old & request->operand;
    case R2_P2P_OR:
        return old | request->operand;
    case R2_P2P_XOR:
        return old ^ request->operand;
    case R2_P2P_SWAP:
        return request->operand;
    case R2_P2P_COMPARE_SWAP:
        return old == request->compare ? request->operand : old;
    case R2_P2P_VERBS:
        break;
    }
    return old;
}

static uint32_t r2_rma_update32(const r2_rma_request_t *request, uint32_t *at)
{
    uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, (uint32_t) r2_rma_new_value(request, old), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

static uint64_t r2_rma_update64(const r2_rma_request_t *request, uint64_t *at)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, r2_rma_new_value(request, old), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

/* Writes the old value, of request->bytes. */
static void r2_rma_update(const r2_rma_request_t *request, void *old_p)
{
    void *at = (void *) (uintptr_t) request->address;

    if (4 == request->bytes) {
        uint32_t old = r2_rma_update32(request, at);

        memcpy(old_p, &old, sizeof(old));
    } else {
        uint64_t old = r2_rma_update64(request, at);

        memcpy(old_p, &old, sizeof(old));
    }
}

static bool r2_rma_read_valid(const r2_rma_request_t *request, uint64_t bytes)
{
    return 0 == bytes && request->bytes <= R2_P2P_SHORT_BYTES;
}

static bool r2_rma_read(r2_p2p_t *p2p, uint32_t rank, const r2_rma_request_t *request,
                        const void *data)
{
    r2_am_buf_t *answer = r2_p2p_answers_full(p2p, rank)
                              ? NULL
                              : r2_rma_answer_new(p2p, rank, request->id, request->bytes);

    (void) data;
    if (NULL == answer) {
        return false;
    }
    if (request->bytes > 0) {
        memcpy(r2_rma_answer_data(answer), (const void *) (uintptr_t) request->address,
               request->bytes);
    }
    r2_rma_answer(answer, R2_OK);
    return true;
}

static bool r2_rma_write_valid(const r2_rma_request_t *request, uint64_t bytes)
{
    return bytes == request->bytes;
}

static bool r2_rma_write(r2_p2p_t *p2p, uint32_t rank, const r2_rma_request_t *request,
                         const void *data)
{
    r2_am_buf_t *answer = r2_rma_answer_new(p2p, rank, request->id, 0);

    if (NULL == answer) {
        return false;
    }
    if (request->bytes > 0) {
        memcpy((void *) (uintptr_t) request->address, data, request->bytes);
    }
    r2_rma_answer(answer, R2_OK);
    return true;
}

static bool r2_rma_update_valid(const r2_rma_request_t *request, uint64_t bytes)
{
    return 0 == bytes && (4 == request->bytes || 8 == request->bytes) &&
           0 == request->address % request->bytes && request->verb < R2_P2P_VERBS;
}

static bool r2_rma_update_serve(r2_p2p_t *p2p, uint32_t rank, const r2_rma_request_t *request,
                                const void *data)
{
    r2_am_buf_t *answer = r2_rma_answer_new(p2p, rank, request->id, request->bytes);

    (void) data;
    if (NULL == answer) {
        return false;
    }
    r2_rma_update(request, r2_rma_answer_data(answer));
    r2_rma_answer(answer, R2_OK);
    return true;
}

static bool r2_rma_pull_valid(const r2_rma_request_t *request, uint64_t bytes)
{
    return (R2_P2P_KIND_FENCED == request->kind ? sizeof(uint64_t) : 0) == bytes;
}

/* An application thread, no lock. */
static void r2_rma_pulled(r2_p2p_op_t *op, r2_status_t status)
{
    r2_p2p_pull_t *pull = op->arg;
    r2_p2p_t *p2p = op->p2p;

    r2_core_enter(p2p->core);
    DL_DELETE(p2p->pulls, pull);
    r2_rma_answer(pull->answer, status);
    r2_core_leave(p2p->core);
    free(pull);
}

/* Nothing that a peer wrote over a connection lands any more. */
static void r2_rma_fence(r2_p2p_t *p2p, uint32_t rank, const void *connection)
{
    r2_link_t *link = r2_core_link(p2p->core, rank);
    uint64_t id;

    memcpy(&id, connection, sizeof(id));
    if (NULL != link) {
        r2_link_fence(link, id);
    }
}

static bool r2_rma_pull(r2_p2p_t *p2p, uint32_t rank, const r2_rma_request_t *request,
                        const void *data)
{
    r2_p2p_pull_t *pull = calloc(1, sizeof(*pull));
    r2_am_buf_t *answer = r2_rma_answer_new(p2p, rank, request->id, 0);
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (R2_P2P_KIND_FENCED == request->kind) {
        r2_rma_fence(p2p, rank, data);
    }
    if (NULL != pull && NULL != answer) {
        *pull = (r2_p2p_pull_t){.op = {.done = r2_rma_pulled, .arg = pull}, .answer = answer};
        status = r2_p2p_get_long(p2p, rank, (void *) (uintptr_t) request->address, request->source,
                                 request->bytes, &pull->op);
    }
    if (R2_IN_PROGRESS == status) {
        DL_APPEND(p2p->pulls, pull);
        return true;
    }
    free(pull);
    if (R2_ERR_NO_MEMORY == status) {
        r2_am_buf_free(answer);
        return false;
    }
    r2_rma_answer(answer, status);
    return true;
}

/* A request that is not what any of ours would be. */
static bool r2_rma_refuse(r2_p2p_t *p2p, uint32_t rank, uint32_t id)
{
    r2_am_buf_t *answer = r2_rma_answer_new(p2p, rank, id, 0);

    if (NULL == answer) {
        return false;
    }
    ++p2p->core->counters.rx_malformed;
    r2_rma_answer(answer, R2_ERR_WIRE);
    return true;
}

/** What a kind of request needs. */
typedef struct r2_rma_kind {
    bool (*valid)(const r2_rma_request_t *request, uint64_t bytes);
    /** Does it. @return false: not now; to be called again with the same. */
    bool (*act)(r2_p2p_t *p2p, uint32_t rank, const r2_rma_request_t *request, const void *data);
} r2_rma_kind_t;

bool r2_p2p_rma_serve(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    static const r2_rma_kind_t kinds[R2_P2P_KINDS] = {
        [R2_P2P_KIND_READ] = {r2_rma_read_valid, r2_rma_read},
        [R2_P2P_KIND_WRITE] = {r2_rma_write_valid, r2_rma_write},
        [R2_P2P_KIND_PULL] = {r2_rma_pull_valid, r2_rma_pull},
        [R2_P2P_KIND_UPDATE] = {r2_rma_update_valid, r2_rma_update_serve},
        [R2_P2P_KIND_FENCED] = {r2_rma_pull_valid, r2_rma_pull},
    };
    r2_rma_request_t request;

    if (inbound->bytes < sizeof(request)) {
        ++p2p->core->counters.rx_malformed;
        return true;
    }
    memcpy(&request, inbound->data, sizeof(request));
    if (request.kind >= R2_P2P_KINDS ||
        !kinds[request.kind].valid(&request, inbound->bytes - sizeof(request))) {
        return r2_rma_refuse(p2p, inbound->rank, request.id);
    }
    return kinds[request.kind].act(p2p, inbound->rank, &request, inbound->data + sizeof(request));
}

static void r2_rma_over(r2_p2p_t *p2p, r2_rma_issued_t *issued, r2_status_t status)
{
    HASH_DEL(p2p->issued, issued);
    r2_p2p_finish(issued->op, status);
    free(issued);
}

static void r2_rma_reply_came(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    r2_p2p_reply_t reply = {0};
    r2_rma_issued_t *issued = NULL;
    uint64_t bytes = inbound->bytes - sizeof(reply); /* wraps: then it is not what we wait for */
    uint32_t id;

    if (inbound->bytes >= sizeof(reply)) {
        memcpy(&reply, inbound->data, sizeof(reply));
        id = reply.id;
        HASH_FIND(hh, p2p->issued, &id, sizeof(id), issued);
    }
    if (NULL == issued || issued->rank != inbound->rank || reply.status > 0 ||
        bytes != (R2_OK == reply.status ? issued->bytes : 0)) {
        ++p2p->core->counters.rx_malformed;
        return;
    }
    if (NULL != issued->local && bytes > 0) {
        memcpy(issued->local, inbound->data + sizeof(reply), bytes);
    }
    r2_rma_over(p2p, issued, (r2_status_t) reply.status);
}

void r2_p2p_rma_replied(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound)
{
    r2_rma_reply_came(p2p, inbound);
    r2_p2p_inbound_put(inbound);
}

/* The AM buffer of a request; `data` follows it. */
static r2_am_buf_t *r2_rma_buf(r2_p2p_t *p2p, uint32_t rank, const r2_rma_request_t *request,
                               const void *data, uint64_t bytes)
{
    r2_am_buf_t *buf = r2_am_buf_new(p2p, rank, R2_P2P_AM_REQUEST, sizeof(*request) + bytes);

    if (NULL != buf) {
        memcpy(buf->data, request, sizeof(*request));
    }
    if (NULL != buf && bytes > 0) {
        memcpy(buf->data + sizeof(*request), data, bytes);
    }
    return buf;
}

/* Engine lock. `data` follows the request. */
static r2_status_t r2_rma_send(r2_p2p_t *p2p, uint32_t rank, r2_rma_request_t *request,
                               const void *data, uint64_t bytes, const r2_rma_issued_t *wanted)
{
    r2_rma_issued_t *issued = calloc(1, sizeof(*issued));
    r2_am_buf_t *buf;
    r2_status_t status;

    request->id = p2p->next_rma++;
    buf = r2_rma_buf(p2p, rank, request, data, bytes);
    if (NULL == issued || NULL == buf) {
        r2_am_buf_free(buf);
        free(issued);
        return R2_ERR_NO_MEMORY;
    }
    *issued = *wanted;
    issued->id = request->id;
    issued->rank = rank;
    HASH_ADD(hh, p2p->issued, id, sizeof(issued->id),
             issued); /* sending may find out that the link breaks */
    status = r2_hash_has(&issued->hh) ? r2_am_buf_send(buf) : R2_ERR_NO_MEMORY;
    if (R2_OK != status) {
        if (r2_hash_has(&issued->hh)) {
            HASH_DEL(p2p->issued, issued);
        }
        r2_am_buf_free(buf);
        free(issued);
        return status;
    }
    return R2_IN_PROGRESS;
}

/** Takes the engine lock for an operation. @return whether its memory is this process's own. */
static bool r2_rma_enter(r2_p2p_t *p2p, uint32_t rank, r2_p2p_op_t *op)
{
    op->p2p = p2p;
    r2_core_enter(p2p->core);
    p2p->core->net.now_ns = r2_now_ns(p2p->core->clock);
    return p2p->core->net.rank == rank;
}

static r2_status_t r2_rma_self(r2_p2p_op_t *op)
{
    r2_p2p_finish(op, R2_OK);
    return R2_IN_PROGRESS;
}

r2_status_t r2_p2p_get(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote, uint64_t bytes,
                       r2_p2p_op_t *op)
{
    r2_rma_request_t request = {.kind = R2_P2P_KIND_READ, .address = remote, .bytes = bytes};
    r2_rma_issued_t wanted = {.op = op, .local = local, .bytes = bytes};
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (r2_rma_enter(p2p, rank, op)) {
        memmove(local, (const void *) (uintptr_t) remote, bytes);
        status = r2_rma_self(op);
    } else if (bytes > R2_P2P_SHORT_BYTES) {
        status = r2_p2p_get_long(p2p, rank, local, remote, bytes, op);
    } else {
        status = r2_rma_send(p2p, rank, &request, NULL, 0, &wanted);
    }
    r2_core_leave_started(p2p->core);
    return status;
}

r2_status_t r2_p2p_put(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                       uint64_t bytes, r2_p2p_op_t *op)
{
    bool is_short = bytes <= R2_P2P_SHORT_BYTES;
    r2_rma_request_t request = {.kind = is_short ? R2_P2P_KIND_WRITE : R2_P2P_KIND_PULL,
                                .address = remote,
                                .bytes = bytes,
                                .source = is_short ? 0 : (uint64_t) (uintptr_t) local};
    r2_rma_issued_t wanted = {.op = op};
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (r2_rma_enter(p2p, rank, op)) {
        memmove((void *) (uintptr_t) remote, local, bytes);
        status = r2_rma_self(op);
    } else {
        status = r2_rma_send(p2p, rank, &request, local, is_short ? bytes : 0, &wanted);
    }
    r2_core_leave_started(p2p->core);
    return status;
}

r2_status_t r2_p2p_put_fenced(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                              uint64_t bytes, uint64_t connection, r2_p2p_op_t *op)
{
    r2_rma_request_t request = {.kind = R2_P2P_KIND_FENCED,
                                .address = remote,
                                .bytes = bytes,
                                .source = (uint64_t) (uintptr_t) local};
    r2_rma_issued_t wanted = {.op = op};

    op->p2p = p2p;
    return r2_rma_send(p2p, rank, &request, &connection, sizeof(connection), &wanted);
}

r2_status_t r2_p2p_update(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                          const r2_p2p_update_t *update, r2_p2p_op_t *op)
{
    uint64_t mask = 4 == update->bytes ? UINT32_MAX : UINT64_MAX;
    r2_rma_request_t request = {.kind = R2_P2P_KIND_UPDATE,
                                .address = remote,
                                .bytes = update->bytes,
                                .operand = update->operand & mask,
                                .compare = update->compare & mask,
                                .verb = (uint8_t) update->verb};
    r2_rma_issued_t wanted = {.op = op, .local = local, .bytes = update->bytes};
    char old[sizeof(uint64_t)];
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if ((4 != update->bytes && 8 != update->bytes) || 0 != remote % update->bytes) {
        return R2_ERR_PARAM;
    }
    if (r2_rma_enter(p2p, rank, op)) {
        r2_rma_update(&request, NULL == local ? old : local);
        status = r2_rma_self(op);
    } else {
        status = r2_rma_send(p2p, rank, &request, NULL, 0, &wanted);
    }
    r2_core_leave_started(p2p->core);
    return status;
}

void r2_p2p_rma_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status)
{
    r2_rma_issued_t *issued, *next;

    HASH_ITER(hh, p2p->issued, issued, next)
    {
        if (issued->rank == rank) {
            r2_rma_over(p2p, issued, status);
        }
    }
}

void r2_p2p_rma_fini(r2_p2p_t *p2p)
{
    r2_rma_issued_t *issued, *next;

    HASH_ITER(hh, p2p->issued, issued, next)
    {
        HASH_DEL(p2p->issued, issued);
        free(issued);
    }
    while (NULL != p2p->pulls) {
        r2_p2p_pull_t *pull = p2p->pulls;

        DL_DELETE(p2p->pulls, pull);
        r2_am_buf_free(pull->answer);
        free(pull);
    }
}
