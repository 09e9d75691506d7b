/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Blocking collectives within a host: made, waited for, failed.
 */
#include "r2_config.h"

#include "ctx/coll_local.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctx/host_table.h"
#include "ctx/state.h"

static_assert(R2_COLL_KIND_COUNT <= 32, "a bit for each");

/* While it polls it drives in every so manieth turn. */
#define R2_LOCAL_DRIVE_TURNS 16u

/* Looks before it gives way: with a core for each process, and without. */
#define R2_LOCAL_LOOKS_FREE 100u
#define R2_LOCAL_LOOKS_BUSY 1u

/* With a core for each process nobody else has a use for it, and to be woken takes longer than most
 * waits: who waits sleeps later than spin_us says. */
#define R2_LOCAL_SPIN_FREE_NS R2_NS_PER_MS

/* From here on one copy by the kernel costs less than two by members. Who reads from where it is
 * keeps the owner in its call, which costs more if they share a core. */
#define R2_LOCAL_DIRECT_FREE (16u << 10)
#define R2_LOCAL_DIRECT_BUSY (128u << 10)

/* Who has waited for so long is woken by the rails. Before that it costs more than it is worth. */
#define R2_LOCAL_ARM_NS (200 * R2_NS_PER_US)

#define R2_LOCAL_LOOK_NS (5 * R2_NS_PER_MS)   /* for members that make other calls */
#define R2_LOCAL_ASK_NS  (100 * R2_NS_PER_MS) /* whether who is waited for has ended */

#define R2_LOCAL_TEXT_BYTES 1536 /* a line that names all lanes of a link */

#define R2_LOCAL_PARTED_NS R2_NS_PER_S /* for those that have freed the communicator */

#define R2_LOCAL_EARLY_CALLS 16u /* of those that leave calls to others */

static r2_ctx_t *r2_coll_local_ctx(const struct r2_coll_local *local)
{
    return r2_ctx_of(local->comm->comms->core);
}

static r2_status_t r2_coll_local_failed(const struct r2_coll_local *local)
{
    return (r2_status_t) __atomic_load_n(&local->comm->failed, __ATOMIC_RELAXED);
}

/* A member that is waited for may have ended, or called MPI_Finalize. Not every member has a link
 * to it that says so. */
static r2_status_t r2_coll_local_ask(struct r2_coll_local *local, int32_t member)
{
    r2_core_t *core = local->comm->comms->core;
    const uint32_t rank = local->comm->ranks[member];
    const bool ended = r2_process_has_ended(&local->processes[member]);
    r2_status_t status = R2_OK;
    r2_link_t *link;

    r2_core_enter(core);
    core->net.now_ns = r2_now_ns(core->clock);
    link = r2_core_link(core, rank);
    if (ended && R2_OK == r2_net_link(&core->net, rank, &link)) {
        r2_link_gone(link);
        r2_coll_collect(local->comm->comms);
    }
    if (NULL != link && R2_OK == local->comm->failed && r2_link_is_left(link)) {
        status = r2_link_has_left(link);
    }
    r2_core_leave_started(core);
    return status;
}

/* Whether all are at this call, or may come to it. Who makes none any more tells its links why, so
 * that is waited for. */
static r2_status_t r2_coll_local_look(struct r2_coll_local *local, uint64_t now_ns)
{
    const r2_status_t status = r2_team_look(&local->team);

    if (R2_ERR_NOT_FOUND != status) {
        return status;
    }
    return now_ns - local->since_ns < R2_LOCAL_PARTED_NS ? R2_OK : R2_ERR_PLAN_MISMATCH;
}

/* The rails wake who sleeps in a segment: by the service thread, which reads none of them itself.
 * @return false: they have something now. */
static bool r2_coll_local_arm(struct r2_coll_local *local, int32_t member)
{
    r2_ctx_t *ctx = r2_coll_local_ctx(local);
    bool armed;

    if (NULL == ctx->service || 0 != pthread_mutex_trylock(&ctx->core.lock)) {
        return true; /* who has the lock drives */
    }
    armed = r2_net_arm(&ctx->core.net);
    if (armed) {
        local->sleeps_on = r2_segment_member(&local->team.segment, member);
        ctx->sleeps_on = local->sleeps_on;
        r2_service_watch(ctx->service);
    }
    pthread_mutex_unlock(&ctx->core.lock);
    return armed;
}

static void r2_coll_local_disarm(struct r2_coll_local *local)
{
    r2_ctx_t *ctx = r2_coll_local_ctx(local);

    r2_core_enter(&ctx->core);
    if (ctx->sleeps_on == local->sleeps_on) {
        ctx->sleeps_on = NULL;
    }
    local->sleeps_on = NULL;
    r2_core_leave(&ctx->core);
}

