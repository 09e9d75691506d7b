/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * From the arguments of a collective to its program.
 */
#include "r2_config.h"

#include "ctx/comm.h"

#include "plan/kinds.h"
#include "r2/planner.h"

/* Maps are merged by an algorithm that does not depend on them. */
#define R2_MAP_SYNC_ALGORITHM "recursive-doubling"

/** Of a shape, what the planner is told as bits. */
enum {
    R2_SHAPE_IN_PLACE = 1,
    R2_SHAPE_BLOCKING = 2,
    R2_SHAPE_COMMUTATIVE = 4,
    R2_SHAPE_EXACT = 8,
    R2_SHAPE_MAP_SYNC = 16
};

static bool r2_coll_is_map_sync(const r2_comm_t *comm)
{
    return 0 != (comm->sequence & 1u);
}

/* By name; NULL, or empty: the planner's choice. */
static const char *r2_coll_algorithm(const r2_comm_t *comm, r2_coll_kind_t kind)
{
    const char *name = r2_coll_override(&comm->comms->core->params, kind);

    if (r2_coll_is_map_sync(comm)) {
        return R2_MAP_SYNC_ALGORITHM;
    }
    return comm->leaves && r2_kind_has_local_order(kind) ? R2_LOCAL_ORDER : name;
}

/* Looks up what is known of such calls on this map, and tells it when it is new. */
static r2_status_t r2_coll_know(const r2_comm_t *comm, r2_plan_env_t *env, r2_plan_input_t *input)
{
    r2_comms_t *comms = comm->comms;
    char choice[128], times[256];
    bool fresh;
    r2_status_t status = r2_plan_estimate(&env->memo, input, &input->estimate, &fresh);

    if (R2_OK == status && fresh && R2_OK == r2_plan_describe(input, choice, sizeof(choice))) {
        r2_plan_estimate_text(input->estimate, times, sizeof(times));
        r2_debug(&comms->core->log,
                 "communicator %016llx: allreduce of %llu bytes: %s; predicted %s",
                 (unsigned long long) comm->key,
                 (unsigned long long) (input->count * input->element_bytes), choice, times);
    }
    return status;
}

static r2_shape_t r2_coll_shape(const r2_comm_t *comm, const r2_plan_env_t *env,
                                const r2_coll_args_t *args)
{
    const bool lists = NULL != args->counts || NULL != args->displs;

    return (r2_shape_t){
        .key = {.comm = comm->key,
                .map = NULL == env ? 0 : env->map_digest,
                .element_bytes = args->element_bytes,
                .count = args->count,
                .meaning = args->meaning,
                .send_count = args->send_count,
                .recv_count = args->recv_count,
                .size = lists ? comm->size : 0,
                .root = args->root,
                .kind = (uint32_t) args->kind,
                .flags = (args->in_place ? R2_SHAPE_IN_PLACE : 0u) |
                         (args->blocking ? R2_SHAPE_BLOCKING : 0u) |
                         (args->commutative ? R2_SHAPE_COMMUTATIVE : 0u) |
                         (args->exact ? R2_SHAPE_EXACT : 0u) |
                         (r2_coll_is_map_sync(comm) ? R2_SHAPE_MAP_SYNC : 0u)},
        .counts = args->counts,
        .displs = args->displs,
        .sends = args->sends,
        .recvs = args->recvs,
    };
}

/* A field that is added here belongs into the shape, too, unless it is equal in all calls. */
static r2_status_t r2_coll_plan(const r2_comm_t *comm, r2_plan_env_t *env,
                                const r2_coll_args_t *args, r2_schedule_t *schedule)
{
    const r2_params_t *params = &comm->comms->core->params;
    r2_plan_input_t input = {
        .kind = args->kind,
        .rank = comm->rank,
        .size = comm->size,
        .root = args->root,
        .element_bytes = r2_max(args->element_bytes, (uint64_t) 1),
        .count = args->count,
        .counts = args->counts,
        .displs = args->displs,
        .sends = args->sends,
        .send_count = args->send_count,
        .recvs = args->recvs,
        .recv_count = args->recv_count,
        .in_place = args->in_place,
        .meaning = args->meaning,
        .blocking = args->blocking,
        .commutative = args->commutative,
        .exact = args->exact,
        .reproducible = params->reproducible,
        .algorithm = r2_coll_algorithm(comm, args->kind),
        .scratch_bytes = params->scratch_bytes,
        .chunk_min_bytes = params->chunk_min_bytes,
        .chunk_max_bytes = r2_min(params->chunk_max_bytes, (size_t) R2_CHUNK_HELD_BYTES),
        .message_max_bytes = params->pack_bytes / 2,
        .copy_max_bytes = params->copy_max_bytes,
    };
    r2_status_t status = R2_OK;

    if (NULL != env) {
        input.topology = &env->topology;
        input.cost = env->cost;
    }
    if (NULL != env && !env->even) {
        status = r2_coll_know(comm, env, &input);
    }
    return R2_OK == status ? r2_plan_build(&input, schedule) : status;
}

