/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One RDMA port as its device tells of it: up, down, dead, back.
 */
#ifndef R2_RAIL_PORT_WATCH_H
#define R2_RAIL_PORT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/nic.h"
#include "rail/port_verbs.h"

/** A port that is followed. Zeroed: none is. Its owner serializes all calls. */
typedef struct r2_port_watch {
    char rdma[R2_NIC_NAME_MAX]; /* device and port; "": none is followed */
    r2_port_verbs_t *verbs;     /* owned; NULL: the device died, and cannot be opened yet */
    r2_port_state_t state;
    int epoll_fd;                /* borrowed: gets the descriptor of what is open */
    uint64_t retry_ns, pause_ns; /* a dead device is not opened before; between two attempts */
    /* it was tried in vain for 3 s, or died soon after it was back, and is tried on */
    bool is_lost;
    uint64_t back_ns; /* when it was lost last, and is back since; 0: never */
} r2_port_watch_t;

/**
 * Opens the port's device to hear of it.
 * @return R2_OK, or as r2_port_verbs_open(): nothing is followed then.
 */
r2_status_t r2_port_watch_start(r2_port_watch_t *watch, const char *rdma, int epoll_fd);
void r2_port_watch_stop(r2_port_watch_t *watch);
/**
 * Takes all news without blocking, and opens a dead device anew when its time has come.
 * @return true: the table of GIDs may be another, or the state is, or the device is lost.
 */
bool r2_port_watch_poll(r2_port_watch_t *watch, uint64_t now_ns);
/** Asks anew how a port is that was down. */
void r2_port_watch_ask(r2_port_watch_t *watch);
/** When to poll although there is no news; R2_NEVER_NS: never. */
uint64_t r2_port_watch_deadline_ns(const r2_port_watch_t *watch);
/** True if the device has been dead for so long that nobody should wait for it. */
bool r2_port_watch_is_lost(const r2_port_watch_t *watch);
/** What keeps the port from carrying anything; R2_NIC_WORKS where nothing is followed. */
r2_nic_outage_t r2_port_watch_outage(const r2_port_watch_t *watch);

#endif
