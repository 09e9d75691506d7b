/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello: authenticated request and reply between two processes over one rail, outside the
 * transport.
 */
#ifndef R2_RAIL_HELLO_H
#define R2_RAIL_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/logger.h"
#include "r2/status.h"
#include "rail/nic_watch.h"

/*
 * Every rail of a process has a listener bound to its NIC; lanes are opened, healed and identified
 * through it. One call = connect, challenge and response in both directions with the job key, one
 * request, one reply, close. Drivers: tcp (rail/hello_tcp.c) and the simulator. All functions run
 * under the engine lock and never block; upcalls are made only from inside poll().
 */

#define R2_HELLO_BYTES_MAX   1280 /* request or reply */
#define R2_HELLO_ADDRESS_MAX 128  /* listener address, opaque */
#define R2_JOB_KEY_BYTES     32

typedef struct r2_hello_upcalls {
    /**
     * A peer's request, authenticated. Answer with reply(token) now or later, once.
     * @param rail_idx our rail whose listener got it.
     */
    void (*request)(void *arg, uint32_t rail_idx, uint64_t token, const void *request,
                    size_t bytes);
    /**
     * Outcome of our call: R2_OK with the reply, R2_ERR_REFUSED (host up, nobody listens: the
     * process is gone, or the device there was made anew and its process has not used it since),
     * R2_ERR_TIMEOUT (no connection), R2_ERR_UNRESPONSIVE (a connection, but the process does not
     * answer: stopped or busy), R2_ERR_AUTH, R2_ERR_NO_DEVICE, R2_ERR_LANE_DOWN (any other network
     * error).
     */
    void (*result)(void *arg, uint64_t connect_id, r2_status_t status, const void *reply,
                   size_t bytes);
    /**
     * A call of ours is connected, but the process has not said a word in the time it had: it is
     * stopped, or busy. NULL: such calls end. @return true: the call goes on, and this is asked
     * again later; else it ends with R2_ERR_UNRESPONSIVE. One that goes on ends with
     * R2_ERR_LANE_DOWN when its path is lost for seconds.
     */
    bool (*waits)(void *arg, uint64_t connect_id);
    void *arg; /* borrowed: outlives the hello instance */
} r2_hello_upcalls_t;

typedef struct r2_hello_ops {
    const char *name;
    /** Sets the upcalls; before any other call. Copied. */
    void (*bind)(void *hello, const r2_hello_upcalls_t *upcalls);
    /**
     * Sets the job key (R2_JOB_KEY_BYTES, copied), once, when it is known: after the launcher's
     * fence. Until then call() answers R2_ERR_AGAIN and peers that call us wait.
     */
    void (*key)(void *hello, const uint8_t *key);
    /**
     * Opens the listener of a rail; works with the NIC down. Call it again with the NIC's new state
     * when its IPv4 address changed or the device was made anew: the published port stays.
     * @param nic       NULL for the rail within the host.
     * @param address_p R2_HELLO_ADDRESS_MAX bytes, to be published.
     * @return R2_OK, R2_ERR_NO_DEVICE (no such device now), R2_ERR_PARAM, R2_ERR_SYSTEM.
     */
    r2_status_t (*listen)(void *hello, uint32_t rail_idx, const r2_nic_t *nic, void *address_p,
                          size_t *bytes_p);
    /**
     * Starts a call over our rail `rail_idx` (its listener is open) to a listener address.
     * @param connect_id the caller's.
     * @return R2_OK: result() will be called, once. Otherwise it will not be: R2_ERR_AGAIN (no key
     *         yet, out of descriptors), R2_ERR_NO_DEVICE (our NIC is not usable now, or the peer
     * had no address), R2_ERR_REFUSED, R2_ERR_LANE_DOWN, R2_ERR_WIRE (malformed address),
     *         R2_ERR_PARAM (request too long), R2_ERR_NO_MEMORY.
     */
    r2_status_t (*call)(void *hello, uint32_t rail_idx, const void *address, size_t address_bytes,
                        const void *request, size_t bytes, uint64_t timeout_ns,
                        uint64_t connect_id);
    /**
     * Takes a call back whose request was not sent yet, since no connection came about.
     * @return true: the peer has not got it and never will, and result() will not be called. false:
     * too late.
     */
    bool (*cancel)(void *hello, uint64_t connect_id);
    /** True unless a call of ours waits for its connection still. */
    bool (*connected)(void *hello, uint64_t connect_id);
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
 * @param clock borrowed. @param log borrowed.
 * @return R2_OK, R2_ERR_SYSTEM, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_hello_tcp_create(const r2_clock_t *clock, const r2_log_t *log, r2_hello_t *hello_p);
/** Closes everything; calls under way get no result. Not from inside an upcall. */
void r2_hello_tcp_destroy(r2_hello_t *hello);

/**
 * Fills the IPv4 address (network byte order) into an address of the TCP driver that was published
 * while its NIC had none; such an address cannot be called before.
 * @return R2_OK (also when it had an address: it is replaced), R2_ERR_WIRE (malformed).
 */
r2_status_t r2_hello_tcp_address_fill(void *address, size_t bytes, uint32_t ipv4);

#endif
