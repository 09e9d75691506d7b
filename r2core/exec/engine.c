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

unsigned r2_engine_run(r2_engine_t *engine, bool app)
{
    unsigned started = 0;
    r2_exec_t *exec, *next;

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
