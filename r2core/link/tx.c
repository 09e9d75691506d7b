/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending: queues and choice of lane.
 */
#include "r2_config.h"

#include "link/relay.h"
#include "link/rx.h"

#include <utlist.h>

/* A lane that takes so many times longer than the fastest, and than R2_LAGGARD_NS, gets no
 * frames. */
#define R2_LAGGARD_TIMES 4u
#define R2_LAGGARD_NS    R2_NS_PER_MS

/* A lane keeps the turn while its round trips take less than so many times what they took when it,
 * or another one, was idle. */
#define R2_TURN_CALM_TIMES 2u

/* A lane whose oldest packet is under way for more round trips has nobody wait for it. */
#define R2_PROMPT_TIMES 2u

/* So long data waits for room before it asks for it. */
#define R2_ROOM_NS (100 * R2_NS_PER_US)

/* A packet that is longer than the window goes when nothing, or little, is under way: a short
 * message that is acknowledged late is nothing to wait for. */
static bool r2_lane_room(r2_lane_t *lane, uint64_t bytes)
{
    const uint64_t window_bytes = lane->tx.window_bytes, under_way_bytes = lane->tx.in_flight_bytes;

    if (NULL == lane->tx.in_flight || under_way_bytes + bytes <= window_bytes ||
        (bytes > window_bytes && R2_LITTLE_PART * under_way_bytes <= window_bytes)) {
        return true;
    }
    lane->tx.limited = true;
    return false;
}

/* Lanes whose rates differ by less are as good as equal: a rate is what was measured, and more was
 * measured where more went. */
#define R2_ALIKE_TIMES 2u

static bool r2_lanes_are_alike(const r2_lane_t *a, const r2_lane_t *b)
{
    return r2_lane_rate(a) <= R2_ALIKE_TIMES * r2_lane_rate(b) &&
           r2_lane_rate(b) <= R2_ALIKE_TIMES * r2_lane_rate(a);
}

/* True if lane a is emptier than lane b. Of lanes that are not alike, compared with their windows:
 * those of slow ones are short. Else windows say only how much a lane may take, and one that once
 * took a burst would get most of all. */
static bool r2_lane_emptier(const r2_lane_t *a, const r2_lane_t *b)
{
    return r2_lanes_are_alike(a, b) ? a->tx.in_flight_bytes < b->tx.in_flight_bytes
                                    : a->tx.in_flight_bytes * b->tx.window_bytes <
                                          b->tx.in_flight_bytes * a->tx.window_bytes;
}

/* How near a lane's rail is to what a message sends; a relay's is nowhere. */
static r2_near_lane_t r2_lane_near(const r2_lane_t *lane, const r2_near_t *near)
{
    return (r2_near_lane_t){
        .under_way_bytes = lane->tx.in_flight_bytes,
        .rail_bytes = lane->rail->under_way_bytes,
        .step = r2_lane_is_relay(lane) ? UINT8_MAX : near->steps[lane->rail->idx]};
}

/* One chunk that is shorter keeps the turn: acknowledgements go with what comes by the same lane,
 * and what lies there unacknowledged would be taken for a queue. */
#define R2_NEAR_WHOLE_BYTES 65536u

/* How near rails are to a chunk. @return NULL: all are as near, or that does not count. */
static const r2_near_t *r2_tx_near(const r2_tx_item_t *item, const r2_tx_message_t *message)
{
    const bool counts = NULL != message && (NULL != item || message->chunk_count > 1 ||
                                            message->bytes >= R2_NEAR_WHOLE_BYTES);

    return counts ? message->near : NULL;
}

/* True if a chunk goes by lane a rather than by b. A rail that is near goes first only where it is
 * as fast, by what its NIC says and by what was measured. */
static bool r2_lane_is_first(const r2_lane_t *a, const r2_lane_t *b, const r2_near_t *near,
                             uint64_t bytes)
{
    r2_near_lane_t near_a, near_b;

    if (NULL == near || !r2_lanes_are_alike(a, b) ||
        a->rail->nic.speed_bytes_per_s != b->rail->nic.speed_bytes_per_s) {
        return r2_lane_emptier(a, b);
    }
    near_a = r2_lane_near(a, near);
    near_b = r2_lane_near(b, near);
    return r2_near_is_first(&near_a, &near_b, bytes);
}

/* True if a chunk is through sooner by a lane like it, once that has room: soon, since so much less
 * lies in it, and it answers as it did. */
