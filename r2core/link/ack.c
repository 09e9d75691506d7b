/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Acknowledgements: what the peer has, and when to say what this side has.
 */
#include "r2_config.h"

#include "link/direct.h"
#include "link/tx.h"

#include <utlist.h>

/*
 * Who waits for data and comes back at once need not acknowledge every packet while more of them
 * come in: so many may wait, for so long at most.
 */
#define R2_ACK_HOLD_PACKETS 4u
#define R2_ACK_HOLD_NS      (200 * R2_NS_PER_US)

static bool r2_ack_may_wait(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;
    uint64_t since_ns = lane->rx.ack_due_ns - net->params->ack_delay_us * R2_NS_PER_US;

    return net->staying && net->heard && lane->rx.ack_count < R2_ACK_HOLD_PACKETS &&
           net->now_ns < since_ns + R2_ACK_HOLD_NS;
}

void r2_ack_flush(r2_link_t *link)
{
    r2_net_t *net = link->net;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (!r2_lane_owes_ack(lane) || lane->failed) {
            continue;
        }
        if (R2_ACK_NOW == lane->rx.ack && r2_ack_may_wait(lane)) {
            net->acks_held = true;
        } else if (R2_ACK_NOW == lane->rx.ack || net->now_ns >= lane->rx.ack_due_ns) {
            if (R2_OK == r2_tx_unsequenced(lane, R2_WIRE_ACK)) {
                ++net->counters->tx_acks;
            } else {
                lane->rx.ack = r2_min(lane->rx.ack, R2_ACK_LATER);
                lane->rx.ack_due_ns = net->now_ns + net->params->ack_delay_us * R2_NS_PER_US;
            }
        }
    }
}

static void r2_lane_ack_now(r2_lane_t *lane)
{
    if (r2_lane_owes_ack(lane) && !lane->failed && R2_OK == r2_tx_unsequenced(lane, R2_WIRE_ACK)) {
        ++lane->link->net->counters->tx_acks;
    }
}

void r2_net_ack_last(r2_net_t *net)
{
    r2_link_t *link;

    DL_FOREACH(net->active, link) {
        for (uint32_t i = 0; i < link->lane_count; ++i) {
            r2_lane_ack_now(&link->lanes[i]);
        }
    }
}

static bool r2_ack_covers(const r2_wire_header_t *header, uint32_t lane_seq)
{
    uint32_t ahead = lane_seq - header->ack_next;

    if (r2_seq_lt(lane_seq, header->ack_next)) {
        return true;
    }
    return ahead > 0 && ahead <= R2_ACK_WINDOW && 0 != (header->ack_bits & (1u << (ahead - 1)));
}

/* Lanes keep order: a packet that is passed over was lost, and its lane with it (lane_timer.c). */
static void r2_ack_note_gap(r2_lane_t *lane, uint32_t newest_seq)
{
    const r2_packet_t *first = lane->tx.in_flight;

    if (NULL == first || !r2_seq_lt(first->header.lane_seq, newest_seq)) {
        lane->tx.gap_ns = 0;
    } else if (0 == lane->tx.gap_ns || first->header.lane_seq != lane->tx.gap_seq) {
        lane->tx.gap_ns = lane->link->net->now_ns;
        lane->tx.gap_seq = first->header.lane_seq;
    }
}

/* A lane that a verdict is against stays in doubt whatever it answers. */
static void r2_lane_answers(r2_lane_t *lane)
{
    r2_lane_state_t state = r2_lane_states[lane->state].on_ack;

    if (0 != lane->timing.barred_ns) {
        state = r2_lane_states[state].on_silence;
    }
    r2_lane_enter(lane, state);
}

void r2_ack_received(r2_lane_t *lane, const r2_wire_header_t *header)
{
    r2_net_t *net = lane->link->net;
    r2_packet_t *packet, *next;
    uint64_t newest_ns = 0, oldest_ns = net->now_ns, acked_bytes = 0, took_ns;
    uint32_t newest_seq = 0;
    bool in_doubt = r2_lane_is_silent(lane); /* then the time says nothing of the lane (Karn) */
    const bool suspect = R2_LANE_SUSPECT == lane->state;

    if (r2_seq_lt(lane->tx.seq, header->ack_next)) {
        return; /* acknowledges what was never sent: a confused or hostile peer */
    }
    r2_direct_acked(lane, header->ack_next);
    DL_FOREACH_SAFE(lane->tx.in_flight, packet, next) {
        if (!r2_seq_lt(packet->header.lane_seq, header->ack_next + R2_ACK_WINDOW + 1)) {
            break;
        }
        if (r2_ack_covers(header, packet->header.lane_seq)) {
            newest_ns = r2_max(newest_ns, packet->sent_ns);
            oldest_ns = r2_min(oldest_ns, packet->sent_ns);
            newest_seq = packet->header.lane_seq;
            acked_bytes += packet->bytes;
            r2_tx_packet_settle(packet, true);
        }
    }
    if (0 == acked_bytes) {
        return;
    }
    r2_ack_note_gap(lane, newest_seq);
    r2_rates_acked(lane, acked_bytes, oldest_ns);
    took_ns = net->now_ns - oldest_ns;
    took_ns -= r2_min(took_ns, (uint64_t) header->ack_held_us * R2_NS_PER_US);
    r2_delivery_acked(lane, acked_bytes, in_doubt ? 0 : took_ns);
    if (0 != lane->timing.barred_ns && net->now_ns >= lane->timing.barred_ns) {
        lane->timing.barred_ns = 0;
        r2_lane_tell(lane, R2_LANE_EVENT_UP, R2_OK); /* whatever was found against it, it works */
    }
    lane->timing.grace_used = false;
    lane->timing.base_ns = lane->timing.delivered_ns = net->now_ns;
    lane->timing.absences = 0;
    if (suspect) {
        r2_rates_late(lane, acked_bytes, oldest_ns);
    }
    r2_lane_answers(lane);
    if (!in_doubt && net->now_ns >= newest_ns + (uint64_t) header->ack_held_us * R2_NS_PER_US) {
        r2_rtt_sample(lane, net->now_ns - newest_ns - (uint64_t) header->ack_held_us * R2_NS_PER_US,
                      acked_bytes);
    }
    if (suspect) {
        lane->tx.window_bytes =
            r2_min(lane->tx.window_bytes, (uint64_t) net->params->window_min_bytes);
    }
}
