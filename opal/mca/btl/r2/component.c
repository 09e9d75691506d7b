/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The component r2 of Open MPI's btl framework: registration, start and end.
 */
#include "btl_r2.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/r2/finalize.h"
#include "opal/mca/common/r2/help.h"
#include "opal/mca/common/r2/version.h"
#include "opal/mca/common/r2/widen.h"

static int r2_btl_register(void);
static int r2_btl_open(void);
static int r2_btl_close(void);
static mca_btl_base_module_t **r2_btl_init(int *count_p, bool enable_progress_threads,
                                           bool enable_mpi_threads);
static int r2_btl_progress(void);

mca_btl_r2_component_t mca_btl_r2_component = {
    .super =
        {
            .btl_version =
                {
                    MCA_BTL_DEFAULT_VERSION("r2"),
                    .mca_open_component = r2_btl_open,
                    .mca_close_component = r2_btl_close,
                    .mca_register_component_params = r2_btl_register,
                },
            .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
            .btl_init = r2_btl_init,
        },
};

static size_t r2_btl_most(size_t bytes, size_t most)
{
    return bytes < most ? bytes : most;
}

/* A fragment has to hold the PML's header and some data. */
#define R2_BTL_LEAST_SEND_BYTES 1024u

/* Parameters of the user: the PML waits for ever where it gets no fragment of the size it was
 * promised. */
static void r2_btl_limit(mca_btl_base_module_t *module)
{
    module->btl_max_send_size = r2_btl_most(module->btl_max_send_size, R2_P2P_MESSAGE_MAX);
    if (module->btl_max_send_size < R2_BTL_LEAST_SEND_BYTES) {
        module->btl_max_send_size = R2_BTL_LEAST_SEND_BYTES;
    }
    module->btl_eager_limit = r2_btl_most(module->btl_eager_limit, module->btl_max_send_size);
    module->btl_rndv_eager_limit =
        r2_btl_most(module->btl_rndv_eager_limit, module->btl_max_send_size);
}

/* Spawned processes are another job: where it does not use r2, another transport reaches it. */
static int r2_btl_other_jobs_register(void)
{
    const mca_base_component_t *version = &mca_btl_r2_component.super.btl_version;
    int rc;

    mca_btl_r2_component.other_jobs = 0;
    rc = mca_base_component_var_register(
        version, "other_jobs",
        "How many other jobs (MPI_Comm_spawn, MPI_Comm_connect) are reached by r2 at a time, which "
        "takes a thread and connections of its own for each of them. Further ones are left to "
        "btl_r2_fallback. 0, the default: all are. Equal in jobs that meet.",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY,
        &mca_btl_r2_component.other_jobs);
    if (0 > rc) {
        return rc;
    }
    mca_btl_r2_component.fallback = (char *) (uintptr_t) "tcp";
    rc = mca_base_component_var_register(
        version, "fallback",
        "Comma separated components that are selected too when btl is selected by a list that "
        "names r2, as in \"--mca btl r2,self\": they reach the processes that r2 does not, which "
        "are those of other jobs that do without r2 (MPI_Comm_spawn, MPI_Comm_connect). Those that "
        "are not installed are left out. Empty: none.",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY,
        &mca_btl_r2_component.fallback);
    return 0 > rc ? rc : mca_common_r2_widen(&opal_btl_base_framework,
                                             mca_btl_r2_component.fallback);
}

/*
 * Limits: eager messages fit one chunk that the link copies, so they are complete at once; no
 * message is longer than what may go without credit. Long contiguous messages are read by their
 * receiver.
 */
