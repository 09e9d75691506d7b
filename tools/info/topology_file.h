/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topologies as text, for tests and for looking at plans of machines that are not here.
 */
#ifndef R2_TOOLS_TOPOLOGY_FILE_H
#define R2_TOOLS_TOPOLOGY_FILE_H

#include <stdio.h>

#include "model/topology.h"

/**
 * Reads a topology. Words of a line, numbers decimal, "#" begins a comment:
 *   hosts N | rails N | ranks N       first; ranks: one per host if absent
 *   rate MBYTES_PER_S                 of every rail; absent: 1000
 *   any-pairing                       NICs of different index reach each other
 *   rate-of HOST RAIL MBYTES_PER_S
 *   capacity HOST RAIL SIXTEENTHS
 *   cut HOST HOST RAIL
 *   host-of RANK HOST
 * @param line_p number of the line that is wrong, with R2_ERR_PARAM.
 * @return R2_OK, R2_ERR_PARAM, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_topology_read(FILE *file, r2_topology_t *topology, int *line_p);

#endif
