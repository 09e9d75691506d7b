/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory of a call, before it begins: without the engine lock, since drivers may wait for
 * the application's work before they pin, and that may wait for what other threads call.
 */
#include "r2_config.h"

#include "ctx/comm.h"
#include "ctx/core.h"

/* So that what the call takes can be asked for: the first call on a device has no place there. */
static r2_status_t r2_coll_open_place(r2_staging_t *staging, const r2_mem_at_t *at)
{
    return r2_mem_traits(at->kind)->is_cpus || NULL != r2_staging_place(staging, at)
               ? R2_OK
               : r2_staging_follow(staging, at);
}

static r2_coll_ahead_t r2_coll_pin(r2_comm_t *comm, const struct r2_coll *series,
                                   const r2_coll_args_t *args)
{
    r2_core_t *core = comm->comms->core;
    r2_staging_t *staging = &core->engine.staging;
    struct r2_coll coll = {.comm = comm, .env = NULL == series ? NULL : series->env};
    const r2_plan_env_t *env;
    r2_coll_ahead_t ahead = {NULL, 0};
    r2_exec_args_t exec_args;
    r2_pins_wanted_t wanted;
    r2_mem_at_t at;

    if (R2_OK != comm->root->failed || R2_OK != r2_coll_open_place(staging, &args->in_at) ||
        R2_OK != r2_coll_open_place(staging, &args->out_at) ||
        R2_OK != r2_coll_program(&coll, args, &ahead.program)) {
        return ahead; /* the call says why */
    }
    env = NULL != coll.env ? coll.env : r2_agree_plan_env(comm->agree);
    ahead.map = NULL == env ? 0 : env->map_digest;
    exec_args = r2_coll_exec_args(&coll, args);
    r2_stage_wants(&core->engine, &exec_args, ahead.program, &wanted);
    if (!r2_pins_take(&staging->pins, &wanted)) {
        at = staging->pins.at;
        r2_core_leave(core); /* others go on meanwhile; another plan may be agreed on */
        r2_pins_fill(&core->mem, &at, &wanted);
        r2_core_enter(core);
        core->net.now_ns = r2_now_ns(core->clock);
    }
    r2_pins_give(&staging->pins, &wanted);
    return ahead;
}

r2_coll_ahead_t r2_coll_pin_ahead(r2_comm_t *comm, const struct r2_coll *series,
                                  const r2_coll_args_t *args)
{
    if (r2_mem_traits(args->in_at.kind)->is_cpus && r2_mem_traits(args->out_at.kind)->is_cpus) {
        return (r2_coll_ahead_t){NULL, 0};
    }
    return r2_coll_pin(comm, series, args);
}
