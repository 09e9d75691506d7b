/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Presence of a peer: does its process run; without a lane: is it gone, is it stopped, or is there
 * no path to it.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/relay.h"
#include "link/tx.h"

/*
 * What the listener of a lane and the kernel behind it say:
 *
 *   listener   kernel (quiet port)   means
 *   refuses    -                     the process is gone, or something on this way refuses for it
 *   silent     answers               the process is stopped, or its queue is full: no limit
 *   silent     silent                no path here: the limit counts
 *   answers    -                     the process lives; what is wrong is the lane
 *
 * One rail proves nothing about a process. It is gone when all ways say so.
 */

/* In multiples of failure_timeout_ms, as r2_scaled_timeout_ns() takes them. */
/* A process that was heard so long after a refusal had not ended then. */
#define R2_DISPROOF_TIMES 1u
/* Refusals, and for how long, until they are believed: devices made anew refuse for a moment. */
#define R2_REFUSED_MAX   3u
#define R2_REFUSED_TIMES 5u
/* A peer that was heard for so long runs and has read what it was sent, whatever the time since. */
#define R2_HEARD_TIMES 4u
/* From one question to the peer's kernels to the next; an answer holds for two of these. */
#define R2_PROBE_TIMES 20u
/* How long a kernel has for its answer. */
#define R2_KERNEL_TIMES 2u
/* Before the first lane was up: lanes that are opened are no silence yet. */
#define R2_UNWIRED_TIMES 40u
/* For whom others ask is asked after for so long, and for two pauses between their calls. */
#define R2_INQUIRED_TIMES 80u
/* Questions come at least so often within no_path_timeout_ms. */
#define R2_ASKS_PER_LIMIT 4u

static uint64_t r2_link_limit_ns(const r2_link_t *link)
{
    return link->net->params->no_path_timeout_ms * R2_NS_PER_MS;
}

static uint64_t r2_link_probe_pause_ns(const r2_link_t *link)
{
    return r2_min(r2_scaled_timeout_ns(link->net, R2_PROBE_TIMES),
                  r2_link_limit_ns(link) / R2_ASKS_PER_LIMIT);
}

/* When the process itself was last heard, on any way. */
static uint64_t r2_link_alive_ns(const r2_link_t *link)
{
    return r2_max(link->path.last_rx_ns, link->path.spoke_ns);
}

static bool r2_link_disproves(const r2_link_t *link, uint64_t since_ns)
{
    return r2_link_alive_ns(link) > since_ns + r2_scaled_timeout_ns(link->net, R2_DISPROOF_TIMES);
}

void r2_link_inquire(r2_link_t *link)
{
    link->path.inquired = true;
    link->path.inquired_ns = link->net->now_ns;
    r2_link_activate(link);
}

r2_status_t r2_link_ask_after(r2_link_t *link)
{
    if (link->path.left || R2_ERR_PEER_GONE == link->broken) {
        return R2_ERR_PEER_GONE;
    }
    if (r2_link_has_lane(link)) {
        return R2_OK;
    }
    r2_link_inquire(link);
    return R2_ERR_AGAIN;
}

void r2_link_spoke(r2_link_t *link)
{
    link->path.spoke_ns = link->net->now_ns;
}

/* ---- refusals of one lane ---- */

static bool r2_lane_is_disproved(const r2_lane_t *lane)
{
    return lane->connect.disproved || (lane->connect.refused_streak > 0 &&
                                       r2_link_disproves(lane->link, lane->connect.refused_ns));
}

/* A row of refusals ends; that it was proved wrong is kept until the lane is answered. */
static void r2_lane_refusals_end(r2_lane_t *lane)
{
    lane->connect.disproved = r2_lane_is_disproved(lane);
    lane->connect.refused_streak = 0;
}

static bool r2_lane_refuses_long(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    return lane->connect.refused_streak > 0 &&
           net->now_ns - lane->connect.refused_ns >= r2_scaled_timeout_ns(net, R2_REFUSED_TIMES);
}

/* Another process of that host is reached over the same rail: the path is not what refuses. */
static bool r2_lane_has_twin(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    for (uint32_t rank = 0; rank < net->size; ++rank) {
        const r2_link_t *link = net->links[rank];

        if (NULL == link || link->info.host_id != lane->link->info.host_id) {
            continue;
        }
        for (uint32_t i = 0; i < link->lane_count; ++i) {
            if (link->lanes[i].rail == lane->rail && r2_lane_is_up(&link->lanes[i])) {
                return true;
            }
        }
    }
    return false;
}

