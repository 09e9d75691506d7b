/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Landings: messages that are complete are stored and flushed, and their ops end.
 */
#include "r2_config.h"

#include <utlist.h>

#include "exec/exec.h"

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
