/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Values of processes at the PMIx server.
 */
#include "r2_config.h"

#include "oob/pmix_value.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "oob/oob.h"

/** A value that the launcher gave the whole job. NULL: none. The caller releases it. */
static pmix_value_t *r2_pmix_job_value(const char *nspace, const char *name)
{
    pmix_proc_t job;
    pmix_value_t *value = NULL;

    PMIX_LOAD_PROCID(&job, nspace, PMIX_RANK_WILDCARD);
    return PMIX_SUCCESS == PMIx_Get(&job, name, NULL, 0, &value) ? value : NULL;
}

/** Number of processes of the job. 0: not known. */
static uint32_t r2_pmix_job_size(const char *nspace)
{
    pmix_value_t *value = r2_pmix_job_value(nspace, PMIX_JOB_SIZE);
    uint32_t size = 0;

    if (NULL != value) {
        size = PMIX_UINT32 == value->type ? value->data.uint32 : 0;
        PMIX_VALUE_RELEASE(value);
    }
    return size;
}

/** Ranks of this host, comma separated. @return owned by the caller; NULL: not known. */
static char *r2_pmix_job_locals(const char *nspace)
{
    pmix_value_t *value = r2_pmix_job_value(nspace, PMIX_LOCAL_PEERS);
    char *locals = NULL;

    if (NULL != value) {
        if (PMIX_STRING == value->type && NULL != value->data.string) {
            locals = strdup(value->data.string);
        }
        PMIX_VALUE_RELEASE(value);
    }
    return locals;
}

r2_status_t r2_pmix_job_open(const char *nspace, r2_pmix_job_t *job_p)
{
    PMIX_LOAD_NSPACE(job_p->nspace, nspace);
    job_p->locals = NULL;
    job_p->size = r2_pmix_job_size(job_p->nspace);
    if (0 == job_p->size) {
        return R2_ERR_NOT_FOUND;
    }
    job_p->locals = r2_pmix_job_locals(job_p->nspace);
    return R2_OK;
}

void r2_pmix_job_close(r2_pmix_job_t *job)
{
    free(job->locals);
    job->locals = NULL;
}

/** Copies a byte object. @return R2_OK or R2_ERR_WIRE (another type, too long). */
static r2_status_t r2_pmix_copy(const pmix_value_t *value, void *to, size_t space, size_t *bytes_p)
{
    if (PMIX_BYTE_OBJECT != value->type || value->data.bo.size > space ||
        (NULL == value->data.bo.bytes && value->data.bo.size > 0)) {
        return R2_ERR_WIRE;
    }
    if (value->data.bo.size > 0) {
        memcpy(to, value->data.bo.bytes, value->data.bo.size);
    }
    *bytes_p = value->data.bo.size;
    return R2_OK;
}

/** Whoever has no such value says so; other errors are of the way there. */
static r2_status_t r2_pmix_status(pmix_status_t rc)
{
    switch (rc) {
    case PMIX_SUCCESS:
        return R2_OK;
    case PMIX_ERR_NOT_FOUND:
    case PMIX_ERR_EXISTS_OUTSIDE_SCOPE:
        return R2_ERR_NOT_FOUND;
    case PMIX_ERR_TIMEOUT:
        return R2_ERR_TIMEOUT;
    case PMIX_ERR_NOMEM:
        return R2_ERR_NO_MEMORY;
    default:
        return R2_ERR_SYSTEM;
    }
}

/** What this process has of it. */
static r2_status_t r2_pmix_get_own(const pmix_proc_t *proc, const char *name, void *to,
                                   size_t space, size_t *bytes_p)
{
    pmix_value_t *value = NULL;
    pmix_info_t info;
    bool yes = true;
    r2_status_t status;

    PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    status = r2_pmix_status(PMIx_Get(proc, name, &info, 1, &value));
    if (R2_OK == status && NULL == value) {
        status = R2_ERR_SYSTEM;
    } else if (R2_OK == status) {
        status = r2_pmix_copy(value, to, space, bytes_p);
    }
    if (NULL != value) {
        PMIX_VALUE_RELEASE(value);
    }
    return status;
}

/**
 * One request to servers. PMIX_TIMEOUT is not always kept by the server (seen with Open MPI 4.1.4
 * and PMIx 4.2.2, pmix_base_async_modex, and with PRRTE 3 where the job of the process has ended),
 * so the waiting thread has a clock of its own and may leave; whoever is last frees this. `mutex`
 * protects the rest.
 */
typedef struct r2_pmix_request {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool answered;
    bool left;
    r2_status_t status;
    size_t bytes;
    uint8_t answer[R2_OOB_BLOB_MAX];
    /* what was asked: the library may read it until it answers, which may be after our own limit */
    pmix_proc_t proc;
    char name[PMIX_MAX_KEYLEN + 1];
    pmix_info_t info[2];
} r2_pmix_request_t;

