/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans: memory of a GPU that its peer on the host reads itself. Whether, and messages.
 */
#include "r2_config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "exec/exec.h"
#include "exec/fuse.h"

void r2_loans_init(r2_loans_t *loans, r2_mem_t *mem, uint64_t least_bytes)
{
    memset(loans, 0, sizeof(*loans));
    r2_mem_shares_init(&loans->shares, mem);
    loans->least_bytes = r2_max(least_bytes, (uint64_t) R2_LOAN_LEAST_BYTES);
}

void r2_loans_fini(r2_loans_t *loans)
{
    r2_mem_shares_fini(&loans->shares);
    free(loans->refusals);
    loans->refusals = NULL;
}

uint32_t r2_loan_index(const r2_loan_t *loan)
{
    return (uint32_t) (loan->op - loan->op->exec->ops);
}

const r2_op_t *r2_loan_op(const r2_loan_t *loan)
{
    return &loan->op->exec->schedule->ops[r2_loan_index(loan)];
}

uint32_t r2_loan_peer(const r2_exec_t *exec, uint32_t op)
{
    return exec->args.ranks[exec->schedule->ops[op].peer];
}

bool r2_loan_is_refuser(const r2_loans_t *loans, uint32_t rank)
{
    return NULL != loans->refusals && loans->refusals[rank] >= R2_LOAN_REFUSALS;
}

/* ---- whether ---- */

r2_loan_t *r2_loan_new(r2_exec_t *exec, uint32_t op, r2_loan_state_t state)
{
    r2_loan_t *loan = r2_blocks_get(&exec->engine->blocks, sizeof(*loan));

    if (NULL != loan) {
        memset(loan, 0, sizeof(*loan));
        loan->op = &exec->ops[op];
        loan->state = state;
        exec->ops[op].loan = loan;
        LL_PREPEND(exec->loans, loan);
    }
    return loan;
}

static bool r2_loan_is_beside(const r2_exec_t *exec, uint32_t op)
{
    r2_link_t *link;

    return R2_OK == r2_net_link(exec->engine->net, r2_loan_peer(exec, op), &link) &&
           r2_link_is_beside(link);
}

/* What is sent is what the user's memory has: no op has written there. */
static bool r2_loan_has_source(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const r2_staged_side_t *side = r2_exec_staged(exec, op->src.buf);
    const r2_touch_span_t *span;

    if (NULL == side) {
        return false;
    }
    span = &exec->stage->touch->src[index];
    for (uint32_t s = span->first; s < span->end; ++s) {
        if (0 == side->loaded[s]) {
            return false;
        }
    }
    return true;
}

static bool r2_loan_can(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const r2_loans_t *loans = &exec->engine->loans;

    return loans->enabled && NULL != exec->stage && R2_OP_SEND == op->kind &&
           op->bytes >= loans->least_bytes &&
           !r2_loan_is_refuser(loans, r2_loan_peer(exec, index)) &&
           r2_loan_has_source(exec, index) &&
           NULL == exec->args.convertors[R2_BUF_IN == op->src.buf ? 0 : 1].move &&
           r2_loan_is_beside(exec, index);
}

bool r2_loan_prepare(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_exec_op_t *handle = &exec->ops[index];
    const uint32_t which = R2_BUF_IN == op->src.buf ? 0 : 1;
    const char *memory = 0 == which ? exec->args.in : exec->args.out;
    r2_mem_share_t share;
    r2_loan_t *loan;

    if (NULL != handle->loan && R2_LOAN_READY == handle->loan->state &&
        !r2_loan_has_source(exec, index)) { /* another op has written there since */
        handle->loan->state = R2_LOAN_SENT;
    }
    if (NULL != handle->loan || handle->unlent) {
        return R2_OP_SEND == op->kind && r2_loan_is_on(handle);
    }
    handle->unlent = !r2_loan_can(exec, index) ||
                     R2_OK != r2_mem_share(&exec->engine->loans.shares, &exec->args.at[which],
                                           memory + op->src.offset_bytes, op->bytes, &share);
    loan = handle->unlent ? NULL : r2_loan_new(exec, index, R2_LOAN_READY);
    if (NULL != loan) {
        loan->share = share;
    }
    return NULL != loan;
}

bool r2_loan_is_on(const r2_exec_op_t *handle)
{
    return NULL != handle->loan && R2_LOAN_SENT != handle->loan->state;
}

