/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Links: creation, and whether one has something to do.
 */
#include "r2_config.h"

#include "link/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

void r2_link_activate(r2_link_t *link)
{
    if (!link->is_active) {
        link->is_active = true;
        DL_APPEND(link->net->active, link);
    }
}

bool r2_link_busy(const r2_link_t *link)
{
    if (NULL != link->tx.relayed || link->tx.in_flight_packets > 0 || r2_link_posted(link) > 0 ||
        NULL != link->tx.messages || NULL != link->tx.control || NULL != link->tx.retransmit ||
        NULL != link->rx.deferred || NULL != link->rx.places || NULL != link->directs ||
        r2_grant_owes(link) || 0 != link->tx.short_ns || (link->path.left && !link->path.parted)) {
        return true;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];
        bool rests = R2_LANE_RESTING == lane->state ||
                     (r2_lane_is_down(lane) && (link->path.left || r2_lane_is_relay(lane)));
        bool works = r2_lane_is_up(lane) && !r2_lane_is_relay(lane);

        if (!(rests || works) || r2_lane_is_stirring(lane)) {
            return true;
        }
    }
    return false;
}

bool r2_link_owes_acks(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_owes_ack(&link->lanes[i])) {
            return true;
        }
    }
    return false;
}

bool r2_link_owes(const r2_link_t *link)
{
    return NULL != link->tx.messages || NULL != link->tx.control || NULL != link->tx.retransmit ||
           NULL != link->tx.relayed || r2_grant_owes(link) || link->tx.in_flight_packets > 0 ||
           r2_link_owes_acks(link);
}

bool r2_link_wanted(const r2_link_t *link)
{
    return NULL != link->tx.messages || NULL != link->directs || r2_link_posted(link) > 0 ||
           (link->path.leaving && r2_link_owes(link));
}

void r2_link_expedite(r2_link_t *link, uint64_t pause_ns)
{
    uint64_t soon_ns = link->net->now_ns + pause_ns;

    if (r2_link_has_lane(link)) {
        return;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        link->lanes[i].connect.retry_ns = r2_min(link->lanes[i].connect.retry_ns, soon_ns);
    }
}

/** Pairs of rails while they are found. */
typedef struct r2_link_pairs {
    uint32_t count;
    struct {
        r2_rail_t *rail;
        uint32_t remote_idx;
    } pairs[R2_RAILS_MAX];
} r2_link_pairs_t;

static void r2_pairs_add(r2_link_pairs_t *pairs, r2_rail_t *rail, uint32_t remote_idx)
{
    pairs->pairs[pairs->count].rail = rail;
    pairs->pairs[pairs->count].remote_idx = remote_idx;
    ++pairs->count;
}

/*
 * Pairs our rails with the peer's, the same way on both sides: as they were published, whatever
 * address a NIC of ours has got since. Rails of equal index in one subnet, then the k-th unpaired
 * rails of a subnet with each other, then equal indices where a side has no address to tell. Ports
 * without IP are paired with each other alone, where both offer RDMA in one subnet of InfiniBand.
 */
static void r2_pairs_find(r2_net_t *net, const r2_peer_info_t *info, r2_link_pairs_t *pairs)
{
    bool ours[R2_RAILS_MAX] = {false}, theirs[R2_RAILS_MAX] = {false};

    for (int pass = 0; pass < 3; ++pass) {
        for (uint32_t i = 0; i < net->rail_count; ++i) {
            for (uint32_t j = 0; j < info->rail_count && !ours[i]; ++j) {
                if (!theirs[j] &&
                    r2_peer_rails_pair(&net->info.rails[i], &info->rails[j], i == j, pass)) {
                    ours[i] = theirs[j] = true;
                    r2_pairs_add(pairs, &net->rails[i], j);
                }
            }
        }
    }
}

static bool r2_rails_have_rdma(const r2_peer_info_t *info)
{
    bool have = false;

    for (uint32_t i = 0; i < info->rail_count; ++i) {
        have = have || '\0' != info->rails[i].rdma[0];
    }
    return have;
}

/*
 * RDMA locks memory for packets at both ends, and where a third host forwards one of theirs; within
 * a host they go in pieces. A receive that nobody has heard of gets credit ahead for its share: no
 * less than a chunk of many peers.
 */
static uint32_t r2_link_chunk_most(const r2_link_t *link)
{
    const r2_net_t *net = link->net;
    const uint64_t most_bytes = net->params->chunk_max_bytes;
    const uint64_t share_bytes = net->params->credit_bytes / 4 / r2_max(net->size - 1, 4u);

    if (link->same_host || r2_rails_have_rdma(&net->info) || r2_rails_have_rdma(&link->info)) {
        return (uint32_t) r2_min(most_bytes, (uint64_t) R2_CHUNK_HELD_BYTES);
    }
    return (uint32_t) r2_min(most_bytes, r2_max(share_bytes, (uint64_t) R2_CHUNK_HELD_BYTES));
}

static void r2_link_add_lane(r2_link_t *link, r2_rail_t *rail, uint32_t remote_idx)
{
    r2_lane_t *lane = &link->lanes[link->lane_count];

    lane->link = link;
    lane->idx = link->lane_count;
    lane->rail = rail;
    lane->remote_idx = remote_idx;
    lane->remote = R2_RAILS_MAX == remote_idx ? &link->info.local : &link->info.rails[remote_idx];
    lane->connect.can_rdma =
        R2_RAILS_MAX != remote_idx &&
        r2_peer_rails_have_rdma(&link->net->info.rails[rail->idx], lane->remote);
    lane->is_rdma = r2_lane_wants_rdma(lane);
    lane->tx.window_bytes = link->net->params->window_min_bytes;
    ++link->lane_count;
}

