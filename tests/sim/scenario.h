/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Scenario: a simulated job as text: machine, collectives, faults. Every found fault becomes one.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doubles/fault.h"
#include "doubles/sim.h"
#include "r2/coll.h"
#include "r2/cost_params.h"
#include "r2/near.h"
#include "r2/params.h"

/* clang-format off */
/*
 * One statement per line or between semicolons; # starts a comment. Times take ns, us, ms or s.
 *
 * Machine    seed N | hosts N | ppn N (ranks per host) | rails N
 *            rails-of hH N (of this host only)
 *            told BYTES/S (what NICs tell of themselves; else it is the rate)
 *            rate BYTES/S | latency T | socket BYTES | receive BYTES | retry T | batch N
 *            keep PERCENT (data that outlives its endpoint) | jitter T (until a woken rank runs)
 *            crowded PERCENT (of their time ranks wait for a processor, as they tell)
 *            gpu BYTES/S (all buffers are in its memory; so fast are copies, each way)
 *            near N (rail N-1 is nearest to GPUs, then those after it in turn; 0: all are as near)
 *            first-seq N | param NAME VALUE | rdma N (hosts before hN offer lanes over RDMA)
 *            hello-loss PERCENT | backlog N (connections that the accept queue of a listener holds)
 *            post-loss PERCENT | post-twice PERCENT | post-delay T (out-of-band messages)
 *            probe-loss PERCENT
 *            rule ACTION PERCENT [only=acks|data|control|hello] [delay=T] [limit=N] [from=T]
 *              [until=T]
 *              ACTION: drop, break, duplicate, delay, error, fail
 * Program    comm NAME cid=N ranks=A,B,.. | free NAME | compute T [rank=R] | wait
 *            coll KIND TYPE COUNT [on=NAME] [root=R] [in-place] [nb] [times=N] [parts=N] [astray=R]
 *              KIND: a name of base/coll_kinds.def with "-" between words (neighbour-collective)
 *              TYPE: i64, f64, matrix (not commutative), bytes3 (not reduced)
 *              parts: as a series; astray: this rank takes the rank after the root for the root
 *            coll .. persistent (only makes a request)
 *            close (all requests, each rank in an order of its own)
 *            start [times=N] [rank=R] (all requests that are open, each rank in an order of its
 *              own)
 * Faults     at T down|up|drop|drop-in|drop-out|pass|break hH railR
 *              at 0ms: before the ranks start
 *            at T port-down|port-up hH railR (lanes carry nothing, connect requests pass)
 *            at T rate hH railR BYTES/S | at T loss hH railR PERCENT | at T cut|join hA hB railR
 *            at T stop|kill rR | at T cont rR [woken] (its service thread runs first) | at T heal
 *            at T post-cut|post-join hH (its management NIC)
 * Unhelpful  at T refuse hH railR [probes] (a firewall: new connect requests are refused; probes
 *              and beacons dropped, too) | at T accept hH railR
 *            at 0ms no-listener rR railX (cannot be opened)
 *            at T slow rR PERIOD (it gets to do a little once in so long; 0ms: that is over)
 *            at T descriptors rR N (its workers take 4, endpoints 2, connect requests 1; 0: no
 *              limit)
 *            at T memory rR PERCENT BYTES (of its allocations of so many bytes or more, so many
 *              fail)
 * Outcome    limit T (virtual time) | expect ok (default) | expect any (errors, but an end)
 *            expect healthy (nothing is broken: no lane fails)
 *            expect-map hH railR CAPACITY[-CAPACITY] at T | verbose N | allow-changes
 */
/* clang-format on */

#define SCENARIO_STEPS_MAX   256
#define SCENARIO_EVENTS_MAX  256
#define SCENARIO_COMMS_MAX   16
#define SCENARIO_RANKS_MAX   64
#define SCENARIO_PARAMS_MAX  16
#define SCENARIO_EXPECTS_MAX 32

typedef enum scenario_type {
    TYPE_I64,
    TYPE_F64,
    TYPE_MATRIX,
    TYPE_BYTES3,
    TYPE_COUNT
} scenario_type_t;

/** A set of ranks with a name. `world` is number 0 and exists from the start. */
typedef struct scenario_comm {
    char name[16];
    uint64_t cid;
    uint32_t ranks[SCENARIO_RANKS_MAX];
    int32_t size;
    bool live; /* while the program is read */
} scenario_comm_t;

typedef enum scenario_step_kind {
    STEP_CREATE,
    STEP_FREE,
    STEP_COLL,
    STEP_START,
    STEP_CLOSE,
    STEP_COMPUTE,
    STEP_WAIT
} scenario_step_kind_t;

/** One statement of the program, which all ranks run. */
typedef struct scenario_step {
    scenario_step_kind_t kind;
    uint32_t comm;
    r2_coll_kind_t coll;
    scenario_type_t type;
    uint64_t count;
    int32_t root;
    int32_t astray; /* rank that calls with another root; -1: none */
    uint32_t times;
    uint32_t parts; /* the same so many times in a row, under one handle */
    bool in_place, nonblocking, persistent;
    uint64_t compute_ns;
    int32_t rank; /* COMPUTE, START: -1 = all */
} scenario_step_t;

