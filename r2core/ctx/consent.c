/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether all processes of the job take part.
 *
 * A communicator whose members do not all select r2 waits for ever, so nobody decides for itself:
 * each process publishes which components it has (none: and why), before the launcher's fence, and
 * after it all of them draw the same conclusion from the same words. What one of them cannot read,
 * or has no memory for, is an error that ends the job and says so: that process would come to
 * another conclusion than the rest.
 */
#include "r2_config.h"

#include "ctx/consent.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctx/host_id.h"
#include "ctx/state.h"
#include "link/peer_info.h"

/* The launcher may be busy; each try waits for some seconds (oob/pmix.c). */
#define R2_CONSENT_TRIES 3

#define R2_CONSENT_USERS 2 /* components that may have r2 */

/* Published beside the users, and none of them. */
#define R2_CONSENT_FACTS ((uint32_t) (R2_USER_GPU | R2_USER_SHARES | R2_USER_LENDS | R2_USER_JOBS))

/** What was read so far. */
typedef struct r2_consent_poll {
    uint32_t users;                     /* what all have */
    uint32_t lacking[R2_CONSENT_USERS]; /* the first rank without; UINT32_MAX: none */
    uint32_t having[R2_CONSENT_USERS];  /* the first rank with it; the same */
    uint32_t first;                     /* the first rank that takes part; the same */
    bool gpu;                           /* somebody has one whose memory r2 can read */
    bool lends;                         /* somebody offers memory of GPUs */
    bool apart;                         /* somebody does not share memory within its host */
    bool told;                          /* rank 0 refused, and said so itself */
    bool one_host;                      /* all that take part are on one host */
    char blob[R2_OOB_BLOB_MAX];
} r2_consent_poll_t;

/** What one process published. */
typedef struct r2_consent_answer {
    uint32_t users;   /* 0: it takes no part */
    uint64_t host_id; /* if it does */
    size_t bytes;     /* in the poll's blob; 0: nothing, or it is ours */
} r2_consent_answer_t;

const char *r2_consent_name(r2_user_t user)
{
    return 0 != (user & R2_USER_COLL) ? "coll/r2" : "btl/r2";
}

r2_status_t r2_consent_refuse(const r2_oob_t *oob, const char *host_name, const char *why,
                              bool expected)
{
    r2_peer_refusal_t refusal = {.expected = expected};
    uint8_t blob[sizeof(refusal) + 64];
    r2_status_t status = R2_ERR_SYSTEM;
    size_t bytes;

    static_assert(sizeof(blob) <= R2_PEER_INFO_BYTES_MAX, "a refusal fits");
    snprintf(refusal.host_name, sizeof(refusal.host_name), "%s", host_name);
    snprintf(refusal.why, sizeof(refusal.why), "%s", why);
    bytes = r2_peer_refusal_encode(&refusal, blob);
    for (int i = 0; i < R2_CONSENT_TRIES && R2_OK != status; ++i) {
        status = oob->ops->publish(oob->instance, blob, bytes);
    }
    return status;
}

static r2_status_t r2_consent_publish(r2_ctx_t *ctx)
{
    r2_status_t status = R2_ERR_SYSTEM;

    for (int i = 0; i < R2_CONSENT_TRIES && R2_OK != status; ++i) {
        status = r2_ctx_publish(ctx);
    }
    return status;
}

r2_status_t r2_consent_join(r2_ctx_t *ctx, uint32_t users)
{
    const uint32_t before = ctx->core.net.info.users;
    r2_status_t status;

    ctx->core.net.info.users |= users;
    status = r2_consent_publish(ctx);
    if (R2_OK == status) {
        return R2_OK;
    }
    ctx->core.net.info.users = before;
    return R2_OK == r2_consent_publish(ctx) ? status : R2_ERR_UNTOLD; /* they may have read it */
}

r2_status_t r2_consent_withdraw(r2_ctx_t *ctx, r2_user_t user)
{
    r2_status_t status;

    ctx->core.net.info.users &= ~(uint32_t) user;
    if (R2_USER_COLL == user) {
        ctx->core.net.info.users &= ~(uint32_t) (R2_USER_ONE_HOST | R2_USER_ONE_HOST_ALL);
    }
    if (0 == (ctx->core.net.info.users & ~R2_CONSENT_FACTS)) {
        ctx->core.net.info.users = 0;
    }
    if (0 == ctx->core.net.info.users) {
        status =
            r2_consent_refuse(&ctx->core.net.oob, ctx->parts.host_name, "out of memory", false);
    } else {
        status = r2_consent_publish(ctx);
    }
    return R2_OK == status ? R2_OK : R2_ERR_UNTOLD;
}