bool r2_loan_is_said(const r2_exec_op_t *handle)
{
    return NULL != handle->loan && handle->loan->sending > 0;
}

bool r2_loan_is_talking(const r2_exec_op_t *handle)
{
    if (!r2_loan_is_said(handle)) {
        return false;
    }
    handle->loan->is_whole = true;
    r2_loan_note(handle->loan);
    return true;
}

/* ---- messages ---- */

bool r2_loan_is_for_app(const r2_loan_t *loan)
{
    const r2_op_t *op = r2_loan_op(loan);

    return loan->is_host && R2_OP_RECV == op->kind &&
           NULL != r2_exec_convertor(loan->op->exec, &op->dst);
}

/* What only an application may go on with wakes no other thread. */
static int r2_loan_wakes(const r2_loan_t *loan)
{
    return r2_loan_is_for_app(loan) ? 0 : 1;
}

void r2_loan_note(r2_loan_t *loan)
{
    r2_engine_t *engine = loan->op->exec->engine;

    if (!loan->in_busy) {
        loan->in_busy = true;
        r2_staging_count(&engine->staging, r2_loan_wakes(loan));
        DL_APPEND2(engine->loans.busy, loan, busy_prev, busy_next);
    }
}

void r2_loan_unnote(r2_loan_t *loan)
{
    r2_engine_t *engine = loan->op->exec->engine;

    if (loan->in_busy) {
        loan->in_busy = false;
        r2_staging_count(&engine->staging, -r2_loan_wakes(loan));
        DL_DELETE2(engine->loans.busy, loan, busy_prev, busy_next);
    }
}

static void r2_loan_message_sent(void *arg, r2_status_t status)
{
    r2_loan_t *loan = arg;

    --loan->sending;
    loan->failed = R2_OK == loan->failed ? status : loan->failed;
    if (!loan->op->exec->over) {
        r2_loan_note(loan);
    }
}

/* The link to the other end, and what a message about a loan is called there. */
static r2_status_t r2_loan_way(const r2_loan_t *loan, uint32_t bits, r2_tag_t *tag_p,
                               r2_link_t **link_p)
{
    const r2_exec_t *exec = loan->op->exec;

    *tag_p = r2_exec_tag(exec, r2_loan_op(loan));
    tag_p->id |= bits;
    return r2_net_link(exec->engine->net, r2_loan_peer(exec, r2_loan_index(loan)), link_p);
}

r2_status_t r2_loan_send(r2_loan_t *loan, uint32_t bits, const void *data, size_t bytes)
{
    const r2_exec_t *exec = loan->op->exec;
    const r2_op_t *op = r2_loan_op(loan);
    r2_tx_message_t *unused;
    r2_link_send_t args = {
        .data = data,
        .bytes = bytes,
        .chunk_bytes = (uint32_t) exec->schedule->chunk_bytes,
        .digest = r2_exec_digest(exec, op),
        .order = op->order,
        .map_pending = R2_LOAN_OFFER == bits && exec->carrying && exec->map_pending,
        .brief = true,
        .message_p = &unused,
        .done = r2_loan_message_sent,
        .arg = loan,
    };
    r2_link_t *link;
    r2_status_t status = r2_loan_way(loan, bits, &args.tag, &link);

    status = R2_OK == status ? r2_link_send(link, &args) : status;
    loan->sending += R2_IN_PROGRESS == status ? 1 : 0;
    return status < 0 ? status : R2_OK;
}

static void r2_loan_arrived(r2_loan_t *loan)
{
    loan->state = R2_LOAN_OFFER == loan->posted    ? R2_LOAN_HEARD
                  : R2_LOAN_ANSWER == loan->posted ? R2_LOAN_ANSWERED
                                                   : R2_LOAN_CONFIRMED;
    loan->posted = 0;
    r2_loan_note(loan);
}

/* An offer of a GPU's memory that will not come is no failure: the message does, or its receive
 * fails. */
static void r2_loan_received(void *arg, r2_status_t status)
{
    r2_loan_t *loan = arg;
    r2_exec_t *exec = loan->op->exec;

    if (exec->over || loan->op->done) {
        loan->posted = 0;
    } else if (R2_OK == status) {
        r2_loan_arrived(loan);
    } else if (R2_LOAN_OFFER == loan->posted && !loan->is_host) {
        loan->posted = 0;
        loan->state = R2_LOAN_SENT;
    } else {
        loan->failed = status;
        r2_loan_note(loan);
    }
}

