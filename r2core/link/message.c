/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that are sent: from the call that sends one to its end.
 */
#include "r2_config.h"

#include "link/local.h"
#include "link/tx.h"

#include <string.h>
#include <utlist.h>

/* How long a chunk keeps a fast lane busy. */
#define R2_CHUNK_NS R2_NS_PER_MS
/* A message that one lane takes no longer for, round trip included, goes whole: it takes as long to
 * send, read and acknowledge further packets as is saved. */
#define R2_WHOLE_NS (150 * R2_NS_PER_US)
/* How many times what a lane delivers its quickest packets are believed. */
#define R2_WHOLE_PEAK 8u
#define R2_CHUNK_PEAK 2u
/* Chunks are not cut shorter than the path carries in so long, or this. */
#define R2_CHUNK_PATH_NS    (250 * R2_NS_PER_US)
#define R2_CHUNK_PATH_BYTES 65536u
/* Nor than this if all lanes share the message: a shaper's bucket makes a path look quick until
 * longer ones were sent by it. */
#define R2_WHOLE_PATH_BYTES 32768u
/* Where this process waits for processors, and all paths are quick, messages of so many bytes go
 * whole, and longer ones are cut into such: each lane that shares one takes a turn of two
 * processes, and no lane is what they wait for. Less where no chunk may be that long
 * (chunk_most_bytes). */
#define R2_CHUNK_CROWDED_BYTES 262144u
/* So many chunks fit into the window of a lane that is slower than R2_PACED_BYTES_PER_S: with one
 * of them under way it would stand still while an acknowledgement waits behind the peer's data.
 * Windows of faster ones may grow by themselves (R2_BUSY_BYTES, rtt.c). Not where the path is known
 * to be quick (r2_lane_chunk_least): nothing waits behind anything there. */
#define R2_CHUNKS_PER_WINDOW 3u
#define R2_PACED_BYTES_PER_S (170u * 1000 * 1000)

/* @param bytes the first so many, which are all that is sent from now on. */
static void r2_message_copy(r2_tx_message_t *message, char *copy, uint64_t bytes)
{
    if (bytes > 0 && copy != message->data) {
        memcpy(copy, message->data, bytes);
    }
    message->data = message->copy = copy;
    message->memory = (r2_tp_memory_t){.data = copy, .bytes = bytes};
    message->copy_bytes = bytes;
}

bool r2_link_may_keep(const r2_tx_message_t *message)
{
    return message->next_chunk == message->chunk_count && !message->queued && 0 == message->refs &&
           NULL == message->copy && !message->on_gpu &&
           (message->may_copy || r2_copies_spare(message->link, message->bytes));
}

bool r2_link_keep(r2_tx_message_t *message)
{
    char *copy = NULL;

    if (r2_link_may_keep(message)) {
        copy = r2_blocks_get(&message->link->net->blocks, message->bytes);
    }
    if (NULL != copy) {
        r2_message_copy(message, copy, message->bytes);
        if (!message->may_copy) {
            r2_copies_reserve(message, false);
        }
    }
    return NULL != copy;
}

/* A lane's newest packet asks for all before it: where it does not, one more does. */
void r2_link_ask(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    if (!message->late_ack) {
        return;
    }
    message->late_ack = false; /* what is not sent yet asks by itself */
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        /* all that goes by a relay asks, and it may be as far ahead as acknowledgements reach */
        if (NULL != lane->tx.in_flight && lane->tx.unasked_bytes > 0 && r2_lane_is_sound(lane) &&
            !r2_lane_is_relay(lane) && r2_lane_may_ping(lane)) {
            (void) r2_lane_ping(lane); /* else it comes with what the peer sends, or later */
        }
    }
}

bool r2_link_is_quiet(const r2_link_t *link, uint64_t bytes)
{
    uint64_t under_way_bytes = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        under_way_bytes += r2_lane_is_up(&link->lanes[i]) ? link->lanes[i].tx.in_flight_bytes : 0;
    }
    return NULL == link->tx.queue && 0 == link->tx.uncredited.count &&
           R2_LITTLE_PART * under_way_bytes <= bytes;
}

