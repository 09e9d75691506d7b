/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * ULFM: calls of r2 end on a communicator that is revoked, or one of whose processes is dead to the
 * launcher; and they end with the error of a death when the launcher knows it, too, so that what
 * the application asks next (MPIX_Comm_failure_ack) has the dead. Open MPI tells its components
 * nothing of either, it only marks the communicator, so who waits looks at the marks. Where the
 * launcher is late, r2 tells Open MPI of the dead, as its transports do.
 */
#include "ulfm.h"

#if MCA_COLL_R2_HAS_ULFM

#    include <pthread.h>
#    include <sched.h>
#    include <time.h>

#    include "ompi/errhandler/errhandler.h"
#    include "ompi/runtime/params.h"
#    include "opal/runtime/opal_progress.h"

/* Between two looks: a look walks all communicators. */
#    define R2_ULFM_LOOK_US 1000u

/* How long a death that r2 has found, or a revocation that a peer has passed on, waits for Open MPI
 * to hear of it. A process that has left by MPI_Finalize is gone, too, and no word comes. */
#    define R2_ULFM_WORD_US 500000u
/* For how long the launcher may tell of a death before r2 does. */
#    define R2_ULFM_OWN_WORD_US 200000u
/* Between two looks at who has lost its lanes: whoever is found then is asked after at once... */
#    define R2_ULFM_ASK_US 200000u
/* ... and again after this part of the time since something failed last, up to a limit. */
#    define R2_ULFM_ASK_PART    8u
#    define R2_ULFM_ASK_MOST_US 5000000u

static pthread_mutex_t r2_ulfm_lock = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_r2_module_t *r2_ulfm_modules; /* r2_ulfm_lock: those without a mark */
static mca_coll_r2_parked_t *r2_ulfm_parked;  /* r2_ulfm_lock */
static _Atomic uint64_t r2_ulfm_next_us;      /* of the next look */
static uint32_t r2_ulfm_gone;                 /* r2_ulfm_lock: processes that r2 knows to be gone */
static uint64_t r2_ulfm_gone_us;              /* r2_ulfm_lock: since when; 0: Open MPI knows all */
static uint64_t r2_ulfm_ask_us;               /* r2_ulfm_lock: of the next look at who is lost */
static uint64_t r2_ulfm_news_us; /* r2_ulfm_lock: when something failed last; 0: nothing has */

/* Where messages of Open MPI's agreement go: a star is 3 in its code, though its help says 2, which
 * is a chain. */
#    define R2_ULFM_STAR 3

void mca_coll_r2_ulfm_settle(void)
{
    int var_idx = mca_base_var_find("ompi", "coll", "ftagree", "era_topology");
    mca_base_var_source_t source;
    int *topology = NULL;

    if (ompi_ftmpi_enabled && 0 <= var_idx &&
        OPAL_SUCCESS == mca_base_var_get_value(var_idx, &topology, &source, NULL) &&
        MCA_BASE_VAR_SOURCE_DEFAULT == source && NULL != topology) {
        *topology = R2_ULFM_STAR;
    }
}

static uint64_t r2_ulfm_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* Open MPI's agreement tells the result of one that is over to whom it finds among the processes
 * that this one has met, and crashes where there is none: whose root dies asks anybody. */
static void r2_ulfm_meet_all(struct ompi_communicator_t *comm)
{
    for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
        (void) ompi_comm_peer_lookup(comm, rank);
    }
}

void mca_coll_r2_ulfm_watch(mca_coll_r2_module_t *module, struct ompi_communicator_t *comm)
{
    if (!ompi_ftmpi_enabled) {
        return;
    }
    r2_ulfm_meet_all(comm);
    pthread_mutex_lock(&r2_ulfm_lock);
    module->watched = comm;
    module->next = r2_ulfm_modules;
    r2_ulfm_modules = module;
    pthread_mutex_unlock(&r2_ulfm_lock);
}

/* r2_ulfm_lock. Harmless if it is not among them. */
static void r2_ulfm_remove(const mca_coll_r2_module_t *module)
{
    mca_coll_r2_module_t **at = &r2_ulfm_modules;

    while (NULL != *at && module != *at) {
        at = &(*at)->next;
    }
    if (module == *at) {
        *at = module->next;
    }
}

