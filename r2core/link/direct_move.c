/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What NICs read and write by themselves: lanes pull pieces; the end of it.
 */
#include "r2_config.h"

#include "link/direct.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "link/idle.h"

/* Longer ones would hold up packets behind them, shorter ones cost more than they are worth. */
#define R2_DIRECT_MOST_BYTES  R2_CHUNK_HELD_BYTES
#define R2_DIRECT_LEAST_BYTES 16384u
/* A lane on which nothing is to be acknowledged is asked so often, as long as pieces fly. */
#define R2_DIRECT_QUIET_NS (10 * R2_NS_PER_MS)

/* ---- lanes ---- */

/* The key for the device that the peer's end of a lane is of; NULL: there is none. One that was
 * told of a device which was opened anew since, or of another process, fits no lane. */
static const r2_tp_key_t *r2_direct_key(const r2_direct_t *direct, const r2_lane_t *lane)
{
    for (uint32_t i = 0; i < direct->args.key_count; ++i) {
        if (0 != lane->conn->domain && direct->keys[i].domain == lane->conn->domain) {
            return &direct->keys[i];
        }
    }
    return NULL;
}

static bool r2_direct_suits(const r2_direct_t *direct, const r2_lane_t *lane)
{
    const r2_tp_ops_t *ops = lane->rail->tp->ops;

    return r2_lane_is_sound(lane) && lane->is_rdma && 0 == (direct->refused >> lane->idx & 1) &&
           NULL != (direct->args.writes ? ops->put : ops->get) &&
           NULL != r2_direct_key(direct, lane);
}

/* What is under way delays packets, as those do one another. */
static bool r2_direct_has_room(const r2_lane_t *lane)
{
    return lane->conn->direct_bytes <
           r2_max(lane->tx.window_bytes, (uint64_t) R2_DIRECT_PIECES * R2_DIRECT_MOST_BYTES);
}

/* The transport is told where a piece goes. @return false: it does not take it. */
static bool r2_piece_hand_over(r2_piece_t *piece)
{
    const r2_direct_t *direct = piece->direct;
    const r2_tp_ops_t *ops = piece->lane->rail->tp->ops;
    const r2_tp_key_t *key = r2_direct_key(direct, piece->lane);
    const r2_tp_target_t target = {
        .address = direct->args.remote + piece->offset, .key = key->key, .key_bytes = key->bytes};
    const r2_status_t status =
        (direct->args.writes ? ops->put : ops->get)(piece->conn->ep, &piece->op, &target);

    if (status < 0) {
        return false;
    }
    piece->state = R2_PIECE_FLYING;
    piece->conn->direct_bytes += piece->bytes;
    if (R2_OK == status) {
        r2_piece_sent(&piece->op, R2_OK);
    }
    return true;
}

/* What is left when less than two pieces are is halved: no piece is a short one. */
static uint32_t r2_direct_next_bytes(const r2_direct_t *direct, uint64_t left)
{
    if (left < 2 * (uint64_t) direct->piece_bytes) {
        return (uint32_t) (left <= R2_DIRECT_MOST_BYTES ? left : left / 2);
    }
    return direct->piece_bytes;
}

/* @return false: its transport does not take it. */
static bool r2_direct_post(r2_direct_t *direct, r2_lane_t *lane, r2_piece_t *piece)
{
    r2_counters_t *counters = direct->link->net->counters;
    const uint64_t left = direct->args.bytes - direct->next_offset;

    *piece = (r2_piece_t){.direct = direct,
                          .lane = lane,
                          .conn = lane->conn,
                          .offset = direct->next_offset,
                          .connection = lane->connect.tx_connection,
                          .bytes = r2_direct_next_bytes(direct, left),
                          .seq = lane->tx.seq};
    piece->op = (r2_tp_send_t){.data = (const char *) direct->args.local + piece->offset,
                               .data_bytes = piece->bytes,
                               .memory = &direct->memory,
                               .sent = r2_piece_sent};
    if (!r2_piece_hand_over(piece)) {
        direct->refused |= 1u << lane->idx;
        return false;
    }
    direct->next_offset += piece->bytes;
    *(direct->args.writes ? &counters->direct_written_bytes : &counters->direct_read_bytes) +=
        piece->bytes;
    return true;
}

/*
 * A write is confirmed by the acknowledgement of what was sent behind it; and a lane on which
 * nothing is to be acknowledged would never be found silent.
 */
