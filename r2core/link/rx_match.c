/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives and the messages they wait for: matching, and what is kept as unexpected.
 */
#include "r2_config.h"

#include "link/local.h"
#include "link/place.h"
#include "link/rx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* What a chunk that came without credit takes of the budget of unexpected data. */
uint64_t r2_rx_cost(uint32_t bytes)
{
    return (uint64_t) bytes + R2_EAGER_COST_BYTES;
}

/* An unexpected chunk is not kept any longer. */
static void r2_rx_release(r2_link_t *link, r2_early_chunk_t *early)
{
    link->rx.unexpected_bytes -= early->bytes;
    link->net->unexpected_bytes -= early->bytes;
    link->rx.unexpected_cost -= early->eager ? r2_rx_cost(early->bytes) : 0;
    r2_blocks_put(&link->net->blocks, early, sizeof(*early) + early->bytes);
}

/* Throws away what is kept as unexpected; it counts as consumed. */
static void r2_rx_strip(r2_link_t *link, r2_rx_message_t *message)
{
    while (NULL != message->early) {
        r2_early_chunk_t *early = message->early;

        message->early = early->next;
        link->rx.consumed += early->eager ? (uint32_t) r2_rx_cost(early->bytes) : 0;
        r2_rx_release(link, early);
    }
    if (message->deferred) {
        message->deferred = false;
        DL_DELETE(link->rx.deferred, message);
    }
}

size_t r2_rx_bitmap_bytes(uint32_t chunk_count)
{
    return ((size_t) chunk_count + 63) / 64 * sizeof(uint64_t);
}

r2_rx_message_t *r2_rx_message_get(r2_net_t *net, uint32_t chunk_count)
{
    r2_rx_message_t *message = r2_pool_get(&net->arriving);

    if (NULL == message) {
        return NULL;
    }
    memset(message, 0, sizeof(*message));
    message->chunk_count = chunk_count;
    message->bitmap = chunk_count <= 64
                          ? &message->bits
                          : r2_blocks_get(&net->blocks, r2_rx_bitmap_bytes(chunk_count));
    if (NULL == message->bitmap) {
        r2_pool_put(&net->arriving, message);
        return NULL;
    }
    memset(message->bitmap, 0, r2_rx_bitmap_bytes(chunk_count));
    return message;
}

void r2_rx_message_drop(r2_net_t *net, r2_rx_message_t *message)
{
    if (message->bitmap != &message->bits) {
        r2_blocks_put(&net->blocks, message->bitmap, r2_rx_bitmap_bytes(message->chunk_count));
    }
    r2_pool_put(&net->arriving, message);
}

void r2_rx_message_free(r2_link_t *link, r2_rx_message_t *message)
{
    r2_rx_strip(link, message);
    r2_grant_told(link, message);
    if (message->held < message->chunk_count) {
        r2_table_remove(&link->rx.arriving, message);
    }
    link->rx.bitmap_bytes -= r2_rx_bitmap_bytes(message->chunk_count);
    r2_rx_message_drop(link->net, message);
}

r2_rx_match_t *r2_rx_match(r2_link_t *link, const r2_tag_t *tag)
{
    r2_rx_match_t *match;

    match = r2_table_find(&link->rx.matches, tag);
    if (NULL != match) {
        return match;
    }
    match = r2_pool_get(&link->net->matches);
    if (NULL != match) {
        memset(match, 0, sizeof(*match));
        match->tag = *tag;
        match->rts = link->rx.rts_lost;
        r2_table_add(&link->rx.matches, match);
        ++link->rx.unposted;
    }
    return match;
}

void r2_rx_match_drop(r2_link_t *link, r2_rx_match_t *match)
{
    r2_table_remove(&link->rx.matches, match);
    r2_landing_off(link, match);
    r2_rx_expected(link, match);
    r2_place_drop(link, match);
    r2_grant_end(link, match);
    link->rx.unposted -= match->posted ? 0 : 1;
    link->rx.striped -= match->striped ? 1 : 0;
    link->rx.shorts -= match->is_short ? 1 : 0;
    link->net->awaited_recvs -= match->posted && match->bytes > 0 ? 1 : 0;
    if (NULL != match->message) {
        match->message->match = NULL;
        if (match->message->held < match->message->chunk_count) {
            match->message->discard = true; /* the rest is acknowledged and dropped */
            r2_rx_strip(link, match->message);
            if (match->granted_bytes < match->message->bytes) {
                r2_grant_all(link, match->message);
            }
        } else {
            r2_rx_message_free(link, match->message);
        }
    }
    r2_pool_put(&link->net->matches, match);
}

/* A receive and its message belong together, or the ranks made different plans. */
bool r2_rx_agree(const r2_rx_match_t *match, const r2_rx_message_t *message)
{
    return match->bytes == message->bytes && match->digest == message->digest;
}

