/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello: authenticated request and reply between two processes over one rail, outside the transport.
 */
#ifndef R2_RAIL_HELLO_H
#define R2_RAIL_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"
#include "rail/nic.h"
#include "r2/status.h"

/*
 * Every rail of a process has a listener bound to its NIC; lanes are opened, healed and identified
 * through it. One call = connect, challenge and response in both directions with the job key, one
 * request, one reply, close. Drivers: tcp (rail/hello_tcp.c) and the simulator. All functions run
 * under the engine lock and never block; upcalls are made only from inside poll().
 */

#define R2_HELLO_BYTES_MAX   1024 /* request or reply */
#define R2_HELLO_ADDRESS_MAX 128  /* listener address, opaque */
#define R2_JOB_KEY_BYTES     32

typedef struct r2_hello_upcalls {
    /**
     * A peer's request, authenticated. Answer with reply(token) now or later, once.
     * @param rail_idx our rail whose listener got it.
     */
    void (*request)(void *arg, uint32_t rail_idx, uint64_t token, const void *request, size_t bytes);
    /**
     * Outcome of our call: R2_OK with the reply, R2_ERR_REFUSED (host up, nobody listens: the process
     * is gone), R2_ERR_TIMEOUT, R2_ERR_AUTH, R2_ERR_NO_DEVICE, R2_ERR_LANE_DOWN (any other network error).
     */
    void (*result)(void *arg, uint64_t call_id, r2_status_t status, const void *reply, size_t bytes);
    void *arg; /* borrowed: outlives the hello instance */
} r2_hello_upcalls_t;

typedef struct r2_hello_ops {
    const char *name;
    /** Sets the upcalls; before any other call. Copied. */
    void (*bind)(void *hello, const r2_hello_upcalls_t *upcalls);
    /** Opens the listener of a rail. @param address_p R2_HELLO_ADDRESS_MAX bytes, to be published. */
    r2_status_t (*listen)(void *hello, uint32_t rail_idx, const r2_nic_t *nic, void *address_p,
                          size_t *bytes_p);
    /** Starts a call over our rail `rail_idx` to a listener address. @param call_id the caller's. */
    r2_status_t (*call)(void *hello, uint32_t rail_idx, const void *address, size_t address_bytes,
                        const void *request, size_t bytes, uint64_t timeout_ns, uint64_t call_id);
    /** Answers a request. Unknown or expired tokens are ignored. */
    void (*reply)(void *hello, uint64_t token, const void *reply, size_t bytes);
    /** One descriptor (epoll) that is readable when poll() has something to do; -1: none. */
    int (*fd)(void *hello);
    /** Handles everything that is ready and expired timeouts. */
    void (*poll)(void *hello);
    /** When poll() must be called next for a timeout; R2_NEVER_NS: not at all. */
    uint64_t (*deadline_ns)(void *hello);
} r2_hello_ops_t;

/** A hello driver with its instance. */
typedef struct r2_hello {
    const r2_hello_ops_t *ops; /* borrowed: static */
    void *instance;            /* borrowed: outlives all users */
} r2_hello_t;

/**
 * The TCP driver. rail_idx R2_RAILS_MAX is the rail within the host (Unix domain socket).
 * @param key job key of R2_JOB_KEY_BYTES, copied.
 */
r2_status_t r2_hello_tcp_create(const uint8_t *key, const r2_clock_t *clock, const r2_log_t *log,
                                r2_hello_t *hello_p);
void r2_hello_tcp_destroy(r2_hello_t *hello);

#endif
