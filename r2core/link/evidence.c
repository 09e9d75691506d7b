/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Evidence: what links tell the detector of their lanes and peers.
 */
#include "r2_config.h"

#include "link/state.h"

void r2_lane_tell(const r2_lane_t *lane, r2_lane_event_t event, r2_status_t why)
{
    const r2_net_upcalls_t *upcalls = &lane->link->net->upcalls;

    if (NULL != upcalls->lane && !lane->link->same_host && !r2_lane_is_relay(lane) &&
        !r2_link_is_over(lane->link)) {
        upcalls->lane(upcalls->arg, lane->link->rank, lane->rail->idx, lane->remote_idx, event,
                      why);
    }
}

void r2_link_tell_silence(r2_link_t *link, bool silent)
{
    const r2_net_upcalls_t *upcalls = &link->net->upcalls;

    if (link->path.silent == silent) {
        return;
    }
    link->path.silent = silent;
    if (NULL != upcalls->peer && !r2_link_is_over(link)) {
        upcalls->peer(upcalls->arg, link->rank, silent);
    }
}

static void r2_link_tell_states(r2_link_t *link)
{
    const r2_net_upcalls_t *upcalls = &link->net->upcalls;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (lane->state >= R2_LANE_UP) {
            r2_lane_tell(lane, r2_lane_is_up(lane) ? R2_LANE_EVENT_UP : R2_LANE_EVENT_SUSPECT,
                         lane->why);
        } else if (R2_PAST_UP == lane->connect.past) {
            r2_lane_tell(lane, R2_LANE_EVENT_FAILED, lane->why);
        }
    }
    if (link->path.silent && NULL != upcalls->peer && !link->net->ending) {
        upcalls->peer(upcalls->arg, link->rank, true);
    }
}

void r2_net_tell_states(r2_net_t *net, uint32_t from)
{
    for (uint32_t rank = from; rank < net->size; ++rank) {
        if (NULL != net->links[rank]) {
            r2_link_tell_states(net->links[rank]);
        }
    }
}
