/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives that are given up while peers may write to their memory.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/place.h"

#include <utlist.h>

/*
 * Closes the lanes that may still write there: their ends give back what was granted to them. They
 * are closed for what they hold, and none of those that were well counts as failed.
 */
static void r2_place_close_lanes(r2_link_t *link, const r2_place_t *place)
{
    for (uint32_t i = 0; i < link->lane_count && i < R2_RAILS_MAX; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (NULL == place->lanes[i].grant) {
            continue;
        }
        r2_assert(!link->net->in_callback);
        if (lane->failed) {
            r2_lane_fence(lane, lane->why, true);
        } else {
            r2_idle_renew(lane);
        }
    }
}

void r2_place_drop(r2_link_t *link, r2_rx_match_t *match)
{
    r2_place_t *place = match->place;

    if (NULL != place) {
        r2_place_close_lanes(link, place);
        r2_place_free(link, place);
        match->place = NULL;
    }
}

void r2_place_withdraw(r2_link_t *link, uint64_t comm_key)
{
    r2_place_t *place, *next;

    DL_FOREACH_SAFE(link->rx.places, place, next) {
        if (place->held_back && place->comm_key == comm_key) {
            place->held_back = false; /* it is freed here */
            r2_place_close_lanes(link, place);
            r2_place_free(link, place);
            next = link->rx.places; /* others may be gone, too */
        }
    }
}
