/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Room for lanes: whose descriptors a lane gets that has none.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/tx.h"

/*
 * Nobody keeps descriptors for ever while another lane waits for them (docs/protocol.md,
 * "Descriptors"):
 *
 *   a lane that                        gives them back
 *   carries something                  when that is acknowledged: every process reads always
 *   carries nothing                    when it is asked for, by agreement of both ends
 *   is silent, with data in flight     after 20 T: the peer is stopped, or there is no path
 *   is called, without a connection    after T
 *   is called, connected, no answer    after 40 T: the call goes on without
 *   is wired, and HELLO does not cross after 40 T
 */

/* A lane that was heard so lately is not idle: it may be in the middle of a call. */
#define R2_IDLE_NS (10 * R2_NS_PER_MS)
/* When a link without a lane looks for room again, at least; with as much jitter. */
#define R2_ROOM_RETRY_NS (10 * R2_NS_PER_MS)
/* To look for room costs more the more peers there are: not for each lane. */
#define R2_LOOK_NS R2_NS_PER_MS
/* When it asks a peer again that has no room, at most so many times doubled: the peer calls when it
 * has. */
#define R2_PUT_OFFS_MAX 4u
/* Times failure_timeout_ms: a call without connection, a lane in doubt, "wait for your turn". */
#define R2_CALL_TIMES 1u
#define R2_TURN_TIMES 40u
/* How often it is looked whether there is room for calls of others, and to accept them. */
#define R2_KEEP_NS (100 * R2_NS_PER_MS)
/* Calls that wait for stopped processes take a descriptor each: others find no room any more. */
#define R2_LENT_MAX 2u

/* ---- who gives it ---- */

/* Without a connection for so long: most likely there is no path. */
static bool r2_room_is_vain(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    return NULL != lane->connect.call && !r2_lane_is_relay(lane) &&
           net->now_ns - lane->connect.connect_ns >= r2_scaled_timeout_ns(net, R2_CALL_TIMES) &&
           !net->hello.ops->connected(net->hello.instance, lane->connect.connect_id);
}

void r2_idle_owes_none(r2_lane_t *lane)
{
    if (!r2_lane_is_relay(lane)) {
        lane->link->path.owed = false;
    }
}

/* The lane is called again later, as after any call without an answer. */
static void r2_room_take_back(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    r2_debug(net->log,
             "rail %s to rank %u on %s: connect request taken back for want of descriptors",
             lane->rail->nic.name, lane->link->rank, lane->link->info.host_name);
    r2_lane_cancel_connect(lane);
    if (R2_LANE_WIRING == lane->state) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, false);
    } else if (lane->state >= R2_LANE_UP) {
        lane->connect.retry_ns = net->now_ns + r2_scaled_timeout_ns(net, R2_SILENT_TIMES);
    } else {
        r2_idle_owes_none(lane);
        r2_lane_back_off(lane, R2_ERR_TIMEOUT);
    }
    r2_link_activate(lane->link);
}

/* Nothing answers what is in flight. */
static bool r2_room_is_silent(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    return R2_GRADE_SOUND != r2_lane_grade(lane) && NULL != lane->tx.in_flight &&
           net->now_ns -
                   r2_max(r2_max(lane->rx.last_ns, lane->timing.base_ns), lane->timing.doubt_ns) >=
               r2_scaled_timeout_ns(net, R2_SILENT_TIMES);
}

static bool r2_room_is_victim(const r2_lane_t *lane)
{
    const uint64_t now_ns = lane->link->net->now_ns;

    if (!r2_lane_may_send(lane) || r2_lane_is_relay(lane) || 0 != lane->connect.connect_id ||
        now_ns - lane->state_ns < R2_IDLE_NS || now_ns - lane->rx.last_ns < R2_IDLE_NS) {
        return false;
    }
    return r2_room_is_silent(lane) ||
           (R2_GRADE_SOUND == r2_lane_grade(lane) && r2_idle_spares(lane));
}

/* The less is lost the lower: a lane beside others, one that nothing is awaited on; worse where
 * others share its worker, worst where packets are in flight. */
static uint32_t r2_room_price(const r2_lane_t *lane)
{
    return (R2_GRADE_SOUND != r2_lane_grade(lane) ? 8u : 0u) +
           (lane->conn->worker->users > 1 ? 4u : 0u) + (r2_idle_has_way(lane) ? 0u : 1u) +
           (r2_link_posted(lane->link) > 0 ? 1u : 0u);
}

static bool r2_room_is_better(const r2_lane_t *lane, const r2_lane_t *best)
{
    uint32_t price = r2_room_price(lane), best_price;

    if (NULL == best) {
        return true;
    }
    best_price = r2_room_price(best);
    return price < best_price || (price == best_price && lane->rx.last_ns < best->rx.last_ns);
}

/*
 * The lane of `link` that costs least, if it costs less than `best`.
 * @return false: something is given back soon; nothing else has to be.
 */
static bool r2_room_look(r2_link_t *link, r2_lane_t **best)
{
    r2_net_t *net = link->net;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        net->turns = net->turns || (!r2_lane_is_down(lane) && !r2_lane_is_relay(lane));
        if (0 != lane->connect.closing_ns) {
            return false;
        }
        if (r2_room_is_vain(lane)) {
            r2_room_take_back(lane);
            return false;
        }
        if (r2_room_is_victim(lane) && r2_room_is_better(lane, *best)) {
            *best = lane;
        }
    }
    return true;
}

