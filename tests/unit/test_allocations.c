/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What repeated collectives take: allocations of r2core, plans, look-ups of hashes and of the
 * environment. On the simulator and
 * over UCX, all ranks in one thread, there with the service thread of each. What UCX itself
 * allocates is not seen by --wrap.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/state.h"
#include "doubles/hello_sim.h"
#include "doubles/loop.h"
#include "doubles/nic_watch_sim.h"
#include "doubles/sim.h"
#include "plan/kinds.h"

enum { RANKS_MAX = 4, FLIGHT_MAX = 8, WARM = 600, ROUNDS = 50, TRIES = 10, SITES = 32 };

#define LIMIT_NS (20 * R2_NS_PER_S)

/* ---- what is counted ---- */

static struct {
    volatile bool on;
    uint32_t allocations, hashes, variables; /* variables: of the environment */
    struct {
        const void *from;
        uint32_t count;
    } sites[SITES];
} seen;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name);
uint64_t __real_r2_hash(const void *key, size_t bytes);
uint64_t __wrap_r2_hash(const void *key, size_t bytes);

static void note(const void *from)
{
    uint32_t i = 0;

    if (!seen.on || r2_sim_takes_memory) {
        return;
    }
    ++seen.allocations;
    while (i < SITES - 1 && NULL != seen.sites[i].from && from != seen.sites[i].from) {
        ++i;
    }
    seen.sites[i].from = from;
    ++seen.sites[i].count;
}

void *__wrap_malloc(size_t bytes)
{
    note(__builtin_return_address(0));
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    note(__builtin_return_address(0));
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    note(__builtin_return_address(0));
    return __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    note(__builtin_return_address(0));
    return __real_aligned_alloc(alignment, bytes);
}

uint64_t __wrap_r2_hash(const void *key, size_t bytes)
{
    seen.hashes += seen.on ? 1 : 0;
    return __real_r2_hash(key, bytes);
}

char *__wrap_getenv(const char *name)
{
    seen.variables += seen.on ? 1 : 0;
    return __real_getenv(name);
}

/* ---- a job ---- */

typedef struct rank {
    r2_ctx_t *ctx;        /* owned */
    r2_comm_t *comm;      /* owned */
    r2_comm_t *request;   /* owned: a sequence, for persistent calls */
    r2_hello_t hello;     /* owned, over UCX */
    r2_tp_t tp;           /* owned, over UCX */
    r2_nic_watch_t watch; /* owned, over UCX */
    r2_log_t log;
    r2_coll_t *colls[FLIGHT_MAX];
    uint64_t *in, *out[FLIGHT_MAX]; /* owned */
} rank_t;

/** Ranks on hosts of their own. */
typedef struct job {
    uint32_t size;
    r2_sim_t *sim;       /* owned; NULL: over UCX on the loopback device */
    r2_hello_sim_t *hub; /* owned */
    r2_oob_loop_t *oob;  /* owned */
    r2_params_t params;
    rank_t ranks[RANKS_MAX];
} job_t;

/** What is repeated. */
typedef struct work {
    r2_coll_kind_t kind;
    size_t count; /* of 8-byte elements; of a broadcast, from rank 0 */
    uint32_t in_flight;
    bool persistent;
    bool hashless; /* few enough messages at a time that nothing is hashed */
} work_t;

static void on_wake(void *arg, uint32_t node)
{
    (void) arg;
    (void) node;
}

static void on_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    (void) arg;
    (void) host;
    (void) rail;
    (void) up;
}

static void say_errors(void *arg, int level, const char *line)
{
    (void) arg;
    if (level <= R2_LOG_ERROR) {
        fprintf(stderr, "%s\n", line);
    }
}

static void parts_sim(job_t *job, uint32_t idx, r2_ctx_parts_t *parts)
{
    parts->clock = r2_sim_clock(job->sim, idx);
    parts->tp = r2_sim_transport(job->sim, idx);
    parts->hello = r2_hello_sim_node(job->hub, idx);
    r2_sim_nics(job->sim, idx, parts->nics, &parts->nic_count);
}

