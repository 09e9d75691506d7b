/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Connect requests of lanes: who opens a lane, with which worker, connection ids and settings.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/relay.h"
#include "link/offer.h"

#define R2_HELLO_RETRY_NS (50 * R2_NS_PER_MS)
/* In multiples of failure_timeout_ms: a call; from a check of a silent lane to the next. */
#define R2_HELLO_TIMES 40u
#define R2_CHECK_TIMES 20u

/* Random, but for its low bits, which keep lanes apart in net->recent. */
static uint64_t r2_hello_connection(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    const uint64_t place = ((uint64_t) link->rank * link->lane_count + lane->idx) % R2_NET_RECENT;
    uint64_t connection;
    r2_lane_t *other;

    do {
        connection = r2_random_u64(link->net->clock) / R2_NET_RECENT * R2_NET_RECENT + place;
        HASH_FIND(hh, link->net->connections, &connection, sizeof(connection), other);
    } while (0 == connection || NULL != other);
    return connection;
}

/* The lane of a link over a given rail of ours; NULL: those rails are not paired. */
static r2_lane_t *r2_hello_lane(r2_link_t *link, uint32_t rail_idx)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (link->lanes[i].rail->idx == rail_idx) {
            return &link->lanes[i];
        }
    }
    return NULL;
}

static r2_status_t r2_hello_connect(r2_lane_t *lane, const r2_hello_offer_t *offer)
{
    r2_hello_t *hello = &lane->link->net->hello;

    if (r2_lane_is_relay(lane)) {
        return r2_relay_call(lane, offer, r2_hello_offer_size(offer));
    }
    return hello->ops->call(hello->instance, lane->rail->idx, lane->remote->address,
                            lane->remote->address_bytes, offer, r2_hello_offer_size(offer),
                            r2_scaled_timeout_ns(lane->link->net, R2_HELLO_TIMES),
                            lane->connect.connect_id);
}

/* Makes a connection to be offered. @return as r2_idle_worker(). */
static r2_status_t r2_hello_conn(r2_lane_t *lane, r2_lane_conn_t **conn_p)
{
    r2_rail_worker_t *worker;
    r2_status_t status = r2_idle_worker(lane, &worker);

    if (R2_OK == status) {
        status = r2_lane_conn_create(worker, conn_p);
        if (R2_OK != status) {
            r2_rail_put(worker);
        }
    }
    return status;
}

/* There is no connection to offer. Want of memory is no fault of the NIC; a dead device is. */
static void r2_hello_not_offered(r2_lane_t *lane, r2_status_t status)
{
    r2_lane_back_off(lane, status);
    if (R2_ERR_NO_MEMORY != status) {
        r2_idle_nothing_opens(lane);
    }
}

void r2_lane_open(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;
    r2_hello_offer_t offer;
    r2_status_t status;

    if (0 != lane->connect.connect_id) {
        return;
    }
    if (!r2_rail_usable(lane->rail)) {
        lane->connect.retry_ns = net->now_ns + net->params->heal_max_ms * R2_NS_PER_MS;
        lane->why = R2_ERR_RAIL_DOWN;
        return;
    }
    status = r2_hello_conn(lane, &lane->connect.call);
    if (R2_ERR_NO_DESCRIPTORS == status) {
        if (NULL != lane->conn) {
            (void) r2_lane_probe_kernel(lane); /* needs none, and tells whether there is a path */
        }
        return;
    }
    if (R2_OK != status && NULL != lane->conn) {
        lane->connect.retry_ns =
            net->now_ns + r2_scaled_timeout_ns(net, R2_CHECK_TIMES); /* it stays */
        return;
    }
    if (R2_OK != status) {
        r2_hello_not_offered(lane, status);
        return;
    }
    ++lane->connect.attempt;
    lane->connect.connect_ns = net->now_ns;
    lane->connect.connect_offer = r2_hello_connection(lane);
    lane->connect.connect_id =
        (++net->next_connect << 40) | ((uint64_t) link->rank << 8) | lane->idx;
    status = r2_hello_offer_fill(lane, lane->connect.call, lane->connect.connect_offer, &offer);
    if (R2_OK == status) {
        offer.verdict = R2_PAST_RESTED == lane->connect.past ? R2_HELLO_RESTED : 0;
        ++net->counters->hellos_sent;
        status = r2_hello_connect(lane, &offer);
    }
    if (R2_LANE_DOWN == lane->state) {
        r2_lane_enter(lane, R2_LANE_CONNECTING);
    }
    r2_link_activate(link);
    if (R2_OK != status) {
        r2_hello_result(net, lane->connect.connect_id, status, NULL, 0);
    }
}

