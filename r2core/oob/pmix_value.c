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
#include "oob/pmix_event.h"

/** Copies a byte object, a number, or a text with its end. @return R2_OK or R2_ERR_WIRE (another
 * type, too long). */
static r2_status_t r2_pmix_copy(const pmix_value_t *value, pmix_data_type_t type, void *to,
                                size_t space, size_t *bytes_p)
{
    const void *from = value->data.bo.bytes;
    size_t bytes = value->data.bo.size;

    if (type != value->type) {
        return R2_ERR_WIRE;
    }
    if (PMIX_UINT32 == type) {
        from = &value->data.uint32;
        bytes = sizeof(value->data.uint32);
    } else if (PMIX_STRING == type) {
        from = value->data.string;
        bytes = NULL == from ? 1 : strlen(from) + 1;
    }
    if (bytes > space || (NULL == from && bytes > 0)) {
        return R2_ERR_WIRE;
    }
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    *bytes_p = bytes;
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
        status = r2_pmix_copy(value, PMIX_BYTE_OBJECT, to, space, bytes_p);
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
    pmix_data_type_t type;
    char name[PMIX_MAX_KEYLEN + 1];
    char *names[2];
    pmix_info_t info[2];
    pmix_query_t query;
} r2_pmix_request_t;

static void r2_pmix_request_free(r2_pmix_request_t *request)
{
    pthread_cond_destroy(&request->changed);
    pthread_mutex_destroy(&request->mutex);
    sodium_memzero(request->answer, sizeof(request->answer));
    free(request);
}

/** The mutex is held, and released here. */
static void r2_pmix_request_answer(r2_pmix_request_t *request, r2_status_t status)
{
    const bool left = request->left;

    request->status = status;
    request->answered = true;
    pthread_cond_signal(&request->changed);
    pthread_mutex_unlock(&request->mutex);
    if (left) {
        r2_pmix_request_free(request);
    }
}

