/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * State and asynchronous events of an RDMA port, from libibverbs, which is opened at run time.
 */
#ifndef R2_RAIL_PORT_VERBS_H
#define R2_RAIL_PORT_VERBS_H

#include <stdbool.h>

#include "r2/nic.h"
#include "r2/status.h"

/** An opened device, for one of its ports. It has no queue pairs: it only hears. Engine lock. */
typedef struct r2_port_verbs r2_port_verbs_t;

/** What a device says by itself. */
typedef enum r2_port_news {
    R2_PORT_NEWS_NONE,
    R2_PORT_NEWS_STATE,   /* the port is up, down, or has another address in the fabric */
    R2_PORT_NEWS_GIDS,    /* its table of GIDs changed */
    R2_PORT_NEWS_DEAD,    /* the device had a fatal error: what is open of it stays dead */
    R2_PORT_NEWS_NOTHING, /* about something else */
} r2_port_news_t;

/**
 * Opens the device of a port. Takes milliseconds and two or three descriptors, one of them closed
 * in forked children.
 * @param rdma device and port, "mlx5_0:1".
 * @return R2_OK, R2_ERR_UNSUPPORTED (no libibverbs here, or r2 was built without its header),
 *         R2_ERR_NO_DEVICE (no such device, or it cannot be opened), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_port_verbs_open(const char *rdma, r2_port_verbs_t **port_p);
void r2_port_verbs_close(r2_port_verbs_t *port);
/** Readable when there is news. */
int r2_port_verbs_fd(const r2_port_verbs_t *port);
/** Takes one event without blocking. @return R2_PORT_NEWS_NONE: there is none. */
r2_port_news_t r2_port_verbs_next(r2_port_verbs_t *port);
/** Asks the device. @return R2_PORT_UNKNOWN: it does not say. */
r2_port_state_t r2_port_verbs_state(const r2_port_verbs_t *port);

#endif