/* NICs that read a GPU's memory are RDMA's, whose chunks are no longer; what is passed on as it
 * comes should not wait, nor what is sent as it is staged. What is staged before it is sent goes as
 * the host's. */
static uint64_t r2_message_chunk_most(const r2_link_t *link, const r2_link_send_t *args)
{
    return NULL == args->gpu && !args->filling
               ? link->chunk_most_bytes
               : r2_min((uint64_t) link->chunk_most_bytes, (uint64_t) R2_CHUNK_HELD_BYTES);
}

/* Few long chunks are better than many that go at once: processors are the limit, not the lane. */
static bool r2_lane_saves_turns(const r2_lane_t *lane)
{
    return lane->link->net->crowded && r2_lane_path_is_quick(lane);
}

/*
 * What the path takes in next to no time, whatever the lane delivers: where processes share cores
 * that is what is given to it between two turns, and shorter chunks take more turns.
 */
static uint64_t r2_lane_chunk_least(const r2_lane_t *lane)
{
    /* the link has far better lanes, or this one is in doubt: what the kernel told may be old */
    if (lane->tx.window_bytes < lane->link->net->params->window_min_bytes ||
        !r2_lane_is_sound(lane)) {
        return 0;
    }
    if (r2_lane_saves_turns(lane)) {
        return R2_CHUNK_CROWDED_BYTES;
    }
    return r2_min(r2_lane_path_rate(lane) / (R2_NS_PER_S / R2_CHUNK_PATH_NS),
                  (uint64_t) R2_CHUNK_PATH_BYTES);
}

/* If all lanes share the message. @param least_bytes what r2_lane_chunk_least() says else. */
static uint64_t r2_lane_shared_least(const r2_lane_t *lane, uint64_t least_bytes)
{
    return r2_lane_saves_turns(lane) ? least_bytes
                                     : r2_min(least_bytes, (uint64_t) R2_WHOLE_PATH_BYTES);
}

/* The longest chunk that a lane wants of a message of many. */
static uint64_t r2_lane_chunk_bytes(const r2_lane_t *lane)
{
    const uint64_t bytes = r2_lane_peak(lane, R2_CHUNK_PEAK) / (R2_NS_PER_S / R2_CHUNK_NS);

    return r2_lane_rate(lane) < R2_PACED_BYTES_PER_S
               ? r2_min(bytes, lane->tx.window_bytes / R2_CHUNKS_PER_WINDOW)
               : bytes;
}

static uint64_t r2_link_whole_bytes(const r2_lane_t *lane)
{
    return r2_lane_peak(lane, R2_WHOLE_PEAK) / (R2_NS_PER_S / R2_WHOLE_NS);
}

/* The lane that it would go by takes it in next to no time. */
static bool r2_link_sends_whole(const r2_link_t *link, uint64_t bytes, uint64_t most_bytes)
{
    const r2_lane_t *lane = &link->lanes[link->turn.lane];

    return link->lane_count > 0 && bytes <= most_bytes && r2_lane_is_sound(lane) &&
           bytes <= r2_link_whole_bytes(lane);
}

/*
 * Chunks are as short as the plan wants them, for the sake of slow rails. Where every lane is fast,
 * each costs more than it is worth: there they last R2_CHUNK_NS, or less if this message is all
 * there is to share among the lanes.
 */
static uint32_t r2_link_chunk_bytes(const r2_link_t *link, const r2_link_send_t *args)
{
    const uint64_t most_bytes = r2_message_chunk_most(link, args);
    uint64_t chunk_bytes = most_bytes, whole_bytes = most_bytes;
    uint32_t lanes = 0;

    if (args->bytes <= args->chunk_bytes) {
        return args->chunk_bytes;
    }
    if (r2_link_sends_whole(link, args->bytes, most_bytes)) {
        return (uint32_t) args->bytes;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (r2_lane_is_up(lane)) {
            /* what is passed on as it comes should not wait for a longer chunk */
            const uint64_t least_bytes = args->filling ? 0 : r2_lane_chunk_least(lane);

            chunk_bytes = r2_min(chunk_bytes, r2_max(r2_lane_chunk_bytes(lane), least_bytes));
            whole_bytes = r2_min(whole_bytes, r2_max(r2_link_whole_bytes(lane),
                                                     r2_lane_shared_least(lane, least_bytes)));
            ++lanes;
        }
    }
    if (0 == lanes) {
        return args->chunk_bytes;
    }
    if (r2_link_is_quiet(link, args->bytes)) {
        chunk_bytes = r2_min(chunk_bytes, r2_max(args->bytes / lanes, whole_bytes));
    }
    if (args->bytes <= chunk_bytes) {
        return (uint32_t) args->bytes;
    }
    chunk_bytes -= chunk_bytes % args->chunk_bytes;
    return (uint32_t) r2_max(chunk_bytes, args->chunk_bytes);
}