r2_status_t r2_rx_mismatch(r2_link_t *link)
{
    snprintf(link->net->error_text, sizeof(link->net->error_text),
             "rank %u on %s and this one made different plans", link->rank, link->info.host_name);
    return R2_ERR_PLAN_MISMATCH;
}

void r2_rx_stray(r2_link_t *link, uint64_t comm_key)
{
    if (NULL != link->net->upcalls.stray) {
        link->net->upcalls.stray(link->net->upcalls.arg, link->rank, comm_key);
    }
}

static void r2_rx_tell_map_pending(const r2_rx_match_t *match)
{
    if (NULL != match->map_pending && NULL != match->message && match->message->map_pending) {
        *match->map_pending = true;
    }
}

void r2_rx_finish(r2_link_t *link, r2_rx_match_t *match, r2_status_t status)
{
    r2_link_done_fn_t done = match->done;
    void *arg = match->arg;
    bool held_back;

    r2_rx_tell_map_pending(match);
    held_back = r2_place_hold_back(link, match, status);
    r2_rx_match_drop(link, match);
    if (!held_back) {
        done(arg, status);
    }
}

/* True if the receive's sink takes the chunks of its message, all of them. Within a host a message
 * may come whole, without a record of its chunks. */
static bool r2_rx_sinks(const r2_rx_match_t *match)
{
    const r2_rx_message_t *message = match->message;

    return NULL != match->sink &&
           (0 == match->grain_bytes || NULL == message || 1 == message->chunk_count ||
            0 == message->chunk_bytes % match->grain_bytes);
}

void r2_rx_write(r2_link_t *link, r2_rx_match_t *match, uint64_t offset, const void *data,
                 uint32_t bytes, bool eager)
{
    if (r2_rx_sinks(match)) {
        match->sink(match->arg, offset, data, bytes);
    } else if (bytes > 0 && data != match->data + offset) { /* else it landed there */
        memcpy(match->data + offset, data, bytes);
    }
    if (eager) {
        link->rx.consumed += (uint32_t) r2_rx_cost(bytes);
    }
    r2_grant_given(link, match, bytes);
}

/* Gives the unexpected chunks of a message to its receive. */
static void r2_rx_give_kept(r2_link_t *link, r2_rx_match_t *match)
{
    r2_rx_message_t *message = match->message;

    while (NULL != message->early) {
        r2_early_chunk_t *early = message->early;

        message->early = early->next;
        r2_rx_write(link, match, early->offset, early->data, early->bytes, early->eager);
        r2_rx_release(link, early);
    }
    if (message->deferred) {
        message->deferred = false;
        DL_DELETE(link->rx.deferred, message);
    }
}

void r2_rx_arrived(r2_rx_message_t *message)
{
    const r2_rx_match_t *match = message->match;
    const uint32_t before = message->first;

    if (NULL == match || NULL == match->arrived || !match->posted || NULL != message->early ||
        message->deferred) {
        return;
    }
    while (message->first < message->chunk_count &&
           0 != (message->bitmap[message->first / 64] & 1ull << message->first % 64)) {
        ++message->first;
    }
    if (message->first > before) {
        match->arrived(match->arg,
                       r2_min((uint64_t) message->first * message->chunk_bytes, message->bytes));
    }
}

/*
 * Before its receive is posted, a chunk has to come out of the sender's budget of unexpected data,
 * and the sender spends that on the first chunks of a message. This holds for every peer in order.
 */
bool r2_rx_may_keep(const r2_link_t *link, const r2_wire_header_t *header)
{
    uint64_t budget = r2_net_unexpected_bytes(link->net);
    uint64_t before = header->chunk * r2_rx_cost(header->chunk_bytes);

    return 0 != (header->flags & R2_WIRE_EAGER) && before + r2_rx_cost(header->length) <= budget &&
           link->rx.unexpected_cost + r2_rx_cost(header->length) <= budget;
}

/* Else it has to be of what its receive was granted. */
static bool r2_rx_is_granted(const r2_rx_match_t *match, const r2_wire_header_t *header)
{
    uint64_t end = (uint64_t) header->chunk * header->chunk_bytes + header->length;

    return match->posted && end <= match->granted_bytes;
}

bool r2_rx_keep(r2_link_t *link, r2_rx_message_t *message, uint64_t offset, const void *data,
                const r2_wire_header_t *header)
{
    r2_net_t *net = link->net;
    r2_early_chunk_t *early;

    if (!r2_rx_is_granted(message->match, header) && !r2_rx_may_keep(link, header)) {
        ++net->counters->rx_malformed;
        return false;
    }
    early = r2_blocks_get(&net->blocks, sizeof(*early) + header->length);
    if (NULL == early) {
        return false;
    }
    early->offset = offset;
    early->bytes = header->length;
    early->eager = 0 != (header->flags & R2_WIRE_EAGER);
    if (header->length > 0) {
        memcpy(early->data, data, header->length);
    }
    early->next = message->early;
    message->early = early;
    link->rx.unexpected_bytes += early->bytes;
    link->rx.unexpected_cost += early->eager ? r2_rx_cost(early->bytes) : 0;
    net->unexpected_bytes += early->bytes;
    ++net->counters->unexpected_chunks;
    net->counters->unexpected_bytes_max =
        r2_max(net->counters->unexpected_bytes_max, net->unexpected_bytes);
    if (message->match->posted && !message->deferred) {
        message->deferred = true;
        DL_APPEND(link->rx.deferred, message);
    }
    return true;
}

