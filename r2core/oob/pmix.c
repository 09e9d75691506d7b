/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchange through the job's PMIx server. The only file that uses PMIx.
 */
#include "r2_config.h"

#include "oob/oob.h"

#include <pmix.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "rail/hello.h"

/*
 * Put and commit before the launcher's fence, get after it. No PMIx event is ever sent: some
 * servers do not survive one. PMIx_Init() and PMIx_Finalize() count references, beside those of
 * MPI.
 */

#define R2_PMIX_BLOB_KEY "r2.blob"
#define R2_PMIX_JOB_KEY  "r2.key"
#define R2_PMIX_WAIT_S   10 /* for a value that the fence did not bring */

/** The instance. PMIx calls are thread safe; the rest is constant after create. */
typedef struct r2_oob_pmix {
    pmix_proc_t self;
    uint32_t size;
    char *locals;                  /* owned: ranks of this host, "0,2" */
    uint8_t key[R2_JOB_KEY_BYTES]; /* rank 0 only */
} r2_oob_pmix_t;

/** A value that the launcher gave the whole job. NULL: none. The caller releases it. */
static pmix_value_t *r2_pmix_job_value(const pmix_proc_t *self, const char *name)
{
    pmix_proc_t job;
    pmix_value_t *value = NULL;

    PMIX_LOAD_PROCID(&job, self->nspace, PMIX_RANK_WILDCARD);
    return PMIX_SUCCESS == PMIx_Get(&job, name, NULL, 0, &value) ? value : NULL;
}

/** Number of processes of the job. 0: not known. */
static uint32_t r2_pmix_job_size(const pmix_proc_t *self)
{
    pmix_value_t *value = r2_pmix_job_value(self, PMIX_JOB_SIZE);
    uint32_t size = 0;

    if (NULL != value) {
        size = PMIX_UINT32 == value->type ? value->data.uint32 : 0;
        PMIX_VALUE_RELEASE(value);
    }
    return size;
}

/** Ranks of this host, comma separated. @return owned by the caller; NULL: not known. */
static char *r2_pmix_job_locals(const pmix_proc_t *self)
{
    pmix_value_t *value = r2_pmix_job_value(self, PMIX_LOCAL_PEERS);
    char *locals = NULL;

    if (NULL != value) {
        if (PMIX_STRING == value->type && NULL != value->data.string) {
            locals = strdup(value->data.string);
        }
        PMIX_VALUE_RELEASE(value);
    }
    return locals;
}

