/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Questions about a peer's memory: short reads, writes, updates of integers; each is done by the peer's
 * application threads and answered.
 *
 *   asks                                   has the memory
 *   READ   (address, bytes)           -->
 *                                     <--  REPLY, data
 *   WRITE  (address, bytes), data     -->  copies
 *                                     <--  REPLY
 *   PULL   (address, bytes, source)   -->  gets the data as in p2p_get.c
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

/* The parcel of an answer: the reply, then its data. */
static r2_parcel_t *r2_ask_answer_new(r2_p2p_t *p2p, uint32_t rank, uint32_t id, uint64_t bytes)
{
    r2_p2p_reply_t reply = {.id = id};
    r2_parcel_t *parcel = r2_parcel_answer(p2p, rank, R2_P2P_ROW_REPLY, sizeof(reply) + bytes);

    if (NULL != parcel) {
        memcpy(parcel->data, &reply, sizeof(reply));
    }
    return parcel;
}

static void *r2_ask_answer_data(r2_parcel_t *parcel)
{
    return parcel->data + sizeof(r2_p2p_reply_t);
}

/* Without data if it is an error. Consumes the parcel. */
static void r2_ask_answer(r2_parcel_t *parcel, r2_status_t status)
{
    int32_t value = (int32_t) status;

    memcpy(parcel->data + offsetof(r2_p2p_reply_t, status), &value, sizeof(value));
    if (R2_OK != status) {
        parcel->bytes = sizeof(r2_p2p_reply_t);
    }
    r2_parcel_post(parcel);
}

static uint64_t r2_ask_new_value(const r2_p2p_ask_t *ask, uint64_t old)
{
    switch ((r2_p2p_verb_t) ask->verb) {
    case R2_P2P_ADD: return old + ask->operand;
    case R2_P2P_AND: return old & ask->operand;
    case R2_P2P_OR: return old | ask->operand;
    case R2_P2P_XOR: return old ^ ask->operand;
    case R2_P2P_SWAP: return ask->operand;
    case R2_P2P_COMPARE_SWAP: return old == ask->compare ? ask->operand : old;
    case R2_P2P_VERBS: break;
    }
    return old;
}

static uint32_t r2_ask_update32(const r2_p2p_ask_t *ask, uint32_t *at)
{
    uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, (uint32_t) r2_ask_new_value(ask, old), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return old;
}

static uint64_t r2_ask_update64(const r2_p2p_ask_t *ask, uint64_t *at)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &old, r2_ask_new_value(ask, old), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

/* Writes the old value, of ask->bytes. */
static void r2_ask_update(const r2_p2p_ask_t *ask, void *old_p)
{
    void *at = (void *) (uintptr_t) ask->address;

    if (4 == ask->bytes) {
        uint32_t old = r2_ask_update32(ask, at);

        memcpy(old_p, &old, sizeof(old));
    } else {
        uint64_t old = r2_ask_update64(ask, at);

        memcpy(old_p, &old, sizeof(old));
    }
}

static bool r2_ask_read_valid(const r2_p2p_ask_t *ask, uint64_t bytes)
{
    return 0 == bytes && ask->bytes <= R2_P2P_SHORT_BYTES;
}

static bool r2_ask_read(r2_p2p_t *p2p, uint32_t rank, const r2_p2p_ask_t *ask, const void *data)
{
    r2_parcel_t *answer =
        r2_p2p_answers_full(p2p, rank) ? NULL : r2_ask_answer_new(p2p, rank, ask->id, ask->bytes);

    (void) data;
    if (NULL == answer) {
        return false;
    }
    if (ask->bytes > 0) {
        memcpy(r2_ask_answer_data(answer), (const void *) (uintptr_t) ask->address, ask->bytes);
    }
    r2_ask_answer(answer, R2_OK);
    return true;
}

static bool r2_ask_write_valid(const r2_p2p_ask_t *ask, uint64_t bytes)
{
    return bytes == ask->bytes;
}

