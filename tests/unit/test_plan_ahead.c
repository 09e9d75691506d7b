/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls on memory of a GPU are planned before they begin, to pin what they need: once, also where
 * no program is kept. One rank, on a simulated GPU.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/state.h"
#include "doubles/gpu_sim.h"
#include "doubles/hello_sim.h"
#include "doubles/loop.h"
#include "doubles/sim.h"

enum { COUNT = 100, STEPS_MAX = 10000 };

typedef struct job {
    r2_sim_t *sim; /* owned, as the rest */
    r2_hello_sim_t *hub;
    r2_oob_loop_t *oob;
    r2_gpu_sim_t *gpu;
    r2_ctx_t *ctx;
    r2_comm_t *comm;
    r2_params_t params;
    uint64_t in[COUNT], out[COUNT];
} job_t;

static job_t job;

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

static int start(void **state)
{
    const uint8_t key[R2_JOB_KEY_BYTES] = "ahead";
    const r2_sim_hooks_t hooks = {on_wake, on_carrier, NULL};
    const r2_sim_config_t world = {.seed = 1, .host_count = 1, .node_count = 1, .rail_count = 1};
    const r2_ctx_config_t config = {.params = &job.params};
    r2_ctx_parts_t parts = {.host_id = 1};
    const uint32_t members[] = {0};
    char text[256] = "";

    (void) state;
    memset(&job, 0, sizeof(job));
    job.oob = r2_oob_loop_create(1, key);
    job.sim = r2_sim_create(&world, &hooks);
    job.hub = r2_hello_sim_create(job.sim, 1);
    r2_params_init(&job.params);
    parts.clock = r2_sim_clock(job.sim, 0);
    parts.tp = r2_sim_transport(job.sim, 0);
    parts.hello = r2_hello_sim_node(job.hub, 0);
    parts.oob = r2_oob_loop_rank(job.oob, 0);
    r2_sim_nics(job.sim, 0, parts.nics, &parts.nic_count);
    snprintf(parts.host_name, sizeof(parts.host_name), "h0");
    assert_int_equal(r2_ctx_assemble(&config, &parts, &job.ctx, text, sizeof(text)), R2_OK);
    assert_int_equal(r2_comm_create(job.ctx, (r2_comm_id_t){0, 0}, members, 1, 0, &job.comm),
                     R2_OK);
    job.gpu = r2_gpu_sim_create(parts.clock, 1000000000);
    r2_gpu_sim_driver(&job.ctx->core.mem.driver);
    r2_staging_init(&job.ctx->core.engine.staging, &job.ctx->core.mem, job.params.pinned_bytes);
    return 0;
}

static int end(void **state)
{
    (void) state;
    job.ctx->core.net.ending = true;
    r2_comm_destroy(job.comm);
    r2_ctx_dismantle(job.ctx);
    r2_gpu_sim_destroy(job.gpu);
    r2_hello_sim_destroy(job.hub);
    r2_sim_destroy(job.sim);
    r2_oob_loop_destroy(job.oob);
    return 0;
}

static void add(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        ((uint64_t *) inout)[i] += ((const uint64_t *) in)[i];
    }
}

static uint64_t next_ns(void)
{
    return r2_min(r2_min(r2_gpu_sim_deadline_ns(job.gpu), r2_sim_next_ns(job.sim)),
                  r2_ctx_deadline_ns(job.ctx));
}

static void wait_for(r2_coll_t *coll)
{
    for (int i = 0; i < STEPS_MAX && R2_IN_PROGRESS == r2_coll_test(coll); ++i) {
        (void) r2_ctx_drive(job.ctx, R2_DRIVE_APP);
        r2_sim_run_until(job.sim, r2_max(next_ns(), r2_sim_now_ns(job.sim) + 1));
    }
    assert_int_equal(r2_coll_test(coll), R2_OK);
}

static r2_coll_args_t arguments(uint32_t parts, size_t count)
{
    return (r2_coll_args_t){.kind = R2_COLL_ALLREDUCE,
                            .count = count,
                            .in = job.in,
                            .out = job.out,
                            .in_at = r2_gpu_sim_memory(job.gpu),
                            .out_at = r2_gpu_sim_memory(job.gpu),
                            .element_bytes = sizeof(uint64_t),
                            .reduce = add,
                            .any_thread = true,
                            .parts = parts};
}

/* @return how many plans calls took, each of some parts. */
static uint64_t plans_of(uint32_t calls, uint32_t parts)
{
    const uint64_t before = job.ctx->core.counters.plans;

    for (uint32_t i = 0; i < calls; ++i) {
        r2_coll_args_t args = arguments(parts, COUNT);
        r2_coll_t *coll;

        for (size_t k = 0; k < COUNT; ++k) {
            job.in[k] = 7 * k + i;
            job.out[k] = 0;
        }
        assert_int_equal(r2_coll_post(job.comm, &args, NULL, NULL, &coll), R2_OK);
        wait_for(coll);
        assert_memory_equal(job.in, job.out, sizeof(job.in));
        for (uint32_t part = 1; part < parts; ++part) {
            args = arguments(parts, COUNT - part);
            assert_int_equal(r2_coll_next(coll, &args), R2_OK);
            wait_for(coll);
        }
        r2_coll_release(coll);
    }
    return job.ctx->core.counters.plans - before;
}

static void a_kept_program_is_planned_once(void **state)
{
    (void) state;
    assert_int_equal(plans_of(5, 0), 1);
}

static void each_call_is_planned_once(void **state)
{
    (void) state;
    job.ctx->comms.programs.bytes_max = 0; /* none is kept */
    assert_int_equal(plans_of(5, 0), 5);
}

static void each_part_is_planned_once(void **state)
{
    (void) state;
    job.ctx->comms.programs.bytes_max = 0;
    assert_int_equal(plans_of(2, 3), 6);
}

#define T_JOB(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_JOB(a_kept_program_is_planned_once),
        T_JOB(each_call_is_planned_once),
        T_JOB(each_part_is_planned_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