static void r2_hello_reply(r2_net_t *net, uint32_t rail_idx, uint64_t token,
                           const r2_hello_offer_t *offer)
{
    if (R2_RELAY_RAIL == rail_idx) {
        r2_relay_reply(net, offer, r2_hello_offer_size(offer));
        return;
    }
    net->hello.ops->reply(net->hello.instance, token, offer, r2_hello_offer_size(offer));
}

/* @param lane NULL: none is meant. */
static void r2_hello_answer(r2_net_t *net, uint32_t rail_idx, uint64_t token, const r2_lane_t *lane,
                            r2_hello_verdict_t verdict)
{
    r2_hello_offer_t offer = {
        .magic = R2_HELLO_MAGIC,
        .version = R2_WIRE_VERSION,
        .verdict = (uint32_t) verdict,
        .stands = R2_HELLO_SHORT == verdict && net->turns,
        .closed = NULL != lane && R2_PAST_RESTED == lane->connect.past,
        .lost = NULL != lane && lane->rail->nic.rdma_lost,
        .rank = net->rank,
        .segment_bytes = net->segment_bytes,
        .unexpected_bytes = net->params->unexpected_bytes,
        .first_seq = net->first_seq,
        .direct = net->params->direct,
    };

    r2_hello_reply(net, rail_idx, token, &offer);
}

/*
 * Both call at once: the call of the lower rank counts, unless it waits for a connection where the
 * other's has got through: it may be from before a repair. The other's request may still arrive
 * when the lane is already wired; its attempt number tells that it is from before.
 */
static bool r2_hello_yields(r2_lane_t *lane, uint32_t attempt)
{
    if (!r2_seq_lt(lane->connect.peer_attempt, attempt)) {
        return false;
    }
    return 0 == lane->connect.connect_id || lane->link->rank < lane->link->net->rank ||
           r2_lane_withdraw_call(lane);
}

/*
 * A peer that calls for a lane which stands at both ends has heard nothing on it. If what it waits
 * for may lie in our buffers it is told to wait. Not one that calls for another way through third
 * hosts, which costs next to nothing.
 */
static bool r2_hello_excuse(r2_lane_t *lane, const r2_hello_offer_t *theirs)
{
    return NULL != lane->conn && 0 != theirs->stands && !r2_lane_is_relay(lane) &&
           r2_unread_answer(lane, theirs->awaits);
}

/*
 * Peers call as soon as they can: they know nothing of the quarantine of a rail of ours. It does
 * not hold where that rail is the only path.
 */
static bool r2_hello_is_shut(const r2_lane_t *lane)
{
    return lane->state < R2_LANE_WIRING && lane->link->net->now_ns < lane->rail->shut_ns &&
           R2_GRADE_SOUND == r2_link_grade(lane->link);
}

/* A lane cannot be opened from here. */
static r2_hello_verdict_t r2_hello_decline(r2_lane_t *lane, r2_status_t status)
{
    if (R2_ERR_NO_DESCRIPTORS != status) {
        r2_hello_not_offered(lane, status);
        return R2_HELLO_NOT_NOW;
    }
    r2_idle_owes(lane);
    return R2_HELLO_SHORT;
}

