/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receiving: fence, de-duplication, matching of messages with rows, parking.
 */
#include "r2_config.h"

#include "link/state.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool r2_rx_is_complete(const r2_link_t *link, uint64_t number)
{
    return r2_seq64_lt(number, link->watermark) ||
           r2_runs_has(&link->completed, link->watermark, number);
}

/* Remembers a complete message number and moves the watermark over all that follow each other. */
static void r2_rx_complete(r2_link_t *link, uint64_t number)
{
    if (number != link->watermark) {
        r2_runs_add(&link->completed, link->watermark, number);
        return;
    }
    for (;;) {
        ++link->watermark;
        if (!r2_runs_take_first(&link->completed, link->watermark)) {
            return;
        }
    }
}

/* What a chunk that came without credit takes of the parking budget. */
static uint64_t r2_rx_cost(uint32_t bytes)
{
    return (uint64_t) bytes + R2_UNASKED_COST_BYTES;
}

/* A parked chunk leaves the parking place. */
static void r2_rx_unparked(r2_link_t *link, r2_parked_t *parked)
{
    link->parked_bytes -= parked->bytes;
    link->net->parked_bytes -= parked->bytes;
    link->parked_cost -= parked->unasked ? r2_rx_cost(parked->bytes) : 0;
    free(parked);
}

/* Throws away what is parked; it counts as consumed. */
static void r2_rx_strip(r2_link_t *link, r2_rx_message_t *message)
{
    while (NULL != message->parked) {
        r2_parked_t *parked = message->parked;

        message->parked = parked->next;
        link->consumed += parked->unasked ? (uint32_t) r2_rx_cost(parked->bytes) : 0;
        r2_rx_unparked(link, parked);
    }
    if (message->deferred) {
        message->deferred = false;
        DL_DELETE(link->deferred, message);
    }
}

static size_t r2_rx_bitmap_bytes(uint32_t chunk_count)
{
    return ((size_t) chunk_count + 63) / 64 * sizeof(uint64_t);
}

static void r2_rx_message_free(r2_link_t *link, r2_rx_message_t *message)
{
    r2_rx_strip(link, message);
    if (message->held < message->chunk_count) {
        HASH_DEL(link->arriving, message);
    }
    link->bitmap_bytes -= r2_rx_bitmap_bytes(message->chunk_count);
    free(message->bitmap);
    free(message);
}

static r2_rx_match_t *r2_rx_match(r2_link_t *link, const r2_tag_t *tag)
{
    r2_rx_match_t *match;

    HASH_FIND(hh, link->matches, tag, sizeof(*tag), match);
    if (NULL != match) {
        return match;
    }
    match = calloc(1, sizeof(*match));
    if (NULL != match) {
        match->tag = *tag;
        ++link->unposted;
        HASH_ADD(hh, link->matches, tag, sizeof(match->tag), match);
    }
    return match;
}

void r2_rx_match_drop(r2_link_t *link, r2_rx_match_t *match)
{
    HASH_DEL(link->matches, match);
    link->unposted -= match->posted ? 0 : 1;
    if (NULL != match->message) {
        match->message->match = NULL;
        if (match->message->held < match->message->chunk_count) {
            match->message->discard = true; /* the rest is acknowledged and dropped */
            r2_rx_strip(link, match->message);
        } else {
            r2_rx_message_free(link, match->message);
        }
    }
    free(match);
}

/* A row and its message belong together, or the ranks made different plans. */
static bool r2_rx_agree(const r2_rx_match_t *match, const r2_rx_message_t *message)
{
    return match->bytes == message->bytes && match->digest == message->digest;
}

static void r2_rx_finish(r2_link_t *link, r2_rx_match_t *match, r2_status_t status)
{
    r2_link_done_fn_t done = match->done;
    void *arg = match->arg;

    r2_rx_match_drop(link, match);
    done(arg, status);
}