void r2_lane_refused(r2_lane_t *lane)
{
    lane->connect.refused_since_taken =
        (uint8_t) r2_min(lane->connect.refused_since_taken + 1u, R2_REFUSED_MAX);
    if (1 == ++lane->connect.refused_streak) {
        lane->connect.refused_ns = lane->link->net->now_ns;
    }
    if (lane->connect.refused_streak >= R2_REFUSED_MAX && r2_lane_refuses_long(lane) &&
        r2_lane_is_disproved(lane) && !r2_lane_has_twin(lane)) {
        r2_lane_tell(lane, R2_LANE_EVENT_REFUSED, R2_ERR_REFUSED);
    }
}

bool r2_lane_refusal_counts(const r2_lane_t *lane)
{
    return lane->connect.refused_streak <= 2 * R2_REFUSED_MAX;
}

void r2_lane_unanswered(r2_lane_t *lane, bool taken)
{
    r2_lane_refusals_end(lane);
    lane->connect.refused_since_taken = taken ? 0 : lane->connect.refused_since_taken;
}

void r2_lane_answered(r2_lane_t *lane)
{
    lane->connect.refused_streak = 0;
    lane->connect.refused_since_taken = 0;
    lane->connect.disproved = false;
    r2_link_spoke(lane->link);
    if (!r2_lane_is_relay(lane)) {
        lane->link->path.answered_ns = lane->link->net->now_ns;
    }
}

/* ---- questions to the kernel behind a lane ---- */

bool r2_lane_probe_kernel(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;
    const r2_peer_rail_t *remote = lane->remote;
    r2_status_t status;

    if (NULL == net->probe.ops || link->same_host || r2_lane_is_relay(lane) ||
        !r2_rail_usable(lane->rail) || 0 == remote->probe_bytes) {
        return false;
    }
    if (0 != lane->connect.probe_id) {
        return true;
    }
    lane->connect.probe_id = R2_NET_PROBE | (++net->next_probe & 0x7fffffu) << 40 |
                             (uint64_t) link->rank << 8 | lane->idx;
    lane->connect.probe_ns = net->now_ns;
    status = net->probe.ops->probe(
        net->probe.instance, lane->rail->idx, remote->address, remote->address_bytes, remote->probe,
        remote->probe_bytes, r2_scaled_timeout_ns(net, R2_KERNEL_TIMES), lane->connect.probe_id);
    if (R2_OK != status) {
        lane->connect.probe_id = 0;
        return false;
    }
    ++net->counters->probes_sent;
    return true;
}

void r2_net_probed(r2_net_t *net, uint64_t id, r2_probe_answer_t answer)
{
    const uint32_t rank = (uint32_t) (id >> 8), idx = (uint32_t) (id & 0xff);
    r2_link_t *link = rank < net->size ? net->links[rank] : NULL;
    r2_lane_t *lane = NULL == link || idx >= link->lane_count ? NULL : &link->lanes[idx];

    if (NULL == lane || id != lane->connect.probe_id) {
        return;
    }
    net->now_ns = r2_now_ns(net->clock);
    lane->connect.probe_id = 0;
    if (R2_PROBE_ALIVE == answer) {
        lane->connect.kernel_ns = net->now_ns;
    }
    if (lane->state >= R2_LANE_WIRING && lane->rx.last_ns <= lane->connect.probe_ns) {
        if (R2_PROBE_ALIVE == answer) {
            lane->unreachable = false;
        } else {
            r2_lane_cut_off(lane, lane->connect.probe_ns); /* a check of it was not answered */
        }
    }
    r2_link_activate(link);
}

/* ---- judgement of the process ---- */

/* Out-of-band messages are refused, too, and nothing was heard since. */
static bool r2_link_refused_beside(const r2_link_t *link)
{
    const r2_net_upcalls_t *upcalls = &link->net->upcalls;
    const uint64_t since_ns =
        NULL == upcalls->refused_ns ? 0 : upcalls->refused_ns(upcalls->arg, link->rank);

    return 0 != since_ns && r2_link_alive_ns(link) <= since_ns;
}

/*
 * Refused since the last lane was lost, long enough, and by all that may be asked. A rail of ours
 * that is down and a path that is silent prove nothing: there the refusal of out-of-band messages
 * has to do. A lane that refused while the process was heard elsewhere is no witness.
 */
static bool r2_link_is_refused(const r2_link_t *link)
{
    const r2_net_t *net = link->net;
    bool all = true, witness = false, beside;
    uint32_t refusals = 0;

    if (0 == link->path.lost_ns ||
        net->now_ns - link->path.lost_ns < r2_scaled_timeout_ns(net, R2_REFUSED_TIMES)) {
        return false;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (r2_lane_is_relay(lane)) {
            continue;
        }
        refusals += lane->connect.refused_streak;
        all = all && lane->connect.refused_streak > 0 && r2_rail_usable(lane->rail);
        witness = witness || (r2_lane_refuses_long(lane) && !r2_lane_is_disproved(lane));
    }
    if (refusals < R2_REFUSED_MAX || !(all || witness)) {
        return false;
    }
    beside = r2_link_refused_beside(link);
    return (all && witness) || beside;
}

