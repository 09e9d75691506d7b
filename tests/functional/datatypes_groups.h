/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Groups of calls that the test program runs.
 */
#ifndef R2_TESTS_FUNCTIONAL_DATATYPES_GROUPS_H
#define R2_TESTS_FUNCTIONAL_DATATYPES_GROUPS_H

#include "datatypes.h"

#define DT_MAX_COMMS 8

/** What all groups share. */
typedef struct dt_env {
    bool thorough; /* the long form */
    uint32_t seed;
    int comm_count;
    dt_comm_t comms[DT_MAX_COMMS];
} dt_env_t;

/* datatypes.c */
/** Learns the members of a communicator. */
void dt_comm_init(dt_comm_t *on, MPI_Comm comm, const char *name);

/* datatypes_groups.c: all return the failures of this rank. */
unsigned dt_group_predefined(const dt_env_t *env);
unsigned dt_group_sizes(const dt_env_t *env);
unsigned dt_group_movement(const dt_env_t *env);
unsigned dt_group_user(const dt_env_t *env);
unsigned dt_group_empty(const dt_env_t *env);
unsigned dt_group_large(const dt_env_t *env);
unsigned dt_group_memory(const dt_env_t *env);
unsigned dt_group_late(const dt_env_t *env);

/* datatypes_flight.c */
unsigned dt_group_inflight(const dt_env_t *env);
unsigned dt_group_comms(const dt_env_t *env);
unsigned dt_group_freed(const dt_env_t *env);
unsigned dt_group_threads(const dt_env_t *env);

#endif
