/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs: dependency counting, and what starts when.
 */
#include "r2_config.h"

#include "exec/exec.h"

#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "exec/fuse.h"

/* What a run keeps of its ops, in one block: handles, and the two queues. */
static size_t r2_exec_state_bytes(uint32_t ops, bool moves)
{
    return ops * (sizeof(r2_exec_op_t) + (moves ? 2 : 1) * sizeof(uint32_t));
}

static void r2_exec_init_ops(r2_exec_t *exec)
{
    const r2_schedule_t *schedule = exec->schedule;

    exec->queue = (uint32_t *) (exec->ops + schedule->op_count);
    exec->held = exec->queue + schedule->op_count;
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        exec->ops[i] = (r2_exec_op_t){.exec = exec, .waiting = schedule->ops[i].dep_count};
    }
}

r2_status_t r2_exec_init(r2_exec_t *exec, r2_engine_t *engine, const r2_exec_args_t *args,
                         r2_program_t *program)
{
    const bool moves = NULL != args->convertors[0].move || NULL != args->convertors[1].move;
    const r2_schedule_t *schedule = &program->schedule;
    r2_status_t status;

    memset(exec, 0, sizeof(*exec));
    exec->engine = engine;
    exec->args = *args;
    exec->program = program;
    exec->schedule = schedule;
    exec->status = R2_IN_PROGRESS;
    exec->ops_left = schedule->op_count;
    exec->sends_left = program->sends;
    exec->patient = !program->awaits_sends && program->sent_bytes <= args->keep_bytes;
    exec->app_only = moves || (NULL != args->reduce && !args->any_thread);
    exec->state_bytes = r2_exec_state_bytes(schedule->op_count, moves);
    exec->ops = r2_blocks_get(&engine->blocks, exec->state_bytes);
    if (NULL == exec->ops) {
        r2_exec_fini(exec);
        return R2_ERR_NO_MEMORY;
    }
    r2_exec_init_ops(exec);
    status = r2_stage_init(exec, r2_stage_reducer(exec));
    if (R2_OK == status && NULL == exec->scratch && schedule->scratch_bytes > 0) {
        exec->scratch = r2_blocks_get(&engine->blocks, schedule->scratch_bytes);
        status = NULL == exec->scratch ? R2_ERR_NO_MEMORY : R2_OK;
    }
    exec->fuses = r2_fuse_may(exec);
    if (R2_OK != status) {
        r2_exec_fini(exec);
    }
    return status;
}

void r2_exec_fini(r2_exec_t *exec)
{
    if (NULL == exec->program) {
        return;
    }
    for (uint32_t i = 0; exec->packed_bytes > 0 && i < exec->schedule->op_count; ++i) {
        r2_blocks_put(&exec->engine->blocks, exec->ops[i].packed, exec->schedule->ops[i].bytes);
    }
    r2_stage_end(exec);
    r2_loans_free(exec);
    r2_landings_free(exec);
    r2_stage_fini(exec);
    r2_blocks_put(&exec->engine->blocks, exec->ops, exec->state_bytes);
    r2_blocks_put(&exec->engine->blocks, exec->scratch, exec->schedule->scratch_bytes);
    r2_program_put(exec->program);
    exec->program = NULL;
    exec->schedule = NULL;
}

void r2_exec_leave(r2_exec_t *exec)
{
    r2_stage_leave(exec);
    r2_loans_leave(exec);
    if (exec->in_ready) {
        exec->in_ready = false;
        DL_DELETE(exec->engine->ready, exec);
    }
    if (exec->in_ending) {
        exec->in_ending = false;
        DL_DELETE(exec->engine->ending, exec);
    }
    if (exec->in_finished) {
        exec->in_finished = false;
        DL_DELETE(exec->engine->finished, exec);
    }
}

static void r2_exec_ready(r2_exec_t *exec)
{
    if (!exec->in_ready && !exec->in_ending && !exec->over) {
        exec->in_ready = true;
        DL_APPEND(exec->engine->ready, exec);
    }
}

/* Notes a run of which only acknowledgements are missing: no op of it is to be started any more. */
static void r2_exec_note_end(r2_exec_t *exec)
{
    if (exec->ops_left == exec->sending && !exec->in_ending && !exec->in_ready && !exec->over) {
        exec->in_ending = true;
        DL_APPEND(exec->engine->ending, exec);
    }
}

static void r2_exec_finish(r2_exec_t *exec, r2_status_t status)
{
    if (exec->over) {
        return;
    }
    if (R2_OK != status) {
        r2_stage_drain(exec);
    }
    r2_exec_leave(exec);
    exec->status = status;
    exec->over = exec->in_finished = true;
    DL_APPEND(exec->engine->finished, exec);
}

