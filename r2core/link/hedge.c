/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hedges: chunks that are sent again while their first copy may still arrive.
 */
#include "r2_config.h"

#include "link/tx.h"

#include <utlist.h>

/* What is under way for so many ack_delay_us is not just acknowledged late. */
#define R2_TAIL_DELAYS 2u
/* A chunk of the tail is sent again where that takes so many times less than to wait for it. */
#define R2_TAIL_TIMES 2u

bool r2_lane_carries(const r2_lane_t *lane, const r2_tx_item_t *item)
{
    r2_packet_t *packet;

    if (0 == item->in_flight) {
        return false;
    }
    DL_FOREACH(lane->tx.in_flight, packet) {
        if (packet->item == item) {
            return true;
        }
    }
    return false;
}

/* True if a lane is up that has not come in doubt: then doubtful ones get nothing new. */
bool r2_tx_has_sound_lane(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_is_sound(&link->lanes[i])) {
            return true;
        }
    }
    return false;
}

/* True if a lane that is not in doubt has a copy of the item under way. */
static bool r2_tx_soundly_carried(const r2_link_t *link, const r2_tx_item_t *item)
{
    for (uint32_t i = 0; item->in_flight > 1 && i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (R2_GRADE_SOUND == r2_lane_grade(lane) && r2_lane_carries(lane, item)) {
            return true;
        }
    }
    return false;
}

void r2_tx_hedge(r2_lane_t *lane)
{
    r2_packet_t *packet;

    r2_lane_enter(lane, r2_lane_states[lane->state].on_silence);
    DL_FOREACH(lane->tx.in_flight, packet) {
        if (!r2_tx_soundly_carried(lane->link, packet->item)) {
            r2_tx_requeue(lane->link, packet->item);
        }
    }
}

/* ---- the tail of a message ---- */

/*
 * When nothing waits for a lane any more, a call ends with what the slowest one has in flight. A
 * lane that is idle sends it again if that is faster; whichever copy comes second is a duplicate.
 */

static uint64_t r2_tail_since_ns(const r2_lane_t *lane)
{
    return r2_max(lane->tx.in_flight->sent_ns, lane->timing.base_ns);
}

/* How long a lane works on so many bytes; 0: not known. */
static uint64_t r2_tail_work_ns(const r2_lane_t *lane, uint64_t bytes)
{
    return 0 == lane->tx.load.bytes_per_s ? 0 : bytes * R2_NS_PER_S / lane->tx.load.bytes_per_s;
}

/* How long it will take yet for a lane to deliver its first `bytes` in flight; overdue: as long
 * again. */
static uint64_t r2_tail_left_ns(const r2_lane_t *lane, uint64_t bytes)
{
    uint64_t now_ns = lane->link->net->now_ns, since_ns = r2_tail_since_ns(lane);
    uint64_t due_ns = since_ns + r2_tail_work_ns(lane, bytes);

    return due_ns > now_ns ? due_ns - now_ns : now_ns - since_ns;
}

/* The idle lane that would deliver first, if any would. */
static r2_lane_t *r2_tail_idle_lane(r2_link_t *link, uint64_t bytes, uint64_t *cost_ns_p)
{
    r2_lane_t *best = NULL;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];
        uint64_t cost_ns = lane->timing.srtt_ns + r2_tail_work_ns(lane, bytes);

        if (r2_lane_is_idle(lane) && !r2_lane_is_relay(lane) && 0 != lane->timing.srtt_ns &&
            (NULL == best || cost_ns < *cost_ns_p)) {
            best = lane;
            *cost_ns_p = cost_ns;
        }
    }
    return best;
}

/* A chunk that has no second copy, and may have one: of one that was put the receiver would have to
 * close the lane, and one in memory of a GPU might have to be fetched for it. */
static bool r2_tail_is_single(const r2_packet_t *packet)
{
    const r2_tx_item_t *item = packet->item;

    return (R2_WIRE_DATA == item->kind || R2_WIRE_RELAY == item->kind) && !item->acked &&
           !item->queued && 1 == item->in_flight && 0 == item->puts && !r2_tx_is_on_gpu(item);
}

/* The first chunk of a lane that may be sent again; NULL: none, or the peer pauses altogether. */
static const r2_packet_t *r2_tail_first(const r2_lane_t *lane)
{
    const r2_packet_t *packet;

    if (!r2_lane_may_send(lane) || r2_lane_is_relay(lane)) {
        return NULL;
    }
    DL_FOREACH(lane->tx.in_flight, packet) {
        if (r2_tail_is_single(packet)) {
            return lane->link->path.last_rx_ns > packet->sent_ns ? packet : NULL;
        }
    }
    return NULL;
}

static uint64_t r2_tail_due_ns(const r2_lane_t *lane)
{
    return r2_tail_since_ns(lane) +
           R2_TAIL_DELAYS * lane->link->net->params->ack_delay_us * R2_NS_PER_US;
}

static bool r2_tail_begun(const r2_link_t *link)
{
    return link->tx.in_flight_packets > 0 && NULL == link->tx.queue &&
           NULL == link->tx.retransmit && NULL == link->tx.control && NULL == link->tx.relayed;
}

static void r2_tail_of(r2_lane_t *lane)
{
    uint64_t ahead_bytes = 0, cost_ns = 0;
    r2_packet_t *packet;
    r2_lane_t *idle;

    DL_FOREACH(lane->tx.in_flight, packet) {
        ahead_bytes += packet->bytes;
        if (!r2_tail_is_single(packet)) {
            continue;
        }
        idle = r2_tail_idle_lane(lane->link, packet->bytes, &cost_ns);
        if (NULL == idle) {
            return;
        }
        if (r2_tail_left_ns(lane, ahead_bytes) > R2_TAIL_TIMES * cost_ns &&
            !r2_tx_send(idle, packet->item, true)) {
            return;
        }
    }
}

void r2_tx_hedge_tail(r2_link_t *link)
{
    if (!r2_tail_begun(link)) {
        return;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (NULL != lane->tx.in_flight && link->net->now_ns >= r2_tail_due_ns(lane) &&
            NULL != r2_tail_first(lane)) {
            r2_tail_of(lane);
        }
    }
}

uint64_t r2_tx_tail_deadline_ns(const r2_link_t *link)
{
    uint64_t now_ns = link->net->now_ns, deadline_ns = R2_NEVER_NS;
    bool idle = false;

    if (!r2_tail_begun(link)) {
        return R2_NEVER_NS;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        idle = idle || (r2_lane_is_idle(lane) && !r2_lane_is_relay(lane));
        if (NULL != lane->tx.in_flight && NULL != r2_tail_first(lane)) {
            deadline_ns = r2_min(deadline_ns, r2_tail_due_ns(lane));
        }
    }
    if (!idle || R2_NEVER_NS == deadline_ns) {
        return R2_NEVER_NS;
    }
    /* due, and not worth it so far */
    return deadline_ns > now_ns ? deadline_ns
                                : now_ns + link->net->params->ack_delay_us * R2_NS_PER_US;
}