static void r2_direct_ask(const r2_direct_t *direct, r2_lane_t *lane)
{
    r2_link_t *link = direct->link;
    const bool quiet = NULL == lane->tx.in_flight;
    bool waits = false, asks = false;

    for (uint32_t i = 0; i < R2_DIRECT_PIECES; ++i) {
        const r2_piece_t *piece = &direct->pieces[lane->idx * R2_DIRECT_PIECES + i];

        if (R2_PIECE_FLYING == piece->state || R2_PIECE_UNSURE == piece->state) {
            waits = waits || quiet;
            asks = asks || (direct->args.writes && piece->seq == lane->tx.seq);
        }
    }
    asks = asks || (waits && link->net->now_ns >= lane->timing.delivered_ns + R2_DIRECT_QUIET_NS);
    if (asks && r2_lane_may_send(lane) && r2_lane_may_ping(lane) && r2_lane_ping(lane)) {
        return;
    }
    if (waits || asks) { /* again soon */
        link->tx.direct_ns = link->net->now_ns + R2_DIRECT_QUIET_NS;
        r2_link_activate(link);
    }
}

static void r2_direct_pull(r2_direct_t *direct, r2_lane_t *lane)
{
    r2_piece_t *pieces = &direct->pieces[lane->idx * R2_DIRECT_PIECES];

    for (uint32_t i = 0; i < R2_DIRECT_PIECES && direct->next_offset < direct->args.bytes; ++i) {
        if (R2_PIECE_IDLE == pieces[i].state &&
            (!r2_direct_has_room(lane) || !r2_direct_post(direct, lane, &pieces[i]))) {
            break;
        }
    }
}

/* ---- one of them ---- */

/* @return false: there is no memory for what is to do it instead. */
static bool r2_direct_tell(r2_direct_t *direct, uint64_t offset, uint64_t bytes,
                           uint64_t connection)
{
    if (!direct->args.lost(direct->args.arg, offset, bytes, connection)) {
        r2_tx_short(direct->link);
        return false;
    }
    direct->link->net->counters->direct_lost_bytes += bytes;
    return true;
}

/* What is over gives way to the next; what is lost is told. @return pieces that are neither, or of
 * which there is no memory to tell: with the next pass. */
static uint32_t r2_direct_settle(r2_direct_t *direct)
{
    uint32_t busy = 0;

    for (uint32_t i = 0; i < direct->count; ++i) {
        r2_piece_t *piece = &direct->pieces[i];

        if (R2_PIECE_OVER == piece->state ||
            (R2_PIECE_LOST == piece->state &&
             r2_direct_tell(direct, piece->offset, piece->bytes, piece->connection))) {
            piece->state = R2_PIECE_IDLE;
        }
        busy += R2_PIECE_IDLE != piece->state;
    }
    return busy;
}

/* Where it begins is a matter of the address, so that short ones share lanes out. A relay's lane
 * that was added since has no pieces. @return false: no lane is left that could. */
static bool r2_direct_fill(r2_direct_t *direct)
{
    r2_link_t *link = direct->link;
    const uint32_t lanes = direct->count / R2_DIRECT_PIECES;
    const uint32_t first = (uint32_t) (direct->args.remote / R2_DIRECT_LEAST_BYTES % lanes);
    bool suits = false;

    for (uint32_t i = 0; i < lanes; ++i) {
        r2_lane_t *lane = &link->lanes[(first + i) % lanes];

        if (NULL != lane->conn && r2_direct_suits(direct, lane)) {
            r2_direct_pull(direct, lane);
            suits = suits || r2_direct_suits(direct, lane);
        }
        if (NULL != lane->conn) {
            r2_direct_ask(direct, lane);
        }
    }
    return suits;
}

/* @return false: it is over. */
static bool r2_direct_go_on(r2_direct_t *direct)
{
    uint32_t busy = r2_direct_settle(direct);

    if (!r2_direct_fill(direct) && 0 == busy && 0 == r2_direct_settle(direct) &&
        direct->next_offset < direct->args.bytes) {
        const uint64_t left = direct->args.bytes - direct->next_offset;

        if (r2_direct_tell(direct, direct->next_offset, left, 0)) {
            direct->next_offset = direct->args.bytes;
        }
    }
    if (direct->next_offset == direct->args.bytes && 0 == r2_direct_settle(direct)) {
        const r2_link_direct_t args = direct->args;

        r2_direct_free(direct);
        args.done(args.arg, R2_OK);
        return false;
    }
    return true;
}