static bool r2_message_copies(const r2_link_t *link, const r2_link_send_t *args)
{
    return !args->filling && NULL == args->gpu &&
           (r2_link_copies(link, args->bytes) ||
            (args->brief && r2_copies_fit(link, args->bytes) && r2_link_takes_all(link, args)));
}

static r2_tx_message_t *r2_message_new(r2_link_t *link, const r2_link_send_t *args)
{
    r2_net_t *net = link->net;
    r2_tx_message_t *message = r2_pool_get(&net->messages);
    char *copy = args->block;

    if (NULL == copy && r2_message_copies(link, args)) {
        copy = r2_blocks_get(&net->blocks, args->bytes);
    }
    if (NULL == message || (args->copied && NULL == copy)) {
        r2_blocks_put(&net->blocks, args->block == copy ? NULL : copy, args->bytes);
        if (NULL != message) {
            r2_pool_put(&net->messages, message);
        }
        return NULL;
    }
    memset(message, 0, sizeof(*message));
    message->link = link;
    message->number = link->tx.next_number++;
    message->tag = args->tag;
    message->data = NULL == args->block ? args->data : args->block;
    message->bytes = args->bytes;
    message->memory = (r2_tp_memory_t){.data = message->data, .bytes = args->bytes};
    if (NULL != args->gpu) {
        ++net->counters->gpu_messages;
        message->on_gpu = true;
        message->gpu = *args->gpu;
        message->fetch = args->fetch;
    }
    message->chunk_bytes = r2_wire_chunk_bytes(args->bytes, r2_link_chunk_bytes(link, args),
                                               r2_message_chunk_most(link, args));
    message->chunk_count = (uint32_t) r2_wire_chunks(args->bytes, message->chunk_bytes);
    message->ready_chunks = args->filling ? 0 : message->chunk_count;
    message->near = args->near;
    message->digest = args->digest;
    message->order = args->order;
    message->map_pending = args->map_pending;
    message->late_ack = args->late_ack;
    message->done = args->done;
    message->arg = args->arg;
    if (NULL != copy) {
        r2_message_copy(message, copy, message->bytes);
        r2_copies_reserve(message, NULL != args->block);
    } else if (args->patient && NULL == args->gpu && r2_copies_spare(link, args->bytes)) {
        r2_copies_reserve(message, false);
    }
    DL_APPEND2(link->tx.messages, message, all_prev, all_next);
    return message;
}

r2_status_t r2_link_send(r2_link_t *link, const r2_link_send_t *args)
{
    r2_tx_message_t *message;
    bool copied;

    if (R2_OK != link->broken) {
        return link->broken;
    }
    if (link->path.left) {
        return r2_link_has_left(link);
    }
    if (args->bytes > R2_WIRE_MESSAGE_MAX) {
        return R2_ERR_PARAM;
    }
    if (link->same_host && !args->filling && r2_local_send(link, args)) {
        ++link->net->counters->tx_messages;
        return R2_OK;
    }
    message = r2_message_new(link, args);
    if (NULL == message) {
        return R2_ERR_NO_MEMORY;
    }
    r2_credit_open(message, args->granted_bytes);
    copied = NULL != message->copy;
    if (NULL != args->message_p) {
        *args->message_p = copied ? NULL : message;
    }
    ++link->net->counters->tx_messages;
    r2_tx_enqueue(message);
    r2_link_activate(link);
    r2_link_push(link);
    return copied ? R2_OK : R2_IN_PROGRESS;
}

