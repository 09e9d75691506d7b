/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a large job costs each of its processes: bytes published, memory, links, on the simulator.
 */
/*
 * scale [RANKS [RANKS_PER_HOST [RAILS [POISON]]]]: prints one figure a line, and fails if one is
 * above its bound. POISON 0: without the part in which a communicator fails. Memory is what
 * malloc() has given out, so the figures of one build are the same in each run.
 */
#include "r2_config.h"

#include <malloc.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctx/state.h"
#include "doubles/hello_sim.h"
#include "doubles/loop.h"
#include "doubles/post_sim.h"
#include "doubles/probe_sim.h"
#include "doubles/sim.h"
#include "link/state.h"

#define PAIRS    64 /* communicators of two ranks */
#define COPIES   16 /* communicators of all ranks */
#define LIMIT_NS (60 * R2_NS_PER_S)

typedef struct big_rank {
    r2_ctx_t *ctx;    /* owned */
    r2_comm_t *world; /* owned */
    r2_coll_t *coll;  /* owned; NULL: none under way */
    uint64_t due_ns, in, out;
    bool dead;
} big_rank_t;

typedef struct big_job {
    r2_sim_t *sim;         /* owned */
    r2_hello_sim_t *hub;   /* owned */
    r2_oob_loop_t *oob;    /* owned */
    r2_post_sim_t *post;   /* owned */
    r2_probe_sim_t *probe; /* owned */
    r2_params_t params;
    uint32_t size, hosts, rails;
    uint32_t *members;  /* owned: all ranks */
    big_rank_t *ranks;  /* owned */
    int passed, failed; /* bounds that held, that did not */
} big_job_t;

static uint64_t heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* @param bound 0: none. Where malloc() is not glibc's (sanitizers) memory reads as 0. */
static void tell(big_job_t *job, const char *what, double value, double bound)
{
    const bool over = 0 != bound && value > bound;

    printf("%-52s %12.1f%s\n", what, value, over ? "  TOO MUCH" : "");
    if (over) {
        printf("    at most %.1f\n", bound);
    }
    job->passed += !over;
    job->failed += over;
}

static void expect(big_job_t *job, bool ok, const char *what)
{
    if (!ok) {
        printf("FAILED: %s\n", what);
        ++job->failed;
    }
}

static void on_wake(void *arg, uint32_t node)
{
    big_job_t *job = arg;

    job->ranks[node].due_ns = r2_sim_now_ns(job->sim);
}

static void on_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    (void) arg;
    (void) host;
    (void) rail;
    (void) up;
}

static void no_log(void *arg, int level, const char *line)
{
    (void) arg;
    (void) level;
    (void) line;
}

static bool job_create(big_job_t *job, uint32_t size, uint32_t per_host, uint32_t rails)
{
    uint8_t key[R2_JOB_KEY_BYTES] = {1, 2, 3};
    r2_sim_hooks_t hooks = {on_wake, on_carrier, job};
    r2_sim_config_t config = {.seed = 1, .node_count = size, .rail_count = rails};
    uint32_t *host = calloc(size, sizeof(*host));

    job->size = size;
    job->hosts = config.host_count = (size + per_host - 1) / per_host;
    job->rails = rails;
    job->ranks = calloc(size, sizeof(*job->ranks));
    job->members = calloc(size, sizeof(*job->members));
    job->oob = r2_oob_loop_create(size, key);
    if (NULL == host || NULL == job->ranks || NULL == job->members || NULL == job->oob) {
        return false;
    }
    for (uint32_t i = 0; i < size; ++i) {
        job->members[i] = i;
        job->ranks[i].due_ns = R2_NEVER_NS;
        host[i] = i / per_host;
    }
    config.node_host = host;
    job->sim = r2_sim_create(&config, &hooks);
    free(host);
    r2_params_init(&job->params);
    if (NULL != job->sim) {
        job->hub = r2_hello_sim_create(job->sim, size);
        job->post = r2_post_sim_create(job->sim, size);
        job->probe = r2_probe_sim_create(job->sim, size);
    }
    return NULL != job->hub && NULL != job->post && NULL != job->probe;
}

