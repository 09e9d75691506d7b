/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How well lanes lead to the peer: grades of lanes and of links.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/state.h"
#include "link/tx.h"

typedef struct row {
    r2_lane_state_t state;
    bool failed, unreachable;
    r2_lane_grade_t grade;
    bool may_send;
} row_t;

static const row_t rows[] = {
    {R2_LANE_DOWN, false, false, R2_GRADE_NONE, false},
    {R2_LANE_DOWN, false, true, R2_GRADE_UNREACHABLE, false},
    {R2_LANE_RESTING, false, false, R2_GRADE_NONE, false},
    {R2_LANE_RESTING, false, true, R2_GRADE_UNREACHABLE, false},
    {R2_LANE_CONNECTING, false, false, R2_GRADE_OPENING, false},
    {R2_LANE_CONNECTING, false, true, R2_GRADE_UNREACHABLE, false},
    {R2_LANE_WIRING, false, false, R2_GRADE_OPENING, false},
    {R2_LANE_WIRING, false, true, R2_GRADE_UNREACHABLE, false},
    {R2_LANE_WIRING, true, false, R2_GRADE_FAILED, false},
    {R2_LANE_SUSPECT, false, false, R2_GRADE_SUSPECT, false},
    {R2_LANE_SUSPECT, false, true, R2_GRADE_UNREACHABLE, false},
    {R2_LANE_SUSPECT, true, false, R2_GRADE_FAILED, false},
    {R2_LANE_UP, false, false, R2_GRADE_SOUND, true},
    {R2_LANE_UP, false, true, R2_GRADE_UNREACHABLE, true}, /* where no other is sound */
    {R2_LANE_UP, true, false, R2_GRADE_FAILED, false},
    {R2_LANE_DOUBT, false, false, R2_GRADE_DOUBT, true},
    {R2_LANE_DOUBT, false, true, R2_GRADE_UNREACHABLE, true},
    {R2_LANE_DOUBT, true, true, R2_GRADE_UNREACHABLE, false},
};

static void lane_is_as_good_as_its_worst_sign(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const row_t *row = &rows[i];
        const r2_lane_t lane = {
            .state = row->state, .failed = row->failed, .unreachable = row->unreachable};

        assert_int_equal(r2_lane_grade(&lane), row->grade);
        assert_int_equal(r2_lane_may_send(&lane), row->may_send);
    }
}

/* A state has a name of its own; silence and answers lead to states in which they lead nowhere. */
static void table_of_states_is_whole(void **state)
{
    (void) state;
    for (unsigned i = 0; i < sizeof(r2_lane_states) / sizeof(r2_lane_states[0]); ++i) {
        const r2_lane_state_info_t *info = &r2_lane_states[i];

        assert_non_null(info->name);
        assert_non_null(info->timer);
        assert_non_null(info->deadline_ns);
        assert_true(info->phase <= i);
        assert_int_equal(r2_lane_states[info->phase].phase, info->phase);
        assert_int_equal(r2_lane_states[info->on_silence].on_silence, info->on_silence);
        assert_int_equal(r2_lane_states[info->on_ack].on_ack, info->on_ack);
        assert_int_equal(info->may_send, info->grade >= R2_GRADE_DOUBT);
    }
}

