/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Net: start, end, and the progress pass that drives everything.
 */
#include "r2_config.h"

#include "link/net.h"

#include <stdlib.h>
#include <utlist.h>

#include "link/direct.h"
#include "link/idle.h"
#include "link/place.h"
#include "link/local.h"
#include "link/relay.h"
#include "link/rx.h"

/* Memory that is kept for copies and chunks to come, beside the pools. */
#define R2_NET_KEEP_BYTES (4u << 20)
/* Absences of this process that the silence of a lane is excused by, one after another. */
#define R2_ABSENCES_MAX 8u
/* Packets in flight to one peer from which on it is worth a read to see what was acknowledged. */
#define R2_NET_UNREAD_PACKETS 8u

/** Own addresses until they are published. */
typedef struct r2_net_addresses {
    uint8_t hello[R2_HELLO_ADDRESS_MAX], probe[R2_PROBE_ADDRESS_MAX];
    char rdma[R2_PEER_RDMA_MAX];
} r2_net_addresses_t;

static r2_status_t r2_net_listen(r2_net_t *net, uint32_t idx, const r2_nic_t *nic,
                                 r2_net_addresses_t *addresses, r2_peer_rail_t *published)
{
    size_t bytes = 0;
    r2_status_t status;

    status = net->hello.ops->listen(net->hello.instance, idx, nic, addresses->hello, &bytes);
    if (R2_OK != status) {
        return status;
    }
    published->address = addresses->hello;
    published->address_bytes = (uint16_t) bytes;
    if (NULL != nic && NULL != net->probe.ops && !r2_nic_is_bare(nic)) {
        status = net->probe.ops->listen(net->probe.instance, idx, nic, addresses->probe, &bytes);
        published->probe = addresses->probe;
        published->probe_bytes = R2_OK == status ? (uint16_t) bytes : 0;
    }
    if (NULL != nic) {
        published->name = nic->name;
        published->ipv4 = r2_nic_is_bare(nic) ? 0 : nic->ipv4;
        published->prefix_bits = r2_nic_is_bare(nic) ? 0 : nic->prefix_bits;
        published->mbytes_per_s = (uint32_t) r2_min(nic->speed_bytes_per_s / 1000000, UINT32_MAX);
        r2_peer_rdma_text(nic, addresses->rdma);
        published->rdma = addresses->rdma;
        published->port = '\0' == nic->tls[0] ? "" : nic->rdma;
    }
    return R2_OK;
}

/* @param info gets what is to be published, in memory that lasts as long as `addresses` and
 * `rails`. */
static r2_status_t r2_net_open_rails(r2_net_t *net, const r2_nic_t *nics, size_t nic_count,
                                     r2_net_addresses_t *addresses, r2_peer_rail_t *rails,
                                     r2_peer_info_t *info)
{
    r2_status_t status;

    r2_rail_init(&net->local, R2_RAILS_MAX, NULL, &net->tp, &net->callbacks, net->segment_bytes,
                 net->epoll_fd, net, net->log);
    status = r2_net_listen(net, R2_RAILS_MAX, NULL, &addresses[R2_RAILS_MAX], &info->local);
    if (R2_OK != status) {
        return status;
    }
    for (size_t i = 0; i < nic_count; ++i) {
        r2_rail_init(&net->rails[i], (uint32_t) i, &nics[i], &net->tp, &net->callbacks,
                     net->segment_bytes, net->epoll_fd, net, net->log);
        status = r2_net_listen(net, (uint32_t) i, &nics[i], &addresses[i], &rails[i]);
        if (R2_OK != status) {
            return status;
        }
        ++net->rail_count;
    }
    info->rails = rails;
    info->rail_count = net->rail_count;
    return R2_OK;
}

/* Opens everything and notes what is to be published, as the peers will read it. */
static r2_status_t r2_net_open(r2_net_t *net, const r2_nic_t *nics, size_t nic_count,
                               r2_peer_info_t *info)
{
    r2_net_addresses_t *addresses = calloc(R2_RAILS_MAX + 1, sizeof(*addresses));
    uint8_t *blob = malloc(R2_PEER_INFO_BYTES_MAX);
    r2_peer_rail_t rails[R2_RAILS_MAX] = {0};
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL != addresses && NULL != blob) {
        status = r2_net_open_rails(net, nics, nic_count, addresses, rails, info);
    }
    if (R2_OK == status) {
        status = r2_peer_info_decode(blob, r2_peer_info_encode(info, blob), &net->info);
    }
    free(addresses);
    free(blob);
    return status;
}

