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

static uint32_t r2_landing_index(const r2_landing_t *landing)
{
    return (uint32_t) (landing->op - landing->op->exec->ops);
}

static const r2_op_t *r2_landing_op(const r2_landing_t *landing)
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

static void r2_landing_free(r2_landing_t *landing)
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

/* What NICs have not written is stored; what they have is the GPU's to see. @param is_flushed_p
 * the latter, of all that has come so far. @return R2_IN_PROGRESS: to be called again. */
static r2_status_t r2_landing_begin(r2_landing_t *landing, bool *is_flushed_p)
{
    const r2_exec_t *exec = landing->op->exec;
    const r2_region_t *region = &r2_landing_op(landing)->dst;
    char *user = (char *) exec->args.out + region->offset_bytes;
    const char *copy = r2_exec_address(exec, region);
    r2_staging_place_t *place = exec->stage->sides[1].place;
    r2_status_t status = landing->is_short ? R2_ERR_NO_MEMORY : r2_mem_queue_room(&place->stores);
    const r2_landing_span_t *span;

    if (R2_OK == status && !*is_flushed_p && R2_MEM_NICS_FLUSH == place->nics) {
        status = r2_mem_flush_nics(place->stores.mem, &place->stores.at);
        *is_flushed_p = R2_OK == status;
    }
    LL_FOREACH(landing->spans, span) {
        if (R2_OK == status) {
            status = r2_mem_queue_copy(&place->stores, user + span->offset, copy + span->offset,
                                       span->bytes);
        }
    }
    return R2_OK == status && NULL != landing->spans
               ? r2_mem_queue_mark(&place->stores, &landing->ticket)
               : status;
}

static r2_status_t r2_landing_step(r2_landing_t *landing, bool *is_flushed_p)
{
    const r2_exec_t *exec = landing->op->exec;
    r2_status_t status = R2_OK;

    if (0 == landing->ticket) {
        status = r2_landing_begin(landing, is_flushed_p);
    }
    return R2_OK == status
               ? r2_mem_queue_test(&exec->stage->sides[1].place->stores, landing->ticket)
               : status;
}

unsigned r2_landings_run(r2_exec_t *exec)
{
    bool is_flushed = false;
    r2_landing_t *landing, *next;
    unsigned ended = 0;

    LL_FOREACH_SAFE(exec->landings, landing, next) {
        const uint32_t index = r2_landing_index(landing);
        r2_status_t status;

        if (!landing->is_whole || exec->over) {
            continue;
        }
        status = r2_landing_step(landing, &is_flushed);
        if (R2_IN_PROGRESS == status) {
            continue;
        }
        if (R2_OK == status) {
            r2_stage_lacks(exec, index);
            r2_landing_free(landing);
        }
        --exec->stage->landed;
        ++ended;
        r2_exec_ended(exec, index, status);
    }
    return ended;
}