/* Whoever waits for long: what else is under way, and why what it waits for may never come. */
static r2_status_t r2_coll_local_doubt(struct r2_coll_local *local, int32_t member, uint64_t now_ns)
{
    r2_ctx_t *ctx = r2_coll_local_ctx(local);
    r2_status_t status = R2_OK;

    (void) r2_ctx_progress(ctx);
    r2_wait_idle(ctx);
    if (now_ns - local->asked_ns >= R2_LOCAL_ASK_NS) {
        local->asked_ns = now_ns;
        status = r2_coll_local_ask(local, member);
    }
    if (R2_OK == status) {
        status = r2_coll_local_failed(local);
    }
    if (R2_OK == status && now_ns - local->looked_ns >= R2_LOCAL_LOOK_NS) {
        local->looked_ns = now_ns;
        status = r2_coll_local_look(local, now_ns);
    }
    if (R2_OK == status && (local->comm->leaves || (now_ns - local->since_ns >= R2_LOCAL_ARM_NS &&
                                                    !r2_coll_local_arm(local, member)))) {
        (void) sched_yield();
        return R2_OK;
    }
    return R2_OK == status ? R2_IN_PROGRESS : status;
}

static r2_status_t r2_coll_local_pause(void *arg, int32_t member, uint32_t turn)
{
    struct r2_coll_local *local = arg;
    r2_ctx_t *ctx = r2_coll_local_ctx(local);
    const uint64_t now_ns = r2_now_ns(ctx->core.clock);
    const bool drives = R2_LOCAL_DRIVE_TURNS - 1 == turn % R2_LOCAL_DRIVE_TURNS;

    if (0 == turn) {
        local->since_ns = local->looked_ns = local->asked_ns = now_ns;
    }
    if (now_ns - local->since_ns >= local->spin_ns) {
        return r2_coll_local_doubt(local, member, now_ns);
    }
    if (drives) {
        (void) r2_ctx_progress(ctx);
    }
    if (local->comm->leaves && (drives || local->has_cores)) {
        r2_wait_idle(ctx); /* calls that were left may be under way */
    }
    if (now_ns - local->since_ns < ctx->core.params.spin_us * R2_NS_PER_US) {
        r2_wait_poll(ctx);
    } else {
        (void) sched_yield(); /* who is waited for may be bound to the same processor */
    }
    return R2_OK;
}

/* Kinds of calls for which the user has asked for an algorithm. */
static uint32_t r2_coll_local_forced(const r2_params_t *params)
{
    uint32_t kinds = 0;

    for (uint32_t kind = 0; kind < R2_COLL_KIND_COUNT; ++kind) {
        const char *name = r2_coll_override(params, (r2_coll_kind_t) kind);

        kinds |= NULL == name || '\0' == name[0] ? 0 : 1u << kind;
    }
    return kinds;
}

r2_status_t r2_coll_local_create(r2_comm_t *comm)
{
    r2_ctx_t *ctx = r2_ctx_of(comm->comms->core);
    struct r2_coll_local *local;

    if (!ctx->consent.shares || comm->size < 2 || NULL == ctx->hosts ||
        !r2_hosts_together(ctx->hosts, comm->ranks, comm->size)) {
        return R2_OK;
    }
    local = calloc(1, sizeof(*local));
    if (NULL == local) {
        return R2_ERR_NO_MEMORY;
    }
    local->comm = comm;
    local->has_cores = r2_hosts_have_cores(ctx->hosts, ctx->core.net.rank);
    local->forced = r2_coll_local_forced(&ctx->core.params);
    r2_segment_lay_out(&local->team.segment, comm->size, comm->rank);
    comm->local = local;
    return R2_OK;
}

/* ---- calls ---- */

/* No message of a call was lost with a process that was waited for, so nobody has been told. */
static void r2_coll_local_say_who(const struct r2_coll_local *local)
{
    const r2_comm_t *comm = local->comm;
    r2_core_t *core = comm->comms->core;
    r2_links_t links = r2_core_links_to(core, comm->ranks, comm->size);
    char text[R2_LOCAL_TEXT_BYTES];
    const r2_link_t *link;

    while (NULL != (link = r2_links_next(&links))) {
        if (R2_ERR_PEER_GONE == r2_link_broken(link)) {
            r2_link_describe(link, text, sizeof(text));
            r2_error(&core->log, "%s: %s", r2_status_string(R2_ERR_PEER_GONE), text);
        }
    }
}

