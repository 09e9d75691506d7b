/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Teams: collectives of the members of a segment, by loads and stores. No engine, no lock; system
 * calls only by who waits for long.
 *
 * A short call is one step: whoever has something puts it into its short slot for this call, with
 * the number of the call, and whoever needs it waits for that number. Long calls do the same with
 * pieces of 16 to 128 KiB; what is not to be reduced is read from where it is, if the kernel lets
 * members. Reductions fold in the order of ranks, x[0] OP (x[1] OP (.. x[n-1])),
 * whoever does it, so that all members have the same bits from run to run (docs/local.md).
 *
 * All members make the same calls in the same order. Each writes down a digest of every call and of
 * all before it, so that those that do not are found out.
 */
#ifndef R2_LOCAL_TEAM_H
#define R2_LOCAL_TEAM_H

#include "local/process.h"
#include "local/segment.h"
#include "r2/coll.h"

/** What somebody who waits does between two looks. */
typedef struct r2_team_wait {
    /**
     * @param member for whom the caller waits. @param turn how often it was called in this wait
     * before, from 0.
     * @return R2_OK: look again; R2_IN_PROGRESS: sleep, for 1 ms at most; or an error, with which
     * the call ends.
     */
    r2_status_t (*pause)(void *arg, int32_t member, uint32_t turn);
    void *arg;      /* borrowed */
    uint32_t looks; /* before the first pause, and between two */
} r2_team_wait_t;

/** One process's side. One thread at a time, as for the communicator. */
typedef struct r2_team {
    r2_segment_t segment; /* owned */
    r2_team_wait_t wait;
    const r2_process_t *processes; /* borrowed: members that read each other's memory; or NULL */
    uint64_t direct_bytes;         /* blocks as long as this are offered to be read so */
    bool folds_direct;  /* reductions read so, too; the same on all members: each has a core */
    uint64_t exchanges; /* of long calls, so far */
    uint32_t refusals;  /* exchanges in which a member could not read what this one offered */
    bool offers;        /* in the one under way members read this one's memory */
    uint64_t calls;     /* the number of the newest call: the first one is 1 */
    uint64_t done;      /* all members have finished calls up to this one, as far as is known */
    uint32_t digest;    /* of the newest call and all before it */
    uint32_t place;  /* of the newest call among those of the communicator: the next one's number */
    uint64_t pieces; /* of long calls, so far */
    uint32_t places[R2_SEGMENT_DIGESTS]; /* of the newest calls, by call */
    int32_t odd; /* the member with another call, after R2_ERR_PLAN_MISMATCH */
} r2_team_t;

/** How a call is made. */
typedef enum r2_team_way {
    R2_TEAM_NONE, /* not by a segment */
    R2_TEAM_SHORT,
    R2_TEAM_LONG
} r2_team_way_t;

/** The same on all members: it depends on the segment's size and what their calls have in
 * common. */
r2_team_way_t r2_team_way(const r2_segment_t *segment, const r2_coll_args_t *args);

/**
 * Where members share cores, others' messages are faster at this call (docs/measurements.md): what
 * goes by slots needs a turn of the processor for each piece.
 */
bool r2_team_is_slower(const r2_coll_args_t *args);

/** A number that members' calls have in common. */
uint32_t r2_team_digest(const r2_coll_args_t *args);

/**
 * Makes a call.
 * @param way r2_team_way(); if long, all members have grown the segment.
 * @param place of the call behind this one, among all calls of the communicator.
 * @return R2_OK; R2_ERR_PLAN_MISMATCH: a member (team->odd) makes another call; or what wait.pause
 * said. After an error the team is of no use any more.
 */
r2_status_t r2_team_run(r2_team_t *team, const r2_coll_args_t *args, r2_team_way_t way,
                        uint32_t place);

/** Wakes who sleeps until a member writes: it has, or they have something else to do. */
void r2_team_ring(r2_member_t *member);

/** Says that this member makes no call any more. */
void r2_team_part(r2_team_t *team);

/**
 * Says that the communicator has begun a call by another way, so that members that wait in another
 * one hear of it.
 * @param place of the call behind it.
 */
void r2_team_elsewhere(r2_team_t *team, uint32_t place);

/** @return R2_OK; R2_ERR_PLAN_MISMATCH: a member (team->odd) makes, or made, another call than the
 * newest one here; R2_ERR_NOT_FOUND: it makes none any more. */
r2_status_t r2_team_look(r2_team_t *team);

#endif
