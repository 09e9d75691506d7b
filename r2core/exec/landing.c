/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that NICs put to memory of a GPU: what else came of them, and when they are there.
 */
#include "r2_config.h"

#include "exec/landing.h"

#include <string.h>
#include <utlist.h>

#include "exec/exec.h"

uint32_t r2_landing_index(const r2_landing_t *landing)
{
    return (uint32_t) (landing->op - landing->op->exec->ops);
}

const r2_op_t *r2_landing_op(const r2_landing_t *landing)
{
    return &landing->op->exec->schedule->ops[r2_landing_index(landing)];
}

bool r2_landing_new(r2_exec_t *exec, r2_exec_op_t *handle)
{
    r2_landing_t *landing = r2_blocks_get(&exec->engine->blocks, sizeof(*landing));

    if (NULL == landing) {
        return false;
    }
    memset(landing, 0, sizeof(*landing));
    landing->op = handle;
    handle->landing = landing;
    LL_PREPEND(exec->landings, landing);
    return true;
}

void r2_landing_free(r2_landing_t *landing)
{
    r2_exec_t *exec = landing->op->exec;

    while (NULL != landing->spans) {
        r2_landing_span_t *span = landing->spans;

        LL_DELETE(landing->spans, span);
        r2_blocks_put(&exec->engine->blocks, span, sizeof(*span));
    }
    landing->op->landing = NULL;
    LL_DELETE(exec->landings, landing);
    r2_blocks_put(&exec->engine->blocks, landing, sizeof(*landing));
}

void r2_landings_free(r2_exec_t *exec)
{
    while (NULL != exec->landings) {
        r2_landing_free(exec->landings);
    }
}

/* Chunks come one behind the other, as a rule. */
static void r2_landing_note(r2_landing_t *landing, uint64_t offset, uint64_t bytes)
{
    r2_landing_span_t *span = landing->spans;

    if (NULL != span && span->offset + span->bytes == offset) {
        span->bytes += bytes;
        return;
    }
    span = r2_blocks_get(&landing->op->exec->engine->blocks, sizeof(*span));
    if (NULL == span) {
        landing->is_short = true;
        return;
    }
    *span = (r2_landing_span_t){.offset = offset, .bytes = bytes};
    LL_PREPEND(landing->spans, span);
}

void r2_landing_take(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    r2_exec_op_t *handle = arg;
    r2_landing_t *landing = handle->landing;

    if (bytes > 0) {
        memcpy(r2_exec_address(handle->exec, &r2_landing_op(landing)->dst) + offset, data, bytes);
        r2_landing_note(landing, offset, bytes);
        landing->copied_bytes += bytes;
    }
}

bool r2_landing_is_copy(r2_exec_op_t *handle)
{
    r2_landing_t *landing = handle->landing;
    r2_exec_t *exec = handle->exec;

    if (r2_landing_op(landing)->bytes == landing->copied_bytes) {
        r2_landing_free(landing);
        return true;
    }
    landing->is_whole = true;
    ++exec->stage->landed;
    r2_stage_await(exec);
    return false;
}
