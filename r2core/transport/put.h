/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The table of puts: writes of no bytes into another process, for probes only. Implemented by
 * uct_put.c.
 */
#ifndef R2_TRANSPORT_PUT_H
#define R2_TRANSPORT_PUT_H

#include <stddef.h>

#include "r2/transport.h"

/*
 * Objects: device (one NIC) > end (a worker of its own): a target, which others write to, or an
 * asker, which writes once and is done. A put carries no bytes, so nothing is written; what counts
 * is that it is acknowledged. Who does that: on RDMA the other NIC; over TCP the other process,
 * inside progress() of its target. All calls are made under the engine lock and never block.
 */

#define R2_PUT_ADDRESS_MAX 58 /* bytes of a target's address; a longer one cannot be used */

typedef struct r2_put_device r2_put_device_t;
typedef struct r2_put_end r2_put_end_t;

typedef struct r2_put_ops {
    /**
     * @param name of the network device, on RDMA of device and port. @param tls one transport:
     * "tcp", "dc_mlx5".
     * @return R2_OK, R2_ERR_NO_DEVICE, R2_ERR_UNSUPPORTED (another UCX than this was built with),
     * R2_ERR_NO_MEMORY.
     */
    r2_status_t (*device_open)(void *put, const char *name, const char *tls,
                               r2_put_device_t **device_p);
    void (*device_close)(r2_put_device_t *device); /* all its ends are destroyed before */
    /**
     * Makes something that others can write to.
     * @param address_p R2_PUT_ADDRESS_MAX bytes, to be published.
     * @return R2_OK, R2_ERR_NO_DEVICE, R2_ERR_NO_DESCRIPTORS, R2_ERR_NO_MEMORY, R2_ERR_UNSUPPORTED
     * (address too long).
     */
    r2_status_t (*target)(r2_put_device_t *device, void *address_p, size_t *bytes_p,
                          r2_put_end_t **end_p);
    /**
     * Begins to write to a target. @param address not trusted beyond its length.
     * @return R2_OK: progress() will tell; R2_ERR_PARAM, R2_ERR_NO_DEVICE, R2_ERR_NO_DESCRIPTORS,
     * R2_ERR_NO_PATH, R2_ERR_NO_MEMORY.
     */
    r2_status_t (*start)(r2_put_device_t *device, const void *address, size_t bytes,
                         r2_put_end_t **end_p);
    /**
     * Works until nothing is left to do.
     * @return R2_IN_PROGRESS (a target: always), R2_OK: the byte was written and acknowledged, or
     * why it was not.
     */
    r2_status_t (*progress)(r2_put_end_t *end);
    /**
     * @return a descriptor that is readable after arm() when there is something to do. Not for
     * askers: over TCP it is readable all the time until the other process takes the connection.
     */
    int (*fd)(const r2_put_end_t *end);
    /** @return R2_OK: may sleep; R2_ERR_AGAIN: progress first. */
    r2_status_t (*arm)(r2_put_end_t *end);
    /** Never from inside progress(). */
    void (*destroy)(r2_put_end_t *end);
} r2_put_ops_t;

/** A table of puts with its instance; ops NULL: there is none. */
typedef struct r2_put {
    const r2_put_ops_t *ops; /* borrowed: static */
    void *instance;          /* borrowed: outlives all users */
} r2_put_t;

/** Puts of the UCX transport. @param tp r2_tp_ucx(), outlives the puts. */
r2_put_t r2_put_ucx(const r2_tp_t *tp);

#endif
