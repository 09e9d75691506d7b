/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Landing: whose memory connections write to, and until when.
 */
/*
 * The memory of a receive is the application's again when its match is dropped, which another lane
 * may cause that brought the same chunk: then the rest of what lands goes on elsewhere.
 */
#include "r2_config.h"

#include "link/rx.h"

void r2_landing_off(r2_link_t *link, const r2_rx_match_t *match)
{
    for (uint32_t i = 0; match->lands && i < link->lane_count; ++i) {
        r2_lane_conn_t *conn = link->lanes[i].conn;

        if (NULL != conn && match == conn->landing) {
            conn->worker->rail->tp->ops->ep_land_off(conn->ep);
            conn->landing = NULL;
        }
    }
}
