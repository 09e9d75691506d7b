/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Peers: which ones r2 reaches, and what happens when one is lost.
 */
#include "btl_r2.h"

#include <stdlib.h>
#include <time.h>

#include "opal/mca/common/r2/help.h"
#include "r2/log.h"

/*
 * Peers: every process of the job, on this host too. This one as well: btl/self comes first for
 * messages, but one-sided communication wants one transport for all. Processes of other jobs, if
 * both jobs use r2.
 */
static int r2_job_of(const opal_proc_t *proc, mca_btl_r2_job_t **job_p)
{
    mca_btl_r2_job_t *own = &mca_btl_r2_component.job;

    if (own->id != proc->proc_name.jobid) {
        return mca_btl_r2_job_of(proc->proc_name.jobid, job_p);
    }
    *job_p =
        mca_btl_r2_component.agreed && proc->proc_name.vpid < r2_ctx_size(own->ctx) ? own : NULL;
    return OPAL_SUCCESS;
}

/* Its number in the context. UINT32_MAX: it has none. */
static uint32_t r2_rank_of(const mca_btl_r2_job_t *job, const opal_proc_t *proc)
{
    uint32_t rank = (uint32_t) proc->proc_name.vpid;

    if (&mca_btl_r2_component.job != job) {
        rank = r2_ctx_other_rank(job->ctx, rank);
    }
    return rank < job->size ? rank : UINT32_MAX;
}

/* NULL: no memory. */
static mca_btl_r2_endpoint_t *r2_endpoint_add(mca_btl_r2_job_t *job, uint32_t rank,
                                              opal_proc_t *proc)
{
    mca_btl_r2_endpoint_t *endpoint;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = job->endpoints[rank];
    if (NULL == endpoint) {
        endpoint = malloc(sizeof(*endpoint));
        job->endpoints[rank] = endpoint;
    }
    if (NULL != endpoint) {
        endpoint->job = job;
        endpoint->rank = rank;
        endpoint->same_host = OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
        endpoint->proc = proc;
    }
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return endpoint;
}

/* Between two rounds of questions to the launcher. */
#define R2_MEET_PAUSE_NS 2000000L
/* Who waits for so long says so; who gets nothing but errors for so long gives up. */
#define R2_MEET_S 20

/** Who is to be added. */
typedef struct r2_adding {
    opal_proc_t *proc;
    mca_btl_r2_job_t *job; /* NULL: r2 does not reach it */
    uint32_t rank;
    bool ended;         /* it has, or its job */
    r2_status_t status; /* R2_OK: r2 reaches it; R2_ERR_UNSUPPORTED: it does not; else not known */
    time_t errs_since;  /* all answers since then were errors; 0: the last one was none */
} r2_adding_t;

/* Each job hears of this one before anybody is waited for: circles of jobs that meet would wait
 * for each other. */
static int r2_add_start(r2_adding_t *adding, size_t count, opal_proc_t **procs)
{
    for (size_t i = 0; i < count; ++i) {
        r2_adding_t *one = &adding[i];
        int rc = r2_job_of(procs[i], &one->job);

        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        one->proc = procs[i];
        one->rank = NULL == one->job ? UINT32_MAX : r2_rank_of(one->job, procs[i]);
        one->status = UINT32_MAX == one->rank ? R2_ERR_UNSUPPORTED
                      : &mca_btl_r2_component.job == one->job ||
                              NULL != mca_btl_r2_endpoint_of(one->job, one->rank)
                          ? R2_OK
                          : R2_ERR_AGAIN;
    }
    return OPAL_SUCCESS;
}

static time_t r2_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static bool r2_add_has_answer(const r2_adding_t *one)
{
    return R2_OK == one->status || R2_ERR_UNSUPPORTED == one->status;
}

/* What it said before its job ended counts, so it is asked once more then. It says nothing after
 * that, and a launcher that is asked for it may take its whole limit. Nobody else reaches it
 * either: Open MPI's transports ask the launcher for its address, without a limit. */
