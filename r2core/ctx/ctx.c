/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Context: assembly from parts, and what it tells about itself.
 */
#include "r2_config.h"

#include "ctx/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ctx/remedy.h"
#include "plan/cost.h"
#include "r2/gpu.h"

/* Kept for runs to come, beside staging memory. */
#define R2_KEEP_BYTES (1u << 20)

/* From which length on GPUs reduce. */
static void r2_ctx_set_reduce(r2_ctx_t *ctx)
{
    r2_staging_t *staging = &ctx->core.engine.staging;
    const r2_cost_params_t cost = r2_cost_params(&ctx->parts.cost);
    uint64_t bytes = R2_PARAM_AUTO; /* what is wrong was said when parameters were checked */

    (void) r2_params_size(ctx->core.params.gpu_reduce_bytes, R2_DEVICE_NEVER_BYTES, &bytes);
    staging->counters = &ctx->core.counters;
    staging->reduce_bytes = R2_PARAM_AUTO == bytes ? R2_STAGING_AUTO : bytes;
    staging->host_reduce_bytes_per_s =
        (uint64_t) cost.reduce_mbytes_per_s[R2_MEM_HOST] * UINT64_C(1000000);
}

static void r2_ctx_setup(r2_ctx_t *ctx, const r2_ctx_config_t *config, const r2_ctx_parts_t *parts)
{
    r2_net_t *net = &ctx->core.net;

    pthread_mutex_init(&ctx->core.lock, NULL);
    ctx->config = *config;
    ctx->idler = (r2_idler_t){config->log, config->idle, config->idle_arg};
    ctx->core.params = *config->params;
    ctx->config.other_job = NULL; /* borrowed for the call */
    ctx->parts = *parts;
    if (parts->pair) { /* who takes part is asked of each process: r2_ctx_meet() */
        ctx->consent = (r2_consent_t){.known = true, .users = R2_USER_P2P};
    }
    ctx->epoll_fd = -1;
    ctx->core.log.level = (int) ctx->core.params.verbose;
    ctx->core.log.fn = config->log;
    ctx->core.log.arg = config->log_arg;
    ctx->core.clock = net->clock = parts->clock;
    net->params = &ctx->core.params;
    net->log = &ctx->core.log;
    net->counters = &ctx->core.counters;
    net->tp = parts->tp;
    net->hello = parts->hello;
    net->oob = parts->oob;
    net->probe = parts->probe;
    net->first_seq = parts->first_seq;
    net->epoll_fd = -1;
    r2_upcalls_bind(ctx);
    r2_engine_init(&ctx->core.engine, net, 2 * ctx->core.params.scratch_bytes + R2_KEEP_BYTES);
    r2_loans_init(&ctx->core.engine.loans, NULL == parts->gpu_driver ? NULL : &ctx->core.mem,
                  ctx->core.params.gpu_ipc_bytes);
    if (NULL != parts->gpu_driver) {
        r2_mem_init(&ctx->core.mem, parts->gpu_driver);
        r2_staging_init(&ctx->core.engine.staging, &ctx->core.mem, ctx->core.params.pinned_bytes);
        ctx->core.engine.staging.nic_bytes = ctx->core.params.gpu_nic_bytes;
        ctx->core.engine.staging.near = &ctx->parts.near;
        r2_ctx_set_reduce(ctx);
    }
    r2_record_init(&ctx->record, &ctx->core, &ctx->estimator, ctx->parts.host_name);
    r2_estimator_init(&ctx->estimator, &ctx->core, &ctx->parts.cost);
}

r2_status_t r2_ctx_publish(r2_ctx_t *ctx)
{
    const r2_net_t *net = &ctx->core.net;
    uint8_t *blob = malloc(R2_PEER_INFO_BYTES_MAX);
    r2_status_t status;
    size_t bytes;

    if (NULL == blob) {
        return R2_ERR_NO_MEMORY;
    }
    bytes = r2_peer_info_encode(&net->info, blob);
    status = net->oob.ops->publish(net->oob.instance, blob, bytes);
    r2_debug(&ctx->core.log, "publishes %zu bytes", bytes);
    free(blob);
    return status;
}

static bool r2_ctx_has_gpu(const r2_ctx_t *ctx)
{
    return NULL != ctx->core.mem.driver.library && NULL != r2_gpu_device();
}