static void r2_rx_write(r2_link_t *link, r2_rx_match_t *match, uint64_t offset, const void *data,
                        uint32_t bytes, bool unasked)
{
    if (NULL != match->sink) {
        match->sink(match->arg, offset, data, bytes);
    } else if (bytes > 0) {
        memcpy(match->data + offset, data, bytes);
    }
    if (unasked) {
        link->consumed += (uint32_t) r2_rx_cost(bytes);
    }
}

/* Gives the parked chunks of a message to its row. */
static void r2_rx_unpark(r2_link_t *link, r2_rx_match_t *match)
{
    r2_rx_message_t *message = match->message;

    while (NULL != message->parked) {
        r2_parked_t *parked = message->parked;

        message->parked = parked->next;
        r2_rx_write(link, match, parked->offset, parked->data, parked->bytes, parked->unasked);
        r2_rx_unparked(link, parked);
    }
    if (message->deferred) {
        message->deferred = false;
        DL_DELETE(link->deferred, message);
    }
}

/*
 * Before its row is posted, a chunk has to come out of the sender's parking budget, and the sender
 * spends that on the first chunks of a message. This holds for every peer in order.
 */
static bool r2_rx_may_park(const r2_link_t *link, const r2_wire_header_t *header)
{
    uint64_t budget = link->net->params->parking_bytes;
    uint64_t before = header->chunk * r2_rx_cost(header->chunk_bytes);

    return 0 != (header->flags & R2_WIRE_UNASKED) && before + r2_rx_cost(header->length) <= budget &&
           link->parked_cost + r2_rx_cost(header->length) <= budget;
}

static bool r2_rx_park(r2_link_t *link, r2_rx_message_t *message, uint64_t offset, const void *data,
                       const r2_wire_header_t *header)
{
    r2_net_t *net = link->net;
    r2_parked_t *parked;

    if (!message->match->posted && !r2_rx_may_park(link, header)) {
        ++net->counters->rx_malformed;
        return false;
    }
    parked = malloc(sizeof(*parked) + header->length);
    if (NULL == parked) {
        return false;
    }
    parked->offset = offset;
    parked->bytes = header->length;
    parked->unasked = 0 != (header->flags & R2_WIRE_UNASKED);
    if (header->length > 0) {
        memcpy(parked->data, data, header->length);
    }
    parked->next = message->parked;
    message->parked = parked;
    link->parked_bytes += parked->bytes;
    link->parked_cost += parked->unasked ? r2_rx_cost(parked->bytes) : 0;
    net->parked_bytes += parked->bytes;
    ++net->counters->parked_chunks;
    net->counters->parked_bytes_max = r2_max(net->counters->parked_bytes_max, net->parked_bytes);
    if (message->match->posted && !message->deferred) {
        message->deferred = true;
        DL_APPEND(link->deferred, message);
    }
    return true;
}

/* Bounds what a peer can make this process hold (state.h). */
static bool r2_rx_has_room(r2_link_t *link, const r2_wire_header_t *header, uint32_t chunk_count,
                           bool discard)
{
    size_t arriving = HASH_COUNT(link->arriving) + 1;
    r2_rx_match_t *match;

    if (arriving > R2_RX_ARRIVING_MAX || link->completed.count + arriving > 2 * R2_RX_GAPS_MAX ||
        link->bitmap_bytes + r2_rx_bitmap_bytes(chunk_count) > R2_RX_BITMAPS_MAX ||
        R2_OK != r2_runs_reserve(&link->completed, arriving)) {
        return false;
    }
    if (discard) {
        return true;
    }
    HASH_FIND(hh, link->matches, &header->tag, sizeof(header->tag), match);
    return (NULL != match && match->posted) || r2_rx_may_park(link, header);
}

