/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A receive of a stub's link that the peer may put to, for the tests of such memory.
 */
#ifndef R2_TESTS_PLACE_RECEIVE_H
#define R2_TESTS_PLACE_RECEIVE_H

#include "link/rx.h"
#include "link/tx.h"
#include "stub_net.h"

#define CHUNK  8192u
#define CHUNKS 4u
#define BYTES  (CHUNKS * CHUNK)

/** A receive of which the peer may put each chunk over either lane. */
typedef struct receive {
    stub_net_t *stub;
    uint64_t number; /* of its message */
    r2_tag_t tag;
    char data[BYTES];
    uint32_t done;
    r2_status_t status;
} receive_t;

r2_lane_t *lane_of(const receive_t *receive, uint32_t lane);
r2_wire_header_t header_on(const receive_t *receive, uint32_t lane, r2_wire_kind_t kind);
/** One more receive of a link, of which its lanes hear. @param gpu its memory, or NULL. */
receive_t *post(stub_net_t *stub, uint64_t coll_seq, uint64_t number, const r2_tp_memory_t *gpu);
/** Both lanes are up, and hear of the receive. @param gpu as in post(). @param reads_gpus whether
 * lanes register it. */
receive_t *start_with(const r2_tp_memory_t *gpu, bool reads_gpus);
/** Both lanes have what the receive grants. */
receive_t *start(void);
void finish(receive_t *receive);
/** The header of a chunk that was put over a lane. */
void put_comes(receive_t *receive, uint32_t lane, uint32_t chunk);
/** A chunk comes by one lane, that was put over others before. */
void copy_comes(receive_t *receive, uint32_t lane, uint32_t chunk, uint32_t put_over);
bool is_taken(const receive_t *receive, uint32_t chunk);
uint64_t failed(const receive_t *receive);
/** The rail of a lane is not read to its end from now on. */
void leave_unread_on(receive_t *receive, uint32_t lane);
void leave_unread(receive_t *receive, bool unread);

#endif
