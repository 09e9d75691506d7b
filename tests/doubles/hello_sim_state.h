/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parts of the hello driver of the simulator.
 */
#ifndef R2_DOUBLES_HELLO_SIM_STATE_H
#define R2_DOUBLES_HELLO_SIM_STATE_H

#include "doubles/hello_sim.h"

typedef enum hello_state {
    HELLO_CONNECTING, /* the request is on its way */
    HELLO_WAITING,    /* the request arrived */
    HELLO_REPLYING,   /* the reply is on its way */
    HELLO_DONE        /* the result waits for poll() */
} hello_state_t;

/** One call; its serial is the token of the request. */
typedef struct hello_connect {
    struct hello_connect *prev, *next;
    struct hello_node *caller, *callee; /* borrowed */
    uint32_t rail;
    uint32_t tries;
    hello_state_t state;
    r2_status_t status;
    uint64_t serial, connect_id, deadline_ns, timeout_ns;
    size_t bytes; /* of the request, then of the reply */
    uint8_t text[R2_HELLO_BYTES_MAX];
} hello_connect_t;

/** What lies in an accept queue until the callee polls; as a closed connection, if the caller gave
 * up. */
typedef struct hello_request {
    struct hello_request *prev, *next;
    uint32_t rail;
    uint64_t serial;
    size_t bytes;
    uint8_t text[R2_HELLO_BYTES_MAX];
} hello_request_t;

typedef struct hello_node {
    struct r2_hello_sim *hub; /* borrowed */
    uint32_t idx;
    r2_hello_upcalls_t upcalls;
    bool keyed, polling;
    bool pausing; /* accepts nothing: it has no descriptor */
    bool listening[R2_RAILS_MAX + 1];
    r2_hello_sim_listener_t listener[R2_RAILS_MAX + 1];
    uint8_t key[R2_JOB_KEY_BYTES];
    hello_request_t *requests; /* owned list */
} hello_node_t;

struct r2_hello_sim {
    r2_sim_t *sim; /* borrowed */
    uint32_t node_count;
    uint32_t loss_ppm;
    uint32_t backlog; /* of one listener; 0: no limit */
    uint64_t next_serial;
    hello_connect_t *calls; /* owned list */
    hello_node_t nodes[];
};

/* hello_sim_net.c: what happens to calls between processes */

/** @return the call with this serial, or NULL: it is over. */
hello_connect_t *r2_hello_sim_find(r2_hello_sim_t *hub, uint64_t serial);
/** True if packets pass both ways just now. */
bool r2_hello_sim_passes(const hello_connect_t *call);
/** The call is over: its caller is told by its next poll(). */
void r2_hello_sim_finish(hello_connect_t *call, r2_status_t status);
/** The next step of a call, after a pause. */
void r2_hello_sim_step_after(hello_connect_t *call, uint64_t pause_ns);
/** The accept queue of a listener is full: the kernel drops what else would connect. */
bool r2_hello_sim_is_full(const hello_node_t *callee, uint32_t rail);

#endif
