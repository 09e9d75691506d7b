/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Nodes on the simulator that talk point-to-point: messages, gets, puts; every byte is checked.
 */
#ifndef R2_TESTS_P2P_WORLD_H
#define R2_TESTS_P2P_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "base/util.h"
#include "ctx/p2p_state.h"
#include "ctx/state.h"
#include "doubles/hello_sim.h"
#include "doubles/loop.h"
#include "doubles/nic_watch_sim.h"
#include "doubles/sim.h"
#include "r2/prng.h"

#define T_NODES     4 /* on three hosts: 0 and 3 share one */
#define T_RAILS     4
#define T_QUIET     2
#define T_MESSAGES  400 /* of each node */
#define T_BYTES     65536u
#define T_GETS      6 /* of each node */
#define T_GET_BYTES (3u << 20)
#define T_LIMIT_NS  (120 * R2_NS_PER_S)

/** First bytes of a message; those behind follow from them. */
typedef struct t_head {
    uint32_t from, to, number, bytes;
} t_head_t;

typedef struct t_send {
    r2_p2p_op_t op;
    struct t_node *node;
    uint8_t *data;              /* owned */
    struct t_send *prev, *next; /* in node->sends */
} t_send_t;

typedef struct t_node {
    struct t_world *world;
    uint32_t idx;
    r2_ctx_t *ctx;
    r2_p2p_t *p2p;
    r2_nic_watch_t watch; /* owned */
    uint64_t away_until_ns;
    t_send_t *sends; /* owned list: those that are not over; all of them when the node was killed */
    uint32_t sent, packed, sends_open, gets, gets_open, received, lost;
    bool seen[T_NODES][T_MESSAGES];
    uint8_t *memory;  /* what the others read */
    uint8_t *copy;    /* where gets go */
    uint64_t sums[2]; /* updated by all: 64 and 32 bits */
    uint32_t puts, puts_open, updates;
    uint64_t old; /* of the last update */
    uint64_t unexpected_max;
    uint64_t answers_max; /* bytes of answers under way to one peer */
    uint32_t waiting_max; /* questions that could not be answered at once */
    r2_prng_t prng;
} t_node_t;

typedef struct t_world {
    r2_sim_t *sim;
    r2_hello_sim_t *hub;
    r2_oob_loop_t *oob;
    r2_params_t params;
    t_node_t nodes[T_NODES];
    uint32_t messages, gets, puts; /* of each node */
    uint32_t expected[T_NODES];
    uint32_t turn; /* whose program runs */
    bool quiet;    /* node T_QUIET only receives */
} t_world_t;

/** Four nodes on three hosts that reach each other. */
t_world_t *t_world_new(uint64_t seed);
/** The same, but node T_QUIET has not asked for the others: it only receives. */
t_world_t *t_world_new_quiet(uint64_t seed);
/** Also asserts that nothing was read or written when it must not be. */
void t_world_free(t_world_t *world);
/** Runs all programs until they are over, or until a time. */
void t_run(t_world_t *world, uint64_t until_ns);
/** Runs all but a node, which is stopped, for a time. */
void t_run_without(t_world_t *world, uint32_t stopped, uint64_t ns);
/** Runs to the end, checks everything, frees. */
void t_finish(t_world_t *world);
/** Drives a node until nothing happens; its program sends as it goes. */
void t_node_run(t_node_t *node);
bool t_over(const t_world_t *world);
/** Sends a message of so many bytes. */
void t_send_bytes(t_node_t *node, uint32_t to, uint32_t bytes);
/** Reads all memory of another node. */
void t_read(t_node_t *node, uint32_t from);
/** An operation that must succeed, counted in puts_open. */
r2_p2p_op_t *t_op(t_node_t *node);

/* Handlers of a node. */
void t_received(void *arg, uint32_t rank, uint8_t id, const void *data, size_t bytes);
void t_lost(void *arg, uint32_t rank, r2_status_t status);

#endif
