/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The component r2 of Open MPI's coll framework: registration, start and end.
 */
#include "ulfm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/common/r2/finalize.h"
#include "opal/mca/common/r2/help.h"
#include "opal/mca/common/r2/version.h"
#include "opal/mca/common/r2/widen.h"
#include "opal/runtime/opal_progress.h"

/* Calls of opal_progress() of which one makes a pass while no request is under way. */
#define R2_PROGRESS_EVERY 32u

static int r2_component_register(void);
static int r2_component_open(void);
static int r2_component_close(void);
static int r2_component_init_query(bool enable_progress_threads, bool enable_mpi_threads);

mca_coll_r2_component_t mca_coll_r2_component = {
    .super =
        {
            .collm_version =
                {
                    MCA_COLL_R2_BASE_VERSION,
                    .mca_component_name = "r2",
                    MCA_BASE_MAKE_VERSION(component, R2_MAJOR_VERSION, R2_MINOR_VERSION,
                                          R2_RELEASE_VERSION),
                    .mca_open_component = r2_component_open,
                    .mca_close_component = r2_component_close,
                    .mca_register_component_params = r2_component_register,
                },
            .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
            .collm_init_query = r2_component_init_query,
            .collm_comm_query = mca_coll_r2_comm_query,
        },
};

static int r2_component_register(void)
{
    int rc;

    if (!mca_common_r2_fits("coll")) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    mca_common_r2_help_init(&mca_coll_r2_component);
    /* The transports are selected before this framework is opened, if they are used at all. */
    mca_coll_r2_component.named = mca_common_r2_is_named(&ompi_coll_base_framework) ||
                                  mca_common_r2_is_named(&opal_btl_base_framework);
    rc = mca_coll_r2_params_register();
    if (OMPI_SUCCESS != rc && OMPI_ERR_BAD_PARAM != rc) {
        return rc;
    }
    /* What comes of a bad value is decided later: failing here would run the job silently without
     * r2. */
    mca_coll_r2_component.params_ok = OMPI_SUCCESS == rc;
    rc = mca_coll_r2_pvars_register();
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    return mca_common_r2_widen(&ompi_coll_base_framework, mca_coll_r2_component.fallback);
}

/* r2core's lines already carry host and rank; opal_output adds time stamps and redirection. */
static void r2_component_log(void *arg, int level, const char *line)
{
    (void) arg;
    (void) level;
    opal_output(0, "%s", line);
}

static void r2_component_idle(void *arg)
{
    (void) arg;
    opal_progress();
}

/* Installed is not enabled: without being asked for r2 does nothing at all. */
static bool r2_component_is_wanted(void)
{
    const mca_coll_r2_component_t *component = &mca_coll_r2_component;

    return 0 < component->priority && (component->named || component->params.enable);
}

/* What is published beside R2_USER_COLL. */
static uint32_t r2_component_one_host(void)
{
    static const struct {
        const char *word;
        uint32_t users;
    } rows[] = {{"blocking", R2_USER_ONE_HOST}, {"r2", R2_USER_ONE_HOST | R2_USER_ONE_HOST_ALL}};
    const char *word = mca_coll_r2_component.params.single_host;

    for (size_t i = 0; NULL != word && i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (0 == strcmp(word, rows[i].word)) {
            return rows[i].users;
        }
    }
    return 0;
}