/* The call has an error: all calls of the communicator have. */
static r2_status_t r2_coll_local_fail(struct r2_coll_local *local, r2_status_t status)
{
    r2_core_t *core = local->comm->comms->core;
    const r2_team_t *team = &local->team;
    r2_link_t *link;

    r2_core_enter(core);
    core->net.now_ns = r2_now_ns(core->clock);
    if (R2_OK == local->comm->failed && R2_ERR_PLAN_MISMATCH == status &&
        R2_OK == r2_net_link(&core->net, local->comm->ranks[team->odd], &link)) {
        (void) r2_link_mismatch(link);
    }
    r2_comm_fail(local->comm, status);
    status = local->comm->failed;
    if (R2_ERR_PEER_GONE == status) {
        r2_coll_local_say_who(local);
    }
    r2_core_leave_started(core);
    return status;
}

/* What has_cores says: how it waits, and from which length on it reads others' memory. */
static void r2_coll_local_set_pace(struct r2_coll_local *local)
{
    const r2_params_t *params = &local->comm->comms->core->params;

    local->team.wait = (r2_team_wait_t){
        .pause = r2_coll_local_pause,
        .arg = local,
        .looks = local->has_cores ? R2_LOCAL_LOOKS_FREE : R2_LOCAL_LOOKS_BUSY,
    };
    local->team.folds_direct = local->has_cores && NULL != local->team.processes;
    local->team.direct_bytes = local->has_cores ? R2_LOCAL_DIRECT_FREE : R2_LOCAL_DIRECT_BUSY;
    local->spin_ns = r2_max(params->spin_us * R2_NS_PER_US,
                            local->has_cores ? (uint64_t) R2_LOCAL_SPIN_FREE_NS : 0);
}

/* Once: what all that is made so takes. */
static r2_status_t r2_coll_local_begin(struct r2_coll_local *local)
{
    r2_status_t status = R2_OK;

    if (R2_LOCAL_UNMET == local->stage) {
        status = r2_coll_local_meet(local);
        r2_coll_local_set_pace(local);
    }
    return status;
}

/* Sums whose bits depend on their order. */
static bool r2_coll_local_has_order(const r2_coll_args_t *args)
{
    return NULL != args->reduce && !args->exact;
}

/* Many communicators make few calls, which are not worth a meeting. No algorithm of the engine has
 * the order of a segment's scans, so these are. */
static bool r2_coll_local_is_early(struct r2_coll_local *local, const r2_coll_args_t *args)
{
    if (R2_LOCAL_UNMET != local->stage || local->early >= R2_LOCAL_EARLY_CALLS ||
        (r2_coll_local_has_order(args) && !r2_kind_has_local_order(args->kind))) {
        return false;
    }
    ++local->early;
    return true;
}

/* The user has asked for an algorithm: at one of them, as all know once they have met. */
static bool r2_coll_local_is_forced(const struct r2_coll_local *local, const r2_coll_args_t *args)
{
    return 0 != (local->forced & 1u << args->kind);
}

/* Members share cores, and messages are faster at this. */
static bool r2_coll_local_is_slower(const struct r2_coll_local *local, const r2_coll_args_t *args)
{
    return !local->has_cores && r2_team_is_slower(args);
}

static bool r2_coll_local_can(const struct r2_coll_local *local, r2_team_way_t way)
{
    return R2_LOCAL_GROWN == local->stage ||
           (R2_TEAM_SHORT == way && r2_coll_local_has_team(local));
}

/* The call is over. Behind a barrier comes what was sent before it, as behind one of messages. */
static void r2_coll_local_give_way(struct r2_coll_local *local, bool is_barrier)
{
    r2_ctx_t *ctx = r2_coll_local_ctx(local);
    const bool gives_way = r2_wait_gives_way(ctx);

    if (gives_way || (is_barrier && NULL != ctx->p2p)) {
        (void) r2_ctx_progress(ctx);
    }
    if (gives_way || is_barrier) {
        r2_wait_idle(ctx);
    }
}

static r2_status_t r2_coll_local_run(struct r2_coll_local *local, const r2_coll_args_t *args,
                                     r2_team_way_t way)
{
    r2_comm_t *comm = local->comm;
    r2_counters_t *counters = &comm->comms->core->counters;
    const uint32_t place = comm->next_seq + 1;
    r2_status_t status;

    __atomic_store_n(&comm->next_seq, place, __ATOMIC_RELAXED);
    r2_coll_count(&counters->collectives);
    r2_coll_count(&counters->local_collectives);
    status = r2_team_run(&local->team, args, way, place);
    if (NULL != local->sleeps_on) {
        r2_coll_local_disarm(local);
    }
    if (R2_OK != status) {
        return r2_coll_local_fail(local, status);
    }
    r2_coll_local_give_way(local, R2_COLL_BARRIER == args->kind);
    return R2_OK;
}

