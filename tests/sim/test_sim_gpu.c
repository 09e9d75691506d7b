/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers in memory of simulated GPUs: right results under faults, and copies beside the network.
 * Time is the simulator's: the same in each run.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "doubles/gpu_sim.h"
#include "scenario.h"

#define CALLS                                                                                      \
    "coll allreduce i64 1; coll allreduce f64 30000; coll allreduce f64 30000 in-place;"           \
    "coll allgather bytes3 10000; coll reduce-scatter f64 5000; coll alltoall i64 300;"            \
    "coll bcast bytes3 200000; coll barrier i64 0; coll reduce matrix 3000 root=1; coll scan i64 " \
    "999; coll allreduce i64 50000 nb; coll bcast i64 0 nb; wait;"
#define LONG_CALLS \
    "coll alltoall i64 20000; coll bcast bytes3 200000; coll allgather bytes3 100000 times=2;"
#define FAULTS    "at 500us drop h1 rail1; at 2ms down h0 rail0; at 400ms heal"
#define DUPLICATE "; rule duplicate 10 delay=5ms until=1s"

static void results_are_right(void **state)
{
    static const char *const machines[] = {
        "hosts 4; rails 4; gpu 50000000;", "hosts 4; rails 2; gpu 1000000;",
        "hosts 3; ppn 2; rails 2; gpu 1000000000;", "hosts 4; rails 2; rdma 2; gpu 25000000;"};
    scenario_result_t result;
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(machines); ++i) {
        for (unsigned seed = 1; seed <= 3; ++seed) {
            snprintf(text, sizeof(text), "seed %u; %s rate 12500000; latency 50us; %s %s", seed,
                     machines[i], CALLS, FAULTS DUPLICATE);
            assert_true(scenario_check(text, &result));
        }
    }
}

/* Simulated RDMA reads it: the transport says which lanes can, and that nothing changes what is
 * under way. Where hosts have no rail in common a third one relays, which copies. */
static void nics_read_memory_of_gpus(void **state)
{
    static const struct {
        const char *machine, *faults;
        bool fetches;
    } jobs[] = {
        {"hosts 4; rails 4; rdma 4; gpu 50000000;", "", false},
        {"hosts 4; rails 2; rdma 4; gpu 1000000;", FAULTS, false},
        {"hosts 3; ppn 2; rails 2; rdma 3; gpu 1000000000;", FAULTS, false},
        {"hosts 4; rails 2; rdma 2; gpu 25000000;", FAULTS, false},
        {"hosts 4; rails 2; rdma 4; gpu 50000000;",
         "at 3ms drop h0 rail0; at 3ms drop h1 rail1; at 2s heal", true},
    };
    uint64_t fetched = 0;
    scenario_result_t result;
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        for (unsigned seed = 1; seed <= 6; ++seed) {
            snprintf(text, sizeof(text),
                     "seed %u; %s rate 12500000; latency 50us; param gpu_nic_bytes 4096; %s %s",
                     seed, jobs[i].machine, CALLS, jobs[i].faults);
            assert_true(scenario_check(text, &result));
            assert_true(result.counters.gpu_messages > 0);
            assert_true(jobs[i].fetches || '\0' != jobs[i].faults[0] ||
                        0 == result.counters.fetched_messages);
            fetched += jobs[i].fetches ? result.counters.fetched_messages : 0;
        }
    }
    print_message("%u messages fetched\n", (unsigned) fetched);
    assert_true(fetched > 0);
}

/* And writes it: what peers put is where it belongs, whatever is lost, doubled or late; the
 * simulator fails a write into memory that was given back. */
static void nics_write_memory_of_gpus(void **state)
{
    static const struct {
        const char *machine, *faults;
    } jobs[] = {
        {"hosts 4; rails 4; rdma 4; gpu 50000000;", ""},
        {"hosts 4; rails 2; rdma 4; gpu 1000000;", FAULTS},
        {"hosts 3; ppn 2; rails 2; rdma 3; gpu 1000000000;", FAULTS},
        {"hosts 4; rails 2; rdma 4; gpu 50000000;",
         "at 3ms drop h0 rail0; at 3ms drop h1 rail1; at 2s heal"},
        {"hosts 2; rails 2; rdma 2; gpu 50000000;",
         "at 5ms drop h0 rail0; at 300ms heal; at 320ms drop-in h1 rail1; at 600ms heal"},
        {"hosts 3; rails 2; rdma 3; gpu 50000000;",
         "at 6ms drop-out h1 rail0; at 400ms heal; at 402ms down h2 rail1; at 800ms heal"},
        {"hosts 4; rails 2; rdma 2; gpu 25000000;", FAULTS},
    };
    const uint64_t flushes = r2_gpu_sim_stats().flushes;
    uint64_t placed = 0;
    scenario_result_t result;
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        for (unsigned seed = 1; seed <= 4; ++seed) {
            snprintf(text, sizeof(text),
                     "seed %u; %s rate 12500000; latency 50us; param gpu_nic_bytes 4096;"
                     "param put 1; %s %s %s",
                     seed, jobs[i].machine, LONG_CALLS, CALLS, jobs[i].faults);
            assert_true(scenario_check(text, &result));
            placed += result.counters.gpu_placed_bytes;
        }
    }
    print_message("%u bytes put to memory of GPUs\n", (unsigned) placed);
    assert_true(placed > 0);
    assert_true(r2_gpu_sim_stats().flushes > flushes);
}

#define HOSTS        4
#define RAILS        4
#define RAIL_BYTES_S 12500000u
#define MIB          (1u << 20)

/* In a ring every NIC has one peer each way: rails can be full. @return bytes that each rank sends
 * in an allreduce, over what its rails could send meanwhile. */
static double share_of_rate(uint64_t bytes, uint64_t gpu_bytes_per_s)
{
    scenario_result_t result;
    char text[512];
    double seconds;

    snprintf(text, sizeof(text),
             "seed 1; hosts %u; rails %u; rate %u; latency 50us; gpu %llu; expect healthy;"
             "param allreduce_algorithm ring; param window_min_bytes 524288;"
             "coll allreduce i64 %llu",
             HOSTS, RAILS, RAIL_BYTES_S, (unsigned long long) gpu_bytes_per_s,
             (unsigned long long) bytes / 8);
    assert_true(scenario_check(text, &result));
    seconds = (double) result.calls[R2_COLL_ALLREDUCE].ns / HOSTS / 1e9;
    return 2.0 * (HOSTS - 1) / HOSTS * (double) bytes / (RAILS * RAIL_BYTES_S) / seconds;
}

/* Copies as slow as all rails together. */
static void copies_overlap_with_the_network(void **state)
{
    static const uint64_t mib[] = {1, 4, 16, 64};
    double share = 0;

    (void) state;
    for (size_t i = 0; i < r2_array_count(mib); ++i) {
        share = share_of_rate(mib[i] * MIB, RAILS * RAIL_BYTES_S);
        print_message("%2u MiB: %.3f of the rails' rate\n", (unsigned) mib[i], share);
    }
    assert_true(share >= 0.9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(nics_read_memory_of_gpus),
        cmocka_unit_test(nics_write_memory_of_gpus),
        cmocka_unit_test(copies_overlap_with_the_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
