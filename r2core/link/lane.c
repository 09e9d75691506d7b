/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lane life: opening, wiring, fencing, closing, coming back.
 */
#include "r2_config.h"

#include "link/direct.h"
#include "link/idle.h"
#include "link/offer.h"
#include "link/place.h"
#include "link/tx.h"

/* When the last lane of a link fails, all are tried again after this. */
#define R2_EXPEDITE_NS (10 * R2_NS_PER_MS)

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

const char *r2_lane_state_name(r2_lane_state_t state)
{
    return r2_lane_states[state].name;
}

static bool r2_lane_is_pending(r2_lane_state_t state)
{
    return R2_LANE_CONNECTING == state || R2_LANE_WIRING == state;
}

void r2_lane_enter(r2_lane_t *lane, r2_lane_state_t state)
{
    r2_net_t *net = lane->link->net;

    if (lane->state == state) {
        return;
    }
    r2_debug(net->log, "lane to rank %u over %s: %s -> %s", lane->link->rank, lane->rail->nic.name,
             r2_lane_state_name(lane->state), r2_lane_state_name(state));
    if (!r2_lane_is_relay(lane)) {
        net->pending_lanes -= r2_lane_is_pending(lane->state);
        net->pending_lanes += r2_lane_is_pending(state);
        net->counters->lanes_closed += lane->state >= R2_LANE_UP && state < R2_LANE_UP;
    }
    if (r2_lane_states[lane->state].phase != r2_lane_states[state].phase) {
        lane->state_ns = net->now_ns;
        lane->timing.absences = 0;
        lane->heard_ns = lane->link->path.heard_ns;
        lane->told = r2_unread_clock(lane->link);
    }
    lane->state = state;
}

/* Pause before the next attempt: doubles with each failure in a row, with up to a quarter of
 * jitter. */
void r2_lane_back_off(r2_lane_t *lane, r2_status_t why)
{
    r2_net_t *net = lane->link->net;
    uint64_t shift = r2_min(lane->connect.failures, 16u);
    uint64_t pause_ns = r2_min((net->params->heal_min_ms * R2_NS_PER_MS) << shift,
                               net->params->heal_max_ms * R2_NS_PER_MS);

    ++lane->connect.failures;
    lane->why = why;
    lane->connect.retry_ns =
        net->now_ns + pause_ns + r2_random_u64(net->clock) % (pause_ns / 4 + 1);
    if (!r2_lane_is_down(lane)) {
        r2_lane_enter(lane, R2_LANE_DOWN);
    }
}

static void r2_lane_reset(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    lane->tx.window_bytes =
        r2_lane_is_relay(lane) ? net->params->relay_window_bytes : net->params->window_min_bytes;
    lane->tx.seq = (uint32_t) net->first_seq;
    lane->rx.next = (uint32_t) net->first_seq;
    lane->rx.bits = 0;
    lane->rx.ack = R2_ACK_NONE;
    lane->rx.ack_count = 0;
    lane->timing.base_ns = net->now_ns;
    lane->tx.gap_ns = 0;
    lane->tx.unasked_bytes = 0;
    lane->timing.srtt_ns = lane->timing.rttvar_ns = lane->timing.calm_rtt_ns = 0;
    lane->timing.min_rtt_ns = 0;
    lane->timing.rtt_samples = lane->timing.min_rtt_since_us = 0;
    lane->tx.load =
        (r2_lane_load_t){.bytes_per_s = lane->tx.load.bytes_per_s}; /* slow ones come back slow */
    memset(&lane->tx.delivery, 0, sizeof(lane->tx.delivery));
    lane->tx.limited = lane->failed = lane->unreachable = lane->timing.grace_used = false;
    lane->rx.excused_ns = 0;
    /* opened in the quarantine of its rail, as the only path: it proves the rail after that */
    lane->timing.barred_ns = lane->rail->shut_ns > net->now_ns ? lane->rail->shut_ns : 0;
    lane->connect.hello_ack = R2_HELLO_ACK_NONE;
    lane->connect.past = R2_PAST_RESTED == lane->connect.past ? R2_PAST_NONE : lane->connect.past;
    lane->connect.closing = R2_CLOSING_NO;
    lane->connect.closing_ns = 0;
    lane->connect.turn = false;
    lane->connect.put_offs = 0;
}

