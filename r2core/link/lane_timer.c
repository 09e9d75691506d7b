/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Timers of a lane, by its state: missing acknowledgements, silence, attempts to come back.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/tx.h"

#include <utlist.h>

/* All in multiples of failure_timeout_ms, as r2_scaled_timeout_ns() takes them. */
/* A lane that stays suspect this long is given up and opened anew. */
#define R2_SUSPECT_TIMES 20u
/* HELLO packets that have not crossed by then will not. */
#define R2_WIRING_TIMES 40u
/* So long after that it is found out whether the peer runs, where it can be heard on another. */
#define R2_WIRING_ASKED_TIMES 10u
/* So many times as long where our own buffers are not read, or not sent, to their end. */
#define R2_OWN_UNREAD_TIMES 20u

static uint64_t r2_lane_expiry_ns(const r2_lane_t *lane)
{
    if (NULL == lane->tx.in_flight) {
        return R2_NEVER_NS;
    }
    return r2_max(lane->tx.in_flight->sent_ns, lane->timing.base_ns) + r2_lane_timeout_ns(lane);
}

/* Of the parts of a timeout only the least is needed where not even that has passed. */
static bool r2_lane_is_expired(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    return NULL != lane->tx.in_flight &&
           net->now_ns >= r2_max(lane->tx.in_flight->sent_ns, lane->timing.base_ns) +
                              r2_scaled_timeout_ns(net, 1) &&
           net->now_ns >= r2_lane_expiry_ns(lane);
}

/*
 * Another lane heard from the peer well after this one should have: the peer lives, the lane does
 * not. "Well after", because a peer may be interrupted between reading one rail and the next. Or
 * it heard the answer to what this lane gave away when it came in doubt, half a timeout ago: the
 * first answer after a silence gives all lanes so long.
 */
static bool r2_lane_others_alive(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    uint64_t base_ns =
        r2_max(lane->tx.in_flight->sent_ns, lane->timing.base_ns) + r2_lane_timeout_ns(lane) / 2;

    if (R2_LANE_DOUBT == lane->state) {
        base_ns = r2_min(base_ns, lane->timing.doubt_ns);
    }

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (&link->lanes[i] != lane && link->lanes[i].rx.last_ns > base_ns) {
            return true;
        }
    }
    return false;
}

static void r2_lane_suspect(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;

    ++net->counters->ack_timeouts;
    r2_debug(net->log,
             "rail %s to rank %u on %s: no acknowledgement for %llu ms while other rails answer",
             lane->rail->nic.name, link->rank, link->info.host_name,
             (unsigned long long) ((net->now_ns - lane->tx.in_flight->sent_ns) / R2_NS_PER_MS));
    r2_lane_enter(lane, R2_LANE_SUSPECT);
    r2_lane_tell(lane, R2_LANE_EVENT_SUSPECT, R2_ERR_TIMEOUT);
    r2_tx_hedge(lane);
}

/* The detector finds out whether it is the lanes or the process. */
static void r2_link_tell_doubt(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_is_doubted(&link->lanes[i])) {
            r2_lane_tell(&link->lanes[i], R2_LANE_EVENT_DOUBT, R2_ERR_TIMEOUT);
        }
    }
}

static uint32_t r2_link_doubtful(const r2_link_t *link)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        count += r2_lane_is_doubted(&link->lanes[i]) ? 1 : 0;
    }
    return count;
}

static bool r2_lane_others_carry(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (&link->lanes[i] != lane && NULL != link->lanes[i].tx.in_flight) {
            return true;
        }
    }
    return false;
}

/*
 * Nothing at all answers: another lane may show whether it is the lane or the peer. Called again
 * while the doubt lasts, for what has been given to this lane since. Where all of that is delivered
 * already, and the transport still reads its memory, the peer is asked.
 */
static void r2_lane_doubt(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    bool first = R2_LANE_UP == lane->state;

    r2_tx_hedge(lane);
    if (first) {
        lane->timing.doubt_ns = link->net->now_ns;
    }
    if (r2_tx_has_sound_lane(link)) {
        if (!r2_lane_others_carry(lane) && 0 == link->tx.unsettled[R2_WIRE_PING]) {
            (void) r2_tx_control(link, R2_WIRE_PING, NULL, 0);
        }
        return;
    }
    if (link->tx.unsettled[R2_WIRE_PING] < r2_link_doubtful(link)) {
        /* nobody to give to: if this lane has lost packets, the answer will show the gap */
        (void) r2_tx_control(link, R2_WIRE_PING, NULL, 0);
    }
    if (first) {
        r2_link_tell_doubt(link);
    }
}

