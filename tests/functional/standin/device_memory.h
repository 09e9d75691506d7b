/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory that looks like a device's: mapped twice, where the device has it without any right of
 * access.
 */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#define DEVICE_BYTES   (1ul << 20)
#define DEVICE_AT      0x500000000000ul /* what applications give to MPI */
#define DEVICE_HOST_AT 0x510000000000ul /* the same, for who knows how to get at it */

#endif
