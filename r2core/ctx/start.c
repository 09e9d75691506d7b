/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Starting a context in a job: NICs, UCX, hello over TCP, PMIx, service thread.
 */
#include "r2_config.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctx/cost_source.h"
#include "ctx/files.h"
#include "ctx/host_id.h"
#include "ctx/posts.h"
#include "ctx/remedy.h"
#include "ctx/state.h"
#include "r2/gpu.h"
#include "rail/probe_tcp.h"
#include "telemetry/path.h"

/** The real parts of a context, kept together for tear-down. */
typedef struct r2_ctx_real {
    r2_tp_t tp;
    r2_hello_t hello;
    r2_oob_t oob;
    r2_probe_t probe;
    r2_posts_t posts;
    r2_log_t log;
    r2_nic_watch_t watch;
    bool pair;     /* oob: of two jobs */
    bool tight;    /* there are not enough descriptors for all lanes at one time */
    r2_ctx_t *ctx; /* borrowed; NULL until it is assembled */
} r2_ctx_real_t;

static void r2_ctx_real_free(r2_ctx_real_t *real)
{
    r2_nic_watch_destroy(&real->watch);
    if (NULL != real->hello.ops) {
        r2_hello_tcp_destroy(&real->hello);
    }
    r2_posts_close(&real->posts);
    if (NULL != real->probe.ops) {
        r2_probe_tcp_destroy(&real->probe);
    }
    if (NULL != real->tp.ops) {
        r2_tp_destroy(&real->tp);
    }
    if (NULL != real->oob.ops && real->pair) {
        r2_oob_pair_destroy(&real->oob);
    } else if (NULL != real->oob.ops) {
        r2_oob_pmix_destroy(&real->oob);
    }
    free(real);
}

/* Where a process gets its out-of-band messages: part of what it published. Never asks the
 * launcher. */
static r2_status_t r2_ctx_mesh_lookup(void *arg, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    const r2_ctx_real_t *real = arg;
    r2_peer_info_t info;
    r2_status_t status;

    if (NULL == real->ctx) {
        return R2_ERR_AGAIN;
    }
    status = r2_net_lookup(&real->ctx->core.net, rank, &info);
    if (R2_OK == status) {
        memcpy(blob_p, info.post, info.post_bytes);
        *bytes_p = info.post_bytes;
        status = 0 == info.post_bytes ? R2_ERR_NOT_FOUND : R2_OK;
        r2_peer_info_put(&info);
    }
    return status;
}

static r2_status_t r2_ctx_real_mesh(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                    r2_ctx_parts_t *parts)
{
    r2_mesh_config_t mesh = {
        .clock = r2_clock_system(),
        .log = &real->log,
        .nics = config->params->oob_nics,
        .rails = parts->nics,
        .rail_count = parts->nic_count,
        .give_up_ns = config->params->oob_give_up_ms * R2_NS_PER_MS,
        .lookup = r2_ctx_mesh_lookup,
        .lookup_arg = real,
    };
    r2_status_t status = real->oob.ops->identity(real->oob.instance, &mesh.rank, &mesh.size);

    return R2_OK == status ? r2_posts_open(&real->posts, config, &real->log, &mesh, parts) : status;
}

/* What r2 cannot do yet, and others may do well. */
static r2_status_t r2_ctx_objection(const r2_params_t *params, char *text_p, size_t text_bytes)
{
    const r2_status_t status = r2_gpu_objection(params->gpu, text_p, text_bytes);

    if (R2_OK != status) {
        return status;
    }
    return R2_OK;
}

/* The leader's figures count for all: plans must not differ. */
static r2_status_t r2_ctx_real_cost(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                    r2_ctx_parts_t *parts, char *text_p, size_t text_bytes)
{
    uint32_t rank, size;
    r2_status_t status = real->oob.ops->identity(real->oob.instance, &rank, &size);

    /* nothing is planned between two jobs */
    return R2_OK == status && 0 == rank && !real->pair
               ? r2_cost_find(config->params->cost_file, r2_clock_system(), &parts->cost, text_p,
                              text_bytes)
               : status;
}

static r2_status_t r2_ctx_real_files(r2_ctx_real_t *real, const r2_ctx_parts_t *parts, char *text_p,
                                     size_t text_bytes)
{
    uint32_t rank, size, ports = 0;
    r2_status_t status = real->oob.ops->identity(real->oob.instance, &rank, &size);

    for (size_t i = 0; i < parts->nic_count; ++i) {
        ports += '\0' != parts->nics[i].tls[0];
    }
    return R2_OK == status ? r2_files_prepare(size, (uint32_t) parts->nic_count, ports, &real->log,
                                              &real->tight, text_p, text_bytes)
                           : status;
}

