/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts of the job, from what all processes published.
 */
#ifndef R2_CTX_HOST_TABLE_H
#define R2_CTX_HOST_TABLE_H

#include "link/net.h"
#include "model/hosts.h"

/** Looks all processes of the job up. @return R2_OK, R2_ERR_NO_MEMORY, or the error of a lookup. */
r2_status_t r2_hosts_create(r2_net_t *net, r2_hosts_t **hosts_p);
void r2_hosts_destroy(r2_hosts_t *hosts);
/** True if each process of the job on the machine of this one can have a processor. */
bool r2_hosts_have_cores(const r2_hosts_t *hosts, uint32_t rank);
/** True if no NIC lies between these processes. @param ranks [size]. */
bool r2_hosts_together(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size);

/** Cost as it is published, little endian. @param to R2_PEER_COST_BYTES. @return bytes, 0 for the
 * usual cost. */
size_t r2_hosts_cost_encode(const r2_cost_params_t *cost, uint8_t *to);
/** Never trusts the bytes: what is not there is the usual cost. */
void r2_hosts_cost_decode(const uint8_t *from, size_t bytes, r2_cost_params_t *cost_p);
/** "rail1 192.0.2.1 of h3" for log lines. */
void r2_hosts_rail_text(const r2_hosts_t *hosts, uint32_t host, uint32_t rail, char *text_p,
                        size_t text_bytes);

#endif
