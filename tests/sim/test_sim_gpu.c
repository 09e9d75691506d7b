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

/* Blocks are one message, or a few: what is loaded of one leaves while the rest is loaded, and is
 * stored while the rest comes. @return time of a call on memory of GPUs, over the host's. */
static double over_host(const char *call, unsigned hosts)
{
    double ns[2] = {0, 0};

    for (int on_gpu = 0; on_gpu <= 1; ++on_gpu) {
        scenario_result_t result;
        char text[512];

        snprintf(text, sizeof(text),
                 "seed 1; hosts %u; rails 4; rate 1250000000; latency 50us; %s expect healthy;"
                 "param window_min_bytes 524288; coll %s times=4",
                 hosts, 1 == on_gpu ? "gpu 5000000000;" : "", call);
        assert_true(scenario_check(text, &result));
        for (int kind = 0; kind < R2_COLL_KIND_COUNT; ++kind) {
            ns[on_gpu] += (double) result.calls[kind].ns;
        }
    }
    return ns[1] / ns[0];
}

static void blocks_overlap_with_the_network(void **state)
{
    static const char *const calls[] = {"alltoall i64 524288", "allgather i64 524288",
                                        "alltoall i64 65536", "allgather i64 65536"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(calls); ++i) {
        for (unsigned hosts = 2; hosts <= 4; hosts += 2) {
            const double times = over_host(calls[i], hosts);

            print_message("%s, %u hosts: %.2f of the host's time\n", calls[i], hosts, times);
            assert_true(times <= 1.2);
        }
    }
}

/* Rails that fail, lose and heal while messages of which a part is loaded are under way. */
static void blocks_survive_rails(void **state)
{
    static const char *const machines[] = {
        "hosts 2; rails 4; gpu 50000000;", "hosts 3; rails 2; gpu 25000000;",
        "hosts 2; ppn 2; rails 2; gpu 1000000000;", "hosts 2; rails 2; rdma 2; gpu 25000000;"};
    static const char *const faults[] = {
        "at 3ms down h0 rail0; at 9ms drop h1 rail1; at 300ms heal",
        "at 5ms drop-in h1 rail0; at 12ms drop-out h0 rail1; at 400ms heal",
        "at 8ms drop h0 rail1; at 250ms heal; at 252ms down h1 rail0; at 600ms heal"};
    uint32_t hit[r2_array_count(faults)] = {0};
    scenario_result_t result;
    char text[1024];

    (void) state;
    for (size_t i = 0; i < r2_array_count(machines) * r2_array_count(faults); ++i) {
        for (unsigned seed = 1; seed <= 2; ++seed) {
            snprintf(text, sizeof(text),
                     "seed %u; %s rate 12500000; latency 50us; coll alltoall i64 65536 times=2;"
                     "coll allgather bytes3 150000 times=2; coll alltoall i64 40000 in-place;"
                     "coll gather i64 60000; coll scatter i64 60000; coll bcast i64 100000; %s",
                     seed, machines[i / r2_array_count(faults)],
                     faults[i % r2_array_count(faults)]);
            assert_true(scenario_check(text, &result));
            assert_true(result.counters.resent_chunks > 0);
            hit[i % r2_array_count(faults)] += result.filling_hit;
        }
    }
    for (size_t i = 0; i < r2_array_count(faults); ++i) {
        print_message("%u packets of messages that were being filled: %s\n", hit[i], faults[i]);
        assert_true(hit[i] > 0);
    }
}

/* Messages of two chunks, one after the other: lanes are idle when they leave, and whose turn it is
 * would carry them. @param bytes_p by place in the chain of a job whose chain begins with
 * `nearest`. */
