/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Contexts for what passes between two jobs: who of the other one takes part.
 */
#include "r2_config.h"

#include <sodium.h>
#include <stdlib.h>

#include "ctx/state.h"

uint32_t r2_ctx_other_rank(const r2_ctx_t *ctx, uint32_t rank)
{
    return r2_oob_pair_first(&ctx->core.net.oob) + rank;
}

/* Without btl/r2, or with another number of other jobs, it never says anything: what it published
 * for its own job tells. */
static r2_status_t r2_pair_ask_home(const r2_oob_t *oob, uint32_t rank, void *blob)
{
    const uint32_t needed = R2_USER_P2P | R2_USER_JOBS;
    uint64_t host_id;
    uint32_t users = 0;
    size_t bytes = 0;
    r2_status_t status = r2_oob_pair_home(oob, rank, blob, &bytes);

    if (R2_OK != status) {
        return R2_ERR_NOT_FOUND == status ? R2_ERR_UNSUPPORTED : status;
    }
    return R2_OK == r2_peer_users(blob, bytes, &users, &host_id) && needed == (users & needed)
               ? R2_OK
               : R2_ERR_UNSUPPORTED;
}

r2_status_t r2_ctx_let_in(r2_ctx_t *ctx)
{
    uint8_t key[R2_JOB_KEY_BYTES];
    r2_status_t status;
    bool done;

    r2_core_enter(&ctx->core);
    done = ctx->have_key;
    r2_core_leave(&ctx->core);
    if (done) {
        return R2_OK;
    }
    status = r2_oob_pair_ask_key(&ctx->core.net.oob, key);
    if (R2_OK == status) {
        r2_core_enter(&ctx->core);
        r2_oob_pair_keep_key(&ctx->core.net.oob, key);
        status = r2_ctx_admit(ctx, R2_USER_P2P);
        r2_core_leave(&ctx->core);
    }
    sodium_memzero(key, sizeof(key));
    return status;
}

static r2_status_t r2_pair_keep(r2_ctx_t *ctx, uint32_t rank, const void *blob, size_t bytes)
{
    r2_status_t status = r2_ctx_let_in(ctx);

    if (R2_OK == status) {
        r2_core_enter(&ctx->core);
        status = r2_oob_pair_keep(&ctx->core.net.oob, rank, blob, bytes);
        r2_core_leave(&ctx->core);
    }
    return status;
}

/* What it published for this job, or that it does without. */
static r2_status_t r2_pair_ask(r2_ctx_t *ctx, uint32_t rank, void *blob)
{
    uint64_t host_id;
    uint32_t users = 0;
    size_t bytes = 0;
    r2_status_t status = r2_oob_pair_ask(&ctx->core.net.oob, rank, blob, &bytes);

    if (R2_OK != status) {
        return R2_ERR_NOT_FOUND == status ? R2_ERR_AGAIN : status;
    }
    return R2_OK == r2_peer_users(blob, bytes, &users, &host_id) && 0 != (users & R2_USER_P2P)
               ? r2_pair_keep(ctx, rank, blob, bytes)
               : R2_ERR_UNSUPPORTED;
}

/* The launcher is asked without the engine lock: the service thread has others to look after. Where
 * it needs longer than its limit for any of its answers nothing is known of the process. */
r2_status_t r2_ctx_meet(r2_ctx_t *ctx, uint32_t rank)
{
    void *blob = malloc(R2_OOB_BLOB_MAX);
    r2_status_t status;

    if (NULL == blob) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_pair_ask_home(&ctx->core.net.oob, rank, blob);
    if (R2_OK == status) {
        status = r2_pair_ask(ctx, rank, blob);
    }
    free(blob);
    return R2_ERR_TIMEOUT == status ? R2_ERR_AGAIN : status;
}

bool r2_ctx_other_ended(const r2_ctx_t *ctx)
{
    return r2_oob_pair_other_ended(&ctx->core.net.oob);
}

void r2_ctx_meet_callers(r2_ctx_t *ctx)
{
    r2_oob_t *oob = &ctx->core.net.oob;
    uint32_t rank;
    bool more = r2_oob_pair_lacks(oob);

    while (more) {
        r2_core_enter(&ctx->core);
        more = r2_oob_pair_next_lack(oob, &rank);
        r2_core_leave(&ctx->core);
        if (more) {
            (void) r2_ctx_meet(ctx, rank); /* if not now it calls again */
        }
    }
}

r2_status_t r2_ctx_refuse_job(const r2_ctx_config_t *config, const char *why)
{
    return r2_ctx_decline(config, why);
}
