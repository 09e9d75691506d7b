/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link: a lane is not given up for the silence of a peer that may be stopped, nor for what it
 * said long ago, nor before what lies in our own buffers was read.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/tx.h"
#include "stub_net.h"

#define TIMEOUT_MS 50

/* The peer acknowledges on its sound lane what it had `ago_ns` ago. */
static void speak(stub_net_t *stub, uint64_t ago_ns)
{
    const r2_lane_t *good = &stub->link->lanes[1];
    const r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                     .kind = R2_WIRE_ACK,
                                     .connection = good->connect.rx_connection,
                                     .ack_next = good->tx.seq,
                                     .consumed = (uint32_t) stub->net.first_seq,
                                     .unread_at = r2_unread_stamp(stub->time_ns - ago_ns)};

    stub_packet(stub, &header, sizeof(header), NULL, 0);
}

/* A link with two lanes, of which one is suspected of something that was sent on it. */
static stub_net_t *stub_with_a_suspect(void)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *bad = &stub->link->lanes[0];

    stub->params.failure_timeout_ms = TIMEOUT_MS;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    speak(stub, 0);
    assert_true(r2_lane_ping(bad));
    r2_lane_enter(bad, R2_LANE_SUSPECT);
    r2_tx_hedge(bad);
    r2_link_activate(stub->link);
    return stub;
}

typedef enum t_words { T_NONE, T_OLD, T_NEW } t_words_t;

/* However long it lasts: only a peer that runs shows that a lane of its does not. */
static void who_may_be_stopped_keeps_its_lanes(void **state)
{
    (void) state;
    for (t_words_t words = T_NONE; words <= T_NEW; ++words) {
        stub_net_t *stub = stub_with_a_suspect();
        const r2_lane_t *good = &stub->link->lanes[1];
        const uint64_t begin_ns = stub->time_ns,
                       end_ns = begin_ns + 100 * TIMEOUT_MS * R2_NS_PER_MS;

        while (stub->time_ns < end_ns) {
            stub->time_ns += TIMEOUT_MS * R2_NS_PER_MS / 5;
            r2_net_progress(&stub->net);
            if (T_NONE != words && NULL != good->tx.in_flight) {
                speak(stub, T_OLD == words ? stub->time_ns - begin_ns : 0);
            }
        }
        assert_int_equal(stub->counters.lanes_failed, T_NEW == words ? 1 : 0);
        r2_link_withdraw(stub->link, 1);
        stub_net_destroy(stub);
    }
}

/* Somebody says that a rail is dead: a lane whose connection has just ended may have been closed by
 * the peer, which the next pass finds out. */
static void news_do_not_end_what_was_closed(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    lane->failed = true;
    r2_net_peer_rail(&stub->net, 1, lane->remote_idx, true, stub->time_ns + R2_NS_PER_S);
    assert_int_equal(lane->state, R2_LANE_UP);
    assert_int_equal(lane->timing.barred_ns, stub->time_ns + R2_NS_PER_S);
    assert_int_equal(stub->counters.lanes_failed, 0);
    assert_true(stub->link->is_active);
    stub_net_destroy(stub);
}

/* A process that was away reads before it ends a lane whose connection has ended: that the peer has
 * closed it may lie there. */
static void who_was_away_reads_first(void **state)
{
    (void) state;
    for (int away = 0; away < 2; ++away) {
        stub_net_t *stub = stub_net_create();
        const r2_lane_t *lane = &stub->link->lanes[0];

        stub_lane_up(stub, 0);
        stub_lane_up(stub, 1);
        r2_net_progress(&stub->net);
        stub->time_ns += (uint64_t) away * 100 * R2_NS_PER_S;
        r2_lane_failed(lane->conn->worker->worker, lane->conn, R2_ERR_LANE_DOWN);
        r2_link_activate(stub->link);
        r2_net_progress_links(&stub->net); /* before anything was read */
        assert_int_equal(R2_LANE_UP == lane->state, 1 == away);
        r2_net_progress(&stub->net);
        r2_net_progress(&stub->net);
        assert_int_not_equal(lane->state, R2_LANE_UP);
        stub_net_destroy(stub);
    }
}

/* A peer asks a second time after what lies unread here. That something came on the lane in the
 * very pass in which it asked first shows that it moves. */
static void what_came_with_the_question_counts(void **state)
{
    (void) state;
    for (int late = 0; late < 2; ++late) {
        stub_net_t *stub = stub_net_create();
        r2_lane_t *lane = &stub->link->lanes[0];

        stub_lane_up(stub, 0);
        stub->net.now_ns = stub->time_ns;
        lane->conn->worker->unread_ns = lane->conn->worker->rare_ns = 0;
        lane->rx.excused_ns = stub->time_ns;
        lane->rx.excused_seq = lane->rx.next;
        lane->rx.last_ns = stub->time_ns - (uint64_t) late;
        assert_int_equal(r2_unread_answer(lane, lane->rx.next), 0 == late);
        stub_net_destroy(stub);
    }
}

/* What the transport kept for long was not on its way meanwhile: what the peer said then proves
 * nothing of it. */
static void what_waits_is_not_on_its_way(void **state)
{
    stub_net_t *stub = stub_net_create();
    const r2_lane_t *lane = &stub->link->lanes[1];
    uint32_t given;

    (void) state;
    stub_lane_up(stub, 1);
    speak(stub, 0);
    stub->mode = STUB_LATER;
    assert_true(r2_lane_ping(&stub->link->lanes[1]));
    assert_non_null(lane->tx.in_flight);
    given = lane->tx.in_flight->told;
    stub->time_ns += R2_NS_PER_S;
    stub->complete = true;
    r2_net_progress(&stub->net);
    assert_non_null(lane->tx.in_flight);
    assert_int_equal(lane->tx.in_flight->told, r2_unread_clock(stub->link));
    assert_int_not_equal(lane->tx.in_flight->told, given);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_be_stopped_keeps_its_lanes),
        cmocka_unit_test(news_do_not_end_what_was_closed),
        cmocka_unit_test(who_was_away_reads_first),
        cmocka_unit_test(what_came_with_the_question_counts),
        cmocka_unit_test(what_waits_is_not_on_its_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
