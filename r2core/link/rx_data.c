/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Data and requests for credit: de-duplication by message number and chunk, and what a peer may
 * make us hold.
 */
#include "r2_config.h"

#include "link/place.h"
#include "link/rx.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool r2_rx_is_complete(const r2_link_t *link, uint64_t number)
{
    return r2_seq64_lt(number, link->rx.watermark) ||
           r2_runs_has(&link->rx.completed, link->rx.watermark, number);
}

/* Remembers a complete message number and moves the watermark over all that follow each other. */
static void r2_rx_complete(r2_link_t *link, uint64_t number)
{
    if (number != link->rx.watermark) {
        r2_runs_add(&link->rx.completed, link->rx.watermark, number);
        return;
    }
    for (;;) {
        ++link->rx.watermark;
        if (!r2_runs_take_first(&link->rx.completed, link->rx.watermark)) {
            return;
        }
    }
}

/* Bounds what a peer can make this process hold (state.h). @param match NULL: there is none. */
static bool r2_rx_has_room(r2_link_t *link, const r2_wire_header_t *header, uint32_t chunk_count,
                           const r2_rx_match_t *match, bool discard)
{
    size_t arriving = link->rx.arriving.count + 1;

    if (arriving > R2_RX_ARRIVING_MAX || link->rx.completed.count + arriving > 2 * R2_RX_GAPS_MAX ||
        (link->rx.bitmap_bytes > 0 &&
         link->rx.bitmap_bytes + r2_rx_bitmap_bytes(chunk_count) > R2_RX_BITMAPS_MAX) ||
        R2_OK != r2_runs_reserve(&link->rx.completed, arriving)) {
        return false;
    }
    return discard || (NULL != match && match->posted) || r2_rx_may_keep(link, header);
}

static r2_rx_message_t *r2_rx_message_new(r2_link_t *link, const r2_wire_header_t *header)
{
    r2_net_t *net = link->net;
    uint32_t chunk_count = (uint32_t) r2_wire_chunks(header->message_bytes, header->chunk_bytes);
    bool discard = net->upcalls.over(net->upcalls.arg, &header->tag);
    r2_rx_message_t *message;
    r2_rx_match_t *match = discard ? NULL : r2_table_find(&link->rx.matches, &header->tag);

    if (!r2_rx_has_room(link, header, chunk_count, match, discard)) {
        return NULL;
    }
    message = r2_rx_message_get(net, chunk_count);
    if (NULL == message) {
        return NULL;
    }
    message->number = header->message;
    message->tag = header->tag;
    message->bytes = header->message_bytes;
    message->chunk_bytes = header->chunk_bytes;
    message->digest = header->digest;
    message->discard = discard;
    if (message->discard) {
        r2_rx_stray(link, header->tag.comm_key);
    } else if (NULL == match) {
        match = r2_rx_match(link, &message->tag);
    }
    if (!message->discard && (NULL == match || NULL != match->message)) {
        r2_rx_message_drop(net, message);
        return NULL;
    }
    r2_table_add(&link->rx.arriving, message);
    if (NULL != match) {
        match->message = message;
        message->match = match;
        r2_grant_heard(link, match, header->chunk_bytes);
    }
    link->rx.bitmap_bytes += r2_rx_bitmap_bytes(chunk_count);
    return message;
}

/* True if the header tells the same message as before: a peer that contradicts itself is not
 * believed. */
static bool r2_rx_same(const r2_rx_message_t *message, const r2_wire_header_t *header)
{
    return message->bytes == header->message_bytes && message->chunk_bytes == header->chunk_bytes &&
           0 == memcmp(&message->tag, &header->tag, sizeof(message->tag));
}

/*
 * A chunk that was put: it is where it belongs. Who waits for it is told by a thread that may touch
 * that memory.
 */