/* An idle lane is young when it rests: its time goes on. One that is suspect starts anew. */
static void state_lasts_within_a_phase(void **state)
{
    static const struct {
        r2_lane_state_t from, to;
        bool anew;
    } steps[] = {
        {R2_LANE_DOWN, R2_LANE_RESTING, false},   {R2_LANE_RESTING, R2_LANE_DOWN, false},
        {R2_LANE_DOWN, R2_LANE_CONNECTING, true}, {R2_LANE_CONNECTING, R2_LANE_RESTING, true},
        {R2_LANE_WIRING, R2_LANE_UP, true},       {R2_LANE_UP, R2_LANE_DOUBT, false},
        {R2_LANE_DOUBT, R2_LANE_UP, false},       {R2_LANE_DOUBT, R2_LANE_SUSPECT, true},
        {R2_LANE_SUSPECT, R2_LANE_UP, true},      {R2_LANE_SUSPECT, R2_LANE_DOUBT, true},
    };
    r2_net_t *net = calloc(1, sizeof(*net));
    r2_link_t *link = calloc(1, sizeof(*link) + sizeof(link->lanes[0]));
    const r2_log_t log = {.level = R2_LOG_ERROR};
    r2_counters_t counters = {0};
    r2_rail_t rail = {.idx = 0};

    (void) state;
    assert_non_null(net);
    assert_non_null(link);
    net->log = &log;
    net->counters = &counters;
    net->now_ns = 7;
    link->net = net;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        r2_lane_t *lane = &link->lanes[0];

        *lane = (r2_lane_t){.link = link, .rail = &rail, .state = steps[i].from, .state_ns = 3};
        r2_lane_enter(lane, steps[i].to);
        assert_int_equal(lane->state, steps[i].to);
        assert_int_equal(lane->state_ns, steps[i].anew ? 7 : 3);
    }
    free(link);
    free(net);
}

static void asked_for_its_end_is_ending(void **state)
{
    const r2_lane_t stays = {0}, asked = {.connect.closing_ns = 1},
                    told = {.connect.closing = R2_CLOSING_HEARD};

    (void) state;
    assert_false(r2_lane_is_ending(&stays));
    assert_true(r2_lane_is_ending(&asked));
    assert_true(r2_lane_is_ending(&told));
}

/* A suspect lane, one in doubt, one through a third host that is sound. */
static void link_is_as_good_as_its_best_lane(void **state)
{
    r2_link_t *link = calloc(1, sizeof(*link) + 3 * sizeof(link->lanes[0]));
    r2_rail_t rail = {.idx = 0}, relay = {.idx = R2_RELAY_RAIL};

    (void) state;
    assert_non_null(link);
    assert_int_equal(r2_link_grade(link), R2_GRADE_NONE);
    link->lane_count = 3;
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        link->lanes[i].link = link;
        link->lanes[i].rail = i < 2 ? &rail : &relay;
    }
    assert_int_equal(r2_link_grade(link), R2_GRADE_NONE);
    link->lanes[0].state = R2_LANE_SUSPECT;
    assert_true(r2_link_has_lane(link));
    link->lanes[1].state = R2_LANE_DOUBT;
    link->lanes[2].state = R2_LANE_UP;
    assert_int_equal(r2_link_grade(link), R2_GRADE_SOUND);
    assert_int_equal(r2_link_direct_grade(link, NULL), R2_GRADE_DOUBT);
    assert_int_equal(r2_link_direct_grade(link, &link->lanes[1]), R2_GRADE_SUSPECT);
    assert_int_equal(r2_link_direct_grade(link, &link->lanes[2]), R2_GRADE_DOUBT);
    link->lanes[0].unreachable = link->lanes[1].unreachable = true;
    assert_true(r2_link_has_lane(link));
    link->lanes[2].failed = true;
    assert_true(r2_link_has_lane(link)); /* until it is fenced */
    assert_int_equal(r2_link_grade(link), R2_GRADE_FAILED);
    assert_int_equal(r2_link_direct_grade(link, NULL), R2_GRADE_UNREACHABLE);
    link->lanes[2].state = R2_LANE_DOWN;
    link->lanes[2].failed = false;
    assert_false(r2_link_has_lane(link));
    free(link);
}

/** Two lanes to a peer, with a packet in flight on each. */
typedef struct two_lanes {
    r2_params_t params;
    r2_net_t net;
    r2_packet_t packets[2];
    r2_rail_t rail;
    r2_link_t link; /* and its lanes: last */
} two_lanes_t;

