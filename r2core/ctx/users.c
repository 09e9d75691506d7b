/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What users open in a context: communicators and point-to-point, if all processes take part.
 */
#include "r2_config.h"

#include <sodium.h>
#include <stdio.h>

#include "ctx/coll_local.h"
#include "ctx/p2p_state.h"
#include "ctx/state.h"

static r2_status_t r2_ctx_key(r2_ctx_t *ctx)
{
    uint8_t key[R2_JOB_KEY_BYTES];
    r2_status_t status = ctx->core.net.oob.ops->job_key(ctx->core.net.oob.instance, key);

    if (R2_OK == status) {
        ctx->core.net.hello.ops->key(ctx->core.net.hello.instance, key);
        if (NULL != ctx->core.net.probe.ops) {
            ctx->core.net.probe.ops->key(ctx->core.net.probe.instance, key);
        }
        if (NULL != ctx->parts.post.ops && NULL != ctx->parts.post.ops->key) {
            ctx->parts.post.ops->key(ctx->parts.post.instance, key);
        }
        ctx->have_key = true;
    } else {
        snprintf(ctx->core.net.error_text, sizeof(ctx->core.net.error_text),
                 "%s cannot get the job's key: %s", ctx->parts.host_name, r2_status_string(status));
        status = R2_ERR_SYSTEM;
    }
    sodium_memzero(key, sizeof(key));
    return status;
}

r2_status_t r2_ctx_admit(r2_ctx_t *ctx, r2_user_t user)
{
    const r2_status_t status = r2_consent_of(ctx, user);

    return R2_OK == status && !ctx->have_key ? r2_ctx_key(ctx) : status;
}

r2_status_t r2_ctx_agreed(r2_ctx_t *ctx, r2_user_t user)
{
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(&ctx->core);
    status = r2_consent_of(ctx, user);
    r2_core_leave(&ctx->core);
    return status;
}

/* Who lives where, asked once. */
static r2_status_t r2_ctx_find_hosts(r2_ctx_t *ctx)
{
    r2_status_t status = R2_OK;

    if (NULL == ctx->hosts) {
        status = r2_hosts_create(&ctx->core.net, &ctx->hosts);
        atomic_store(&ctx->crowded,
                     R2_OK == status && !r2_hosts_have_cores(ctx->hosts, ctx->core.net.rank));
    }
    return status;
}

/* All processes of the job are known. */
static r2_status_t r2_ctx_detect(r2_ctx_t *ctx)
{
    const r2_net_t *net = &ctx->core.net;
    r2_status_t status = r2_ctx_find_hosts(ctx);

    if (R2_OK == status) {
        status = r2_ctx_health_create(&ctx->core, ctx->hosts, &ctx->parts.post, &ctx->health);
    }
    if (R2_OK != status) {
        return status;
    }
    ctx->record.hosts = ctx->comms.agree.hosts = ctx->hosts;
    ctx->comms.agree.ours = r2_ctx_health_known(ctx->health);
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        if (!net->rails[i].nic.carrier) {
            r2_ctx_health_carrier(ctx->health, i, false);
        }
    }
    return R2_OK;
}

/*
 * What has no NIC to fail over is left to others, unless all processes want r2 there: as far as
 * memory makes it, among so few that this is known to be faster, or whatever it is. Every member
 * comes to the same answer: hosts are those that all published.
 */
static r2_status_t r2_ctx_admit_members(r2_ctx_t *ctx, r2_comm_t *comm)
{
    r2_status_t status = r2_ctx_admit(ctx, R2_USER_COLL);

    if (R2_OK != status || 0 != (ctx->consent.users & R2_USER_ONE_HOST_ALL)) {
        return status;
    }
    status = r2_ctx_find_hosts(ctx);
    if (R2_OK != status || !r2_hosts_together(ctx->hosts, comm->ranks, comm->size)) {
        return status;
    }
    if (0 != (ctx->consent.users & R2_USER_ONE_HOST) && comm->size <= R2_LOCAL_FEW) {
        comm->leaves = true;
        return R2_OK;
    }
    r2_debug(&ctx->core.log, "a communicator of %d processes on one host is left to others",
             comm->size);
    return R2_ERR_UNSUPPORTED;
}