void r2_direct_progress(r2_link_t *link)
{
    r2_direct_t *direct = link->directs;
    uint32_t begun = 0;

    link->tx.direct_ns = 0;
    if (link->net->in_callback || R2_OK != link->broken) {
        return;
    }
    while (NULL != direct && begun < R2_DIRECT_OPEN) {
        r2_direct_t *next = direct->next;

        begun += r2_direct_go_on(direct) ? 1 : 0;
        direct = next;
    }
}

static bool r2_direct_may_begin(const r2_direct_t *wanted)
{
    const r2_direct_t *direct;
    uint32_t begun;

    R2_DIRECT_FOREACH(direct, wanted->link, begun) {
        if (direct == wanted) {
            return true;
        }
    }
    return false;
}

static uint32_t r2_direct_piece_bytes(const r2_link_t *link, uint64_t bytes)
{
    const uint64_t share = bytes / r2_max(link->lane_count, 1u) & ~(uint64_t) 4095;

    return (uint32_t) r2_clamp_u64(share, R2_DIRECT_LEAST_BYTES, R2_DIRECT_MOST_BYTES);
}

r2_status_t r2_link_direct(r2_link_t *link, const r2_link_direct_t *args)
{
    const uint32_t count = link->lane_count * R2_DIRECT_PIECES;
    r2_direct_t *direct;
    bool suits = false;

    if (R2_OK != link->broken) {
        return link->broken;
    }
    direct = calloc(1, sizeof(*direct) + count * sizeof(direct->pieces[0]));
    if (NULL == direct) {
        return R2_ERR_NO_MEMORY;
    }
    direct->link = link;
    direct->args = *args;
    direct->args.key_count = r2_min(args->key_count, R2_DIRECT_KEYS_MAX);
    memcpy(direct->keys, args->keys, direct->args.key_count * sizeof(direct->keys[0]));
    direct->args.keys = direct->keys;
    direct->memory = (r2_tp_memory_t){.data = args->local, .bytes = args->bytes};
    direct->piece_bytes = r2_direct_piece_bytes(link, args->bytes);
    direct->count = count;
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        suits = suits || (NULL != link->lanes[i].conn && r2_direct_suits(direct, &link->lanes[i]));
    }
    if (!suits) {
        free(direct);
        return R2_ERR_UNSUPPORTED;
    }
    DL_APPEND(link->directs, direct);
    r2_link_activate(link);
    if (!link->net->in_callback && r2_direct_may_begin(direct)) {
        (void) r2_direct_fill(direct);
    }
    return R2_IN_PROGRESS;
}

/* ---- the end ---- */

/* A lane is closed for what it may still write: no fault of its own. */
static void r2_direct_close_lane(r2_lane_t *lane)
{
    r2_assert(!lane->link->net->in_callback);
    if (lane->failed) {
        r2_lane_fence(lane, lane->why, true);
    } else {
        r2_idle_renew(lane);
    }
}

void r2_link_fence(r2_link_t *link, uint64_t connection)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (NULL != lane->conn && lane->connect.rx_connection == connection) {
            ++link->net->counters->direct_fences;
            r2_direct_close_lane(lane);
        }
    }
}

/* Our memory is its owner's again, and what we wrote is not to land later than its end. */
static void r2_direct_stop(r2_direct_t *direct)
{
    for (uint32_t i = 0; i < direct->count; ++i) {
        const r2_piece_t *piece = &direct->pieces[i];

        if (R2_PIECE_FLYING == piece->state ||
            ((R2_PIECE_FAILED == piece->state || R2_PIECE_UNSURE == piece->state) &&
             NULL != piece->lane->conn)) {
            r2_direct_close_lane(piece->lane);
        }
    }
}

/* Whoever was given keys may still write to our memory, which is its owner's once the peer is given
 * up. */
static void r2_direct_bar_peer(r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count && link->net->params->direct; ++i) {
        if (NULL != link->lanes[i].conn && link->lanes[i].is_rdma) {
            r2_direct_close_lane(&link->lanes[i]);
        }
    }
}

void r2_direct_break(r2_link_t *link, r2_status_t status)
{
    r2_direct_bar_peer(link);
    while (NULL != link->directs) {
        r2_direct_t *direct = link->directs;
        const r2_link_direct_t args = direct->args;

        r2_direct_stop(direct);
        r2_direct_free(direct);
        args.done(args.arg, status);
    }
}

void r2_direct_withdraw(r2_link_t *link)
{
    while (NULL != link->directs) {
        r2_direct_stop(link->directs);
        r2_direct_free(link->directs);
    }
}