static r2_status_t r2_coll_make(const r2_comm_t *comm, r2_plan_env_t *env,
                                const r2_coll_args_t *args, r2_program_t **program_p)
{
    r2_schedule_t schedule;
    r2_status_t status;

    r2_schedule_init(&schedule);
    status = r2_coll_plan(comm, env, args, &schedule);
    if (R2_OK == status) {
        status = r2_program_create(&schedule, program_p);
    }
    r2_schedule_fini(&schedule);
    comm->comms->core->counters.plans += R2_OK == status ? 1 : 0;
    return status;
}

/* What was planned ahead, if it is for the same map. */
static r2_program_t *r2_coll_take_ahead(struct r2_coll *coll, uint64_t map)
{
    r2_program_t *program = map == coll->ahead.map ? coll->ahead.program : NULL;

    if (NULL != program) {
        coll->ahead.program = NULL;
    }
    r2_coll_ahead_drop(&coll->ahead);
    return program;
}

r2_status_t r2_coll_program(struct r2_coll *coll, const r2_coll_args_t *args,
                            r2_program_t **program_p)
{
    r2_comm_t *comm = coll->comm;
    r2_programs_t *programs = &comm->comms->programs;
    r2_plan_env_t *env = NULL != coll->env ? coll->env : r2_agree_plan_env(comm->agree);
    const r2_shape_t shape = r2_coll_shape(comm, env, args);
    r2_program_t *program = r2_coll_take_ahead(coll, shape.key.map);
    r2_status_t status;

    if (NULL != program) {
        *program_p = program;
        return R2_OK;
    }
    program = r2_programs_find(programs, &shape, &comm->program_hint);
    if (NULL != program) {
        *program_p = r2_program_get(program);
        return R2_OK;
    }
    status = r2_coll_make(comm, env, args, program_p);
    if (R2_OK == status) {
        r2_programs_keep(programs, &shape, *program_p);
    }
    return status;
}

static bool r2_coll_all_positive(const uint64_t *counts, int32_t size)
{
    for (int32_t i = 0; i < size; ++i) {
        if (0 == counts[i]) {
            return false;
        }
    }
    return true;
}

/* Every rank's result depends on every rank, if there are any elements. */
static bool r2_coll_reaches_all(r2_coll_kind_t kind)
{
    return R2_COLL_ALLREDUCE == kind || R2_COLL_ALLGATHER == kind ||
           R2_COLL_REDUCE_SCATTER_BLOCK == kind || R2_COLL_ALLTOALL == kind;
}

/* From so many bytes on a map sync, some hundred bytes through log2(n) steps, is little. */
#define R2_COLL_LONG_BYTES (4u << 20)

bool r2_coll_is_long(const r2_coll_args_t *args)
{
    return R2_SPAN_COUNTS != r2_kind(args->kind)->span &&
           args->count * args->element_bytes >= R2_COLL_LONG_BYTES;
}

bool r2_coll_carries(const r2_comm_t *comm, const r2_coll_args_t *args)
{
    if (R2_COLL_BARRIER == args->kind) {
        return true;
    }
    if (R2_SPAN_COUNTS == r2_kind(args->kind)->span) {
        return args->element_bytes > 0 && NULL != args->counts &&
               r2_coll_all_positive(args->counts, comm->size);
    }
    return r2_coll_reaches_all(args->kind) && args->count * args->element_bytes > 0;
}
