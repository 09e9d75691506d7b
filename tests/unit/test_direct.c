/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What NICs read and write by themselves, with a peer and a transport that the test plays: when it
 * is over, and what is lost with a lane.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/direct.h"
#include "link/relay.h"
#include "stub_net.h"

#define BYTES  (1u << 20)
#define REMOTE (uint64_t) 0x100000
#define DOMAIN (uint64_t) 77
#define MS     R2_NS_PER_MS

/** One of them. */
typedef struct job {
    stub_net_t *stub;
    char *local;
    uint32_t done, lost;
    r2_status_t status;
    uint64_t lost_bytes, connection; /* of what was lost last */
    bool no_memory;                  /* to note that something was lost */
} job_t;

static void on_done(void *arg, r2_status_t status)
{
    job_t *job = arg;

    ++job->done;
    job->status = status;
}

static bool on_lost(void *arg, uint64_t offset, uint64_t bytes, uint64_t connection)
{
    job_t *job = arg;

    if (job->no_memory) {
        return false;
    }
    assert_true(offset + bytes <= BYTES);
    ++job->lost;
    job->lost_bytes += bytes;
    job->connection = connection;
    return true;
}

static r2_lane_t *lane_of(const job_t *job, uint32_t lane)
{
    return &job->stub->link->lanes[lane];
}

/* Lanes are up, whose other ends are of this domain. */
static void open_lanes(job_t *job, uint64_t domain)
{
    memset(job, 0, sizeof(*job));
    job->local = calloc(1, BYTES);
    assert_non_null(job->local);
    job->stub = stub_net_create();
    job->stub->params.direct = 1;
    job->stub->peer_domain = domain;
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        stub_lane_up(job->stub, i);
        lane_of(job, i)->is_rdma = true;
    }
    job->stub->moves_wait = true;
}

static r2_status_t start(job_t *job, bool writes, uint64_t bytes)
{
    const r2_tp_key_t key = {.domain = DOMAIN, .bytes = 8};
    const r2_link_direct_t args = {.writes = writes,
                                   .local = job->local,
                                   .remote = REMOTE,
                                   .bytes = bytes,
                                   .keys = &key,
                                   .key_count = 1,
                                   .lost = on_lost,
                                   .done = on_done,
                                   .arg = job};

    return r2_link_direct(job->stub->link, &args);
}

static void begin(job_t *job, bool writes, uint64_t bytes)
{
    assert_int_equal(start(job, writes, bytes), R2_IN_PROGRESS);
}

/* The NICs are done with what they have. */
static void complete(job_t *job, r2_status_t status)
{
    job->stub->complete = true;
    job->stub->complete_as = status;
    r2_net_progress(&job->stub->net);
    job->stub->complete_as = R2_OK;
}

/* Until it is over. */
static void complete_all(job_t *job)
{
    for (uint32_t i = 0; 0 == job->done && i < 100; ++i) {
        complete(job, R2_OK);
    }
    assert_int_equal(job->done, 1);
}

static void finish(job_t *job)
{
    stub_net_destroy(job->stub);
    free(job->local);
}

static void acknowledge(job_t *job)
{
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        if (NULL != lane_of(job, i)->conn) {
            stub_acknowledge(job->stub, lane_of(job, i));
        }
    }
}

/* ---- each test has lanes that are up, to the device that the keys are of ---- */

static int set_up(void **state)
{
    static job_t job;

    open_lanes(&job, DOMAIN);
    *state = &job;
    return 0;
}

static int tear_down(void **state)
{
    finish(*state);
    return 0;
}

/* Lanes have two pieces each at a time; all of it is read, and nothing but that is waited for. */
static void reads_are_over_with_their_completion(void **state)
{
    job_t *job = *state;

    begin(job, false, BYTES);
    assert_int_equal(job->stub->send_count, STUB_RAILS * R2_DIRECT_PIECES);
    complete_all(job);
    assert_int_equal(job->status, R2_OK);
    assert_int_equal(job->lost, 0);
    assert_int_equal(job->stub->counters.direct_read_bytes, BYTES);
    assert_true(job->stub->moved_to >= REMOTE && job->stub->moved_to < REMOTE + BYTES);
}