void r2_link_ready(r2_tx_message_t *message, uint64_t bytes)
{
    const uint32_t chunks =
        bytes >= message->bytes ? message->chunk_count : (uint32_t) (bytes / message->chunk_bytes);

    if (chunks > message->ready_chunks) {
        message->ready_chunks = chunks;
        r2_tx_enqueue(message);
        r2_link_push(message->link);
    }
}

void r2_link_fetched(r2_tx_message_t *message, const void *data)
{
    r2_assert(message->fetching);
    message->data = data;
    message->memory = (r2_tp_memory_t){.data = data, .bytes = message->bytes};
    message->on_gpu = message->fetching = false;
    if (message->next_chunk < message->chunk_count) {
        r2_tx_enqueue(message);
    }
    r2_link_activate(message->link);
    r2_link_push(message->link);
}

void r2_message_unqueue(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    r2_credit_withdraw(message);
    if (message->queued) {
        DL_DELETE(link->tx.queue, message);
        message->queued = false;
    }
}

/* Takes a message out of all queues; it is freed as soon as no packet references its data. */
static void r2_message_withdraw(r2_tx_message_t *message)
{
    r2_copies_release(message);
    message->withdrawn = true;
    r2_message_unqueue(message);
}

/*
 * The peer counts what came eagerly when it takes it or throws it away. What a lane loses of it has
 * to be sent again, or its share of the budget were gone for good: from a copy, and also where no
 * path is left, which may come back. There is no more of that than the budget. @return chunks that
 * are still to be delivered.
 */
static uint32_t r2_message_keep_eager(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;
    const uint32_t chunks = r2_min(message->next_chunk, message->eager_chunks);
    const uint64_t bytes = r2_min((uint64_t) chunks * message->chunk_bytes, message->bytes);
    char *copy;

    if (0 == chunks || R2_ERR_PEER_GONE == link->broken || link->path.left || link->net->ending) {
        return 0;
    }
    if (NULL == message->copy) {
        copy = r2_blocks_get(&link->net->blocks, bytes);
        if (NULL == copy) {
            return 0;
        }
        r2_message_copy(message, copy, bytes);
    }
    return chunks;
}

/* A chunk from `first` on needs no acknowledgement any more. */
static void r2_message_drop_chunk(r2_tx_message_t *message, uint32_t first, r2_tx_item_t *item)
{
    if (R2_WIRE_DATA == item->kind && !item->acked && item->message == message &&
        item->chunk >= first) {
        item->acked = true;
        ++message->acked_chunks;
    }
}

/* Also of those that are acknowledged: the caller takes its memory back. */
static bool r2_message_is_read(const r2_tx_message_t *message, const r2_packet_t *packet)
{
    return !packet->transport_done && R2_WIRE_DATA == packet->item->kind &&
           packet->item->message == message;
}

void r2_message_discard(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;
    const uint32_t kept = r2_message_keep_eager(message);
    r2_tx_item_t *item;
    r2_packet_t *packet;

    r2_message_withdraw(message);
    message->in_part = kept < message->chunk_count;
    ++message->refs; /* keeps it while its packets are settled */
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        bool reading = false;

        DL_FOREACH(link->lanes[i].tx.in_flight, packet) {
            reading = reading || r2_message_is_read(message, packet);
            r2_message_drop_chunk(message, kept, packet->item);
        }
        if (reading) {
            r2_lane_fence(&link->lanes[i], R2_ERR_CANCELED, true);
        }
    }
    DL_FOREACH(link->tx.retransmit, item) {
        r2_message_drop_chunk(message, kept, item);
    }
    message->acked_chunks += message->chunk_count - message->next_chunk;
    --message->refs;
    r2_tx_message_settle(message);
}

r2_tx_message_t *r2_message_wanted(const r2_link_t *link, bool any, uint64_t comm_key)
{
    r2_tx_message_t *message;

    DL_FOREACH2(link->tx.messages, message, all_next)
    {
        if (!message->withdrawn &&
            (any || (message->tag.comm_key == comm_key && NULL == message->copy))) {
            return message;
        }
    }
    return NULL;
}
