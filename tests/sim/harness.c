/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A simulated job: assembly, driving of ranks.
 */
#include "r2_config.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "harness.h"
#include "link/wire.h"

#define RUN_ROUNDS_MAX 256 /* progress passes of one rank at one time */
#define SLOW_PACKETS   16  /* of a rail, at one time, in a process that is slow */
/* Memory is looked at around the first runs of the service thread, and one in so many later
 * ones. */
#define LOOKS_FIRST   100
#define LOOKS_LATER   1000
#define IDLE_RUNS_MAX 20000 /* runs in a row that find nothing to do but want to run again */

void job_fail(job_t *job, const char *format, ...)
{
    va_list args;
    int n;

    if (job->failed) {
        return;
    }
    job->failed = true;
    n = snprintf(job->result->text, sizeof(job->result->text),
                 "at %.6f ms: ", (double) (r2_sim_now_ns(job->sim) - R2_NS_PER_S) / 1e6);
    va_start(args, format);
    vsnprintf(job->result->text + n, sizeof(job->result->text) - (size_t) n, format, args);
    va_end(args);
}

/* ---- when ranks run ---- */

static bool rank_is_away(const job_rank_t *rank)
{
    return !rank->job->ending &&
           (rank->finished || r2_sim_now_ns(rank->job->sim) < rank->compute_until_ns);
}

static void rank_event(void *arg, uint64_t token);

void job_schedule(job_rank_t *rank, uint64_t time_ns)
{
    r2_sim_t *sim = rank->job->sim;

    time_ns = r2_max(time_ns, r2_sim_now_ns(sim));
    if (0 != rank->slow_ns && !rank->job->ending) {
        time_ns = r2_max(time_ns, rank->slow_next_ns);
    }
    if (rank->dead || rank->stopped || time_ns >= rank->due_ns) {
        return;
    }
    rank->due_ns = time_ns;
    r2_sim_at(sim, time_ns, rank_event, rank, ++rank->token);
}

static uint64_t rank_deadline_ns(const job_rank_t *rank)
{
    uint64_t deadline_ns = r2_ctx_deadline_ns(rank->ctx);

    if (NULL != rank->fault) {
        deadline_ns = r2_min(deadline_ns, r2_tp_fault_deadline_ns(rank->fault));
    }
    if (NULL != rank->gpu) {
        deadline_ns = r2_min(deadline_ns, r2_gpu_sim_deadline_ns(rank->gpu));
    }
    return deadline_ns;
}

/* A slow process takes as many packets of a rail as UCX reads at once, then others run. */
static unsigned rank_slow_rounds(const job_rank_t *rank)
{
    const uint32_t batch = rank->job->scenario->sim.batch;

    return 0 == batch ? 1 : (SLOW_PACKETS + batch - 1) / batch;
}

/*
 * Drives once. Who waits in a blocking call looks for that as r2_coll_wait() does, and at
 * everything before it sleeps. A slow process reads a part at a time instead.
 */
static unsigned rank_drive(job_rank_t *rank, r2_drive_t who)
{
    const r2_coll_t *coll = R2_DRIVE_APP == who && 0 == rank->slow_ns ? rank_waits_for(rank) : NULL;

    if (NULL != coll) {
        if (coll != rank->wait.coll) {
            rank->wait = r2_wait_for(coll);
        }
        if (R2_WAIT_AGAIN == r2_wait_pass(rank->ctx, &rank->wait)) {
            return 1;
        }
    }
    return r2_ctx_drive(rank->ctx, who);
}

/* Progress passes until nothing happens any more. @return events. */
static unsigned rank_progress(job_rank_t *rank, r2_drive_t who)
{
    const unsigned rounds_max = 0 != rank->slow_ns ? rank_slow_rounds(rank) : RUN_ROUNDS_MAX;
    unsigned total = 0, events, rounds = 0;
    bool advanced;

    do {
        rank_enter(rank);
        events = rank_drive(rank, who);
        sim_memory_leave();
        advanced = R2_DRIVE_APP == who && rank_advance(rank);
        total += events + advanced;
    } while ((events > 0 || advanced) && ++rounds < rounds_max && !rank->job->failed);
    rank->job->runs += rounds + 1;
    rank->slow_next_ns = r2_sim_now_ns(rank->job->sim) + rank->slow_ns;
    if (0 != rank->slow_ns && total > 0) {
        job_schedule(rank, 0); /* there may be more */
    }
    rank_check_bounds(rank);
    rank_check_map(rank);
    rank_note_heals(rank);
    return total;
}