/* When we should have looked again at the latest, seen from the last progress pass. */
static uint64_t r2_net_due_ns(r2_net_t *net)
{
    uint64_t now_ns = net->now_ns;
    uint64_t due_ns;

    net->now_ns = net->last_progress_ns;
    due_ns = r2_net_deadline_ns(net);
    net->now_ns = now_ns;
    return R2_NEVER_NS == due_ns ? net->last_progress_ns : r2_max(due_ns, net->last_progress_ns);
}

/*
 * Silence counts from now on. Not for ever on a lane that waits for an acknowledgement: a process
 * that comes rarely has read all that came so often that it cannot be there.
 */
static void r2_lane_restart_clock(r2_lane_t *lane)
{
    if (NULL == lane->tx.in_flight) {
        lane->timing.absences = 0;
    }
    if (lane->timing.absences < R2_ABSENCES_MAX) {
        lane->timing.base_ns = lane->link->net->now_ns;
        lane->timing.absences += NULL == lane->tx.in_flight || r2_unread_is_here(lane) ? 0 : 1;
    }
}

/*
 * We were away: what is late may be in our own buffers. Having slept until a timer of ours is not
 * being away, or a process that waits for nothing but timers would never see a lane expire.
 */
static void r2_net_notice_own_silence(r2_net_t *net)
{
    r2_link_t *link;

    if (net->now_ns - net->last_progress_ns <= r2_net_own_silence_ns(net)) {
        return;
    }
    net->back_ns = net->now_ns;
    if (net->now_ns <= r2_net_due_ns(net) + r2_net_own_silence_ns(net)) {
        return;
    }
    net->late_ns = NULL == net->active ? net->late_ns : net->now_ns;
    DL_FOREACH(net->active, link) {
        link->path.waited_at_ns = net->now_ns;
        for (uint32_t i = 0; i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];

            r2_lane_restart_clock(lane);
            lane->connect.unsure = lane->connect.unsure || r2_lane_is_unproved(lane);
        }
    }
}

r2_status_t r2_net_init(r2_net_t *net, const r2_nic_t *nics, size_t nic_count, uint64_t host_id,
                        const char *host_name)
{
    uint8_t inbox[R2_INBOX_ADDRESS_BYTES];
    const r2_hello_upcalls_t upcalls = {.request = r2_hello_request,
                                        .result = r2_hello_result,
                                        .waits = r2_hello_waits,
                                        .arg = net};
    r2_peer_info_t info = {.users = net->extra.users,
                           .host_id = host_id,
                           .host_name = host_name,
                           .post = net->extra.post,
                           .post_bytes = net->extra.post_bytes,
                           .cost = net->extra.cost,
                           .cost_bytes = 0 == net->rank ? net->extra.cost_bytes : 0,
                           .inbox = inbox};
    r2_status_t status;

    net->callbacks.received = r2_rx_packet;
    net->callbacks.land = r2_rx_land;
    net->callbacks.takes_more = r2_rx_takes_more;
    net->callbacks.failed = r2_lane_failed;
    net->note_own_silence = r2_net_notice_own_silence;
    net->segment_bytes =
        2 * sizeof(r2_wire_header_t) + sizeof(r2_wire_relay_t) + net->params->chunk_max_bytes;
    net->now_ns = net->last_progress_ns = r2_now_ns(net->clock);
    r2_pool_init(&net->packets, sizeof(r2_packet_t));
    r2_pool_init(&net->items, sizeof(r2_tx_item_t));
    r2_pool_init(&net->messages, sizeof(r2_tx_message_t));
    r2_pool_init(&net->matches, sizeof(r2_rx_match_t));
    r2_pool_init(&net->arriving, sizeof(r2_rx_message_t));
    r2_pool_init(&net->credits, sizeof(r2_credit_t));
    r2_pool_init(&net->places, sizeof(r2_place_t));
    r2_pool_init(&net->targets, sizeof(r2_wire_grant_t));
    r2_blocks_init(&net->blocks, R2_NET_KEEP_BYTES);
    net->links = calloc(net->size, sizeof(net->links[0]));
    net->known_count = (uint32_t) r2_min(net->size, R2_NET_KNOWN_MAX);
    net->known = calloc(net->known_count, sizeof(net->known[0]));
    if (NULL == net->links || NULL == net->known) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_relay_init(net);
    if (R2_OK != status) {
        return status;
    }
    if (net->extra.local) {
        info.inbox_bytes = r2_local_init(net, inbox);
    }
    net->hello.ops->bind(net->hello.instance, &upcalls);
    return r2_net_open(net, nics, nic_count, &info);
}