r2_status_t r2_comm_create(r2_ctx_t *ctx, r2_comm_id_t id, const uint32_t *ranks, int32_t size,
                           int32_t rank, r2_comm_t **comm_p)
{
    r2_status_t status;
    r2_comm_t *comm;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    comm = r2_comm_new(&ctx->comms, ranks, size, rank);
    if (NULL == comm) {
        return R2_ERR_NO_MEMORY;
    }
    r2_core_enter(&ctx->core);
    status = r2_ctx_admit_members(ctx, comm);
    if (R2_OK == status && NULL == ctx->health && (uint32_t) size == ctx->core.net.size) {
        status = r2_ctx_detect(ctx);
    }
    if (R2_OK == status && ctx->consent.shares) {
        status = r2_ctx_find_hosts(ctx);
    }
    if (R2_OK == status) {
        status = r2_coll_local_create(comm);
    }
    if (R2_OK == status) {
        status = r2_comm_open(comm, id);
    }
    if (R2_OK != status) {
        r2_coll_local_destroy(comm);
    }
    r2_core_leave(&ctx->core);
    if (R2_OK != status) {
        r2_comm_free(comm);
        return status;
    }
    *comm_p = comm;
    return R2_OK;
}

uint32_t r2_ctx_gone_count(const r2_ctx_t *ctx)
{
    return atomic_load_explicit(&ctx->core.gone, memory_order_relaxed);
}

bool r2_ctx_is_gone(r2_ctx_t *ctx, uint32_t rank)
{
    bool gone;

    if (r2_is_forked()) {
        return false;
    }
    r2_core_enter(&ctx->core);
    gone = r2_ctx_health_says_gone(ctx->health, rank) && !r2_net_reaches(&ctx->core.net, rank);
    r2_core_leave(&ctx->core);
    return gone;
}

void r2_ctx_ask_after_lost(r2_ctx_t *ctx, uint64_t pause_ns)
{
    r2_links_t links;
    r2_link_t *link;

    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(&ctx->core);
    ctx->core.net.now_ns = r2_now_ns(ctx->core.clock);
    links = r2_core_links(&ctx->core, 0);
    while (NULL != (link = r2_links_next(&links))) {
        if (r2_link_may_ask(link, pause_ns)) {
            (void) r2_link_ask_after(link);
        }
    }
    r2_core_leave(&ctx->core);
}

r2_status_t r2_p2p_reach(r2_p2p_t *p2p, uint32_t rank)
{
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(p2p->core);
    if (rank < p2p->core->net.size) {
        status = r2_ctx_admit(r2_ctx_of(p2p->core), R2_USER_P2P);
    }
    r2_core_leave(p2p->core);
    return status;
}

r2_status_t r2_p2p_ask_after(r2_p2p_t *p2p, uint32_t rank)
{
    r2_status_t status = R2_ERR_NOT_FOUND;
    r2_link_t *link;

    if (r2_is_forked()) {
        return R2_OK;
    }
    r2_core_enter(p2p->core);
    link = rank < p2p->core->net.size ? p2p->core->net.links[rank] : NULL;
    if (NULL != link) {
        status = r2_link_ask_after(link);
    }
    r2_core_leave(p2p->core);
    return status;
}

r2_status_t r2_p2p_bind(r2_ctx_t *ctx, const r2_p2p_handlers_t *handlers, r2_p2p_t **p2p_p)
{
    r2_p2p_t *p2p;
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    status = r2_p2p_create(&ctx->core, handlers, &p2p);
    if (R2_OK != status) {
        return status;
    }
    r2_core_enter(&ctx->core);
    if (NULL == ctx->p2p) {
        ctx->p2p = p2p;
    } else {
        status = R2_ERR_PARAM;
    }
    r2_core_leave(&ctx->core);
    if (R2_OK != status) {
        r2_p2p_destroy(p2p);
        return status;
    }
    *p2p_p = p2p;
    return R2_OK;
}

void r2_p2p_unbind(r2_p2p_t *p2p)
{
    r2_core_t *core = p2p->core;

    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(core);
    r2_ctx_of(core)->p2p = NULL;
    r2_p2p_withdraw(p2p);
    r2_p2p_destroy(p2p);
    r2_core_leave(core);
}