static void r2_add_ask_one(r2_adding_t *one)
{
    if (one->ended) {
        return;
    }
    one->ended = r2_ctx_other_ended(one->job->ctx);
    one->status = r2_ctx_meet(one->job->ctx, (uint32_t) one->proc->proc_name.vpid);
    one->ended = one->ended || R2_ERR_PEER_GONE == one->status;
    if (one->ended && R2_OK != one->status) {
        one->status = R2_ERR_PEER_GONE;
    }
    if (r2_add_has_answer(one) || R2_ERR_AGAIN == one->status) {
        one->errs_since = 0;
    } else if (0 == one->errs_since) {
        one->errs_since = r2_seconds();
    }
}

static bool r2_add_is_hopeless(const r2_adding_t *one)
{
    return one->ended || (0 != one->errs_since && r2_seconds() - one->errs_since >= R2_MEET_S);
}

/* Asks all that have not answered. @return one of them, the first that never will if there is one;
 * NULL: all have. */
static const r2_adding_t *r2_add_ask(r2_adding_t *adding, size_t count)
{
    const r2_adding_t *silent = NULL;

    for (size_t i = 0; i < count; ++i) {
        r2_adding_t *one = &adding[i];

        if (!r2_add_has_answer(one)) {
            r2_add_ask_one(one);
        }
        if (r2_add_has_answer(one)) {
            continue;
        }
        if (r2_add_is_hopeless(one)) {
            return one;
        }
        silent = NULL == silent ? one : silent;
    }
    return silent;
}

static void r2_add_tell_why(const r2_adding_t *hopeless)
{
    const unsigned rank = (unsigned) hopeless->proc->proc_name.vpid;

    if (hopeless->ended) {
        opal_output(0, "btl:r2: process %u, which was to connect, or its job has ended", rank);
    } else {
        opal_output(0, "btl:r2: whether process %u of another job uses r2 cannot be found out: %s",
                    rank, r2_status_string(hopeless->status));
    }
}

/*
 * All of them at once. Who is silent comes later, or the launcher ends this job with it, or tells
 * that its job has ended: MPI does not go on without it, with any transport. A limit of ours would
 * be on one side only. Only where the launcher answers nothing but errors this ends, by an error.
 */
static int r2_add_wait(r2_adding_t *adding, size_t count)
{
    const struct timespec pause = {0, R2_MEET_PAUSE_NS};
    const time_t start = r2_seconds();
    const r2_adding_t *silent;
    bool said = false;

    while (NULL != (silent = r2_add_ask(adding, count))) {
        if (r2_add_is_hopeless(silent)) {
            r2_add_tell_why(silent);
            return OPAL_ERR_UNREACH;
        }
        if (!said && r2_seconds() - start >= R2_MEET_S) {
            said = true;
            opal_output(0, "btl:r2: still waiting for process %u of another job, which connects",
                        (unsigned) silent->proc->proc_name.vpid);
        }
        mca_btl_r2_jobs_look(); /* others may wait for this one's word */
        nanosleep(&pause, NULL);
    }
    return OPAL_SUCCESS;
}

static int r2_add_end(const r2_adding_t *adding, size_t count, mca_btl_r2_endpoint_t **endpoints,
                      opal_bitmap_t *reachable)
{
    for (size_t i = 0; i < count; ++i) {
        endpoints[i] = NULL;
        if (R2_OK != adding[i].status) {
            continue;
        }
        endpoints[i] = r2_endpoint_add(adding[i].job, adding[i].rank, adding[i].proc);
        if (NULL == endpoints[i]) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        if (NULL != reachable) {
            opal_bitmap_set_bit(reachable, (int) i);
        }
    }
    return OPAL_SUCCESS;
}

/* Open MPI goes on with another transport, where there is one, and processes of other jobs may have
 * heard that this one uses r2. */
