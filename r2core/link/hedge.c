/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hedges: chunks that are sent again while their first copy may still arrive.
 */
#include "r2_config.h"

#include "link/tx.h"

#include <utlist.h>

bool r2_lane_carries(const r2_lane_t *lane, const r2_tx_item_t *item)
{
    r2_packet_t *packet;

    if (0 == item->in_flight) {
        return false;
    }
    DL_FOREACH(lane->in_flight, packet)
    {
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
        const r2_lane_t *lane = &link->lanes[i];

        if (R2_LANE_UP == lane->state && !lane->failed && !lane->hedged) {
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

        if (R2_LANE_UP == lane->state && !lane->hedged && r2_lane_carries(lane, item)) {
            return true;
        }
    }
    return false;
}

void r2_tx_hedge(r2_lane_t *lane)
{
    r2_packet_t *packet;

    lane->hedged = true;
    DL_FOREACH(lane->in_flight, packet)
    {
        if (!r2_tx_soundly_carried(lane->link, packet->item)) {
            r2_tx_requeue(lane->link, packet->item);
        }
    }
}