static bool r2_ctx_lends(const r2_ctx_t *ctx)
{
    return NULL != ctx->core.mem.driver.library &&
           ctx->core.params.gpu_ipc_bytes < R2_LOAN_NONE_BYTES;
}

/* Opens devices and listeners, and tells all where they are. */
static r2_status_t r2_ctx_open(r2_ctx_t *ctx, const r2_ctx_parts_t *parts)
{
    r2_net_t *net = &ctx->core.net;
    uint8_t cost[R2_PEER_COST_BYTES];
    r2_status_t status;

    net->extra = (r2_net_extra_t){
        .users = (0 == ctx->config.users
                      ? R2_USER_COLL | R2_USER_P2P | R2_USER_ONE_HOST | R2_USER_ONE_HOST_ALL
                      : ctx->config.users) |
                 (r2_ctx_has_gpu(ctx) ? R2_USER_GPU : 0u) |
                 (r2_ctx_lends(ctx) ? R2_USER_LENDS : 0u) |
                 (parts->local && ctx->core.params.local && NULL == ctx->core.mem.driver.library
                      ? R2_USER_SHARES
                      : 0u),
        .post = parts->post_address,
        .post_bytes = (uint32_t) parts->post_address_bytes,
        .cost = cost,
        .cost_bytes = (uint32_t) r2_hosts_cost_encode(&parts->cost, cost),
        .local = parts->local && ctx->core.params.local};
    status = r2_net_init(net, parts->nics, parts->nic_count, parts->host_id, parts->host_name);
    return R2_OK == status ? r2_ctx_publish(ctx) : status;
}

/* Rails are opened in turn: the first one that is not open is the one that could not be. */
static void r2_ctx_explain_set_up(const r2_net_t *net, const r2_ctx_parts_t *parts,
                                  r2_status_t status, char *text_p, size_t text_bytes)
{
    const bool rail = net->rail_count < parts->nic_count && NULL != net->rails[net->rail_count].tp;
    const r2_failure_t failure = {
        .what = rail ? "the hello listener could not be opened" : "r2 could not be set up",
        .host_name = parts->host_name,
        .nics = rail ? &parts->nics[net->rail_count] : parts->nics,
        .nic_count = rail ? 1 : parts->nic_count,
        .error = errno,
        .status = status,
    };

    r2_failure_text(&failure, text_p, text_bytes);
}

r2_status_t r2_ctx_assemble(const r2_ctx_config_t *config, const r2_ctx_parts_t *parts,
                            r2_ctx_t **ctx_p, char *text_p, size_t text_bytes)
{
    r2_ctx_t *ctx = calloc(1, sizeof(*ctx));
    r2_net_t *net;
    r2_status_t status;

    if (NULL == ctx) {
        return R2_ERR_NO_MEMORY;
    }
    r2_ctx_setup(ctx, config, parts);
    net = &ctx->core.net;
    status = net->oob.ops->identity(net->oob.instance, &net->rank, &net->size);
    snprintf(ctx->core.log.prefix, sizeof(ctx->core.log.prefix), "%s:%u", parts->host_name,
             net->rank);
    if (R2_OK == status) {
        status = r2_comms_init(&ctx->comms, &ctx->core, &ctx->estimator, &r2_coll_agree_ops);
    }
    if (R2_OK == status && parts->clock == r2_clock_system()) {
        ctx->epoll_fd = net->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    }
    if (R2_OK == status) {
        errno = 0;
        status = r2_ctx_open(ctx, parts);
    }
    if (R2_OK != status) {
        r2_ctx_explain_set_up(net, parts, status, text_p, text_bytes);
        r2_ctx_dismantle(ctx);
        return status;
    }
    *ctx_p = ctx;
    return R2_OK;
}

void r2_ctx_dismantle(r2_ctx_t *ctx)
{
    r2_ctx_health_destroy(ctx->health);
    ctx->health = NULL;
    ctx->comms.agree.ours = NULL;
    if (NULL != ctx->hosts) {
        r2_hosts_destroy(ctx->hosts);
    }
    r2_coll_reap(&ctx->comms); /* what they await is in the net */
    r2_net_fini(&ctx->core.net);
    r2_record_fini(&ctx->record);
    r2_comms_fini(&ctx->comms);
    r2_engine_fini(&ctx->core.engine);
    r2_mem_fini(&ctx->core.mem);
    if (ctx->epoll_fd >= 0) {
        r2_fd_close(ctx->epoll_fd);
    }
    pthread_mutex_destroy(&ctx->core.lock);
    free(ctx);
}

