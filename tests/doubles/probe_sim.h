/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probe driver of the simulator.
 */
#ifndef R2_DOUBLES_PROBE_SIM_H
#define R2_DOUBLES_PROBE_SIM_H

#include "doubles/sim.h"
#include "rail/probe.h"

/*
 * A probe is one packet there, answered by the other host whether its process runs, is stopped or
 * dead, and one packet back. A beacon is one packet there; the process notes it when it polls.
 */

typedef struct r2_probe_sim r2_probe_sim_t;

/** Probes and beacons of all nodes. Outlived by the simulator. @return NULL: out of memory. */
r2_probe_sim_t *r2_probe_sim_create(r2_sim_t *sim, uint32_t node_count);
/** No event of the simulator may run after this. */
void r2_probe_sim_destroy(r2_probe_sim_t *hub);

/** The driver of one node. Valid until r2_probe_sim_destroy(). */
r2_probe_t r2_probe_sim_node(r2_probe_sim_t *hub, uint32_t node);

/** Chance that one packet of a probe, or a beacon, is lost, parts per million. */
void r2_probe_sim_set_loss(r2_probe_sim_t *hub, uint32_t ppm);
/** A firewall drops probes and beacons that come to a node over a rail, or no longer does. */
void r2_probe_sim_set_shield(r2_probe_sim_t *hub, uint32_t node, uint32_t rail, bool shield);

#endif
