/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Order of ranks around a ring, so that neighbours share rails.
 */
#ifndef R2_PLAN_ORDER_H
#define R2_PLAN_ORDER_H

#include "model/topology.h"

/**
 * Ranks by host, hosts in an order whose weakest edge is as good as moving single hosts makes it.
 * On healthy rails: hosts in their order.
 *
 * Source: re-ranking with bridges, section 6 of the R2CCL paper. Deviation: any host that helps is
 * a bridge.
 * @param topology NULL: ranks in their order.
 * @param order_p  `size` ranks.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_order_ring(const r2_topology_t *topology, int32_t size, int32_t *order_p);

/**
 * True if some hosts share no rail, but neighbours in the order of r2_order_ring() do: a ring then reaches
 * all where a direct exchange does not. False, too, without memory.
 */
bool r2_order_reaches_more(const r2_topology_t *topology);

#endif