static bool r2_ask_write(r2_p2p_t *p2p, uint32_t rank, const r2_p2p_ask_t *ask, const void *data)
{
    r2_parcel_t *answer = r2_ask_answer_new(p2p, rank, ask->id, 0);

    if (NULL == answer) {
        return false;
    }
    if (ask->bytes > 0) {
        memcpy((void *) (uintptr_t) ask->address, data, ask->bytes);
    }
    r2_ask_answer(answer, R2_OK);
    return true;
}

static bool r2_ask_update_valid(const r2_p2p_ask_t *ask, uint64_t bytes)
{
    return 0 == bytes && (4 == ask->bytes || 8 == ask->bytes) && 0 == ask->address % ask->bytes &&
           ask->verb < R2_P2P_VERBS;
}

static bool r2_ask_update_asked(r2_p2p_t *p2p, uint32_t rank, const r2_p2p_ask_t *ask, const void *data)
{
    r2_parcel_t *answer = r2_ask_answer_new(p2p, rank, ask->id, ask->bytes);

    (void) data;
    if (NULL == answer) {
        return false;
    }
    r2_ask_update(ask, r2_ask_answer_data(answer));
    r2_ask_answer(answer, R2_OK);
    return true;
}

static bool r2_ask_pull_valid(const r2_p2p_ask_t *ask, uint64_t bytes)
{
    (void) ask;
    return 0 == bytes;
}

/* An application thread, no lock. */
static void r2_ask_pulled(r2_p2p_op_t *op, r2_status_t status)
{
    r2_p2p_pull_t *pull = op->arg;
    r2_p2p_t *p2p = op->p2p;

    r2_core_enter(p2p->core);
    DL_DELETE(p2p->pulls, pull);
    r2_ask_answer(pull->answer, status);
    r2_core_leave(p2p->core);
    free(pull);
}

static bool r2_ask_pull(r2_p2p_t *p2p, uint32_t rank, const r2_p2p_ask_t *ask, const void *data)
{
    r2_p2p_pull_t *pull = calloc(1, sizeof(*pull));
    r2_parcel_t *answer = r2_ask_answer_new(p2p, rank, ask->id, 0);
    r2_status_t status = R2_ERR_NO_MEMORY;

    (void) data;
    if (NULL != pull && NULL != answer) {
        *pull = (r2_p2p_pull_t) {.op = {.done = r2_ask_pulled, .arg = pull}, .answer = answer};
        status = r2_p2p_get_long(p2p, rank, (void *) (uintptr_t) ask->address, ask->source, ask->bytes,
                                 &pull->op);
    }
    if (R2_IN_PROGRESS == status) {
        DL_APPEND(p2p->pulls, pull);
        return true;
    }
    free(pull);
    if (R2_ERR_NO_MEMORY == status) {
        r2_parcel_free(answer);
        return false;
    }
    r2_ask_answer(answer, status);
    return true;
}

/* A question that is not what any of ours would be. */
static bool r2_ask_refuse(r2_p2p_t *p2p, uint32_t rank, uint32_t id)
{
    r2_parcel_t *answer = r2_ask_answer_new(p2p, rank, id, 0);

    if (NULL == answer) {
        return false;
    }
    ++p2p->core->counters.rx_malformed;
    r2_ask_answer(answer, R2_ERR_WIRE);
    return true;
}

/** What a kind of question needs. */
typedef struct r2_ask_kind {
    bool (*valid)(const r2_p2p_ask_t *ask, uint64_t bytes);
    /** Does it. @return false: not now, and nothing is done. */
    bool (*act)(r2_p2p_t *p2p, uint32_t rank, const r2_p2p_ask_t *ask, const void *data);
} r2_ask_kind_t;