static void parts_ucx(rank_t *rank, r2_ctx_parts_t *parts)
{
    parts->clock = r2_clock_system();
    assert_int_equal(r2_tp_create(&rank->tp), R2_OK);
    assert_int_equal(r2_hello_tcp_create(parts->clock, &rank->log, &rank->hello), R2_OK);
    parts->tp = rank->tp;
    parts->hello = rank->hello;
    parts->nic_count = 1;
    parts->nics[0] = (r2_nic_t){.name = "lo",
                                .ifindex = 1,
                                .ipv4 = htonl(INADDR_LOOPBACK),
                                .prefix_bits = 8,
                                .carrier = true};
    assert_int_equal(r2_nic_watch_sim_create(parts->nics, 1, true, &rank->watch), R2_OK);
    parts->watch = rank->watch;
}

static void rank_up(job_t *job, uint32_t idx)
{
    r2_ctx_config_t config = {.params = &job->params, .log = say_errors};
    r2_ctx_parts_t parts = {.host_id = idx + 1, .first_seq = UINT64_MAX - 20};
    rank_t *rank = &job->ranks[idx];
    char text[256] = "";

    if (NULL != job->sim) {
        parts_sim(job, idx, &parts);
    } else {
        parts_ucx(rank, &parts);
    }
    parts.oob = r2_oob_loop_rank(job->oob, idx);
    snprintf(parts.host_name, sizeof(parts.host_name), "h%u", idx);
    if (R2_OK != r2_ctx_assemble(&config, &parts, &rank->ctx, text, sizeof(text))) {
        fail_msg("%s", text);
    }
    if (NULL == job->sim) {
        assert_int_equal(r2_service_create(rank->ctx, &rank->ctx->service), R2_OK);
    }
}

static void job_up(job_t *job, uint32_t size, bool simulated)
{
    const uint8_t key[R2_JOB_KEY_BYTES] = "allocations";
    const r2_sim_hooks_t hooks = {on_wake, on_carrier, job};
    const r2_sim_config_t config = {
        .seed = 1, .host_count = size, .node_count = size, .rail_count = 2};
    const uint32_t members[RANKS_MAX] = {0, 1, 2, 3};

    memset(job, 0, sizeof(*job));
    job->size = size;
    job->oob = r2_oob_loop_create(size, key);
    if (simulated) {
        job->sim = r2_sim_create(&config, &hooks);
        job->hub = r2_hello_sim_create(job->sim, size);
    }
    r2_params_init(&job->params);
    job->params.failure_timeout_ms = 5000; /* a loaded machine is not a broken lane */
    /* driven here: what service threads keep while this program has no processor is not counted */
    job->params.takeover_us = 1000000;
    for (uint32_t i = 0; i < size; ++i) {
        rank_up(job, i);
    }
    for (uint32_t i = 0; i < size; ++i) {
        rank_t *rank = &job->ranks[i];

        assert_int_equal(r2_comm_create(rank->ctx, (r2_comm_id_t){0, 0}, members, (int32_t) size,
                                        (int32_t) i, &rank->comm),
                         R2_OK);
        assert_int_equal(r2_sequence_open(rank->comm, R2_COLL_ALLREDUCE, &rank->request), R2_OK);
    }
}

static void job_down(job_t *job)
{
    for (uint32_t i = 0; i < job->size; ++i) {
        r2_ctx_t *ctx = job->ranks[i].ctx;

        r2_core_enter(&ctx->core);
        ctx->core.net.ending = true;
        r2_core_leave(&ctx->core);
        if (NULL == job->sim) {
            r2_service_destroy(ctx->service);
        }
    }
    for (uint32_t i = 0; i < job->size; ++i) {
        rank_t *rank = &job->ranks[i];

        r2_sequence_close(rank->request);
        r2_comm_destroy(rank->comm);
        r2_ctx_dismantle(rank->ctx);
        if (NULL == job->sim) {
            r2_hello_tcp_destroy(&rank->hello);
            r2_tp_destroy(&rank->tp);
            r2_nic_watch_sim_destroy(&rank->watch);
        }
    }
    if (NULL != job->sim) {
        r2_hello_sim_destroy(job->hub);
        r2_sim_destroy(job->sim);
    }
    r2_oob_loop_destroy(job->oob);
}

