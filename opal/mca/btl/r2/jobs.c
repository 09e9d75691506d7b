/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Other jobs: a context of r2core for each one that this job has met.
 */
#include "btl_r2.h"

#include <stdlib.h>
#include <time.h>

#include "ompi/communicator/communicator.h"
#include "r2/log.h"

/* Looks after which communicators are looked at though there are as many as before. */
#define R2_JOBS_LOOKS 1024u
/* Where a job would be one too many: how long one that ends is waited for, and between two
 * looks. */
#define R2_JOBS_END_S        2
#define R2_JOBS_END_PAUSE_NS 2000000L

/* Both jobs come to the same answer for each pair of processes: each says once what it does, before
 * it waits for anybody, and waits for the other's word (r2_ctx_meet()). */

r2_status_t mca_btl_r2_job_open(mca_btl_r2_job_t *job)
{
    r2_p2p_handlers_t handlers = {mca_btl_r2_received, mca_btl_r2_lost, job};

    job->size = r2_ctx_size(job->ctx);
    job->endpoints = calloc(job->size, sizeof(struct mca_btl_base_endpoint_t *));
    return NULL == job->endpoints ? R2_ERR_NO_MEMORY : r2_p2p_bind(job->ctx, &handlers, &job->p2p);
}

void mca_btl_r2_job_close(mca_btl_r2_job_t *job)
{
    if (NULL != job->p2p) {
        r2_p2p_unbind(job->p2p);
        job->p2p = NULL;
    }
    for (uint32_t i = 0; NULL != job->endpoints && i < job->size; ++i) {
        free(job->endpoints[i]);
    }
    free(job->endpoints);
    job->endpoints = NULL;
}

mca_btl_r2_endpoint_t *mca_btl_r2_endpoint_of(const mca_btl_r2_job_t *job, uint32_t rank)
{
    mca_btl_r2_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = job->endpoints[rank];
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return endpoint;
}

/* The endpoints stay: Open MPI has them until MPI_Finalize. */
static void r2_job_end(mca_btl_r2_job_t *job)
{
    if (NULL != job->p2p) {
        r2_p2p_unbind(job->p2p);
        job->p2p = NULL;
    }
    if (NULL != job->ctx) {
        r2_ctx_destroy(job->ctx);
        job->ctx = NULL;
    }
}

/* What a job of its own would ask for, but files: these are of this job. @return R2_OK, with a
 * context or without; R2_ERR_UNTOLD: the other job would wait for this process; R2_ERR_PEER_GONE:
 * it has ended. */
static r2_status_t r2_job_connect(mca_btl_r2_job_t *job, const char *name, bool wanted)
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
        return r2_ctx_refuse_job(&config, component->agreed ? "btl_r2_other_jobs are met already"
                                                            : "this job does without btl/r2");
    }
    status = r2_ctx_create(&config, &job->ctx, text, sizeof(text));
    if (R2_OK != status) {
        return R2_ERR_UNTOLD == status || R2_ERR_PEER_GONE == status ? status
                                                                     : R2_OK; /* which has told */
    }
    (void) r2_ctx_let_in(job->ctx); /* without: where the first is met */
    return R2_OK == mca_btl_r2_job_open(job) ? R2_OK : R2_ERR_UNTOLD;
}

/* The communicator with an id. NULL: none, or one in the making (5.0 has 1 there meanwhile). */
static const ompi_communicator_t *r2_comm_at(int id)
{
    void *comm = opal_pointer_array_get_item(&ompi_mpi_communicators, id);

    return (uintptr_t) comm <= 1 ? NULL : comm;
}

