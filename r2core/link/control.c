/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Control packets: how many of a kind may be under way to a peer, and what is said later.
 *
 * A control packet that was taken arrives, on whatever lane, unless the peer is gone. So it makes
 * no sense to repeat it: while one of its kind is not acknowledged, whoever asks by a timer has
 * asked. A peer may be stopped for hours, and what is under way to it must not grow with the time,
 * nor with what an application has kept as unexpected. What is refused, by the bound or for want of
 * memory, stays with who wanted to say it, and is said when there is room again:
 *
 *   QUERY, PING, NOTICE   their own timers
 *   RTS                   the message (r2_credit_request_mute())
 *   GRANT                 its credit goes without (r2_grant_tell_of())
 *   CREDIT                the entries to be sent, the receives that are to get more, the messages
 *                         that are thrown away (r2_grant_refill(), r2_grant_flush())
 *   ABORT                 the communicator (ctx/tell.c)
 *   LEAVE                 the link: it has not left yet (leave.c)
 *   DENIED                the peer asks again
 *   LANE_DOWN             nobody: the peer's own timers tell it, a little later
 *   RELAY                 hello frames: the caller's time runs out, and it calls again
 */
#include "r2_config.h"

#include "link/tx.h"

#include <string.h>
#include <utlist.h>

/* When it is tried again after memory was short. */
#define R2_TX_RETRY_NS (10 * R2_NS_PER_MS)

/* Of a kind that many may want to say, or that is said of many things. */
#define R2_CONTROL_MANY 32u
/* Questions on a lane at a time: one may be on its way when something new is to be asked after. */
#define R2_LANE_PINGS 2u

/* What is said once for each of its kind, and not repeated, has no bound of its own. */
static uint32_t r2_control_most(const r2_link_t *link, r2_wire_kind_t kind)
{
    static const uint32_t most[R2_WIRE_KIND_END] = {
        [R2_WIRE_QUERY] = 1,
        [R2_WIRE_NOTICE] = R2_CONTROL_MANY,
        [R2_WIRE_RTS] = R2_CONTROL_MANY,
        [R2_WIRE_DENIED] = R2_CONTROL_MANY,
        [R2_WIRE_GRANT] = R2_CONTROL_MANY,
        [R2_WIRE_LANE_DOWN] = R2_CONTROL_MANY,
    };

    if (R2_WIRE_PING == kind) {
        return link->lane_count * (R2_LANE_PINGS + 1); /* one more that any lane may take */
    }
    if (R2_WIRE_RELAY == kind) { /* hello frames: one for each process, or nearly */
        return r2_max(R2_CONTROL_MANY, link->net->size);
    }
    return 0 == most[kind] ? UINT32_MAX : most[kind];
}

bool r2_control_may(const r2_link_t *link, r2_wire_kind_t kind)
{
    return link->tx.unsettled[kind] < r2_control_most(link, kind);
}

bool r2_lane_may_ping(const r2_lane_t *lane)
{
    return lane->tx.pings < R2_LANE_PINGS && r2_control_may(lane->link, R2_WIRE_PING);
}

/* Packets of relay lanes are bounded by these lanes' windows, what is forwarded by its pair. */
static bool r2_control_counts(const r2_tx_item_t *item)
{
    return R2_WIRE_DATA != item->kind && (R2_WIRE_RELAY != item->kind || item->payload.relay.hello);
}

void r2_control_opened(r2_link_t *link, const r2_tx_item_t *item)
{
    link->tx.unsettled[item->kind] += r2_control_counts(item) ? 1 : 0;
}

void r2_control_settled(r2_link_t *link, r2_tx_item_t *item)
{
    if (!item->acked) {
        item->acked = true;
        link->tx.unsettled[item->kind] -= r2_control_counts(item) ? 1 : 0;
    }
}

bool r2_tx_control(r2_link_t *link, r2_wire_kind_t kind, const void *payload, uint32_t bytes)
{
    r2_tx_item_t *item;

    if (link->path.left) {
        return true; /* it wants to hear nothing any more */
    }
    if (!r2_control_may(link, kind)) {
        return false; /* again when some of them are acknowledged */
    }
    item = r2_tx_item_new(link->net, kind);
    if (NULL == item) {
        r2_tx_short(link);
        return false;
    }
    r2_assert(bytes <= sizeof(item->payload));
    if (bytes > 0) {
        memcpy(&item->payload, payload, bytes);
    }
    item->payload_bytes = R2_WIRE_RTS == kind ? 0 : bytes;
    r2_control_opened(link, item);
    item->queued = true;
    DL_APPEND(link->tx.control, item);
    r2_link_activate(link);
    return true;
}

void r2_tx_short(r2_link_t *link)
{
    link->tx.short_ns = link->net->now_ns + R2_TX_RETRY_NS;
    r2_link_activate(link);
}

/* The push that follows sends and says what is left. */
void r2_tx_short_timer(r2_link_t *link)
{
    if (0 != link->tx.short_ns && link->net->now_ns >= link->tx.short_ns) {
        link->tx.short_ns = 0;
    }
}

uint64_t r2_tx_short_deadline_ns(const r2_link_t *link)
{
    return 0 == link->tx.short_ns ? R2_NEVER_NS : link->tx.short_ns;
}