void mca_coll_r2_ulfm_forget(mca_coll_r2_module_t *module)
{
    pthread_mutex_lock(&r2_ulfm_lock);
    r2_ulfm_remove(module);
    pthread_mutex_unlock(&r2_ulfm_lock);
}

r2_status_t mca_coll_r2_ulfm_mark(const mca_coll_r2_module_t *module)
{
    if (NULL == module->watched) {
        return R2_OK;
    }
    if (ompi_comm_is_revoked(module->watched)) {
        return R2_ERR_REVOKED;
    }
    return ompi_comm_coll_revoked(module->watched) ? R2_ERR_PEER_GONE : R2_OK;
}

/* r2_ulfm_lock. */
static void r2_ulfm_look_at_modules(uint64_t now_us)
{
    mca_coll_r2_module_t *module = r2_ulfm_modules, *next;
    r2_status_t status;

    for (; NULL != module; module = next) {
        next = module->next;
        status = mca_coll_r2_ulfm_mark(module);
        if (R2_OK != status) {
            r2_ulfm_remove(module);
            r2_coll_refuse(module->r2, status);
            r2_ulfm_news_us = now_us;
        }
    }
}

/* ---- deaths that r2 knows of, and the launcher does not tell */

/* r2_ulfm_lock. Is Open MPI to be told now? */
static bool r2_ulfm_is_due(uint64_t now_us)
{
    const uint32_t gone = r2_ctx_gone_count(mca_coll_r2_component.ctx);

    if (gone != r2_ulfm_gone) {
        r2_ulfm_gone = gone;
        r2_ulfm_news_us = now_us;
        r2_ulfm_gone_us = 0 == r2_ulfm_gone_us ? now_us : r2_ulfm_gone_us;
    }
    if (0 == r2_ulfm_gone_us || now_us - r2_ulfm_gone_us < R2_ULFM_OWN_WORD_US) {
        return false;
    }
    r2_ulfm_gone_us = 0;
    return true;
}

/* r2_ulfm_lock. The application may be in Open MPI's agreement at any time, where all wait for one
 * that died with everything acknowledged that it was sent: r2 asks after nobody who is owed
 * nothing, so it is made to. */
static bool r2_ulfm_is_to_ask(uint64_t now_us)
{
    if (now_us < r2_ulfm_ask_us) {
        return false;
    }
    r2_ulfm_ask_us = now_us + R2_ULFM_ASK_US;
    return true;
}

/* r2_ulfm_lock. Until the next question after somebody of whom nothing was heard since the last. */
static uint64_t r2_ulfm_pause_us(uint64_t now_us)
{
    const uint64_t pause_us = (now_us - r2_ulfm_news_us) / R2_ULFM_ASK_PART;

    if (pause_us < R2_ULFM_ASK_US) {
        return R2_ULFM_ASK_US;
    }
    return pause_us < R2_ULFM_ASK_MOST_US ? pause_us : R2_ULFM_ASK_MOST_US;
}

/*
 * @return how many are gone. Those that it knows are passed over there. In this process alone: each
 * that misses somebody tells its own. Outside of the locks, since it wakes who waits in requests.
 */
static uint32_t r2_ulfm_tell(void)
{
    ompi_communicator_t *world = (ompi_communicator_t *) MPI_COMM_WORLD;
    uint32_t count = 0;

    if (NULL == world->c_local_group) { /* MPI_Finalize is nearly over */
        return UINT32_MAX;
    }
    for (int rank = 0; rank < ompi_comm_size(world); ++rank) {
        if (r2_ctx_is_gone(mca_coll_r2_component.ctx, (uint32_t) rank)) {
            (void) ompi_errhandler_proc_failed_internal(ompi_comm_peer_lookup(world, rank),
                                                        MPI_ERR_PROC_FAILED, false);
            ++count;
        }
    }
    return count;
}

/* Others may say of a process that we hear that it is gone: it is looked at again later. */
static void r2_ulfm_tell_all(uint64_t now_us)
{
    if (r2_ulfm_tell() < r2_ctx_gone_count(mca_coll_r2_component.ctx)) {
        pthread_mutex_lock(&r2_ulfm_lock);
        r2_ulfm_gone_us = now_us;
        pthread_mutex_unlock(&r2_ulfm_lock);
    }
}