/* A relay lane depends on one process more, and another way is cheap to try. */
static uint64_t r2_lane_silent_ns(const r2_lane_t *lane)
{
    return r2_lane_is_relay(lane) ? 4 * r2_lane_timeout_ns(lane)
                                  : r2_scaled_timeout_ns(lane->link->net, R2_SILENT_TIMES);
}

/*
 * When a packet that later ones have passed is given up for lost. Relayed packets overtake each
 * other, and a hop that lost one sends it again after a timeout of its own: there it takes the time
 * of a silence, and counts only when the peer was heard after it, since it may have been stopped.
 */
static uint64_t r2_lane_gap_due_ns(const r2_lane_t *lane)
{
    bool relay = r2_lane_is_relay(lane);
    uint64_t due_ns;

    if (0 == lane->tx.gap_ns) {
        return R2_NEVER_NS;
    }
    due_ns = lane->tx.gap_ns + (relay ? r2_lane_silent_ns(lane) : r2_lane_timeout_ns(lane));
    return relay && lane->rx.last_ns < due_ns ? R2_NEVER_NS : due_ns;
}

static bool r2_lane_has_gap(const r2_lane_t *lane)
{
    return lane->link->net->now_ns >= r2_lane_gap_due_ns(lane);
}

/* True if the transport still reads memory of a message that is delivered by other lanes. */
static bool r2_lane_blocks(const r2_lane_t *lane)
{
    r2_packet_t *packet;

    DL_FOREACH(lane->tx.in_flight, packet) {
        if (!packet->transport_done && packet->item->acked) {
            return true;
        }
    }
    return false;
}

/*
 * Every packet acknowledges, so what the peer says on this lane long after it should have had our
 * oldest packet means that this packet is lost, and with it the lane's way out. Needed where there
 * is no other lane to tell: the peer's own questions keep such a link from looking silent. A
 * process that was stopped may speak before it reads, one that reads slowly says so, and what one
 * that sends slowly says here it has said long ago. Where this process comes late its packets leave
 * long after they were given to the transport.
 */
static bool r2_lane_acks_stall(const r2_lane_t *lane)
{
    uint64_t timeout_ns = r2_max(r2_scaled_timeout_ns(lane->link->net, R2_ACK_STALL_TIMES),
                                 4 * r2_lane_timeout_ns(lane));

    timeout_ns *=
        r2_unread_is_here(lane) || r2_net_was_late(lane->link->net) ? R2_OWN_UNREAD_TIMES : 1;
    return !r2_unread_is_there(lane) && r2_unread_answered_ns(lane) >= timeout_ns &&
           lane->rx.last_ns > r2_max(lane->tx.in_flight->sent_ns, lane->rx.awake_ns) + timeout_ns;
}

/*
 * When a lane in doubt is checked: later where the answer may lie in our own buffers, not for
 * ever.
 */
static uint64_t r2_lane_check_ns(const r2_lane_t *lane)
{
    uint64_t times = r2_unread_is_here(lane) ? R2_OWN_UNREAD_TIMES : 1;

    return lane->tx.in_flight->sent_ns + times * r2_lane_silent_ns(lane);
}

/* When a lane that a verdict was against, and that has answered since, may prove itself. */
static uint64_t r2_lane_trial_ns(const r2_lane_t *lane)
{
    return 0 == lane->timing.barred_ns || NULL != lane->tx.in_flight ? R2_NEVER_NS
                                                                     : lane->timing.barred_ns;
}

static void r2_lane_try(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    if (!r2_lane_ping(lane)) {
        lane->timing.barred_ns = net->now_ns + r2_scaled_timeout_ns(net, 1);
    }
}

static void r2_timer_up(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    if (now_ns >= r2_lane_trial_ns(lane)) {
        r2_lane_try(lane);
    }
    if (r2_lane_has_gap(lane)) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
        return;
    }
    if (!r2_lane_is_expired(lane)) {
        return;
    }
    if (r2_lane_others_alive(lane)) {
        r2_lane_suspect(lane);
        return;
    }
    if (r2_lane_acks_stall(lane)) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
        return;
    }
    r2_lane_doubt(lane);
    if (now_ns >= lane->connect.retry_ns && now_ns >= r2_lane_check_ns(lane)) {
        r2_lane_open(lane); /* answered: the process lives and this lane is stale */
    }
}