/*
 * Others say that the process is gone: believed where we have no way to ask for ourselves, and
 * where nothing of it answers.
 */
static bool r2_link_is_gone(const r2_link_t *link)
{
    const r2_net_upcalls_t *upcalls = &link->net->upcalls;

    if (NULL == upcalls->gone ||
        link->net->now_ns - link->path.no_path_ns <
            r2_scaled_timeout_ns(link->net, R2_REFUSED_TIMES) ||
        !upcalls->gone(upcalls->arg, link->rank)) {
        return false;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (!r2_lane_is_relay(&link->lanes[i]) && R2_ERR_UNRESPONSIVE == link->lanes[i].why) {
            return false; /* somebody listens there */
        }
    }
    return true;
}

/*
 * The kernel of the peer answers, on a way on which its process neither refuses nor says a word: it
 * is stopped. Within a host there is one kernel. A process that answers calls now and then, and no
 * lane of which gets through, has a moment after each answer that counts. A way that loses requests
 * and refuses others is no proof: a stopped process listens, until its queue is full.
 */
static bool r2_lane_shows_busy(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    const uint64_t pause_ns = r2_link_probe_pause_ns(link);
    const uint64_t kernel_ns = link->same_host ? link->net->now_ns : lane->connect.kernel_ns;

    return !r2_lane_is_relay(lane) && lane->state < R2_LANE_UP &&
           0 == lane->connect.refused_streak &&
           lane->connect.refused_since_taken < R2_REFUSED_MAX && !lane->connect.disproved &&
           kernel_ns + 2 * pause_ns > link->net->now_ns &&
           kernel_ns > r2_link_alive_ns(link) + pause_ns;
}

bool r2_link_is_busy(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_shows_busy(&link->lanes[i])) {
            return !r2_link_refused_beside(link);
        }
    }
    return false;
}

/* ---- the clock ---- */

/* Who asked for the peer has a way to it: also by a lane that was there, and in doubt. */
static void r2_link_note_way(r2_link_t *link)
{
    const bool asked = link->path.inquired || link->path.owed || 0 != link->path.inquired_ns;

    if (asked && R2_GRADE_SOUND == r2_link_direct_grade(link, NULL)) {
        link->path.inquired = link->path.owed = false;
        link->path.inquired_ns = 0;
    }
}

/* Refusals from before tell whom not to believe, and count no more. */
static void r2_link_note_loss(r2_link_t *link)
{
    if (r2_link_has_lane(link)) {
        link->path.lost_ns = 0;
        return;
    }
    if (0 != link->path.lost_ns) {
        return;
    }
    link->path.lost_ns = r2_max(link->net->now_ns, 1ull);
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_refusals_end(&link->lanes[i]);
        link->lanes[i].connect.refused_since_taken = 0;
    }
}

static uint64_t r2_link_silence_ns(const r2_link_t *link)
{
    return r2_scaled_timeout_ns(link->net, link->path.wired ? 1 : R2_UNWIRED_TIMES);
}

static void r2_link_clock_start(r2_link_t *link)
{
    link->path.no_path_ns = link->path.waited_at_ns = link->net->now_ns;
    link->path.waited_ns = 0;
    link->path.next_probe_ns =
        link->path.no_path_ns +
        r2_min(r2_link_silence_ns(link), r2_link_limit_ns(link) / R2_ASKS_PER_LIMIT);
}

/* Others have asked for the peer of late: they are told if it is stopped. */
static bool r2_link_is_inquired(const r2_link_t *link)
{
    const r2_net_t *net = link->net;

    return R2_OK == link->broken && 0 != link->path.lost_ns && 0 != link->path.inquired_ns &&
           !net->ending &&
           net->now_ns < link->path.inquired_ns + r2_scaled_timeout_ns(net, R2_INQUIRED_TIMES) +
                             2 * net->params->heal_max_ms * R2_NS_PER_MS;
}

static void r2_link_probe_kernels(r2_link_t *link)
{
    const uint64_t now_ns = link->net->now_ns;

    if (now_ns < link->path.next_probe_ns) {
        return;
    }
    link->path.next_probe_ns = now_ns + r2_link_probe_pause_ns(link);
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (link->lanes[i].state < R2_LANE_UP && 0 == link->lanes[i].connect.refused_streak) {
            (void) r2_lane_probe_kernel(&link->lanes[i]);
        }
    }
}

