/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Fault injection: a transport around any other transport that loses, doubles and delays packets.
 */
#ifndef R2_DOUBLES_FAULT_H
#define R2_DOUBLES_FAULT_H

#include "base/clock.h"
#include "r2/transport.h"

#define R2_FAULT_RULES_MAX 16

typedef enum r2_fault_action {
    R2_FAULT_DROP,      /* the packet is lost, its sender does not know */
    R2_FAULT_BREAK,     /* the packet is lost and the endpoint fails a little later */
    R2_FAULT_DUPLICATE, /* the packet goes now and again up to delay_ns later */
    R2_FAULT_DELAY,     /* the packet goes up to delay_ns later: others overtake it */
    R2_FAULT_ERROR,     /* send() answers `status` */
    R2_FAULT_FAIL       /* the packet goes, the endpoint reports `status` */
} r2_fault_action_t;

/** What happens to which packets. The first rule that applies to a packet counts. */
typedef struct r2_fault_rule {
    r2_fault_action_t action;
    uint32_t ppm;               /* chance per packet, parts per million */
    uint64_t limit;             /* at most so often; 0: no limit */
    uint64_t from_ns, until_ns; /* by the given clock; until 0: for ever */
    uint64_t delay_ns;
    r2_status_t status; /* < 0 */
    /** Chooses packets by their header, such as those that only acknowledge; NULL: all. */
    bool (*match)(const void *header, size_t header_bytes, size_t data_bytes);
} r2_fault_rule_t;

/** How often each action was taken. */
typedef struct r2_fault_stats {
    uint64_t taken[R2_FAULT_FAIL + 1];
} r2_fault_stats_t;

typedef struct r2_tp_fault r2_tp_fault_t;

/**
 * Puts rules around a transport. Equal seeds and equal calls give equal faults.
 * @param inner borrowed: outlives the decorator, as the clock does.
 * @param rules copied, up to R2_FAULT_RULES_MAX.
 * @return NULL: out of memory or too many rules.
 */
r2_tp_fault_t *r2_tp_fault_create(const r2_tp_t *inner, const r2_clock_t *clock, uint64_t seed,
                                  const r2_fault_rule_t *rules, size_t rule_count);
/** All devices must be closed. */
void r2_tp_fault_destroy(r2_tp_fault_t *fault);

/** The decorated transport. Valid until r2_tp_fault_destroy(). */
r2_tp_t r2_tp_fault_transport(r2_tp_fault_t *fault);

/** When worker_progress() has a delayed packet or a failure to handle; R2_NEVER_NS: nothing
 * waits. */
uint64_t r2_tp_fault_deadline_ns(const r2_tp_fault_t *fault);

const r2_fault_stats_t *r2_tp_fault_stats(const r2_tp_fault_t *fault);

#endif