r2_status_t r2_lane_conn_create(r2_rail_worker_t *worker, r2_lane_conn_t **conn_p)
{
    r2_lane_conn_t *conn = calloc(1, sizeof(*conn));
    r2_status_t status;

    if (NULL == conn) {
        return R2_ERR_NO_MEMORY;
    }
    status = worker->rail->tp->ops->ep_open(worker->worker, conn, &conn->ep);
    if (R2_OK != status) {
        r2_rail_doubt(worker, status);
        free(conn);
        return status;
    }
    conn->worker = worker;
    *conn_p = conn;
    return R2_OK;
}

/* @param lane that it was of, or NULL: what was granted to it is given back when it is closed. */
static void r2_lane_conn_end(r2_lane_conn_t *conn, r2_lane_t *lane)
{
    conn->worker->rail->tp->ops->ep_close(conn->ep);
    if (NULL != lane) {
        r2_place_closed(lane, conn->worker->worker);
        r2_direct_closed(lane);
    }
    r2_rail_put(conn->worker);
    free(conn);
}

void r2_lane_conn_destroy(r2_lane_conn_t *conn)
{
    r2_lane_conn_end(conn, NULL);
}

/* What is sent to a peer that has not connected yet waits there, or is lost. */
static bool r2_lane_may_speak(const r2_lane_t *lane, bool peer_is_wired)
{
    const r2_tp_ops_t *ops = lane->rail->tp->ops;

    return peer_is_wired || NULL == ops->worker_is_loose ||
           !ops->worker_is_loose(lane->conn->worker->worker);
}

r2_status_t r2_lane_wire(r2_lane_t *lane, r2_lane_conn_t *conn, const r2_hello_offer_t *theirs,
                         uint64_t rx_connection, bool peer_is_wired)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;
    r2_status_t status = R2_ERR_NO_MEMORY;

    lane->connect.rx_connection = rx_connection;
    HASH_ADD(hh, net->connections, connect.rx_connection, sizeof(lane->connect.rx_connection),
             lane);
    if (r2_hash_has(&lane->hh)) {
        status = r2_rail_connect(conn->worker, conn->ep, link->rank, theirs->address,
                                 theirs->address_bytes);
        if (R2_OK != status) {
            HASH_DEL(net->connections, lane);
        }
    }
    if (R2_OK != status) {
        lane->connect.rx_connection = 0;
        return status;
    }
    conn->lane = lane;
    conn->domain = theirs->domain;
    lane->conn = conn;
    lane->is_rdma = conn->worker->is_rdma;
    r2_lane_reset(lane);
    lane->connect.tx_connection = theirs->connection;
    r2_lane_enter(lane, R2_LANE_WIRING);
    r2_link_activate(link);
    return r2_lane_may_speak(lane, peer_is_wired) ? r2_tx_unsequenced(lane, R2_WIRE_HELLO) : R2_OK;
}

static void r2_lane_up(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;

    r2_lane_enter(lane, R2_LANE_UP);
    r2_lane_tell(lane, R2_LANE_EVENT_UP, R2_OK);
    ++*(r2_lane_is_relay(lane) ? &net->counters->relay_lanes : &net->counters->lanes_up);
    if (R2_PAST_UP == lane->connect.past && !r2_lane_is_relay(lane)) {
        ++net->counters->lanes_healed;
        r2_debug(net->log, "rail %s to rank %u on %s is back", lane->rail->nic.name, link->rank,
                 link->info.host_name);
    }
    lane->connect.past = R2_PAST_UP;
    r2_idle_settle(lane);
    lane->connect.unsure = r2_net_was_late(net);
    lane->timing.base_ns = net->now_ns;
    link->path.no_path_ns = 0;
    lane->connect.refused_streak = 0;
    lane->connect.refused_since_taken = 0;
    lane->connect.disproved = false;
    net->unwired_links -= link->path.wired ? 0 : 1;
    link->path.wired = true;
    if (R2_ERR_NO_PATH == link->broken) {
        link->broken = R2_OK;
    }
}

