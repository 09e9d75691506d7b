/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Names of verdicts and directions.
 */
#include "r2_config.h"

#include "r2/verdict.h"

const char *r2_verdict_name(r2_verdict_t verdict)
{
    static const char *const names[R2_VERDICT_COUNT] = {
        [R2_VERDICT_HEALTHY] = "healthy",       [R2_VERDICT_NIC] = "nic",
        [R2_VERDICT_PATH] = "path",             [R2_VERDICT_PLANE] = "plane",
        [R2_VERDICT_SLOW] = "slow",             [R2_VERDICT_PEER_BUSY] = "peer_busy",
        [R2_VERDICT_PEER_GONE] = "peer_gone",   [R2_VERDICT_PEER_SILENT] = "peer_silent",
        [R2_VERDICT_AMBIGUOUS] = "ambiguous",
    };

    return (unsigned) verdict < R2_VERDICT_COUNT ? names[verdict] : "unknown";
}

const char *r2_direction_name(r2_direction_t direction)
{
    static const char *const names[R2_DIRECTION_COUNT] = {
        [R2_DIRECTION_BOTH] = "both",
        [R2_DIRECTION_OUT] = "out",
        [R2_DIRECTION_IN] = "in",
    };

    return (unsigned) direction < R2_DIRECTION_COUNT ? names[direction] : "unknown";
}