/*
 * What it waits for may lie unread: a connect request asks. A lane that nobody else can stand in
 * for is merely in doubt.
 */
static void r2_lane_hold(r2_lane_t *lane)
{
    if (!r2_tx_has_sound_lane(lane->link)) {
        r2_lane_enter(lane, R2_LANE_DOUBT);
        lane->timing.doubt_ns = lane->timing.base_ns = lane->link->net->now_ns;
    } else if (lane->link->net->now_ns >= lane->connect.retry_ns) {
        r2_lane_open(lane);
    }
}

/*
 * No call gets through to the peer's host. Not where that refuses: the process runs, so what
 * refuses are new connections, and this one stands.
 */
static bool r2_lane_is_cut_off(const r2_lane_t *lane)
{
    return lane->unreachable && 0 == lane->connect.refused_streak;
}

/* It delivers, but what comes was said too long ago to know of our oldest packet (slow sender). */
static bool r2_lane_is_behind(const r2_lane_t *lane)
{
    return NULL != lane->tx.in_flight && lane->rx.last_ns > r2_lane_since_ns(lane) &&
           r2_unread_answered_ns(lane) < r2_scaled_timeout_ns(lane->link->net, R2_ACK_STALL_TIMES);
}

/*
 * That the peer has closed the lane comes by another one, where it may lie unread if this process
 * comes late. Then a connect request asks.
 */
static bool r2_lane_is_excused(const r2_lane_t *lane)
{
    return r2_unread_excuses(lane) || r2_lane_is_behind(lane) || r2_net_was_late(lane->link->net);
}

/*
 * Over RDMA the peer's NIC acknowledges whatever its process does: memory that is still being read
 * after a timeout is no sign of a slow process there, and the lane is judged.
 */
static void r2_timer_suspect(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;
    uint64_t timeout_ns = r2_lane_timeout_ns(lane);
    uint64_t end_ns = r2_lane_since_ns(lane) +
                      r2_max(r2_scaled_timeout_ns(net, R2_SUSPECT_TIMES), 4 * timeout_ns);
    bool blocks = net->now_ns >= r2_lane_since_ns(lane) + timeout_ns && r2_lane_blocks(lane);
    bool due = net->now_ns >= end_ns || NULL == lane->tx.in_flight || (blocks && lane->is_rdma);
    bool runs = r2_lane_peer_runs(lane);

    if (!due && !blocks) {
        return;
    }
    if (due && runs && (r2_lane_is_cut_off(lane) || !r2_lane_is_excused(lane))) {
        if (r2_lane_may_be_over(lane)) {
            r2_idle_renew(lane);
        } else {
            r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
        }
    } else if (blocks) {
        r2_idle_renew(lane);
    } else {
        r2_lane_hold(lane);
    }
}

static uint64_t r2_wiring_end_ns(const r2_lane_t *lane)
{
    return r2_lane_since_ns(lane) + r2_scaled_timeout_ns(lane->link->net, R2_WIRING_TIMES);
}

/* Calls for an RDMA lane tell nothing of it: what does is a peer that runs, and is heard
 * elsewhere. */
static bool r2_wiring_may_ask(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    return lane->is_rdma && r2_tx_has_sound_lane(link) &&
           link->net->now_ns <
               r2_wiring_end_ns(lane) + r2_scaled_timeout_ns(link->net, R2_WIRING_ASKED_TIMES);
}

/*
 * HELLO may wait in the buffers of a process that was stopped meanwhile: it would take a lane for
 * up that is no more. So a connect request asks first, as on a lane that is silent.
 */
static void r2_timer_wiring(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    if (now_ns < r2_wiring_end_ns(lane) || (r2_wiring_may_ask(lane) && !r2_lane_peer_runs(lane))) {
        return;
    }
    if (r2_lane_is_relay(lane) || (lane->unreachable && r2_lane_peer_runs(lane))) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, false);
    } else if (now_ns >= lane->connect.retry_ns) {
        r2_lane_open(lane);
    }
}

/* Where no call gets through the peer is asked by other lanes. */
static uint64_t r2_wiring_deadline_ns(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;
    const uint64_t end_ns = r2_wiring_end_ns(lane);

    if (lane->unreachable || (net->now_ns >= end_ns && r2_wiring_may_ask(lane))) {
        return r2_max(end_ns, net->now_ns + r2_net_pause_ns(net));
    }
    return 0 != lane->connect.connect_id ? R2_NEVER_NS : r2_max(end_ns, lane->connect.retry_ns);
}