static r2_status_t r2_ctx_real_drivers(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                       const r2_ctx_parts_t *parts, char *text_p, size_t text_bytes)
{
    const char *what = "UCX could not be started";
    r2_status_t status;
    r2_put_t put;

    errno = 0;
    status = r2_tp_create(&real->tp);
    if (R2_OK == status) {
        errno = 0;
        what = "the hello service could not be started";
        status = r2_hello_tcp_create(r2_clock_system(), &real->log, &real->hello);
    }
    if (R2_OK == status) {
        errno = 0;
        what = "the probes (parameter coll_r2_probe) could not be started";
        put = r2_put_ucx(r2_tp_ucx(&real->tp));
        status = r2_probe_tcp_create(r2_clock_system(), &real->log, &put, config->params->probe,
                                     &real->probe);
    }
    if (R2_ERR_VERSION == status) {
        snprintf(
            text_p, text_bytes,
            "UCX %s is loaded, and r2 was built with UCX %s: what is compiled into r2 may not "
            "fit. Build r2 again with the headers of this UCX, or run without r2 (--mca coll ^r2)",
            r2_tp_ucx_version(), r2_tp_ucx_version_built());
    } else if (R2_OK != status) {
        r2_failure_explain(parts, what, status, text_p, text_bytes);
    }
    return status;
}

/* Without netlink r2 works, but knows less. */
static void r2_ctx_real_watch(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                              const r2_ctx_parts_t *parts)
{
    char text[512];

    errno = 0;
    if (R2_OK != r2_nic_watch_create(parts->nics, parts->nic_count, &real->watch)) {
        r2_failure_explain(parts, "netlink cannot be used", R2_ERR_SYSTEM, text, sizeof(text));
        r2_warn(
            &real->log,
            "carrier losses are only noticed by timeout (coll_r2_failure_timeout_ms, now %llu): %s",
            (unsigned long long) config->params->failure_timeout_ms, text);
    } else if (!real->tight) {
        r2_nic_watch_ports(&real->watch, r2_clock_system(), &real->log);
    }
}

/* Which rails are near which GPU; schedules alone ask, and between jobs there are none. */
static void r2_ctx_real_gpus(r2_ctx_parts_t *parts)
{
    r2_gpu_place_t places[R2_GPUS_MAX];

    if (!parts->pair && NULL != parts->gpu_driver && NULL != r2_gpu_device() &&
        parts->nic_count > 1) {
        r2_near_find(parts->nics, parts->nic_count, places,
                     r2_gpus_find(parts->nics, parts->nic_count, places), &parts->near);
    }
}

/* What the rails offer to other processes; one process of the host tells what is against it. */
static void r2_ctx_offer(const r2_ctx_real_t *real, const r2_params_t *params,
                         r2_ctx_parts_t *parts)
{
    r2_rdma_advice_t advice[R2_RDMA_ADVICE_MAX];
    r2_rdma_setting_t setting;
    uint32_t rank = 0, ranks = 0;
    size_t count;

    (void) real->oob.ops->identity(real->oob.instance, &rank, &ranks);
    r2_rdma_setting_read(params->tls, ranks, &setting);
    r2_nics_offer(&setting, parts->nics, parts->nic_count);
    count = r2_rdma_advise(&setting, parts->nics, parts->nic_count, advice);
    for (size_t i = 0; i < count && r2_params_first_of_host(); ++i) {
        r2_warn(&real->log, "%s; %s", advice[i].what, advice[i].remedy);
    }
}

static r2_status_t r2_ctx_real_oob(r2_ctx_real_t *real, const r2_ctx_config_t *config, char *text_p,
                                   size_t text_bytes)
{
    const char *other = config->other_job;
    r2_status_t status;

    real->pair = NULL != other;
    status = real->pair ? r2_oob_pair_create(other, &real->log, &real->oob)
                        : r2_oob_pmix_create(&real->oob);
    if (R2_ERR_NOT_FOUND == status) {
        snprintf(text_p, text_bytes, "the PMIx server does not know the job %s", other);
    } else if (R2_OK != status) {
        snprintf(text_p, text_bytes,
                 "no PMIx server answers: start the program with mpirun or srun --mpi=pmix");
    }
    return status;
}

