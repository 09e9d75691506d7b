/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Links within a host: mailboxes, and what is put into them.
 */
#include "r2_config.h"

#include "link/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "link/link.h"
#include "link/tx.h"
#include "local/process.h"

static_assert(R2_LOCAL_MOST_BYTES + sizeof(r2_local_record_t) <=
                  (R2_INBOX_LINES_LARGE / 4 + 1) * R2_MAILBOX_LINE - 8,
              "the longest message fits into a large one");

static_assert(R2_INBOX_ADDRESS_BYTES <= R2_PEER_INBOX_BYTES, "it is published");

uint32_t r2_local_init(r2_net_t *net, uint8_t *address_p)
{
    if (R2_OK != r2_inbox_create(&net->inbox)) {
        r2_info(net->log,
                "no memory to share with ranks of this host (%s): they talk as without "
                "coll_r2_local",
                strerror(errno));
        return 0;
    }
    r2_process_admit(R2_PROCESS_SCOPE);
    r2_inbox_address(net->inbox, address_p);
    return R2_INBOX_ADDRESS_BYTES;
}

void r2_local_fini(r2_net_t *net)
{
    if (NULL != net->inbox) {
        r2_inbox_destroy(net->inbox);
        net->inbox = NULL;
    }
}

uint32_t r2_local_most(uint32_t lines)
{
    const uint32_t room = r2_mailbox_record_max(lines) - (uint32_t) sizeof(r2_local_record_t);

    return r2_min(room, R2_LOCAL_MOST_BYTES);
}

r2_local_t *r2_local_get(r2_link_t *link)
{
    const r2_peer_info_t *info = &link->info;
    r2_local_t *local = link->local;
    r2_status_t status;

    if (NULL != local || NULL == link->net->inbox) {
        return local;
    }
    local = calloc(1, sizeof(*local));
    if (NULL == local) {
        return NULL;
    }
    local->link = link;
    local->budget_bytes = (uint32_t) r2_net_unexpected_bytes(link->net);
    local->told = link->rx.consumed;
    link->local = local;
    status = r2_outbox_open(info->inbox, info->inbox_bytes, &local->out);
    if (R2_OK != status) {
        r2_debug(link->net->log, "no mailbox at rank %u on %s: %s", link->rank, info->host_name,
                 r2_status_string(status));
        return local;
    }
    local->out_most = r2_local_most(local->out.ring.lines);
    /* the peer counts on from there */
    atomic_store_explicit(&local->out.ring.box->consumed, link->tx.eager_consumed,
                          memory_order_relaxed);
    r2_outbox_announce(&local->out, link->net->rank);
    return local;
}

void r2_local_free(r2_link_t *link)
{
    r2_local_t *local = link->local;

    if (NULL == local) {
        return;
    }
    if (NULL != local->in.box) {
        DL_DELETE(link->net->locals, local);
    }
    r2_outbox_close(&local->out);
    free(local);
    link->local = NULL;
}

/* By any packet: a lane's descriptor wakes who sleeps. */
static void r2_local_wake(r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count && !link->net->in_callback; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (r2_lane_is_sound(lane) && R2_OK == r2_tx_unsequenced(lane, R2_WIRE_ACK)) {
            ++link->net->counters->tx_acks;
            return;
        }
    }
    (void) r2_tx_control(link, R2_WIRE_PING, NULL, 0);
}

static bool r2_local_has_budget(r2_local_t *local, const r2_tag_t *tag, uint32_t cost)
{
    r2_link_t *link = local->link;
    const uint32_t budget = R2_LINK_UNEXPECTED_KEY == tag->comm_key
                                ? local->budget_bytes
                                : r2_min(local->budget_bytes, R2_EAGER_CALL_BYTES);
    const uint32_t sent = (uint32_t) link->tx.eager_sent;

    if (sent - link->tx.eager_consumed + cost <= budget) {
        return true;
    }
    r2_credit_consumed(link,
                       atomic_load_explicit(&local->out.ring.box->consumed, memory_order_relaxed));
    return sent - link->tx.eager_consumed + cost <= budget;
}