/* That the peer's NIC has acknowledged a write is not enough: its process has to. */
static void writes_are_confirmed(void **state)
{
    job_t *job = *state;

    begin(job, true, 20000);
    assert_int_equal(job->stub->send_count, 1);
    complete(job, R2_OK);
    assert_int_equal(job->done, 0);
    stub_speak(job->stub, lane_of(job, 0)); /* acknowledges what went before */
    stub_speak(job->stub, lane_of(job, 1));
    assert_int_equal(job->done, 0);
    acknowledge(job);
    assert_int_equal(job->done, 1);
    assert_int_equal(job->lost, 0);
    assert_int_equal(job->stub->counters.direct_written_bytes, 20000);
}

/* The acknowledgement may come before our NIC says so. */
static void the_confirmation_may_come_first(void **state)
{
    job_t *job = *state;

    begin(job, true, 20000);
    acknowledge(job);
    assert_int_equal(job->done, 0); /* our memory is being read */
    complete(job, R2_OK);
    assert_int_equal(job->done, 1);
    assert_int_equal(job->lost, 0);
}

/* @return the lane that has the only piece. */
static r2_lane_t *busy_lane(const job_t *job)
{
    return 0 != lane_of(job, 0)->conn->direct_bytes ? lane_of(job, 0) : lane_of(job, 1);
}

/* A write that is done and not confirmed is lost with its lane, and it is said which that was. */
static void unsure_writes_are_lost_with_their_lane(void **state)
{
    job_t *job = *state;
    uint64_t connection;
    r2_lane_t *lane;

    begin(job, true, 20000);
    lane = busy_lane(job);
    connection = lane->connect.tx_connection;
    complete(job, R2_OK);
    r2_lane_fence(lane, R2_ERR_LANE_DOWN, true);
    r2_net_progress(&job->stub->net);
    assert_int_equal(job->lost, 1);
    assert_int_equal(job->lost_bytes, 20000);
    assert_int_equal(job->connection, connection);
    assert_int_equal(job->done, 1);
    assert_int_equal(job->stub->counters.direct_lost_bytes, 20000);
}

/* What has failed may go on writing to our memory until the queue pair is gone. */
static void failed_reads_wait_for_the_end_of_their_lane(void **state)
{
    job_t *job = *state;
    r2_lane_t *lane;

    begin(job, false, 20000);
    lane = busy_lane(job);
    job->stub->complete = true;
    job->stub->complete_as = R2_ERR_LANE_DOWN;
    r2_net_read(&job->stub->net, false); /* the completion, and not yet the pass that acts */
    assert_true(lane->failed);
    r2_direct_progress(job->stub->link);
    assert_int_equal(job->lost, 0);
    r2_net_progress(&job->stub->net);
    r2_net_progress(&job->stub->net);
    assert_null(lane->conn);
    assert_int_equal(job->lost, 1);
    assert_int_equal(job->done, 1);
}

/* One lane fails in the middle; the other one has the rest. */
static void other_lanes_have_the_rest(void **state)
{
    job_t *job = *state;

    begin(job, false, BYTES);
    r2_lane_fence(lane_of(job, 0), R2_ERR_LANE_DOWN, true);
    complete_all(job);
    assert_int_equal(job->lost, R2_DIRECT_PIECES);
    assert_int_equal(job->stub->counters.direct_read_bytes, BYTES);
    assert_int_equal(job->lost_bytes, job->stub->counters.direct_lost_bytes);
}

/* None is left: what was not begun is lost, too, by no connection. */
static void without_lanes_all_is_lost(void **state)
{
    job_t *job = *state;

    begin(job, true, BYTES);
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        r2_lane_fence(lane_of(job, i), R2_ERR_LANE_DOWN, true);
    }
    r2_net_progress(&job->stub->net);
    assert_int_equal(job->done, 1);
    assert_int_equal(job->status, R2_OK);
    assert_int_equal(job->lost_bytes, BYTES);
    assert_int_equal(job->connection, 0);
}

