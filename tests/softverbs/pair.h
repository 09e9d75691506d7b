/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two NICs in one process, with a cable and a clock of the test's: no sockets, no namespaces, no
 * waiting. Each end has one queue pair, a completion queue and registered memory.
 */
#ifndef SV_PAIR_H
#define SV_PAIR_H

#include "softverbs/nic/nic.h"

enum { PAIR_MEMORY = 32768, PAIR_SEGMENT = 64, PAIR_QUEUE = 256, PAIR_EVENTS = 64 };

typedef struct pair_end {
    sv_nic_t nic;
    sv_dev_t *dev;
    sv_context_t *context;
    sv_cq_t *cq;
    sv_qp_t *qp;
    uint32_t key; /* of all of memory, every access allowed */
    _Alignas(64) uint8_t memory[PAIR_MEMORY];
    sv_event_t events[PAIR_EVENTS];
    uint32_t event_count, told; /* asynchronous events; words to the channel */
} pair_end_t;

/* What becomes of a packet: its number on the cable counts from 0. */
typedef enum pair_fate { PAIR_ARRIVES, PAIR_LOST, PAIR_TWICE, PAIR_LATE } pair_fate_t;

typedef struct pair {
    pair_end_t ends[2];
    pair_fate_t (*fate)(uint32_t number, const sv_packet_t *packet);
    uint32_t number;
    struct pair_flying *flying; /* list, in order */
} pair_t;

/* How the two ends are made. */
typedef struct pair_how {
    enum ibv_qp_type type;
    bool has_srq;
    uint32_t timeout, retry_cnt, rnr_retry; /* 0, 7, 7 unless set: timeout 8 is 1 ms */
    uint32_t cq_items;
} pair_how_t;

void pair_init(pair_t *pair, const pair_how_t *how);
void pair_fini(pair_t *pair);

/* Bytes that differ by their place and by the seed. */
void pair_fill(uint8_t *memory, uint32_t at, uint32_t length, uint32_t seed);

/* Lets packets fly until none is left. */
void pair_run(pair_t *pair);
/* Lets time pass in steps of 1 ms, and packets fly. */
void pair_pass_ms(pair_t *pair, unsigned ms);

/* Posts at an end: from its memory at `from`, to the other's (or its own, for reads) at `to`. */
typedef struct pair_send {
    enum ibv_wr_opcode opcode;
    uint32_t from, length, to;
    uint32_t flags; /* IBV_SEND_SIGNALED is always set */
    uint32_t rkey;  /* 0: the right one */
    uint32_t lkey;  /* 0: the right one */
    uint64_t compare_add, swap;
} pair_send_t;
void pair_post(pair_t *pair, int end, uint64_t wr_id, const pair_send_t *send);
void pair_post_recv(pair_t *pair, int end, uint64_t wr_id, uint32_t at, uint32_t length);

/* Takes a completion; false where there is none. */
bool pair_poll(pair_t *pair, int end, struct ibv_wc *wc_p);
/* Takes one and checks it. */
void pair_expect(pair_t *pair, int end, uint64_t wr_id, enum ibv_wc_status status);
void pair_expect_none(pair_t *pair, int end);
/* Whether an event has come, of any object. */
bool pair_was_told(const pair_t *pair, int end, uint32_t type);
void pair_inject(pair_t *pair, int end, sv_fault_kind_t kind, uint32_t per_million, uint32_t value);

#endif