static void rank_run_app(job_rank_t *rank)
{
    uint64_t now_ns = r2_sim_now_ns(rank->job->sim);
    unsigned events = rank_progress(rank, R2_DRIVE_APP);
    uint64_t deadline_ns = rank_deadline_ns(rank);

    rank->app_ns = now_ns;
    if (events > 0 || deadline_ns > now_ns) {
        rank->idle_runs = 0;
    } else if (++rank->idle_runs > IDLE_RUNS_MAX) {
        job_fail(rank->job,
                 "rank %u spins: its deadline lies %llu ns in the past and nothing happens",
                 rank->idx, (unsigned long long) (now_ns - deadline_ns));
    }
    if (R2_NEVER_NS != deadline_ns) {
        job_schedule(rank, r2_max(deadline_ns, now_ns + R2_NS_PER_US));
    }
    if (now_ns < rank->compute_until_ns) { /* the program has just left the call */
        job_schedule(rank, rank->compute_until_ns);
    }
}

static void rank_run_service(job_rank_t *rank)
{
    uint64_t now_ns = r2_sim_now_ns(rank->job->sim);
    uint64_t takeover_ns = rank->job->params.takeover_us * R2_NS_PER_US;
    uint64_t deadline_ns;

    if (now_ns < rank->app_ns + takeover_ns) {
        job_schedule(rank, rank->app_ns + takeover_ns);
    } else {
        bool look = !rank->job->params.async_progress &&
                    (rank->services < LOOKS_FIRST || 0 == rank->services % LOOKS_LATER);
        uint64_t before = look ? rank_memory(rank) : 0;
        uint64_t user_before = payload_user_reductions();

        ++rank->services;
        rank_progress(rank, R2_DRIVE_SERVICE);
        if (0 != before && before != rank_memory(rank)) {
            job_fail(rank->job, "rank %u: the service thread wrote application memory", rank->idx);
        }
        if (user_before != payload_user_reductions()) {
            job_fail(rank->job, "rank %u: the service thread ran an operation of the user",
                     rank->idx);
        }
        deadline_ns = rank_deadline_ns(rank);
        if (R2_NEVER_NS != deadline_ns) {
            job_schedule(rank, r2_max(deadline_ns, now_ns + R2_NS_PER_MS));
        }
    }
    if (now_ns < rank->compute_until_ns) {
        job_schedule(rank, rank->compute_until_ns);
    }
}

static void rank_event(void *arg, uint64_t token)
{
    job_rank_t *rank = arg;

    if (token != rank->token || rank->dead || rank->stopped || rank->job->failed) {
        return;
    }
    rank->due_ns = R2_NEVER_NS;
    if (rank_is_away(rank)) {
        rank_run_service(rank);
    } else {
        rank_run_app(rank);
    }
}

static void job_wake(void *arg, uint32_t node)
{
    job_t *job = arg;

    job_schedule(&job->ranks[node],
                 r2_sim_now_ns(job->sim) + r2_prng_below(&job->prng, job->scenario->jitter_ns + 1));
}

void rank_wake_service(job_rank_t *rank)
{
    if (!rank->dead && !rank->stopped && NULL != rank->ctx) {
        (void) r2_ctx_drive(rank->ctx, R2_DRIVE_WOKEN);
        job_schedule(rank, r2_sim_now_ns(rank->job->sim));
    }
}

uint32_t job_rails_of(const job_t *job, uint32_t host)
{
    uint32_t rails = job->scenario->rails_of[host];

    return 0 == rails ? job->scenario->sim.rail_count : rails;
}

static void job_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    job_t *job = arg;

    for (uint32_t i = 0; i < job->rank_count && rail < job_rails_of(job, host); ++i) {
        job_rank_t *rank = &job->ranks[i];

        if (r2_sim_host_of(job->sim, i) == host && NULL != rank->watch.ops) {
            r2_nic_watch_sim_set(&rank->watch, rail, up);
            rank_wake_service(rank);
        }
    }
}

/* ---- assembly ---- */

static bool is_application(const void *header, size_t header_bytes)
{
    r2_wire_header_t h;

    if (header_bytes != sizeof(h)) {
        return true;
    }
    memcpy(&h, header, sizeof(h));
    return r2_wire_sequenced(h.kind);
}

static void rank_log(void *arg, int level, const char *line)
{
    const job_rank_t *rank = arg;

    (void) level;
    fprintf(stderr, "%12.6f %s\n", (double) (r2_sim_now_ns(rank->job->sim) - R2_NS_PER_S) / 1e6,
            line);
}

static void rank_log_nothing(void *arg, int level, const char *line)
{
    (void) arg;
    (void) level;
    (void) line;
}

