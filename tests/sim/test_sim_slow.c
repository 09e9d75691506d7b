/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes that run rarely and send and read a little each time: nothing of them is given up,
 * however short failure_timeout_ms is. And they give up what is dead.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "scenario.h"

static void run_healthy(const char *const *programs, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        scenario_result_t result;

        assert_true(scenario_check(programs[i], &result));
        assert_int_equal(0, result.errors);
        assert_int_equal(0, result.counters.lanes_failed);
    }
}

/*
 * A process that sends slowly is asked after lane by lane, since its acknowledgements lie behind
 * what it sends. No lane fails for an answer that says nothing of it.
 */
static void asked_after_while_it_sends_slowly(void **state)
{
    static const char *const programs[] = {
        /* a firewall refuses new connections */
        "seed 690653; hosts 4; latency 195us; socket 1076; param chunk_min_bytes 1024; coll "
        "allgather matrix 15 times=5; coll allgatherv matrix 2549 nb; compute 103730us; at 629us "
        "refuse h3 rail1; at 7858us slow r3 101109us; expect healthy",
        /* it has just closed the lane for what that held */
        "seed 2053; hosts 4; rails 3; latency 195us; socket 1400; receive 1641; param "
        "chunk_min_bytes 1024; coll allreduce matrix 1350 times=4 nb; coll alltoall i64 900 "
        "times=3 nb; compute 225ms; coll alltoall i64 900; at 5461us slow r3 150000us; "
        "expect healthy",
        /* and says so late */
        "seed 600; hosts 4; rails 4; latency 195us; socket 1400; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 20; coll allreduce matrix 1350 times=2; "
        "coll allgatherv matrix 2549 times=4 nb; compute 247ms; coll gather i64 4000 root=0 "
        "times=3; at 3118us slow r3 101109us; expect healthy",
        /* and a firewall refuses the call that says so: another lane does */
        "seed 178; hosts 4; rails 3; latency 195us; socket 2000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 30; coll allgatherv matrix 2549 times=2; "
        "compute 83ms; coll gather i64 4000 root=0 times=2; at 1847us slow r3 150000us; expect "
        "healthy; at 19577us refuse h3 rail1",
        "seed 471; hosts 4; rails 2; latency 195us; socket 2000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 30; coll allgatherv matrix 2549 times=2 "
        "nb; coll allreduce matrix 1350 nb; compute 38ms; coll allgatherv matrix 2549; at 3795us "
        "slow r3 101109us; expect healthy; at 9940us refuse h3 rail1",
        "seed 670; hosts 4; rails 2; latency 195us; socket 1076; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 20; coll allreduce matrix 1350 times=2 "
        "nb; coll alltoall i64 900 nb; compute 168ms; coll allreduce matrix 1350; at 3259us slow "
        "r3 101109us; expect healthy; at 15801us refuse h3 rail1",
        /* which is not read so soon */
        "seed 2226; hosts 4; rails 4; latency 10us; socket 4000; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 20; coll gather i64 4000 root=0; coll "
        "allgather f64 3000 nb; coll gather i64 4000 root=3 times=4; coll reduce-scatter f64 5000 "
        "times=3 nb; compute 7ms; coll reduce-scatter f64 5000 times=2; at 4371us slow r3 "
        "101109us; expect healthy",
        "seed 407; hosts 4; rails 3; latency 10us; socket 1076; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 30; coll alltoall i64 900 times=4; compute "
        "95ms; coll gather i64 4000 root=3 times=2; at 4848us slow r3 150000us; expect healthy; at "
        "25836us refuse h3 rail1",
        /* it holds the packet, and says so behind all that it said before */
        "seed 780; hosts 4; rails 4; latency 10us; socket 2000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 20; coll allgather f64 3000 times=4 nb; "
        "coll allreduce matrix 1350 times=1 nb; coll allreduce matrix 1350 times=4; coll bcast f64 "
        "20000 root=3 times=1 nb; compute 54ms; coll bcast f64 20000 root=3 times=1; at 2300us "
        "slow r3 200000us; at 60s slow r3 0us; expect healthy"};

    (void) state;
    run_healthy(programs, r2_array_count(programs));
}

#define SLOW_MACHINE                                                                          \
    "hosts 4; rails 2; latency 10us; socket 2000; receive 1641; param chunk_min_bytes 1024; " \
    "param failure_timeout_ms 10; param ack_delay_us 2000; "