/* ---- deaths and revocations that Open MPI has not heard of yet */

/* Is there nothing to wait for (any more)? */
static bool r2_ulfm_is_told(mca_coll_r2_module_t *module, r2_status_t status, uint64_t since_us)
{
    if (R2_ERR_PEER_GONE != status && R2_ERR_REVOKED != status) {
        return true;
    }
    if (NULL == module->watched || R2_OK != mca_coll_r2_ulfm_mark(module)) {
        return true;
    }
    if (r2_ulfm_now_us() - since_us > R2_ULFM_WORD_US) {
        module->word_missing = true;
    }
    return module->word_missing;
}

/* Has the launcher's word not come? Then r2's has to: who was not scheduled for as long as a word
 * is waited for has not come to tell it. */
static bool r2_ulfm_is_unheard(const mca_coll_r2_module_t *module, r2_status_t status)
{
    return R2_ERR_PEER_GONE == status && R2_OK == mca_coll_r2_ulfm_mark(module);
}

void mca_coll_r2_ulfm_await(mca_coll_r2_module_t *module, r2_status_t status)
{
    uint64_t since_us;

    if (R2_OK == status || NULL == module->watched) {
        return;
    }
    since_us = r2_ulfm_now_us();
    while (!r2_ulfm_is_told(module, status, since_us)) {
        opal_progress();
        sched_yield();
    }
    if (r2_ulfm_is_unheard(module, status)) {
        (void) r2_ulfm_tell();
    }
}

bool mca_coll_r2_ulfm_park(mca_coll_r2_module_t *module, r2_status_t status,
                           mca_coll_r2_parked_t *parked, r2_coll_done_fn_t done, void *arg)
{
    uint64_t now_us;

    if (R2_OK == status || NULL == module->watched) {
        return false;
    }
    now_us = r2_ulfm_now_us();
    if (r2_ulfm_is_told(module, status, now_us)) {
        return false;
    }
    *parked = (mca_coll_r2_parked_t){
        .module = module, .status = status, .since_us = now_us, .done = done, .arg = arg};
    pthread_mutex_lock(&r2_ulfm_lock);
    parked->next = r2_ulfm_parked;
    r2_ulfm_parked = parked;
    pthread_mutex_unlock(&r2_ulfm_lock);
    return true;
}

/* r2_ulfm_lock. @return those that wait no longer, as a list. */
static mca_coll_r2_parked_t *r2_ulfm_take_told(void)
{
    mca_coll_r2_parked_t **at = &r2_ulfm_parked, *told = NULL;

    while (NULL != *at) {
        mca_coll_r2_parked_t *parked = *at;

        if (r2_ulfm_is_told(parked->module, parked->status, parked->since_us)) {
            *at = parked->next;
            parked->next = told;
            told = parked;
        } else {
            at = &parked->next;
        }
    }
    return told;
}

/* ---- from progress */

void mca_coll_r2_ulfm_look(void)
{
    mca_coll_r2_parked_t *told, *next;
    uint64_t now_us, pause_us;
    bool due, ask;

    if (!ompi_ftmpi_enabled) {
        return;
    }
    now_us = r2_ulfm_now_us();
    if (now_us < atomic_load_explicit(&r2_ulfm_next_us, memory_order_relaxed) ||
        0 != pthread_mutex_trylock(&r2_ulfm_lock)) {
        return;
    }
    atomic_store_explicit(&r2_ulfm_next_us, now_us + R2_ULFM_LOOK_US, memory_order_relaxed);
    r2_ulfm_look_at_modules(now_us);
    told = r2_ulfm_take_told();
    due = r2_ulfm_is_due(now_us);
    ask = r2_ulfm_is_to_ask(now_us);
    pause_us = r2_ulfm_pause_us(now_us);
    for (next = told; NULL != next && !due; next = next->next) {
        due = r2_ulfm_is_unheard(next->module, next->status);
    }
    pthread_mutex_unlock(&r2_ulfm_lock);
    if (due) {
        r2_ulfm_tell_all(now_us);
    }
    if (ask) {
        r2_ctx_ask_after_lost(mca_coll_r2_component.ctx, 1000 * pause_us);
    }
    for (; NULL != told; told = next) {
        next = told->next; /* the request is another's as soon as it is complete */
        told->done(told->arg, told->status);
    }
}

#endif