/*
 * Others that would relay say that it is stopped, or nothing at all; and it has not answered a call
 * of ours since: whoever has no descriptors speaks, and opens no lane.
 */
static bool r2_link_is_held_beyond(const r2_link_t *link)
{
    return r2_relay_is_busy(link, link->path.answered_ns) && !r2_link_refused_beside(link);
}

/* Stopped, as seen from here, or where it can be reached through others by those. */
static bool r2_link_is_held(const r2_link_t *link)
{
    return r2_link_is_busy(link) || r2_link_is_held_beyond(link);
}

/* Time in which the peer is known to be stopped, or a lane awaits its turn, does not count. */
static void r2_link_clock_tick(r2_link_t *link)
{
    const uint64_t now_ns = link->net->now_ns;

    if (!r2_link_is_held(link) && !r2_room_awaits_turn(link)) {
        link->path.waited_ns += now_ns - link->path.waited_at_ns;
    }
    link->path.waited_at_ns = now_ns;
    r2_link_probe_kernels(link);
}

void r2_link_presence_timer(r2_link_t *link)
{
    r2_net_t *net = link->net;

    r2_link_note_way(link);
    r2_link_note_loss(link);
    if (R2_OK == link->broken && link->path.inquired && r2_link_is_refused(link) && !net->ending) {
        r2_link_break(link, R2_ERR_PEER_GONE); /* others cannot ask it, and are told */
    }
    if (R2_OK != link->broken || 0 == link->path.lost_ns || !r2_link_wanted(link) ||
        r2_idle_holds(link)) {
        link->path.no_path_ns = 0;
        r2_link_tell_silence(link, false);
        if (r2_link_is_inquired(link)) {
            r2_link_probe_kernels(link);
        }
        return;
    }
    if (0 == link->path.no_path_ns) {
        r2_link_clock_start(link);
    }
    if (net->now_ns - link->path.no_path_ns >= r2_link_silence_ns(link) &&
        !r2_idle_is_short(link)) {
        r2_link_tell_silence(link, true);
    }
    r2_link_clock_tick(link);
    if (r2_link_is_refused(link) || r2_link_is_gone(link)) {
        r2_link_break(link, R2_ERR_PEER_GONE);
    } else if (link->path.waited_ns > r2_link_limit_ns(link)) {
        r2_link_break(link, R2_ERR_NO_PATH);
    }
}

uint64_t r2_link_presence_deadline_ns(const r2_link_t *link)
{
    uint64_t deadline_ns = R2_NEVER_NS;

    if (0 == link->path.no_path_ns) {
        return r2_link_is_inquired(link) ? r2_max(link->path.next_probe_ns, link->net->now_ns + 1)
                                         : deadline_ns;
    }
    if (!link->path.silent && !r2_idle_is_short(link)) {
        deadline_ns = link->path.no_path_ns + r2_link_silence_ns(link);
    }
    deadline_ns = r2_min(deadline_ns, link->path.next_probe_ns);
    return r2_min(deadline_ns, link->path.waited_at_ns + 1 +
                                   (r2_link_limit_ns(link) -
                                    r2_min(r2_link_limit_ns(link), link->path.waited_ns)));
}

/* A peer that has said little may be stopped, or just back, with what it was sent unread. */
bool r2_lane_peer_runs(const r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    const r2_net_t *net = link->net;
    const uint64_t part_ns =
        r2_clamp_u64((net->now_ns - r2_lane_since_ns(lane)) / 2, r2_net_pause_ns(net),
                     r2_scaled_timeout_ns(net, R2_HEARD_TIMES));

    if (link->path.heard_ns - lane->heard_ns >= part_ns && r2_unread_told_ns(lane) >= part_ns) {
        return true;
    }
    if (net->now_ns - link->path.last_rx_ns >= r2_net_pause_ns(net) &&
        0 == link->tx.unsettled[R2_WIRE_PING]) {
        (void) r2_tx_control(link, R2_WIRE_PING, NULL, 0);
    }
    return false;
}

/*
 * Over RDMA calls and data go different ways: that the calls for a lane are answered proves nothing
 * of the other one. Where the lane was not up before, that is no failure of it, and is told.
 */
void r2_lane_unproved(r2_lane_t *lane)
{
    if (R2_LANE_WIRING != lane->state || !(lane->connect.renewed || lane->is_rdma) ||
        !r2_lane_peer_runs(lane)) {
        return;
    }
    lane->connect.unproved = (uint8_t) r2_min(lane->connect.unproved + 1u, R2_UNPROVED_MAX);
    if (!lane->connect.renewed && R2_UNPROVED_MAX == lane->connect.unproved) {
        r2_lane_tell(lane, R2_LANE_EVENT_MUTE, R2_ERR_TIMEOUT);
    }
}