static void bytes_by_place(unsigned nearest, const char *machine, const char *faults,
                           uint64_t *bytes_p, scenario_result_t *result)
{
    char text[512];

    snprintf(text, sizeof(text),
             "seed 1; hosts 2; rails %u; near %u; rate 125000000; latency 50us; %s"
             "coll alltoall i64 2048 times=40; %s",
             RAILS, nearest + 1, machine, faults);
    assert_true(scenario_check(text, result));
    for (unsigned i = 0; i < RAILS; ++i) {
        bytes_p[i] = result->rail_bytes[(nearest + i) % RAILS];
    }
    print_message("from rail %u, %s: %u %u %u %u KiB, %u chunks sent again\n", nearest, faults,
                  (unsigned) (bytes_p[0] >> 10), (unsigned) (bytes_p[1] >> 10),
                  (unsigned) (bytes_p[2] >> 10), (unsigned) (bytes_p[3] >> 10),
                  (unsigned) result->counters.resent_chunks);
}

static void rails_take_their_places_in_the_chain(void **state)
{
    static const char *const machines[] = {"gpu 1000000000;",
                                           "gpu 1000000000; rdma 2; param gpu_nic_bytes 4096;"};
    uint64_t whole[RAILS], left[RAILS];
    scenario_result_t result;
    char faults[128];

    (void) state;
    for (unsigned i = 0; i < 2 * RAILS; ++i) {
        const unsigned nearest = i % RAILS;

        bytes_by_place(nearest, machines[i / RAILS], "", whole, &result);
        assert_true(8 * (whole[2] + whole[3]) <= whole[0] + whole[1]);
        snprintf(faults, sizeof(faults), "at 5ms down h0 rail%u", nearest);
        bytes_by_place(nearest, machines[i / RAILS], faults, left, &result);
        assert_true(result.counters.resent_chunks > 0);
        assert_true(left[0] < whole[0] && left[1] >= whole[1]);
        assert_true(left[2] >= whole[2] + (whole[0] - left[0]) / 2); /* it is the second now */
        assert_true(left[3] <= whole[3] + (whole[0] - left[0]) / 8);
    }
}

/* One message to each of seven peers leaves at once: the nearest rail alone would take four times
 * as long. @return time of a call where some rails are nearer, over that where all are as near. */
static double over_as_near(const char *call, const char *rails)
{
    double ns[2] = {0, 0};

    for (int near = 0; near <= 1; ++near) {
        scenario_result_t result;
        char text[512];

        snprintf(text, sizeof(text),
                 "seed 1; hosts 8; rails %u; near %d; %s; gpu 50000000000; expect healthy;"
                 "coll %s times=20",
                 RAILS, near, rails, call);
        assert_true(scenario_check(text, &result));
        for (int kind = 0; kind < R2_COLL_KIND_COUNT; ++kind) {
            ns[near] += (double) result.calls[kind].ns;
        }
    }
    return ns[1] / ns[0];
}

static void messages_to_many_peers_use_all_rails(void **state)
{
    static const char *const calls[] = {"alltoall i64 768", "alltoall i64 1200",
                                        "alltoall i64 8192", "allgather i64 2048",
                                        "allgather i64 32768", "allreduce i64 200000"};
    static const char *const rails[] = {"rate 125000000; latency 50us",
                                        "rate 12500000000; latency 5us"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(calls) * r2_array_count(rails); ++i) {
        const char *call = calls[i / r2_array_count(rails)];
        const double times = over_as_near(call, rails[i % r2_array_count(rails)]);

        print_message("%s, %s: %.2f of the time\n", call, rails[i % r2_array_count(rails)], times);
        assert_true(times <= 1.12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(nics_read_memory_of_gpus),
        cmocka_unit_test(nics_write_memory_of_gpus),
        cmocka_unit_test(copies_overlap_with_the_network),
        cmocka_unit_test(blocks_overlap_with_the_network),
        cmocka_unit_test(blocks_survive_rails),
        cmocka_unit_test(rails_take_their_places_in_the_chain),
        cmocka_unit_test(messages_to_many_peers_use_all_rails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