/* A key of what the peer had opened before, or of a process that it was, and no key. */
static void stale_keys_are_refused(void **state)
{
    const uint64_t domains[] = {DOMAIN + 1, 0};

    (void) state;
    for (size_t i = 0; i < 2; ++i) {
        job_t job;

        open_lanes(&job, domains[i]);
        assert_int_equal(start(&job, false, BYTES), R2_ERR_UNSUPPORTED);
        assert_int_equal(job.stub->send_count, 0);
        finish(&job);
    }
}

/* Who asks for that has the connection closed when the call returns, and no other. */
static void a_fence_closes_one_connection(void **state)
{
    job_t *job = *state;
    uint64_t first, second;

    first = lane_of(job, 0)->connect.rx_connection;
    second = lane_of(job, 1)->connect.rx_connection;
    r2_link_fence(job->stub->link, first);
    assert_null(lane_of(job, 0)->conn);
    assert_int_equal(lane_of(job, 1)->connect.rx_connection, second);
    r2_link_fence(job->stub->link, first); /* it is */
    assert_int_equal(job->stub->counters.direct_fences, 1);
    assert_int_equal(job->stub->counters.lanes_failed, 0);
}

/* A lane on which only NICs work is asked, so that it comes in doubt when it is silent: from there
 * on it is as any lane. */
static void silent_lanes_come_in_doubt(void **state)
{
    job_t *job = *state;
    uint64_t start_ns;
    r2_lane_t *lane;

    begin(job, false, 20000);
    lane = busy_lane(job);
    start_ns = job->stub->time_ns;
    while (r2_lane_is_sound(lane)) {
        assert_true(job->stub->time_ns - start_ns < R2_NS_PER_S);
        job->stub->time_ns += 5 * MS;
        stub_speak(job->stub, lane_of(job, lane == lane_of(job, 0) ? 1 : 0));
    }
    assert_int_equal(job->lost + job->done, 0); /* it may only be slow */
    r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
    r2_net_progress(&job->stub->net);
    assert_int_equal(job->lost, 1);
}

/* Both lanes have written, and one is silent: the other asks for what it writes as often as it has
 * to, and the silent one does not ask again and again. */
static void silent_lanes_keep_no_other_from_asking(void **state)
{
    job_t *job = *state;
    r2_lane_t *silent = lane_of(job, 0), *sound = lane_of(job, 1);

    for (uint32_t i = 0; i < R2_DIRECT_OPEN; ++i) {
        begin(job, true, BYTES);
    }
    for (uint32_t i = 0; i < 200; ++i) {
        complete(job, R2_OK);
        if (NULL != sound->tx.in_flight) {
            stub_acknowledge(job->stub, sound);
        }
        assert_true(silent->tx.pings <= 2);
    }
    assert_true(r2_lane_is_sound(silent)); /* no time has passed */
    assert_int_equal(job->stub->counters.direct_written_bytes, R2_DIRECT_OPEN * (uint64_t) BYTES);
    assert_int_equal(job->done, 0); /* each has left something to the silent lane */
    assert_null(sound->tx.in_flight);
    for (const r2_direct_t *direct = job->stub->link->directs; NULL != direct;
         direct = direct->next) {
        for (uint32_t i = 0; i < R2_DIRECT_PIECES; ++i) {
            assert_int_equal(direct->pieces[sound->idx * R2_DIRECT_PIECES + i].state,
                             R2_PIECE_IDLE);
        }
    }
}

