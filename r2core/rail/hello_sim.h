/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello driver of the simulator.
 */
#ifndef R2_RAIL_HELLO_SIM_H
#define R2_RAIL_HELLO_SIM_H

#include "rail/hello.h"
#include "transport/sim.h"

/*
 * A call behaves like a TCP connection over the rail: it needs both directions, is tried again with
 * growing pauses while the path is broken, and is refused by a dead process whose host answers.
 */

typedef struct r2_hello_sim r2_hello_sim_t;

/** Listeners and calls of all nodes. Outlived by the simulator. @return NULL: out of memory. */
r2_hello_sim_t *r2_hello_sim_create(r2_sim_t *sim, uint32_t node_count);
/** No event of the simulator may run after this. */
void r2_hello_sim_destroy(r2_hello_sim_t *hub);

/** The driver of one node. Valid until r2_hello_sim_destroy(). */
r2_hello_t r2_hello_sim_node(r2_hello_sim_t *hub, uint32_t node);

/** Chance that a call or a reply is lost once and comes a second later, parts per million. */
void r2_hello_sim_set_loss(r2_hello_sim_t *hub, uint32_t ppm);

#endif
