/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts of the job: who lives where, and what their rails are called. Plain value.
 */
#ifndef R2_MODEL_HOSTS_H
#define R2_MODEL_HOSTS_H

#include <stdint.h>

#include "r2/cost_params.h"

/** One rail of a host. */
typedef struct r2_host_rail {
    const char *name;      /* borrowed: in the memory of its host */
    const char *port;      /* borrowed: the same; RDMA device and port that it offers, or "" */
    uint32_t ipv4;         /* network byte order, 0 = none */
    uint32_t mbytes_per_s; /* 0 = not known */
} r2_host_rail_t;

/** One host, as its lowest rank published it. */
typedef struct r2_host {
    const char *name;      /* borrowed: in `rails` */
    r2_host_rail_t *rails; /* owned: with the texts behind them */
    uint32_t rail_count;
    uint32_t leader;  /* lowest rank */
    uint32_t machine; /* no NIC lies between hosts that have this in common */
} r2_host_t;

/** All hosts, in order of their lowest rank: equal on all processes. */
typedef struct r2_hosts {
    uint32_t rank_count, host_count;
    uint32_t *host_of;     /* owned: [rank]; host_count or more: that process does not run r2 */
    r2_host_t *hosts;      /* owned: [host] */
    r2_cost_params_t cost; /* as rank 0 published it */
} r2_hosts_t;

#endif
