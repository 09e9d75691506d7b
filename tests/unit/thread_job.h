/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ranks as threads of one process: application threads and the real service thread of each rank, in
 * real time.
 */
#ifndef R2_TEST_THREAD_JOB_H
#define R2_TEST_THREAD_JOB_H

#include "ctx/state.h"
#include "doubles/loop.h"
#include "doubles/nic_watch_sim.h"
#include "thread_net.h"

#define RANKS 4
#define RAILS 2

/** What one job does. */
typedef struct thread_plan {
    unsigned rounds;
    unsigned away_us;   /* longest time that an application thread computes */
    bool weather;       /* NICs lose carrier */
    bool same_host;     /* all ranks share memory */
    bool local;         /* ranks of a host have mailboxes */
    bool second_driver; /* a third thread drives as the service thread may */
} thread_plan_t;

typedef struct thread_rank {
    struct thread_job *job; /* borrowed */
    uint32_t idx;
    r2_ctx_t *ctx; /* owned */
    r2_hello_t hello;
    r2_nic_watch_t watch; /* owned */
    r2_params_t params;
    r2_log_t log;
    void *own; /* the test's */
} thread_rank_t;

/** What the ranks run; up and down are called by one thread, and may be NULL. */
typedef struct thread_use {
    uint32_t threads; /* application threads of a rank */
    void (*up)(thread_rank_t *rank);
    void (*app)(thread_rank_t *rank, uint32_t thread);
    void (*down)(thread_rank_t *rank);
} thread_use_t;

/** One job. Everything but `stop` and `wrong` is set before the threads start. */
typedef struct thread_job {
    thread_plan_t plan;
    const thread_use_t *use; /* borrowed */
    thread_net_t *net;
    r2_oob_loop_t *oob;
    thread_rank_t ranks[RANKS];
    _Atomic int stop;
    _Atomic unsigned wrong; /* what was wrong, counted */
} thread_job_t;

void thread_nap(unsigned us);
/** Counts something wrong, and says the first one. */
void thread_wrong(thread_rank_t *rank, uint32_t thread, const char *what, size_t at);
/** Runs a job; fails the test if something was wrong, or the service threads had no part in it. */
void thread_job_run(const thread_use_t *use, thread_plan_t plan);
/**
 * Runs five jobs as tests: over rails, on one host, the same with mailboxes, with NICs that go
 * down, with another driver.
 * @param rounds  of each application thread.
 * @return        exit status.
 */
int thread_job_main(const thread_use_t *use, unsigned rounds);

#endif
