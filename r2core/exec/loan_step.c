/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans: what happens when a message about one has come, or a copy has ended.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <utlist.h>

#include "exec/exec.h"

/* ---- the owner ---- */

/* Without memory for it the peer is asked again. */
static void r2_loan_note_refusal(r2_engine_t *engine, uint32_t rank)
{
    r2_loans_t *loans = &engine->loans;

    if (NULL == loans->refusals) {
        loans->refusals = calloc(engine->net->size, sizeof(*loans->refusals));
    }
    if (NULL != loans->refusals && loans->refusals[rank] < R2_LOAN_REFUSALS) {
        ++loans->refusals[rank];
    }
}

/* It is sent as any other, when it is loaded. */
static void r2_loan_fall_back(r2_loan_t *loan)
{
    r2_exec_t *exec = loan->op->exec;
    const uint32_t index = r2_loan_index(loan);

    if (R2_LOAN_NEVER == loan->answer) {
        r2_loan_note_refusal(exec->engine, r2_loan_peer(exec, index));
    }
    loan->state = R2_LOAN_SENT;
    if (loan->is_host) {
        r2_loan_take_back(loan);
        loan->op->unlent = true;
        r2_exec_loaded(exec, index, R2_OK);
    } else {
        r2_stage_wait(exec, index);
    }
}

/* It was read, and the word is where its reader looked. */
static void r2_loan_was_read(r2_loan_t *loan)
{
    r2_loan_take_back(loan);
    --loan->op->exec->sends_left;
    loan->state = R2_LOAN_GIVEN;
}

static r2_status_t r2_loan_give_word(r2_loan_t *loan)
{
    --loan->op->exec->sends_left;
    loan->state = R2_LOAN_GIVEN;
    return r2_loan_send(loan, R2_LOAN_WORD, &loan->word, sizeof(loan->word));
}

/* ---- who reads ---- */

/* The user's memory itself, if no other op writes there: then it has what is final. */
static bool r2_loan_is_final(const r2_exec_t *exec, uint32_t index)
{
    const r2_op_t *op = &exec->schedule->ops[index];
    const r2_staged_side_t *side = r2_exec_staged(exec, op->dst.buf);
    const r2_touch_span_t *span;

    if (NULL == side || R2_BUF_OUT != op->dst.buf || NULL != exec->args.convertors[1].move) {
        return false;
    }
    span = &exec->stage->touch->dst[index];
    for (uint32_t s = span->first; s < span->end; ++s) {
        if (1 != side->touch->writers[s]) {
            return false;
        }
    }
    return true;
}

/* @return where the driver copies to; NULL: it cannot. */
static char *r2_loan_target(r2_loan_t *loan, const r2_staging_place_t **place_p)
{
    const r2_exec_t *exec = loan->op->exec;
    const r2_op_t *op = r2_loan_op(loan);
    const r2_staged_t *stage = exec->stage;
    const r2_staged_side_t *side = r2_exec_staged(exec, op->dst.buf);
    bool is_pinned;

    if (NULL == stage) {
        return NULL;
    }
    if (NULL != side) {
        is_pinned = !side->staged->is_heap;
        *place_p = side->place;
    } else {
        is_pinned = R2_BUF_SCRATCH == op->dst.buf
                        ? NULL != stage->scratch && !stage->scratch->is_heap
                        : R2_MEM_PINNED == exec->args.at[R2_BUF_IN == op->dst.buf ? 0 : 1].kind;
        *place_p = stage->sides[NULL != stage->sides[0].place ? 0 : 1].place;
    }
    loan->is_direct = r2_loan_is_final(exec, r2_loan_index(loan));
    if (loan->is_direct) {
        return (char *) exec->args.out + op->dst.offset_bytes;
    }
    return is_pinned && NULL == r2_exec_convertor(exec, &op->dst) && NULL != *place_p
               ? r2_exec_address(exec, &op->dst)
               : NULL;
}

static r2_status_t r2_loan_decline(r2_loan_t *loan, r2_loan_answer_t answer)
{
    loan->state = R2_LOAN_SENT;
    loan->answer = answer;
    return r2_loan_send(loan, R2_LOAN_ANSWER, &loan->answer, sizeof(loan->answer));
}

/* @return R2_IN_PROGRESS: there is no room for a copy now. */
static r2_status_t r2_loan_copy(r2_loan_t *loan)
{
    r2_exec_t *exec = loan->op->exec;
    const r2_staging_place_t *place = NULL;
    char *to = r2_loan_target(loan, &place);
    const void *from;
    r2_status_t status;

    if (NULL == to) {
        return r2_loan_decline(loan, R2_LOAN_NOT_NOW);
    }
    if (exec->engine->loans.forgets != exec->engine->staging.pins.forgets) {
        exec->engine->loans.forgets = exec->engine->staging.pins.forgets;
        r2_mem_shares_forget(&exec->engine->loans.shares);
    }
    loan->queue = (r2_mem_queue_t *) (uintptr_t) &place->stores;
    status = r2_mem_queue_room(loan->queue);
    if (R2_OK != status) {
        return status;
    }
    status = r2_mem_open(&exec->engine->loans.shares, r2_loan_peer(exec, r2_loan_index(loan)),
                         &loan->queue->at, &loan->share, &loan->opened, &from);
    if (R2_OK != status) {
        return r2_loan_decline(loan, R2_ERR_AGAIN == status ? R2_LOAN_NOT_NOW : R2_LOAN_NEVER);
    }
    status = r2_mem_queue_copy(loan->queue, to, from, r2_loan_op(loan)->bytes);
    if (R2_OK != status) { /* its owner may be about to fail, and have freed it */
        r2_mem_close(loan->opened);
        loan->opened = NULL;
        return r2_loan_decline(loan, R2_LOAN_NEVER);
    }
    loan->state = R2_LOAN_COPYING;
    return r2_mem_queue_mark(loan->queue, &loan->ticket);
}