/** Asks a rank. @return R2_OK, or an error of this process. */
static r2_status_t r2_consent_request(const r2_ctx_t *ctx, uint32_t rank, r2_consent_poll_t *poll,
                                      r2_consent_answer_t *answer_p)
{
    const r2_oob_t *oob = &ctx->core.net.oob;
    r2_status_t status = R2_ERR_TIMEOUT;

    *answer_p = (r2_consent_answer_t){.host_id = ctx->core.net.info.host_id};
    if (rank == ctx->core.net.rank) {
        answer_p->users = ctx->core.net.info.users;
        return R2_OK;
    }
    for (int i = 0; i < R2_CONSENT_TRIES && R2_OK != status && R2_ERR_NOT_FOUND != status; ++i) {
        status = oob->ops->lookup(oob->instance, rank, poll->blob, &answer_p->bytes);
    }
    if (R2_OK == status &&
        R2_OK != r2_peer_users(poll->blob, answer_p->bytes, &answer_p->users, &answer_p->host_id)) {
        answer_p->users = 0; /* of another version */
    }
    return R2_ERR_NOT_FOUND == status ? R2_OK : status;
}

static void r2_consent_count(r2_consent_poll_t *poll, uint32_t rank, uint32_t users)
{
    for (uint32_t i = 0; i < R2_CONSENT_USERS; ++i) {
        uint32_t *at = 0 == (users & 1u << i) ? &poll->lacking[i] : &poll->having[i];

        *at = r2_min(*at, rank);
    }
    poll->users &= users & ~R2_CONSENT_FACTS;
    poll->apart = poll->apart || 0 == (users & R2_USER_SHARES);
    poll->gpu = poll->gpu || 0 != (users & R2_USER_GPU);
    poll->lends = poll->lends || 0 != (users & R2_USER_LENDS);
    poll->first = r2_min(poll->first, 0 != users ? rank : UINT32_MAX);
}

/* As far as it matters: until nothing is left that all have, and it is known who tells. */
static r2_status_t r2_consent_poll(r2_ctx_t *ctx, r2_consent_poll_t *poll)
{
    r2_net_t *net = &ctx->core.net;

    for (uint32_t rank = 0; rank < net->size && (0 != poll->users || UINT32_MAX == poll->first);
         ++rank) {
        r2_peer_refusal_t refusal;
        r2_consent_answer_t answer;
        const r2_status_t status = r2_consent_request(ctx, rank, poll, &answer);

        if (R2_OK != status) {
            snprintf(net->error_text, sizeof(net->error_text),
                     "%s cannot find out whether process %u takes part in r2: %s",
                     ctx->parts.host_name, rank, r2_status_string(status));
            return status;
        }
        r2_consent_count(poll, rank, answer.users);
        poll->one_host =
            poll->one_host && r2_host_machine(answer.host_id) == r2_host_machine(net->info.host_id);
        poll->told =
            poll->told ||
            (0 == rank && R2_OK == r2_peer_refusal_decode(poll->blob, answer.bytes, &refusal));
    }
    return R2_OK;
}

/* "host n7: no NIC matches..."; "process 3 on n7 does not use btl/r2". @return false: as it is to
 * be expected there. */
static bool r2_consent_reason(const r2_ctx_t *ctx, r2_consent_poll_t *poll, uint32_t rank,
                              r2_user_t user, char *text_p, size_t text_bytes)
{
    const r2_oob_t *oob = &ctx->core.net.oob;
    char host[R2_PEER_HOST_NAME_MAX] = "another host";
    r2_peer_refusal_t refusal;
    r2_consent_answer_t answer;
    const bool asked = R2_OK == r2_consent_request(ctx, rank, poll, &answer);

    if (asked && R2_OK == r2_peer_refusal_decode(poll->blob, answer.bytes, &refusal)) {
        snprintf(text_p, text_bytes, "%s: %s", refusal.host_name, refusal.why);
        return !refusal.expected;
    }
    if (NULL != oob->ops->host) {
        oob->ops->host(oob->instance, rank, host, sizeof(host));
    }
    if (0 == answer.users && 0 != answer.bytes) {
        snprintf(text_p, text_bytes, "process %u on %s has another version of r2", rank, host);
    } else {
        snprintf(text_p, text_bytes, "process %u on %s did not ask for %s, or does not have it",
                 rank, host, 0 == answer.users ? "r2" : r2_consent_name(user));
    }
    return true;
}