static void r2_link_free(r2_link_t *link)
{
    r2_net_t *net = link->net;
    r2_tx_message_t *message, *next_message;
    r2_tx_item_t *item, *next_item;
    r2_credit_t *credit, *next_credit;

    r2_place_forget(link);
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_fence(&link->lanes[i], R2_ERR_CANCELED, false);
    }
    r2_direct_withdraw(link);
    if (link->is_active) {
        DL_DELETE(net->active, link);
    }
    DL_CONCAT(link->tx.control, link->tx.retransmit);
    DL_CONCAT(link->tx.control, link->tx.relayed);
    DL_FOREACH_SAFE(link->tx.control, item, next_item) {
        r2_tx_item_strip(item);
        r2_pool_put(&net->items, item);
    }
    r2_table_fini(&link->tx.uncredited);
    DL_FOREACH_SAFE2(link->tx.messages, message, next_message, all_next)
    {
        r2_blocks_put(&net->blocks, message->copy, message->copy_bytes);
        r2_put_target_drop(net, &message->target);
        r2_pool_put(&net->messages, message);
    }
    r2_table_foreach(&link->tx.credits, credit, next_credit)
    {
        r2_credit_drop(link, credit);
    }
    r2_table_fini(&link->tx.credits);
    r2_rx_free(link);
    r2_local_free(link);
    free(link->path.relay);
    r2_peer_info_put(&link->info);
    free(link);
}

static void r2_net_forget_known(r2_net_t *net)
{
    for (uint32_t i = 0; NULL != net->known && i < net->known_count; ++i) {
        r2_peer_info_put(&net->known[i].info);
    }
    free(net->known);
}

void r2_net_fini(r2_net_t *net)
{
    r2_net_ack_last(net);
    net->ending = true;
    for (uint32_t rank = 0; NULL != net->links && rank < net->size; ++rank) {
        if (NULL != net->links[rank]) {
            r2_link_free(net->links[rank]);
        }
    }
    free(net->links);
    r2_net_forget_known(net);
    r2_local_fini(net);
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        r2_rail_fini(&net->rails[i]);
    }
    if (NULL != net->local.tp) {
        r2_rail_fini(&net->local);
    }
    r2_relay_fini(net);
    r2_peer_info_put(&net->info);
    r2_pool_fini(&net->packets);
    r2_pool_fini(&net->items);
    r2_pool_fini(&net->messages);
    r2_pool_fini(&net->matches);
    r2_pool_fini(&net->arriving);
    r2_pool_fini(&net->credits);
    r2_pool_fini(&net->places);
    r2_pool_fini(&net->targets);
    r2_blocks_fini(&net->blocks);
}

/* Its connection is no more. A peer that has much unread is slow, and what it said of the end may
 * lie behind all that it sends. */
static void r2_lane_end(r2_lane_t *lane)
{
    if (R2_PAST_RESTED == lane->connect.past) {
        r2_idle_renewed(lane);
    } else if (lane->state >= R2_LANE_UP && !r2_lane_is_relay(lane) &&
               (r2_net_was_away(lane->link->net) || r2_unread_is_there(lane))) {
        r2_idle_ended(lane);
    } else {
        r2_lane_unproved(lane);
        r2_lane_fence(lane, lane->why, true);
    }
}

static void r2_link_scan_lanes(r2_link_t *link)
{
    if (NULL != link->local && link->local->wrong) {
        link->local->wrong = false;
        r2_link_break(link, R2_ERR_WIRE);
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];
        bool due;

        r2_idle_scan(lane);
        r2_lane_withdraw_moot(lane);
        due = link->net->now_ns >= r2_place_due_ns(lane);
        /* a connection that was closed while we were stopped is reported before what came on it:
           the reason may be there */
        if (lane->failed && (due || !r2_net_reads_on(link->net))) {
            r2_lane_end(lane);
        } else if (due) {
            r2_idle_renew(lane); /* what it may still write to is given back then */
        }
        if (R2_HELLO_ACK_DUE == lane->connect.hello_ack &&
            (NULL == lane->conn ||
             R2_ERR_NO_MEMORY != r2_tx_unsequenced(lane, R2_WIRE_HELLO_ACK))) {
            lane->connect.hello_ack = R2_HELLO_ACK_SENT;
        }
    }
}