static r2_hello_verdict_t r2_hello_accept(r2_lane_t *lane, const r2_hello_offer_t *theirs,
                                          r2_hello_offer_t *ours)
{
    r2_lane_conn_t *conn;
    uint64_t connection;
    r2_status_t status;

    if (NULL != lane->conn && !r2_idle_replaced(lane, R2_HELLO_RESTED == theirs->verdict)) {
        r2_lane_fence(lane, R2_ERR_LANE_DOWN, false);
    }
    r2_idle_judge(lane, R2_HELLO_RESTED == theirs->verdict);
    r2_lane_cancel_connect(lane);
    status = r2_rail_usable(lane->rail) ? r2_hello_conn(lane, &conn) : R2_ERR_RAIL_DOWN;
    if (R2_OK != status) {
        return r2_hello_decline(lane, status);
    }
    connection = r2_hello_connection(lane);
    if (R2_OK != r2_hello_offer_fill(lane, conn, connection, ours)) {
        r2_lane_conn_destroy(conn);
        return r2_hello_decline(lane, R2_ERR_NO_DEVICE);
    }
    ours->closed = R2_PAST_RESTED == lane->connect.past;
    status = r2_lane_wire(lane, conn, theirs, connection, false);
    if (R2_OK != status && NULL != lane->conn) {
        return R2_HELLO_NOT_NOW;
    }
    if (R2_OK != status) {
        r2_lane_conn_destroy(conn);
        return r2_hello_decline(lane, status);
    }
    lane->why = R2_OK;
    lane->connect.peer_attempt = theirs->attempt;
    return R2_HELLO_ACCEPT;
}

void r2_hello_request(void *arg, uint32_t rail_idx, uint64_t token, const void *request,
                      size_t bytes)
{
    r2_net_t *net = arg;
    r2_hello_offer_t theirs, ours;
    r2_hello_verdict_t verdict;
    r2_link_t *link;
    r2_lane_t *lane;
    r2_status_t status = r2_hello_offer_parse(net, request, bytes, &theirs);

    net->now_ns = r2_now_ns(net->clock);
    if (R2_ERR_VERSION == status) {
        r2_hello_answer(net, rail_idx, token, NULL, R2_HELLO_REJECT);
        return;
    }
    if (R2_OK != status || R2_OK != r2_net_link(net, theirs.rank, &link)) {
        r2_hello_answer(net, rail_idx, token, NULL, R2_HELLO_NOT_NOW);
        return;
    }
    r2_link_spoke(link);
    lane = r2_hello_lane(link, rail_idx);
    if (NULL == lane || lane->remote_idx != theirs.rail_idx || theirs.remote_idx != rail_idx) {
        r2_hello_answer(net, rail_idx, token, NULL, R2_HELLO_REJECT);
        return;
    }
    if (!r2_hello_offer_fits(lane, &theirs)) {
        verdict = R2_HELLO_NOT_NOW;
    } else if (r2_hello_is_shut(lane)) {
        verdict = R2_HELLO_SHUT;
    } else if (!r2_hello_yields(lane, theirs.attempt) || r2_hello_excuse(lane, &theirs)) {
        verdict = R2_HELLO_BUSY;
    } else {
        verdict = r2_hello_accept(lane, &theirs, &ours);
    }
    if (R2_HELLO_ACCEPT != verdict) {
        r2_hello_answer(net, rail_idx, token, lane, verdict);
        return;
    }
    ours.verdict = R2_HELLO_ACCEPT;
    r2_hello_reply(net, rail_idx, token, &ours);
}

static r2_lane_t *r2_hello_caller(r2_net_t *net, uint64_t connect_id)
{
    uint32_t rank = (uint32_t) (connect_id >> 8);
    uint32_t lane_idx = (uint32_t) (connect_id & 0xff);
    r2_link_t *link;

    if (rank >= net->size || NULL == net->links[rank]) {
        return NULL;
    }
    link = net->links[rank];
    if (lane_idx >= link->lane_count || link->lanes[lane_idx].connect.connect_id != connect_id) {
        return NULL; /* the call was overtaken by the peer's */
    }
    return &link->lanes[lane_idx];
}

