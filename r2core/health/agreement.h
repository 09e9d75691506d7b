/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement: when the ranks of one communicator may change plans together. Pure.
 */
#ifndef R2_HEALTH_AGREEMENT_H
#define R2_HEALTH_AGREEMENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A call is carrying if every rank receives bytes that depend on every rank. Its messages carry a
 * dirty bit: the sender's health map says more than the agreed one, or so said a message that it
 * received in the same call. At the end of a carrying call every rank holds the same OR, its
 * outcome.
 *
 * When a plan may change depends on the sequence of calls alone, never on local completion: call k
 * uses the outcomes of all earlier blocking carrying calls (they are over when k is posted,
 * MPI-3.1 5.12 keeps blocking and nonblocking calls apart) and of the nonblocking carrying calls up
 * to k - R2_AGREEMENT_AHEAD. The first call that sees a set outcome begins with a sync of all
 * ranks' maps.
 *
 *   call     0   1   2   3 ...            (all nonblocking, AHEAD = 8)
 *   outcome  0   1   0   0
 *   used by  8   9  10  11                call 9 begins with a map sync, on all ranks
 *
 * Where one map sync chases the other they pause, for more calls each time. Not before a long call,
 * which a map sync is little against and a plan of yesterday much.
 */

#define R2_AGREEMENT_AHEAD                                                \
    8u /* calls that may be under way beyond one whose outcome is awaited \
        */
#define R2_AGREEMENT_PAUSE_MIN 4u   /* calls from one map sync to the next */
#define R2_AGREEMENT_PAUSE_MAX 256u /* the same while one map sync chases the other (flapping) */

/** A call under way or not used yet. */
typedef struct r2_agreement_call {
    bool carrying, blocking;
    bool complete;
    bool outcome;
    bool used;
} r2_agreement_call_t;

/** State of one communicator. Zeroed at its creation. */
typedef struct r2_agreement {
    uint64_t next;      /* number of the next call to start */
    bool pending;       /* an outcome that was used is set, and no map sync was made since */
    bool synced;        /* there was a map sync */
    uint64_t sync_call; /* which began with the last one */
    uint64_t pause;     /* calls until the next may */
    uint32_t awaited;   /* blocking calls that carry and are not complete: one at most, in order */
    r2_agreement_call_t calls[R2_AGREEMENT_AHEAD]; /* ring: the last calls that started */
} r2_agreement_t;

/** True if the next call may start: all outcomes that it uses are there. */
bool r2_agreement_ready(const r2_agreement_t *agreement);

/**
 * Starts the next call. r2_agreement_ready() must be true.
 * @param carrying, blocking, is_long equal on all ranks.
 * @param sync_p true: the call begins with a map sync.
 * @return its number.
 */
uint64_t r2_agreement_start(r2_agreement_t *agreement, bool carrying, bool blocking, bool is_long,
                            bool *sync_p);

/** A call is over. @param map_pending the OR it holds. */
void r2_agreement_complete(r2_agreement_t *agreement, uint64_t call, bool map_pending);

#endif
