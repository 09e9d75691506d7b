/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchange through the job's PMIx server.
 */
#include "r2_config.h"

#include "oob/oob.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oob/pmix_value.h"

/*
 * Put and commit before the launcher's fence, get after it. The job key is not committed by itself:
 * where the launcher has no fence r2 publishes nothing, and who asked for what rank 0 has would be
 * told that it has the key, and nothing of its MPI. PMIx_Init() and PMIx_Finalize() count
 * references, beside those of MPI.
 */

/** The instance. PMIx calls are thread safe; the rest is constant after create. */
typedef struct r2_oob_pmix {
    pmix_proc_t self;
    r2_pmix_job_t job;
    uint8_t key[R2_JOB_KEY_BYTES]; /* rank 0 only */
} r2_oob_pmix_t;

static r2_status_t r2_pmix_identity(void *instance, uint32_t *rank_p, uint32_t *size_p)
{
    const r2_oob_pmix_t *oob = instance;

    *rank_p = oob->self.rank;
    *size_p = oob->job.size;
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
    status = r2_pmix_get(&oob->job, 0, R2_PMIX_JOB_KEY, key, sizeof(key), &bytes);
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
    (void) instance;
    return bytes > R2_OOB_BLOB_MAX ? R2_ERR_PARAM : r2_pmix_put(R2_PMIX_BLOB_KEY, blob, bytes);
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

    if (rank >= oob->job.size) {
        return R2_ERR_NOT_FOUND;
    }
    return r2_pmix_get(&oob->job, rank, R2_PMIX_BLOB_KEY, blob_p, R2_OOB_BLOB_MAX, bytes_p);
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
    if (R2_OK != r2_pmix_job_open(oob->self.nspace, &oob->job) || oob->self.rank >= oob->job.size) {
        goto err_finalize;
    }
    if (0 == oob->self.rank) {
        randombytes_buf(oob->key, sizeof(oob->key));
        status = r2_pmix_store(R2_PMIX_JOB_KEY, oob->key, sizeof(oob->key));
        if (R2_OK != status) {
            goto err_finalize;
        }
    }
    oob_p->ops = &r2_oob_pmix_ops;
    oob_p->instance = oob;
    return R2_OK;

err_finalize:
    r2_pmix_job_close(&oob->job);
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
    r2_pmix_job_close(&oob->job);
    PMIx_Finalize(NULL, 0);
    sodium_memzero(oob, sizeof(*oob));
    free(oob);
    oob_at->instance = NULL;
    oob_at->ops = NULL;
}