/* The receive of a match is there. */
static void r2_rx_match_post(r2_link_t *link, r2_rx_match_t *match, const r2_link_recv_t *args)
{
    match->posted = true;
    --link->rx.unposted;
    match->data = args->data;
    /* who needs no sink gets the message without a copy where that can be */
    match->sink = NULL == args->gpu && args->grain_bytes > 0 && r2_place_wants(link, args->bytes)
                      ? NULL
                      : args->sink;
    match->grain_bytes = args->grain_bytes;
    if (NULL != args->gpu) {
        match->gpu = *args->gpu;
        match->gpu_data = args->gpu_data;
    }
    match->bytes = args->bytes;
    match->striped = r2_link_stripes(link, args->bytes);
    link->rx.striped += match->striped ? 1 : 0;
    match->is_short = args->bytes <= R2_RX_SHORT_BYTES;
    link->rx.shorts += match->is_short ? 1 : 0;
    link->net->awaited_recvs += args->bytes > 0 ? 1 : 0;
    match->digest = args->digest;
    match->since_ns = link->net->now_ns;
    match->map_pending = args->map_pending;
    match->arrived = args->arrived;
    match->done = args->done;
    match->arg = args->arg;
}

r2_status_t r2_link_recv(r2_link_t *link, const r2_link_recv_t *args)
{
    r2_rx_match_t *match;
    r2_rx_message_t *message;
    r2_status_t status;
    bool fits;

    if (R2_OK != link->broken) {
        return link->broken;
    }
    if (r2_local_at_hand(link, args, &status)) {
        return R2_OK == status ? R2_OK : r2_rx_mismatch(link);
    }
    match = r2_rx_match(link, &args->tag);
    if (NULL == match) {
        return R2_ERR_NO_MEMORY;
    }
    r2_assert(!match->posted);
    r2_rx_expected(link, match);
    fits = 0 == match->chunk_bytes || r2_rx_announced_fits(match, args->bytes, args->digest);
    r2_rx_match_post(link, match, args);
    message = match->message;
    if (!fits) {
        r2_rx_match_drop(link, match);
        return r2_rx_mismatch(link);
    }
    if (NULL != message) {
        status = r2_rx_agree(match, message) ? R2_OK : r2_rx_mismatch(link);
        if (R2_OK == status) {
            r2_rx_give_kept(link, match);
        }
        if (R2_OK != status || message->held == message->chunk_count) {
            r2_rx_tell_map_pending(match);
            r2_rx_match_drop(link, match);
            return status;
        }
        r2_rx_arrived(message);
    }
    if (link->path.left) {
        r2_rx_match_drop(link, match);
        return r2_link_has_left(link);
    }
    if (NULL != args->granted_p) {
        *args->granted_p = r2_grant_first(link, match);
    }
    r2_grant_want(link, match);
    r2_link_activate(link);
    return R2_IN_PROGRESS;
}

void r2_link_unpost(r2_link_t *link, const r2_tag_t *tag)
{
    r2_rx_match_t *match;

    match = r2_table_find(&link->rx.matches, tag);
    if (NULL != match && match->posted) {
        r2_rx_match_drop(link, match);
    }
}

/* The first that may be given what is kept for it. */
static r2_rx_message_t *r2_rx_deferred_first(const r2_link_t *link)
{
    r2_rx_message_t *message = link->rx.deferred;

    while (NULL != message && !r2_place_is_sure(message->match)) {
        message = message->next;
    }
    return message;
}

void r2_rx_deferred(r2_link_t *link)
{
    r2_rx_message_t *message;

    while (link->net->app_drives && NULL != (message = r2_rx_deferred_first(link))) {
        r2_rx_give_kept(link, message->match);
        if (message->held == message->chunk_count) {
            r2_rx_finish(link, message->match, R2_OK);
        } else {
            r2_rx_arrived(message);
        }
    }
}

void r2_rx_free(r2_link_t *link)
{
    r2_rx_match_t *match, *next_match;
    r2_rx_message_t *message, *next_message;

    r2_table_foreach(&link->rx.matches, match, next_match)
    {
        r2_rx_match_drop(link, match);
    }
    r2_table_foreach(&link->rx.arriving, message, next_message)
    {
        r2_rx_message_free(link, message);
    }
    r2_table_fini(&link->rx.matches);
    r2_table_fini(&link->rx.arriving);
    r2_runs_fini(&link->rx.completed);
}
