/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of the host's memory: who receives a message reads it from where it is (loan_host.c).
 *
 * Engine lock.
 */
#include "r2_config.h"

#include <stdatomic.h>

#include "base/util.h"
#include "exec/exec.h"
#include "exec/fuse.h"

/* What goes on by code of ours or the user's comes through the second cache. */
#define R2_LEND_PIECE_BYTES 65536u

static bool r2_lend_get(const r2_loan_t *loan, uint64_t address, void *to, uint64_t bytes)
{
    const r2_exec_t *exec = loan->op->exec;
    r2_link_t *link;

    return R2_OK ==
               r2_net_link(exec->engine->net, r2_loan_peer(exec, r2_loan_index(loan)), &link) &&
           r2_link_fetch(link, loan->place.pid, address, to, bytes);
}

/* True if the memory is what was offered, and what was read from it is what was sent. */
static bool r2_lend_stands(const r2_loan_t *loan)
{
    uint64_t word = 0;

    atomic_thread_fence(memory_order_acquire); /* what was read was so before */
    return r2_lend_get(loan, loan->place.word_address, &word, sizeof(word)) &&
           word == loan->place.word;
}

/* The next bytes to where they belong. @return R2_ERR_NO_MEMORY, R2_ERR_UNSUPPORTED: they cannot be
 * read. */
static r2_status_t r2_lend_read(r2_loan_t *loan, uint64_t bytes)
{
    r2_exec_t *exec = loan->op->exec;
    const r2_op_t *op = r2_loan_op(loan);
    const r2_convertor_t *convertor = r2_exec_convertor(exec, &op->dst);
    const uint64_t end = loan->at + bytes;
    const bool moves = NULL != convertor || r2_fuse_is(exec, r2_loan_index(loan));
    char *piece = moves ? r2_blocks_get(&exec->engine->blocks, R2_LEND_PIECE_BYTES) : NULL;
    bool read = loan->at > 0 || r2_lend_stands(loan);

    if (moves && NULL == piece) {
        return R2_ERR_NO_MEMORY;
    }
    while (read && loan->at < end) {
        char *to = moves ? piece : r2_exec_address(exec, &op->dst) + loan->at;

        bytes = moves ? r2_min(end - loan->at, (uint64_t) R2_LEND_PIECE_BYTES) : bytes;
        read = r2_lend_get(loan, loan->place.address + loan->at, to, bytes);
        if (read && NULL != convertor) {
            convertor->move(convertor->arg, op->dst.offset_bytes + loan->at, piece, bytes, true);
        } else if (read && moves) {
            r2_fuse_take(loan->op, loan->at, piece, bytes);
        }
        loan->at += read ? bytes : 0;
    }
    r2_blocks_put(&exec->engine->blocks, piece, R2_LEND_PIECE_BYTES);
    return read ? R2_OK : R2_ERR_UNSUPPORTED;
}

static bool r2_lend_may_write(const r2_loan_t *loan)
{
    const r2_net_t *net = loan->op->exec->engine->net;

    return net->app_drives || (net->may_deliver && !r2_loan_is_for_app(loan));
}

/* What is left, or so much of it that whole pieces are read, whatever was read before in this pass:
 * elements are never cut. */
static uint64_t r2_lend_part(const r2_loan_t *loan)
{
    const uint64_t left = r2_loan_op(loan)->bytes - loan->at;
    const uint64_t room = loan->op->exec->engine->loans.room_bytes;

    return left <= room ? left : room / R2_LEND_PIECE_BYTES * R2_LEND_PIECE_BYTES;
}

/*
 * The message is awaited: it is on its way, or comes when it is asked for. If it comes its owner
 * has not given up, and what was added to a sum was good: the rest is added. Else this call ends
 * with what ended its owner's.
 */
static r2_status_t r2_lend_decline(r2_loan_t *loan, r2_loan_answer_t answer)
{
    r2_exec_t *exec = loan->op->exec;
    r2_status_t status = R2_OK;

    loan->at = r2_fuse_adds(exec, r2_loan_index(loan)) ? loan->at : 0;
    loan->op->fused = false;
    if (0 != loan->place.pid) {
        loan->answer = answer;
        status = r2_loan_send(loan, R2_LOAN_ANSWER, &loan->answer, sizeof(loan->answer));
    }
    loan->state = R2_LOAN_SENT;
    loan->op->unlent = true;
    if (R2_OK == status) {
        r2_exec_loaded(exec, r2_loan_index(loan), R2_OK);
    }
    return status;
}

r2_status_t r2_loan_fetch(r2_loan_t *loan)
{
    r2_exec_t *exec = loan->op->exec;
    r2_loans_t *loans = &exec->engine->loans;
    const uint64_t bytes = r2_loan_op(loan)->bytes, at = loan->at, part = r2_lend_part(loan);
    r2_status_t status;

    if (!r2_lend_may_write(loan)) {
        return R2_IN_PROGRESS;
    }
    if (0 == loan->place.pid) {
        return r2_lend_decline(loan, R2_LOAN_NEVER);
    }
    if (0 == part) {
        loans->room_bytes = 0; /* another one is the first in the next pass */
        return R2_IN_PROGRESS;
    }
    status = r2_lend_read(loan, part);
    loans->room_bytes -= loan->at - at;
    if (R2_OK != status || (loan->at == bytes && !r2_lend_stands(loan))) {
        return r2_lend_decline(loan, R2_ERR_NO_MEMORY == status ? R2_LOAN_NOT_NOW : R2_LOAN_NEVER);
    }
    if (loan->at < bytes) {
        return R2_IN_PROGRESS;
    }
    ++exec->engine->net->counters->lent_messages;
    if (loan->op->follows) {
        r2_exec_pass_on(loan->op, bytes);
    }
    loan->answer = R2_LOAN_READ;
    loan->state = R2_LOAN_CONFIRMED;
    return r2_loan_send(loan, R2_LOAN_ANSWER, &loan->answer, sizeof(loan->answer));
}