typedef enum scenario_verb {
    VERB_DOWN,
    VERB_UP,
    VERB_DROP,
    VERB_DROP_IN,
    VERB_DROP_OUT,
    VERB_PASS,
    VERB_PORT_DOWN,
    VERB_PORT_UP,
    VERB_BREAK,
    VERB_RATE,
    VERB_LOSS,
    VERB_CUT,
    VERB_JOIN,
    VERB_STOP,
    VERB_CONT,
    VERB_KILL,
    VERB_POST_CUT,
    VERB_POST_JOIN,
    VERB_HEAL,
    VERB_REFUSE,
    VERB_ACCEPT,
    VERB_NO_LISTENER,
    VERB_SLOW,
    VERB_DESCRIPTORS,
    VERB_MEMORY,
    VERB_COUNT
} scenario_verb_t;

/** One fault. */
typedef struct scenario_event {
    uint64_t at_ns;
    scenario_verb_t verb;
    uint32_t host, host_b, rail, rank;
    /* RATE: bytes/s; LOSS: ppm; REFUSE: probes, too; SLOW: ns; DESCRIPTORS: most; MEMORY: ppm */
    uint64_t value;
    uint64_t least; /* MEMORY: bytes */
} scenario_event_t;

/** What every live rank's health map must say of a rail at a time. */
typedef struct scenario_expect {
    uint32_t host, rail, least, most; /* capacity */
    uint64_t at_ns;
} scenario_expect_t;

typedef struct scenario_param {
    char name[40];
    char value[40];
} scenario_param_t;

typedef struct scenario {
    r2_sim_config_t sim;
    uint32_t ppn;
    uint64_t jitter_ns;
    uint64_t first_seq;
    uint32_t rdma_hosts;
    uint64_t gpu_bytes_per_s; /* 0: buffers are the CPU's */
    uint32_t near;            /* 1 + the rail that is nearest to the GPU; 0: all are as near */
    uint32_t hello_loss_ppm;
    uint32_t post_loss_ppm, post_twice_ppm, probe_loss_ppm;
    uint32_t backlog;                      /* of accept queues; 0: no limit */
    uint64_t post_delay_ns;                /* longest; 0: as the driver has it */
    uint32_t rails_of[SCENARIO_RANKS_MAX]; /* per host; 0: all */
    uint64_t limit_ns;                     /* 0: chosen from the faults */
    bool any_outcome, healthy;
    uint32_t verbose;
    scenario_param_t params[SCENARIO_PARAMS_MAX];
    uint32_t param_count;
    r2_fault_rule_t rules[R2_FAULT_RULES_MAX];
    uint32_t rule_count;
    scenario_comm_t comms[SCENARIO_COMMS_MAX];
    uint32_t comm_count;
    scenario_step_t steps[SCENARIO_STEPS_MAX];
    uint32_t step_count;
    scenario_event_t events[SCENARIO_EVENTS_MAX];
    uint32_t event_count;
    scenario_expect_t expects[SCENARIO_EXPECTS_MAX];
    uint32_t expect_count;
} scenario_t;

/**
 * Reads a scenario.
 * @param text_p on error: which statement is wrong.
 */
bool scenario_parse(const char *source, scenario_t *scenario_p, char *text_p, size_t text_bytes);

/** What a process knows of its GPU, which is the one at bus 0, as `near` has it. */
void scenario_near(const scenario_t *scenario, size_t rails, r2_near_gpus_t *near_p);

/** What came of a run. */
typedef struct scenario_result {
    bool ok;
    char text[512];     /* why not */
    uint64_t time_ns;   /* virtual time of the whole run */
    uint64_t healed_ns; /* when a lane was last back */
    uint64_t digest;    /* of all results of all ranks */
    /* packets under way by a rail when it failed, of messages of which a part was there yet */
    uint32_t filling_hit;
    uint64_t rail_bytes[R2_RAILS_MAX]; /* payload that all ranks have sent by it */
    uint32_t errors;                   /* collectives that ended with an error */
    r2_status_t error;                 /* of the first of them */
    uint64_t first_error_ns;           /* when that was */
    char said[R2_ERROR_TEXT_BYTES];    /* to its user */
    r2_counters_t counters;            /* sums over the ranks; maxima are maxima */
    r2_cost_params_t cost;             /* that all ranks agree on at the end */
    uint32_t cost_version;
    r2_cost_params_t seen; /* as rank 0 sees it, whether all need it or not */
    r2_sim_stats_t sim;
    struct {
        uint64_t count, ns; /* of all ranks, from the call until its rank knows its end */
    } calls[R2_COLL_KIND_COUNT];
} scenario_result_t;

/** Runs a scenario. @param dump true: state to stderr when it fails. */
void scenario_run(const scenario_t *scenario, bool dump, scenario_result_t *result_p);

/** Parses and runs. Prints source and cause to stderr if it fails. @return result_p->ok. */
bool scenario_check(const char *source, scenario_result_t *result_p);

#endif
