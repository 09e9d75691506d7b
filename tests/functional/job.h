/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One call of one collective: buffers with known contents, the three ways to call it, exact checks.
 *
 * Everything is counted in int elements. Element i that rank r contributes on side s of an
 * intercommunicator (s = 0 otherwise) is job_value(s, r, i).
 */
#ifndef R2_TESTS_FUNCTIONAL_JOB_H
#define R2_TESTS_FUNCTIONAL_JOB_H

#include <mpi.h>
#include <mpi-ext.h>
#include <stdbool.h>
#include <stddef.h>

#define JOB_MAX_RANKS 64
#define JOB_UNTOUCHED (-1)

/* MPI-4's persistent collectives are an extension of Open MPI 4. */
#if OMPI_MAJOR_VERSION >= 5
#    define JOB_INIT(Name) MPI_##Name##_init
#else
#    define JOB_INIT(Name) MPIX_##Name##_init
#endif

typedef enum job_mode { JOB_BLOCKING, JOB_NONBLOCKING, JOB_PERSISTENT, JOB_MODE_COUNT } job_mode_t;

/** A communicator with what the checks need to know of it. */
typedef struct job_comm {
    const char *name;
    MPI_Comm comm;
    int rank;
    int size;  /* of the local group */
    int peers; /* ranks data comes from: all, or the remote group */
    bool inter;
    int side; /* 0 or 1 on an intercommunicator, else 0 */
} job_comm_t;

/** One call. */
typedef struct job {
    const job_comm_t *on; /* borrowed: outlives the job */
    job_mode_t mode;
    bool in_place;
    int count;
    int root;
    int *send; /* owned */
    int *recv; /* owned */
    size_t send_count;
    size_t recv_count;
    MPI_Request request;
    const char *name;
    unsigned failures;
} job_t;

/** A collective: runs one call and checks it. */
typedef struct job_case {
    const char *name;
    void (*run)(job_t *job);
    bool on_inter;  /* defined on intercommunicators */
    bool in_place;  /* has an MPI_IN_PLACE form */
    bool has_count; /* false: runs once, not for each count */
} job_case_t;

extern const job_case_t job_cases_unrooted[];
extern const job_case_t job_cases_rooted[];
extern const job_case_t job_cases_neighbor[];

/** Calls a collective the job's way and waits for it; a persistent one twice. */
#define JOB_CALL(job, Name, name, ...)                                   \
    do {                                                                 \
        switch ((job)->mode) {                                           \
        case JOB_BLOCKING:                                               \
            MPI_##Name(__VA_ARGS__);                                     \
            break;                                                       \
        case JOB_NONBLOCKING:                                            \
            MPI_I##name(__VA_ARGS__, &(job)->request);                   \
            break;                                                       \
        case JOB_PERSISTENT:                                             \
            JOB_INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &(job)->request); \
            break;                                                       \
        case JOB_MODE_COUNT:                                             \
            break;                                                       \
        }                                                                \
        job_complete(job);                                               \
    } while (0)

/** Allocates the buffers; send holds this rank's contribution, recv is untouched. */
void job_alloc(job_t *job, size_t send_count, size_t recv_count);

/** Checks that nothing was written behind recv or into send, frees the buffers. */
void job_free(job_t *job);

/** Waits for the call that JOB_CALL has started. */
void job_complete(job_t *job);

/** Element `index` of the contribution of `rank`. */
int job_value(int side, int rank, size_t index);

/** The side that data comes from. */
int job_peer_side(const job_t *job);

/** Sum of element `index` over ranks [0, count) of the side that data comes from. */
int job_sum(const job_t *job, int count, size_t index);

/** Checks an element of recv. */
void job_expect(job_t *job, size_t index, int expected);

/** Checks a block of recv against the contribution of `rank` from `first` on. */
void job_expect_block(job_t *job, size_t at, int rank, size_t first, size_t count);

/** Checks that a block of recv was not written. */
void job_expect_untouched(job_t *job, size_t at, size_t count);

/** Counts a failure that is no wrong element. */
void job_fail(job_t *job, const char *what);

/* Rooted collectives: on an intercommunicator the root is on side 0, data comes from or goes to
 * 1. */
bool job_is_root(const job_t *job);
bool job_is_leaf(const job_t *job); /* gives to or takes from the root */
int job_root(const job_t *job);     /* the argument: a rank, MPI_ROOT or MPI_PROC_NULL */

/** Uneven counts of the v forms, with one element of gap behind each block. @return total with
 * gaps. */
int job_uneven(const job_t *job, int ranks, int *counts, int *displs);

#endif
