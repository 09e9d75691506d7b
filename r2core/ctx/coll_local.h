/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Blocking collectives of communicators on one host, without engine and links: by a team
 * (local/team.h). For ctx/ only.
 */
#ifndef R2_CTX_COLL_LOCAL_H
#define R2_CTX_COLL_LOCAL_H

#include "ctx/comm.h"
#include "local/process.h"
#include "local/team.h"

/** A communicator that leaves calls to others has so many members at most: with more of them short
 * calls, in which one reads what all say, were not measured with a core for each. */
#define R2_LOCAL_FEW 16

/** How far the members of a communicator are with their segment. The same on all of them. */
typedef enum r2_local_stage {
    R2_LOCAL_UNMET, /* nobody has tried */
    R2_LOCAL_SHORT, /* for short calls */
    R2_LOCAL_GROWN, /* for all calls */
    R2_LOCAL_TIGHT, /* for short calls, as there is no memory for long ones */
    R2_LOCAL_NEVER  /* one of them could not: the engine makes all calls */
} r2_local_stage_t;

/** What a communicator has for this. One thread at a time, but for the marked ones. */
struct r2_coll_local {
    r2_comm_t *comm; /* borrowed */
    r2_team_t team;
    r2_local_stage_t stage;
    r2_comm_t *sequence;     /* borrowed: the members agree by its calls; NULL: not yet */
    r2_process_t self;       /* others try whether they can read it */
    r2_process_t *processes; /* owned: of the members; NULL: not yet */
    uint32_t forced;         /* bits of kinds whose algorithm a parameter names: the engine's */
    uint32_t early;          /* calls that were left to others before the members met */
    bool has_cores;          /* each process of the job on this host can have one, so all found */
    uint64_t spin_ns;        /* it looks and gives way for so long before it sleeps */
    r2_member_t
        *sleeps_on;    /* borrowed: on whom it slept in this call, woken by the rails; or NULL */
    uint64_t since_ns; /* of the wait under way */
    uint64_t looked_ns, asked_ns; /* when it last looked for other calls, and for ends */
};

/* coll_local.c */
/**
 * For a new communicator that is open to it: all members come to the same answer.
 * @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_coll_local_create(r2_comm_t *comm);

/** True if there is a segment. */
static inline bool r2_coll_local_has_team(const struct r2_coll_local *local)
{
    return R2_LOCAL_UNMET != local->stage && R2_LOCAL_NEVER != local->stage;
}

/* coll_local_end.c */
/** The communicator is freed: members that wait hear of it. Also for one that has none. Engine
 * lock. */
void r2_coll_local_destroy(r2_comm_t *comm);
/** A call of the communicator has begun by another way. Also for one that has none. Engine lock. */
void r2_coll_local_elsewhere(r2_comm_t *comm);

/* coll_local_meet.c */
/**
 * The members make their segment, or grow it. Every one of them calls, at the same place.
 * @return R2_OK: the stage says what they have; or with what the communicator failed.
 */
r2_status_t r2_coll_local_meet(struct r2_coll_local *local);
r2_status_t r2_coll_local_grow(struct r2_coll_local *local);

#endif