static int r2_btl_register(void)
{
    mca_btl_base_module_t *module = &mca_btl_r2_module;
    int rc;

    if (!mca_common_r2_fits("btl")) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    mca_common_r2_help_init(&mca_btl_r2_component);
    module->btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT;
    module->btl_eager_limit = R2_BTL_EAGER_BYTES;
    module->btl_rndv_eager_limit = R2_BTL_EAGER_BYTES;
    module->btl_max_send_size = R2_BTL_EAGER_BYTES;
    module->btl_rdma_pipeline_send_length = 65536;
    module->btl_rdma_pipeline_frag_size = SIZE_MAX;
    module->btl_min_rdma_pipeline_size = 65536;
    module->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS |
                        MCA_BTL_FLAGS_ATOMIC_FOPS | MCA_BTL_R2_REMOTE_COMPLETION;
    module->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND |
                               MCA_BTL_ATOMIC_SUPPORTS_OR | MCA_BTL_ATOMIC_SUPPORTS_XOR |
                               MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
                               MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    module->btl_get_limit = SIZE_MAX;
    module->btl_get_alignment = 0;
    module->btl_put_limit = SIZE_MAX;
    module->btl_put_alignment = 0;
    module->btl_get_local_registration_threshold = SIZE_MAX;
    module->btl_put_local_registration_threshold = SIZE_MAX;
    module->btl_bandwidth = 1000;
    module->btl_latency = 20;
    rc = mca_btl_base_param_register(&mca_btl_r2_component.super.btl_version, module);
    r2_btl_limit(module);
    return OPAL_SUCCESS == rc ? r2_btl_other_jobs_register() : rc;
}

static int r2_btl_open(void)
{
    OBJ_CONSTRUCT(&mca_btl_r2_component.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_btl_r2_component.connecting, opal_mutex_t);
    pthread_rwlock_init(&mca_btl_r2_component.alive, NULL);
    return OPAL_SUCCESS;
}

void mca_btl_r2_log(void *arg, int level, const char *line)
{
    (void) arg;
    (void) level;
    opal_output(0, "%s", line);
}

void mca_btl_r2_idle(void *arg)
{
    (void) arg;
    opal_progress();
}

/* Gives back what this process has of r2. */
static void r2_btl_stop(void)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;

    if (component->agreed && mca_common_r2_async_finalize()) {
        r2_ctx_linger(component->job.ctx);
    }
    if (NULL != component->job.p2p) {
        opal_progress_unregister(r2_btl_progress);
        r2_ctx_progress_end(component->job.ctx, component);
    }
    mca_btl_r2_jobs_stop();
    mca_btl_r2_job_close(&component->job);
    if (NULL != component->job.ctx) {
        r2_ctx_release(component->job.ctx, mca_btl_r2_log);
        component->job.ctx = NULL;
    }
    component->agreed = false;
}

/* This process would have no way to peers that count on one. */
static void r2_btl_abort(r2_status_t status)
{
    mca_btl_r2_abort(mca_btl_r2_component.why_not, status);
}

/* After an error of the start: the job ends if the others count on this process. */
static void r2_btl_end(r2_status_t status)
{
    if (R2_ERR_UNTOLD == status) {
        r2_btl_abort(status);
    }
}

/* This process has no use for the context after all. @return `why`, or R2_ERR_UNTOLD. */
static r2_status_t r2_btl_withdraw(r2_status_t why)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    r2_status_t status = r2_ctx_withdraw(component->job.ctx, R2_USER_P2P);

    if (R2_OK != status) {
        snprintf(component->why_not, sizeof(component->why_not), "%s", r2_status_string(why));
    }
    r2_btl_stop();
    return R2_OK == status ? why : status;
}

/* Within a host long messages that are read by their receiver come in with a copy less. What the
 * user has set stays. */
static void r2_btl_settle_limit(const r2_ctx_t *ctx)
{
    mca_btl_base_module_t *module = &mca_btl_r2_module;

    if ((uint32_t) opal_process_info.num_local_peers + 1 == r2_ctx_size(ctx) &&
        R2_BTL_EAGER_BYTES == module->btl_eager_limit) {
        module->btl_eager_limit = R2_BTL_EAGER_HOST_BYTES;
    }
}

/*
 * Makes the context that coll/r2, which comes later, will share. A process that cannot tells the
 * others, and the user, so that nobody uses it.
 */