/* ---- by state ---- */

static void r2_timer_down(r2_lane_t *lane)
{
    if (!r2_link_is_over(lane->link) && !r2_lane_is_relay(lane) && r2_idle_may_open(lane)) {
        r2_lane_open(lane);
    }
}

static uint64_t r2_down_deadline_ns(const r2_lane_t *lane)
{
    if (r2_lane_is_relay(lane) || lane->link->path.left) {
        return R2_NEVER_NS;
    }
    return R2_LANE_RESTING == lane->state ? r2_idle_deadline_ns(lane) : lane->connect.retry_ns;
}

static uint64_t r2_up_deadline_ns(const r2_lane_t *lane)
{
    uint64_t deadline_ns = r2_lane_expiry_ns(lane);

    if (deadline_ns <= lane->link->net->now_ns) {
        /* expired, in doubt: next look when the silence is long enough for a check */
        deadline_ns = lane->link->net->now_ns + r2_lane_timeout_ns(lane) / 2;
    }
    deadline_ns = r2_min(deadline_ns, r2_min(r2_lane_gap_due_ns(lane), r2_idle_deadline_ns(lane)));
    return r2_min(deadline_ns, r2_lane_trial_ns(lane));
}

/* Soon, so that it is seen whether this process comes late. */
static uint64_t r2_suspect_deadline_ns(const r2_lane_t *lane)
{
    return lane->link->net->now_ns + r2_net_pause_ns(lane->link->net);
}

/* A connect request has a timeout of its own. */
static void r2_timer_none(r2_lane_t *lane)
{
    (void) lane;
}

static uint64_t r2_never_deadline_ns(const r2_lane_t *lane)
{
    (void) lane;
    return R2_NEVER_NS;
}

const r2_lane_state_info_t r2_lane_states[] = {
    [R2_LANE_DOWN] = {"down", R2_LANE_DOWN, R2_GRADE_NONE, false, R2_LANE_DOWN, R2_LANE_DOWN,
                      r2_timer_down, r2_down_deadline_ns},
    [R2_LANE_RESTING] = {"resting", R2_LANE_DOWN, R2_GRADE_NONE, false, R2_LANE_RESTING,
                         R2_LANE_RESTING, r2_timer_down, r2_down_deadline_ns},
    [R2_LANE_CONNECTING] = {"connecting", R2_LANE_CONNECTING, R2_GRADE_OPENING, false,
                            R2_LANE_CONNECTING, R2_LANE_CONNECTING, r2_timer_none,
                            r2_never_deadline_ns},
    [R2_LANE_WIRING] = {"wiring", R2_LANE_WIRING, R2_GRADE_OPENING, false, R2_LANE_WIRING,
                        R2_LANE_WIRING, r2_timer_wiring, r2_wiring_deadline_ns},
    [R2_LANE_UP] = {"up", R2_LANE_UP, R2_GRADE_SOUND, true, R2_LANE_DOUBT, R2_LANE_UP, r2_timer_up,
                    r2_up_deadline_ns},
    [R2_LANE_DOUBT] = {"in doubt", R2_LANE_UP, R2_GRADE_DOUBT, true, R2_LANE_DOUBT, R2_LANE_UP,
                       r2_timer_up, r2_up_deadline_ns},
    [R2_LANE_SUSPECT] = {"suspect", R2_LANE_SUSPECT, R2_GRADE_SUSPECT, false, R2_LANE_SUSPECT,
                         R2_LANE_UP, r2_timer_suspect, r2_suspect_deadline_ns},
};

void r2_lane_timer(r2_lane_t *lane)
{
    if (lane->link->net->now_ns >= r2_idle_judged_ns(lane)) {
        r2_idle_judge_late(lane);
    }
    r2_lane_states[lane->state].timer(lane);
}

uint64_t r2_lane_deadline_ns(const r2_lane_t *lane)
{
    uint64_t deadline_ns = r2_lane_states[lane->state].deadline_ns(lane);

    if (r2_lane_owes_ack(lane)) {
        deadline_ns = r2_min(deadline_ns, lane->rx.ack_due_ns);
    }
    return r2_min(deadline_ns, r2_idle_judged_ns(lane));
}
