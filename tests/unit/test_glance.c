/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Glances: who waits for one peer looks at one worker, and at all of them often enough. Who was
 * away looks until nothing is left.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ctx/detector.h"
#include "stub_net.h"

#define BYTES 8

static void recv_done(void *arg, r2_status_t status)
{
    *(r2_status_t *) arg = status;
}

static void post_recv(stub_net_t *stub, uint32_t id, char *data, r2_status_t *status)
{
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = BYTES,
                                 .done = recv_done,
                                 .arg = status};

    *status = r2_link_recv(stub->link, &args);
}

/* Both lanes are up, descriptors tell of input, and all workers have just been looked at. */
static stub_net_t *waiting(char *data, r2_status_t *status)
{
    stub_net_t *stub = stub_net_create();

    stub_net_watch(stub);
    stub->mute = true; /* HELLO is found without them */
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        stub_lane_up(stub, i);
    }
    stub->mute = false;
    stub->time_ns += R2_NS_PER_S;
    r2_net_progress(&stub->net);
    stub->net.staying = stub->net.app_drives = stub->net.may_deliver = true;
    post_recv(stub, 0, data, status);
    assert_int_equal(*status, R2_IN_PROGRESS);
    stub->looks = 0;
    return stub;
}

/* Also where the descriptor says nothing: the worker itself is asked. */
static void only_what_is_awaited_is_looked_at(void **state)
{
    char data[BYTES];
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);

    (void) state;
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 1);
    assert_false(stub->net.progressed_all);
    stub_net_signal(stub, 0 == stub->link->turn.lane ? 1 : 0, true);
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 2);
    assert_int_equal(r2_net_progress(&stub->net), 0); /* a whole pass hears the others, too */
    assert_int_equal(stub->looks, 4);
    stub_net_destroy(stub);
}

/* Who does not wait, or waits for nobody, asks for what is readable; so does who waits where the
 * lane that is looked at has come in doubt. */
static void others_are_heard(void **state)
{
    char data[BYTES];
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);
    r2_lane_t *lane = &stub->link->lanes[stub->link->turn.lane];

    (void) state;
    stub->net.staying = false;
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 0);
    stub->net.staying = true;
    r2_lane_enter(lane, R2_LANE_DOUBT);
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 0);
    r2_lane_enter(lane, R2_LANE_UP);
    r2_link_unpost(stub->link, &(r2_tag_t){.comm_key = 1, .coll_seq = 1});
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 0);
    stub_net_destroy(stub);
}

/* What is striped over the rails may come by any of them. */
static void long_messages_are_looked_for_everywhere(void **state)
{
    static char long_data[5000];
    char data[BYTES];
    r2_status_t status, long_status = R2_IN_PROGRESS;
    stub_net_t *stub = waiting(data, &status);
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = 1},
                                 .data = long_data,
                                 .bytes = sizeof(long_data),
                                 .done = recv_done,
                                 .arg = &long_status};

    (void) state;
    assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 0); /* their descriptors tell */
    stub_net_signal(stub, 0 == stub->link->turn.lane ? 1 : 0, true);
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 1);
    r2_link_unpost(stub->link, &args.tag);
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 2);
    stub_net_signal(stub, 0 == stub->link->turn.lane ? 1 : 0, false);
    stub_net_destroy(stub);
}

static void all_are_looked_at_now_and_then(void **state)
{
    char data[BYTES];
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);

    (void) state;
    for (uint32_t i = 0; i < 49; ++i) {
        stub->time_ns += R2_NS_PER_US;
        (void) r2_net_read(&stub->net, true);
    }
    assert_int_equal(stub->looks, 49);
    stub->time_ns += R2_NS_PER_US;
    (void) r2_net_read(&stub->net, true);
    assert_int_equal(stub->looks, 49 + STUB_RAILS);
    assert_true(stub->net.progressed_all);
    stub_net_destroy(stub);
}

