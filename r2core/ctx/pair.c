/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Contexts for what passes between two jobs: who of the other one takes part.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <time.h>

#include "ctx/state.h"

#define R2_MEET_PAUSE_NS (2 * R2_NS_PER_MS) /* between two questions to the launcher */

uint32_t r2_ctx_other_rank(const r2_ctx_t *ctx, uint32_t rank)
{
    return r2_oob_pair_first(&ctx->core.net.oob) + rank;
}

/* What it published for this job; first whether it has anything to publish at all. Without btl/r2
 * it never says anything. @return R2_ERR_AGAIN: nothing so far. */
static r2_status_t r2_pair_ask(r2_ctx_t *ctx, uint32_t rank, bool at_home, void *blob)
{
    const r2_oob_t *oob = &ctx->core.net.oob;
    uint64_t host_id;
    uint32_t users = 0;
    size_t bytes = 0;
    r2_status_t status;

    r2_core_enter(&ctx->core);
    status = at_home ? r2_oob_pair_home(oob, rank, blob, &bytes)
                     : oob->ops->lookup(oob->instance, r2_ctx_other_rank(ctx, rank), blob, &bytes);
    r2_core_leave(&ctx->core);
    if (R2_ERR_NOT_FOUND == status && at_home) {
        return R2_ERR_UNSUPPORTED;
    }
    if (R2_OK != status) {
        return R2_ERR_AGAIN;
    }
    return R2_OK == r2_peer_users(blob, bytes, &users, &host_id) && 0 != (users & R2_USER_P2P)
               ? R2_OK
               : R2_ERR_UNSUPPORTED;
}

r2_status_t r2_ctx_meet(r2_ctx_t *ctx, uint32_t rank)
{
    const struct timespec pause = {0, R2_MEET_PAUSE_NS};
    const r2_clock_t *clock = ctx->parts.clock;
    const uint64_t until_ns = r2_now_ns(clock) + R2_MEET_S * R2_NS_PER_S;
    void *blob = malloc(R2_OOB_BLOB_MAX);
    r2_status_t status = NULL == blob ? R2_ERR_NO_MEMORY : R2_ERR_AGAIN;
    bool at_home = true;

    while (R2_ERR_AGAIN == status) {
        status = r2_pair_ask(ctx, rank, at_home, blob);
        if (R2_OK == status && at_home) {
            at_home = false;
            status = R2_ERR_AGAIN;
        } else if (R2_ERR_AGAIN == status) {
            status = r2_now_ns(clock) < until_ns ? R2_ERR_AGAIN : R2_ERR_TIMEOUT;
            nanosleep(&pause, NULL);
        }
    }
    free(blob);
    return status;
}

void r2_ctx_refuse_job(const r2_ctx_config_t *config, const char *why)
{
    r2_ctx_decline(config, why);
}
