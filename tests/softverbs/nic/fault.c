/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether a fault of the NIC's own strikes now. Each kind has its own random numbers, so that one
 * does not move another's.
 */
#include "softverbs/nic/nic.h"

bool sv_fault_hits(sv_dev_t *dev, sv_fault_kind_t kind)
{
    uint64_t random = dev->faults[kind].random;

    if (0 == dev->faults[kind].per_million) {
        return false;
    }
    random ^= random << 13; /* Source: Marsaglia, Xorshift RNGs, 2003 */
    random ^= random >> 7;
    random ^= random << 17;
    dev->faults[kind].random = random;
    return (random >> 16) % 1000000 < dev->faults[kind].per_million;
}
