/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Values of processes at the PMIx server.
 */
#include "r2_config.h"

#include "oob/pmix_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "oob/oob.h"
#include "oob/pmix_event.h"
#include "oob/pmix_request.h"

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

/** Called by PMIx's thread: copies and returns. Nobody reads the bytes before the answer. */
static void r2_pmix_answered(pmix_status_t rc, pmix_value_t *value, void *arg)
{
    r2_pmix_request_t *request = arg;
    r2_status_t status = PMIX_SUCCESS == rc ? R2_ERR_SYSTEM : r2_pmix_status(rc);

    if (PMIX_SUCCESS == rc && NULL != value) {
        status = r2_pmix_copy(value, request->type, request->answer, sizeof(request->answer),
                              &request->bytes);
    }
    r2_pmix_request_answer(request, status);
}

/** Asks for a value, or waits again for the answer that is late. */
static r2_status_t r2_pmix_request_ask(const r2_pmix_job_t *job, r2_pmix_request_t *request,
                                       size_t count, void *to, size_t space, size_t *bytes_p)
{
    static int seconds = R2_PMIX_WAIT_S;
    pmix_status_t rc;

    if (!r2_pmix_request_is_asked(request)) {
        PMIX_INFO_LOAD(&request->info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
        r2_pmix_request_goes(request);
        rc = PMIx_Get_nb(&request->proc, request->name, request->info, count, r2_pmix_answered,
                         request);
        if (PMIX_SUCCESS != rc) {
            r2_pmix_request_drop(request);
            return r2_pmix_status(rc);
        }
    }
    return r2_pmix_request_wait(job->asked, request, to, space, bytes_p);
}

/**
 * What a server has of it, with a directive: PMIX_IMMEDIATE asks that of this host, and waits for
 * requests for the same process that are under way; PMIX_GET_REFRESH_CACHE that of the process's
 * host, for all that it has published: asked for one value that is not there, PRRTE 3 (Open MPI
 * 5.0) waits for it until the timeout.
 */
static r2_status_t r2_pmix_get_from(const r2_pmix_job_t *job, const pmix_proc_t *proc,
                                    const char *name, const char *directive, void *to, size_t space,
                                    size_t *bytes_p)
{
    r2_pmix_request_t *request = r2_pmix_request_get(job->asked, proc, name, directive);
    bool yes = true;

    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    if (!r2_pmix_request_is_asked(request)) {
        PMIX_INFO_LOAD(&request->info[1], directive, &yes, PMIX_BOOL);
        request->type = PMIX_BYTE_OBJECT;
    }
    return r2_pmix_request_ask(job, request, 2, to, space, bytes_p);
}

/** What the launcher has told of a whole job. */
static r2_status_t r2_pmix_job_value(const r2_pmix_job_t *job, const char *name,
                                     pmix_data_type_t type, void *to, size_t space)
{
    r2_pmix_request_t *request;
    pmix_proc_t all;
    size_t bytes;

    PMIX_LOAD_PROCID(&all, job->nspace, PMIX_RANK_WILDCARD);
    request = r2_pmix_request_get(job->asked, &all, name, "");
    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    request->type = type;
    return r2_pmix_request_ask(job, request, 1, to, space, &bytes);
}

/** A process may be on its way out, or have no state: one that has ended well has none in PRRTE's
 * table (prte_pmix_convert_state()). */
static r2_status_t r2_pmix_state(pmix_proc_state_t state)
{
    switch (state) {
    case PMIX_PROC_STATE_RUNNING:
    case PMIX_PROC_STATE_CONNECTED:
        return R2_OK;
    case PMIX_PROC_STATE_TERMINATED:
    case PMIX_PROC_STATE_KILLED_BY_CMD:
    case PMIX_PROC_STATE_ABORTED:
    case PMIX_PROC_STATE_FAILED_TO_START:
    case PMIX_PROC_STATE_ABORTED_BY_SIG:
    case PMIX_PROC_STATE_TERM_WO_SYNC:
    case PMIX_PROC_STATE_CALLED_ABORT:
    case PMIX_PROC_STATE_CANNOT_RESTART:
    case PMIX_PROC_STATE_TERM_NON_ZERO:
    case PMIX_PROC_STATE_FAILED_TO_LAUNCH:
        return R2_ERR_PEER_GONE;
    default:
        return R2_ERR_AGAIN;
    }
}

/** By the launcher's table of the job's processes. */
static r2_status_t r2_pmix_state_of(const pmix_info_t *info, size_t count, uint32_t rank)
{
    const pmix_data_array_t *table =
        1 == count && PMIX_DATA_ARRAY == info->value.type ? info->value.data.darray : NULL;
    const pmix_proc_info_t *row = NULL;

    if (NULL == table || PMIX_PROC_INFO != table->type) {
        return R2_ERR_UNSUPPORTED;
    }
    if (PMIX_RANK_WILDCARD == rank) {
        return R2_OK; /* whoever of the job is dead: it is known */
    }
    for (size_t i = 0; NULL == row && i < table->size; ++i) {
        const pmix_proc_info_t *at = (const pmix_proc_info_t *) table->array + i;

        row = rank == at->proc.rank ? at : NULL;
    }
    return NULL == row ? R2_ERR_AGAIN : r2_pmix_state(row->state);
}

/** Sets the bits of the dead, as far as there is room. */
static void r2_pmix_list_dead(const pmix_info_t *info, uint8_t *dead_p, size_t bytes)
{
    const pmix_data_array_t *table = info->value.data.darray;

    for (size_t i = 0; i < table->size; ++i) {
        const pmix_proc_info_t *row = (const pmix_proc_info_t *) table->array + i;
        const uint32_t rank = row->proc.rank;

        if (rank / 8 < bytes && R2_ERR_PEER_GONE == r2_pmix_state(row->state)) {
            dead_p[rank / 8] |= (uint8_t) (1u << (rank % 8));
        }
    }
}

/** Called by PMIx's thread: looks and returns. */
static void r2_pmix_table_answered(pmix_status_t rc, pmix_info_t *info, size_t count, void *arg,
                                   pmix_release_cbfunc_t release, void *release_arg)
{
    r2_pmix_request_t *request = arg;
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (PMIX_SUCCESS == rc) {
        status = r2_pmix_state_of(info, count, request->proc.rank);
        if (R2_OK == status && request->bytes > 0) {
            r2_pmix_list_dead(info, request->answer, request->bytes);
        }
    } else if (PMIX_ERR_NOT_FOUND == rc) {
        status = R2_ERR_NOT_FOUND; /* the job */
    }
    if (NULL != release) {
        release(release_arg);
    }
    r2_pmix_request_answer(request, status);
}

/** Asks for the table. @return false: it cannot be asked for. */
static bool r2_pmix_table_ask(r2_pmix_request_t *request)
{
    request->names[0] = request->name;
    PMIX_LOAD_KEY(request->info[0].key, PMIX_NSPACE);
    request->info[0].value.type = PMIX_STRING;
    request->info[0].value.data.string = request->proc.nspace;
    request->query =
        (pmix_query_t){.keys = request->names, .qualifiers = request->info, .nqual = 1};
    r2_pmix_request_goes(request);
    return PMIX_SUCCESS == PMIx_Query_info_nb(&request->query, 1, r2_pmix_table_answered, request);
}

/** Jobs of PRRTE are named after its servers: prterun-HOST-PID@0 starts prterun-HOST-PID@1. */
static bool r2_pmix_has_started(const char *server, const char *nspace)
{
    const size_t length = strcspn(server, "@");

    return '@' == server[length] && 0 == strncmp(server, nspace, length + 1);
}

/** @param list how the question is told from others of the same rank.
 * @param dead_p [bytes] a bit for each process; written if R2_OK is returned. */
static r2_status_t r2_pmix_ask_table(const r2_pmix_job_t *job, uint32_t rank, const char *list,
                                     uint8_t *dead_p, size_t bytes)
{
    r2_pmix_request_t *request;
    char server[sizeof(pmix_nspace_t)];
    pmix_proc_t proc;
    r2_status_t status;

    if (R2_PMIX_SERVER_CARRIES != r2_pmix_server_find(server, sizeof(server))) {
        return R2_ERR_UNSUPPORTED;
    }
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    request = r2_pmix_request_get(job->asked, &proc, PMIX_QUERY_PROC_TABLE, list);
    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    if (!r2_pmix_request_is_asked(request)) {
        request->bytes = r2_min(bytes, sizeof(request->answer));
        if (!r2_pmix_table_ask(request)) {
            r2_pmix_request_drop(request);
            return R2_ERR_UNSUPPORTED;
        }
    }
    status = r2_pmix_request_wait(job->asked, request, dead_p, bytes, &bytes);
    return R2_ERR_NOT_FOUND == status && r2_pmix_has_started(server, job->nspace) ? R2_ERR_PEER_GONE
                                                                                  : status;
}

r2_status_t r2_pmix_ask_after(const r2_pmix_job_t *job, uint32_t rank)
{
    return r2_pmix_ask_table(job, rank, "", NULL, 0);
}

r2_status_t r2_pmix_ask_dead(const r2_pmix_job_t *job, uint8_t *dead_p, size_t bytes)
{
    return r2_pmix_ask_table(job, PMIX_RANK_WILDCARD, "dead", dead_p, bytes);
}

static r2_status_t r2_pmix_job_size(const r2_pmix_job_t *job, uint32_t *size_p)
{
    const r2_status_t status =
        r2_pmix_job_value(job, PMIX_JOB_SIZE, PMIX_UINT32, size_p, sizeof(*size_p));

    if (R2_ERR_TIMEOUT == status || R2_ERR_NO_MEMORY == status) {
        return status;
    }
    return R2_OK == status && *size_p > 0 ? R2_OK : R2_ERR_NOT_FOUND;
}

/** Ranks of this host, comma separated. @param locals_p owned by the caller; NULL: not known.
 * @return R2_OK; R2_ERR_TIMEOUT, R2_ERR_NO_MEMORY. */
static r2_status_t r2_pmix_job_locals(const r2_pmix_job_t *job, char **locals_p)
{
    char *locals = malloc(R2_OOB_BLOB_MAX);
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL != locals) {
        status = r2_pmix_job_value(job, PMIX_LOCAL_PEERS, PMIX_STRING, locals, R2_OOB_BLOB_MAX);
    }
    if (R2_OK == status) {
        *locals_p = locals;
        return R2_OK;
    }
    free(locals);
    return R2_ERR_TIMEOUT == status || R2_ERR_NO_MEMORY == status ? status : R2_OK;
}