static bool r2_lane_is_fuller(const r2_lane_t *lane, const r2_lane_t *full, uint64_t bytes)
{
    return NULL != full && r2_lanes_are_alike(lane, full) &&
           full->tx.in_flight_bytes + bytes / 2 < lane->tx.in_flight_bytes &&
           full->link->net->now_ns - full->tx.in_flight->sent_ns <
               R2_PROMPT_TIMES * full->timing.srtt_ns + R2_ROOM_NS;
}

/* True of a direct lane that nothing is known against. */
static bool r2_tx_is_prompt(const r2_lane_t *lane)
{
    return r2_lane_is_sound(lane) && !r2_lane_is_relay(lane) && !r2_lane_is_overdue(lane);
}

/* True if there is such a lane: then the others get nothing that is urgent. */
static bool r2_tx_has_prompt_lane(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_tx_is_prompt(&link->lanes[i])) {
            return true;
        }
    }
    return false;
}

/* When a lane would deliver so many bytes more, seen from now, by what it was like so far. */
static uint64_t r2_tx_expected_ns(const r2_lane_t *lane, uint64_t bytes)
{
    uint64_t rate = r2_lane_rate(lane);
    uint64_t work_ns = 0 == rate ? 0 : (lane->tx.in_flight_bytes + bytes) * R2_NS_PER_S / rate;

    return r2_max(lane->timing.srtt_ns, work_ns);
}

/*
 * The relay lane that a frame belongs to has few packets under way: one that lags on a slow lane
 * holds all of them up. So frames wait for a lane that is about as fast as the fastest.
 */
static bool r2_tx_is_laggard(const r2_link_t *link, const r2_lane_t *lane, uint64_t bytes)
{
    uint64_t best_ns = R2_NEVER_NS;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_tx_is_prompt(&link->lanes[i])) {
            best_ns = r2_min(best_ns, r2_tx_expected_ns(&link->lanes[i], bytes));
        }
    }
    return R2_NEVER_NS != best_ns &&
           r2_tx_expected_ns(lane, bytes) / R2_LAGGARD_TIMES > r2_max(best_ns, R2_LAGGARD_NS);
}

/*
 * The lane that pulls the next packet; NULL: none has room. A hedge never goes where its twin is.
 * Rails may fail together: what is short, or is sent again, avoids lanes that may be next. Chunks
 * out of a GPU, also those that are sent again, go by the nearest rail that is done as soon.
 * @param item NULL: a chunk of `message` that goes for the first time.
 */
static r2_lane_t *r2_tx_lane(r2_link_t *link, const r2_tx_item_t *item,
                             const r2_tx_message_t *message, uint64_t bytes)
{
    bool on_gpu = NULL != item ? r2_tx_is_on_gpu(item) : message->on_gpu;
    const r2_near_t *near = r2_tx_near(item, message);
    bool patient = NULL == item && !message->may_copy; /* that is to leave at once */
    bool sound = r2_tx_has_sound_lane(link);
    bool urgent = NULL != item || bytes <= R2_SHORT_PACKET_BYTES;
    bool prompt = urgent && r2_tx_has_prompt_lane(link);
    bool frame = NULL != item && R2_WIRE_RELAY == item->kind;
    bool control = NULL != item && R2_WIRE_DATA != item->kind && !frame;
    /* control packets: never behind a window that does not move */
    r2_lane_t *best = NULL, *full = NULL;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[(link->turn.lane + i) % link->lane_count];

        if ((sound && R2_GRADE_SOUND != r2_lane_grade(lane)) ||
            (prompt && r2_lane_is_overdue(lane)) || !r2_lane_is_usable(lane) ||
            (on_gpu && !r2_lane_reads_gpus(lane)) ||
            (NULL != item && r2_lane_carries(lane, item)) || r2_relay_bars(link, lane, item) ||
            (frame && r2_tx_is_laggard(link, lane, bytes))) {
            continue;
        }
        if (!control && !r2_lane_room(lane, bytes)) {
            full = r2_tx_is_prompt(lane) && (NULL == full || r2_lane_emptier(lane, full)) ? lane
                                                                                          : full;
            continue;
        }
        if (bytes <= R2_SHORT_PACKET_BYTES) {
            return lane;
        }
        if (NULL == best || r2_lane_is_first(lane, best, near, bytes)) {
            best = lane;
        }
    }
    if (NULL != best && patient && r2_lane_is_fuller(best, full, bytes)) {
        best->tx.limited = true;
        return NULL;
    }
    return best;
}

static uint64_t r2_tx_item_bytes(const r2_tx_item_t *item)
{
    return sizeof(r2_wire_header_t) + (R2_WIRE_DATA == item->kind
                                           ? r2_tx_chunk_length(item->message, item->chunk)
                                           : item->payload_bytes);
}