static r2_rx_message_t *r2_rx_message_new(r2_link_t *link, const r2_wire_header_t *header)
{
    r2_net_t *net = link->net;
    uint32_t chunk_count = (uint32_t) r2_wire_chunks(header->message_bytes, header->chunk_bytes);
    bool discard = net->upcalls.over(net->upcalls.arg, header->tag.comm_key, header->tag.coll_seq);
    r2_rx_message_t *message;
    r2_rx_match_t *match = NULL;

    if (!r2_rx_has_room(link, header, chunk_count, discard)) {
        return NULL;
    }
    message = calloc(1, sizeof(*message));
    if (NULL == message) {
        return NULL;
    }
    message->number = header->message;
    message->tag = header->tag;
    message->bytes = header->message_bytes;
    message->chunk_bytes = header->chunk_bytes;
    message->chunk_count = chunk_count;
    message->digest = header->digest;
    message->bitmap = calloc(1, r2_rx_bitmap_bytes(chunk_count));
    message->discard = discard;
    if (!message->discard) {
        match = r2_rx_match(link, &message->tag);
    }
    if (NULL == message->bitmap || (!message->discard && (NULL == match || NULL != match->message))) {
        free(message->bitmap);
        free(message);
        return NULL;
    }
    if (NULL != match) {
        match->message = message;
        message->match = match;
    }
    link->bitmap_bytes += r2_rx_bitmap_bytes(chunk_count);
    HASH_ADD(hh, link->arriving, number, sizeof(message->number), message);
    return message;
}

/* True if the header tells the same message as before: a peer that contradicts itself is not believed. */
static bool r2_rx_same(const r2_rx_message_t *message, const r2_wire_header_t *header)
{
    return message->bytes == header->message_bytes && message->chunk_bytes == header->chunk_bytes &&
           0 == memcmp(&message->tag, &header->tag, sizeof(message->tag));
}

/* Takes a new chunk: drop, write or park. @return false: could not be held, must not be acknowledged. */
static bool r2_rx_take(r2_link_t *link, r2_rx_message_t *message, const r2_wire_header_t *header,
                       const void *data)
{
    uint64_t offset = (uint64_t) header->chunk * header->chunk_bytes;
    r2_rx_match_t *match = message->match;
    bool unasked = 0 != (header->flags & R2_WIRE_UNASKED);

    if (message->discard) {
        ++link->net->counters->rx_gone;
        link->consumed += unasked ? (uint32_t) r2_rx_cost(header->length) : 0;
        return true;
    }
    if (match->posted && !r2_rx_agree(match, message)) {
        message->discard = true;
        link->consumed += unasked ? (uint32_t) r2_rx_cost(header->length) : 0;
        r2_rx_finish(link, match, R2_ERR_PLAN_MISMATCH);
        return true;
    }
    if (match->posted && link->net->may_deliver) {
        r2_rx_write(link, match, offset, data, header->length, unasked);
        return true;
    }
    return r2_rx_park(link, message, offset, data, header);
}

/* Bookkeeping after the last chunk of a message is held. */
static void r2_rx_held_all(r2_link_t *link, r2_rx_message_t *message)
{
    HASH_DEL(link->arriving, message);
    r2_rx_complete(link, message->number);
    if (NULL == message->match) {
        r2_rx_message_free(link, message);
    } else if (message->match->posted && NULL == message->parked) {
        r2_rx_finish(link, message->match, R2_OK);
    }
}

/* @return false: the packet must not be acknowledged. */
static bool r2_rx_data(r2_link_t *link, const r2_wire_header_t *header, const void *data)
{
    r2_net_t *net = link->net;
    uint64_t bit = 1ull << (header->chunk % 64);
    r2_rx_message_t *message;

    if (r2_rx_is_complete(link, header->message)) {
        ++net->counters->rx_duplicates;
        return true;
    }
    HASH_FIND(hh, link->arriving, &header->message, sizeof(header->message), message);
    if (NULL == message) {
        message = r2_rx_message_new(link, header);
    }
    if (NULL == message || !r2_rx_same(message, header)) {
        ++net->counters->rx_malformed;
        return false;
    }
    if (0 != (message->bitmap[header->chunk / 64] & bit)) {
        ++net->counters->rx_duplicates;
        return true;
    }
    if (!r2_rx_take(link, message, header, data)) {
        return false;
    }
    message->bitmap[header->chunk / 64] |= bit;
    net->counters->rx_bytes += header->length;
    ++message->held;
    if (message->held == message->chunk_count) {
        r2_rx_held_all(link, message);
    }
    return true;
}

