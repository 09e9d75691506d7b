/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Consent: whether all processes of the job take part. One decision, from what all of them
 * published.
 */
#ifndef R2_CTX_CONSENT_H
#define R2_CTX_CONSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/logger.h"
#include "oob/oob.h"
#include "r2/ctx.h"

struct r2_ctx;

/** What the job decided. Equal on all processes that know it. */
typedef struct r2_consent {
    bool known;     /* all processes were asked */
    uint32_t users; /* bits of r2_user_t: what all of them have, and the job has use for */
    bool shares;    /* all of them share memory within hosts, and have none of a GPU */
} r2_consent_t;

/** "coll/r2" */
const char *r2_consent_name(r2_user_t user);

/**
 * Publishes that further users have this process's context. Before the launcher's fence. Engine
 * lock.
 * @param users bits of r2_user_t.
 * @return R2_OK; R2_ERR_UNTOLD: it could not be published, nor that it is as before, so others may
 * count on them; else an error, and others see what they saw before.
 */
r2_status_t r2_consent_join(r2_ctx_t *ctx, uint32_t users);

/**
 * Publishes that a user of this process's context is not there after all. Before the launcher's
 * fence. @return R2_OK; R2_ERR_UNTOLD: it could not be published.
 */
r2_status_t r2_consent_withdraw(r2_ctx_t *ctx, r2_user_t user);

/**
 * Publishes that this process takes no part: then none of the job does. Before the launcher's
 * fence.
 * @param why for the user: what keeps this process out. @param expected nothing is wrong with the
 * host.
 */
r2_status_t r2_consent_refuse(const r2_oob_t *oob, const char *host_name, const char *why,
                              bool expected);

/**
 * Makes the decision, on first use; after the launcher's fence. Rank 0 logs why, if the job does
 * without r2; if rank 0 has nothing of r2, the first rank that has. Engine lock.
 * @return R2_OK: ctx->consent is known; else this process could not find out what the others have:
 * it must end the job, or it would disagree with them. net.error_text says what happened.
 */
r2_status_t r2_consent_find(struct r2_ctx *ctx);

/** Does the job take part? @return R2_OK, R2_ERR_UNSUPPORTED (no: all agree), or as
 * r2_consent_find(). Engine lock. */
r2_status_t r2_consent_of(struct r2_ctx *ctx, r2_user_t user);

#endif
