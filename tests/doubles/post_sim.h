/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Post driver of the simulator: out-of-band messages between nodes in virtual time.
 */
#ifndef R2_DOUBLES_POST_SIM_H
#define R2_DOUBLES_POST_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "doubles/sim.h"
#include "oob/post.h"

/*
 * Ranks are nodes. Messages travel over a network of their own, which the faults of the rails do
 * not touch; between nodes of one host they do not need it. A stopped process finds them when it
 * polls again, a dead one never.
 */

#define R2_POST_SIM_QUEUE_MAX 64 /* messages from one node to another; the oldest goes */

typedef struct r2_post_sim r2_post_sim_t;

/** Messages of all nodes. Outlived by the simulator. @return NULL: out of memory. */
r2_post_sim_t *r2_post_sim_create(r2_sim_t *sim, uint32_t node_count);
/** No event of the simulator may run after this. */
void r2_post_sim_destroy(r2_post_sim_t *hub);

/** The driver of one node. Valid until r2_post_sim_destroy(). */
r2_post_t r2_post_sim_node(r2_post_sim_t *hub, uint32_t node);

/** Chance that a message is lost, parts per million. */
void r2_post_sim_set_loss(r2_post_sim_t *hub, uint32_t ppm);
/** Chance that a message comes twice, parts per million. */
void r2_post_sim_set_duplicates(r2_post_sim_t *hub, uint32_t ppm);
/** A message takes between min and max, drawn for each: with a spread they overtake one another. */
void r2_post_sim_set_delay(r2_post_sim_t *hub, uint64_t min_ns, uint64_t max_ns);
/** The node's management NIC is down: nothing from it to other hosts, or to it from them,
 * arrives. */
void r2_post_sim_set_cut(r2_post_sim_t *hub, uint32_t node, bool cut);

#endif