/* @param lacking the first rank that keeps the job from it. */
static void r2_consent_tell(const r2_ctx_t *ctx, r2_consent_poll_t *poll, r2_user_t user,
                            uint32_t lacking)
{
    char text[768];
    const bool unexpected = r2_consent_reason(ctx, poll, lacking, user, text, sizeof(text));

    r2_log_at(&ctx->core.log, unexpected || ctx->config.named ? R2_LOG_WARN : R2_LOG_INFO,
              "this job does without %s: %s", 0 == poll->users ? "r2" : r2_consent_name(user),
              text);
}

/* One line where the job does without r2 at all, one for each user that is left out of it
 * otherwise. */
static void r2_consent_conclude(const r2_ctx_t *ctx, r2_consent_poll_t *poll)
{
    const uint32_t users = poll->users, own = ctx->core.net.rank;

    for (uint32_t i = 0; i < R2_CONSENT_USERS && !poll->told; ++i) {
        if (UINT32_MAX != poll->lacking[i] && poll->having[i] == own &&
            (0 != users || poll->first == own)) {
            r2_consent_tell(ctx, poll, (r2_user_t) (1u << i), poll->lacking[i]);
            poll->told = 0 == users;
        }
    }
}

/*
 * A job on one host has no NIC to fail over: r2 makes what memory does there, if its processes
 * share some. Where there are GPUs it makes all.
 */
static void r2_consent_place(const r2_ctx_t *ctx, r2_consent_poll_t *poll)
{
    const r2_net_t *net = &ctx->core.net;

    if (poll->gpu && 0 != (poll->users & R2_USER_COLL)) { /* others cannot read such memory */
        poll->users |= R2_USER_ONE_HOST | R2_USER_ONE_HOST_ALL;
    }
    if (poll->apart && 0 == (poll->users & R2_USER_ONE_HOST_ALL)) {
        poll->users &= ~(uint32_t) R2_USER_ONE_HOST;
    }
    if (!poll->one_host || R2_USER_COLL != (poll->users & (R2_USER_COLL | R2_USER_ONE_HOST))) {
        return;
    }
    poll->users &= ~(uint32_t) R2_USER_COLL;
    if (0 == net->rank) {
        r2_info(&ctx->core.log,
                "this job does without %s: all %u processes are on one host, where no NIC can fail "
                "(coll_r2_single_host)",
                0 == poll->users ? "r2" : r2_consent_name(R2_USER_COLL), net->size);
    }
}

r2_status_t r2_consent_find(r2_ctx_t *ctx)
{
    r2_consent_poll_t *poll;
    r2_status_t status;

    if (ctx->consent.known) {
        return R2_OK;
    }
    poll = malloc(sizeof(*poll));
    if (NULL == poll) {
        snprintf(ctx->core.net.error_text, sizeof(ctx->core.net.error_text),
                 "%s has no memory left", ctx->parts.host_name);
        return R2_ERR_NO_MEMORY;
    }
    memset(poll, 0xff, offsetof(r2_consent_poll_t, gpu)); /* everybody so far, nobody yet */
    poll->gpu = poll->lends = poll->apart = poll->told = false;
    poll->one_host = true;
    status = r2_consent_poll(ctx, poll);
    if (R2_OK == status) {
        r2_consent_conclude(ctx, poll);
        r2_consent_place(ctx, poll);
        ctx->consent.known = true;
        ctx->consent.users = poll->users;
        ctx->consent.shares = !poll->apart && !poll->gpu;
        ctx->core.engine.loans.enabled = poll->lends;
        ctx->core.engine.loans.of_host = ctx->consent.shares;
    }
    free(poll);
    return status;
}

r2_status_t r2_consent_of(r2_ctx_t *ctx, r2_user_t user)
{
    const r2_status_t status = r2_consent_find(ctx);

    if (R2_OK != status) {
        return status;
    }
    return 0 != (ctx->consent.users & (uint32_t) user) ? R2_OK : R2_ERR_UNSUPPORTED;
}