static void rank_create(big_job_t *job, uint32_t idx)
{
    const uint32_t host = r2_sim_host_of(job->sim, idx);
    r2_ctx_config_t config = {.params = &job->params, .log = no_log};
    r2_ctx_parts_t parts = {.clock = r2_sim_clock(job->sim, idx),
                            .tp = r2_sim_transport(job->sim, idx),
                            .hello = r2_hello_sim_node(job->hub, idx),
                            .oob = r2_oob_loop_rank(job->oob, idx),
                            .post = r2_post_sim_node(job->post, idx),
                            .probe = r2_probe_sim_node(job->probe, idx),
                            .host_id = host + 1,
                            .first_seq = 1};
    char text[256] = "";

    r2_sim_nics(job->sim, idx, parts.nics, &parts.nic_count);
    snprintf(parts.host_name, sizeof(parts.host_name), "node%05u", host);
    expect(job, R2_OK == r2_ctx_assemble(&config, &parts, &job->ranks[idx].ctx, text, sizeof(text)),
           "a context is assembled");
}

/* ---- running ---- */

static void rank_drive(big_job_t *job, big_rank_t *rank)
{
    rank->due_ns = R2_NEVER_NS;
    (void) r2_ctx_drive(rank->ctx, R2_DRIVE_APP);
    rank->due_ns =
        r2_min(rank->due_ns, r2_max(r2_ctx_deadline_ns(rank->ctx), r2_sim_now_ns(job->sim) + 1));
}

/* Runs all ranks until `over` says so. @return false: time is up. */
static bool job_run(big_job_t *job, bool (*over)(const big_job_t *job))
{
    const uint64_t end_ns = r2_sim_now_ns(job->sim) + LIMIT_NS;

    for (uint32_t i = 0; i < job->size; ++i) {
        job->ranks[i].due_ns = r2_sim_now_ns(job->sim);
    }
    while (r2_sim_now_ns(job->sim) < end_ns && NULL == r2_sim_failure(job->sim)) {
        uint64_t now_ns = r2_sim_now_ns(job->sim), next_ns = r2_sim_next_ns(job->sim);

        for (uint32_t i = 0; i < job->size; ++i) {
            if (job->ranks[i].due_ns <= now_ns && !job->ranks[i].dead) {
                rank_drive(job, &job->ranks[i]);
            }
            next_ns = job->ranks[i].dead ? next_ns : r2_min(next_ns, job->ranks[i].due_ns);
        }
        if (over(job)) {
            return true;
        }
        next_ns = r2_min(next_ns, r2_sim_next_ns(job->sim));
        r2_sim_run_until(job->sim, r2_max(next_ns, now_ns));
    }
    return false;
}

static bool calls_are_over(const big_job_t *job)
{
    for (uint32_t i = 0; i < job->size; ++i) {
        if (R2_IN_PROGRESS == r2_coll_test(job->ranks[i].coll)) {
            return false;
        }
    }
    return true;
}

static bool all_have_failed(const big_job_t *job)
{
    for (uint32_t i = 0; i < job->size; ++i) {
        if (!job->ranks[i].dead && R2_OK == job->ranks[i].world->failed) {
            return false;
        }
    }
    return true;
}

static void add_u64(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        ((uint64_t *) inout)[i] += ((const uint64_t *) in)[i];
    }
}

static void job_allreduce(big_job_t *job)
{
    for (uint32_t i = 0; i < job->size; ++i) {
        big_rank_t *rank = &job->ranks[i];
        r2_coll_args_t args = {.kind = R2_COLL_ALLREDUCE, .in = &rank->in, .out = &rank->out,
                               .count = 1, .element_bytes = sizeof(rank->in), .reduce = add_u64,
                               .meaning = 1, .commutative = true, .exact = true, .blocking = true};

        rank->in = i + 1;
        expect(job, R2_OK == r2_coll_post(rank->world, &args, NULL, NULL, &rank->coll),
               "a call starts");
    }
    expect(job, job_run(job, calls_are_over), "the call ends");
    for (uint32_t i = 0; i < job->size; ++i) {
        expect(job, job->ranks[i].out == (uint64_t) job->size * (job->size + 1) / 2,
               "the sum is right");
        r2_coll_release(job->ranks[i].coll);
    }
}

/* ---- figures ---- */

/** Links of all ranks. */
typedef struct big_links {
    uint64_t links, most, lanes; /* in all; of one rank; lanes that are connected */
} big_links_t;