void r2_exec_abort(r2_exec_t *exec, r2_status_t status)
{
    if (NULL != exec->program) {
        r2_exec_finish(exec, status);
    }
}

void r2_exec_start(r2_exec_t *exec)
{
    if (0 == exec->ops_left) {
        r2_exec_finish(exec, R2_OK);
        return;
    }
    exec->queue_tail = exec->program->start_count;
    memcpy(exec->queue, exec->program->starts, exec->queue_tail * sizeof(*exec->queue));
    r2_exec_ready(exec);
    if (NULL != exec->stage && exec->stage->load_count > 0) {
        r2_stage_await(exec);
    }
}

static void r2_exec_op_complete(r2_exec_t *exec, uint32_t op)
{
    const r2_program_t *program = exec->program;

    r2_assert(!exec->ops[op].done);
    exec->ops[op].done = true;
    if (NULL != exec->ops[op].packed) {
        r2_blocks_put(&exec->engine->blocks, exec->ops[op].packed, exec->schedule->ops[op].bytes);
        exec->ops[op].packed = NULL;
        exec->packed_bytes -= exec->schedule->ops[op].bytes;
        r2_exec_ready(exec); /* an op that waits for room may go on */
    }
    if (exec->ops[op].follows && R2_OP_RECV == exec->schedule->ops[op].kind) {
        r2_exec_pass_on(&exec->ops[op], exec->schedule->ops[op].bytes);
    }
    for (uint32_t d = program->first_dependent[op]; d < program->first_dependent[op + 1]; ++d) {
        uint32_t dependent = program->dependents[d];

        if (0 == --exec->ops[dependent].waiting && !exec->ops[dependent].follows) {
            exec->queue[exec->queue_tail++] = dependent;
            r2_exec_ready(exec);
        }
    }
    --exec->ops_left;
    if (NULL != exec->stage) {
        r2_stage_note(exec, op);
    } else if (0 == exec->ops_left) {
        r2_exec_finish(exec, R2_OK);
    }
    r2_exec_note_end(exec);
}

/* A link finished an op: in the middle of progress, so only take note. */
static void r2_exec_op_done(void *arg, r2_status_t status)
{
    r2_exec_op_t *handle = arg;
    r2_exec_t *exec = handle->exec;

    handle->message = NULL; /* the link's again */
    if (exec->over || (NULL != handle->loan && !r2_loan_sent(handle->loan, status))) {
        return;
    }
    if (R2_OK != status) {
        r2_exec_finish(exec, status);
        return;
    }
    if (NULL != handle->landing && !r2_landing_is_copy(handle)) {
        return; /* it ends when the GPU has it */
    }
    if (handle->fetching) { /* the copy is being written: the op ends with that */
        handle->is_whole = true;
        return;
    }
    exec->sending -= R2_OP_SEND == exec->schedule->ops[handle - exec->ops].kind ? 1 : 0;
    r2_exec_op_complete(exec, (uint32_t) (handle - exec->ops));
}

/* @return false: the op cannot start yet: no room to pack what it sends. */
static bool r2_exec_begin_op(r2_exec_t *exec, uint32_t index)
{
    r2_status_t status;

    if (NULL != exec->stage) {
        r2_stage_begin(exec, index);
    }
    status = r2_exec_perform(exec, index, r2_exec_op_done);
    if (R2_OK == status && r2_loan_is_talking(&exec->ops[index])) {
        exec->sending += R2_OP_SEND == exec->schedule->ops[index].kind ? 1 : 0;
        return true; /* it ends with what is said about it */
    }
    exec->sending += R2_OP_SEND == exec->schedule->ops[index].kind && R2_IN_PROGRESS == status &&
                             !r2_loan_is_on(&exec->ops[index])
                         ? 1
                         : 0;
    if (R2_OK == status) {
        r2_exec_op_complete(exec, index);
    } else if (R2_ERR_AGAIN == status) {
        return false;
    } else if (status < 0) {
        r2_exec_finish(exec, status);
    }
    return true;
}

/* @return as r2_exec_begin_op(): an op that waits for what it reads has started. */
static bool r2_exec_start_op(r2_exec_t *exec, uint32_t index)
{
    r2_status_t status = NULL == exec->stage ? R2_OK : r2_stage_load(exec, index);

    if (R2_OK == status) {
        return r2_exec_begin_op(exec, index);
    }
    if (R2_IN_PROGRESS == status) {
        r2_stage_wait(exec, index);
    } else {
        r2_exec_finish(exec, status);
    }
    return true;
}

void r2_exec_ended(r2_exec_t *exec, uint32_t op, r2_status_t status)
{
    if (exec->over) {
        return;
    }
    if (R2_OK != status) {
        r2_exec_finish(exec, status);
    } else {
        r2_exec_op_complete(exec, op);
    }
}

