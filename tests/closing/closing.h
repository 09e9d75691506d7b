/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes that close: what the director tells its nodes, and what they answer.
 */
#ifndef R2_TESTS_CLOSING_H
#define R2_TESTS_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/transport.h"

/*
 * The director plays scenarios; it has no transport itself. Nodes are its children: each has one
 * device, one worker and up to two lanes, and does nothing but what it is told, one order at a
 * time: between orders it does not progress. So a scenario says exactly who reads and when.
 */

#define CLOSING_LANES    2
#define CLOSING_DATA_MAX 131072u

/** Sizes of messages. */
typedef enum size_kind { SIZE_SHORT, SIZE_BCOPY, SIZE_ZCOPY, SIZE_MIXED, SIZE_KINDS } size_kind_t;

typedef enum verb {
    VERB_OPEN,    /* a lane, on a new worker if there is none; answers its address */
    VERB_CONNECT, /* a lane to `address` */
    VERB_SEND,    /* `count` messages */
    VERB_FILL,    /* messages until `count` of them stay under way; the peer does not read */
    VERB_TURN,    /* progress `count` times */
    VERB_AWAIT,   /* progress until the lane has got `count` messages, and sent all of its own */
    VERB_FAILED,  /* progress until the lane has failed */
    VERB_REST,    /* progress until there is nothing to do, and sleeping is possible */
    VERB_CLOSE,   /* a lane */
    VERB_DESTROY, /* the worker */
    VERB_COUNT,   /* descriptors and memory */
    VERB_LEAVE
} verb_t;

typedef struct order {
    verb_t verb;
    uint32_t lane, count;
    size_kind_t size;
    uint64_t id;   /* OPEN: what messages to this lane carry. CONNECT: what those to the peer do */
    uint64_t seed; /* of sizes */
    size_t address_bytes;
    char address[R2_TP_ADDRESS_MAX];
} order_t;

typedef struct answer {
    char complaint[200]; /* empty: all is well so far */
    bool failed;         /* the lane has */
    uint32_t under_way;  /* sends of the lane that are not done */
    uint32_t sent, got;  /* messages of the lane */
    uint32_t descriptors;
    uint64_t heap_bytes;
    size_t address_bytes;
    char address[R2_TP_ADDRESS_MAX];
} answer_t;

/** A transport that can be asked for by name. */
typedef struct closing_transport {
    const char *name;
    r2_status_t (*create)(r2_tp_t *tp_p);
    void (*destroy)(r2_tp_t *tp);
} closing_transport_t;

/** Obeys the orders that come from `socket`, and ends the process. */
void closing_node(const closing_transport_t *transport, const char *device, int socket)
    __attribute__((noreturn));

#endif