/* Asks for the end of the lane that costs least. One at a time: what it gives back comes soon. */
static void r2_room_make(r2_net_t *net, const r2_link_t *wants)
{
    r2_lane_t *best = NULL;

    net->turns = false;
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        if (NULL != link && link != wants && !r2_room_look(link, &best)) {
            return;
        }
    }
    if (NULL == best || R2_OK != r2_tx_unsequenced(best, R2_WIRE_CLOSE)) {
        return;
    }
    best->connect.closing_ns = net->now_ns;
    if (R2_GRADE_SOUND != r2_lane_grade(best)) {
        r2_idle_end(best);
    }
    r2_link_activate(best->link);
}

bool r2_room_lend(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    if (!net->tight || NULL == lane->connect.call || r2_lane_is_relay(lane)) {
        return true;
    }
    if (net->lent_connects >= R2_LENT_MAX) {
        return false;
    }
    r2_lane_conn_destroy(lane->connect.call);
    lane->connect.call = NULL;
    ++net->lent_connects;
    net->pending_lanes -= R2_LANE_CONNECTING == lane->state;
    return true;
}

/* ---- shortage ---- */

/*
 * Who said so must have been heard of lately: it may be out of reach by now. While the lane is
 * called again, or where that call was taken back for others, a call must have been answered.
 */
static bool r2_lane_awaits_turn(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;
    const uint64_t lately_ns =
        r2_scaled_timeout_ns(net, R2_TURN_TIMES) + 2 * net->params->heal_max_ms * R2_NS_PER_MS;
    const uint64_t told_ns =
        r2_lane_is_short(lane) ? lane->link->path.spoke_ns : lane->link->path.answered_ns;

    return lane->connect.turn && lane->state < R2_LANE_WIRING &&
           net->now_ns - r2_min(net->now_ns, told_ns) <= lately_ns;
}

bool r2_room_awaits_turn(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_awaits_turn(&link->lanes[i])) {
            return true;
        }
    }
    return false;
}

void r2_net_tighten(r2_net_t *net)
{
    if (net->tight) {
        return;
    }
    r2_info(net->log, "file descriptors are short: lanes that are idle are closed, and opened "
                      "again when needed");
    /* from now on each lane has a worker of its own: descriptors come back with the worker only */
    net->local.alone = true;
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        net->rails[i].alone = true;
    }
    net->tight = true;
}

void r2_idle_put_off(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    bool needs = r2_idle_needs(lane);
    uint64_t pause_ns = needs ? (R2_ROOM_RETRY_NS + r2_random_u64(net->clock) % R2_ROOM_RETRY_NS)
                                    << lane->connect.put_offs
                              : r2_idle_turn_ns(net);

    lane->connect.put_offs += lane->connect.put_offs < R2_PUT_OFFS_MAX;
    if (lane->state >= R2_LANE_UP) {
        lane->connect.retry_ns = net->now_ns + pause_ns; /* a check of a silent lane */
        return;
    }
    if (R2_LANE_WIRING == lane->state) { /* cannot be asked after: it gives back what it has */
        r2_lane_fence(lane, R2_ERR_NO_DESCRIPTORS, false);
    }
    lane->why = R2_ERR_NO_DESCRIPTORS;
    lane->connect.retry_ns = net->now_ns + pause_ns;
    r2_lane_enter(lane, needs && r2_link_wanted(lane->link) ? R2_LANE_DOWN : R2_LANE_RESTING);
}

static void r2_room_short(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    ++net->counters->shortages;
    r2_net_tighten(net);
    lane->connect.put_offs = 0;
    r2_idle_put_off(lane);
    lane->connect.put_offs = 0;
    if (r2_idle_may_look(net) && r2_idle_needs(lane)) {
        net->short_until_ns = net->now_ns + R2_LOOK_NS;
        r2_room_make(net, lane->link);
    }
    lane->connect.turn = net->turns;
}

/*
 * What is kept free for calls may have been taken by the application: then nothing is accepted, and
 * peers that call cannot be told to wait for their turn.
 */
void r2_room_keep(r2_net_t *net)
{
    const r2_tp_t *tp = net->local.tp;

    if (net->now_ns < net->keep_ns) {
        return;
    }
    net->keep_ns = net->now_ns + R2_KEEP_NS;
    if (NULL != tp->ops->has_room && !tp->ops->has_room(tp->instance, 0, 0, 0)) {
        r2_net_tighten(net);
        r2_room_make(net, NULL);
    }
}

r2_status_t r2_idle_worker(r2_lane_t *lane, r2_rail_worker_t **worker_p)
{
    r2_net_t *net = lane->link->net;
    r2_status_t status = r2_lane_is_relay(lane) || r2_idle_may_look(net)
                             ? r2_rail_get(lane->rail, r2_lane_wants_rdma(lane), lane->link->rank,
                                           net->pending_lanes, net->now_ns, worker_p)
                             : R2_ERR_NO_DESCRIPTORS;

    if (!r2_lane_is_relay(lane)) {
        lane->link->path.rests = false;
    }
    if (R2_ERR_NO_DESCRIPTORS == status) {
        r2_room_short(lane);
    } else {
        r2_idle_wake(lane);
    }
    return status;
}

void r2_idle_owes(r2_lane_t *lane)
{
    if (R2_ERR_NO_DESCRIPTORS != lane->why) {
        r2_room_short(lane);
    }
    r2_lane_enter(lane, r2_idle_has_way(lane) ? R2_LANE_RESTING : R2_LANE_DOWN);
    /* ends when a direct lane is sound, or a call to the peer gets lost */
    lane->link->path.owed = lane->link->path.owed || R2_LANE_DOWN == lane->state;
    r2_link_activate(lane->link);
}