/* What an op sends, and NICs were to read, is loaded. */
static void r2_exec_fetched(r2_exec_t *exec, uint32_t op)
{
    r2_exec_op_t *handle = &exec->ops[op];

    handle->fetching = false;
    if (handle->is_whole) { /* it was not lost after all */
        --exec->sending;
        r2_exec_op_complete(exec, op);
    } else {
        r2_link_fetched(handle->message, r2_exec_address(exec, &exec->schedule->ops[op].src));
    }
}

/* The first pieces of what an op reads are loaded. */
static void r2_exec_load_on(r2_exec_t *exec, uint32_t op)
{
    if (!exec->ops[op].filling && r2_stream_may_begin(exec, op)) {
        exec->ops[op].filling = true;
        (void) r2_exec_begin_op(exec, op); /* nothing is packed */
    }
    r2_stream_fill(exec, op);
}

void r2_exec_loaded(r2_exec_t *exec, uint32_t op, r2_status_t status)
{
    if (status < 0) {
        r2_exec_finish(exec, status);
    } else if (R2_IN_PROGRESS == status) {
        r2_exec_load_on(exec, op);
    } else if (exec->ops[op].fetching) {
        r2_exec_fetched(exec, op);
    } else if (exec->ops[op].filling) {
        r2_stream_fill(exec, op);
        exec->ops[op].filling = false;
    } else if (!r2_exec_begin_op(exec, op)) {
        exec->held[exec->held_tail++] = op;
    }
}

void r2_exec_stored(r2_exec_t *exec, r2_status_t status)
{
    if (status < 0) {
        r2_exec_finish(exec, status);
    } else if (R2_OK == status && 0 == exec->ops_left) {
        r2_exec_finish(exec, R2_OK);
    }
}

/* Ops that wait for room: in their order, and the lowest one in any case. */
static unsigned r2_exec_run_held(r2_exec_t *exec)
{
    unsigned started = 0;

    for (uint32_t i = exec->held_head; i < exec->held_tail && !exec->over; ++i) {
        const uint32_t index = exec->held[i];

        if (R2_OP_NONE == index || ((i == exec->held_head || index == r2_exec_lowest(exec)) &&
                                    r2_exec_start_op(exec, index))) {
            started += R2_OP_NONE == index ? 0 : 1;
            exec->held[i] = R2_OP_NONE;
            exec->held_head += i == exec->held_head ? 1 : 0;
        }
    }
    return started;
}

/* Only sends wait for room; receives behind them start, or ranks would wait for each other. */
unsigned r2_exec_run(r2_exec_t *exec)
{
    unsigned started = r2_exec_run_held(exec);

    while (exec->queue_head < exec->queue_tail && !exec->over) {
        uint32_t index = exec->queue[exec->queue_head++];

        if (r2_exec_start_op(exec, index)) {
            ++started;
        } else {
            exec->held[exec->held_tail++] = index;
        }
    }
    if (NULL != exec->stage && !exec->over) {
        const r2_status_t status = r2_stage_launch(exec);

        if (status < 0) {
            r2_exec_finish(exec, status);
        }
    }
    r2_exec_note_end(exec);
    return started;
}

/* True if all that is left was handed to the transport, and is little enough to be copied. */
static bool r2_exec_may_keep(r2_exec_t *exec)
{
    uint64_t bytes = 0;

    for (uint32_t i = r2_exec_lowest(exec); i < exec->schedule->op_count; ++i) {
        if (!exec->ops[i].done) {
            bytes += exec->schedule->ops[i].bytes;
            if (bytes > exec->args.keep_bytes || r2_loan_is_said(&exec->ops[i]) ||
                NULL == exec->ops[i].message || !r2_link_may_keep(exec->ops[i].message)) {
                return false;
            }
        }
    }
    return true;
}

/* What is left is waited for now. */
static void r2_exec_ask(r2_exec_t *exec)
{
    exec->asked = true;
    for (uint32_t i = r2_exec_lowest(exec); i < exec->schedule->op_count; ++i) {
        if (!exec->ops[i].done && NULL != exec->ops[i].message) {
            r2_link_ask(exec->ops[i].message);
        }
    }
}

void r2_exec_end(r2_exec_t *exec)
{
    if (!r2_exec_may_keep(exec)) {
        if (!exec->asked) {
            r2_exec_ask(exec);
        }
        return;
    }
    for (uint32_t i = exec->lowest; i < exec->schedule->op_count && !exec->over; ++i) {
        if (exec->ops[i].done) {
            continue;
        }
        if (!r2_link_keep(exec->ops[i].message)) {
            return;
        }
        exec->ops[i].message = NULL;
        --exec->sending;
        r2_exec_op_complete(exec, i);
    }
}
