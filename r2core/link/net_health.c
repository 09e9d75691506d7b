/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The net as the detector uses it: notices, what it asks, what it tells of rails and peers.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/tx.h"

r2_status_t r2_net_notice(r2_net_t *net, uint32_t rank, const void *data, size_t bytes, bool create)
{
    r2_link_t *link;
    r2_status_t status;

    if (0 == bytes || bytes > R2_NOTICE_BYTES_MAX || rank >= net->size || rank == net->rank) {
        return R2_ERR_PARAM;
    }
    if (NULL == net->links[rank] && !create) {
        return R2_ERR_NO_PATH;
    }
    status = r2_net_link(net, rank, &link);
    if (R2_OK != status) {
        return status;
    }
    if (!(r2_link_has_lane(link) || (create && r2_idle_is_resting(link))) ||
        !r2_tx_control(link, R2_WIRE_NOTICE, data, (uint32_t) bytes)) {
        return R2_ERR_NO_PATH; /* its own protocol repeats it */
    }
    return R2_OK;
}

/*
 * Probes are new connections: a firewall that lets none through leaves alone what stands. So a lane
 * that is up is asked itself before it is given up. It is in doubt meanwhile, and for as long as a
 * new one would not be tried: it gets nothing while there are others, and what it carries goes by
 * them, too. Until it answers it is no path. When it answers after that time, the rail is said to
 * work, as by a new lane. One of a stopped process waits without limit.
 */
static bool r2_lane_asks_itself(r2_lane_t *lane, uint64_t retry_ns)
{
    if (r2_link_is_over(lane->link)) { /* nobody would answer, and nobody waits for it */
        return false;
    }
    if (lane->failed) { /* the progress pass ends it, and finds out whether it was closed */
        lane->timing.barred_ns = r2_max(lane->timing.barred_ns, retry_ns);
        r2_link_activate(lane->link);
        return true;
    }
    if (R2_LANE_WIRING == lane->state && r2_rail_usable(lane->rail)) {
        r2_lane_cut_off(lane, 0); /* HELLO asks; its answer may lie here since we were stopped */
        lane->timing.barred_ns = r2_max(lane->timing.barred_ns, retry_ns);
        return true;
    }
    if (R2_LANE_SUSPECT == lane->state) {
        lane->timing.barred_ns = r2_max(lane->timing.barred_ns, retry_ns);
        return true; /* its time runs */
    }
    if (!r2_lane_may_send(lane) || !r2_rail_usable(lane->rail)) {
        return false;
    }
    if (NULL == lane->tx.in_flight && !r2_lane_ping(lane) && lane->failed) {
        return false; /* else there was no memory for the question: later (r2_lane_trial_ns()) */
    }
    if (R2_LANE_UP == lane->state) {
        lane->timing.doubt_ns = lane->link->net->now_ns;
    }
    r2_lane_cut_off(lane, lane->link->net->now_ns);
    lane->timing.barred_ns = r2_max(lane->timing.barred_ns, retry_ns);
    r2_tx_hedge(lane);
    r2_link_activate(lane->link);
    return true;
}

static void r2_lane_hear(r2_lane_t *lane, bool dead, uint64_t retry_ns)
{
    if (dead) {
        if (r2_lane_asks_itself(lane, retry_ns)) {
            return;
        }
        if (!r2_lane_is_down(lane)) {
            r2_lane_fence(lane, R2_ERR_RAIL_DOWN, true);
        }
        /* else it is the only path, or may be: tried as soon as ever */
        if (r2_link_has_lane(lane->link)) {
            lane->connect.retry_ns = r2_max(lane->connect.retry_ns, retry_ns);
        }
        return;
    }
    lane->timing.barred_ns = 0;
    if (r2_lane_is_cleared(lane)) {
        r2_lane_enter(lane, R2_LANE_UP);
    }
    if (R2_LANE_CONNECTING == lane->state) {
        /* from before the repair: its next try may be far off */
        (void) r2_lane_withdraw_call(lane);
    }
    if (r2_lane_is_down(lane)) {
        lane->connect.retry_ns = lane->link->net->now_ns;
        r2_link_activate(lane->link);
    }
}

static const r2_lane_t *r2_link_lane_of(const r2_link_t *link, uint32_t peer_rail_idx)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (link->lanes[i].remote_idx == peer_rail_idx) {
            return &link->lanes[i];
        }
    }
    return NULL;
}

