/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Watch of NICs for tests: tells what it is told.
 */
#ifndef R2_DOUBLES_NIC_WATCH_SIM_H
#define R2_DOUBLES_NIC_WATCH_SIM_H

#include "rail/nic_watch.h"

/**
 * A driver for one process.
 * @param nics copied. @param wakes with a descriptor, as netlink has one, for real service threads.
 * @return R2_OK, R2_ERR_PARAM (too many), R2_ERR_NO_MEMORY, R2_ERR_SYSTEM.
 */
r2_status_t r2_nic_watch_sim_create(const r2_nic_t *nics, size_t count, bool wakes,
                                    r2_nic_watch_t *watch_p);
void r2_nic_watch_sim_destroy(r2_nic_watch_t *watch);

/** A NIC has lost or got carrier; the next poll() tells. Any thread. */
void r2_nic_watch_sim_set(r2_nic_watch_t *watch, size_t idx, bool carrier);
/** A NIC has another address, and kept its carrier; as above. */
void r2_nic_watch_sim_address(r2_nic_watch_t *watch, size_t idx, uint32_t ipv4);

#endif