static big_links_t job_links(const big_job_t *job)
{
    big_links_t sum = {0, 0, 0};

    for (uint32_t i = 0; i < job->size; ++i) {
        uint64_t links = 0;

        for (uint32_t peer = 0; peer < job->size; ++peer) {
            const r2_link_t *link = job->ranks[i].ctx->core.net.links[peer];

            links += NULL != link;
            for (uint32_t lane = 0; NULL != link && lane < link->lane_count; ++lane) {
                sum.lanes += NULL != link->lanes[lane].conn;
            }
        }
        sum.links += links;
        sum.most = r2_max(sum.most, links);
    }
    return sum;
}

static void tell_start(big_job_t *job)
{
    uint64_t before = heap_bytes(), all, most;

    for (uint32_t i = 0; i < job->size; ++i) {
        rank_create(job, i);
    }
    tell(job, "memory of a process before communicators, bytes",
         (double) (heap_bytes() - before) / job->size, 0);
    r2_oob_loop_published(job->oob, &all, &most);
    tell(job, "published in all, bytes", (double) all, 0);
    tell(job, "published by a process, mean, bytes", (double) all / job->size, 0);
    tell(job, "published by a process, most, bytes", (double) most, 64.0 + 80.0 * (1 + job->rails));
    before = heap_bytes();
    for (uint32_t i = 0; i < job->size; ++i) {
        expect(job,
               R2_OK == r2_comm_create(job->ranks[i].ctx, (r2_comm_id_t){0, 0}, job->members,
                                       (int32_t) job->size, (int32_t) i, &job->ranks[i].world),
               "the communicator of all is created");
    }
    tell(job, "memory of a process for the communicator of all, bytes",
         (double) (heap_bytes() - before) / job->size, 160.0 * 1024 + 640.0 * job->size);
}

static void tell_comms(big_job_t *job)
{
    r2_comm_t *comms[PAIRS];
    const uint32_t pair[2] = {0, job->size - 1};
    uint64_t before = heap_bytes();

    for (uint32_t i = 0; i < PAIRS; ++i) {
        expect(job,
               R2_OK == r2_comm_create(job->ranks[0].ctx, (r2_comm_id_t){1000 + i, 0}, pair, 2, 0,
                                       &comms[i]),
               "a communicator of two is created");
    }
    tell(job, "memory of a communicator of two ranks, bytes",
         (double) (heap_bytes() - before) / PAIRS, 2048);
    for (uint32_t i = 0; i < PAIRS; ++i) {
        r2_comm_destroy(comms[i]);
    }
    before = heap_bytes();
    for (uint32_t i = 0; i < COPIES; ++i) {
        expect(job,
               R2_OK == r2_comm_create(job->ranks[0].ctx, (r2_comm_id_t){2000 + i, 0}, job->members,
                                       (int32_t) job->size, 0, &comms[i]),
               "a communicator of all is created");
    }
    tell(job, "memory of a further communicator of all ranks, bytes",
         (double) (heap_bytes() - before) / COPIES, 2048 + 8.0 * job->size);
    for (uint32_t i = 0; i < COPIES; ++i) {
        r2_comm_destroy(comms[i]);
    }
}

static void tell_call(big_job_t *job)
{
    uint64_t before = heap_bytes();
    big_links_t links;

    job_allreduce(job);
    links = job_links(job);
    tell(job, "links of a process after an allreduce, mean", (double) links.links / job->size, 0);
    tell(job, "links of a process after an allreduce, most", (double) links.most, 0);
    tell(job, "lanes of a process that are connected, mean", (double) links.lanes / job->size, 0);
    tell(job, "memory of a process for them, bytes", (double) (heap_bytes() - before) / job->size,
         0);
}

/* Links to processes that are never spoken to: made, and given up before they open anything. */
static void tell_link(big_job_t *job)
{
    r2_net_t *net = &job->ranks[job->size / 2].ctx->core.net;
    uint64_t before = heap_bytes();
    uint32_t made = 0;
    r2_link_t *link;

    for (uint32_t peer = 0; peer < job->size; ++peer) {
        if (peer != net->rank && NULL == net->links[peer]) {
            expect(job, R2_OK == r2_net_link(net, peer, &link), "a link is made");
            ++made;
        }
    }
    tell(job, "memory of a link, bytes", (double) (heap_bytes() - before) / r2_max(made, 1u),
         2048.0 + 800.0 * (1 + job->rails));
}

/* One rank gives up, a tenth of the others is dead and nobody knows: all that live must hear of
 * it. */