r2_status_t r2_net_way(r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx, r2_peer_info_t *info_p,
                       uint32_t *rail_idx_p)
{
    const r2_lane_t *lane;
    r2_peer_info_t info;

    if (rank >= net->size || rank == net->rank || R2_OK != r2_net_lookup(net, rank, &info)) {
        return R2_ERR_NOT_FOUND;
    }
    if (info.host_id == net->info.host_id || peer_rail_idx >= info.rail_count) {
        r2_peer_info_put(&info);
        return R2_ERR_NOT_FOUND;
    }
    /* not paired yet: equal indices are one plane, normally */
    *rail_idx_p = peer_rail_idx;
    if (NULL != net->links[rank]) {
        lane = r2_link_lane_of(net->links[rank], peer_rail_idx);
        *rail_idx_p = NULL == lane ? UINT32_MAX : lane->rail->idx;
    }
    if (*rail_idx_p >= net->rail_count) {
        r2_peer_info_put(&info);
        return R2_ERR_NO_PATH;
    }
    *info_p = info;
    return R2_OK;
}

uint64_t r2_net_delivered_ns(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx)
{
    const r2_link_t *link = rank < net->size ? net->links[rank] : NULL;
    const r2_lane_t *lane = NULL == link ? NULL : r2_link_lane_of(link, peer_rail_idx);

    return NULL == lane ? 0 : lane->timing.delivered_ns;
}

static void r2_lane_ask(r2_lane_t *lane)
{
    if (NULL == lane->tx.in_flight && r2_control_may(lane->link, R2_WIRE_PING)) {
        (void) r2_lane_ping(lane);
        r2_link_activate(lane->link);
    }
}

bool r2_net_ask(r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx)
{
    r2_link_t *link = rank < net->size ? net->links[rank] : NULL;
    r2_lane_t *lane =
        NULL == link ? NULL : (r2_lane_t *) (uintptr_t) r2_link_lane_of(link, peer_rail_idx);

    if (NULL == lane || lane->state < R2_LANE_UP) {
        return false;
    }
    r2_lane_ask(lane);
    if (NULL == lane->tx.in_flight) {
        return false; /* there was no room for the question */
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (&link->lanes[i] != lane && r2_lane_is_sound(&link->lanes[i])) {
            r2_lane_ask(&link->lanes[i]);
            break;
        }
    }
    return true;
}

uint64_t r2_net_connection(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx)
{
    const r2_link_t *link = rank < net->size ? net->links[rank] : NULL;
    const r2_lane_t *lane = NULL == link ? NULL : r2_link_lane_of(link, peer_rail_idx);

    return NULL == lane || lane->state < R2_LANE_UP ? 0 : lane->connect.rx_connection;
}

uint64_t r2_net_delivered_beside_ns(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx)
{
    const r2_link_t *link = rank < net->size ? net->links[rank] : NULL;
    uint64_t newest_ns = 0;

    for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
        if (link->lanes[i].remote_idx != peer_rail_idx) {
            newest_ns = r2_max(newest_ns, link->lanes[i].timing.delivered_ns);
        }
    }
    return newest_ns;
}

static bool r2_lane_is_mute(const r2_lane_t *lane)
{
    if (!lane->is_rdma || lane->state >= R2_LANE_UP) {
        return false;
    }
    return R2_LANE_WIRING == lane->state ||
           (R2_LANE_RESTING != lane->state && lane->connect.failures > 0);
}

bool r2_net_is_mute(const r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx)
{
    const r2_link_t *link = rank < net->size ? net->links[rank] : NULL;
    const r2_lane_t *lane = NULL == link ? NULL : r2_link_lane_of(link, peer_rail_idx);

    return NULL != lane && r2_lane_is_mute(lane);
}

bool r2_net_is_own_mute(const r2_net_t *net, uint32_t rail_idx)
{
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        const r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
            if (link->lanes[i].rail->idx == rail_idx && r2_lane_is_mute(&link->lanes[i])) {
                return true;
            }
        }
    }
    return false;
}

static uint64_t r2_link_round_trip_ns(const r2_link_t *link, uint32_t rail_idx)
{
    for (uint32_t i = 0; !link->same_host && i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (lane->rail->idx == rail_idx && r2_lane_is_up(lane) && !r2_lane_is_relay(lane)) {
            return lane->timing.calm_rtt_ns;
        }
    }
    return 0;
}