/* True if a direct lane takes a frame as soon as there is room on it. */
static bool r2_tx_awaits_room(const r2_link_t *link)
{
    const bool sound = r2_tx_has_sound_lane(link);

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (!r2_lane_is_relay(lane) && (sound ? r2_lane_is_sound(lane) : r2_lane_is_usable(lane))) {
            return true;
        }
    }
    return false;
}

/* True if what comes behind an item that no lane takes now need not wait. */
static bool r2_tx_may_pass(const r2_link_t *link, const r2_tx_item_t *item, bool retransmit)
{
    return item->in_flight > 0 || /* a hedge, its twin is under way */
           r2_tx_is_on_gpu(item) ||
           (retransmit && R2_WIRE_RELAY == item->kind && !r2_tx_awaits_room(link));
}

/* True of a chunk in memory of a GPU that no lane sends from there: it is fetched. */
static bool r2_tx_is_away(const r2_tx_item_t *item)
{
    if (r2_tx_is_on_gpu(item) && r2_message_is_stuck(item->message)) {
        r2_message_fetch(item->message);
    }
    return r2_tx_is_on_gpu(item) && item->message->fetching;
}

/* Sends queued items (control, or lost and to be sent again) as far as lanes have room.
 * @param waits_p true, if what others pass waits for room. @return false: no lane has any. */
static bool r2_tx_items(r2_link_t *link, r2_tx_item_t **list, bool retransmit, bool *waits_p)
{
    r2_tx_item_t *item, *next;

    DL_FOREACH_SAFE(*list, item, next) {
        r2_lane_t *lane;

        if (!item->acked) {
            if (r2_tx_is_away(item)) {
                continue;
            }
            lane = r2_tx_lane(link, item, item->message, r2_tx_item_bytes(item));
            if (NULL == lane && r2_tx_may_pass(link, item, retransmit)) {
                *waits_p = *waits_p || (r2_tx_is_on_gpu(item) && 0 == item->in_flight);
                continue;
            }
            if (NULL == lane || !r2_tx_send(lane, item, retransmit)) {
                return false;
            }
        }
        DL_DELETE(*list, item);
        item->queued = false;
        if (item->acked) {
            r2_tx_item_release(link->net, item);
        }
    }
    return true;
}

/* What a packet counts for in a turn: an end knows of the other's packets no more than that. */
static uint32_t r2_tx_turn_bytes(uint32_t length)
{
    return length + (uint32_t) sizeof(r2_wire_header_t);
}

/* The lanes that have turns, as bits: those that nothing is known against, and that are no slower
 * than a quarter of the best. */
static uint32_t r2_tx_turn_lanes(const r2_link_t *link)
{
    uint64_t best = 0;
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        best =
            r2_max(best, r2_tx_is_prompt(&link->lanes[i]) ? link->lanes[i].tx.load.bytes_per_s : 0);
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];
        uint64_t rate = lane->tx.load.bytes_per_s;

        if (r2_tx_is_prompt(lane) && (0 == rate || 4 * rate >= best)) {
            lanes |= 1u << i;
        }
    }
    return lanes;
}

/*
 * True if the lane that has the turn may keep it: nothing waits in it, and no other one is faster.
 * Another one would be cold, and what is left of the turn is acknowledged by packets of its own.
 */
static bool r2_tx_turn_is_calm(const r2_link_t *link, uint32_t lanes)
{
    const r2_lane_t *lane = &link->lanes[link->turn.lane];
    uint64_t calm_ns = lane->timing.calm_rtt_ns;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const uint64_t other_ns = link->lanes[i].timing.calm_rtt_ns;

        if (0 != (lanes >> i & 1u) && 0 != other_ns) {
            calm_ns = r2_min(calm_ns, other_ns);
        }
    }
    return 0 != (lanes >> lane->idx & 1u) && lane->timing.srtt_ns < R2_TURN_CALM_TIMES * calm_ns;
}

/* The turn of a lane is over. */
static void r2_tx_turn_next(r2_link_t *link)
{
    const uint32_t lanes = r2_tx_turn_lanes(link);

    if (!r2_tx_turn_is_calm(link, lanes) || !r2_turn_again(&link->turn)) {
        r2_turn_next(&link->turn, lanes);
    }
}

void r2_tx_turn_heard(r2_lane_t *lane, uint32_t length)
{
    r2_link_t *link = lane->link;

    if (lane->idx == link->turn.lane || r2_tx_is_prompt(lane)) {
        r2_turn_heard(&link->turn, lane->idx, r2_tx_turn_bytes(length),
                      link->rank < link->net->rank);
    }
}