static two_lanes_t *two_lanes_begin(void)
{
    two_lanes_t *two = calloc(1, sizeof(*two) + 2 * sizeof(r2_lane_t));

    assert_non_null(two);
    two->params = (r2_params_t){.failure_timeout_ms = 50,
                                .queue_delay_us = 2000,
                                .window_min_bytes = 1 << 16,
                                .window_max_bytes = 1 << 20};
    two->net.params = &two->params;
    two->net.now_ns = R2_NS_PER_S;
    two->link.net = &two->net;
    two->link.lane_count = 2;
    two->link.path.last_rx_ns = two->net.now_ns;
    for (int i = 0; i < 2; ++i) {
        two->link.lanes[i].link = &two->link;
        two->link.lanes[i].rail = &two->rail;
        two->link.lanes[i].timing.srtt_ns = R2_NS_PER_MS;
        two->link.lanes[i].state = R2_LANE_UP;
        two->packets[i].sent_ns = two->net.now_ns;
        two->link.lanes[i].tx.in_flight = &two->packets[i];
    }
    return two;
}

static void two_lanes_hear(two_lanes_t *two, uint64_t after_ms)
{
    two->net.now_ns += after_ms * R2_NS_PER_MS;
    r2_rtt_heard(&two->link);
    two->link.path.last_rx_ns = two->net.now_ns;
}

/** A packet that its NIC sends again is late on its own lane: timeouts of the link's lanes stay. */
static void late_lane_among_others_lengthens_nothing(void **state)
{
    two_lanes_t *two = two_lanes_begin();

    (void) state;
    for (int i = 0; i < 35; ++i) {
        two_lanes_hear(two, 2); /* the other lane */
    }
    r2_rtt_sample(&two->link.lanes[0], 70 * R2_NS_PER_MS, 1000);
    assert_int_equal(two->link.path.peak_delay_ns, 2 * R2_NS_PER_MS);
    assert_int_equal(r2_lane_timeout_ns(&two->link.lanes[1]), 50 * R2_NS_PER_MS);
    free(two);
}

/** A peer that pauses is late on all of them, and may be again. */
static void pause_of_the_peer_lengthens_timeouts(void **state)
{
    two_lanes_t *two = two_lanes_begin();

    (void) state;
    two_lanes_hear(two, 70);
    r2_rtt_sample(&two->link.lanes[0], 70 * R2_NS_PER_MS, 1000);
    assert_int_equal(two->link.path.peak_delay_ns, 69 * R2_NS_PER_MS);
    assert_int_equal(r2_lane_timeout_ns(&two->link.lanes[1]), (1 + 2 * 69) * R2_NS_PER_MS);
    free(two);
}

/** What left after a pause, while the peer speaks, need not wait for twice as long: until it is
 * silent again for half as long as the pause was. */
static void who_is_heard_all_along_does_not_pause(void **state)
{
    two_lanes_t *two = two_lanes_begin();
    const r2_lane_t *lane = &two->link.lanes[1];

    (void) state;
    two_lanes_hear(two, 70);
    r2_rtt_sample(&two->link.lanes[0], 70 * R2_NS_PER_MS, 1000);
    two_lanes_hear(two, 1);
    two->packets[1].sent_ns = two->net.now_ns;
    two->link.lanes[0].tx.in_flight = NULL; /* it has all that was sent there */
    for (int i = 0; i < 10; ++i) {
        assert_int_equal(r2_lane_timeout_ns(lane), (1 + 69) * R2_NS_PER_MS);
        two_lanes_hear(two, 4);
    }
    two->net.now_ns += 35 * R2_NS_PER_MS;
    assert_int_equal(r2_lane_timeout_ns(lane), (1 + 2 * 69) * R2_NS_PER_MS);
    two_lanes_hear(two, 0); /* that was a pause */
    two_lanes_hear(two, 1);
    assert_int_equal(r2_lane_timeout_ns(lane), (1 + 2 * 69) * R2_NS_PER_MS);
    two->packets[1].sent_ns = two->net.now_ns; /* it did not delay what leaves now */
    assert_int_equal(r2_lane_timeout_ns(lane), (1 + 69) * R2_NS_PER_MS);
    free(two);
}