/** Called by PMIx's thread: copies and returns. */
static void r2_pmix_answered(pmix_status_t rc, pmix_value_t *value, void *arg)
{
    r2_pmix_request_t *request = arg;
    r2_status_t status = PMIX_SUCCESS == rc ? R2_ERR_SYSTEM : r2_pmix_status(rc);

    pthread_mutex_lock(&request->mutex);
    if (PMIX_SUCCESS == rc && NULL != value) {
        status = r2_pmix_copy(value, request->type, request->answer, sizeof(request->answer),
                              &request->bytes);
    }
    r2_pmix_request_answer(request, status);
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
        if (R2_OK == status && request->bytes > 0) {
            memcpy(to, request->answer, request->bytes);
        }
        if (R2_OK == status) {
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

/** The request is gone afterwards. */
static r2_status_t r2_pmix_request_ask(r2_pmix_request_t *request, size_t count, void *to,
                                       size_t space, size_t *bytes_p)
{
    static int seconds = R2_PMIX_WAIT_S;
    pmix_status_t rc;

    PMIX_INFO_LOAD(&request->info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    rc =
        PMIx_Get_nb(&request->proc, request->name, request->info, count, r2_pmix_answered, request);
    if (PMIX_SUCCESS != rc) {
        r2_pmix_request_free(request);
        return r2_pmix_status(rc);
    }
    return r2_pmix_request_wait(request, to, space, bytes_p);
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
    bool yes = true;

    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    PMIX_INFO_LOAD(&request->info[1], directive, &yes, PMIX_BOOL);
    request->proc = *proc;
    request->type = PMIX_BYTE_OBJECT;
    snprintf(request->name, sizeof(request->name), "%s", name);
    return r2_pmix_request_ask(request, 2, to, space, bytes_p);
}

/** What the launcher has told of a whole job. */
static r2_status_t r2_pmix_job_value(const char *nspace, const char *name, pmix_data_type_t type,
                                     void *to, size_t space)
{
    r2_pmix_request_t *request = r2_pmix_request_new();
    size_t bytes;

    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    PMIX_LOAD_PROCID(&request->proc, nspace, PMIX_RANK_WILDCARD);
    request->type = type;
    snprintf(request->name, sizeof(request->name), "%s", name);
    return r2_pmix_request_ask(request, 1, to, space, &bytes);
}

/** By the launcher's table of the job's processes, in which a process may be on its way out, or
 * have no state. */
static r2_status_t r2_pmix_state_of(const pmix_info_t *info, size_t count, uint32_t rank)
{
    const pmix_data_array_t *table =
        1 == count && PMIX_DATA_ARRAY == info->value.type ? info->value.data.darray : NULL;
    const pmix_proc_info_t *row = NULL;

    if (NULL == table || PMIX_PROC_INFO != table->type) {
        return R2_ERR_UNSUPPORTED;
    }
    for (size_t i = 0; NULL == row && i < table->size; ++i) {
        const pmix_proc_info_t *at = (const pmix_proc_info_t *) table->array + i;

        row = rank == at->proc.rank ? at : NULL;
    }
    if (NULL == row) {
        return R2_ERR_AGAIN;
    }
    return PMIX_PROC_STATE_RUNNING == row->state || PMIX_PROC_STATE_CONNECTED == row->state
               ? R2_OK
               : R2_ERR_AGAIN;
}

/** Called by PMIx's thread: looks and returns. */
static void r2_pmix_table_answered(pmix_status_t rc, pmix_info_t *info, size_t count, void *arg,
                                   pmix_release_cbfunc_t release, void *release_arg)
{
    r2_pmix_request_t *request = arg;
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (PMIX_SUCCESS == rc) {
        status = r2_pmix_state_of(info, count, request->proc.rank);
    } else if (PMIX_ERR_NOT_FOUND == rc) {
        status = R2_ERR_PEER_GONE;
    }
    if (NULL != release) {
        release(release_arg);
    }
    pthread_mutex_lock(&request->mutex);
    r2_pmix_request_answer(request, status);
}

r2_status_t r2_pmix_ask_after(const char *nspace, uint32_t rank)
{
    r2_pmix_request_t *request;
    char server[64];
    size_t bytes;

    if (R2_PMIX_SERVER_CARRIES != r2_pmix_server_find(server, sizeof(server))) {
        return R2_ERR_UNSUPPORTED;
    }
    request = r2_pmix_request_new();
    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    PMIX_LOAD_PROCID(&request->proc, nspace, rank);
    snprintf(request->name, sizeof(request->name), "%s", PMIX_QUERY_PROC_TABLE);
    request->names[0] = request->name;
    PMIX_LOAD_KEY(request->info[0].key, PMIX_NSPACE);
    request->info[0].value.type = PMIX_STRING;
    request->info[0].value.data.string = request->proc.nspace;
    request->query =
        (pmix_query_t){.keys = request->names, .qualifiers = request->info, .nqual = 1};
    if (PMIX_SUCCESS != PMIx_Query_info_nb(&request->query, 1, r2_pmix_table_answered, request)) {
        r2_pmix_request_free(request);
        return R2_ERR_UNSUPPORTED;
    }
    return r2_pmix_request_wait(request, NULL, 0, &bytes);
}

static r2_status_t r2_pmix_job_size(const char *nspace, uint32_t *size_p)
{
    const r2_status_t status =
        r2_pmix_job_value(nspace, PMIX_JOB_SIZE, PMIX_UINT32, size_p, sizeof(*size_p));

    if (R2_ERR_TIMEOUT == status || R2_ERR_NO_MEMORY == status) {
        return status;
    }
    return R2_OK == status && *size_p > 0 ? R2_OK : R2_ERR_NOT_FOUND;
}

/** Ranks of this host, comma separated. @param locals_p owned by the caller; NULL: not known.
 * @return R2_OK; R2_ERR_TIMEOUT, R2_ERR_NO_MEMORY. */
static r2_status_t r2_pmix_job_locals(const char *nspace, char **locals_p)
{
    char *locals = malloc(R2_OOB_BLOB_MAX);
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL != locals) {
        status = r2_pmix_job_value(nspace, PMIX_LOCAL_PEERS, PMIX_STRING, locals, R2_OOB_BLOB_MAX);
    }
    if (R2_OK == status) {
        *locals_p = locals;
        return R2_OK;
    }
    free(locals);
    return R2_ERR_TIMEOUT == status || R2_ERR_NO_MEMORY == status ? status : R2_OK;
}

r2_status_t r2_pmix_job_open(const char *nspace, r2_pmix_job_t *job_p)
{
    r2_status_t status;

    PMIX_LOAD_NSPACE(job_p->nspace, nspace);
    job_p->locals = NULL;
    status = r2_pmix_job_size(job_p->nspace, &job_p->size);
    if (R2_OK == status) {
        status = r2_pmix_job_locals(job_p->nspace, &job_p->locals);
    }
    return status;
}

void r2_pmix_job_close(r2_pmix_job_t *job)
{
    free(job->locals);
    job->locals = NULL;
}

bool r2_pmix_is_local(const r2_pmix_job_t *job, uint32_t rank)
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
