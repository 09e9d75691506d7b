/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Offers: what the two ends of a connect request tell each other of a lane.
 */
#include "r2_config.h"

#include "link/offer.h"

#include <string.h>

/* The name of what this process has opened of a device. */
static uint64_t r2_hello_domain(const r2_net_t *net, const r2_lane_conn_t *conn)
{
    return net->params->direct && conn->worker->is_rdma ? r2_rail_domain(conn->worker, net->clock)
                                                        : 0;
}

size_t r2_hello_offer_size(const r2_hello_offer_t *offer)
{
    return offsetof(r2_hello_offer_t, address) + offer->address_bytes;
}

r2_status_t r2_hello_offer_fill(r2_lane_t *lane, const r2_lane_conn_t *conn, uint64_t connection,
                                r2_hello_offer_t *offer)
{
    r2_net_t *net = lane->link->net;
    size_t address_bytes = 0;
    r2_status_t status;

    memset(offer, 0, sizeof(*offer));
    status = lane->rail->tp->ops->ep_address(conn->ep, offer->address, &address_bytes);
    if (R2_OK != status) {
        return status;
    }
    offer->magic = R2_HELLO_MAGIC;
    offer->version = R2_WIRE_VERSION;
    offer->rank = net->rank;
    offer->rail_idx = lane->rail->idx;
    offer->remote_idx = lane->remote_idx;
    offer->attempt = lane->connect.attempt;
    offer->stands = NULL != lane->conn;
    offer->awaits = NULL == lane->tx.in_flight ? lane->tx.seq : lane->tx.in_flight->header.lane_seq;
    offer->segment_bytes = net->segment_bytes;
    offer->unexpected_bytes = net->params->unexpected_bytes;
    offer->first_seq = net->first_seq;
    offer->is_rdma = conn->worker->is_rdma;
    offer->lost = lane->rail->nic.rdma_lost;
    offer->domain = r2_hello_domain(net, conn);
    offer->direct = net->params->direct;
    offer->connection = connection;
    offer->address_bytes = (uint32_t) address_bytes;
    return R2_OK;
}

r2_status_t r2_hello_offer_parse(const r2_net_t *net, const void *data, size_t bytes,
                                 r2_hello_offer_t *offer_p)
{
    memset(offer_p, 0, sizeof(*offer_p));
    memcpy(offer_p, data, r2_min(bytes, sizeof(*offer_p)));
    if (bytes < offsetof(r2_hello_offer_t, verdict) || R2_HELLO_MAGIC != offer_p->magic) {
        return R2_ERR_WIRE;
    }
    if (R2_WIRE_VERSION != offer_p->version) {
        return R2_ERR_VERSION; /* all that follows may lie elsewhere there */
    }
    if (bytes < offsetof(r2_hello_offer_t, address) || offer_p->rank >= net->size ||
        offer_p->rank == net->rank || offer_p->address_bytes > R2_TP_ADDRESS_MAX ||
        r2_hello_offer_size(offer_p) != bytes) {
        return R2_ERR_WIRE;
    }
    if (net->segment_bytes != offer_p->segment_bytes ||
        net->params->unexpected_bytes != offer_p->unexpected_bytes ||
        net->first_seq != offer_p->first_seq || net->params->direct != offer_p->direct) {
        return R2_ERR_VERSION;
    }
    return R2_OK;
}

bool r2_hello_offer_fits(r2_lane_t *lane, const r2_hello_offer_t *theirs)
{
    lane->connect.peer_lost = 0 != theirs->lost;
    return r2_lane_wants_rdma(lane) == (0 != theirs->is_rdma);
}

void r2_hello_offer_heard(r2_lane_t *lane, r2_status_t status, const r2_hello_offer_t *theirs)
{
    if (R2_HELLO_MAGIC == theirs->magic && R2_ERR_VERSION != status && R2_ERR_WIRE != status) {
        lane->connect.peer_lost = 0 != theirs->lost;
    }
}