#define SLOW_CALLS                                                                                 \
    "coll allgatherv matrix 2549 times=6; coll alltoall i64 900 nb; coll reduce-scatter f64 5000 " \
    "times=6 nb; coll bcast f64 20000 root=1 times=4 nb; wait; limit 2000s; expect healthy; "

/* Each look of its own sends a little, and in between its peers ask more than once. */
static void comes_more_rarely_than_peers_ask(void **state)
{
    static const char *const programs[] = {
        "seed 55;" SLOW_MACHINE SLOW_CALLS "at 3323us slow r2 250ms",
        "seed 56;" SLOW_MACHINE SLOW_CALLS "at 3323us slow r2 400ms",
        "seed 55;" SLOW_MACHINE SLOW_CALLS "at 3323us slow r2 250ms; at 3513us slow r0 250ms",
        /* what it sends leaves long after it was given to the transport */
        "seed 22; hosts 5; rails 2; latency 10us; socket 1076; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 10; param ack_delay_us 2000; coll "
        "allreduce matrix 1350 times=6; coll reduce-scatter f64 5000 times=6 nb; coll allgatherv "
        "matrix 2549 times=2 nb; coll allgatherv matrix 2549 times=3; wait; at 3522us slow r0 "
        "101000us; at 174us slow r4 17000us; limit 3000s; expect healthy",
        /* what it had closed it opens again later than it is judged */
        "seed 56;" SLOW_MACHINE SLOW_CALLS "at 3323us slow r2 100ms",
        "seed 57;" SLOW_MACHINE SLOW_CALLS "at 3323us slow r2 100ms",
        "seed 58;" SLOW_MACHINE SLOW_CALLS "at 3323us slow r2 100ms"};

    (void) state;
    run_healthy(programs, r2_array_count(programs));
}

/* Its packets leave long after it gave them to the transport: what it hears was said before. */
static void hears_before_it_has_sent(void **state)
{
    static const char *const programs[] = {"seed 207;" SLOW_MACHINE SLOW_CALLS
                                           "at 3323us slow r2 100ms",
                                           "seed 216;" SLOW_MACHINE SLOW_CALLS
                                           "at 3323us slow r2 100ms",
                                           "seed 253;" SLOW_MACHINE SLOW_CALLS
                                           "at 3323us slow r2 100ms",
                                           "seed 347;" SLOW_MACHINE SLOW_CALLS
                                           "at 3323us slow r2 100ms"};

    (void) state;
    run_healthy(programs, r2_array_count(programs));
}

/* It comes a little more seldom than its peers may take it for silent. */
static void comes_as_rarely_as_timers(void **state)
{
    static const char *const programs[] = {
        "seed 77; hosts 4; rails 2; latency 195us; socket 4000; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 5; param ack_delay_us 1250; coll gather "
        "i64 4000 root=3 times=2 nb; compute 68ms; coll gather i64 4000 root=3 times=2; at 2413us "
        "slow r3 11000us; expect healthy",
        "seed 124; hosts 4; rails 2; latency 10us; socket 9000; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 5; param ack_delay_us 1250; coll bcast f64 "
        "20000 root=3 nb; compute 243ms; coll allgatherv matrix 2549 times=3; at 3877us slow r3 "
        "17000us; expect healthy",
        /* delivered memory that its lanes still read is returned before they are judged */
        "seed 68; hosts 4; rails 3; latency 195us; socket 1076; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 20; coll allgatherv matrix 2549 times=3; "
        "coll bcast f64 20000 root=3 times=3 nb; coll gather i64 4000 root=0 times=4 nb; coll "
        "alltoall i64 900 times=2 nb; compute 276ms; coll allreduce matrix 1350; at 8892us slow r3 "
        "11000us; expect healthy"};

    (void) state;
    run_healthy(programs, r2_array_count(programs));
}