/* Takes the info over. @return NULL: no memory. */
static r2_link_t *r2_link_create(r2_net_t *net, uint32_t rank, const r2_peer_info_t *info)
{
    r2_link_pairs_t pairs = {.count = 0};
    const bool same_host = info->host_id == net->info.host_id;
    r2_link_t *link;

    if (same_host) {
        r2_pairs_add(&pairs, &net->local, R2_RAILS_MAX);
    } else {
        r2_pairs_find(net, info, &pairs);
    }
    /* and a relay lane */
    link = calloc(1, sizeof(*link) + (pairs.count + 1) * sizeof(link->lanes[0]));
    if (NULL == link) {
        return NULL;
    }
    link->net = net;
    link->rank = rank;
    link->info = *info;
    link->same_host = same_host;
    link->chunk_most_bytes = r2_link_chunk_most(link);
    link->rx.short_bytes = same_host ? R2_LOCAL_MOST_BYTES
                                     : R2_SHORT_PACKET_BYTES - (uint32_t) sizeof(r2_wire_header_t);
    r2_table_init(&link->tx.uncredited, offsetof(r2_tx_message_t, tag), sizeof(r2_tag_t));
    r2_table_init(&link->tx.credits, offsetof(r2_credit_t, tag), sizeof(r2_tag_t));
    r2_table_init(&link->rx.arriving, offsetof(r2_rx_message_t, number), sizeof(uint64_t));
    r2_table_init(&link->rx.matches, offsetof(r2_rx_match_t, tag), sizeof(r2_tag_t));
    for (uint32_t i = 0; i < pairs.count; ++i) {
        r2_link_add_lane(link, pairs.pairs[i].rail, pairs.pairs[i].remote_idx);
    }
    return link;
}

static r2_status_t r2_net_ask_launcher(r2_net_t *net, uint32_t rank, r2_peer_info_t *info_p)
{
    char *blob = malloc(R2_OOB_BLOB_MAX);
    size_t bytes = 0;
    r2_status_t status;

    if (NULL == blob) {
        return R2_ERR_NO_MEMORY;
    }
    status = net->oob.ops->lookup(net->oob.instance, rank, blob, &bytes);
    if (R2_OK == status) {
        status = r2_peer_info_decode(blob, bytes, info_p);
    }
    free(blob);
    return status;
}

/* What was published does not change. PMIx answers by a thread of its own, for which the engine
 * lock is held: on a machine with many more processes than cores each question takes long, and each
 * notice of a process without a link has some. */
r2_status_t r2_net_lookup(r2_net_t *net, uint32_t rank, r2_peer_info_t *info_p)
{
    r2_net_known_t *known = &net->known[rank % net->known_count];
    r2_status_t status;

    if (rank < net->size && NULL != net->links[rank]) {
        *info_p = r2_peer_info_get(&net->links[rank]->info);
        return R2_OK;
    }
    if (NULL != known->info.store && rank == known->rank) {
        *info_p = r2_peer_info_get(&known->info);
        return R2_OK;
    }
    status = r2_net_ask_launcher(net, rank, info_p);
    if (R2_OK == status) {
        r2_peer_info_put(&known->info);
        known->rank = rank;
        known->info = r2_peer_info_get(info_p);
    }
    return status;
}

r2_status_t r2_net_link(r2_net_t *net, uint32_t rank, r2_link_t **link_p)
{
    r2_peer_info_t info;
    r2_link_t *link;
    r2_status_t status;

    if (rank >= net->size || rank == net->rank) {
        return R2_ERR_PARAM;
    }
    if (NULL != net->links[rank]) {
        *link_p = net->links[rank];
        return R2_OK;
    }
    status = r2_net_lookup(net, rank, &info);
    if (R2_OK != status) {
        return status;
    }
    link = r2_link_create(net, rank, &info);
    if (NULL == link) {
        r2_peer_info_put(&info);
        return R2_ERR_NO_MEMORY;
    }
    link->turn.lane = link->turn.before =
        (uint8_t) (link->lane_count > 0 ? (rank + net->rank) % link->lane_count : 0);
    link->tx.next_number = link->rx.watermark = net->first_seq;
    link->tx.eager_sent = (uint32_t) net->first_seq;
    link->rx.consumed = link->tx.eager_consumed = (uint32_t) net->first_seq;
    net->links[rank] = link;
    ++net->unwired_links;
    r2_link_activate(link); /* the next progress pass opens its lanes */
    *link_p = link;
    return R2_OK;
}

r2_status_t r2_link_broken(const r2_link_t *link)
{
    return link->broken;
}

bool r2_link_is_beside(const r2_link_t *link)
{
    return link->same_host;
}

uint32_t r2_link_peer(const r2_link_t *link)
{
    return link->rank;
}

const char *r2_link_host(const r2_link_t *link)
{
    return link->info.host_name;
}

bool r2_link_is_left(const r2_link_t *link)
{
    return link->path.left;
}

r2_status_t r2_link_has_left(const r2_link_t *link)
{
    snprintf(link->net->error_text, sizeof(link->net->error_text),
             "rank %u on %s has called MPI_Finalize without taking part", link->rank,
             link->info.host_name);
    return R2_ERR_PEER_GONE;
}