static r2_tp_t rank_transport(job_rank_t *rank, r2_tp_t *inner)
{
    const scenario_t *sc = rank->job->scenario;

    *inner = r2_sim_transport(rank->job->sim, rank->idx);
    if (0 == sc->rule_count) {
        return *inner;
    }
    rank->fault = r2_tp_fault_create(inner, r2_sim_clock(rank->job->sim, rank->idx),
                                     sc->sim.seed * 977 + rank->idx, sc->rules, sc->rule_count);
    return NULL == rank->fault ? *inner : r2_tp_fault_transport(rank->fault);
}

/* As r2_ctx_assemble() does with a driver that is installed. */
static bool rank_add_gpu(job_rank_t *rank)
{
    r2_core_t *core = &rank->ctx->core;

    rank->gpu = r2_gpu_sim_create(core->clock, rank->job->scenario->gpu_bytes_per_s);
    if (NULL != rank->gpu) {
        r2_gpu_sim_driver(&core->mem.driver);
        r2_staging_init(&core->engine.staging, &core->mem, core->params.pinned_bytes);
        core->engine.staging.nic_bytes = core->params.gpu_nic_bytes;
        core->engine.staging.near = &rank->ctx->parts.near;
    }
    return NULL != rank->gpu;
}

static bool rank_assemble(job_rank_t *rank, r2_tp_t *inner)
{
    job_t *job = rank->job;
    uint32_t host = r2_sim_host_of(job->sim, rank->idx);
    r2_ctx_config_t config = {.params = &job->params,
                              .log = job->scenario->verbose > 0 ? rank_log : rank_log_nothing,
                              .log_arg = rank};
    r2_ctx_parts_t parts = {.clock = r2_sim_clock(job->sim, rank->idx),
                            .hello = r2_hello_sim_node(job->hub, rank->idx),
                            .oob = r2_oob_loop_rank(job->oob, rank->idx),
                            .post = r2_post_sim_node(job->post, rank->idx),
                            .probe = r2_probe_sim_node(job->probe, rank->idx),
                            .host_id = host + 1,
                            .first_seq = job->scenario->first_seq};
    char text[256] = "";
    r2_status_t status;

    parts.tp = rank_transport(rank, inner);
    r2_sim_nics(job->sim, rank->idx, parts.nics, &parts.nic_count);
    parts.nic_count = r2_min(parts.nic_count, (size_t) job_rails_of(job, host));
    for (size_t i = 0; host < job->scenario->rdma_hosts && i < parts.nic_count; ++i) {
        strcpy(parts.nics[i].rdma, parts.nics[i].name); /* the simulator's NICs are both */
        strcpy(parts.nics[i].tls, "rc_verbs");
        parts.nics[i].port.link = R2_LINK_ETHERNET;
    }
    scenario_near(job->scenario, parts.nic_count, &parts.near);
    snprintf(parts.host_name, sizeof(parts.host_name), "h%u", host);
    status = r2_nic_watch_sim_create(parts.nics, parts.nic_count, false, &rank->watch);
    parts.watch = rank->watch;
    if (R2_OK == status) {
        status = r2_ctx_assemble(&config, &parts, &rank->ctx, text, sizeof(text));
    }
    if (R2_OK != status) {
        job_fail(job, "rank %u: %s", rank->idx, text);
    }
    return R2_OK == status && (0 == job->scenario->gpu_bytes_per_s || rank_add_gpu(rank));
}

static bool job_params(job_t *job)
{
    const scenario_t *sc = job->scenario;
    char text[256];

    r2_params_init(&job->params);
    job->params.verbose = sc->verbose;
    for (uint32_t i = 0; i < sc->param_count; ++i) {
        if (R2_OK != r2_params_set(&job->params, sc->params[i].name, sc->params[i].value)) {
            job_fail(job, "parameter %s = %s", sc->params[i].name, sc->params[i].value);
            return false;
        }
    }
    if (R2_OK != r2_params_check(&job->params, text, sizeof(text))) {
        job_fail(job, "%s", text);
        return false;
    }
    return true;
}