/* What a call without success says of the listener. Over a relay it says nothing. */
static void r2_hello_weigh(r2_lane_t *lane, r2_status_t status)
{
    if (r2_lane_is_relay(lane) || R2_ERR_AGAIN == status || R2_ERR_NO_MEMORY == status) {
        return; /* we could not even ask */
    }
    if (R2_ERR_REFUSED == status) {
        r2_lane_refused(lane);
    } else {
        r2_lane_unanswered(lane, R2_ERR_UNRESPONSIVE == status);
    }
}

/* Of a silent lane. The queue of a stopped process may be full: its kernel decides, a moment
 * later. Within a host there is one kernel, and who does not refuse is stopped. */
static bool r2_hello_is_out_of_reach(r2_lane_t *lane, r2_status_t status)
{
    if (R2_ERR_UNRESPONSIVE == status || R2_ERR_AGAIN == status) {
        return false;
    }
    return R2_ERR_REFUSED == status ||
           (!lane->link->same_host && (!r2_lane_probe_kernel(lane) || lane->unreachable));
}

/*
 * Connected, and the process says nothing: it is stopped. The call stays where it is, since each
 * new one would take a place in its queue for good.
 */
bool r2_hello_waits(void *arg, uint64_t connect_id)
{
    r2_net_t *net = arg;
    r2_lane_t *lane = r2_hello_caller(net, connect_id);

    if (NULL == lane || !r2_room_lend(lane)) {
        return false;
    }
    net->now_ns = r2_now_ns(net->clock);
    r2_lane_unanswered(lane, true);
    lane->why = R2_ERR_UNRESPONSIVE;
    if (lane->state >= R2_LANE_WIRING) {
        lane->unreachable = false;
    } else {
        lane->connect.failures = r2_max(lane->connect.failures, 1u);
        r2_lane_tell(lane, R2_LANE_EVENT_UNOPENED, R2_ERR_UNRESPONSIVE);
    }
    r2_link_activate(lane->link);
    return true;
}

static void r2_hello_unsuccessful(r2_lane_t *lane, r2_status_t status)
{
    r2_link_t *link = lane->link;

    if (R2_ERR_NO_DESCRIPTORS == status) {
        r2_idle_put_off(lane);
        return;
    }
    ++link->net->counters->hellos_failed;
    if (R2_ERR_AGAIN == status && R2_LANE_CONNECTING == lane->state) {
        lane->connect.retry_ns =
            link->net->now_ns + R2_HELLO_RETRY_NS; /* their call will do, most likely */
        r2_lane_enter(lane, R2_LANE_DOWN);
        return;
    }
    if (lane->state >= R2_LANE_WIRING) {
        /* a check of a silent lane: it stays, but it is no path while its host does not answer */
        if (lane->rx.last_ns <= lane->connect.connect_ns &&
            r2_hello_is_out_of_reach(lane, status)) {
            r2_lane_cut_off(lane, lane->connect.connect_ns);
        } else {
            lane->unreachable = false;
        }
        lane->why = status;
        lane->connect.retry_ns =
            link->net->now_ns + r2_scaled_timeout_ns(link->net, R2_CHECK_TIMES);
    } else {
        if (R2_ERR_TIMEOUT == status) {
            r2_idle_owes_none(lane);
        }
        r2_lane_back_off(lane, status);
        r2_idle_expedite(link->net);
        if (R2_ERR_AGAIN != status && R2_ERR_RAIL_DOWN != status) {
            /* else the peer called, too, is not ready, or has its rail in quarantine: no fault */
            lane->connect.in_vain = true;
            r2_lane_tell(lane, R2_LANE_EVENT_UNOPENED, status);
        }
    }
    if (R2_ERR_REFUSED == status && r2_lane_refusal_counts(lane)) {
        r2_link_expedite(link, R2_REFUSED_RETRY_NS); /* asked again before it is believed */
    }
}

