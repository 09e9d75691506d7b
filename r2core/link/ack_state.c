/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a lane has received: duplicates, and what each header acknowledges.
 */
#include "r2_config.h"

#include "link/tx.h"

/* Packets that are acknowledged alone although nobody waits, to bound the sender's memory. */
#define R2_ACK_AFTER_PACKETS 16u

bool r2_ack_is_duplicate(const r2_lane_t *lane, uint32_t lane_seq)
{
    uint32_t ahead = lane_seq - lane->rx.next;

    if (r2_seq_lt(lane_seq, lane->rx.next)) {
        return true;
    }
    return ahead > 0 && ahead <= R2_ACK_WINDOW && 0 != (lane->rx.bits & (1u << (ahead - 1)));
}

void r2_ack_note(r2_lane_t *lane, const r2_wire_header_t *header)
{
    r2_net_t *net = lane->link->net;
    uint32_t ahead = header->lane_seq - lane->rx.next;
    bool now = 0 != (header->flags & R2_WIRE_ACK_NOW);

    if (r2_seq_lt(header->lane_seq, lane->rx.next)) {
        now = true;
    } else if (0 == ahead) {
        ++lane->rx.next;
        while (0 != (lane->rx.bits & 1)) {
            lane->rx.bits >>= 1;
            ++lane->rx.next;
        }
        lane->rx.bits >>= 1;
    } else if (ahead <= R2_ACK_WINDOW) {
        lane->rx.bits |= 1u << (ahead - 1);
        now = true;
    }
    lane->rx.newest_ns = net->now_ns;
    if (R2_ACK_NONE == lane->rx.ack) {
        lane->rx.ack = R2_ACK_LATER;
        lane->rx.ack_due_ns = net->now_ns + net->params->ack_delay_us * R2_NS_PER_US;
    }
    if (++lane->rx.ack_count >= R2_ACK_AFTER_PACKETS || now) {
        lane->rx.ack = R2_ACK_NOW;
    }
    r2_link_activate(lane->link);
}

void r2_ack_hurry(r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        lane->rx.ack = R2_ACK_LATER == lane->rx.ack ? R2_ACK_NOW : lane->rx.ack;
    }
}

void r2_ack_fill(const r2_lane_t *lane, r2_wire_header_t *header)
{
    header->ack_next = lane->rx.next;
    header->ack_bits = lane->rx.bits;
    if (R2_ACK_NONE != lane->rx.ack) {
        uint64_t held_ns = lane->link->net->now_ns - lane->rx.newest_ns;

        header->ack_held_us = (uint32_t) r2_min(held_ns / R2_NS_PER_US, (uint64_t) UINT32_MAX);
    }
}

void r2_ack_sent(r2_lane_t *lane)
{
    lane->rx.ack = R2_ACK_NONE;
    lane->rx.ack_count = 0;
}