/*
 * HELLO is answered with HELLO_ACK (by the progress pass: this runs inside a callback). HELLO_ACK,
 * or data from a peer that is further along, proves that both directions work: the lane is up. A
 * lane carries data only then: what is sent before may wait for a connection that never comes. The
 * answering side's HELLO may come before the caller knows the connection, and is lost as a ghost:
 * so whoever comes up by HELLO_ACK sends one, too.
 */
void r2_lane_connected(r2_lane_t *lane, uint8_t kind)
{
    if (R2_HELLO_ACK_NONE == lane->connect.hello_ack) {
        lane->connect.hello_ack = R2_HELLO_ACK_DUE;
    }
    if (R2_LANE_WIRING == lane->state && R2_WIRE_HELLO != kind) {
        r2_rtt_wired(lane);
        r2_lane_up(lane);
    }
    r2_link_activate(lane->link);
}

void r2_lane_failed(void *worker, void *arg, r2_status_t status)
{
    r2_lane_conn_t *conn = arg;

    (void) worker;
    if (NULL != conn->lane && conn == conn->lane->conn) {
        conn->lane->failed = true;
        conn->lane->why = status;
        r2_link_activate(conn->lane->link);
    }
}

static void r2_lane_disconnect(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    r2_lane_conn_t *conn = lane->conn;

    HASH_DEL(net->connections, lane);
    lane->connect.rx_connection = 0;
    lane->conn = NULL;
    lane->connect.closing = R2_CLOSING_NO;
    lane->connect.closing_ns = 0; /* or nothing else would be closed any more (idle.c) */
    conn->lane = NULL;
    r2_lane_conn_end(conn, lane);
}

r2_lane_conn_t *r2_lane_call_over(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    r2_lane_conn_t *conn = lane->connect.call;

    if (0 != lane->connect.connect_id && NULL == conn) { /* it was lent */
        --net->lent_connects;
        net->pending_lanes += R2_LANE_CONNECTING == lane->state;
    }
    lane->connect.connect_id = 0;
    lane->connect.call = NULL;
    return conn;
}

void r2_lane_cancel_connect(r2_lane_t *lane)
{
    r2_hello_t *hello = &lane->link->net->hello;
    r2_lane_conn_t *conn;

    if (0 != lane->connect.connect_id) {
        (void) hello->ops->cancel(hello->instance,
                                  lane->connect.connect_id); /* it may never end by itself */
        conn = r2_lane_call_over(lane);
        if (NULL != conn) {
            r2_lane_conn_destroy(conn);
        }
    }
}

bool r2_lane_withdraw_call(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    if (!net->hello.ops->cancel(net->hello.instance, lane->connect.connect_id)) {
        return false;
    }
    r2_lane_cancel_connect(lane);
    if (R2_LANE_CONNECTING == lane->state) {
        lane->connect.retry_ns = net->now_ns;
        r2_lane_enter(lane, R2_LANE_DOWN);
    }
    return true;
}

bool r2_lane_is_unproved(const r2_lane_t *lane)
{
    const r2_packet_t *first = lane->tx.in_flight;

    return (uint32_t) lane->link->net->first_seq ==
           (NULL == first ? lane->tx.seq : first->header.lane_seq);
}

/*
 * Nothing that went over it was ever acknowledged and nothing came, and this process was stopped
 * before it came up, by old words, or after: the peer may have given it up meanwhile, in wire-up.
 * That it was up is not proved.
 */
bool r2_lane_may_be_over(const r2_lane_t *lane)
{
    const bool came = (uint32_t) lane->link->net->first_seq != lane->rx.next || 0 != lane->rx.bits;

    return lane->state >= R2_LANE_UP && lane->connect.unsure && r2_lane_is_unproved(lane) &&
           0 == lane->tx.gap_ns && !came && !r2_lane_is_relay(lane);
}

