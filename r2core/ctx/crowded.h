/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Crowded ranks: do they wait for processors, and do calls gain by plans that are made for that?
 */
#ifndef R2_CTX_CROWDED_H
#define R2_CTX_CROWDED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "r2/cost_params.h"

#define R2_CROWDED_CALLS  16u /* calls that are remembered, of different kinds and lengths */
#define R2_CROWDED_TRIALS 32u

/** Calls of one kind, size of communicator and length, again and again. */
typedef struct r2_crowded_call {
    uint32_t kind; /* R2_CROWDED_ALLREDUCE, .. */
    uint32_t coll; /* r2_coll_kind_t: which of those that have plans together */
    int32_t size;
    uint64_t bytes;
    uint64_t before_ns; /* sum of what they took before they had plans for crowded ranks */
    uint32_t before;    /* such calls */
    uint32_t since;     /* calls that had them */
    uint64_t since_ns;  /* sum of what they took */
} r2_crowded_call_t;

/** Plans for crowded ranks, for calls of one kind and about one length. */
typedef struct r2_crowded_trial {
    bool used, lost;
    uint32_t losses, rest; /* calls without until it is tried again; 0: it is not */
    uint32_t judged;
    int64_t gained_ns; /* against what the same calls took before */
    uint64_t took_ns;  /* they, before */
} r2_crowded_trial_t;

/** As a process sees it; plans are by what rank 0 sees. Zeros: nothing is known, they are not
 * crowded. */
typedef struct r2_crowded {
    bool crowded;
    uint32_t changes;
    struct {                /* of the processors */
        r2_cpu_time_t from; /* where the window under way began */
        uint32_t windows;   /* in a row that tell another thing than what is known */
        bool waits;         /* this process waits for them now, whatever plans it has */
        uint32_t against;   /* windows that tell another thing; those that tell none are between */
    } cores;
    struct {                          /* of the rails of rank 0's host */
        uint64_t from_ns, from_bytes; /* where the window under way began; 0: none is */
        uint64_t before_bytes_per_s;  /* of the window before */
        bool carry;                   /* two in a row had what slow ones cannot have */
    } rails;
    r2_crowded_trial_t trials[R2_CROWDED_TRIALS]; /* by bit of what is told */
    r2_crowded_call_t calls[R2_CROWDED_CALLS];
} r2_crowded_t;

/** One more look at what the calling thread had of the processors; every R2_CROWDED_LOOK_NS. */
#define R2_CROWDED_LOOK_NS (20 * R2_NS_PER_MS)
void r2_crowded_look_at_cores(r2_crowded_t *crowded, const r2_cpu_time_t *now);
/** What is seen of rank 0's rails, all together. */
typedef struct r2_crowded_rails {
    uint64_t now_ns;
    uint64_t bytes;            /* so far both ways, for all ranks of the host */
    uint64_t slow_bytes_per_s; /* what rails that give far less than they tell carry one way */
} r2_crowded_rails_t;
/** One more look at the rails, at the same times. */
void r2_crowded_look_at_rails(r2_crowded_t *crowded, const r2_crowded_rails_t *now);
/**
 * A call is over whose plan may depend on it.
 * @param is   kind, size and length.
 * @param used what its plan was made from.
 */
void r2_crowded_called(r2_crowded_t *crowded, const r2_crowded_call_t *is, uint64_t took_ns,
                       const r2_cost_params_t *used);
/** What plans are to be made from: r2_cost_params_t.crowded. */
uint32_t r2_crowded_told(const r2_crowded_t *crowded);

#endif
