/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Log lines about rails for who looks after the hosts: what is broken, what is left, since when.
 */
#ifndef R2_CTX_RAIL_LOG_H
#define R2_CTX_RAIL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/logger.h"
#include "r2/verdict.h"

/*
 * A rail that goes down, and one that comes back, has its line at once. What it does within the
 * next interval is counted, and told in one line at the end of it; intervals double while it goes
 * on.
 */
#define R2_RAIL_LOG_INTERVAL_S     10u
#define R2_RAIL_LOG_INTERVAL_MAX_S 640u
#define R2_RAIL_LOG_HELD_S         3u /* so long is left to the rail's own host to tell of it */
#define R2_RAIL_LOG_SUBJECTS_MAX   256u

typedef struct r2_rail_log r2_rail_log_t;

/** A rail of a host, or the way between two hosts on it, and what has become of it. */
typedef struct r2_rail_change {
    uint32_t host, other, rail;               /* indices; other UINT32_MAX: the rail of `host` */
    const char *nic, *host_name, *other_name; /* borrowed for the call; other_name may be NULL */
    const char *port;                         /* the same; its RDMA device and port, "" or NULL */
    r2_verdict_t verdict;
    uint32_t capacity; /* sixteenths */
    /* rails of the host, or between the two, that work; that there are */
    uint32_t left, all;
    uint64_t since_ns; /* first evidence */
    /* NULL; or the host that says so of another one, which should do it itself */
    const char *from;
} r2_rail_change_t;

/**
 * @param wall_offset_ns what the clock lacks to the time of day since 1970.
 * @return NULL: no memory.
 */
r2_rail_log_t *r2_rail_log_create(const r2_log_t *log, int64_t wall_offset_ns);
/** Tells what is not told yet. */
void r2_rail_log_destroy(r2_rail_log_t *rails, uint64_t now_ns);

/** Something changed, and it is this process that speaks. @param change->from NULL. */
void r2_rail_log_change(r2_rail_log_t *rails, const r2_rail_change_t *change, uint64_t now_ns);
/** Another host's rail is dead, seen from here: told when nobody else has, a while later. */
void r2_rail_log_hold(r2_rail_log_t *rails, const r2_rail_change_t *change, uint64_t now_ns);
/** Its own host knows: nothing is held any more. */
void r2_rail_log_release(r2_rail_log_t *rails, uint32_t host, uint32_t rail);

void r2_rail_log_tick(r2_rail_log_t *rails, uint64_t now_ns);
/** When tick() has work; R2_NEVER_NS: none. */
uint64_t r2_rail_log_deadline_ns(const r2_rail_log_t *rails);

#endif
