/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link whose receives are put to, by a peer and a transport that the test plays: what comes
 * again is taken when nothing can land there any more.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place_receive.h"

#define MS R2_NS_PER_MS

/* The queue pair that it was put over is gone before a copy of a chunk is written. */
static void a_copy_is_taken_behind_the_fence(void **state)
{
    receive_t *receive = start();
    const uint64_t connection = lane_of(receive, 0)->connect.rx_connection;

    (void) state;
    put_comes(receive, 0, 0);
    leave_unread(receive, true);
    copy_comes(receive, 1, 1, 1u << 0);
    assert_int_equal(lane_of(receive, 0)->connect.rx_connection, connection);
    assert_int_equal(receive->stub->grants, STUB_RAILS);
    assert_false(is_taken(receive, 1)); /* it may still land there */
    leave_unread(receive, false);
    r2_net_progress(&receive->stub->net);
    assert_int_not_equal(lane_of(receive, 0)->connect.rx_connection, connection);
    assert_int_equal(receive->stub->grants, STUB_RAILS - 1);
    assert_true(is_taken(receive, 1)); /* long before all of the message is there */
    assert_int_equal(receive->done, 0);
    assert_int_equal(failed(receive), 0);
    put_comes(receive, 1, 2);
    put_comes(receive, 1, 3);
    assert_int_equal(receive->done, 1);
    assert_int_equal(receive->status, R2_OK);
    assert_int_equal(receive->stub->grants, 0);
    finish(receive);
}

/* The last chunk comes again while its put may land: the receive is over when the lane is. */
static void the_last_copy_waits(void **state)
{
    receive_t *receive = start();

    (void) state;
    for (uint32_t chunk = 0; chunk + 1 < CHUNKS; ++chunk) {
        put_comes(receive, 1, chunk);
    }
    leave_unread(receive, true);
    copy_comes(receive, 1, CHUNKS - 1, 1u << 0);
    assert_int_equal(receive->done, 0);
    assert_false(is_taken(receive, CHUNKS - 1));
    leave_unread(receive, false);
    r2_net_progress(&receive->stub->net);
    assert_int_equal(receive->done, 1);
    assert_true(is_taken(receive, CHUNKS - 1));
    assert_int_equal(receive->stub->grants, 0);
    finish(receive);
}

/* Chunks were put over both lanes, and come again: the end of one lane is not enough. */
static void all_lanes_are_waited_for(void **state)
{
    receive_t *receive = start();

    (void) state;
    leave_unread_on(receive, 1);
    r2_net_progress(&receive->stub->net);
    copy_comes(receive, 1, 1, 1u << 0);
    copy_comes(receive, 0, 2, 1u << 1);
    r2_net_progress(&receive->stub->net);
    assert_int_equal(receive->stub->grants, 1);
    assert_false(is_taken(receive, 1) || is_taken(receive, 2));
    leave_unread(receive, false);
    r2_net_progress(&receive->stub->net);
    assert_int_equal(receive->stub->grants, 0);
    assert_true(is_taken(receive, 1) && is_taken(receive, 2));
    r2_link_withdraw(receive->stub->link, 1);
    finish(receive);
}

/* The header comes after all: it has landed, and the lane stays. */
static void a_header_that_comes_late_spares_the_lane(void **state)
{
    receive_t *receive = start();
    const uint64_t connection = lane_of(receive, 0)->connect.rx_connection;

    (void) state;
    leave_unread(receive, true);
    copy_comes(receive, 1, 1, 1u << 0);
    assert_false(is_taken(receive, 1));
    put_comes(receive, 0, 1);
    assert_true(is_taken(receive, 1));
    leave_unread(receive, false);
    r2_net_progress(&receive->stub->net);
    assert_int_equal(lane_of(receive, 0)->connect.rx_connection, connection);
    assert_int_equal(receive->stub->grants, STUB_RAILS);
    r2_link_withdraw(receive->stub->link, 1);
    finish(receive);
}

/* The same after the last chunk, beside a receive whose message has no number yet. */
static void messages_are_told_apart(void **state)
{
    receive_t *other = start(), *receive;
    const uint64_t connection = lane_of(other, 0)->connect.rx_connection;

    (void) state;
    other->stub->link->rx.watermark = 0; /* numbers begin anywhere */
    receive = post(other->stub, 2, 0, NULL);
    assert_int_equal(other->stub->grants, 2 * STUB_RAILS);
    for (uint32_t chunk = 0; chunk + 1 < CHUNKS; ++chunk) {
        put_comes(receive, 1, chunk);
    }
    leave_unread(receive, true);
    copy_comes(receive, 1, CHUNKS - 1, 1u << 0);
    assert_int_equal(receive->done, 0);
    put_comes(receive, 0, CHUNKS - 1);
    r2_net_progress(&receive->stub->net);
    assert_int_equal(receive->done, 1);
    assert_int_equal(lane_of(receive, 0)->connect.rx_connection, connection);
    leave_unread(receive, false);
    r2_link_withdraw(receive->stub->link, 1);
    free(receive);
    finish(other);
}

