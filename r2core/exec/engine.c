/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Engine: which runs may go on, and which are over.
 */
#include "r2_config.h"

#include "exec/exec.h"

#include <string.h>
#include <utlist.h>

void r2_engine_init(r2_engine_t *engine, r2_net_t *net, uint64_t keep_bytes)
{
    memset(engine, 0, sizeof(*engine));
    engine->net = net;
    r2_blocks_init(&engine->blocks, keep_bytes);
}

void r2_engine_fini(r2_engine_t *engine)
{
    r2_loans_fini(&engine->loans);
    r2_staging_fini(&engine->staging);
    r2_blocks_fini(&engine->blocks);
}

/* Takes the next run off the list that this thread may work on. */
static r2_exec_t *r2_engine_take(r2_engine_t *engine, bool app)
{
    r2_exec_t *exec = engine->ready;

    while (NULL != exec && exec->app_only && !app) {
        exec = exec->next;
    }
    if (NULL != exec) {
        exec->in_ready = false;
        DL_DELETE(engine->ready, exec);
    }
    return exec;
}

/* Ops whose loads have ended. */
static unsigned r2_engine_start_loaded(r2_exec_t *exec)
{
    r2_staged_t *stage = exec->stage;
    unsigned started = 0;

    while (stage->waiting_count > 0 && !exec->over) {
        const uint32_t op = stage->waiting[stage->waiting_head];
        const r2_status_t status = r2_stage_load(exec, op);

        if (R2_IN_PROGRESS == status) {
            r2_exec_loaded(exec, op, status);
            break;
        }
        ++stage->waiting_head;
        --stage->waiting_count;
        ++started;
        r2_exec_loaded(exec, op, status);
    }
    return started;
}

/* Ops that the GPU has done; and those launched that had no room, or were loaded just now. */
static unsigned r2_engine_complete_reduced(r2_exec_t *exec)
{
    r2_status_t status = R2_OK;
    unsigned completed = 0;
    uint32_t op = R2_OP_NONE;

    while (!exec->over && R2_OK == (status = r2_stage_reduced(exec, &op))) {
        r2_exec_ended(exec, op, R2_OK);
        ++completed;
    }
    if (!exec->over && R2_ERR_NOT_FOUND == status) {
        status = r2_stage_launch(exec);
    }
    if (!exec->over && status < 0) {
        r2_exec_ended(exec, op, status);
    }
    return completed;
}

/* What NICs were to read and is asked for: it waits for loads from now on. Here rather than when it
 * is asked for, which may be while what waits is gone through. */
static void r2_engine_take_fetches(r2_exec_t *exec)
{
    r2_staged_t *stage = exec->stage;

    for (uint32_t i = 0; stage->fetches > 0 && i < exec->schedule->op_count; ++i) {
        if (exec->ops[i].fetching && exec->ops[i].by_nic) {
            exec->ops[i].by_nic = false;
            --stage->fetches;
            r2_stage_wait(exec, i);
        }
    }
}

static unsigned r2_engine_copy(r2_exec_t *exec)
{
    const r2_status_t status = r2_stage_load_ahead(exec);
    unsigned events = 0;

    if (status < 0) {
        r2_exec_stored(exec, status);
    }
    r2_engine_take_fetches(exec);
    events += r2_landings_run(exec);
    events += r2_engine_start_loaded(exec);
    events += r2_engine_complete_reduced(exec);
    if (!exec->over) {
        r2_exec_stored(exec, r2_stage_store(exec, &events));
    }
    return events;
}

/* Runs that wait for copies; they may come and go meanwhile. */
static unsigned r2_engine_run_copying(r2_engine_t *engine, bool app)
{
    unsigned events = 0, count = 0;
    r2_exec_t *exec;

    DL_COUNT2(engine->staging.copying, exec, count, copying_next);
    while (count-- > 0 && NULL != (exec = engine->staging.copying)) {
        r2_stage_leave(exec);
        if (!exec->app_only || app) {
            events += r2_engine_copy(exec);
        }
        /* an application's run that has done all its ops is finished by an application */
        if (!exec->over && (0 == exec->ops_left || r2_stage_is_busy(exec->stage))) {
            r2_stage_await(exec);
        }
    }
    return events;
}

unsigned r2_engine_run(r2_engine_t *engine, bool app)
{
    unsigned started = NULL == engine->loans.busy ? 0 : r2_loans_run(engine);
    r2_exec_t *exec, *next;

    started += NULL == engine->staging.copying ? 0 : r2_engine_run_copying(engine, app);
    while (NULL != (exec = r2_engine_take(engine, app))) {
        started += r2_exec_run(exec);
    }
    DL_FOREACH_SAFE(engine->ending, exec, next) {
        r2_exec_end(exec);
    }
    return started;
}

r2_exec_t *r2_engine_collect(r2_engine_t *engine)
{
    r2_exec_t *exec = engine->finished;

    if (NULL != exec) {
        exec->in_finished = false;
        DL_DELETE(engine->finished, exec);
    }
    return exec;
}
