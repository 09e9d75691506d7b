/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Questions to the PMIx server: one of each, and who is last frees it.
 */
#include "r2_config.h"

#include "oob/pmix_request.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

struct r2_pmix_asked {
    pthread_mutex_t mutex;       /* protects the list; before the mutex of a request */
    r2_pmix_request_t *requests; /* owned list */
};

static void r2_pmix_request_free(r2_pmix_request_t *request)
{
    pthread_cond_destroy(&request->changed);
    pthread_mutex_destroy(&request->mutex);
    sodium_memzero(request->answer, sizeof(request->answer));
    free(request);
}

/** Nobody waits for it any more. */
static void r2_pmix_request_leave(r2_pmix_request_t *request)
{
    bool answered;

    pthread_mutex_lock(&request->mutex);
    answered = request->answered;
    request->left = true;
    pthread_mutex_unlock(&request->mutex);
    if (answered) {
        r2_pmix_request_free(request);
    }
}

r2_pmix_asked_t *r2_pmix_asked_new(void)
{
    r2_pmix_asked_t *asked = calloc(1, sizeof(*asked));

    if (NULL != asked) {
        pthread_mutex_init(&asked->mutex, NULL);
    }
    return asked;
}

void r2_pmix_asked_free(r2_pmix_asked_t *asked)
{
    r2_pmix_request_t *request, *next;

    if (NULL == asked) {
        return;
    }
    DL_FOREACH_SAFE(asked->requests, request, next) {
        DL_DELETE(asked->requests, request);
        r2_pmix_request_leave(request);
    }
    pthread_mutex_destroy(&asked->mutex);
    free(asked);
}

static bool r2_pmix_request_is(const r2_pmix_request_t *request, const pmix_proc_t *proc,
                               const char *name, const char *directive)
{
    return proc->rank == request->proc.rank && 0 == strcmp(proc->nspace, request->proc.nspace) &&
           0 == strcmp(name, request->name) && 0 == strcmp(directive, request->directive);
}

/** Takes it off the list. NULL: none. */
static r2_pmix_request_t *r2_pmix_asked_take(r2_pmix_asked_t *asked, const pmix_proc_t *proc,
                                             const char *name, const char *directive)
{
    r2_pmix_request_t *request;

    pthread_mutex_lock(&asked->mutex);
    DL_FOREACH(asked->requests, request) {
        if (r2_pmix_request_is(request, proc, name, directive)) {
            break;
        }
    }
    if (NULL != request) {
        DL_DELETE(asked->requests, request);
    }
    pthread_mutex_unlock(&asked->mutex);
    return request;
}

/** An answer that came when nobody waited may have been overtaken, unless it is a value: those do
 * not change, other than who runs (PMIX_QUERY_PROC_TABLE). */
static bool r2_pmix_request_is_stale(r2_pmix_request_t *request)
{
    bool stale;

    pthread_mutex_lock(&request->mutex);
    stale = request->answered && (R2_OK != request->status || NULL != request->query.keys);
    pthread_mutex_unlock(&request->mutex);
    return stale;
}

/** Has the server dropped it, as far as one can tell? Only of tables a new question goes to the
 * server while there is no answer to the old one. */
static bool r2_pmix_request_is_lost(const r2_pmix_request_t *request)
{
    return NULL != request->query.keys && request->waits >= request->patience;
}

static r2_pmix_request_t *r2_pmix_request_new(const pmix_proc_t *proc, const char *name,
                                              const char *directive)
{
    r2_pmix_request_t *request = calloc(1, sizeof(*request));
    pthread_condattr_t attributes;

    if (NULL == request) {
        return NULL;
    }
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&request->mutex, NULL);
    pthread_cond_init(&request->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    request->proc = *proc;
    snprintf(request->name, sizeof(request->name), "%s", name);
    snprintf(request->directive, sizeof(request->directive), "%s", directive);
    return request;
}

r2_pmix_request_t *r2_pmix_request_get(r2_pmix_asked_t *asked, const pmix_proc_t *proc,
                                       const char *name, const char *directive)
{
    r2_pmix_request_t *request = r2_pmix_asked_take(asked, proc, name, directive);
    uint32_t patience = R2_PMIX_PATIENCE;

    if (NULL != request && r2_pmix_request_is_stale(request)) {
        r2_pmix_request_free(request);
        request = NULL;
    } else if (NULL != request && r2_pmix_request_is_lost(request)) {
        patience = 2 * request->patience;
        r2_pmix_request_leave(request);
        request = NULL;
    }
    if (NULL == request) {
        request = r2_pmix_request_new(proc, name, directive);
        if (NULL != request) {
            request->patience = patience;
        }
    }
    return request;
}

bool r2_pmix_request_is_asked(r2_pmix_request_t *request)
{
    bool asked;

    pthread_mutex_lock(&request->mutex);
    asked = request->asked;
    pthread_mutex_unlock(&request->mutex);
    return asked;
}

void r2_pmix_request_goes(r2_pmix_request_t *request)
{
    pthread_mutex_lock(&request->mutex);
    request->asked = true;
    pthread_mutex_unlock(&request->mutex);
}

void r2_pmix_request_drop(r2_pmix_request_t *request)
{
    r2_pmix_request_free(request);
}

void r2_pmix_request_answer(r2_pmix_request_t *request, r2_status_t status)
{
    bool left;

    pthread_mutex_lock(&request->mutex);
    left = request->left;
    request->status = status;
    request->answered = true;
    pthread_cond_signal(&request->changed);
    pthread_mutex_unlock(&request->mutex);
    if (left) {
        r2_pmix_request_free(request);
    }
}

/** Waits. @return whether there is an answer. */
static bool r2_pmix_request_comes(r2_pmix_request_t *request)
{
    struct timespec until;
    int rc = 0;
    bool answered;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += R2_PMIX_WAIT_S;
    pthread_mutex_lock(&request->mutex);
    while (!request->answered && 0 == rc) {
        rc = pthread_cond_timedwait(&request->changed, &request->mutex, &until);
    }
    answered = request->answered;
    pthread_mutex_unlock(&request->mutex);
    return answered;
}

r2_status_t r2_pmix_request_wait(r2_pmix_asked_t *asked, r2_pmix_request_t *request, void *to,
                                 size_t space, size_t *bytes_p)
{
    r2_status_t status;

    if (!r2_pmix_request_comes(request)) {
        ++request->waits;
        pthread_mutex_lock(&asked->mutex);
        DL_APPEND(asked->requests, request);
        pthread_mutex_unlock(&asked->mutex);
        return R2_ERR_TIMEOUT;
    }
    status = request->status;
    if (R2_OK == status && request->bytes > space) {
        status = R2_ERR_WIRE;
    }
    if (R2_OK == status) {
        if (request->bytes > 0) {
            memcpy(to, request->answer, request->bytes);
        }
        *bytes_p = request->bytes;
    }
    r2_pmix_request_free(request);
    return status;
}