void r2_lane_withdraw_moot(r2_lane_t *lane)
{
    if (0 != lane->connect.connect_id && R2_LANE_UP == r2_lane_states[lane->state].phase &&
        lane->connect.connect_ns <= lane->state_ns) {
        (void) r2_lane_withdraw_call(lane);
    }
}

/* A lane that was well for long starts anew with its failures. */
static void r2_lane_forgive(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    if (net->now_ns - lane->state_ns > net->params->heal_max_ms * R2_NS_PER_MS) {
        lane->connect.failures = 0;
    }
}

static void r2_lane_stop(r2_lane_t *lane)
{
    r2_lane_cancel_connect(lane);
    r2_tx_abandon(lane);
    r2_lane_disconnect(lane);
    r2_lane_enter(lane, R2_LANE_DOWN);
    lane->failed = false;
    lane->rx.ack = R2_ACK_NONE;
    lane->connect.hello_ack = R2_HELLO_ACK_NONE;
    lane->connect.past = R2_PAST_NONE;
}

void r2_lane_close(r2_lane_t *lane)
{
    r2_lane_stop(lane);
    lane->connect.failures = 0;
    lane->why = R2_OK;
}

void r2_lane_reopen(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    r2_debug(net->log, "rail %s to rank %u on %s: opened anew", lane->rail->nic.name,
             lane->link->rank, lane->link->info.host_name);
    r2_lane_forgive(lane);
    r2_lane_stop(lane);
    if (0 == lane->connect.failures) {
        ++lane->connect.failures;
        lane->connect.retry_ns = net->now_ns;
    } else {
        r2_lane_back_off(lane, lane->why);
    }
    r2_link_activate(lane->link);
}

void r2_lane_tell_peer(r2_link_t *link, uint64_t connection, bool rested)
{
    const r2_wire_lane_down_t down = {.connection = connection, .rested = rested ? 1 : 0};

    (void) r2_tx_control(link, R2_WIRE_LANE_DOWN, &down, sizeof(down));
}

void r2_lane_report(r2_lane_t *lane, r2_status_t why)
{
    r2_net_t *net = lane->link->net;
    uint32_t moved = 0;
    r2_packet_t *packet;

    if (r2_link_is_over(lane->link)) {
        return;
    }
    DL_COUNT(lane->tx.in_flight, packet, moved);
    /* a relay lane is meant to end */
    net->counters->lanes_failed += r2_lane_is_relay(lane) ? 0 : 1;
    r2_debug(net->log, "rail %s to rank %u on %s failed (%s); %u packets move to the other rails",
             lane->rail->nic.name, lane->link->rank, lane->link->info.host_name,
             r2_status_string(why), moved);
    r2_lane_tell(lane, R2_LANE_EVENT_FAILED, why);
}

void r2_lane_fence(r2_lane_t *lane, r2_status_t why, bool tell_peer)
{
    r2_link_t *link = lane->link;

    r2_lane_cancel_connect(lane);
    if (NULL != lane->conn) {
        uint64_t connection = lane->connect.rx_connection;
        bool was_usable = lane->state >= R2_LANE_UP;

        if (R2_PAST_RESTED == lane->connect.past ||
            (R2_ERR_RAIL_DOWN != why && r2_lane_may_be_over(lane))) {
            lane->connect.past = R2_PAST_NONE;
        } else if (was_usable) {
            r2_lane_report(lane, why);
            r2_lane_forgive(lane);
        }
        r2_tx_abandon(lane);
        r2_lane_disconnect(lane);
        if (tell_peer && was_usable) {
            r2_lane_tell_peer(link, connection, false);
        }
    }
    lane->failed = false;
    r2_lane_back_off(lane, why);
    if (r2_link_has_lane(link)) {
        lane->connect.retry_ns = r2_max(lane->connect.retry_ns, lane->timing.barred_ns);
    }
    r2_link_expedite(link, R2_EXPEDITE_NS);
    r2_link_activate(link);
}