bool r2_local_send(r2_link_t *link, const r2_link_send_t *args)
{
    r2_local_t *local = r2_local_get(link);
    const uint32_t cost = (uint32_t) args->bytes + R2_EAGER_COST_BYTES;
    const r2_local_record_t record = {
        .tag = args->tag,
        .digest = args->digest,
        .flags = args->map_pending ? R2_LOCAL_MAP_PENDING : 0,
    };
    char *room;

    if (NULL == local || NULL == local->out.head || args->bytes > local->out_most ||
        !r2_local_has_budget(local, &args->tag, cost)) {
        return false;
    }
    room = r2_mailbox_reserve(&local->out.ring, sizeof(record) + (uint32_t) args->bytes);
    if (NULL == room) {
        return false;
    }
    memcpy(room, &record, sizeof(record));
    if (args->bytes > 0) {
        memcpy(room + sizeof(record), NULL == args->block ? args->data : args->block, args->bytes);
    }
    link->tx.eager_sent += cost;
    r2_mailbox_commit(&local->out.ring);
    if (r2_outbox_sleeps(&local->out)) {
        r2_local_wake(link);
    }
    r2_blocks_put(&link->net->blocks, args->block, args->bytes);
    ++link->net->counters->local_messages;
    link->net->counters->local_bytes += args->bytes;
    return true;
}

r2_status_t r2_local_peek(r2_local_t *local, r2_local_record_t *record_p, const void **data_p,
                          uint32_t *bytes_p)
{
    const void *record;
    uint32_t bytes;
    const r2_status_t status = r2_mailbox_peek(&local->in, &record, &bytes);

    if (R2_OK != status) {
        return status;
    }
    if (bytes < sizeof(*record_p) || bytes > sizeof(*record_p) + local->in_most) {
        return R2_ERR_WIRE;
    }
    memcpy(record_p, record, sizeof(*record_p)); /* once: the peer may write there */
    *data_p = (const char *) record + sizeof(*record_p);
    *bytes_p = bytes - (uint32_t) sizeof(*record_p);
    return R2_OK;
}

void r2_local_release(r2_local_t *local)
{
    const uint32_t consumed = local->link->rx.consumed;

    if (local->told != consumed) {
        local->told = consumed;
        atomic_store_explicit(&local->in.box->consumed, consumed, memory_order_relaxed);
    }
    r2_mailbox_release(&local->in);
}

bool r2_local_at_hand(r2_link_t *link, const r2_link_recv_t *args, r2_status_t *status_p)
{
    r2_local_record_t record;
    const void *data;
    uint32_t bytes;

    if (!r2_local_hears(link) || R2_OK != r2_local_peek(link->local, &record, &data, &bytes) ||
        0 != memcmp(&record.tag, &args->tag, sizeof(record.tag))) {
        return false;
    }
    *status_p =
        bytes == args->bytes && record.digest == args->digest ? R2_OK : R2_ERR_PLAN_MISMATCH;
    if (R2_OK == *status_p && NULL != args->sink) {
        args->sink(args->arg, 0, data, bytes);
    } else if (R2_OK == *status_p && bytes > 0) {
        memcpy(args->data, data, bytes);
    }
    if (R2_OK == *status_p && NULL != args->map_pending &&
        0 != (record.flags & R2_LOCAL_MAP_PENDING)) {
        *args->map_pending = true;
    }
    link->rx.consumed += bytes + R2_EAGER_COST_BYTES;
    link->net->counters->rx_bytes += bytes;
    r2_local_release(link->local);
    return true;
}

bool r2_local_arm(r2_net_t *net)
{
    const r2_local_t *local;
    bool empty;

    if (NULL == net->inbox) {
        return true;
    }
    r2_inbox_sleep(net->inbox);
    empty = !r2_inbox_changed(net->inbox);
    DL_FOREACH(net->locals, local) {
        empty = empty && r2_mailbox_is_empty(&local->in);
    }
    if (!empty) {
        r2_inbox_wake(net->inbox);
    }
    return empty;
}

bool r2_link_lends(const r2_link_t *link)
{
    return link->same_host && NULL != link->net->inbox && link->info.inbox_bytes > 0;
}

bool r2_link_fetch(const r2_link_t *link, uint64_t pid, uint64_t address, void *to, uint64_t bytes)
{
    const r2_process_t peer = {.pid = pid};

    return r2_link_lends(link) && r2_process_fetch(&peer, address, to, bytes);
}