static bool r2_rx_take_placed(r2_lane_t *lane, r2_rx_message_t *message,
                              const r2_wire_header_t *header)
{
    r2_link_t *link = lane->link;
    r2_rx_match_t *match = message->match;

    if (!match->posted || !r2_place_is_granted(lane, match)) {
        ++link->net->counters->rx_malformed;
        return false;
    }
    if (0 != (header->flags & R2_WIRE_EAGER)) {
        link->rx.consumed += (uint32_t) r2_rx_cost(header->length);
    }
    link->net->counters->placed_bytes += header->length;
    link->net->counters->gpu_placed_bytes += 0 == match->gpu.gpu_id ? 0 : header->length;
    r2_grant_given(link, match, header->length);
    if (!r2_rx_may_write(link, match) && !message->deferred) {
        message->deferred = true;
        DL_APPEND(link->rx.deferred, message);
    }
    return true;
}

/* Takes a new chunk: drop, write or keep. @return false: could not be held, must not be
 * acknowledged. */
static bool r2_rx_take(r2_lane_t *lane, r2_rx_message_t *message, const r2_wire_header_t *header,
                       const void *data)
{
    r2_link_t *link = lane->link;
    uint64_t offset = (uint64_t) header->chunk * header->chunk_bytes;
    r2_rx_match_t *match = message->match;
    bool eager = 0 != (header->flags & R2_WIRE_EAGER);
    bool doubtful = 0 != (header->flags & R2_WIRE_UNSURE) && NULL != match &&
                    r2_place_doubts(link, match, header->destination);

    if (message->discard) {
        ++link->net->counters->rx_gone;
        link->rx.consumed += eager ? (uint32_t) r2_rx_cost(header->length) : 0;
        return true;
    }
    if (match->posted && !r2_rx_agree(match, message)) {
        message->discard = true;
        link->rx.consumed += eager ? (uint32_t) r2_rx_cost(header->length) : 0;
        r2_rx_finish(link, match, r2_rx_mismatch(link));
        return true;
    }
    if (0 != (header->flags & R2_WIRE_PLACED)) {
        return r2_rx_take_placed(lane, message, header);
    }
    if (match->posted && r2_rx_may_write(link, match) && !doubtful) {
        r2_rx_write(link, match, offset, data, header->length, eager);
        return true;
    }
    if (!r2_rx_keep(link, message, offset, data, header)) {
        return false;
    }
    if (doubtful) {
        r2_place_unsure(link, match, header->destination);
    }
    return true;
}

/* Bookkeeping after the last chunk of a message is held. Its last chunks ask to be acknowledged,
 * but those of a slower lane may not have been among them. */
static void r2_rx_held_all(r2_link_t *link, r2_rx_message_t *message)
{
    link->rx.hurry = message->awaited && message->chunk_count > 1;
    r2_table_remove(&link->rx.arriving, message);
    r2_rx_complete(link, message->number);
    if (NULL == message->match) {
        r2_rx_message_free(link, message);
    } else if (message->match->posted && NULL == message->early && !message->deferred) {
        r2_rx_finish(link, message->match, R2_OK);
    } else {
        r2_rx_unexpected(link, message->match, message->bytes, true);
    }
}

/*
 * A message that nobody announced, all of it in this packet, goes straight to who wants such, while
 * he is at hand. @return false: it goes the way of all others.
 */
static bool r2_rx_hand_over(r2_link_t *link, const r2_wire_header_t *header, const void *data)
{
    r2_net_t *net = link->net;
    const size_t arriving = link->rx.arriving.count + 1;

    if (R2_LINK_UNEXPECTED_KEY != header->tag.comm_key || header->length != header->message_bytes ||
        0 != (header->flags & R2_WIRE_PLACED) || 0 != header->digest || !net->app_drives ||
        NULL == net->upcalls.unexpected || !r2_rx_may_keep(link, header) ||
        NULL != r2_table_find(&link->rx.matches, &header->tag) ||
        link->rx.completed.count + arriving > 2 * R2_RX_GAPS_MAX ||
        R2_OK != r2_runs_reserve(&link->rx.completed, arriving) ||
        !net->upcalls.unexpected(net->upcalls.arg, link->rank, &header->tag, data,
                                 header->length)) {
        return false;
    }
    link->rx.consumed += (uint32_t) r2_rx_cost(header->length);
    net->counters->rx_bytes += header->length;
    r2_rx_complete(link, header->message);
    return true;
}