r2_status_t r2_pmix_job_open(const char *nspace, r2_pmix_job_t *job)
{
    r2_status_t status;

    PMIX_LOAD_NSPACE(job->nspace, nspace);
    if (NULL == job->asked) {
        job->asked = r2_pmix_asked_new();
    }
    if (NULL == job->asked) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_pmix_job_size(job, &job->size);
    if (R2_OK == status) {
        status = r2_pmix_job_locals(job, &job->locals);
    }
    return status;
}

void r2_pmix_job_close(r2_pmix_job_t *job)
{
    free(job->locals);
    job->locals = NULL;
    r2_pmix_asked_free(job->asked);
    job->asked = NULL;
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
        status = r2_pmix_get_from(job, &proc, name, PMIX_IMMEDIATE, to, space, bytes_p);
    }
    if (R2_OK != status && R2_ERR_TIMEOUT != status && !r2_pmix_is_local(job, rank)) {
        status = r2_pmix_get_from(job, &proc, name, PMIX_GET_REFRESH_CACHE, to, space, bytes_p);
    }
    return status;
}

r2_status_t r2_pmix_store(const char *name, const void *bytes_from, size_t bytes)
{
    pmix_value_t value;

    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *) (uintptr_t) bytes_from; /* copied by PMIx_Put() */
    value.data.bo.size = bytes;
    return PMIX_SUCCESS == PMIx_Put(PMIX_GLOBAL, name, &value) ? R2_OK : R2_ERR_SYSTEM;
}

r2_status_t r2_pmix_put(const char *name, const void *bytes_from, size_t bytes)
{
    r2_status_t status = r2_pmix_store(name, bytes_from, bytes);

    if (R2_OK == status && PMIX_SUCCESS != PMIx_Commit()) {
        status = R2_ERR_SYSTEM;
    }
    return status;
}
