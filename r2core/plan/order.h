/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Order of ranks around a ring, so that neighbours share rails.
 */
#ifndef R2_PLAN_ORDER_H
#define R2_PLAN_ORDER_H

#include "r2/planner.h"

/**
 * True if some hosts share no rail, but neighbours in the order of r2_order_ring() do: a ring then
 * reaches all where a direct exchange does not. False, too, without memory.
 */
bool r2_order_reaches_more(const r2_topology_t *topology);

#endif