bool r2_p2p_ask_asked(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    static const r2_ask_kind_t kinds[R2_P2P_KINDS] = {
        [R2_P2P_KIND_READ] = {r2_ask_read_valid, r2_ask_read},
        [R2_P2P_KIND_WRITE] = {r2_ask_write_valid, r2_ask_write},
        [R2_P2P_KIND_PULL] = {r2_ask_pull_valid, r2_ask_pull},
        [R2_P2P_KIND_UPDATE] = {r2_ask_update_valid, r2_ask_update_asked},
    };
    r2_p2p_ask_t ask;

    if (inbound->bytes < sizeof(ask)) {
        ++p2p->core->counters.rx_malformed;
        return true;
    }
    memcpy(&ask, inbound->data, sizeof(ask));
    if (ask.kind >= R2_P2P_KINDS || !kinds[ask.kind].valid(&ask, inbound->bytes - sizeof(ask))) {
        return r2_ask_refuse(p2p, inbound->rank, ask.id);
    }
    return kinds[ask.kind].act(p2p, inbound->rank, &ask, inbound->data + sizeof(ask));
}

static void r2_asked_over(r2_p2p_t *p2p, r2_p2p_asked_t *asked, r2_status_t status)
{
    HASH_DEL(p2p->asked, asked);
    r2_p2p_finish(asked->op, status);
    free(asked);
}

static void r2_ask_reply_came(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound)
{
    r2_p2p_reply_t reply = {0};
    r2_p2p_asked_t *asked = NULL;
    uint64_t bytes = inbound->bytes - sizeof(reply); /* wraps: then it is not what we wait for */
    uint32_t id;

    if (inbound->bytes >= sizeof(reply)) {
        memcpy(&reply, inbound->data, sizeof(reply));
        id = reply.id;
        HASH_FIND(hh, p2p->asked, &id, sizeof(id), asked);
    }
    if (NULL == asked || asked->rank != inbound->rank || reply.status > 0 ||
        bytes != (R2_OK == reply.status ? asked->bytes : 0)) {
        ++p2p->core->counters.rx_malformed;
        return;
    }
    if (NULL != asked->local && bytes > 0) {
        memcpy(asked->local, inbound->data + sizeof(reply), bytes);
    }
    r2_asked_over(p2p, asked, (r2_status_t) reply.status);
}

void r2_p2p_ask_replied(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound)
{
    r2_ask_reply_came(p2p, inbound);
    free(inbound);
}

/* The parcel of a question; `data` follows it. */
static r2_parcel_t *r2_ask_parcel(r2_p2p_t *p2p, uint32_t rank, const r2_p2p_ask_t *ask,
                                  const void *data, uint64_t bytes)
{
    r2_parcel_t *parcel = r2_parcel_new(p2p, rank, R2_P2P_ROW_ASK, sizeof(*ask) + bytes);

    if (NULL != parcel) {
        memcpy(parcel->data, ask, sizeof(*ask));
    }
    if (NULL != parcel && bytes > 0) {
        memcpy(parcel->data + sizeof(*ask), data, bytes);
    }
    return parcel;
}

/* Engine lock. `data` follows the question. */
static r2_status_t r2_ask_send(r2_p2p_t *p2p, uint32_t rank, r2_p2p_ask_t *ask, const void *data,
                               uint64_t bytes, const r2_p2p_asked_t *wanted)
{
    r2_p2p_asked_t *asked = calloc(1, sizeof(*asked));
    r2_parcel_t *parcel;
    r2_status_t status;

    ask->id = p2p->next_ask++;
    parcel = r2_ask_parcel(p2p, rank, ask, data, bytes);
    if (NULL == asked || NULL == parcel) {
        r2_parcel_free(parcel);
        free(asked);
        return R2_ERR_NO_MEMORY;
    }
    *asked = *wanted;
    asked->id = ask->id;
    asked->rank = rank;
    HASH_ADD(hh, p2p->asked, id, sizeof(asked->id), asked); /* sending may find out that the link breaks */
    status = r2_hash_has(&asked->hh) ? r2_parcel_send(parcel) : R2_ERR_NO_MEMORY;
    if (R2_OK != status) {
        if (r2_hash_has(&asked->hh)) {
            HASH_DEL(p2p->asked, asked);
        }
        r2_parcel_free(parcel);
        free(asked);
        return status;
    }
    return R2_IN_PROGRESS;
}

