/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of the host's memory: long messages that their receiver reads from where they are
 * (process_vm_readv), one copy in place of two, and nothing to acknowledge. Which, and what is
 * said.
 *
 *     owner                                       reader
 *     offer: which process, where, a word   ->    copies, and looks before and after it whether
 *                                                 the word stands
 *                                           <-    answer: read, or it is to be sent after all
 *
 * The word stands in the owner's memory, and another one, or none, does from the moment on at which
 * its call may give the memory back: so what was read is good if it stood afterwards. If it stood
 * before, the number is the owner's here, too (containers count processes anew). No word is sent
 * back and awaited, which would be a turn more. Only messages whose sender has to reckon with
 * waiting for his receiver: of more than may travel before its receive is posted. Who receives such
 * a message awaits an offer, always: one that names no process says that the message comes by the
 * lane. So does what passes on a message of another host while that comes.
 *
 * Engine lock.
 */
#include "r2_config.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/util.h"
#include "exec/exec.h"

bool r2_loan_is_lent(const r2_exec_t *exec, uint32_t index)
{
    r2_link_t *link;

    return exec->schedule->ops[index].bytes > R2_LOAN_HOST_BYTES && exec->engine->loans.of_host &&
           !exec->ops[index].unlent &&
           R2_OK == r2_net_link(exec->engine->net, r2_loan_peer(exec, index), &link) &&
           r2_link_lends(link);
}

/* Never one that stood before, whatever lies there later, nor one of another process. */
static uint64_t r2_lend_word(r2_engine_t *engine)
{
    r2_loans_t *loans = &engine->loans;

    loans->words = 0 == loans->words ? r2_random_u64(engine->net->clock) : loans->words;
    return ++loans->words * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

r2_status_t r2_loan_lend(r2_exec_t *exec, uint32_t index, const void *data)
{
    r2_loan_t *loan = r2_loan_new(exec, index, R2_LOAN_READY);
    r2_status_t status;

    if (NULL == loan) {
        return R2_ERR_NO_MEMORY;
    }
    loan->is_host = true;
    if (!exec->ops[index].follows &&
        !r2_loan_is_refuser(&exec->engine->loans, r2_loan_peer(exec, index))) {
        atomic_store(&loan->stands, r2_lend_word(exec->engine));
        loan->place = (r2_loan_place_t){.pid = (uint64_t) getpid(),
                                        .address = (uintptr_t) data,
                                        .word_address = (uintptr_t) &loan->stands,
                                        .word = atomic_load(&loan->stands)};
        return r2_loan_offer(exec, index);
    }
    status = r2_loan_send(loan, R2_LOAN_OFFER, &loan->place, sizeof(loan->place));
    loan->state = R2_LOAN_SENT;
    exec->ops[index].unlent = true;
    return R2_OK == status ? R2_ERR_UNSUPPORTED : status;
}

r2_status_t r2_loan_await_place(r2_exec_t *exec, uint32_t index)
{
    r2_loan_t *loan = r2_loan_new(exec, index, R2_LOAN_AWAITED);

    if (NULL == loan) {
        return R2_ERR_NO_MEMORY;
    }
    loan->is_host = true;
    return r2_loan_recv(loan, R2_LOAN_OFFER, &loan->place, sizeof(loan->place));
}
