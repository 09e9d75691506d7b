/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The director's three nodes: orders, answers, deaths.
 */
#ifndef R2_TESTS_CLOSING_DIRECTOR_H
#define R2_TESTS_CLOSING_DIRECTOR_H

#include <sys/types.h>

#include "closing.h"
#include "r2/prng.h"

/** A and B share the lane that is closed; A's other lane, to C, has to go on. */
typedef enum node_name { A, B, C, NODES } node_name_t;

typedef struct node {
    pid_t pid; /* 0: not there */
    int socket;
    uint32_t descriptors; /* after its first rounds, without a worker; 0: not known */
    uint32_t rounds;      /* it has seen so many */
    uint64_t heap_bytes;
    verb_t asked;
    answer_t last;
} node_t;

/** A lane of A. */
typedef struct ends {
    uint64_t id[2]; /* what messages to A and to its peer carry */
    answer_t address[2];
    node_name_t peer;
    uint32_t lane; /* of A; the peer's is 0 */
} ends_t;

typedef struct stage {
    const closing_transport_t *transport;
    const char *device;       /* NULL: shared memory */
    const char *netns[NODES]; /* paths, NULL: the director's */
    node_t nodes[NODES];
    bool broken;      /* this round has failed: orders are not given any more */
    bool crashed;     /* .. because a node died by itself */
    char reason[300]; /* why */
    r2_prng_t prng;   /* of the round */
    uint64_t ids;     /* used so far */
    ends_t other;     /* A's lane to C */
    uint32_t others;  /* messages that have crossed it */
    bool ended;       /* A has no worker any more */
    uint64_t stuck;   /* messages under way when a lane was closed, all rounds */
} stage_t;

/** Starts the nodes that are not there. @return false: none can be had. */
void stage_fill(stage_t *stage);
/** Ends all nodes. @param gently by an order: they close what they have, and must succeed. */
void stage_clear(stage_t *stage, bool gently);

/** Gives an order without waiting; does nothing if the round has failed. */
void tell(stage_t *stage, node_name_t name, const order_t *order);
/** Waits for the answer to it. */
void take(stage_t *stage, node_name_t name);
/** Both. */
void ask(stage_t *stage, node_name_t name, const order_t *order);
/** Orders that need no more than this. */
void simply(stage_t *stage, node_name_t name, verb_t verb, uint32_t lane, uint32_t count);
void fail(stage_t *stage, const char *format, ...) __attribute__((format(printf, 2, 3)));

void node_stop(stage_t *stage, node_name_t name);
void node_continue(stage_t *stage, node_name_t name);
void node_kill(stage_t *stage, node_name_t name);

/* ---- scenarios.c ---- */

typedef struct scenario {
    const char *name;
    /** A's lane to B is lane 0 of both. B does not progress unless it is told to. */
    void (*play)(stage_t *stage, const ends_t *ends, size_kind_t size);
    bool up; /* the lane, when it begins */
} scenario_t;

extern const scenario_t scenarios[];
extern const size_t scenario_count;

/** One round on new workers. stage->broken says whether it has failed. */
void play_round(stage_t *stage, const scenario_t *scenario, size_kind_t size);

#endif
