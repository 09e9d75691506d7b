/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending, shared by its files. For link/ only.
 */
#ifndef R2_LINK_TX_H
#define R2_LINK_TX_H

#include "link/state.h"

/* item.c */
/** @return an item without payload, or NULL: no memory. */
r2_tx_item_t *r2_tx_item_new(r2_net_t *net, r2_wire_kind_t kind);
/** Frees what an item owns: the payload of a RELAY packet. */
void r2_tx_item_strip(r2_tx_item_t *item);
/** Frees an item that nothing references. */
void r2_tx_item_release(r2_net_t *net, r2_tx_item_t *item);
/** Puts an item that is not acknowledged into the queue of those to be sent again. */
void r2_tx_requeue(r2_link_t *link, r2_tx_item_t *item);
/** Puts a message into the queue of those with chunks to be sent, behind all of its order. */
void r2_tx_enqueue(r2_tx_message_t *message);

/* tx_packet.c */
/** Bytes of a chunk: the last of a message may be shorter. */
uint32_t r2_tx_chunk_length(const r2_tx_message_t *message, uint32_t chunk);
/**
 * Sends an item on a lane.
 * @return false: the lane is broken, or memory is short; the item is still the caller's.
 */
bool r2_tx_send(r2_lane_t *lane, r2_tx_item_t *item, bool again);

/* hedge.c */
/** True if a packet in flight on the lane carries the item. */
bool r2_lane_carries(const r2_lane_t *lane, const r2_tx_item_t *item);

#endif