static bool r2_pmix_is_local(const r2_oob_pmix_t *oob, uint32_t rank)
{
    for (const char *at = oob->locals; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at ? 1 : 0;
        if (strtoul(at, NULL, 10) == rank) {
            return true;
        }
    }
    return false;
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

/** A PMIx_Get() that answers from what is on this host, with the directive PMIX_OPTIONAL (what this
 *  process has) or PMIX_IMMEDIATE (what the host's server has). */
static r2_status_t r2_pmix_get_here(const pmix_proc_t *proc, const char *name,
                                    const char *directive, void *to, size_t space, size_t *bytes_p)
{
    pmix_value_t *value = NULL;
    pmix_info_t info;
    bool yes = true;
    r2_status_t status;

    PMIX_INFO_LOAD(&info, directive, &yes, PMIX_BOOL);
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
 * One request to other hosts' servers. PMIX_TIMEOUT is not always kept by the server (seen with
 * Open MPI 4.1.4 and PMIx 4.2.2, pmix_base_async_modex), so the waiting thread has a clock of its
 * own and may leave; whoever is last frees this. `mutex` protects the rest.
 */
typedef struct r2_pmix_request {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool answered;
    bool left;
    r2_status_t status;
    size_t bytes;
    uint8_t answer[R2_OOB_BLOB_MAX];
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
 * Asks the server of the process's host, for all that the process has published (that is what
 * PMIX_GET_REFRESH_CACHE does): asked for one value that is not there, PRRTE 3 (Open MPI 5.0) waits
 * for it until the timeout.
 */
static r2_status_t r2_pmix_get_there(const pmix_proc_t *proc, const char *name, void *to,
                                     size_t space, size_t *bytes_p)
{
    r2_pmix_request_t *request = r2_pmix_request_new();
    pmix_info_t info[2];
    int seconds = R2_PMIX_WAIT_S;
    bool yes = true;
    pmix_status_t rc;

    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    PMIX_INFO_LOAD(&info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);
    rc = PMIx_Get_nb(proc, name, info, 2, r2_pmix_answered, request);
    if (PMIX_SUCCESS != rc) {
        r2_pmix_request_free(request);
        return r2_pmix_status(rc);
    }
    return r2_pmix_request_wait(request, to, space, bytes_p);
}

/**
 * A value of another process, after the launcher's fence. The fence normally brought it here; if
 * not (pmix_base_collect_data 0), this host's server knows all about its own processes, and the
 * server of another host answers at once for its own. For a process of this host that has no such
 * value, a plain PMIx_Get() would wait for one until its timeout.
 */
static r2_status_t r2_pmix_get(const r2_oob_pmix_t *oob, uint32_t rank, const char *name, void *to,
                               size_t space, size_t *bytes_p)
{
    pmix_proc_t proc;
    r2_status_t status;

    PMIX_LOAD_PROCID(&proc, oob->self.nspace, rank);
    status = r2_pmix_get_here(&proc, name, PMIX_OPTIONAL, to, space, bytes_p);
    if (R2_OK != status) {
        status = r2_pmix_get_here(&proc, name, PMIX_IMMEDIATE, to, space, bytes_p);
    }
    if (R2_OK != status && !r2_pmix_is_local(oob, rank)) {
        status = r2_pmix_get_there(&proc, name, to, space, bytes_p);
    }
    return status;
}

static r2_status_t r2_pmix_put(const char *name, void *bytes_from, size_t bytes)
{
    pmix_value_t value;

    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = bytes_from; /* copied by PMIx_Put() */
    value.data.bo.size = bytes;
    if (PMIX_SUCCESS != PMIx_Put(PMIX_GLOBAL, name, &value) || PMIX_SUCCESS != PMIx_Commit()) {
        return R2_ERR_SYSTEM;
    }
    return R2_OK;
}

static r2_status_t r2_pmix_identity(void *instance, uint32_t *rank_p, uint32_t *size_p)
{
    const r2_oob_pmix_t *oob = instance;

    *rank_p = oob->self.rank;
    *size_p = oob->size;
    return R2_OK;
}

static r2_status_t r2_pmix_job_key(void *instance, uint8_t *key_p)
{
    const r2_oob_pmix_t *oob = instance;
    uint8_t key[R2_JOB_KEY_BYTES];
    size_t bytes = 0;
    r2_status_t status;

    if (0 == oob->self.rank) {
        memcpy(key_p, oob->key, sizeof(oob->key));
        return R2_OK;
    }
    status = r2_pmix_get(oob, 0, R2_PMIX_JOB_KEY, key, sizeof(key), &bytes);
    if (R2_OK == status && sizeof(key) != bytes) {
        status = R2_ERR_WIRE;
    }
    if (R2_OK == status) {
        memcpy(key_p, key, sizeof(key));
    }
    sodium_memzero(key, sizeof(key));
    return status;
}

static r2_status_t r2_pmix_publish(void *instance, const void *blob, size_t bytes)
{
    void *copy;
    r2_status_t status;

    (void) instance;
    if (bytes > R2_OOB_BLOB_MAX) {
        return R2_ERR_PARAM;
    }
    copy = malloc(r2_max(bytes, 1)); /* PMIx takes no const */
    if (NULL == copy) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(copy, blob, bytes);
    status = r2_pmix_put(R2_PMIX_BLOB_KEY, copy, bytes);
    free(copy);
    return status;
}

static r2_status_t r2_pmix_fence(void *instance)
{
    const r2_oob_pmix_t *oob = instance;
    pmix_proc_t job;
    pmix_info_t info;
    bool yes = true;

    PMIX_LOAD_PROCID(&job, oob->self.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    return PMIX_SUCCESS == PMIx_Fence(&job, 1, &info, 1) ? R2_OK : R2_ERR_SYSTEM;
}

static r2_status_t r2_pmix_lookup(void *instance, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    const r2_oob_pmix_t *oob = instance;

    if (rank >= oob->size) {
        return R2_ERR_NOT_FOUND;
    }
    return r2_pmix_get(oob, rank, R2_PMIX_BLOB_KEY, blob_p, R2_OOB_BLOB_MAX, bytes_p);
}

static void r2_pmix_host(void *instance, uint32_t rank, char *text_p, size_t text_bytes)
{
    const r2_oob_pmix_t *oob = instance;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    pmix_proc_t proc;
    bool yes = true;

    PMIX_LOAD_PROCID(&proc, oob->self.nspace, rank);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    if (PMIX_SUCCESS == PMIx_Get(&proc, PMIX_HOSTNAME, &info, 1, &value) && NULL != value &&
        PMIX_STRING == value->type && NULL != value->data.string) {
        snprintf(text_p, text_bytes, "%s", value->data.string);
    }
    if (NULL != value) {
        PMIX_VALUE_RELEASE(value);
    }
}

static const r2_oob_ops_t r2_oob_pmix_ops = {
    .name = "pmix",
    .identity = r2_pmix_identity,
    .job_key = r2_pmix_job_key,
    .publish = r2_pmix_publish,
    .lookup = r2_pmix_lookup,
    .host = r2_pmix_host,
    .fence = r2_pmix_fence,
};

r2_status_t r2_oob_pmix_create(r2_oob_t *oob_p)
{
    r2_oob_pmix_t *oob;
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (sodium_init() < 0) {
        return R2_ERR_SYSTEM;
    }
    oob = calloc(1, sizeof(*oob));
    if (NULL == oob) {
        return R2_ERR_NO_MEMORY;
    }
    if (PMIX_SUCCESS != PMIx_Init(&oob->self, NULL, 0)) {
        goto err_free;
    }
    oob->size = r2_pmix_job_size(&oob->self);
    if (0 == oob->size || oob->self.rank >= oob->size) {
        goto err_finalize;
    }
    oob->locals = r2_pmix_job_locals(&oob->self);
    if (0 == oob->self.rank) {
        randombytes_buf(oob->key, sizeof(oob->key));
        status = r2_pmix_put(R2_PMIX_JOB_KEY, oob->key, sizeof(oob->key));
        if (R2_OK != status) {
            goto err_finalize;
        }
    }
    oob_p->ops = &r2_oob_pmix_ops;
    oob_p->instance = oob;
    return R2_OK;

err_finalize:
    free(oob->locals);
    PMIx_Finalize(NULL, 0);
err_free:
    sodium_memzero(oob, sizeof(*oob));
    free(oob);
    return status;
}

void r2_oob_pmix_destroy(r2_oob_t *oob_at)
{
    r2_oob_pmix_t *oob = oob_at->instance;

    if (NULL == oob) {
        return;
    }
    PMIx_Finalize(NULL, 0);
    free(oob->locals);
    sodium_memzero(oob, sizeof(*oob));
    free(oob);
    oob_at->instance = NULL;
    oob_at->ops = NULL;
}

/** "4.2.2" out of a text such as "OpenPMIx 4.2.2 (PMIx Standard: ...)". */
const char *r2_oob_pmix_version(void)
{
    static char version[32];
    const char *text = PMIx_Get_version();
    const char *digits = strpbrk(text, "0123456789");

    if (NULL == digits) {
        return text;
    }
    snprintf(version, sizeof(version), "%.*s",
             (int) r2_min(strcspn(digits, ", ("), sizeof(version) - 1), digits);
    return version;
}