bool mca_btl_r2_is_connected(opal_jobid_t id, opal_vpid_t vpid)
{
    const int count = opal_pointer_array_get_size(&ompi_mpi_communicators);

    for (int i = 0; i < count; ++i) {
        const ompi_communicator_t *comm = r2_comm_at(i);
        ompi_group_t *groups[2] = {NULL, NULL};

        if (NULL != comm) {
            groups[0] = comm->c_local_group;
            groups[1] = comm->c_remote_group == comm->c_local_group ? NULL : comm->c_remote_group;
        }
        for (int g = 0; g < 2; ++g) {
            for (int rank = 0; NULL != groups[g] && rank < groups[g]->grp_proc_count; ++rank) {
                const opal_process_name_t name = ompi_group_get_proc_name(groups[g], rank);

                if (name.jobid == id && (OPAL_VPID_WILDCARD == vpid || name.vpid == vpid)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/*
 * Of those whose context is kept. It has ended when nothing passes to it any more, and each of its
 * processes that this one has talked to has said so, which they do in MPI_Finalize, or is gone: one
 * that has not waits for this process. A job that lives, and is disconnected, is met by the same
 * context again.
 * @return R2_ERR_PEER_GONE: it has ended; R2_ERR_AGAIN: it seems to; R2_OK: it goes on.
 */
static r2_status_t r2_job_ask_after(const mca_btl_r2_job_t *job)
{
    bool gone = false, lives = false, lost = false;

    if (mca_btl_r2_is_connected(job->id, OPAL_VPID_WILDCARD)) {
        return R2_OK;
    }
    for (uint32_t rank = 0; rank < job->size; ++rank) {
        const r2_status_t status = NULL == mca_btl_r2_endpoint_of(job, rank)
                                       ? R2_ERR_NOT_FOUND
                                       : r2_p2p_ask_after(job->p2p, rank);

        gone = gone || R2_ERR_PEER_GONE == status;
        lost = lost || R2_ERR_AGAIN == status;
        lives = lives || R2_OK == status;
    }
    if (gone && !lives && !lost) {
        return R2_ERR_PEER_GONE;
    }
    return gone || lost ? R2_ERR_AGAIN : R2_OK;
}

/* Gives back what other jobs that have ended took. Not while somebody drives them. @return false:
 * one is about to end. */
static bool r2_jobs_reap(void)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    bool settled = true;

    if (0 != pthread_rwlock_trywrlock(&component->alive)) {
        return false;
    }
    for (mca_btl_r2_job_t *job = component->job.next; NULL != job; job = job->next) {
        r2_status_t status = R2_OK;

        if (NULL != job->p2p && 0 == __atomic_load_n(&job->adding, __ATOMIC_ACQUIRE)) {
            status = r2_job_ask_after(job);
        }
        if (R2_ERR_PEER_GONE == status) {
            r2_job_end(job);
        }
        settled = settled && R2_ERR_AGAIN != status;
    }
    pthread_rwlock_unlock(&component->alive);
    return settled;
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

/* @return NULL: no memory. */
static mca_btl_r2_job_t *r2_job_add(opal_jobid_t id, const char *name, mca_btl_r2_job_t *last,
                                    bool wanted)
{
    mca_btl_r2_job_t *job = calloc(1, sizeof(*job));
    r2_status_t status;

    if (NULL == job) {
        return NULL;
    }
    job->id = id;
    status = r2_job_connect(job, name, wanted);
    if (R2_OK != status) {
        mca_btl_r2_abort(R2_ERR_PEER_GONE == status
                             ? "a job that was to connect has ended"
                             : "another job waits for its word whether it uses btl/r2",
                         status);
        r2_job_end(job);
        mca_btl_r2_job_close(job);
        free(job);
        return NULL;
    }
    __atomic_store_n(&last->next, job, __ATOMIC_RELEASE); /* progress may look at it */
    return job;
}

static unsigned r2_jobs_count(void)
{
    mca_btl_r2_job_t *last;
    unsigned count;

    (void) r2_job_find(OPAL_PROC_MY_NAME.jobid, &last, &count); /* is none of them */
    return count;
}

/* Gives back what it can; where all are taken, also of a job that is about to end. */
static void r2_jobs_make_room(void)
{
    const struct timespec pause = {0, R2_JOBS_END_PAUSE_NS};
    struct timespec start, now;
    bool settled = r2_jobs_reap();

    clock_gettime(CLOCK_MONOTONIC, &start);
    for (now = start; !settled && now.tv_sec - start.tv_sec <= R2_JOBS_END_S &&
                      r2_jobs_count() >= mca_btl_r2_component.other_jobs;
         clock_gettime(CLOCK_MONOTONIC, &now)) {
        nanosleep(&pause, NULL);
        settled = r2_jobs_reap();
    }
}

/* The job with its context or without, NULL: no memory. Lock `connecting`. */
static mca_btl_r2_job_t *r2_job_get(opal_jobid_t id, const char *name)
{
    const mca_btl_r2_component_t *component = &mca_btl_r2_component;
    mca_btl_r2_job_t *job, *last;
    unsigned count;

    job = r2_job_find(id, &last, &count);
    if (NULL == job && count > 0) {
        r2_jobs_make_room();
        job = r2_job_find(id, &last, &count);
    }
    if (NULL == job) {
        job = r2_job_add(id, name, last, component->agreed && count < component->other_jobs);
    }
    return job;
}

int mca_btl_r2_job_of(opal_jobid_t id, mca_btl_r2_job_t **job_p)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    char name[MCA_BTL_R2_JOB_NAME_BYTES];
    mca_btl_r2_job_t *job;

    *job_p = NULL;
    if (0 == component->other_jobs || !mca_btl_r2_job_name(id, name)) {
        return OPAL_SUCCESS; /* nothing is asked or said */
    }
    OPAL_THREAD_LOCK(&component->connecting);
    job = r2_job_get(id, name);
    *job_p = NULL == job || NULL == job->ctx ? NULL : job;
    if (NULL != *job_p) {
        __atomic_add_fetch(&job->adding, 1, __ATOMIC_ACQ_REL);
    }
    OPAL_THREAD_UNLOCK(&component->connecting);
    return NULL == job ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/* Lock `connecting`. Without memory it is tried again. */
static void r2_jobs_look_at(ompi_group_t *group)
{
    const opal_jobid_t own = OPAL_PROC_MY_NAME.jobid;
    opal_jobid_t last = own;
    char name[MCA_BTL_R2_JOB_NAME_BYTES];

    for (int rank = 0; NULL != group && rank < group->grp_proc_count; ++rank) {
        const opal_jobid_t id = ompi_group_get_proc_name(group, rank).jobid;

        if (id != own && id != last && mca_btl_r2_job_name(id, name)) {
            (void) r2_job_get(id, name);
        }
        last = id;
    }
}

/* Another job is met by an intercommunicator first. */
static void r2_jobs_look_at_all(void)
{
    const int count = opal_pointer_array_get_size(&ompi_mpi_communicators);

    for (int i = 0; i < count; ++i) {
        const ompi_communicator_t *comm = r2_comm_at(i);

        if (NULL != comm && OMPI_COMM_IS_INTER(comm)) {
            r2_jobs_look_at(comm->c_local_group);
            r2_jobs_look_at(comm->c_remote_group);
        }
    }
}

void mca_btl_r2_jobs_look(void)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    int free_ids;
    unsigned looks;

    if (0 == component->other_jobs || !MCA_BTL_R2_ADDS_LATE ||
        !(component->agreed || component->refuses)) {
        return;
    }
    free_ids = ompi_mpi_communicators.number_free;
    looks = __atomic_add_fetch(&component->looks, 1, __ATOMIC_RELAXED);
    if ((free_ids == __atomic_load_n(&component->free_ids, __ATOMIC_RELAXED) &&
         0 != looks % R2_JOBS_LOOKS) ||
        0 != OPAL_THREAD_TRYLOCK(&component->connecting)) {
        return;
    }
    __atomic_store_n(&component->free_ids, free_ids, __ATOMIC_RELAXED);
    r2_jobs_look_at_all();
    OPAL_THREAD_UNLOCK(&component->connecting);
}

void mca_btl_r2_job_added(mca_btl_r2_job_t *job)
{
    __atomic_sub_fetch(&job->adding, 1, __ATOMIC_ACQ_REL);
}

/* Its peers may go on when MPI_Finalize of this job is over. */
void mca_btl_r2_jobs_stop(void)
{
    mca_btl_r2_job_t *job = mca_btl_r2_component.job.next, *next;

    mca_btl_r2_component.job.next = NULL;
    for (; NULL != job; job = next) {
        next = job->next;
        if (NULL != job->p2p) {
            r2_ctx_linger(job->ctx);
        }
        r2_job_end(job);
        mca_btl_r2_job_close(job);
        free(job);
    }
}

unsigned mca_btl_r2_jobs_progress(void)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    mca_btl_r2_job_t *job = __atomic_load_n(&component->job.next, __ATOMIC_ACQUIRE);
    unsigned events = 0;

    if (NULL == job || 0 != pthread_rwlock_tryrdlock(&component->alive)) {
        return 0;
    }
    for (; NULL != job; job = __atomic_load_n(&job->next, __ATOMIC_ACQUIRE)) {
        if (NULL != job->ctx) {
            r2_ctx_meet_callers(job->ctx);
            events += r2_ctx_progress(job->ctx);
        }
    }
    pthread_rwlock_unlock(&component->alive);
    return events;
}
