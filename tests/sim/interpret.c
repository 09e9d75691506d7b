/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs the schedules of all ranks in one thread: the reference for the bits of a result.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "ctx/state.h"
#include "payload.h"

/** A message on its way. */
typedef struct mail {
    struct mail *prev, *next;
    int32_t from;
    uint32_t tag;
    uint64_t bytes;
    uint8_t data[];
} mail_t;

typedef struct actor {
    r2_schedule_t schedule;
    bool *done; /* owned: by op */
    uint32_t first_open;
    uint8_t *scratch;  /* owned */
    uint8_t *in, *out; /* borrowed */
    mail_t *mail;      /* owned list */
} actor_t;

r2_status_t payload_hosts_init(r2_topology_t *hosts, const uint32_t *host_of, int32_t size)
{
    uint32_t *number = malloc((size_t) r2_max(size, 1) * sizeof(*number)), count = 0;
    r2_status_t status = NULL == number ? R2_ERR_NO_MEMORY : R2_OK;

    for (int32_t r = 0; R2_OK == status && r < size; ++r) {
        int32_t before = 0;

        while (before < r && host_of[before] != host_of[r]) {
            ++before;
        }
        number[r] = before < r ? number[before] : count++;
    }
    if (R2_OK == status) {
        status = r2_topology_init(hosts, count, 1, size, 1);
    }
    if (R2_OK == status) {
        memcpy(hosts->host_of, number, (size_t) size * sizeof(*number));
    }
    free(number);
    return status;
}

void payload_plan_input(const payload_call_t *call, int32_t rank, const r2_params_t *params,
                        r2_plan_input_t *input_p)
{
    r2_coll_args_t args;

    payload_args(call, rank, NULL, NULL, &args);
    *input_p = (r2_plan_input_t){
        .kind = args.kind,
        .rank = rank,
        .size = call->size,
        .root = args.root,
        .element_bytes = args.element_bytes,
        .count = args.count,
        .counts = args.counts,
        .displs = args.displs,
        .sends = args.sends,
        .send_count = args.send_count,
        .recvs = args.recvs,
        .recv_count = args.recv_count,
        .in_place = args.in_place,
        .commutative = args.commutative,
        .exact = args.exact,
        .reproducible = params->reproducible,
        .algorithm = r2_coll_override(params, args.kind),
        .scratch_bytes = params->scratch_bytes,
        .chunk_min_bytes = params->chunk_min_bytes,
        .chunk_max_bytes = params->chunk_max_bytes,
        .message_max_bytes = params->pack_bytes / 2,
        .copy_max_bytes = params->copy_max_bytes,
        .topology = &call->hosts,
    };
}

static uint8_t *address(actor_t *actor, const r2_region_t *region)
{
    uint8_t *base = R2_BUF_IN == region->buf    ? actor->in
                    : R2_BUF_OUT == region->buf ? actor->out
                                                : actor->scratch;

    return base + region->offset_bytes;
}

static bool may_run(const actor_t *actor, const r2_op_t *op)
{
    for (uint32_t d = 0; d < op->dep_count; ++d) {
        if (!actor->done[actor->schedule.deps[op->first_dep + d]]) {
            return false;
        }
    }
    return true;
}

static mail_t *find_mail(const actor_t *actor, const r2_op_t *op)
{
    mail_t *mail;

    DL_FOREACH(actor->mail, mail) {
        if (mail->from == op->peer && mail->tag == op->tag && mail->bytes == op->bytes) {
            return mail;
        }
    }
    return NULL;
}

static bool send_op(actor_t *actors, int32_t rank, const r2_op_t *op)
{
    mail_t *mail = malloc(sizeof(*mail) + op->bytes);

    if (NULL == mail) {
        return false;
    }
    mail->from = rank;
    mail->tag = op->tag;
    mail->bytes = op->bytes;
    memcpy(mail->data, address(&actors[rank], &op->src), op->bytes);
    DL_APPEND(actors[op->peer].mail, mail);
    return true;
}

static bool receive_op(actor_t *actor, const r2_op_t *op)
{
    mail_t *mail = find_mail(actor, op);

    if (NULL == mail) {
        return false;
    }
    memcpy(address(actor, &op->dst), mail->data, mail->bytes);
    DL_DELETE(actor->mail, mail);
    free(mail);
    return true;
}

/* @return true if the op is complete now. */
static bool run_op(const payload_call_t *call, actor_t *actors, int32_t rank, const r2_op_t *op)
{
    actor_t *actor = &actors[rank];
    r2_coll_args_t args;

    switch (op->kind) {
    case R2_OP_SEND:
        return send_op(actors, rank, op);
    case R2_OP_RECV:
        return receive_op(actor, op);
    case R2_OP_REDUCE:
        payload_args(call, rank, NULL, NULL, &args);
        args.reduce(args.reduce_arg, address(actor, &op->src), address(actor, &op->dst),
                    op->bytes / call->element_bytes);
        return true;
    case R2_OP_COPY:
        memmove(address(actor, &op->dst), address(actor, &op->src), op->bytes);
        return true;
    }
    return false;
}

/* Runs what can run of one rank. @return ops completed. */
static uint32_t run_actor(const payload_call_t *call, actor_t *actors, int32_t rank)
{
    actor_t *actor = &actors[rank];
    uint32_t completed = 0;

    for (uint32_t i = actor->first_open; i < actor->schedule.op_count; ++i) {
        const r2_op_t *op = &actor->schedule.ops[i];

        if (!actor->done[i] && may_run(actor, op) && run_op(call, actors, rank, op)) {
            actor->done[i] = true;
            ++completed;
        }
        if (actor->done[i] && i == actor->first_open) {
            ++actor->first_open;
        }
    }
    return completed;
}

static bool prepare(const payload_call_t *call, const r2_params_t *params, int32_t rank,
                    actor_t *actor)
{
    r2_plan_input_t input;

    payload_plan_input(call, rank, params, &input);
    if (R2_OK != r2_plan_build(&input, &actor->schedule)) {
        return false;
    }
    actor->done = calloc(actor->schedule.op_count + 1, sizeof(*actor->done));
    actor->scratch = aligned_alloc(64, r2_round_up(actor->schedule.scratch_bytes + 1, 64));
    return NULL != actor->done && NULL != actor->scratch;
}

static void release(actor_t *actor)
{
    mail_t *mail, *next;

    DL_FOREACH_SAFE(actor->mail, mail, next) {
        free(mail);
    }
    free(actor->done);
    free(actor->scratch);
    r2_schedule_fini(&actor->schedule);
}

static bool all_done(const actor_t *actors, int32_t size)
{
    for (int32_t r = 0; r < size; ++r) {
        if (actors[r].first_open < actors[r].schedule.op_count) {
            return false;
        }
    }
    return true;
}

bool payload_interpret(const payload_call_t *call, const r2_params_t *params, uint8_t **in,
                       uint8_t **out)
{
    actor_t *actors = calloc((size_t) call->size, sizeof(*actors));
    uint32_t completed = 1;
    bool ok = NULL != actors;

    for (int32_t r = 0; ok && r < call->size; ++r) {
        actors[r].in = in[r];
        actors[r].out = out[r];
        ok = prepare(call, params, r, &actors[r]);
    }
    while (ok && completed > 0) {
        completed = 0;
        for (int32_t r = 0; r < call->size; ++r) {
            completed += run_actor(call, actors, r);
        }
    }
    ok = ok && all_done(actors, call->size);
    for (int32_t r = 0; NULL != actors && r < call->size; ++r) {
        release(&actors[r]);
    }
    free(actors);
    return ok;
}