/* Before the launcher's fence: what is published now is there for all when MPI_Init returns. */
static int r2_component_open(void)
{
    mca_coll_r2_component_t *component = &mca_coll_r2_component;
    r2_ctx_config_t config = {
        .params = &component->params,
        .log = r2_component_log,
        .idle = r2_component_idle,
        .users = R2_USER_COLL | r2_component_one_host(),
        .named = component->named,
        .no_fence = mca_common_r2_async_modex(),
        .yields = &opal_progress_yield_when_idle,
    };

    OBJ_CONSTRUCT(&component->requests, opal_free_list_t);
    component->opened = true;
    if (!r2_component_is_wanted()) {
        return OMPI_SUCCESS;
    }
    mca_coll_r2_ulfm_settle();
    if (OMPI_SUCCESS != mca_coll_r2_requests_init(&component->requests)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (config.no_fence) {
        r2_ctx_refuse(&config, MCA_COMMON_R2_ASYNC_MODEX);
    } else if (component->params_ok) {
        component->untold =
            R2_ERR_UNTOLD == r2_ctx_acquire(&config, &component->ctx, component->why_not,
                                            sizeof(component->why_not));
    } else if (!component->named) {
        r2_ctx_refuse(&config, component->why_not);
    }
    return OMPI_SUCCESS;
}

/*
 * Who polls while no request of r2 is under way waits for something else, or in a blocking call of
 * r2, which drives by itself. A pass takes longer than Open MPI's own transports together, so only
 * some calls make one, for peers that wait for acknowledgements; the service thread looks after
 * those if that is too seldom.
 */
static int r2_component_progress(void)
{
    mca_coll_r2_component_t *component = &mca_coll_r2_component;

    mca_coll_r2_ulfm_look();
    if (0 == atomic_load_explicit(&component->under_way, memory_order_relaxed)) {
        const uint32_t polls = atomic_load_explicit(&component->polls, memory_order_relaxed) + 1;

        atomic_store_explicit(&component->polls, polls, memory_order_relaxed);
        if (0 != polls % R2_PROGRESS_EVERY) {
            return 0;
        }
    }
    return (int) r2_ctx_progress_as(component->ctx, component);
}

static void r2_component_stop(void)
{
    if (mca_coll_r2_component.agreed && mca_common_r2_async_finalize()) {
        r2_ctx_linger(mca_coll_r2_component.ctx);
    }
    mca_coll_r2_p2p_end();
    if (mca_coll_r2_component.progressing) {
        opal_progress_unregister(r2_component_progress);
        r2_ctx_progress_end(mca_coll_r2_component.ctx, &mca_coll_r2_component);
        mca_coll_r2_component.progressing = false;
    }
    if (NULL != mca_coll_r2_component.ctx) {
        r2_ctx_release(mca_coll_r2_component.ctx, r2_component_log);
        mca_coll_r2_component.ctx = NULL;
        mca_coll_r2_component.agreed = false;
    }
}

static int r2_component_close(void)
{
    r2_component_stop();
    if (mca_coll_r2_component.opened) {
        OBJ_DESTRUCT(&mca_coll_r2_component.requests);
        mca_coll_r2_component.opened = false;
    }
    if (R2_LOG_DEBUG > mca_coll_r2_component.params.verbose) {
        return OMPI_SUCCESS;
    }
#define MCA_COLL_R2_COLLECTIVE(name)                                                           \
    if (0 != mca_coll_r2_component.calls.name) {                                               \
        opal_output(0, "coll:r2: %s calls %" PRIu64, #name, mca_coll_r2_component.calls.name); \
    }
#include "collectives.def"
#undef MCA_COLL_R2_COLLECTIVE
    return OMPI_SUCCESS;
}

void mca_coll_r2_abort(const char *what, r2_status_t status)
{
    const char *host = opal_process_info.nodename;

    /* 4.1's mpirun loses help messages that reach it together. */
    opal_output(0, "coll:r2: %s, process %u, cannot go on: %s: %s", host,
                (unsigned) ompi_proc_local()->super.proc_name.vpid, what, r2_status_string(status));
    mca_common_r2_help("help-coll-r2.txt", "alone", host, what, r2_status_string(status));
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_OTHER);
}

/* Of communicators on one host: what r2 has no part in. */
static const char *r2_component_left(void)
{
    if (R2_OK == r2_ctx_agreed(mca_coll_r2_component.ctx, R2_USER_ONE_HOST_ALL)) {
        return "";
    }
    return R2_OK == r2_ctx_agreed(mca_coll_r2_component.ctx, R2_USER_ONE_HOST)
               ? "; on one host for blocking collectives"
               : "; not for communicators on one host";
}

/* One line for each host at info level: that r2 is in use, and how. */
static void r2_component_describe(void)
{
    char text[1024];

    if (R2_LOG_INFO <= mca_coll_r2_component.params.verbose &&
        0 == opal_process_info.my_local_rank) {
        r2_ctx_describe(mca_coll_r2_component.ctx, text, sizeof(text));
        opal_output(0, "coll:r2: in use on %s: %s%s", opal_process_info.nodename, text,
                    r2_component_left());
    }
}

bool mca_coll_r2_is_agreed(void)
{
    mca_coll_r2_component_t *component = &mca_coll_r2_component;
    r2_status_t status;

    if (NULL == component->ctx || component->agreed) {
        return component->agreed;
    }
    status = r2_ctx_agreed(component->ctx, R2_USER_COLL);
    if (R2_OK == status) {
        component->agreed = true;
        mca_coll_r2_errors_init();
        mca_coll_r2_p2p_begin();
        r2_component_describe();
    } else if (R2_ERR_UNSUPPORTED == status) {
        r2_component_stop();
    } else if (R2_ERR_FORKED != status) {
        r2_ctx_error_text(component->ctx, component->why_not, sizeof(component->why_not));
        mca_coll_r2_abort(component->why_not, status);
    }
    return component->agreed;
}

/* A common mistake: each process is a job of its own, and nothing of r2, or of MPI, connects them.
 * */
static void r2_component_hint(void)
{
    const unsigned tasks = r2_params_lone_tasks();

    if (0 != tasks && mca_coll_r2_component.named &&
        R2_LOG_WARN <= mca_coll_r2_component.params.verbose &&
        (NULL == mca_coll_r2_component.ctx || 1 == r2_ctx_size(mca_coll_r2_component.ctx))) {
        opal_output(0,
                    "coll:r2: not in use on %s: srun started %u tasks that are jobs of one process "
                    "each; use srun --mpi=pmix, or mpirun (srun --mpi=list shows what Slurm has)",
                    opal_process_info.nodename, tasks);
    }
}

static int r2_component_init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    if (!mca_coll_r2_component.params_ok && mca_coll_r2_component.named) {
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_ARG);
        return OMPI_ERR_BAD_PARAM;
    }
    if (mca_coll_r2_component.untold) {
        mca_coll_r2_abort(mca_coll_r2_component.why_not, R2_ERR_UNTOLD);
        return OMPI_ERROR;
    }
    r2_component_hint();
    if (NULL == mca_coll_r2_component.ctx) {
        /* Not asked for, or this process has told all others that it cannot. */
        return OMPI_ERR_NOT_AVAILABLE;
    }
    opal_progress_register(r2_component_progress);
    mca_coll_r2_component.progressing = true;
    return OMPI_SUCCESS;
}