static bool job_create(job_t *job)
{
    const scenario_t *sc = job->scenario;
    uint8_t key[R2_JOB_KEY_BYTES] = {1, 2, 3};
    r2_sim_config_t config = sc->sim;
    r2_sim_hooks_t hooks = {job_wake, job_carrier, job};

    if (sodium_init() < 0) {
        return false;
    }
    config.is_application = is_application;
    job->rank_count = config.node_count;
    r2_prng_seed(&job->prng, config.seed ^ 0x5eed);
    job->sim = r2_sim_create(&config, &hooks);
    job->ranks = calloc(job->rank_count, sizeof(*job->ranks));
    job->oob = r2_oob_loop_create(job->rank_count, key);
    job->hub = NULL == job->sim ? NULL : r2_hello_sim_create(job->sim, job->rank_count);
    job->post = NULL == job->sim ? NULL : r2_post_sim_create(job->sim, job->rank_count);
    job->probe = NULL == job->sim ? NULL : r2_probe_sim_create(job->sim, job->rank_count);
    if (NULL == job->ranks || NULL == job->oob || NULL == job->hub || NULL == job->post ||
        NULL == job->probe) {
        return false;
    }
    r2_hello_sim_set_loss(job->hub, sc->hello_loss_ppm);
    r2_hello_sim_set_backlog(job->hub, sc->backlog);
    r2_post_sim_set_loss(job->post, sc->post_loss_ppm);
    r2_post_sim_set_duplicates(job->post, sc->post_twice_ppm);
    if (0 != sc->post_delay_ns) {
        r2_post_sim_set_delay(job->post, 0, sc->post_delay_ns);
    }
    r2_probe_sim_set_loss(job->probe, sc->probe_loss_ppm);
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        job->ranks[i].job = job;
        job->ranks[i].idx = i;
        job->ranks[i].due_ns = R2_NEVER_NS;
    }
    return job_params(job);
}

/* After all have published: the communicator of all, and the first run of everybody. */
static void job_start(job_t *job)
{
    const scenario_comm_t *world = &job->scenario->comms[0];

    for (uint32_t i = 0; i < job->rank_count && !job->failed; ++i) {
        job_rank_t *rank = &job->ranks[i];
        r2_status_t status = r2_comm_create(rank->ctx, (r2_comm_id_t){0, 0}, world->ranks,
                                            world->size, (int32_t) i, &rank->comms[0]);

        if (R2_OK != status) {
            job_fail(job, "rank %u: world: %s", i, r2_status_string(status));
        }
        rank->app_ns = r2_sim_now_ns(job->sim);
        job_schedule(rank, rank->app_ns + r2_prng_below(&job->prng, 100 * R2_NS_PER_US));
    }
}

static void job_destroy(job_t *job)
{
    for (uint32_t i = 0; NULL != job->ranks && i < job->rank_count; ++i) {
        rank_release(&job->ranks[i]);
    }
    if (NULL != job->sim) {
        job_take_sim_failure(job);
    }
    while (NULL != job->calls) {
        job_call_t *call = job->calls;

        DL_DELETE(job->calls, call);
        payload_call_fini(&call->payload);
        free(call);
    }
    free(job->ranks);
    r2_hello_sim_destroy(job->hub);
    r2_post_sim_destroy(job->post);
    r2_probe_sim_destroy(job->probe);
    r2_oob_loop_destroy(job->oob);
    r2_sim_destroy(job->sim);
}

void scenario_run(const scenario_t *scenario, bool dump, scenario_result_t *result_p)
{
    job_t job = {.scenario = scenario, .result = result_p};
    r2_tp_t inner[SCENARIO_RANKS_MAX];

    memset(result_p, 0, sizeof(*result_p));
    sim_memory_begin(scenario->sim.seed);
    if (!job_create(&job)) {
        if (!job.failed) {
            snprintf(result_p->text, sizeof(result_p->text), "the job cannot be made");
        }
        job_destroy(&job);
        return;
    }
    job_plan_faults(&job);
    for (uint32_t i = 0; i < job.rank_count && !job.failed; ++i) {
        rank_assemble(&job.ranks[i], &inner[i]);
    }
    if (!job.failed) {
        job_plan_expectations(&job);
        job_start(&job);
        job_run_program(&job);
        if (!scenario->any_outcome) {
            job_run_out(&job);
            job_check_plan_env(&job);
        }
        job_summarise(&job);
        job_check_healthy(&job);
    }
    if (job.failed && dump) {
        job_dump(&job);
    }
    job_destroy(&job);
    result_p->ok = !job.failed;
}

bool scenario_check(const char *source, scenario_result_t *result_p)
{
    scenario_t *scenario = malloc(sizeof(*scenario));
    bool ok = NULL != scenario;

    memset(result_p, 0, sizeof(*result_p));
    if (ok && scenario_parse(source, scenario, result_p->text, sizeof(result_p->text))) {
        scenario_run(scenario, true, result_p);
    }
    ok = ok && result_p->ok;
    if (!ok) {
        fprintf(stderr, "scenario failed: %s\n%s\n", result_p->text, source);
    }
    free(scenario);
    return ok;
}
