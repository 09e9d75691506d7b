/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A simulated job: contexts of many ranks in virtual time, driven as their processes would be.
 */
#ifndef TESTS_SIM_HARNESS_H
#define TESTS_SIM_HARNESS_H

#include "ctx/parts.h"
#include "ctx/state.h"
#include "doubles/gpu_sim.h"
#include "doubles/hello_sim.h"
#include "doubles/loop.h"
#include "doubles/nic_watch_sim.h"
#include "doubles/post_sim.h"
#include "doubles/probe_sim.h"
#include "payload.h"
#include "r2/prng.h"
#include "scenario.h"
#include "sim_memory.h"

/*
 * A rank runs when something waits for it or a timer of its context is due. Inside a call it is
 * driven as by its application; while it computes, and after its program, as by the service thread,
 * which takes over only when the application was away for takeover_us; while it is stopped, not at
 * all.
 */

struct job;

/** One collective of one rank that is under way. */
typedef struct rank_op {
    struct rank_op *prev, *next;
    struct job_rank *rank; /* borrowed */
    struct job_call *call; /* borrowed */
    uint32_t comm;
    int32_t comm_rank;
    r2_coll_t *coll;   /* owned; NULL: it was refused */
    uint8_t *in, *out; /* owned */
    uint64_t in_hash;
    uint32_t done_calls;
    uint32_t parts_left; /* of a series, not begun */
    bool wants_done;     /* a done function was given */
    bool persistent;     /* a start of a request */
    r2_status_t done_status;
    uint64_t posted_ns;
} rank_op_t;

/** One rank. */
typedef struct job_rank {
    struct job *job; /* borrowed */
    uint32_t idx;
    r2_ctx_t *ctx;        /* owned */
    r2_tp_fault_t *fault; /* owned; NULL: no rules */
    r2_nic_watch_t watch; /* owned */
    r2_gpu_sim_t *gpu;    /* owned; NULL: there is none */
    uint64_t token;       /* of the newest event */
    uint64_t due_ns;      /* of the newest event; R2_NEVER_NS: none */
    uint64_t app_ns;      /* when the application last drove */
    uint64_t compute_until_ns;
    uint64_t slow_ns, slow_next_ns; /* it runs once in so long, not before; 0: whenever it likes */
    uint32_t step, iteration;       /* of the program */
    bool stopped, dead, finished, waiting;
    uint32_t services;  /* how often the service thread has driven it */
    r2_wait_t wait;     /* of a blocking call */
    uint32_t idle_runs; /* runs in a row that did nothing and want to run again at once */
    rank_op_t *ops;     /* owned list: under way */
    r2_comm_t *comms[SCENARIO_COMMS_MAX];    /* owned */
    r2_comm_t *requests[SCENARIO_STEPS_MAX]; /* owned: by the step that made them; NULL: none */
    uint32_t starts[SCENARIO_STEPS_MAX];     /* of each so far */
    uint32_t errors;
    uint64_t map_changes;  /* when its map was last looked at */
    uint64_t lanes_healed; /* when that was last looked at */
} job_rank_t;

/** One call of the program: shared by its ranks until all have checked their results. */
typedef struct job_call {
    struct job_call *prev, *next;
    uint32_t step, iteration;
    payload_call_t payload;
    int32_t users; /* ranks that have not finished it */
    uint64_t digest;
} job_call_t;

typedef struct job {
    const scenario_t *scenario;                     /* borrowed */
    scenario_result_t *result;                      /* borrowed */
    r2_sim_t *sim;                                  /* owned */
    r2_hello_sim_t *hub;                            /* owned */
    r2_oob_loop_t *oob;                             /* owned */
    r2_post_sim_t *post;                            /* owned */
    r2_probe_sim_t *probe;                          /* owned */
    bool faulted[SCENARIO_RANKS_MAX][R2_RAILS_MAX]; /* [host][rail]: something was done to it */
    bool closed[SCENARIO_RANKS_MAX]
               [R2_RAILS_MAX]; /* [host][rail]: connect requests to it fail now */
    r2_params_t params;
    job_rank_t *ranks; /* owned */
    uint32_t rank_count;
    job_call_t *calls; /* owned list */
    r2_prng_t prng;
    uint64_t runs; /* drives of all ranks */
    bool failed;
    bool ending; /* the program is over: everybody drives until the links are empty */
} job_t;

/* harness.c */
void job_fail(job_t *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The rank is to run at this time, or earlier if that is already known. */
void job_schedule(job_rank_t *rank, uint64_t time_ns);
/** The rank's own code runs from now on, with its memory; until sim_memory_leave(). */
void rank_enter(job_rank_t *rank);

/** Wakes the service thread of a rank that runs, as netlink's descriptor does. */
void rank_wake_service(job_rank_t *rank);

uint32_t job_rails_of(const job_t *job, uint32_t host);

/* harness_faults.c */
/** Plans the faults of the scenario; those of time 0 happen now, before the ranks start. */
void job_plan_faults(job_t *job);

/* harness_rank.c */
/** Takes finished operations and goes on in the program. @return false: nothing happened. */
bool rank_advance(job_rank_t *rank);
/** The blocking call that is under way; NULL: there is none. */
const r2_coll_t *rank_waits_for(const job_rank_t *rank);
/** Hash of the receive buffers of everything under way; not 0. */
uint64_t rank_memory(const job_rank_t *rank);
/** Gives up everything of a rank, when the job is over. */
void rank_release(job_rank_t *rank);

/** Posts a call of the program: one of a request where its step made one. */
void rank_post(job_rank_t *rank, uint32_t step, uint32_t iteration);
void rank_next_step(job_rank_t *rank);

/* harness_requests.c */
/** The step makes a persistent request. */
void rank_make_request(job_rank_t *rank);
/** The step starts requests. @return true if it is over, or one more was started. */
bool rank_start_requests(job_rank_t *rank);
/** Closes those of a communicator; -1: all. None is under way. */
void rank_close_requests(job_rank_t *rank, int comm);

/* harness_end.c */
/** Drives until all are through, or for as long as what is done to the job allows. */
void job_run_program(job_t *job);
/** Everybody drives until nothing is under way: what is left then is lost for ever. */
void job_run_out(job_t *job);
/** The job fails if the simulator found something wrong. */
void job_take_sim_failure(job_t *job);

/* harness_health.c */
/** Notes what a fault may explain. */
void job_note_fault(job_t *job, const scenario_event_t *event);
/** Fails the job if this rank's map blames a part that nothing was ever done to. */
void rank_check_map(job_rank_t *rank);
/** Notes when a lane of this rank came back. */
void rank_note_heals(job_rank_t *rank);
/** Plans the looks at the maps that the scenario asks for. */
void job_plan_expectations(job_t *job);
/** Fails the job if ranks make plans from different things; tells what predictions are made
 * from. */
void job_check_plan_env(job_t *job);
/** @return false: somebody's map does not know yet that all is well again; text says what. */
bool job_maps_are_well(const job_t *job, char *text_p, size_t text_bytes);

/** Fails a job in which nothing was broken if something was given up. */
void job_check_healthy(job_t *job);

/* harness_dump.c */
void job_dump(const job_t *job);
/** Checks that nothing is left over in any context. @return false: text says what is. */
bool job_is_clean(const job_t *job, char *text_p, size_t text_bytes);
/** Checks the bounds of memory of one rank. */
void rank_check_bounds(const job_rank_t *rank);
/** Adds up counters. */
void job_summarise(job_t *job);

#endif