/* Sends the unsent chunks of a message that are granted and there; none while it is fetched.
 * @return false: no lane has room. */
static bool r2_tx_chunks(r2_link_t *link, r2_tx_message_t *message)
{
    const uint32_t end = r2_min(message->granted_chunks, message->ready_chunks);

    if (r2_message_is_stuck(message)) {
        r2_message_fetch(message);
    }
    while (!message->fetching && message->next_chunk < end) {
        uint32_t length = r2_tx_chunk_length(message, message->next_chunk);
        r2_tx_item_t *item;
        r2_lane_t *lane;

        if (1 == message->chunk_count && r2_turn_is_over(&link->turn)) {
            r2_tx_turn_next(link);
        }
        lane = r2_tx_lane(link, NULL, message, sizeof(r2_wire_header_t) + length);
        if (NULL == lane) {
            return false;
        }
        item = r2_tx_item_new(link->net, R2_WIRE_DATA);
        if (NULL == item) {
            r2_tx_short(link);
            return false;
        }
        item->message = message;
        item->chunk = message->next_chunk;
        if (!r2_tx_send(lane, item, false)) {
            r2_pool_put(&link->net->items, item);
            return message->fetching;
        }
        ++message->next_chunk;
        if (1 == message->chunk_count) {
            r2_turn_count(&link->turn, r2_tx_turn_bytes(length));
        }
    }
    return true;
}

/* Sends what may be sent. @return false: data waits for room on the lanes. */
static bool r2_tx_queues(r2_link_t *link)
{
    r2_tx_message_t *message, *next;
    bool frames_sent, waits = false;

    if (NULL != link->tx.control && !r2_tx_items(link, &link->tx.control, false, &waits)) {
        return true; /* no lane */
    }
    if (NULL != link->tx.retransmit && !r2_tx_items(link, &link->tx.retransmit, true, &waits)) {
        return false;
    }
    /* own data may go where they may not */
    frames_sent = NULL == link->tx.relayed || r2_tx_items(link, &link->tx.relayed, false, &waits);
    DL_FOREACH_SAFE(link->tx.queue, message, next) {
        if (!r2_tx_chunks(link, message)) {
            return false;
        }
        DL_DELETE(link->tx.queue, message);
        message->queued = false;
        r2_tx_message_settle(message);
    }
    return frames_sent && !waits;
}

/* When a lane asks that data waits for: what fills it is acknowledged in some milliseconds, for all
 * that was said, unless something of the peer's brings it soon. R2_NEVER_NS: it need not. A relay
 * lane may be as far ahead of its acknowledgements as they reach. */
static uint64_t r2_lane_asks_at_ns(const r2_lane_t *lane)
{
    return lane->tx.limited && NULL != lane->tx.in_flight && !r2_lane_is_relay(lane) &&
                   lane->tx.in_flight_bytes <= lane->tx.unasked_bytes && r2_lane_is_sound(lane)
               ? lane->tx.in_flight->sent_ns + R2_ROOM_NS
               : R2_NEVER_NS;
}

static void r2_tx_ask_for_room(r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count && r2_control_may(link, R2_WIRE_PING); ++i) {
        if (link->net->now_ns >= r2_lane_asks_at_ns(&link->lanes[i]) &&
            !r2_lane_ping(&link->lanes[i])) {
            link->lanes[i].tx.unasked_bytes = 0; /* not again: it comes in some milliseconds */
        }
    }
}

uint64_t r2_tx_room_deadline_ns(const r2_link_t *link)
{
    uint64_t at_ns = R2_NEVER_NS;

    if (NULL == link->tx.queue || !r2_control_may(link, R2_WIRE_PING)) {
        return R2_NEVER_NS;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        at_ns = r2_min(at_ns, r2_lane_asks_at_ns(&link->lanes[i]));
    }
    return at_ns;
}

void r2_link_push(r2_link_t *link)
{
    bool waiting, unused = false;

    if (link->net->in_callback || R2_OK != link->broken) {
        return;
    }
    r2_grant_refill(link);
    r2_grant_flush(link);
    r2_credit_request_deferred(link);
    waiting = !r2_tx_queues(link);
    link->tx.mute_ns = waiting ? 0 : link->tx.mute_ns; /* the time is that of nothing to send */
    if (NULL != link->tx.queue) {
        r2_tx_ask_for_room(link);
    }
    if (!waiting && r2_credit_request_mute(link)) {
        (void) r2_tx_items(link, &link->tx.control, false, &unused);
    }
    r2_rates_waiting(link, waiting);
}