static void r2_rx_grant(r2_link_t *link, r2_rx_match_t *match)
{
    if (!match->granted) {
        match->granted = true;
        r2_credit_grant(link, &match->tag);
    }
}

static bool r2_rx_rts(r2_link_t *link, const r2_wire_header_t *header)
{
    r2_net_t *net = link->net;
    r2_tag_t tag = header->tag;
    r2_rx_match_t *match;

    if (r2_rx_is_complete(link, header->message) ||
        net->upcalls.over(net->upcalls.arg, tag.comm_key, tag.coll_seq)) {
        return true;
    }
    HASH_FIND(hh, link->matches, &tag, sizeof(tag), match);
    if (NULL == match && link->unposted < R2_RX_UNPOSTED_MAX) {
        match = r2_rx_match(link, &tag);
    }
    if (NULL == match) {
        return false;
    }
    match->rts = true;
    if (match->posted) {
        r2_rx_grant(link, match);
    }
    return true;
}

static void r2_rx_lane_down(r2_link_t *link, const void *data)
{
    uint64_t connection;

    memcpy(&connection, data, sizeof(connection));
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (0 != lane->rx_connection && lane->rx_connection == connection) {
            lane->failed = true;
            lane->why = R2_ERR_LANE_DOWN;
        }
    }
}

static void r2_rx_abort(r2_link_t *link, const void *data)
{
    r2_net_t *net = link->net;
    r2_wire_abort_t abort;

    memcpy(&abort, data, sizeof(abort));
    if (abort.status < 0) {
        net->upcalls.aborted(net->upcalls.arg, link->rank, abort.comm_key,
                             (r2_status_t) abort.status);
    }
}

/* @return false: the packet was not taken and must not be acknowledged. */
static bool r2_rx_sequenced(r2_lane_t *lane, const r2_wire_header_t *header, const void *data)
{
    r2_link_t *link = lane->link;

    switch ((r2_wire_kind_t) header->kind) {
    case R2_WIRE_DATA:
        return r2_rx_data(link, header, data);
    case R2_WIRE_RTS:
        return r2_rx_rts(link, header);
    case R2_WIRE_CREDIT:
        return r2_credit_received(link, data, header->length / sizeof(r2_tag_t));
    case R2_WIRE_LANE_DOWN:
        r2_rx_lane_down(link, data);
        return true;
    case R2_WIRE_ABORT:
        r2_rx_abort(link, data);
        return true;
    case R2_WIRE_PING:
    case R2_WIRE_HELLO:
    case R2_WIRE_HELLO_ACK:
    case R2_WIRE_ACK:
    case R2_WIRE_KIND_END:
        return true;
    }
    return true;
}

/*
 * The end of a silence: the peer slept, and so did its acknowledgements. Lanes that came in doubt get
 * one more timeout; once, or a peer that speaks rarely would hide a lane that is dead.
 */
static void r2_rx_life(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    uint64_t now_ns = link->net->now_ns;
    uint64_t silence_ns = link->net->params->failure_timeout_ms * R2_NS_PER_MS / 2;

    for (uint32_t i = 0; now_ns - link->last_rx_ns > silence_ns && i < link->lane_count; ++i) {
        if (link->lanes[i].hedged && !link->lanes[i].reprieved) {
            link->lanes[i].reprieved = true;
            link->lanes[i].timer_base_ns = now_ns;
        }
    }
    link->last_rx_ns = now_ns;
    link->net->last_rx_ns = now_ns;
    lane->last_rx_ns = now_ns;
    lane->unreachable = false;
    if (R2_ERR_NO_PATH == link->broken && lane->state >= R2_LANE_UP) {
        link->broken = R2_OK;
    }
}