uint64_t r2_net_round_trip_ns(const r2_net_t *net, uint32_t rail_idx)
{
    uint64_t least_ns = 0;

    for (uint32_t rank = 0; rank < net->size; ++rank) {
        const uint64_t ns =
            NULL == net->links[rank] ? 0 : r2_link_round_trip_ns(net->links[rank], rail_idx);

        if (0 != ns && (0 == least_ns || ns < least_ns)) {
            least_ns = ns;
        }
    }
    return least_ns;
}

void r2_net_peer_rail(r2_net_t *net, uint32_t rank, uint32_t peer_rail_idx, bool dead,
                      uint64_t retry_ns)
{
    r2_link_t *link = net->links[rank];

    net->now_ns = r2_now_ns(net->clock);
    for (uint32_t i = 0; NULL != link && !link->same_host && i < link->lane_count; ++i) {
        if (link->lanes[i].remote_idx == peer_rail_idx) {
            r2_lane_hear(&link->lanes[i], dead, retry_ns);
        }
    }
}

void r2_net_own_rail(r2_net_t *net, uint32_t rail_idx, bool dead, uint64_t retry_ns)
{
    net->now_ns = r2_now_ns(net->clock);
    if (rail_idx < net->rail_count) {
        r2_rail_t *rail = &net->rails[rail_idx];

        rail->shut_ns = dead ? r2_max(rail->shut_ns, retry_ns) : 0;
    }
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && !link->same_host && i < link->lane_count; ++i) {
            if (link->lanes[i].rail->idx == rail_idx) {
                r2_lane_hear(&link->lanes[i], dead, retry_ns);
            }
        }
    }
}

bool r2_net_reaches(const r2_net_t *net, uint32_t rank)
{
    const r2_link_t *link = net->links[rank];

    return NULL != link && r2_link_has_lane(link);
}

void r2_net_heard(r2_net_t *net, uint32_t rank)
{
    if (rank < net->size && NULL != net->links[rank]) {
        r2_link_spoke(net->links[rank]);
    }
}

void r2_net_check_peer(r2_net_t *net, uint32_t rank)
{
    r2_link_t *link = rank < net->size ? net->links[rank] : NULL;

    for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (lane->state >= R2_LANE_UP) {
            r2_lane_open(lane); /* a question: a host without that process refuses it */
        } else {
            r2_idle_wake(lane);
            lane->connect.retry_ns = net->now_ns;
        }
        r2_link_activate(link);
    }
}

void r2_net_rail_event(r2_net_t *net, size_t rail_idx, bool carrier)
{
    r2_rail_t *rail = &net->rails[rail_idx];

    net->now_ns = r2_now_ns(net->clock);
    if (rail->nic.carrier == carrier) {
        return;
    }
    rail->nic.carrier = carrier;
    net->counters->carrier_losses += carrier ? 0 : 1;
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];

            if (lane->rail != rail) {
                continue;
            }
            if (carrier) {
                lane->connect.retry_ns = net->now_ns;
                r2_link_activate(link);
            } else if (!r2_lane_is_down(lane)) {
                r2_lane_fence(lane, R2_ERR_RAIL_DOWN, true);
            }
        }
    }
}

void r2_net_rail_changes(r2_net_t *net, size_t rail_idx)
{
    r2_rail_t *rail = &net->rails[rail_idx];

    net->now_ns = r2_now_ns(net->clock);
    if (rail->nic.rdma_lost) {
        r2_rail_lost(rail);
    }
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];
            const r2_lane_conn_t *conn = NULL != lane->conn ? lane->conn : lane->connect.call;

            if (lane->rail == rail && lane->connect.can_rdma && !r2_lane_is_down(lane) &&
                NULL != conn && conn->worker->is_rdma != r2_lane_wants_rdma(lane)) {
                r2_lane_fence(lane, R2_ERR_RAIL_DOWN, true);
                lane->connect.retry_ns = net->now_ns;
            }
        }
    }
}

void r2_net_rail_moved(r2_net_t *net, size_t rail_idx)
{
    r2_rail_t *rail = &net->rails[rail_idx];
    const int gid_index = r2_rail_gid_index(rail);

    net->now_ns = r2_now_ns(net->clock);
    r2_rail_moved(rail, gid_index);
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];
            const r2_lane_conn_t *conn = NULL != lane->conn ? lane->conn : lane->connect.call;

            if (lane->rail == rail && !r2_lane_is_down(lane) && NULL != conn &&
                conn->worker->is_rdma && conn->worker->device->gid_index != gid_index) {
                r2_lane_fence(lane, R2_ERR_RAIL_DOWN, true);
                lane->connect.retry_ns = net->now_ns;
            }
        }
    }
}
