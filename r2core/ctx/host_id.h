/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which processes are on one host.
 */
#ifndef R2_CTX_HOST_ID_H
#define R2_CTX_HOST_ID_H

#include <stdint.h>

/**
 * Equal for processes that can share memory: same boot, host name and namespaces of IPC, processes
 * and users. Containers with namespaces of their own are hosts of their own.
 */
uint64_t r2_host_id(const char *host_name);

/** Equal for processes that no NIC lies between: same boot, host name and IPC namespace. */
static inline uint32_t r2_host_machine(uint64_t host_id)
{
    return (uint32_t) host_id;
}

#endif