static void r2_pmix_request_free(r2_pmix_request_t *request)
{
    pthread_cond_destroy(&request->changed);
    pthread_mutex_destroy(&request->mutex);
    sodium_memzero(request->answer, sizeof(request->answer));
    free(request);
}

/** Called by PMIx's thread: copies and returns. */
static void r2_pmix_answered(pmix_status_t rc, pmix_value_t *value, void *arg)
{
    r2_pmix_request_t *request = arg;
    bool left;

    pthread_mutex_lock(&request->mutex);
    if (PMIX_SUCCESS == rc && NULL != value) {
        request->status =
            r2_pmix_copy(value, request->answer, sizeof(request->answer), &request->bytes);
    } else {
        request->status = PMIX_SUCCESS == rc ? R2_ERR_SYSTEM : r2_pmix_status(rc);
    }
    request->answered = true;
    left = request->left;
    pthread_cond_signal(&request->changed);
    pthread_mutex_unlock(&request->mutex);
    if (left) {
        r2_pmix_request_free(request);
    }
}

static r2_pmix_request_t *r2_pmix_request_new(void)
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
    return request;
}

/** Waits for the answer. The request is gone afterwards. */
static r2_status_t r2_pmix_request_wait(r2_pmix_request_t *request, void *to, size_t space,
                                        size_t *bytes_p)
{
    struct timespec until;
    r2_status_t status = R2_ERR_TIMEOUT;
    int rc = 0;
    bool answered;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += R2_PMIX_WAIT_S;
    pthread_mutex_lock(&request->mutex);
    while (!request->answered && 0 == rc) {
        rc = pthread_cond_timedwait(&request->changed, &request->mutex, &until);
    }
    answered = request->answered;
    if (answered) {
        status = request->status;
        if (R2_OK == status && request->bytes > space) {
            status = R2_ERR_WIRE;
        }
        if (R2_OK == status) {
            memcpy(to, request->answer, request->bytes);
            *bytes_p = request->bytes;
        }
    }
    request->left = true;
    pthread_mutex_unlock(&request->mutex);
    if (answered) {
        r2_pmix_request_free(request);
    }
    return status;
}

/**
 * What a server has of it, with a directive: PMIX_IMMEDIATE asks that of this host, and waits for
 * requests for the same process that are under way; PMIX_GET_REFRESH_CACHE that of the process's
 * host, for all that it has published: asked for one value that is not there, PRRTE 3 (Open MPI
 * 5.0) waits for it until the timeout.
 */
static r2_status_t r2_pmix_get_from(const pmix_proc_t *proc, const char *name,
                                    const char *directive, void *to, size_t space, size_t *bytes_p)
{
    r2_pmix_request_t *request = r2_pmix_request_new();
    int seconds = R2_PMIX_WAIT_S;
    bool yes = true;
    pmix_status_t rc;

    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    PMIX_INFO_LOAD(&request->info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_INFO_LOAD(&request->info[1], directive, &yes, PMIX_BOOL);
    request->proc = *proc;
    snprintf(request->name, sizeof(request->name), "%s", name);
    rc = PMIx_Get_nb(&request->proc, request->name, request->info, 2, r2_pmix_answered, request);
    if (PMIX_SUCCESS != rc) {
        r2_pmix_request_free(request);
        return r2_pmix_status(rc);
    }
    return r2_pmix_request_wait(request, to, space, bytes_p);
}

static bool r2_pmix_is_local(const r2_pmix_job_t *job, uint32_t rank)
{
    for (const char *at = job->locals; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at ? 1 : 0;
        if (strtoul(at, NULL, 10) == rank) {
            return true;
        }
    }
    return false;
}

r2_status_t r2_pmix_get(const r2_pmix_job_t *job, uint32_t rank, const char *name, void *to,
                        size_t space, size_t *bytes_p)
{
    pmix_proc_t proc;
    r2_status_t status;

    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    status = r2_pmix_get_own(&proc, name, to, space, bytes_p);
    if (R2_OK != status) {
        status = r2_pmix_get_from(&proc, name, PMIX_IMMEDIATE, to, space, bytes_p);
    }
    if (R2_OK != status && R2_ERR_TIMEOUT != status && !r2_pmix_is_local(job, rank)) {
        status = r2_pmix_get_from(&proc, name, PMIX_GET_REFRESH_CACHE, to, space, bytes_p);
    }
    return status;
}

r2_status_t r2_pmix_put(const char *name, const void *bytes_from, size_t bytes)
{
    pmix_value_t value;

    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *) (uintptr_t) bytes_from; /* copied by PMIx_Put() */
    value.data.bo.size = bytes;
    if (PMIX_SUCCESS != PMIx_Put(PMIX_GLOBAL, name, &value) || PMIX_SUCCESS != PMIx_Commit()) {
        return R2_ERR_SYSTEM;
    }
    return R2_OK;
}