/* A packet that was read in a glance is worked off by the rest of the pass. */
static void what_is_awaited_arrives(void **state)
{
    char data[BYTES] = "";
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);
    const r2_lane_t *lane = &stub->link->lanes[stub->link->turn.lane];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                               .kind = R2_WIRE_DATA,
                               .flags = R2_WIRE_EAGER | R2_WIRE_ACK_NOW,
                               .lane_seq = lane->rx.next,
                               .connection = lane->connect.rx_connection,
                               .ack_next = lane->tx.seq,
                               .consumed = (uint32_t) stub->net.first_seq,
                               .length = BYTES,
                               .message = stub->net.first_seq,
                               .tag = {.comm_key = 1, .coll_seq = 1},
                               .message_bytes = BYTES,
                               .chunk_bytes = BYTES};

    (void) state;
    stub->header = &header;
    stub->header_bytes = sizeof(header);
    stub->data = "1234567";
    stub->data_bytes = BYTES;
    assert_int_equal(r2_net_read(&stub->net, true), 1);
    assert_int_equal(stub->looks, 1); /* nothing else is awaited */
    assert_int_equal(status, R2_OK);
    assert_string_equal(data, "1234567");
    assert_int_equal(stub->counters.tx_acks, 0);
    r2_net_progress_rest(&stub->net, 1, r2_net_is_brief(&stub->net));
    assert_int_equal(r2_net_progress(&stub->net), 0); /* it may wait for more that comes at once */
    assert_int_equal(stub->counters.tx_acks, 1);
    stub_net_destroy(stub);
}

/* Who comes back at once looks after lanes every 50 us; who goes away, or sleeps, before it
 * does. */
static void everything_is_looked_after_now_and_then(void **state)
{
    char data[BYTES];
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    lane->failed = true;
    lane->why = R2_ERR_LANE_DOWN;
    stub->time_ns += 49 * R2_NS_PER_US;
    r2_net_progress(&stub->net);
    assert_int_equal(lane->state, R2_LANE_UP);
    stub->time_ns += R2_NS_PER_US;
    r2_net_progress(&stub->net);
    assert_true(lane->state < R2_LANE_UP);
    lane = &stub->link->lanes[1];
    lane->failed = true;
    lane->why = R2_ERR_LANE_DOWN;
    r2_net_progress(&stub->net);
    assert_int_equal(lane->state, R2_LANE_UP);
    stub->net.staying = false;
    (void) r2_net_arm(&stub->net); /* before a process sleeps */
    assert_true(lane->state < R2_LANE_UP);
    stub_net_destroy(stub);
}

/* ---- who spins: an application that waits for nobody in particular */

/* As much came by rail 0, one after the other; sockets do not tell of input. */
static stub_net_t *spinning(uint32_t times)
{
    char data[BYTES];
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);

    r2_link_unpost(stub->link, &(r2_tag_t){.comm_key = 1, .coll_seq = 1});
    stub->net.staying = false;
    stub->net.spins = stub->mute = true;
    stub->net.busy_rail = NULL; /* HELLO came by them, too */
    stub->busy = stub->net.rails[0].workers->worker;
    for (uint32_t i = 0; i < times; ++i) {
        assert_int_equal(r2_net_read(&stub->net, false), 1);
    }
    stub->busy = NULL;
    stub->looks = 0;
    return stub;
}

static uint32_t glances(stub_net_t *stub, uint32_t passes)
{
    uint32_t count = 0;

    while (passes-- > 0) {
        count += r2_net_glances(&stub->net) ? 1 : 0;
    }
    return count;
}

static void where_all_came_from_is_looked_at_first(void **state)
{
    stub_net_t *stub = spinning(8);

    (void) state;
    assert_int_equal(glances(stub, 8), 6);
    stub->looks = 0;
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 1);
    assert_false(stub->net.progressed_all);
    assert_int_equal(r2_net_read(&stub->net, false), 0);
    assert_int_equal(stub->looks, 1 + STUB_RAILS);
    stub->time_ns += 50 * R2_NS_PER_US; /* all are looked at now and then */
    assert_int_equal(r2_net_read(&stub->net, true), 0);
    assert_int_equal(stub->looks, 1 + 2 * STUB_RAILS);
    assert_true(stub->net.progressed_all);
    stub_net_destroy(stub);
}

/* Who polls rarely looks after everything each time: the rest is done by nobody else. */
static void who_polls_rarely_does_not_glance(void **state)
{
    stub_net_t *stub = spinning(8);

    (void) state;
    (void) r2_net_progress(&stub->net);
    assert_int_equal(glances(stub, 8), 6);
    for (uint32_t i = 0; i < 8; ++i) {
        stub->time_ns += 50 * R2_NS_PER_US;
        assert_false(r2_net_glances(&stub->net));
        assert_int_equal(r2_net_read(&stub->net, false), 0); /* reads all, looks after nothing */
    }
    (void) r2_net_progress(&stub->net);
    assert_int_equal(glances(stub, 8), 6);
    stub_net_destroy(stub);
}

