/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of a node.
 */
#ifndef R2_TESTS_CLOSING_NODE_H
#define R2_TESTS_CLOSING_NODE_H

#include <assert.h>

#include "closing.h"
#include "r2/prng.h"

#define SLOTS  48
#define POISON 0xdb

/** Header of a message, as long as those of the product. */
typedef struct header {
    uint32_t magic, seq;
    uint64_t id;
    uint32_t bytes, pad[17];
} header_t;

static_assert(88 == sizeof(header_t), "the product's");

/** A message on its way, with the memory that the transport reads. */
typedef struct slot {
    r2_tp_send_t op;
    header_t header;
    char data[CLOSING_DATA_MAX];
} slot_t;

typedef struct lane {
    r2_tp_ep_t *ep; /* owned */
    bool open, failed;
    uint64_t rx_id, tx_id;
    uint32_t sent, got, under_way;
    uint32_t canceled; /* inside close */
    slot_t *slots;     /* owned: mapped while the lane is open, or poisoned after it */
    bool busy[SLOTS];
} lane_t;

/** Where the transport is: which callbacks it may make. */
typedef enum inside { NOWHERE, PROGRESS, CLOSE, OTHER } inside_t;

typedef struct node_self {
    r2_tp_t tp;
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    lane_t lanes[CLOSING_LANES];
    inside_t inside;
    char *pattern; /* owned: data of message n starts at n % 251 */
    char complaint[200];
    bool awake; /* shared memory: a sender that is stuck may not sleep (docs/ucx.md) */
    bool unmap; /* memory of a closed lane, or else fill it */
} node_self_t;

extern node_self_t me;
extern const r2_tp_callbacks_t node_callbacks;

/** Notes the first thing that is wrong; each answer has it. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Progresses. @return events */
unsigned turn(void);
/** Sends one message. @return false: no slot is left, or the lane is broken. */
bool send_one(lane_t *lane, size_kind_t size, r2_prng_t *prng);

/* ---- orders.c ---- */

void obey(const order_t *order, answer_t *answer);

#endif