static r2_status_t r2_hello_outcome(r2_net_t *net, r2_status_t status, const void *reply,
                                    size_t bytes, r2_hello_offer_t *theirs_p)
{
    if (R2_OK != status) {
        return status;
    }
    status = r2_hello_offer_parse(net, reply, bytes, theirs_p);
    if (R2_OK != status) {
        return status;
    }
    switch ((r2_hello_verdict_t) theirs_p->verdict) {
    case R2_HELLO_ACCEPT:
        return R2_OK;
    case R2_HELLO_BUSY:
    case R2_HELLO_NOT_NOW:
        return R2_ERR_AGAIN;
    case R2_HELLO_SHUT:
        return R2_ERR_RAIL_DOWN;
    case R2_HELLO_SHORT:
        return R2_ERR_NO_DESCRIPTORS;
    case R2_HELLO_REJECT:
    case R2_HELLO_RESTED:
    default:
        return R2_ERR_VERSION;
    }
}

/* The process goes on, and the worker of the call is not there any more. */
static void r2_hello_anew(r2_lane_t *lane, uint32_t peer_attempt)
{
    lane->connect.peer_attempt = peer_attempt;
    if (!r2_lane_is_down(lane)) {
        r2_lane_enter(lane, R2_LANE_DOWN);
    }
    lane->connect.retry_ns = lane->link->net->now_ns;
    r2_link_activate(lane->link);
}

void r2_hello_result(void *arg, uint64_t connect_id, r2_status_t status, const void *reply,
                     size_t bytes)
{
    r2_net_t *net = arg;
    r2_lane_t *lane = r2_hello_caller(net, connect_id);
    r2_lane_conn_t *conn;
    r2_hello_offer_t theirs = {0};

    if (NULL == lane) {
        return;
    }
    net->now_ns = r2_now_ns(net->clock);
    conn = r2_lane_call_over(lane);
    if (R2_OK == status) {
        r2_lane_answered(lane);
    } else {
        r2_hello_weigh(lane, status);
    }
    status = r2_hello_outcome(net, status, reply, bytes, &theirs);
    r2_hello_offer_heard(lane, status, &theirs);
    lane->connect.turn = 0 != theirs.stands;
    if (R2_OK == status || 0 != theirs.closed) {
        r2_idle_judge(lane, 0 != theirs.closed);
    }
    if (R2_OK == status && NULL != lane->conn && !r2_idle_replaced(lane, 0 != theirs.closed)) {
        r2_lane_unproved(lane);
        r2_lane_fence(lane, R2_ERR_TIMEOUT, false); /* silent, and the peer has a new one now */
    }
    if (R2_OK == status && NULL == conn) {
        r2_hello_anew(lane, theirs.attempt);
        return;
    }
    if (R2_OK == status) {
        lane->why = R2_OK;
        status = r2_lane_wire(lane, conn, &theirs, lane->connect.connect_offer, true);
        if (R2_OK == status || NULL != lane->conn) {
            lane->connect.peer_attempt = theirs.attempt;
            return;
        }
    }
    if (NULL != conn) {
        r2_lane_conn_destroy(conn);
    }
    if (R2_ERR_VERSION == status) {
        r2_error(net->log,
                 "rank %u on %s runs r2 with another version or other values of chunk_max_bytes, "
                 "unexpected_bytes or direct: use the same on all hosts",
                 lane->link->rank, lane->link->info.host_name);
    }
    r2_hello_unsuccessful(lane, status);
}

void r2_hello_late(r2_lane_t *lane, const void *reply, size_t bytes)
{
    r2_hello_offer_t theirs = {0};

    if (NULL == lane->conn || 0 != lane->connect.connect_id ||
        R2_OK != r2_hello_outcome(lane->link->net, R2_OK, reply, bytes, &theirs) ||
        r2_seq_lt(theirs.attempt, lane->connect.peer_attempt) ||
        theirs.connection == lane->connect.tx_connection) {
        return;
    }
    lane->link->net->now_ns = r2_now_ns(lane->link->net->clock);
    r2_lane_fence(lane, R2_ERR_TIMEOUT, false);
    r2_hello_anew(lane, theirs.attempt);
}