/* ---- calls ---- */

static void add(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        ((uint64_t *) inout)[i] += ((const uint64_t *) in)[i];
    }
}

static uint64_t job_now_ns(const job_t *job)
{
    return NULL != job->sim ? r2_sim_now_ns(job->sim) : r2_now_ns(r2_clock_system());
}

/* When nobody has anything to do, virtual time moves on to what happens next. */
static void job_drive(job_t *job)
{
    uint64_t next_ns = UINT64_MAX;
    unsigned events = 0;

    for (uint32_t i = 0; i < job->size; ++i) {
        events += r2_ctx_drive(job->ranks[i].ctx, R2_DRIVE_APP);
    }
    for (uint32_t i = 0; i < job->size; ++i) {
        next_ns = r2_min(next_ns, r2_ctx_deadline_ns(job->ranks[i].ctx));
    }
    if (NULL != job->sim && 0 == events) {
        next_ns = r2_min(next_ns, r2_sim_next_ns(job->sim));
        r2_sim_run_until(job->sim, r2_max(next_ns, r2_sim_now_ns(job->sim) + 1));
    }
}

static void post_all(const work_t *work, rank_t *rank)
{
    for (uint32_t k = 0; k < work->in_flight; ++k) {
        const r2_coll_args_t args = {.kind = work->kind,
                                     .in = rank->in,
                                     .out = rank->out[k],
                                     .count = work->count,
                                     .element_bytes = sizeof(uint64_t),
                                     .reduce = add,
                                     .any_thread = true,
                                     .commutative = true,
                                     .exact = true,
                                     .blocking = 1 == work->in_flight && !work->persistent};

        assert_int_equal(r2_coll_post(work->persistent ? rank->request : rank->comm, &args, NULL,
                                      NULL, &rank->colls[k]),
                         R2_OK);
    }
}

static bool wait_all(job_t *job, const work_t *work)
{
    const uint64_t end_ns = job_now_ns(job) + LIMIT_NS;

    for (uint32_t i = 0; i < job->size; ++i) {
        for (uint32_t k = 0; k < work->in_flight; ++k) {
            while (R2_IN_PROGRESS == r2_coll_test(job->ranks[i].colls[k])) {
                if (job_now_ns(job) > end_ns) {
                    return false;
                }
                job_drive(job);
            }
        }
    }
    return true;
}

static void one_round(job_t *job, const work_t *work)
{
    for (uint32_t i = 0; i < job->size; ++i) {
        post_all(work, &job->ranks[i]);
    }
    assert_true(wait_all(job, work));
    for (uint32_t i = 0; i < job->size; ++i) {
        for (uint32_t k = 0; k < work->in_flight; ++k) {
            assert_int_equal(r2_coll_test(job->ranks[i].colls[k]), R2_OK);
            r2_coll_release(job->ranks[i].colls[k]);
        }
    }
}

static void buffers(job_t *job, const work_t *work, bool make)
{
    for (uint32_t i = 0; i < job->size; ++i) {
        rank_t *rank = &job->ranks[i];

        free(make ? NULL : rank->in);
        rank->in = make ? malloc(work->count * sizeof(uint64_t)) : NULL;
        for (size_t at = 0; make && at < work->count; ++at) {
            rank->in[at] = at * 3 + i;
        }
        for (uint32_t k = 0; k < work->in_flight; ++k) {
            free(make ? NULL : rank->out[k]);
            rank->out[k] = make ? calloc(work->count, sizeof(uint64_t)) : NULL;
            if (make && R2_COLL_BCAST == work->kind && 0 == i) {
                memcpy(rank->out[k], rank->in, work->count * sizeof(uint64_t));
            }
        }
    }
}

static void check(const job_t *job, const work_t *work)
{
    const bool sum = R2_COLL_ALLREDUCE == work->kind;
    const uint64_t ranks = sum ? job->size * (job->size - 1) / 2 : 0;

    for (uint32_t i = 0; i < job->size; ++i) {
        for (uint32_t k = 0; k < work->in_flight; ++k) {
            for (size_t at = 0; at < work->count; ++at) {
                assert_int_equal(job->ranks[i].out[k][at], at * 3 * (sum ? job->size : 1) + ranks);
            }
        }
    }
}