/* Where the rail is never read to its end, a place waits for its bound and no longer. */
static void nobody_waits_for_long(void **state)
{
    receive_t *receive = start();
    const uint64_t connection = lane_of(receive, 0)->connect.rx_connection;
    const uint64_t bound_ns = 2 * receive->stub->params.failure_timeout_ms * MS;
    uint64_t start_ns;

    (void) state;
    leave_unread(receive, true);
    copy_comes(receive, 1, 1, 1u << 0);
    start_ns = receive->stub->time_ns;
    while (lane_of(receive, 0)->connect.rx_connection == connection) {
        assert_true(receive->stub->time_ns - start_ns <= bound_ns);
        assert_true(r2_net_deadline_ns(&receive->stub->net) <= start_ns + bound_ns);
        receive->stub->time_ns += MS;
        stub_speak(receive->stub, lane_of(receive, 1));
    }
    assert_true(receive->stub->time_ns - start_ns >= bound_ns);
    assert_true(is_taken(receive, 1));
    assert_int_equal(failed(receive), 0);
    r2_link_withdraw(receive->stub->link, 1);
    finish(receive);
}

/* A lane that is waited for later than another has its whole time. */
static void each_lane_has_its_own_time(void **state)
{
    receive_t *receive = start();
    const uint64_t connection = lane_of(receive, 1)->connect.rx_connection;
    const uint64_t bound_ns = 2 * receive->stub->params.failure_timeout_ms * MS;
    uint64_t start_ns;

    (void) state;
    leave_unread_on(receive, 0);
    copy_comes(receive, 1, 1, 1u << 0);
    for (start_ns = receive->stub->time_ns;
         receive->stub->time_ns - start_ns < bound_ns - 2 * MS;) {
        receive->stub->time_ns += MS;
        stub_speak(receive->stub, lane_of(receive, 1));
    }
    start_ns = receive->stub->time_ns;
    leave_unread_on(receive, 1);
    copy_comes(receive, 0, 2, 1u << 1);
    put_comes(receive, 0, 1);
    while (lane_of(receive, 1)->connect.rx_connection == connection) {
        assert_true(receive->stub->time_ns - start_ns <= bound_ns);
        receive->stub->time_ns += MS;
        stub_speak(receive->stub, lane_of(receive, 0));
    }
    assert_true(receive->stub->time_ns - start_ns >= bound_ns);
    assert_true(is_taken(receive, 2));
    r2_link_withdraw(receive->stub->link, 1);
    finish(receive);
}

/* A process that was away, and has not read all that came meanwhile, waits as long. */
static void who_was_away_waits_no_longer(void **state)
{
    receive_t *receive = start();
    const uint64_t connection = lane_of(receive, 0)->connect.rx_connection;
    const uint64_t bound_ns = 2 * receive->stub->params.failure_timeout_ms * MS;
    uint64_t start_ns;

    (void) state;
    receive->stub->time_ns += R2_NS_PER_S;
    copy_comes(receive, 1, 1, 1u << 0);
    assert_int_equal(lane_of(receive, 0)->connect.rx_connection, connection);
    start_ns = receive->stub->time_ns;
    while (lane_of(receive, 0)->connect.rx_connection == connection) {
        assert_true(receive->stub->time_ns - start_ns <= bound_ns);
        receive->stub->time_ns += MS;
        stub_speak(receive->stub, lane_of(receive, 1)); /* something in each pass */
    }
    assert_true(is_taken(receive, 1));
    r2_link_withdraw(receive->stub->link, 1);
    finish(receive);
}

/* A call is given up: lanes that were granted its memory are closed, and none has failed. */
static void sound_lanes_do_not_fail_with_a_call(void **state)
{
    receive_t *receive = start();
    const uint64_t connections[] = {lane_of(receive, 0)->connect.rx_connection,
                                    lane_of(receive, 1)->connect.rx_connection};

    (void) state;
    put_comes(receive, 0, 0);
    r2_link_withdraw(receive->stub->link, 1);
    assert_int_equal(receive->stub->grants, 0);
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        assert_int_not_equal(lane_of(receive, i)->connect.rx_connection, connections[i]);
        assert_int_equal(lane_of(receive, i)->connect.past, R2_PAST_RESTED);
    }
    assert_int_equal(failed(receive), 0);
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        stub_lane_up(receive->stub, i);
    }
    r2_net_progress(&receive->stub->net);
    assert_int_equal(failed(receive), 0);
    finish(receive);
}

/* One that has failed already is counted, though its memory is taken back first. */
static void failed_lanes_are_counted(void **state)
{
    receive_t *receive = start();
    r2_lane_t *lane = lane_of(receive, 0);

    (void) state;
    r2_lane_failed(lane->conn->worker->worker, lane->conn, R2_ERR_LANE_DOWN);
    r2_link_withdraw(receive->stub->link, 1);
    assert_int_equal(receive->stub->grants, 0);
    assert_int_equal(failed(receive), 1);
    finish(receive);
}

/*
 * The device of a lane that was closed so is dead. The peer calls for it, again and again, and
 * there is nothing to answer with: the lane has failed, and counts once.
 */