static void tell_failure(big_job_t *job)
{
    const uint64_t start_ns = r2_sim_now_ns(job->sim);
    big_rank_t *first = &job->ranks[job->size / 3];
    const big_links_t before = job_links(job);
    double bits = 0;
    big_links_t links;

    for (uint32_t i = 5; i < job->size; i += 10) {
        job->ranks[i].dead = &job->ranks[i] != first;
        if (job->ranks[i].dead) {
            r2_sim_kill(job->sim, i);
        }
    }
    for (uint32_t size = job->size - 1; size > 0; size /= 2) {
        ++bits;
    }
    pthread_mutex_lock(&first->ctx->core.lock);
    r2_comm_fail(first->world, R2_ERR_NO_PATH);
    pthread_mutex_unlock(&first->ctx->core.lock);
    expect(job, job_run(job, all_have_failed), "all hear that the communicator failed");
    links = job_links(job);
    tell(job, "all heard of a failed communicator after, ms",
         (double) (r2_sim_now_ns(job->sim) - start_ns) / R2_NS_PER_MS, 0);
    tell(job, "further links of a process then, mean",
         (double) (links.links - before.links) / job->size, 2 * bits);
    tell(job, "links of a process then, most", (double) links.most,
         (double) before.most + 3 * bits);
}

/* A switch that dies takes a lane of every link, in one progress pass: the detector gets it all. */
static void tell_evidence(big_job_t *job)
{
    r2_ctx_t *ctx = job->ranks[0].ctx;
    const r2_net_upcalls_t *upcalls = &ctx->core.net.upcalls;
    const uint32_t before = ctx->health->queued;
    uint32_t told = 0;

    for (uint32_t peer = 1; peer < job->size; ++peer) {
        for (uint32_t rail = 0; rail < job->rails; ++rail, ++told) {
            upcalls->lane(upcalls->arg, peer, rail, rail, R2_LANE_EVENT_FAILED, R2_ERR_TIMEOUT);
        }
    }
    expect(job, ctx->health->queued == before + told, "evidence of all lanes at once is kept");
    expect(job, 0 == ctx->core.counters.evidence_dropped, "nothing was dropped");
    for (uint32_t i = 0; i < 1000; ++i) {
        upcalls->rate(upcalls->arg, 1, 0, true, 1, 1); /* comes again with the next interval */
    }
    expect(job, ctx->health->queued <= r2_max(before + told, 256u),
           "and what comes again is bounded");
}

static void job_destroy(big_job_t *job)
{
    for (uint32_t i = 0; NULL != job->ranks && i < job->size; ++i) {
        if (NULL != job->ranks[i].world) {
            r2_comm_destroy(job->ranks[i].world);
        }
        if (NULL != job->ranks[i].ctx) {
            job->ranks[i].ctx->core.net.ending = true;
            r2_ctx_dismantle(job->ranks[i].ctx);
        }
    }
    r2_hello_sim_destroy(job->hub);
    r2_post_sim_destroy(job->post);
    r2_probe_sim_destroy(job->probe);
    r2_oob_loop_destroy(job->oob);
    r2_sim_destroy(job->sim);
    free(job->members);
    free(job->ranks);
}

int main(int argc, char **argv)
{
    big_job_t job = {.failed = 0};
    const uint32_t size = argc > 1 ? (uint32_t) atoi(argv[1]) : 1024;
    const uint32_t per_host = argc > 2 ? (uint32_t) atoi(argv[2]) : 1;
    const uint32_t rails = argc > 3 ? (uint32_t) atoi(argv[3]) : 4;

    if (sodium_init() < 0 || size < 2 || per_host < 1 || rails < 1 || rails > R2_RAILS_MAX ||
        !job_create(&job, size, per_host, rails)) {
        fprintf(stderr, "the job cannot be made\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%u ranks on %u hosts with %u rails each\n", size, job.hosts, rails);
    tell_start(&job);
    if (0 == job.failed) {
        tell_comms(&job);
        tell_call(&job);
    }
    if (0 == job.failed && (argc <= 4 || 0 != atoi(argv[4]))) {
        tell_failure(&job);
    }
    if (0 == job.failed) {
        tell_link(&job);
        tell_evidence(&job);
    }
    expect(&job, NULL == r2_sim_failure(job.sim), "the simulator has nothing to object");
    job_destroy(&job);
    printf("%d passed, %d failed\n", job.passed, job.failed);
    return 0 == job.failed ? 0 : 1;
}
