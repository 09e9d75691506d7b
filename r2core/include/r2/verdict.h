/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Verdicts: what is broken, told from evidence.
 */
#ifndef R2_VERDICT_H
#define R2_VERDICT_H

#include "r2/status.h"

/** What is broken. Values travel in notices: only append. */
typedef enum r2_verdict {
    R2_VERDICT_HEALTHY = 0,  /* nothing, or healed */
    R2_VERDICT_NIC,          /* the NIC (or its cable, or its switch port) of the named host */
    R2_VERDICT_PATH,         /* the path between two hosts: both reach others on this rail */
    R2_VERDICT_PLANE,        /* the rail's switch: nobody reaches anybody on it */
    R2_VERDICT_SLOW,         /* the NIC of the named host works, slower than it should */
    /* kernel answers, process does not: stopped or computing. No failover */
    R2_VERDICT_PEER_BUSY,
    R2_VERDICT_PEER_GONE,    /* the process is gone */
    R2_VERDICT_PEER_SILENT,  /* no rail of the peer answers: host or process, held until it does */
    R2_VERDICT_AMBIGUOUS,    /* the NIC of one of two hosts, or the path: nobody is left to ask */
    R2_VERDICT_COUNT
} r2_verdict_t;

/** Which way does not pass, seen from the host that is named. */
typedef enum r2_direction {
    R2_DIRECTION_BOTH = 0,
    R2_DIRECTION_OUT,
    R2_DIRECTION_IN,
    R2_DIRECTION_COUNT
} r2_direction_t;

/** Evidence: what happened to a lane. */
typedef enum r2_lane_event {
    R2_LANE_EVENT_SUSPECT,  /* acknowledgements stopped while other lanes of the link answer */
    R2_LANE_EVENT_FAILED,   /* fenced; a status tells why */
    R2_LANE_EVENT_UP,       /* open (again): both ways pass */
    R2_LANE_EVENT_UNOPENED, /* an attempt to open it failed; a status tells why */
    R2_LANE_EVENT_DOUBT,    /* acknowledgements stopped, and no lane of the link answers */
    R2_LANE_EVENT_REFUSED,  /* refused again and again, while the process is heard elsewhere */
    R2_LANE_EVENT_MUTE      /* made again and again, and nothing crosses it; heard elsewhere */
} r2_lane_event_t;

#define R2_NOTICE_BYTES_MAX 256 /* one notice about health, in band or out of band */

/** "nic", "path", ... */
R2_EXPORT const char *r2_verdict_name(r2_verdict_t verdict);
/** "both", "out", "in". */
R2_EXPORT const char *r2_direction_name(r2_direction_t direction);

#endif
