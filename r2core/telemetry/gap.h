/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gaps: how long deliveries paused after a fault.
 */
#ifndef R2_TELEMETRY_GAP_H
#define R2_TELEMETRY_GAP_H

#include <stdbool.h>
#include <stdint.h>

#define R2_GAP_WINDOW_NS  1000000000ull /* what a fault costs shows within this time */
#define R2_GAP_FAULTS_MAX 16u           /* faults watched at a time */
#define R2_GAP_TIMES_MAX  64u           /* deliveries remembered, for evidence that comes late */

/** One fault under watch. */
typedef struct r2_gap_fault {
    uint64_t since_ns;   /* first evidence */
    uint64_t longest_ns; /* so far */
    uint32_t rail;
} r2_gap_fault_t;

/** A pause between two deliveries while somebody waited. */
typedef struct r2_gap_pause {
    uint64_t from_ns, to_ns;
} r2_gap_pause_t;

/** Gap tracker of one process. Engine lock. Pure: time comes as an argument and never goes back. */
typedef struct r2_gap {
    uint64_t last_ns; /* newest delivery, or start of waiting; 0: nobody waits */
    r2_gap_pause_t pauses[R2_GAP_TIMES_MAX]; /* ring: the newest pauses */
    uint32_t next_pause;                     /* of the ring */
    r2_gap_fault_t faults[R2_GAP_FAULTS_MAX];
    uint32_t fault_count;
    uint64_t longest_ns; /* over all faults that are over */
    uint64_t missed;     /* faults that found no place */
} r2_gap_t;

void r2_gap_init(r2_gap_t *gap);

/**
 * After a progress pass.
 * @param delivered payload arrived since the last call.
 * @param waiting   somebody waits for payload now. A pause counts from the later of the last
 * delivery and the begin of waiting, to the next delivery or the end of waiting.
 */
void r2_gap_swept(r2_gap_t *gap, bool delivered, bool waiting, uint64_t now_ns);

/**
 * Evidence of a fault on `rail`. The same rail within the window of an earlier one is the same
 * fault.
 * @param since_ns first evidence, at most now; pauses that are over and reach beyond it are counted
 * too if they are among the newest.
 */
void r2_gap_fault(r2_gap_t *gap, uint32_t rail, uint64_t since_ns, uint64_t now_ns);

/**
 * Takes a fault whose window is over.
 * @param fault_p since_ns, rail and the longest gap within [since_ns, since_ns + R2_GAP_WINDOW_NS].
 * @return false: there is none.
 */
bool r2_gap_take(r2_gap_t *gap, uint64_t now_ns, r2_gap_fault_t *fault_p);

/** When r2_gap_take() has something; UINT64_MAX: nothing is watched. */
uint64_t r2_gap_deadline_ns(const r2_gap_t *gap);

#endif
