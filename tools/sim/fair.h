/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Max-min fair rates of flows that each use one sending and one receiving NIC.
 */
#ifndef R2_TOOLS_FAIR_H
#define R2_TOOLS_FAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

/** A flow, or a set of flows that are alike by symmetry. */
typedef struct fair_flow {
    uint32_t out, in; /* ports: of the sender, of the receiver */
    double out_count; /* flows of this set through one sending port, > 0 */
    double in_count;  /* ... through one receiving port, > 0 */
    double rate;      /* result: of one flow, bytes/s */
} fair_flow_t;

/** Memory for one number of ports; used again for each solution. */
typedef struct fair {
    uint32_t port_count;
    const double *capacity; /* borrowed: outlives the fair_t; [port], bytes/s */
    double *left;           /* owned; [port] */
    double *load;           /* owned; [port], flows not fixed yet */
    uint32_t *open;         /* owned; flows not fixed yet */
    size_t open_room;
} fair_t;

/** @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t fair_init(fair_t *fair, const double *capacity, uint32_t port_count);
void fair_fini(fair_t *fair);

/**
 * Progressive filling: all rates grow together; where a port is full, its flows keep their rate.
 * Source: D. Bertsekas, R. Gallager, "Data Networks", 2nd edition 1992, section 6.5.2.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t fair_solve(fair_t *fair, fair_flow_t *flows, size_t count);

#endif