/* It is here already. */
static bool r2_rx_again(r2_lane_t *lane, const r2_wire_header_t *header, const r2_rx_match_t *match)
{
    ++lane->link->net->counters->rx_duplicates;
    if (0 != (header->flags & R2_WIRE_PLACED)) {
        r2_place_sure(lane, match, header->message);
    }
    return true;
}

/* @return false: the packet must not be acknowledged. */
bool r2_rx_data(r2_lane_t *lane, const r2_wire_header_t *header, const void *data)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;
    uint64_t bit = 1ull << (header->chunk % 64);
    r2_rx_message_t *message;

    if (r2_rx_is_complete(link, header->message)) {
        return r2_rx_again(lane, header, NULL);
    }
    net->hands_over = r2_rx_hand_over(link, header, data);
    if (net->hands_over) {
        return true;
    }
    message = r2_table_find(&link->rx.arriving, &header->message);
    if (NULL == message) {
        message = r2_rx_message_new(link, header);
    }
    if (NULL == message || !r2_rx_same(message, header)) {
        ++net->counters->rx_malformed;
        return false;
    }
    if (0 != (message->bitmap[header->chunk / 64] & bit)) {
        return r2_rx_again(lane, header, message->match);
    }
    message->map_pending = message->map_pending || 0 != (header->flags & R2_WIRE_MAP_PENDING);
    message->awaited = message->awaited || 0 != (header->flags & R2_WIRE_ACK_NOW);
    if (!r2_rx_take(lane, message, header, data)) {
        return false;
    }
    message->bitmap[header->chunk / 64] |= bit;
    net->counters->rx_bytes += header->length;
    ++message->held;
    if (message->held == message->chunk_count) {
        r2_rx_held_all(link, message);
    } else {
        r2_rx_arrived(message);
    }
    return true;
}

/*
 * The peer has given up a message, and we hold what comes of it. That its receive waits is not
 * changed: it fails with its communicator, or asks. Also of a number of which nothing came, or
 * there were gaps in the numbers for ever.
 */
void r2_rx_void(r2_link_t *link, uint64_t number)
{
    r2_rx_message_t *message = r2_table_find(&link->rx.arriving, &number);
    const size_t arriving = link->rx.arriving.count + 1;

    if (r2_rx_is_complete(link, number)) {
        return;
    }
    if (NULL == message && (link->rx.completed.count + arriving > 2 * R2_RX_GAPS_MAX ||
                            R2_OK != r2_runs_reserve(&link->rx.completed, arriving))) {
        return;
    }
    if (NULL != message && NULL != message->match && !message->match->posted) {
        r2_rx_match_drop(link, message->match);
    } else if (NULL != message && NULL != message->match) {
        message->match->message = NULL;
    }
    if (NULL != message) {
        r2_rx_message_free(link, message);
    }
    r2_rx_complete(link, number);
}

/*
 * A peer in order may ask for more receives than are kept here, where it is far ahead. What is not
 * kept is acknowledged all the same, or its lanes would look dead: receives of this peer get credit
 * without asking from then on, and calls, which have no receive before they are heard of, are asked
 * for again (mismatch.c).
 */
bool r2_rx_rts(r2_link_t *link, const r2_wire_header_t *header)
{
    r2_net_t *net = link->net;
    r2_tag_t tag = header->tag;
    r2_rx_match_t *match;

    if (r2_rx_is_complete(link, header->message)) {
        return true;
    }
    if (net->upcalls.over(net->upcalls.arg, &tag)) {
        r2_rx_stray(link, tag.comm_key);
        return true;
    }
    match = r2_table_find(&link->rx.matches, &tag);
    if (NULL == match && link->rx.unposted < R2_RX_UNPOSTED_MAX) {
        match = r2_rx_match(link, &tag);
    }
    if (NULL == match) {
        link->rx.rts_lost = true;
        return true;
    }
    match->rts = true;
    if (match->posted && !r2_rx_announced_fits(match, header->message_bytes, header->digest)) {
        r2_rx_finish(link, match, r2_rx_mismatch(link)); /* its credit might be less than a chunk */
        return true;
    }
    r2_grant_heard(link, match, header->chunk_bytes);
    if (!match->posted) {
        match->digest = header->digest;
        match->bytes = header->message_bytes;
        r2_rx_unexpected(link, match, header->message_bytes, false);
    }
    return true;
}