static void a_dead_device_is_a_failure(void **state)
{
    receive_t *receive = start();
    stub_net_t *stub = receive->stub;
    const uint64_t end_ns = stub->time_ns + R2_NS_PER_S;
    uint8_t offer[R2_HELLO_BYTES_MAX];

    (void) state;
    copy_comes(receive, 1, 1, 1u << 0);
    stub->no_device = true;
    r2_net_progress(&stub->net);
    assert_int_equal(lane_of(receive, 0)->connect.past, R2_PAST_RESTED);
    assert_int_equal(failed(receive), 0);
    for (uint32_t i = 0; stub->time_ns < end_ns; ++i) {
        stub->time_ns += 10 * MS;
        stub_speak(stub, lane_of(receive, 1));
        if (0 == i % 10) {
            stub_hello(stub, 0, offer, stub_offer(stub, 0, 1, offer));
        }
    }
    assert_int_equal(failed(receive), 1);
    stub->no_device = false;
    r2_link_withdraw(stub->link, 1);
    finish(receive);
}

/*
 * The device was away for one attempt. Then a call is taken by the peer's kernel, and the peer is
 * slow to answer: that is no failure.
 */
static void one_vain_attempt_is_none(void **state)
{
    receive_t *receive = start();
    stub_net_t *stub = receive->stub;
    const uint64_t end_ns = stub->time_ns + R2_NS_PER_S;

    (void) state;
    copy_comes(receive, 1, 1, 1u << 0);
    stub->no_device = true;
    r2_net_progress(&stub->net);
    assert_int_equal(lane_of(receive, 0)->connect.past, R2_PAST_RESTED);
    stub->no_device = false;
    while (stub->time_ns < end_ns) {
        stub->time_ns += 10 * MS;
        stub_speak(stub, lane_of(receive, 1));
    }
    assert_int_equal(lane_of(receive, 0)->state, R2_LANE_CONNECTING);
    assert_int_equal(failed(receive), 0);
    r2_link_withdraw(stub->link, 1);
    finish(receive);
}

/* Memory of a GPU is what is put to; what comes otherwise is its receive's to take, behind the
 * fence. */
static void memory_of_a_gpu_is_granted(void **state)
{
    static char nowhere[BYTES];
    const r2_tp_memory_t gpu = {.data = nowhere, .bytes = BYTES, .gpu_id = 7};
    receive_t *receive = start_with(&gpu, true);
    stub_net_t *stub = receive->stub;

    (void) state;
    assert_int_equal(stub->grants, STUB_RAILS);
    assert_ptr_equal(stub->granted, nowhere);
    assert_int_equal(stub->granted_gpu, 7);
    put_comes(receive, 0, 0);
    put_comes(receive, 1, 2);
    leave_unread(receive, true);
    copy_comes(receive, 1, 1, 1u << 0);
    assert_false(is_taken(receive, 1)); /* a write may still land in the GPU's memory */
    leave_unread(receive, false);
    r2_net_progress(&stub->net);
    assert_int_equal(stub->grants, STUB_RAILS - 1);
    assert_true(is_taken(receive, 1));
    put_comes(receive, 1, 3);
    assert_int_equal(receive->done, 1);
    assert_int_equal(receive->status, R2_OK);
    assert_int_equal(stub->counters.gpu_placed_bytes, 3 * CHUNK);
    assert_false(is_taken(receive, 0) || is_taken(receive, 2) || is_taken(receive, 3));
    assert_int_equal(stub->grants, 0);
    finish(receive);
}

static void lanes_without_memory_of_gpus_get_none(void **state)
{
    static char nowhere[BYTES];
    const r2_tp_memory_t gpu = {.data = nowhere, .bytes = BYTES, .gpu_id = 7};
    receive_t *receive = start_with(&gpu, false);

    (void) state;
    assert_int_equal(receive->stub->grants, 0);
    for (uint32_t chunk = 0; chunk < CHUNKS; ++chunk) {
        copy_comes(receive, chunk % STUB_RAILS, chunk, 0);
        assert_true(is_taken(receive, chunk));
    }
    assert_int_equal(receive->done, 1);
    finish(receive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_taken_behind_the_fence),
        cmocka_unit_test(the_last_copy_waits),
        cmocka_unit_test(all_lanes_are_waited_for),
        cmocka_unit_test(a_header_that_comes_late_spares_the_lane),
        cmocka_unit_test(messages_are_told_apart),
        cmocka_unit_test(nobody_waits_for_long),
        cmocka_unit_test(each_lane_has_its_own_time),
        cmocka_unit_test(who_was_away_waits_no_longer),
        cmocka_unit_test(sound_lanes_do_not_fail_with_a_call),
        cmocka_unit_test(failed_lanes_are_counted),
        cmocka_unit_test(a_dead_device_is_a_failure),
        cmocka_unit_test(one_vain_attempt_is_none),
        cmocka_unit_test(memory_of_a_gpu_is_granted),
        cmocka_unit_test(lanes_without_memory_of_gpus_get_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
