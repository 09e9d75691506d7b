/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Other jobs: a context of r2core for each one that this job has met.
 */
#include "btl_r2.h"

#include <stdlib.h>

#include "r2/log.h"

/* Both jobs come to the same answer for each pair of processes, since each says what it does, and
 * waits for the other's word (r2_ctx_meet()). */

r2_status_t mca_btl_r2_job_open(mca_btl_r2_job_t *job)
{
    r2_p2p_handlers_t handlers = {mca_btl_r2_received, mca_btl_r2_lost, job};

    job->endpoints = calloc(r2_ctx_size(job->ctx), sizeof(struct mca_btl_base_endpoint_t *));
    return NULL == job->endpoints ? R2_ERR_NO_MEMORY : r2_p2p_bind(job->ctx, &handlers, &job->p2p);
}

void mca_btl_r2_job_close(mca_btl_r2_job_t *job)
{
    if (NULL != job->p2p) {
        r2_p2p_unbind(job->p2p);
        job->p2p = NULL;
    }
    for (uint32_t i = 0; NULL != job->endpoints && i < r2_ctx_size(job->ctx); ++i) {
        free(job->endpoints[i]);
    }
    free(job->endpoints);
    job->endpoints = NULL;
}

/* Its peers may go on when MPI_Finalize of this job is over. */
static void r2_job_leave(mca_btl_r2_job_t *job)
{
    if (NULL != job->ctx && NULL != job->p2p) {
        r2_ctx_linger(job->ctx);
    }
    mca_btl_r2_job_close(job);
    if (NULL != job->ctx) {
        r2_ctx_destroy(job->ctx);
        job->ctx = NULL;
    }
}

/* What a job of its own would ask for, but files: these are of this job. */
static void r2_job_connect(mca_btl_r2_job_t *job, const char *name, bool wanted)
{
    const mca_btl_r2_component_t *component = &mca_btl_r2_component;
    r2_params_t params = component->params;
    r2_ctx_config_t config = {.params = &params,
                              .log = mca_btl_r2_log,
                              .idle = mca_btl_r2_idle,
                              .users = R2_USER_P2P,
                              .other_job = name,
                              .named = component->agreed};
    char text[1024];
    r2_status_t status;

    params.event_file = params.plan_file = "";
    if (!wanted) {
        r2_ctx_refuse_job(&config, component->agreed ? "btl_r2_other_jobs are met already"
                                                     : "this job does without btl/r2");
        return;
    }
    status = r2_ctx_create(&config, &job->ctx, text, sizeof(text)); /* which tells of errors */
    if (R2_OK == status) {
        status = mca_btl_r2_job_open(job);
    }
    if (R2_OK == status) {
        status = r2_p2p_reach(job->p2p, r2_ctx_rank(job->ctx)); /* peers are let in */
    }
    if (R2_OK != status && NULL != job->ctx) {
        (void) r2_ctx_withdraw(job->ctx, R2_USER_P2P);
        r2_job_leave(job);
    }
}

/* @param last_p where the list ends. @param count_p how many have a context. */
static mca_btl_r2_job_t *r2_job_find(opal_jobid_t id, mca_btl_r2_job_t **last_p, unsigned *count_p)
{
    mca_btl_r2_job_t *job = &mca_btl_r2_component.job, *next;

    *count_p = 0;
    while (NULL != (next = __atomic_load_n(&job->next, __ATOMIC_ACQUIRE))) {
        job = next;
        if (job->id == id) {
            return job;
        }
        *count_p += NULL != job->ctx;
    }
    *last_p = job;
    return NULL;
}

/* NULL: no memory, or no such job. */
static mca_btl_r2_job_t *r2_job_add(opal_jobid_t id, mca_btl_r2_job_t *last, bool wanted)
{
    char name[MCA_BTL_R2_JOB_NAME_BYTES];
    mca_btl_r2_job_t *job;

    if (!mca_btl_r2_job_name(id, name)) {
        return NULL;
    }
    job = calloc(1, sizeof(*job));
    if (NULL != job) {
        job->id = id;
        r2_job_connect(job, name, wanted);
        __atomic_store_n(&last->next, job, __ATOMIC_RELEASE); /* progress may look at it */
    }
    return job;
}

mca_btl_r2_job_t *mca_btl_r2_job_of(opal_jobid_t id)
{
    const mca_btl_r2_component_t *component = &mca_btl_r2_component;
    mca_btl_r2_job_t *job, *last;
    unsigned count;

    if (0 == component->other_jobs) {
        return NULL; /* nothing is asked or said */
    }
    OPAL_THREAD_LOCK(&mca_btl_r2_component.connecting);
    job = r2_job_find(id, &last, &count);
    if (NULL == job) {
        job = r2_job_add(id, last, component->agreed && count < component->other_jobs);
    }
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.connecting);
    return NULL == job || NULL == job->ctx ? NULL : job;
}

void mca_btl_r2_jobs_stop(void)
{
    mca_btl_r2_job_t *job = mca_btl_r2_component.job.next, *next;

    mca_btl_r2_component.job.next = NULL;
    for (; NULL != job; job = next) {
        next = job->next;
        r2_job_leave(job);
        free(job);
    }
}

unsigned mca_btl_r2_jobs_progress(void)
{
    mca_btl_r2_job_t *job = &mca_btl_r2_component.job;
    unsigned events = 0;

    while (NULL != (job = __atomic_load_n(&job->next, __ATOMIC_ACQUIRE))) {
        events += NULL == job->ctx ? 0 : r2_ctx_progress(job->ctx);
    }
    return events;
}