static r2_status_t r2_ctx_real_parts(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                     r2_ctx_parts_t *parts, char *text_p, size_t text_bytes)
{
    r2_status_t status = r2_ctx_real_oob(real, config, text_p, text_bytes);
    char what[192];

    if (R2_OK != status) {
        return status;
    }
    status = r2_nics_find_rails(config->params, parts->nics, &parts->nic_count, text_p, text_bytes);
    if (R2_OK != status) {
        return status;
    }
    status = r2_ctx_objection(config->params, text_p, text_bytes);
    if (R2_OK == status) {
        r2_ctx_offer(real, config->params, parts);
        status = r2_ctx_real_files(real, parts, text_p, text_bytes);
    }
    if (R2_OK == status) {
        status = r2_ctx_real_cost(real, config, parts, text_p, text_bytes);
    }
    if (R2_OK != status) {
        return status;
    }
    status = r2_ctx_real_drivers(real, config, parts, text_p, text_bytes);
    if (R2_OK != status) {
        return status;
    }
    errno = 0;
    status = r2_ctx_real_mesh(real, config, parts);
    if (R2_OK != status) {
        snprintf(what, sizeof(what),
                 "the out-of-band path (parameter coll_r2_oob_nics \"%.100s\") could not be opened",
                 config->params->oob_nics);
        r2_failure_explain(parts, what, status, text_p, text_bytes);
    }
    return status;
}

/* Rank 0 tells for all: what is agreed is the same everywhere. */
static r2_status_t r2_ctx_plan_file(r2_ctx_t *ctx, char *text_p, size_t text_bytes)
{
    char path[4096];
    r2_status_t status;

    if (0 != ctx->core.net.rank) {
        return R2_OK;
    }
    status = r2_path_expand("plan_file", ctx->core.params.plan_file, ctx->parts.host_name,
                            ctx->core.net.rank, path, sizeof(path), text_p, text_bytes);
    return R2_OK == status ? r2_snapshot_create("plan_file", path, &ctx->core.log,
                                                &ctx->record.plan_file, text_p, text_bytes)
                           : status;
}

/* Memory is shared within a job. */
static void r2_ctx_host(const r2_ctx_config_t *config, r2_ctx_parts_t *parts)
{
    gethostname(parts->host_name, sizeof(parts->host_name) - 1);
    parts->host_id = r2_host_id(parts->host_name);
    parts->pair = NULL != config->other_job;
    parts->local = !parts->pair;
}

static void r2_ctx_real_log(const r2_ctx_config_t *config, const char *host_name, r2_log_t *log_p)
{
    log_p->level = (int) config->params->verbose;
    log_p->fn = config->log;
    log_p->arg = config->log_arg;
    snprintf(log_p->prefix, sizeof(log_p->prefix), "%s", host_name);
}

/*
 * This process takes no part: the others must know, and so must the user, once.
 * @return R2_OK, or the others do not know. They take it for a no if nothing was published before.
 */
static r2_status_t r2_ctx_real_refuse(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                      const char *host_name, const char *why, bool expected)
{
    const r2_oob_t *oob = &real->oob;
    uint32_t rank = 0, size = 0;
    bool speaks;
    int level = expected && !config->named ? R2_LOG_INFO : R2_LOG_WARN;
    r2_status_t status;

    if (NULL == oob->ops || R2_OK != oob->ops->identity(oob->instance, &rank, &size)) {
        return R2_OK; /* not in a job of PMIx's: there are no others */
    }
    status = config->no_fence ? R2_OK : r2_consent_refuse(oob, host_name, why, expected);
    speaks = real->pair ? r2_oob_pair_leads(oob) : 0 == rank;
    r2_log_at(&real->log, speaks ? level : R2_LOG_INFO, "%s does without r2: %s: %s",
              real->pair ? "what passes to another job" : "this job", host_name, why);
    return status;
}

/* After assembly: what only a context of a job has. */
static r2_status_t r2_ctx_real_start(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                     r2_ctx_t *ctx, char *text_p, size_t text_bytes)
{
    const r2_ctx_parts_t *parts = &ctx->parts;
    r2_status_t status;

    ctx->real = real;
    real->ctx = ctx;
    status =
        r2_events_create(config->params->event_file, parts->host_name, ctx->core.net.rank,
                         &ctx->core.log, parts->clock, &ctx->record.events, text_p, text_bytes);
    if (R2_OK == status) {
        status = r2_ctx_plan_file(ctx, text_p, text_bytes);
    }
    if (R2_OK != status) {
        return status;
    }
    r2_record_start(&ctx->record);
    r2_record_sources(&ctx->record, &ctx->sources);
    errno = 0;
    status = r2_service_create(ctx, &ctx->service);
    if (R2_OK != status) {
        r2_failure_explain(parts, "the service thread could not be started", status, text_p,
                           text_bytes);
    }
    return status;
}