static void r2_add_fail(size_t count, opal_proc_t **procs)
{
    const opal_jobid_t own = OPAL_PROC_MY_NAME.jobid;

    for (size_t i = 0; 0 < mca_btl_r2_component.other_jobs && i < count; ++i) {
        if (own != procs[i]->proc_name.jobid) {
            mca_btl_r2_abort("a process of another job could not be added", R2_ERR_UNTOLD);
            return;
        }
    }
}

int mca_btl_r2_add_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                         mca_btl_r2_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    const bool agreed = mca_btl_r2_is_agreed();
    r2_adding_t *adding = calloc(nprocs > 0 ? nprocs : 1, sizeof(*adding));
    int rc;

    (void) btl;
    if (NULL == adding) {
        r2_add_fail(nprocs, procs);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (agreed) {
        mca_btl_r2_osc_settle();
    }
    rc = r2_add_start(adding, nprocs, procs);
    if (OPAL_SUCCESS == rc) {
        rc = r2_add_wait(adding, nprocs);
    }
    if (OPAL_SUCCESS == rc) {
        rc = r2_add_end(adding, nprocs, endpoints, reachable);
    }
    for (size_t i = 0; i < nprocs; ++i) {
        if (NULL != adding[i].job && &mca_btl_r2_component.job != adding[i].job) {
            mca_btl_r2_job_added(adding[i].job);
        }
    }
    free(adding);
    if (OPAL_SUCCESS != rc) {
        r2_add_fail(nprocs, procs);
    }
    return rc;
}

/* May be called more than once for a peer: endpoints live until the component is closed. */
int mca_btl_r2_del_procs(mca_btl_base_module_t *btl, size_t nprocs, opal_proc_t **procs,
                         mca_btl_r2_endpoint_t **endpoints)
{
    (void) btl;
    (void) procs;
    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    for (size_t i = 0; i < nprocs; ++i) {
        if (NULL != endpoints[i]) {
            endpoints[i]->proc = NULL;
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return OPAL_SUCCESS;
}

static opal_proc_t *r2_proc_of(const mca_btl_r2_job_t *job, uint32_t rank)
{
    const mca_btl_r2_endpoint_t *endpoint;
    opal_proc_t *proc;

    OPAL_THREAD_LOCK(&mca_btl_r2_component.lock);
    endpoint = job->endpoints[rank];
    proc = NULL == endpoint ? NULL : endpoint->proc;
    OPAL_THREAD_UNLOCK(&mca_btl_r2_component.lock);
    return proc;
}

/* Messages were given up: the PML must not go on. Who shares no communicator with this process,
 * after MPI_Comm_disconnect, is nobody's loss. */
void mca_btl_r2_lost(void *arg, uint32_t rank, r2_status_t status)
{
    char text[R2_ERROR_TEXT_BYTES];
    const mca_btl_r2_job_t *job = arg;
    opal_proc_t *proc = r2_proc_of(job, rank);

    if (NULL == proc || (&mca_btl_r2_component.job != job &&
                         !mca_btl_r2_is_connected(proc->proc_name.jobid, proc->proc_name.vpid))) {
        return;
    }
    r2_ctx_error_text(job->ctx, text, sizeof(text));
    if ('\0' == text[0]) {
        snprintf(text, sizeof(text), "%s", r2_status_string(status));
    }
    if (0 == opal_process_info.my_local_rank) { /* mpirun may lose the help message */
        opal_output(0, "btl:r2: messages were lost: %s", text);
    }
    r2_log_lock();
    mca_common_r2_help("help-btl-r2.txt", "lost", text);
    r2_log_unlock();
    if (NULL != mca_btl_r2_component.error) {
        mca_btl_r2_component.error(&mca_btl_r2_module, MCA_BTL_ERROR_FLAGS_FATAL, proc, text);
    }
}