static uint64_t plans(const job_t *job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < job->size; ++i) {
        sum += job->ranks[i].ctx->core.counters.plans;
    }
    return sum;
}

int main(void);

static void tell_sites(void)
{
    for (uint32_t i = 0; i < SITES && NULL != seen.sites[i].from; ++i) {
        print_message("    main%+td: %u\n",
                      (const char *) seen.sites[i].from - (const char *) (uintptr_t) main,
                      seen.sites[i].count);
    }
}

static void count(job_t *job, const work_t *work, int rounds)
{
    memset(&seen, 0, sizeof(seen));
    seen.on = true;
    for (int i = 0; i < rounds; ++i) {
        one_round(job, work);
    }
    seen.on = false;
}

/*
 * Free lists grow to the most that is in use at one time. When that is reached is up to the machine
 * in real time, so it is counted again there; what each call allocated would be seen every time. In
 * virtual time it is after 200 to 600 rounds, where eight long calls are under way.
 */
static void measure(job_t *job, const work_t *work)
{
    int tries = NULL != job->sim ? 1 : TRIES;
    uint64_t before;

    buffers(job, work, true);
    count(job, work, WARM);
    assert_true(0 < seen.allocations); /* what is counted does count: lists grow */
    before = plans(job);
    assert_true(0 < before);
    do {
        count(job, work, ROUNDS);
    } while (--tries > 0 && 0 < seen.allocations);
    check(job, work);
    buffers(job, work, false);
    print_message("%u ranks, %s, %s, %zu bytes, %u in flight%s: in %u rounds %u allocations, "
                  "%u hash look-ups\n",
                  job->size, NULL != job->sim ? "simulated" : "UCX", r2_kind(work->kind)->name,
                  work->count * 8, work->in_flight, work->persistent ? ", persistent" : "", ROUNDS,
                  seen.allocations, seen.hashes);
    tell_sites();
    assert_int_equal(plans(job), before);
    assert_int_equal(seen.allocations, 0);
    assert_int_equal(seen.variables, 0);
    /* Ids of connections are random over UCX: two lanes of a rank may share a slot. Of a link whose
     * turn ends a message may come early, once in these rounds at either end (link/turn.h). */
    assert_true(seen.hashes <= 2 || !work->hashless || (NULL == job->sim && 2 < job->size));
}

typedef struct setting {
    uint32_t size;
    bool simulated;
} setting_t;

static void is_counted(void **state)
{
    const setting_t *setting = *state;
    static const work_t works[] = {
        {.kind = R2_COLL_ALLREDUCE, .count = 1, .in_flight = 1, .hashless = true},
        {.kind = R2_COLL_ALLREDUCE,
         .count = 1,
         .in_flight = 1,
         .persistent = true,
         .hashless = true},
        {.kind = R2_COLL_ALLREDUCE, .count = 1, .in_flight = FLIGHT_MAX},
        {.kind = R2_COLL_ALLREDUCE, .count = 8192, .in_flight = 1},
        {.kind = R2_COLL_ALLREDUCE, .count = 8192, .in_flight = FLIGHT_MAX},
        {.kind = R2_COLL_BCAST, .count = 1, .in_flight = 1, .hashless = true},
        {.kind = R2_COLL_BCAST, .count = 512, .in_flight = 1, .hashless = true},
    };
    job_t job;

    job_up(&job, setting->size, setting->simulated);
    for (size_t i = 0; i < r2_array_count(works); ++i) {
        measure(&job, &works[i]);
    }
    job_down(&job);
}

int main(void)
{
    static setting_t settings[] = {{2, true}, {4, true}, {2, false}, {4, false}};
    const struct CMUnitTest tests[] = {
        {"two_simulated", is_counted, NULL, NULL, &settings[0]},
        {"four_simulated", is_counted, NULL, NULL, &settings[1]},
        {"two_over_ucx", is_counted, NULL, NULL, &settings[2]},
        {"four_over_ucx", is_counted, NULL, NULL, &settings[3]},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