/* Not after less, nor after something came by another rail, nor where its descriptor tells. */
static void else_nobody_glances(void **state)
{
    stub_net_t *stub = spinning(7);

    (void) state;
    assert_int_equal(glances(stub, 8), 0);
    stub->busy = stub->net.rails[0].workers->worker;
    assert_int_equal(r2_net_read(&stub->net, false), 1);
    assert_int_equal(glances(stub, 8), 6);
    stub->mute = false;
    assert_int_equal(glances(stub, 8), 0);
    stub->mute = true;
    stub->busy = stub->net.rails[1].workers->worker;
    assert_int_equal(r2_net_read(&stub->net, false), 1);
    assert_int_equal(glances(stub, 8), 0);
    stub_net_destroy(stub);
}

/* Sockets of other rails tell again what comes, and need not be asked. */
static void others_cool(void **state)
{
    stub_net_t *stub = spinning(31);

    (void) state;
    assert_int_equal(stub->arms, 0);
    stub->busy = stub->net.rails[0].workers->worker;
    assert_int_equal(r2_net_read(&stub->net, false), 1);
    assert_int_equal(stub->arms, STUB_RAILS - 1);
    assert_int_equal(r2_net_read(&stub->net, false), 1);
    assert_int_equal(stub->arms, STUB_RAILS - 1); /* once */
    stub_net_destroy(stub);
}

static void who_spins_is_brief(void **state)
{
    stub_net_t *stub = spinning(0);

    (void) state;
    r2_net_progress(&stub->net); /* looks after everything, or not: it is not long ago */
    assert_true(r2_net_is_brief(&stub->net));
    stub->time_ns += 50 * R2_NS_PER_US;
    stub->net.now_ns = stub->time_ns;
    assert_false(r2_net_is_brief(&stub->net));
    stub->net.now_ns = stub->net.whole_ns;
    stub->net.spins = false;
    assert_false(r2_net_is_brief(&stub->net));
    stub_net_destroy(stub);
}

/* What links know of it, and so the detector, which takes nothing else from this copy of them. */
static bool catches_up(stub_net_t *stub)
{
    r2_core_t *core = calloc(1, sizeof(*core));
    r2_ctx_health_t health = {.core = core};
    r2_health_ports_t ports;
    const bool does = r2_net_catches_up(&stub->net);

    assert_non_null(core);
    core->net = stub->net;
    r2_ctx_health_ports(&health, &ports);
    assert_non_null(ports.reads_on);
    assert_int_equal(ports.reads_on(ports.arg), does);
    free(core);
    return does;
}

/* Once it has read all, what does not come by rails has some more time. */
static void who_was_away_catches_up(void **state)
{
    char data[BYTES];
    r2_status_t status;
    stub_net_t *stub = waiting(data, &status);
    const uint64_t silence_ns = r2_net_own_silence_ns(&stub->net);

    (void) state;
    assert_false(catches_up(stub));
    stub->time_ns += R2_NS_PER_S;
    stub->busy = stub->link->lanes[0].conn->worker->worker;
    for (int i = 0; i < 8; ++i) {
        assert_true(r2_net_progress(&stub->net) > 0);
        assert_true(catches_up(stub));
        stub->time_ns += silence_ns / 2;
    }
    stub->busy = NULL;
    r2_net_progress(&stub->net);
    assert_false(catches_up(stub));
    stub->time_ns += R2_NS_PER_S;
    r2_net_progress(&stub->net);
    assert_true(catches_up(stub));
    stub->time_ns += silence_ns;
    r2_net_progress(&stub->net);
    assert_true(catches_up(stub));
    stub->time_ns += 1;
    r2_net_progress(&stub->net);
    assert_false(catches_up(stub));
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_awaited_is_looked_at),
        cmocka_unit_test(others_are_heard),
        cmocka_unit_test(long_messages_are_looked_for_everywhere),
        cmocka_unit_test(all_are_looked_at_now_and_then),
        cmocka_unit_test(what_is_awaited_arrives),
        cmocka_unit_test(everything_is_looked_after_now_and_then),
        cmocka_unit_test(where_all_came_from_is_looked_at_first),
        cmocka_unit_test(who_polls_rarely_does_not_glance),
        cmocka_unit_test(else_nobody_glances),
        cmocka_unit_test(others_cool),
        cmocka_unit_test(who_spins_is_brief),
        cmocka_unit_test(who_was_away_catches_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
