/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probe driver for Ethernet: TCP connections to the hello listener, ICMP echo, UDP beacons.
 */
#ifndef R2_RAIL_PROBE_TCP_H
#define R2_RAIL_PROBE_TCP_H

#include "base/clock.h"
#include "base/logger.h"
#include "rail/probe.h"
#include "transport/put.h"

/*
 * Two ways to ask (parameter probe): "connect" and "put"; "auto" puts on RDMA devices. A rail that
 * cannot put, or a put that fails other than by silence, asks by connecting.
 *
 * "connect" asks the peer's kernel with a TCP connection to a port that its probe driver keeps and
 * on which nobody listens: the refusal is the answer. That needs no process, takes no place in a
 * listener's queue (which fills up while a process is stopped, and then drops connections) and
 * wakes nobody. After half of the time it asks once more, now the rail's hello listener, for
 * networks that swallow refusals and for packets that got lost; such a connection is reset as soon
 * as it is there.
 *
 * "put" asks the peer's NIC with a put of no bytes (transport/put.h). Over TCP it is the peer's
 * process that answers, when it polls: there a stopped process is silent, which is why "auto" never
 * puts there.
 *
 * All sockets are bound to the rail's device. Rails within a host have no probes.
 *
 * R2_PROBE_UNABLE also when the own NIC lost its carrier after the request: deadline_ns() tells
 * when poll() has to be called, also for results that are there at once.
 */

/**
 * @param clock borrowed. @param log borrowed. @param put its instance outlives the driver.
 * @param choice "auto", "connect" or "put".
 * @return R2_OK, R2_ERR_PARAM (no such choice), R2_ERR_SYSTEM, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_probe_tcp_create(const r2_clock_t *clock, const r2_log_t *log, const r2_put_t *put,
                                const char *choice, r2_probe_t *probe_p);
/** Closes everything; probes under way get no result. Not from inside an upcall. */
void r2_probe_tcp_destroy(r2_probe_t *probe);

#endif