/* Many wait until those that began first are over. */
static void few_are_under_way(void **state)
{
    job_t *job = *state;

    for (uint32_t i = 0; i < 3 * R2_DIRECT_OPEN; ++i) {
        begin(job, false, 20000);
    }
    assert_in_range(job->stub->send_count, 1, R2_DIRECT_OPEN);
    for (uint32_t i = 0; job->done < 3 * R2_DIRECT_OPEN && i < 1000; ++i) {
        complete(job, R2_OK);
    }
    assert_int_equal(job->done, 3 * R2_DIRECT_OPEN);
    assert_int_equal(job->lost, 0);
    assert_int_equal(job->stub->counters.direct_read_bytes, 3 * R2_DIRECT_OPEN * 20000);
}

/* What cannot be noted is told again, and the operation is not over before. */
static void what_is_lost_waits_for_memory(void **state)
{
    job_t *job = *state;

    begin(job, true, BYTES);
    job->no_memory = true;
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        r2_lane_fence(lane_of(job, i), R2_ERR_LANE_DOWN, true);
    }
    for (uint32_t i = 0; i < 5; ++i) {
        r2_net_progress(&job->stub->net);
        job->stub->time_ns += MS;
    }
    assert_int_equal(job->done, 0);
    assert_int_equal(job->stub->counters.direct_lost_bytes, 0);
    job->no_memory = false;
    r2_net_progress(&job->stub->net);
    assert_int_equal(job->done, 1);
    assert_int_equal(job->stub->counters.direct_lost_bytes, BYTES);
}

/* A lane that is added in the middle has no pieces. */
static void relays_have_no_part(void **state)
{
    job_t *job = *state;
    r2_lane_t *relay;

    begin(job, false, BYTES);
    relay = r2_relay_lane(job->stub->link);
    assert_non_null(relay);
    assert_true(relay->idx * R2_DIRECT_PIECES >= job->stub->link->directs->count);
    relay->conn = lane_of(job, 0)->conn; /* as one that is up */
    r2_direct_progress(job->stub->link);
    relay->conn = NULL;
    complete_all(job);
    assert_int_equal(job->lost, 0);
}

/* The peer is given up: what it may still write to us does not land, though we ask for nothing. */
static void who_is_given_up_writes_no_more(void **state)
{
    job_t *job = *state;

    r2_link_gone(job->stub->link);
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        assert_null(lane_of(job, i)->conn);
    }
}

/* The peer is gone: our memory is free again, and nothing is left. */
static void a_link_that_breaks_ends_all(void **state)
{
    job_t *job = *state;

    begin(job, true, BYTES);
    begin(job, false, BYTES);
    r2_link_gone(job->stub->link);
    assert_int_equal(job->done, 2);
    assert_int_equal(job->status, R2_ERR_PEER_GONE);
    assert_int_equal(job->stub->send_count, 0);
    assert_int_equal(start(job, true, BYTES), R2_ERR_PEER_GONE);
}

/* What is withdrawn tells nobody. */
static void withdrawn_ones_are_silent(void **state)
{
    job_t *job = *state;

    begin(job, false, BYTES);
    r2_direct_withdraw(job->stub->link);
    assert_int_equal(job->stub->send_count, 0);
    assert_int_equal(job->done + job->lost, 0);
}

#define ON_LANES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_LANES(reads_are_over_with_their_completion),
        ON_LANES(writes_are_confirmed),
        ON_LANES(the_confirmation_may_come_first),
        ON_LANES(unsure_writes_are_lost_with_their_lane),
        ON_LANES(failed_reads_wait_for_the_end_of_their_lane),
        ON_LANES(other_lanes_have_the_rest),
        ON_LANES(without_lanes_all_is_lost),
        cmocka_unit_test(stale_keys_are_refused),
        ON_LANES(a_fence_closes_one_connection),
        ON_LANES(silent_lanes_come_in_doubt),
        ON_LANES(silent_lanes_keep_no_other_from_asking),
        ON_LANES(few_are_under_way),
        ON_LANES(what_is_lost_waits_for_memory),
        ON_LANES(relays_have_no_part),
        ON_LANES(who_is_given_up_writes_no_more),
        ON_LANES(a_link_that_breaks_ends_all),
        ON_LANES(withdrawn_ones_are_silent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