/* It is asked again, after what was sent when it had acknowledged the first: one more question. */
static void asked_after_what_came_later(void **state)
{
    static const char *const programs[] = {
        /* the first of what it did not hold when it was asked after something before */
        "seed 287; hosts 4; rails 4; rdma 4; latency 195us; socket 2000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 5; param ack_delay_us 1000; coll "
        "allgatherv matrix 2549 times=2 nb; coll bcast f64 20000 root=1 times=5; coll allgatherv "
        "matrix 2549 times=2 nb; coll alltoall i64 900 times=2 nb; wait; at 874us slow r0 101ms; "
        "at 4415us slow r2 250ms; limit 3000s; expect healthy",
        "seed 29; hosts 4; rails 4; rdma 4; latency 195us; socket 2000; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 5; param ack_delay_us 1000; coll "
        "allgatherv matrix 2549 times=5 nb; coll gather i64 4000 root=0 times=4; coll allgatherv "
        "matrix 2549 nb; coll reduce-scatter f64 5000 times=2 nb; wait; at 4078us slow r2 101ms; "
        "limit 3000s; expect healthy",
        "seed 26; hosts 5; rails 4; rdma 5; latency 10us; socket 9000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 10; param ack_delay_us 2000; coll bcast "
        "f64 20000 root=1 times=5; coll allreduce matrix 1350 times=4; coll reduce-scatter f64 "
        "5000 times=6; coll reduce-scatter f64 5000 times=4; wait; at 3351us slow r1 250ms; limit "
        "3000s; expect healthy; at 235us slow r1 11000us",
        "seed 240; hosts 4; rails 4; rdma 4; latency 10us; socket 4000; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 5; param ack_delay_us 1000; coll "
        "allreduce matrix 1350 times=5 nb; coll allgatherv matrix 2549 times=3; coll allreduce "
        "matrix 1350 nb; coll gather i64 4000 root=0 times=3; wait; at 2046us slow r1 101ms; at "
        "8us slow r3 101ms; limit 3000s; expect healthy"};

    (void) state;
    run_healthy(programs, r2_array_count(programs));
}

/* It closes a lane to open it anew, and says so behind all that it sends slowly. */
static void closes_before_it_says_so(void **state)
{
    static const char *const programs[] = {
        "seed 201; hosts 2; rails 2; latency 195us; socket 1076; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 20; param ack_delay_us 4000; coll "
        "alltoall i64 900 times=3 nb; coll bcast f64 20000 root=1 times=3 nb; coll gather i64 "
        "4000 root=0 times=5 nb; coll allreduce matrix 1350 times=5 nb; wait; at 4389us slow r0 "
        "11ms; limit 3000s; expect healthy"};

    (void) state;
    run_healthy(programs, r2_array_count(programs));
}

/*
 * It always comes later than its timers, so all that it waits for may have come meanwhile: it finds
 * out nevertheless that a rail is dead, tells it, and its calls end.
 */
static void finds_a_dead_rail(void **state)
{
    /* each look of its own is later than the time that a silent lane gets */
    static const char *const late[] = {
        "seed 25; hosts 4; rails 3; latency 195us; socket 4000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 30; param ack_delay_us 6000; coll "
        "allgatherv matrix 2549 times=20; coll allreduce matrix 1350 times=20; at 966us slow r3 "
        "40000us; at 4926us drop h1 rail1; limit 600s",
        "seed 64; hosts 4; rails 4; latency 10us; socket 4000; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 10; param ack_delay_us 2000; coll "
        "allgatherv matrix 2549 times=20; coll allreduce matrix 1350 times=20; at 1355us slow r0 "
        "101000us; at 4943us drop h1 rail1; limit 600s",
        "seed 122; hosts 4; rails 2; latency 195us; socket 1076; receive 6000; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 10; param ack_delay_us 2000; coll "
        "allgatherv matrix 2549 times=20; coll allreduce matrix 1350 times=20; at 959us slow r3 "
        "40000us; at 8252us drop h1 rail1; limit 600s"};
    static const unsigned timeouts_ms[] = {10, 30}, periods_ms[] = {11, 40, 101};
    scenario_result_t result;
    char text[512];
    unsigned seed = 0;

    (void) state;
    for (size_t i = 0; i < r2_array_count(late); ++i) {
        assert_true(scenario_check(late[i], &result));
        assert_true(0 == result.errors && result.counters.lanes_failed > 0);
    }
    for (size_t t = 0; t < r2_array_count(timeouts_ms); ++t) {
        for (size_t p = 0; p < r2_array_count(periods_ms); ++p) {
            for (unsigned kind = 0; kind < 8; ++kind) {
                snprintf(text, sizeof(text),
                         "seed %u; hosts 4; rails %u; rdma %u; latency 195us; socket %u; receive "
                         "6000; param chunk_min_bytes 1024; param failure_timeout_ms %u; param "
                         "ack_delay_us %u; coll allgatherv matrix 2549 times=10; coll allreduce "
                         "matrix 1350 times=10; at 1ms slow r%u %ums; at 5ms drop h1 rail1; limit "
                         "600s",
                         ++seed, 0 == (kind & 1u) ? 2 : 4, 0 == (kind & 2u) ? 0 : 4,
                         0 == (kind & 2u) ? 1076 : 4000, timeouts_ms[t], timeouts_ms[t] * 200,
                         0 == (kind & 4u) ? 0 : 3, periods_ms[p]);
                assert_true(scenario_check(text, &result));
                assert_int_equal(0, result.errors);
                assert_true(result.counters.lanes_failed > 0);
            }
        }
    }
}