static r2_status_t r2_btl_start(void)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    const uint32_t jobs = 0 == component->other_jobs ? 0 : R2_USER_JOBS;
    r2_ctx_config_t config = {.params = &component->params,
                              .log = mca_btl_r2_log,
                              .idle = mca_btl_r2_idle,
                              .users = R2_USER_P2P | jobs,
                              .named = true,
                              .no_fence = mca_common_r2_async_modex()};
    r2_status_t status;

    status = mca_btl_r2_params_read(&component->params, component->why_not,
                                    sizeof(component->why_not));
    if (R2_OK != status) {
        r2_ctx_refuse(&config, component->why_not);
        return status;
    }
    if (config.no_fence) {
        r2_ctx_refuse(&config, MCA_COMMON_R2_ASYNC_MODEX);
        return R2_ERR_UNSUPPORTED;
    }
    status = r2_ctx_acquire(&config, &component->job.ctx, component->why_not,
                            sizeof(component->why_not));
    if (R2_OK != status) {
        return status;
    }
    r2_btl_settle_limit(component->job.ctx);
    component->job.id = OPAL_PROC_MY_NAME.jobid;
    status = mca_btl_r2_job_open(&component->job);
    return R2_OK == status ? R2_OK : r2_btl_withdraw(status);
}

/* One line for each host at info level: that r2 is in use, and how. */
static void r2_btl_describe(const mca_btl_r2_component_t *component)
{
    char text[1024];

    if (R2_LOG_INFO <= component->params.verbose && 0 == opal_process_info.my_local_rank) {
        r2_ctx_describe(component->job.ctx, text, sizeof(text));
        opal_output(0, "btl:r2: in use on %s: %s", opal_process_info.nodename, text);
    }
}

static int r2_btl_refuse(void)
{
    mca_btl_r2_jobs_look();
    return 0;
}

bool mca_btl_r2_is_agreed(void)
{
    mca_btl_r2_component_t *component = &mca_btl_r2_component;
    r2_status_t status;

    if (NULL == component->job.ctx || component->agreed) {
        return component->agreed;
    }
    /* A peer may send first, long before it is added here: be ready for its hello. */
    status = r2_p2p_reach(component->job.p2p, r2_ctx_rank(component->job.ctx));
    if (R2_OK == status) {
        component->agreed = true;
        r2_btl_describe(component);
    } else if (R2_ERR_UNSUPPORTED == status) {
        r2_btl_stop();
        component->refuses = true;
        opal_progress_register(r2_btl_refuse);
    } else if (R2_ERR_FORKED != status) {
        r2_ctx_error_text(component->job.ctx, component->why_not, sizeof(component->why_not));
        r2_btl_abort(status);
    }
    return component->agreed;
}

static mca_btl_base_module_t **r2_btl_init(int *count_p, bool enable_progress_threads,
                                           bool enable_mpi_threads)
{
    mca_btl_base_module_t **modules;
    r2_status_t status;

    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    *count_p = 0;
    /* By name only: a job that did not ask for r2 keeps the transports it has. */
    if (!mca_common_r2_is_named(&opal_btl_base_framework)) {
        return NULL;
    }
    status = r2_btl_start();
    if (R2_OK != status) {
        r2_btl_end(status);
        return NULL;
    }
    modules = malloc(sizeof(*modules)); /* the framework frees it */
    if (NULL != modules) {
        /* Not btl_progress: the PML would start that with its first send only. */
        opal_progress_register(r2_btl_progress);
        modules[0] = &mca_btl_r2_module;
        /* osc/rdma looks for it among the flags of the transport, not of its atomic operations:
         * without, it takes the locks of this host's windows by messages, others directly. */
        mca_btl_r2_module.btl_flags |= MCA_BTL_ATOMIC_SUPPORTS_GLOB;
        mca_btl_r2_register_init(&mca_btl_r2_module);
        *count_p = 1;
    } else {
        r2_btl_end(r2_btl_withdraw(R2_ERR_NO_MEMORY));
    }
    return modules;
}

static int r2_btl_progress(void)
{
    mca_btl_r2_jobs_look();
    return (int) (r2_ctx_progress_as(mca_btl_r2_component.job.ctx, &mca_btl_r2_component) +
                  mca_btl_r2_jobs_progress());
}

static int r2_btl_close(void)
{
    if (mca_btl_r2_component.refuses) {
        opal_progress_unregister(r2_btl_refuse);
        mca_btl_r2_component.refuses = false;
    }
    r2_btl_stop();
    pthread_rwlock_destroy(&mca_btl_r2_component.alive);
    OBJ_DESTRUCT(&mca_btl_r2_component.connecting);
    OBJ_DESTRUCT(&mca_btl_r2_component.lock);
    return OPAL_SUCCESS;
}