/** Nothing was in flight: the peer had nothing to say. */
static void idle_link_makes_no_pause(void **state)
{
    two_lanes_t *two = two_lanes_begin();

    (void) state;
    two->link.lanes[0].tx.in_flight = two->link.lanes[1].tx.in_flight = NULL;
    two->net.now_ns += 3 * R2_NS_PER_S;
    two->packets[0].sent_ns = two->net.now_ns;
    two->link.lanes[0].tx.in_flight = &two->packets[0];
    two_lanes_hear(two, 4);
    assert_int_equal(two->link.path.pause_ns, 4 * R2_NS_PER_MS);
    free(two);
}

/** A lane that is busy for long has its queue in each sample: that is no way without one. */
static void least_round_trip_outlives_a_busy_time(void **state)
{
    two_lanes_t *two = two_lanes_begin();
    r2_lane_t *lane = &two->link.lanes[0];

    (void) state;
    lane->state_ns = two->net.now_ns - 100 * R2_NS_PER_US;
    r2_rtt_wired(lane); /* HELLO took 100 us; the first packets have a queue before them */
    r2_rtt_sample(lane, 9 * R2_NS_PER_MS, 1000);
    assert_int_equal(lane->timing.min_rtt_ns, 100 * R2_NS_PER_US);
    for (int i = 0; i < 15; ++i) {
        two->net.now_ns += R2_NS_PER_S;
        r2_rtt_sample(lane, (5 == i ? 3 : 9) * R2_NS_PER_MS, 1000);
    }
    /* the least one since, rounded up, and not the newest */
    assert_in_range(lane->timing.min_rtt_ns, 3 * R2_NS_PER_MS, 3 * R2_NS_PER_MS + R2_NS_PER_US);
    two->net.now_ns +=
        11 * R2_NS_PER_S; /* the only one for long: no delay, so it shrinks nothing */
    lane->tx.window_bytes = 1u << 20;
    lane->timing.srtt_ns = R2_NS_PER_MS;
    r2_rtt_sample(lane, 5 * R2_NS_PER_MS + 1, 1000);
    assert_int_equal(lane->timing.min_rtt_ns, 5 * R2_NS_PER_MS + 1);
    assert_int_equal(lane->tx.window_bytes, 1u << 20);
    free(two);
}

/** A dead lane has its packets until it is fenced; meanwhile the peer has nothing to say, too. */
static void dead_lane_makes_no_pause(void **state)
{
    two_lanes_t *two = two_lanes_begin();

    (void) state;
    two->link.lanes[0].state = R2_LANE_SUSPECT;
    two->link.lanes[1].tx.in_flight = NULL;
    two->net.now_ns += 300 * R2_NS_PER_MS;
    two->packets[1].sent_ns = two->net.now_ns;
    two->link.lanes[1].tx.in_flight = &two->packets[1];
    two_lanes_hear(two, 4);
    assert_int_equal(two->link.path.pause_ns, 4 * R2_NS_PER_MS);
    r2_rtt_sample(&two->link.lanes[1], 60 * R2_NS_PER_MS, 1000);
    assert_int_equal(r2_lane_timeout_ns(&two->link.lanes[0]), 50 * R2_NS_PER_MS);
    two->link.lanes[1].state = R2_LANE_DOUBT; /* what all owe is a pause, of whatever length */
    two->packets[1].sent_ns = two->net.now_ns;
    two_lanes_hear(two, 70);
    assert_int_equal(two->link.path.pause_ns, 70 * R2_NS_PER_MS);
    free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_round_trip_outlives_a_busy_time),
        cmocka_unit_test(late_lane_among_others_lengthens_nothing),
        cmocka_unit_test(dead_lane_makes_no_pause),
        cmocka_unit_test(pause_of_the_peer_lengthens_timeouts),
        cmocka_unit_test(who_is_heard_all_along_does_not_pause),
        cmocka_unit_test(idle_link_makes_no_pause),
        cmocka_unit_test(lane_is_as_good_as_its_worst_sign),
        cmocka_unit_test(table_of_states_is_whole),
        cmocka_unit_test(state_lasts_within_a_phase),
        cmocka_unit_test(asked_for_its_end_is_ending),
        cmocka_unit_test(link_is_as_good_as_its_best_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