r2_status_t r2_loan_recv(r2_loan_t *loan, uint32_t bits, void *data, size_t bytes)
{
    r2_exec_t *exec = loan->op->exec;
    const r2_op_t *op = r2_loan_op(loan);
    r2_link_recv_t args = {
        .data = data,
        .bytes = bytes,
        .digest = r2_exec_digest(exec, op),
        .map_pending = R2_LOAN_OFFER == bits && exec->carrying ? &exec->map_pending : NULL,
        .done = r2_loan_received,
        .arg = loan,
    };
    r2_link_t *link;
    r2_status_t status = r2_loan_way(loan, bits, &args.tag, &link);

    loan->posted = bits;
    status = R2_OK == status ? r2_link_recv(link, &args) : status;
    if (R2_OK == status) {
        r2_loan_arrived(loan);
    } else if (status < 0) {
        loan->posted = 0;
    }
    return status < 0 ? status : R2_OK;
}

void r2_loan_unpost(const r2_loan_t *loan, uint32_t bits)
{
    r2_link_t *link;
    r2_tag_t tag;

    if (R2_OK == r2_loan_way(loan, bits, &tag, &link)) {
        r2_link_unpost(link, &tag);
    }
}

/* ---- the owner ---- */

r2_status_t r2_loan_offer(r2_exec_t *exec, uint32_t index)
{
    r2_loan_t *loan = exec->ops[index].loan;
    r2_status_t status;

    loan->state = R2_LOAN_OFFERED;
    status = r2_loan_recv(loan, R2_LOAN_ANSWER, &loan->answer, sizeof(loan->answer));
    if (R2_OK == status) {
        status = loan->is_host
                     ? r2_loan_send(loan, R2_LOAN_OFFER, &loan->place, sizeof(loan->place))
                     : r2_loan_send(loan, R2_LOAN_OFFER, &loan->share, sizeof(loan->share));
    }
    return R2_OK == status ? R2_IN_PROGRESS : status;
}

/* ---- who reads ---- */

r2_status_t r2_loan_await(r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    r2_loan_t *loan;

    if (!exec->engine->loans.enabled || op->bytes < R2_LOAN_LEAST_BYTES ||
        !r2_loan_is_beside(exec, index)) {
        return R2_OK;
    }
    loan = r2_loan_new(exec, index, R2_LOAN_AWAITED);
    if (NULL == loan) {
        return R2_ERR_NO_MEMORY;
    }
    if (R2_OK != r2_loan_recv(loan, R2_LOAN_OFFER, &loan->share, sizeof(loan->share))) {
        loan->state = R2_LOAN_SENT; /* no offer will come: the message may be here */
    }
    return R2_OK;
}

bool r2_loan_sent(r2_loan_t *loan, r2_status_t status)
{
    if (R2_LOAN_CONFIRMED == loan->state) { /* it will not come, and need not */
        return false;
    }
    if (R2_OK != status && R2_LOAN_COPIED == loan->state) {
        return false; /* its owner is done with it: the word is here, or its receive fails, too */
    }
    if (R2_OK != status) {
        return true;
    }
    loan->is_whole = true;
    r2_loan_note(loan); /* its offer is not awaited any more */
    return 0 == loan->sending;
}

uint64_t r2_loan_added(const r2_exec_op_t *handle)
{
    return NULL != handle->loan && R2_LOAN_SENT == handle->loan->state ? handle->loan->at : 0;
}

void r2_loan_take_back(r2_loan_t *loan)
{
    atomic_store(&loan->stands, 0);
    atomic_thread_fence(memory_order_seq_cst); /* before anything is written there */
}

void r2_loans_leave(r2_exec_t *exec)
{
    r2_loan_t *loan;

    LL_FOREACH(exec->loans, loan) {
        r2_loan_take_back(loan);
        r2_loan_unnote(loan);
    }
}

void r2_loans_free(r2_exec_t *exec)
{
    while (NULL != exec->loans) {
        r2_loan_t *loan = exec->loans;

        LL_DELETE(exec->loans, loan);
        r2_loan_take_back(loan);
        r2_loan_unnote(loan);
        if (0 != loan->posted) {
            r2_loan_unpost(loan, loan->posted);
        }
        if (NULL != loan->opened) {
            r2_mem_close(loan->opened);
        }
        loan->op->loan = NULL;
        r2_blocks_put(&exec->engine->blocks, loan, sizeof(*loan));
    }
}