/* The launcher knows nothing of the other job, as between two mpiruns: nor does it there of this
 * one, and both do without. */
static bool r2_ctx_is_strange(r2_status_t status)
{
    return R2_ERR_NOT_FOUND == status || R2_ERR_UNSUPPORTED == status;
}

static r2_status_t r2_ctx_real_make(r2_ctx_real_t *real, const r2_ctx_config_t *config,
                                    r2_ctx_parts_t *parts, r2_ctx_t **ctx_p, char *text_p,
                                    size_t text_bytes)
{
    r2_ctx_t *ctx = NULL;
    r2_status_t status = r2_ctx_real_parts(real, config, parts, text_p, text_bytes);

    if (R2_OK == status) {
        parts->gpu_driver = 0 == strcmp(config->params->gpu, "ignore") ? NULL : R2_GPU_DRIVER;
        r2_ctx_real_gpus(parts);
        parts->tp = real->tp;
        parts->hello = real->hello;
        parts->oob = real->oob;
        parts->probe = real->probe;
        r2_ctx_real_watch(real, config, parts);
        parts->watch = real->watch;
        status = r2_ctx_assemble(config, parts, &ctx, text_p, text_bytes);
    }
    if (R2_OK == status && real->tight) {
        r2_net_tighten(&ctx->core.net);
    }
    if (R2_OK == status) {
        status = r2_ctx_real_start(real, config, ctx, text_p, text_bytes);
    }
    if (R2_OK != status) {
        const r2_status_t told = r2_ctx_real_refuse(
            real, config, parts->host_name, '\0' == text_p[0] ? r2_status_string(status) : text_p,
            R2_ERR_DECLINED == status);

        if (NULL == ctx) { /* nothing was published: the others of a job take it for a no */
            const bool unknown = !r2_ctx_is_strange(status) && R2_ERR_PEER_GONE != status;
            const bool silent = real->pair && (R2_OK != told || (NULL == real->oob.ops && unknown));

            r2_ctx_real_free(real);
            return silent ? R2_ERR_UNTOLD : status;
        }
        r2_ctx_destroy(ctx);
        return R2_OK == told ? status : R2_ERR_UNTOLD;
    }
    *ctx_p = ctx;
    return R2_OK;
}

r2_status_t r2_ctx_create(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p,
                          size_t text_bytes)
{
    r2_ctx_parts_t parts = {.clock = r2_clock_system()};
    r2_ctx_real_t *real = calloc(1, sizeof(*real));

    r2_fork_watch();
    if (NULL == real || sodium_init() < 0) {
        free(real);
        return NULL == config->other_job ? R2_ERR_NO_MEMORY : R2_ERR_UNTOLD;
    }
    text_p[0] = '\0';
    r2_ctx_host(config, &parts);
    r2_ctx_real_log(config, parts.host_name, &real->log);
    return r2_ctx_real_make(real, config, &parts, ctx_p, text_p, text_bytes);
}

void r2_ctx_destroy(r2_ctx_t *ctx)
{
    r2_ctx_real_t *real = ctx->real;

    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(&ctx->core);
    ctx->core.net.ending = true;
    r2_core_leave(&ctx->core);
    if (NULL != ctx->service) {
        r2_service_destroy(ctx->service);
    }
    r2_ctx_dismantle(ctx);
    r2_ctx_real_free(real);
}

r2_status_t r2_ctx_decline(const r2_ctx_config_t *config, const char *why)
{
    r2_ctx_parts_t parts = {.clock = NULL};
    r2_ctx_real_t *real = calloc(1, sizeof(*real));
    r2_status_t status;
    char text[256];

    if (NULL == real) {
        return R2_ERR_UNTOLD;
    }
    r2_ctx_host(config, &parts);
    r2_ctx_real_log(config, parts.host_name, &real->log);
    status = r2_ctx_real_oob(real, config, text, sizeof(text));
    if (R2_OK == status) {
        status = r2_ctx_real_refuse(real, config, parts.host_name, why, real->pair);
    }
    r2_ctx_real_free(real);
    if (R2_ERR_PEER_GONE == status) {
        return status;
    }
    return R2_OK == status || r2_ctx_is_strange(status) ? R2_OK : R2_ERR_UNTOLD;
}

void r2_ctx_forget_log(r2_ctx_t *ctx, r2_log_fn_t log)
{
    r2_core_enter(&ctx->core);
    if (log == ctx->config.log) {
        r2_log_forget(&ctx->core.log);
        r2_log_forget(&ctx->real->log);
    }
    r2_core_leave(&ctx->core);
}