/** Takes the engine lock for an operation. @return whether its memory is this process's own. */
static bool r2_ask_enter(r2_p2p_t *p2p, uint32_t rank, r2_p2p_op_t *op)
{
    op->p2p = p2p;
    r2_core_enter(p2p->core);
    p2p->core->net.now_ns = r2_now_ns(p2p->core->clock);
    return p2p->core->net.rank == rank;
}

static r2_status_t r2_ask_self(r2_p2p_op_t *op)
{
    r2_p2p_finish(op, R2_OK);
    return R2_IN_PROGRESS;
}

r2_status_t r2_p2p_get(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote, uint64_t bytes,
                       r2_p2p_op_t *op)
{
    r2_p2p_ask_t ask = {.kind = R2_P2P_KIND_READ, .address = remote, .bytes = bytes};
    r2_p2p_asked_t wanted = {.op = op, .local = local, .bytes = bytes};
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (r2_ask_enter(p2p, rank, op)) {
        memmove(local, (const void *) (uintptr_t) remote, bytes);
        status = r2_ask_self(op);
    } else if (bytes > R2_P2P_SHORT_BYTES) {
        status = r2_p2p_get_long(p2p, rank, local, remote, bytes, op);
    } else {
        status = r2_ask_send(p2p, rank, &ask, NULL, 0, &wanted);
    }
    r2_core_leave_started(p2p->core);
    return status;
}

r2_status_t r2_p2p_put(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                       uint64_t bytes, r2_p2p_op_t *op)
{
    bool is_short = bytes <= R2_P2P_SHORT_BYTES;
    r2_p2p_ask_t ask = {.kind = is_short ? R2_P2P_KIND_WRITE : R2_P2P_KIND_PULL,
                        .address = remote,
                        .bytes = bytes,
                        .source = is_short ? 0 : (uint64_t) (uintptr_t) local};
    r2_p2p_asked_t wanted = {.op = op};
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (r2_ask_enter(p2p, rank, op)) {
        memmove((void *) (uintptr_t) remote, local, bytes);
        status = r2_ask_self(op);
    } else {
        status = r2_ask_send(p2p, rank, &ask, local, is_short ? bytes : 0, &wanted);
    }
    r2_core_leave_started(p2p->core);
    return status;
}

r2_status_t r2_p2p_update(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                          const r2_p2p_update_t *update, r2_p2p_op_t *op)
{
    uint64_t mask = 4 == update->bytes ? UINT32_MAX : UINT64_MAX;
    r2_p2p_ask_t ask = {.kind = R2_P2P_KIND_UPDATE,
                        .address = remote,
                        .bytes = update->bytes,
                        .operand = update->operand & mask,
                        .compare = update->compare & mask,
                        .verb = (uint8_t) update->verb};
    r2_p2p_asked_t wanted = {.op = op, .local = local, .bytes = update->bytes};
    char old[sizeof(uint64_t)];
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if ((4 != update->bytes && 8 != update->bytes) || 0 != remote % update->bytes) {
        return R2_ERR_PARAM;
    }
    if (r2_ask_enter(p2p, rank, op)) {
        r2_ask_update(&ask, NULL == local ? old : local);
        status = r2_ask_self(op);
    } else {
        status = r2_ask_send(p2p, rank, &ask, NULL, 0, &wanted);
    }
    r2_core_leave_started(p2p->core);
    return status;
}

void r2_p2p_ask_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status)
{
    r2_p2p_asked_t *asked, *next;

    HASH_ITER(hh, p2p->asked, asked, next)
    {
        if (asked->rank == rank) {
            r2_asked_over(p2p, asked, status);
        }
    }
}

void r2_p2p_ask_fini(r2_p2p_t *p2p)
{
    r2_p2p_asked_t *asked, *next;

    HASH_ITER(hh, p2p->asked, asked, next)
    {
        HASH_DEL(p2p->asked, asked);
        free(asked);
    }
    while (NULL != p2p->pulls) {
        r2_p2p_pull_t *pull = p2p->pulls;

        DL_DELETE(p2p->pulls, pull);
        r2_parcel_free(pull->answer);
        free(pull);
    }
}
