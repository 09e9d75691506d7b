/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The job of the fault tests: its arguments, its state, its collectives.
 */
#ifndef FAULT_DRIVER_H
#define FAULT_DRIVER_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARIANTS  8 /* iterations whose floats differ; expected digests are kept for each */
#define SLOTS_MAX 8
#define GUARD     256

typedef enum kind {
    KIND_FLOAT,   /* allreduce of floats whose sum depends on the order */
    KIND_INT,     /* allreduce of integers */
    KIND_GATHER,
    KIND_GATHERV,
    KIND_SCATTER, /* reduce_scatter of integers, uneven */
    KIND_BCAST,
    KIND_BARRIER,
    KIND_MIXED,   /* iallreduce of floats with an allreduce of integers while it runs */
    KIND_COMMS,   /* dup, split, calls on them, free */
    KIND_COUNT
} kind_t;

/** A result that was right once must stay as it is: nothing late may be written into it. */
typedef struct slot {
    char *data; /* owned; guards on both sides */
    uint64_t digest;
    size_t bytes; /* 0: not used yet */
} slot_t;

typedef struct job {
    /* arguments */
    size_t bytes;       /* of each vector */
    long iterations;    /* end after so many, or -1 */
    double limit_s;     /* end for good: nothing takes this long */
    const char *gates;  /* borrowed: folder where files open gates and end the run; or NULL */
    const char *learn;  /* borrowed: file to write the first digests to, or NULL */
    const char *expect; /* borrowed: file of digests, or NULL */
    bool mix[KIND_COUNT];
    bool errors_return;
    int busy_rank; /* computes without MPI in iteration 1 */
    double busy_s;
    /* state */
    int rank, size;
    char *in; /* owned */
    slot_t slots[SLOTS_MAX];
    int slot_count, next_slot;
    uint64_t digests[2][VARIANTS]; /* of KIND_FLOAT and KIND_MIXED */
    uint64_t seen[2][VARIANTS];
    unsigned long wrong;
    long iteration;
    kind_t kind; /* running now */
} job_t;

/** One line to the test, in one piece. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** CLOCK_MONOTONIC in seconds: the same on all hosts of a lab. */
double now_s(void);

/** Ends the call if an MPI function failed: tells the test what, where and when. */
void must(job_t *job, int rc, const char *what);

/** Something was not as it has to be. */
void wrong(job_t *job, unsigned long count, const char *what);

const char *kind_name(kind_t kind);

void job_buffers(job_t *job);
void job_free(job_t *job);

/** Runs one collective and checks all that it did. */
void job_collective(job_t *job, kind_t kind);

#endif