/* A reduce_scatter of equal blocks is one that a team makes; all members have the same counts. */
static bool r2_coll_local_is_block(const r2_comm_t *comm, const r2_coll_args_t *args)
{
    bool equal = NULL != args->counts;

    for (int32_t i = 1; i < comm->size && equal; ++i) {
        equal = args->counts[i] == args->counts[0];
    }
    return equal;
}

static r2_coll_args_t r2_coll_local_block(const r2_coll_args_t *args)
{
    r2_coll_args_t block = *args;

    block.kind = R2_COLL_REDUCE_SCATTER_BLOCK;
    block.count = args->counts[0];
    block.counts = NULL;
    return block;
}

/* @return true: the call is over, with *status_p; false: it is to be made otherwise. */
static bool r2_coll_local_make(r2_comm_t *comm, const r2_coll_args_t *args, r2_status_t *status_p)
{
    struct r2_coll_local *local = comm->local;
    r2_team_way_t way;

    if (NULL == local || R2_LOCAL_NEVER == local->stage || r2_is_forked()) {
        return false;
    }
    way = r2_team_way(&local->team.segment, args);
    if (R2_TEAM_NONE == way || R2_OK != r2_coll_local_failed(local)) {
        return false; /* the engine says why it failed */
    }
    if (comm->leaves ? r2_coll_local_is_early(local, args) : r2_coll_local_is_forced(local, args)) {
        return false;
    }
    *status_p = r2_coll_local_begin(local);
    if (R2_OK == *status_p && (r2_coll_local_is_forced(local, args) ||
                               (comm->leaves && r2_coll_local_is_slower(local, args)))) {
        return false;
    }
    if (R2_OK == *status_p && R2_TEAM_LONG == way && R2_LOCAL_SHORT == local->stage) {
        *status_p = r2_coll_local_grow(local);
    }
    if (R2_OK == *status_p && !r2_coll_local_can(local, way)) {
        return false;
    }
    *status_p = R2_OK == *status_p ? r2_coll_local_run(local, args, way) : *status_p;
    return true;
}

bool r2_comm_leaves(const r2_comm_t *comm)
{
    return comm->leaves;
}

/* In a segment and by the engine sums have one order (R2_LOCAL_ORDER), elsewhere another: what a
 * segment makes has the same bits whichever of its calls it is. */
static bool r2_coll_local_keeps(const r2_comm_t *comm, const r2_coll_args_t *args)
{
    r2_coll_args_t block;

    if (NULL == comm->local || !r2_coll_local_has_order(args) ||
        !r2_kind_has_local_order(args->kind) ||
        (R2_LOCAL_UNMET != comm->local->stage && r2_coll_local_is_forced(comm->local, args))) {
        return false;
    }
    if (R2_COLL_REDUCE_SCATTER == args->kind) {
        if (!r2_coll_local_is_block(comm, args)) {
            return false;
        }
        block = r2_coll_local_block(args);
        args = &block;
    }
    return R2_TEAM_NONE != r2_team_way(&comm->local->team.segment, args);
}

bool r2_comm_leave_call(r2_comm_t *comm, const r2_coll_args_t *args)
{
    if (!comm->leaves || (NULL != args && r2_coll_local_keeps(comm, args)) ||
        R2_OK != __atomic_load_n(&comm->failed, __ATOMIC_RELAXED) || r2_is_forked()) {
        return false;
    }
    __atomic_store_n(&comm->next_seq, comm->next_seq + 1, __ATOMIC_RELAXED);
    r2_coll_local_elsewhere(comm);
    return true;
}

bool r2_coll_local(r2_comm_t *comm, const r2_coll_args_t *args, r2_status_t *status_p)
{
    r2_coll_args_t block;

    if (NULL == comm->local || R2_COLL_REDUCE_SCATTER != args->kind) {
        return r2_coll_local_make(comm, args, status_p);
    }
    if (!r2_coll_local_is_block(comm, args) ||
        ((!comm->leaves || R2_LOCAL_UNMET != comm->local->stage) &&
         r2_coll_local_is_forced(comm->local, args))) {
        return false;
    }
    block = r2_coll_local_block(args);
    return r2_coll_local_make(comm, &block, status_p);
}