static r2_status_t r2_loan_end_copy(r2_loan_t *loan)
{
    r2_status_t status = r2_mem_queue_test(loan->queue, loan->ticket);

    if (R2_OK != status) {
        return status;
    }
    r2_mem_close(loan->opened);
    loan->opened = NULL;
    loan->state = R2_LOAN_COPIED;
    loan->answer = R2_LOAN_READ;
    status = r2_loan_recv(loan, R2_LOAN_WORD, &loan->word, sizeof(loan->word));
    if (R2_OK == status) {
        status = r2_loan_send(loan, R2_LOAN_ANSWER, &loan->answer, sizeof(loan->answer));
    }
    return status;
}

/* The receive of the message is not needed; the user's memory has what the copy lacks. */
static void r2_loan_end_read(r2_loan_t *loan)
{
    r2_exec_t *exec = loan->op->exec;
    const uint32_t index = r2_loan_index(loan);

    if (!loan->is_host) {
        r2_loan_unpost(loan, 0);
    }
    if (loan->is_direct) {
        r2_stage_lacks(exec, index);
    }
    r2_exec_ended(exec, index, R2_OK);
}

/* ---- steps ---- */

/* A message has come as such. */
static unsigned r2_loan_settle(r2_loan_t *loan)
{
    if (R2_LOAN_OFFER == loan->posted) {
        r2_loan_unpost(loan, R2_LOAN_OFFER);
        loan->posted = 0;
    }
    loan->state = R2_LOAN_SENT;
    if (loan->op->done || loan->sending > 0) {
        return 0;
    }
    loan->op->exec->sending -= R2_OP_SEND == r2_loan_op(loan)->kind ? 1 : 0;
    r2_exec_ended(loan->op->exec, r2_loan_index(loan), R2_OK);
    return 1;
}

/* @return R2_IN_PROGRESS: it is looked at again soon. */
static r2_status_t r2_loan_step(r2_loan_t *loan, unsigned *ended_p)
{
    switch (loan->state) {
    case R2_LOAN_ANSWERED:
        if (R2_LOAN_READ == loan->answer && loan->is_host) {
            r2_loan_was_read(loan);
            return R2_IN_PROGRESS;
        }
        if (R2_LOAN_READ == loan->answer) {
            r2_status_t status = r2_loan_give_word(loan);

            return R2_OK == status ? R2_IN_PROGRESS : status;
        }
        ++*ended_p;
        r2_loan_fall_back(loan);
        return R2_OK;
    case R2_LOAN_GIVEN:
        if (0 == loan->sending && !loan->op->done) {
            ++*ended_p;
            r2_exec_ended(loan->op->exec, r2_loan_index(loan), R2_OK);
        }
        return R2_OK;
    case R2_LOAN_HEARD: {
        r2_status_t status = loan->is_host ? r2_loan_fetch(loan) : r2_loan_copy(loan);

        return R2_OK == status && R2_LOAN_SENT != loan->state ? R2_IN_PROGRESS : status;
    }
    case R2_LOAN_COPYING:
        return r2_loan_end_copy(loan);
    case R2_LOAN_CONFIRMED:
        if (0 == loan->sending && !loan->op->done) {
            ++*ended_p;
            r2_loan_end_read(loan);
        }
        return R2_OK;
    case R2_LOAN_READY:
    case R2_LOAN_OFFERED:
    case R2_LOAN_AWAITED:
    case R2_LOAN_COPIED:
    case R2_LOAN_SENT:
        break;
    }
    return R2_OK;
}

/* Not always the same loan is the first to read, where there is room for one. */
static void r2_loans_turn(r2_loans_t *loans)
{
    r2_loan_t *loan = loans->busy;

    if (0 == loans->room_bytes) {
        DL_DELETE2(loans->busy, loan, busy_prev, busy_next);
        DL_APPEND2(loans->busy, loan, busy_prev, busy_next);
    }
    loans->room_bytes = R2_LOAN_PASS_BYTES;
}

/* @return ops that have ended; one more where something was read: there may be more. */
unsigned r2_loans_run(r2_engine_t *engine)
{
    unsigned ended = 0, count = 0;
    r2_loan_t *loan;

    r2_loans_turn(&engine->loans);
    DL_COUNT2(engine->loans.busy, loan, count, busy_next);
    while (count-- > 0 && NULL != (loan = engine->loans.busy)) {
        r2_exec_t *exec = loan->op->exec;
        r2_status_t status = R2_OK;

        r2_loan_unnote(loan);
        if (R2_OK != loan->failed) {
            status = loan->failed;
        } else if (loan->is_whole) {
            ended += r2_loan_settle(loan);
        } else {
            status = r2_loan_step(loan, &ended);
        }
        if (status < 0) {
            r2_exec_ended(exec, r2_loan_index(loan), status);
        } else if (R2_IN_PROGRESS == status && !exec->over) {
            r2_loan_note(loan);
        }
    }
    return ended + (engine->loans.room_bytes < R2_LOAN_PASS_BYTES ? 1 : 0);
}
