/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What users open in a context: point-to-point.
 */
#include "r2_config.h"

#include "ctx/p2p.h"
#include "ctx/state.h"

r2_status_t r2_ctx_detect(r2_ctx_t *ctx)
{
    const r2_net_t *net = &ctx->core.net;
    const r2_status_t status = r2_ctx_health_create(&ctx->core, &ctx->parts.post, &ctx->health);

    if (R2_OK != status) {
        return status;
    }
    ctx->record.hosts = ctx->health->hosts;
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        if (!net->rails[i].nic.carrier) {
            r2_ctx_health_carrier(ctx->health, i, false);
        }
    }
    return R2_OK;
}

r2_status_t r2_p2p_reach(r2_p2p_t *p2p, uint32_t rank)
{
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(p2p->core);
    if (rank < p2p->core->net.size) {
        status = r2_comm_admit(r2_ctx_of(p2p->core), R2_USER_P2P);
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
    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(p2p->core);
    r2_ctx_of(p2p->core)->p2p = NULL;
    r2_p2p_withdraw(p2p);
    r2_core_leave(p2p->core);
    r2_p2p_destroy(p2p);
}