r2_status_t r2_ctx_fence(r2_ctx_t *ctx)
{
    const r2_oob_t *oob = &ctx->core.net.oob;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    return NULL == oob->ops->fence ? R2_ERR_UNSUPPORTED : oob->ops->fence(oob->instance);
}

uint32_t r2_ctx_rank(const r2_ctx_t *ctx)
{
    return ctx->core.net.rank;
}

uint32_t r2_ctx_size(const r2_ctx_t *ctx)
{
    return ctx->core.net.size;
}

const r2_counters_t *r2_ctx_counters(const r2_ctx_t *ctx)
{
    return &ctx->core.counters;
}

/* For what only reads: the service thread may be writing, for as long as nobody wants the lock. */
static void r2_ctx_lock(const r2_ctx_t *ctx)
{
    r2_core_enter((r2_core_t *) (uintptr_t) &ctx->core);
}

static void r2_ctx_unlock(const r2_ctx_t *ctx)
{
    r2_core_leave((r2_core_t *) (uintptr_t) &ctx->core);
}

void r2_ctx_error_text(const r2_ctx_t *ctx, char *text_p, size_t text_bytes)
{
    text_p[0] = '\0';
    if (r2_is_forked()) {
        return;
    }
    r2_ctx_lock(ctx);
    snprintf(text_p, text_bytes, "%s", ctx->core.net.error_text);
    r2_ctx_unlock(ctx);
}

/** " ib0 (100000 Mbit/s, rc_verbs, down)"; virtual NICs do not tell their speed. */
static void r2_ctx_describe_nic(const r2_nic_t *nic, char *text_p, size_t text_bytes)
{
    const char *down = nic->carrier ? "" : ", down";
    const char *comma = '\0' == nic->tls[0] ? "" : ", ";

    if (0 == nic->speed_bytes_per_s) {
        snprintf(text_p, text_bytes, " %s (speed unknown%s%s%s)", nic->name, comma, nic->tls, down);
    } else {
        snprintf(text_p, text_bytes, " %s (%llu Mbit/s%s%s%s)", nic->name,
                 (unsigned long long) (nic->speed_bytes_per_s / 125000), comma, nic->tls, down);
    }
}

void r2_ctx_describe(const r2_ctx_t *ctx, char *text_p, size_t text_bytes)
{
    size_t used;

    text_p[0] = '\0';
    if (r2_is_forked()) {
        return;
    }
    r2_ctx_lock(ctx);
    snprintf(text_p, text_bytes, "%u rail%s:", ctx->core.net.rail_count,
             1 == ctx->core.net.rail_count ? "" : "s");
    for (uint32_t i = 0; i < ctx->core.net.rail_count; ++i) {
        used = strlen(text_p);
        r2_ctx_describe_nic(&ctx->core.net.rails[i].nic, text_p + used, text_bytes - used);
    }
    used = strlen(text_p);
    snprintf(text_p + used, text_bytes - used, "%s; plan %s; r2 %s",
             1 < ctx->core.net.rail_count ? "" : ", nothing to fail over to",
             '\0' == ctx->core.params.allreduce_algorithm[0] ? "by model"
                                                             : ctx->core.params.allreduce_algorithm,
             R2_VERSION);
    r2_ctx_unlock(ctx);
}

r2_status_t r2_ctx_plan_text(r2_ctx_t *ctx, char **text_p)
{
    r2_status_t status = R2_ERR_NOT_FOUND;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(&ctx->core);
    if (NULL != ctx->comms.agree.job) {
        *text_p = r2_record_plan_text(&ctx->record);
        status = NULL == *text_p ? R2_ERR_NO_MEMORY : R2_OK;
        if (R2_OK == status && r2_agree_map_pending(ctx->comms.agree.job)) {
            status = R2_ERR_AGAIN;
        }
    }
    r2_core_leave(&ctx->core);
    return status;
}

const r2_health_map_t *r2_ctx_health_map(const r2_ctx_t *ctx)
{
    return r2_ctx_health_known(ctx->health);
}