void r2_net_progress_traffic(r2_net_t *net, bool took_long)
{
    r2_link_t *link;

    if (took_long) {
        net->now_ns = r2_now_ns(net->clock);
    }
    net->acks_held = false;
    DL_FOREACH(net->active, link) {
        r2_rx_deferred(link);
        r2_link_push(link);
        r2_direct_progress(link);
        r2_ack_flush(link);
    }
}

void r2_net_progress_links(r2_net_t *net)
{
    r2_link_t *link, *next;

    net->now_ns = r2_now_ns(net->clock);
    r2_net_notice_own_silence(
        net); /* after SIGCONT the service thread may come here before any progress pass */
    r2_relay_reap(net);
    net->acks_held = false;
    DL_FOREACH_SAFE(net->active, link, next) {
        r2_link_scan_lanes(link);
        if (link->path.left && !link->path.parted) {
            r2_link_part(link);
        }
        r2_link_timers(link);
        r2_rx_deferred(link); /* before the push, which tells what credit that makes room for */
        r2_link_push(link);
        r2_direct_progress(link);
        r2_tx_hedge_tail(link);
        r2_ack_flush(link);
        if (!r2_link_busy(link)) {
            link->is_active = false;
            DL_DELETE(net->active, link);
        }
    }
}

unsigned r2_net_read(r2_net_t *net, bool glance)
{
    bool rare;

    net->now_ns = r2_now_ns(net->clock);
    r2_net_notice_own_silence(net);
    rare = r2_unread_for_long(net, net->last_progress_ns);
    net->last_progress_ns = net->now_ns;
    return r2_net_read_rails(net, glance, rare);
}

void r2_net_progress_rest(r2_net_t *net, unsigned events, bool brief)
{
    net->heard = events > 0;
    net->drained_ns = net->heard ? net->drained_ns : net->now_ns;
    net->was_brief = brief;
    if (brief) {
        r2_net_progress_traffic(net, events > 1);
        return;
    }
    net->whole_ns = net->now_ns;
    r2_unread_look(net);
    r2_mismatch_scan(net);
    r2_room_keep(net);
    if (NULL != net->active) {
        r2_net_progress_links(net);
    }
    r2_rail_reap(&net->local);
    r2_rail_reap(&net->relay->rail);
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        r2_rail_reap(&net->rails[i]);
    }
}

unsigned r2_net_progress(r2_net_t *net)
{
    const unsigned events = r2_net_read(net, false);

    r2_net_progress_rest(net, events, r2_net_is_brief(net));
    return events;
}

bool r2_net_arm(r2_net_t *net)
{
    if (!net->progressed_all || net->was_brief) {
        net->progressed_all_ns =
            0; /* a worker may sleep only if it had nothing to do just before */
        if (r2_net_progress(net) > 0) {
            return false;
        }
    }
    if ((net->may_deliver && !r2_local_arm(net)) || R2_OK != r2_rail_arm(&net->local)) {
        return false;
    }
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        if (R2_OK != r2_rail_arm(&net->rails[i])) {
            return false;
        }
    }
    return true;
}

uint64_t r2_net_deadline_ns(const r2_net_t *net)
{
    uint64_t deadline_ns = net->hello.ops->deadline_ns(net->hello.instance);
    r2_link_t *link;

    DL_FOREACH(net->active, link) {
        deadline_ns = r2_min(deadline_ns, r2_link_deadline_ns(link));
    }
    return deadline_ns;
}

bool r2_net_owes(const r2_net_t *net)
{
    const r2_link_t *link;

    DL_FOREACH(net->active, link) {
        if (NULL != link->tx.queue || NULL != link->tx.control || NULL != link->tx.retransmit ||
            NULL != link->tx.relayed || r2_grant_owes(link) || r2_link_owes_acks(link) ||
            link->tx.in_flight_packets >= R2_NET_UNREAD_PACKETS) {
            return true;
        }
    }
    return false;
}

bool r2_net_outstanding(const r2_net_t *net)
{
    return NULL != net->active;
}
