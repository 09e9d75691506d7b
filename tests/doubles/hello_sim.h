/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello driver of the simulator.
 */
#ifndef R2_DOUBLES_HELLO_SIM_H
#define R2_DOUBLES_HELLO_SIM_H

#include "doubles/sim.h"
#include "rail/hello.h"

/*
 * A call behaves like a TCP connection over the rail: it needs both directions, is tried again with
 * growing pauses while the path is broken, and is refused by a dead process whose host answers. It
 * waits in the accept queue of its listener until the process polls: one that is stopped accepts
 * nothing, and when its queue is full callers hear nothing, whether those who wait have given up or
 * not.
 */

typedef struct r2_hello_sim r2_hello_sim_t;

typedef enum r2_hello_sim_listener {
    R2_HELLO_SIM_ACCEPTS, /* the default */
    R2_HELLO_SIM_REFUSES, /* a firewall answers for it: connection refused */
    R2_HELLO_SIM_BROKEN   /* it cannot be opened: R2_ERR_SYSTEM */
} r2_hello_sim_listener_t;

/** Listeners and calls of all nodes. Outlived by the simulator. @return NULL: out of memory. */
r2_hello_sim_t *r2_hello_sim_create(r2_sim_t *sim, uint32_t node_count);
/** No event of the simulator may run after this. */
void r2_hello_sim_destroy(r2_hello_sim_t *hub);

/** The driver of one node. Valid until r2_hello_sim_destroy(). */
r2_hello_t r2_hello_sim_node(r2_hello_sim_t *hub, uint32_t node);

/** Chance that a call or a reply is lost once and comes a second later, parts per million. */
void r2_hello_sim_set_loss(r2_hello_sim_t *hub, uint32_t ppm);
/** Connections that the accept queue of one listener holds; 0, the default: any number. */
void r2_hello_sim_set_backlog(r2_hello_sim_t *hub, uint32_t backlog);
/** What the listener of a node on a rail does. */
void r2_hello_sim_set_listener(r2_hello_sim_t *hub, uint32_t node, uint32_t rail,
                               r2_hello_sim_listener_t listener);

#endif
