/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The context that the components of a process share: who has it, and who has not.
 */
#include "r2_config.h"

#include <stdio.h>

#include "base/fork.h"
#include "ctx/state.h"

/** The context that the components of this process share. */
static struct {
    r2_ctx_t *ctx; /* owned; NULL: nobody uses it */
    uint32_t users;
    r2_status_t refused; /* R2_OK, or why this process, and so the job, does without */
} r2_shared;

static void r2_ctx_set_idler(r2_ctx_t *ctx, r2_idler_t idler)
{
    ctx->idler = idler;
    ctx->config.idle_arg = idler.arg;
    ctx->config.idle = idler.idle;
}

/* From now on its `idle` is called, and when that is forgotten, the one before. Engine lock. */
static void r2_ctx_add_idler(r2_ctx_t *ctx, const r2_ctx_config_t *config)
{
    if (NULL != config->idle) {
        ctx->other_idler = ctx->idler;
        r2_ctx_set_idler(ctx, (r2_idler_t){config->log, config->idle, config->idle_arg});
    }
}

/* Either of both may go first. */
static void r2_ctx_drop_idler(r2_ctx_t *ctx, r2_log_fn_t log)
{
    r2_core_enter(&ctx->core);
    if (log == ctx->idler.log) {
        r2_ctx_set_idler(ctx, ctx->other_idler);
        ctx->other_idler = (r2_idler_t){.idle = NULL};
    } else if (log == ctx->other_idler.log) {
        ctx->other_idler = (r2_idler_t){.idle = NULL};
    }
    r2_core_leave(&ctx->core);
}

/* Another component has it, too. @param text_p on error: why. */
static r2_status_t r2_ctx_join(r2_ctx_t *ctx, const r2_ctx_config_t *config, char *text_p,
                               size_t text_bytes)
{
    const char *name = r2_consent_name((r2_user_t) config->users);
    r2_status_t status;

    r2_core_enter(&ctx->core);
    ctx->config.named = ctx->config.named || config->named;
    status = r2_consent_join(ctx, config->users);
    if (R2_OK == status) { /* who does not join may be unloaded */
        r2_ctx_add_idler(ctx, config);
        ctx->config.yields = NULL != config->yields ? config->yields : ctx->config.yields;
    }
    r2_core_leave(&ctx->core);
    if (R2_OK == status) {
        return R2_OK;
    }
    snprintf(text_p, text_bytes, "that this process has %s could not be published", name);
    if (R2_ERR_UNTOLD != status) { /* else the component ends the job, and says why */
        r2_log_at(&ctx->core.log, R2_LOG_WARN, "this job does without %s: %s: %s: %s", name,
                  ctx->parts.host_name, text_p, r2_status_string(status));
    }
    return status;
}

r2_status_t r2_ctx_withdraw(r2_ctx_t *ctx, r2_user_t user)
{
    r2_status_t status;

    r2_core_enter(&ctx->core);
    status = r2_consent_withdraw(ctx, user);
    r2_core_leave(&ctx->core);
    return status;
}

void r2_ctx_refuse(const r2_ctx_config_t *config, const char *why)
{
    const r2_ctx_t *ctx = r2_shared.ctx;

    if (NULL == ctx && R2_OK == r2_shared.refused) {
        r2_shared.refused = R2_ERR_PARAM;
        (void) r2_ctx_decline(config, why);
        /* another component has it: this one is missing in what is published */
    } else if (NULL != ctx) {
        r2_log_at(&ctx->core.log, 0 == ctx->core.net.rank ? R2_LOG_WARN : R2_LOG_INFO,
                  "this job does without %s: %s: %s", r2_consent_name((r2_user_t) config->users),
                  ctx->parts.host_name, why);
    }
}

r2_status_t r2_ctx_acquire(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p,
                           size_t text_bytes)
{
    r2_status_t status = r2_shared.refused;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    if (R2_OK != status) {
        return status;
    }
    if (NULL == r2_shared.ctx) {
        status = r2_ctx_create(config, &r2_shared.ctx, text_p, text_bytes);
        r2_shared.refused = status;
    } else {
        status = r2_ctx_join(r2_shared.ctx, config, text_p, text_bytes);
    }
    if (R2_OK == status) {
        ++r2_shared.users;
        *ctx_p = r2_shared.ctx;
    }
    return status;
}

void r2_ctx_release(r2_ctx_t *ctx, r2_log_fn_t log)
{
    if (r2_is_forked()) {
        return;
    }
    r2_assert(ctx == r2_shared.ctx);
    if (0 == --r2_shared.users) {
        r2_shared.ctx = NULL;
        r2_ctx_destroy(ctx);
        return;
    }
    r2_ctx_drop_idler(ctx, log); /* the component may be unloaded */
    r2_ctx_forget_log(ctx, log);
}