/*
 * The port of an RDMA NIC is down while its network device works: calls for its lanes are answered,
 * and say nothing of the way of the data. Nevertheless somebody tells that it is dead.
 */
static void finds_a_dead_port(void **state)
{
    static const unsigned timeouts_ms[] = {10, 30}, periods_ms[] = {11, 40, 101};
    scenario_result_t result;
    char text[512];

    (void) state;
    for (unsigned i = 0; i < 24; ++i) {
        const unsigned timeout_ms = timeouts_ms[i / 12], period_ms = periods_ms[i / 4 % 3];
        const unsigned slow = 0 == (i & 2u) ? 0 : 3;

        snprintf(text, sizeof(text),
                 "seed 7%u%u%u; hosts 4; rails %u; rdma 4; latency 195us; socket 4000; receive "
                 "6000; param chunk_min_bytes 1024; param failure_timeout_ms %u; param "
                 "ack_delay_us %u; coll allgatherv matrix 2549 times=10; coll allreduce matrix "
                 "1350 times=10; at 1ms slow r%u %ums; at 5ms port-down h1 rail1; limit 600s",
                 timeout_ms, period_ms, slow, 0 == (i & 1u) ? 2 : 4, timeout_ms, timeout_ms * 200,
                 slow, period_ms);
        assert_true(scenario_check(text, &result));
        assert_int_equal(0, result.errors);
        assert_true(result.counters.lanes_failed > 0);
    }
}

/*
 * The same from the start, as where a switch drops RoCE: no lane was ever up, none fails, and the
 * paths are known not to pass until a lane is.
 */
static void finds_a_port_that_never_worked(void **state)
{
    scenario_result_t result;
    char text[512];

    (void) state;
    for (unsigned i = 0; i < 4; ++i) {
        snprintf(text, sizeof(text),
                 "seed 7%u; hosts 4; rails %u; rdma 4; latency 195us; coll allgatherv matrix 2549 "
                 "times=10; compute %us; coll allreduce matrix 1350 times=10; at 0us port-down h1 "
                 "rail1; at 40s port-up h1 rail1; limit 600s",
                 i, 0 == (i & 1u) ? 2 : 4, 0 == (i & 2u) ? 30 : 60);
        assert_true(scenario_check(text, &result));
        assert_int_equal(0, result.errors);
        /* of three paths, heard by four processes: that they do not pass, and are back */
        assert_int_equal(0 == (i & 2u) ? 12 : 24, result.counters.verdicts);
        assert_int_equal(0, result.counters.lanes_failed);
    }
}

/*
 * The last rail to a process opens, and before that reads the first of what came on it, it is asked
 * after it for the second time. It has moved when it opened.
 */
static void reads_on_the_last_rail(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 55; hosts 4; rails 2; rdma 4; latency 10us; socket 2000; receive 1641; param "
        "chunk_min_bytes 1024; param failure_timeout_ms 10; param ack_delay_us 2000; coll "
        "allgatherv matrix 2549 times=6; coll alltoall i64 900 nb; coll reduce-scatter f64 5000 "
        "times=6 nb; coll bcast f64 20000 root=1 times=4 nb; wait; at 3323us slow r2 250ms; at "
        "3513us slow r0 250ms; at 134469us drop h3 rail0; limit 900s",
        &result));
    assert_int_equal(0, result.errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_after_while_it_sends_slowly),
        cmocka_unit_test(comes_more_rarely_than_peers_ask),
        cmocka_unit_test(hears_before_it_has_sent),
        cmocka_unit_test(asked_after_what_came_later),
        cmocka_unit_test(closes_before_it_says_so),
        cmocka_unit_test(comes_as_rarely_as_timers),
        cmocka_unit_test(finds_a_dead_rail),
        cmocka_unit_test(finds_a_dead_port),
        cmocka_unit_test(finds_a_port_that_never_worked),
        cmocka_unit_test(reads_on_the_last_rail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