void r2_rx_packet(void *worker, const void *packet_header, size_t header_bytes, const void *data,
                  size_t data_bytes)
{
    r2_net_t *net = ((r2_rail_worker_t *) worker)->rail->owner;
    r2_wire_header_t header;
    uint64_t connection;
    r2_lane_t *lane;

    ++net->counters->rx_packets;
    if (R2_OK != r2_wire_parse(packet_header, header_bytes, data_bytes, &header)) {
        ++net->counters->rx_malformed;
        return;
    }
    connection = header.connection;
    HASH_FIND(hh, net->connections, &connection, sizeof(connection), lane);
    if (NULL == lane || lane->failed) {
        ++net->counters->rx_ghosts;
        return;
    }
    r2_rx_life(lane);
    if (header.kind <= R2_WIRE_HELLO_ACK || R2_LANE_WIRING == lane->state) {
        r2_lane_connected(lane, header.kind);
    }
    if (R2_WIRE_HELLO == header.kind || R2_WIRE_HELLO_ACK == header.kind) {
        return;
    }
    r2_ack_received(lane, &header);
    r2_credit_consumed(lane->link, header.consumed);
    if (!r2_wire_sequenced(header.kind)) {
        return;
    }
    if (r2_ack_is_duplicate(lane, header.lane_seq)) {
        r2_ack_note(lane, &header); /* our acknowledgement was lost: say it again */
        ++net->counters->rx_duplicates;
        return;
    }
    if (r2_rx_sequenced(lane, &header, data)) {
        r2_ack_note(lane, &header);
    }
}

r2_status_t r2_link_recv(r2_link_t *link, const r2_link_recv_t *args)
{
    r2_rx_match_t *match;
    r2_rx_message_t *message;
    r2_status_t status;

    if (R2_OK != link->broken) {
        return link->broken;
    }
    match = r2_rx_match(link, &args->tag);
    if (NULL == match) {
        return R2_ERR_NO_MEMORY;
    }
    r2_assert(!match->posted);
    match->posted = true;
    --link->unposted;
    match->data = args->data;
    match->sink = args->sink;
    match->bytes = args->bytes;
    match->digest = args->digest;
    match->done = args->done;
    match->arg = args->arg;
    message = match->message;
    if (NULL != message) {
        status = r2_rx_agree(match, message) ? R2_OK : R2_ERR_PLAN_MISMATCH;
        if (R2_OK == status) {
            r2_rx_unpark(link, match);
        }
        if (R2_OK != status || message->held == message->chunk_count) {
            r2_rx_match_drop(link, match);
            return status;
        }
    }
    if (match->rts || args->bytes > R2_CREDIT_MIN_BYTES) {
        r2_rx_grant(link, match);
    }
    r2_link_activate(link);
    return R2_IN_PROGRESS;
}

void r2_rx_deferred(r2_link_t *link)
{
    while (NULL != link->deferred && link->net->may_deliver) {
        r2_rx_message_t *message = link->deferred;

        r2_rx_unpark(link, message->match);
        if (message->held == message->chunk_count) {
            r2_rx_finish(link, message->match, R2_OK);
        }
    }
}

void r2_rx_free(r2_link_t *link)
{
    r2_rx_match_t *match, *next_match;
    r2_rx_message_t *message, *next_message;

    HASH_ITER(hh, link->matches, match, next_match)
    {
        r2_rx_match_drop(link, match);
    }
    HASH_ITER(hh, link->arriving, message, next_message)
    {
        r2_rx_message_free(link, message);
    }
    r2_runs_fini(&link->completed);
}
