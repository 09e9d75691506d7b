/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes of rails that only lanes reach: InfiniBand without IP.
 */
#ifndef R2_CTX_LANE_ASKS_H
#define R2_CTX_LANE_ASKS_H

#include "ctx/core.h"
#include "rail/probe.h"

#define R2_LANE_ASKS_MAX 32u

/** One question; id 0: none. */
typedef struct r2_lane_ask {
    uint64_t id, begun_ns, half_ns, deadline_ns;
    uint64_t connection; /* of the lane; another one was not asked */
    uint32_t rank, rail; /* the peer's, whose lane is asked */
    bool asked_again;    /* at half of the time, for the process that answers beside */
} r2_lane_ask_t;

/** Those under way. Engine lock. */
typedef struct r2_lane_asks {
    uint32_t count;
    r2_lane_ask_t asks[R2_LANE_ASKS_MAX];
} r2_lane_asks_t;

/**
 * Asks by the lane to a process. Its engine answers, so no answer counts only if the same process
 * answered on another lane in the second half of the time: who is stopped or computes is silent on
 * all.
 * @param rail the peer's. @return false: that lane is not up, or too many are asked.
 */
bool r2_lane_asks_start(r2_lane_asks_t *asks, r2_net_t *net, uint32_t rank, uint32_t rail,
                        uint64_t timeout_ns, uint64_t id);
/**
 * Takes a question that is answered, or whose time is over.
 * @return false: none.
 */
bool r2_lane_asks_next(r2_lane_asks_t *asks, r2_net_t *net, uint64_t *id_p,
                       r2_probe_answer_t *answer_p);
/** Next time to look. */
uint64_t r2_lane_asks_deadline_ns(const r2_lane_asks_t *asks, const r2_net_t *net);

#endif
