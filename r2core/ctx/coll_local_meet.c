/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How the members of a communicator come to a segment, before their first call that it is for: by
 * collectives of the engine in a sequence of their own. Either all of them have it, or none has.
 *
 *   1  the first member: where its segment is. All: which process they are
 *   2  all: whether they have opened it, and see the other processes
 *
 * and before the first long call:
 *
 *   1  all: whether they have memory for their part of it
 *
 * Each time the members take a place among the communicator's calls, and compare it: who makes
 * another call meanwhile is found out.
 */
#include "r2_config.h"

#include "ctx/coll_local.h"

#include <stdlib.h>
#include <string.h>

#include "ctx/state.h"

/* A process has memory of so many communicators; those that come later do without. */
#define R2_LOCAL_SEGMENTS_MOST 256u

/** What members tell each other. Zeros where one has nothing to say. */
typedef struct r2_meeting {
    uint64_t place; /* of this meeting among the calls of the communicator, and the call's digest */
    uint32_t odd;   /* not the same on all of them */
    uint32_t denied; /* one of them cannot */
    uint32_t deaf;   /* one of them cannot read the memory of all others */
    uint32_t busy;   /* one of them finds fewer cores than processes */
    uint32_t forced; /* kinds whose algorithm one of them names */
    uint8_t address[R2_SHARED_ADDRESS_BYTES];
    struct {
        r2_process_t process;
        uint64_t word; /* where it has its start once more, to be read there */
    } members[];
} r2_meeting_t;

static void r2_meeting_reduce(void *arg, const void *in, void *inout, size_t count)
{
    const uint64_t bytes = *(const uint64_t *) arg;
    const r2_meeting_t *from = in;
    r2_meeting_t *to = inout;
    const unsigned char *rest = (const unsigned char *) in;

    (void) count;
    to->odd |= from->odd | (from->place != to->place ? 1u : 0u);
    to->denied |= from->denied;
    to->deaf |= from->deaf;
    to->busy |= from->busy;
    to->forced |= from->forced;
    for (uint64_t i = offsetof(r2_meeting_t, address); i < bytes; ++i) {
        ((unsigned char *) inout)[i] |= rest[i];
    }
}

static r2_status_t r2_coll_local_sequence(struct r2_coll_local *local)
{
    return NULL != local->sequence
               ? R2_OK
               : r2_sequence_open(local->comm, R2_COLL_ALLREDUCE, &local->sequence);
}

/* What all have said together. @param meeting in and out. */
static r2_status_t r2_coll_local_exchange(struct r2_coll_local *local, r2_meeting_t *meeting,
                                          uint64_t bytes)
{
    const r2_coll_args_t args = {
        .kind = R2_COLL_ALLREDUCE,
        .out = meeting,
        .in_place = true,
        .count = 1,
        .element_bytes = bytes,
        .reduce = r2_meeting_reduce,
        .reduce_arg = &bytes,
        .any_thread = true,
        .commutative = true,
        .exact = true,
        .blocking = true,
    };
    r2_coll_t *coll;
    r2_status_t status;

    meeting->place = local->comm->next_seq;
    status = r2_coll_post(local->sequence, &args, NULL, NULL, &coll);
    if (R2_OK == status) {
        status = r2_coll_wait(coll);
        r2_coll_release(coll);
    }
    if (R2_OK == status && 0 != meeting->odd) {
        r2_coll_refuse(local->comm, R2_ERR_PLAN_MISMATCH);
        status = R2_ERR_PLAN_MISMATCH;
    }
    return status;
}

static uint64_t r2_meeting_bytes(const struct r2_coll_local *local)
{
    return sizeof(r2_meeting_t) +
           (uint64_t) local->comm->size * sizeof(((r2_meeting_t *) NULL)->members[0]);
}

/* @return true: it is one segment less that this process may have. */
static bool r2_coll_local_count(struct r2_coll_local *local)
{
    r2_comms_t *comms = local->comm->comms;
    bool has;

    r2_core_enter(comms->core);
    has = comms->segments < R2_LOCAL_SEGMENTS_MOST;
    ++comms->segments;
    r2_core_leave(comms->core);
    return has;
}

static void r2_coll_local_discount(struct r2_coll_local *local)
{
    r2_comms_t *comms = local->comm->comms;

    r2_core_enter(comms->core);
    --comms->segments;
    r2_core_leave(comms->core);
}

static bool r2_coll_local_sees_all(const struct r2_coll_local *local)
{
    bool all = true;

    for (int32_t i = 0; i < local->comm->size && all; ++i) {
        all = r2_process_is_seen(&local->processes[i]);
    }
    return all;
}

/* The kernel may not let them (Yama), though they find the segment. */
static bool r2_coll_local_reads_all(const struct r2_coll_local *local, const r2_meeting_t *meeting)
{
    bool all = true;

    for (int32_t i = 0; i < local->comm->size && all; ++i) {
        uint64_t start;

        all = r2_process_fetch(&local->processes[i], meeting->members[i].word, &start,
                               sizeof(start)) &&
              start == local->processes[i].start;
    }
    return all;
}

/* The first one makes it, the others open it. @param meeting with what was said first. */
static bool r2_coll_local_open(struct r2_coll_local *local, const r2_meeting_t *meeting)
{
    const r2_comm_t *comm = local->comm;

    local->processes = calloc((size_t) comm->size, sizeof(*local->processes));
    if (NULL == local->processes || 0 != meeting->denied) {
        return false;
    }
    for (int32_t i = 0; i < comm->size; ++i) {
        local->processes[i] = meeting->members[i].process;
    }
    if (0 != comm->rank &&
        R2_OK != r2_segment_open(&local->team.segment, comm->size, comm->rank, meeting->address)) {
        return false;
    }
    r2_team_elsewhere(&local->team, comm->next_seq); /* who waits in a call compares it at once */
    return r2_coll_local_sees_all(local);
}

static void r2_coll_local_give_up(struct r2_coll_local *local)
{
    r2_debug(&local->comm->comms->core->log,
             "communicator %016llx: its %d processes do not share memory, and talk by messages",
             (unsigned long long) local->comm->key, local->comm->size);
    r2_coll_local_discount(local);
    r2_segment_close(&local->team.segment);
    free(local->processes);
    local->processes = NULL;
    local->stage = R2_LOCAL_NEVER;
}

static r2_status_t r2_coll_local_talk(struct r2_coll_local *local, r2_meeting_t *meeting)
{
    const r2_comm_t *comm = local->comm;
    r2_meeting_t second = {.denied = 0};
    r2_status_t status;

    meeting->denied = r2_coll_local_count(local) ? 0 : 1;
    local->self = r2_process_self();
    meeting->members[comm->rank].process = local->self;
    meeting->members[comm->rank].word = (uintptr_t) &local->self.start;
    if (0 == comm->rank && R2_OK != r2_segment_create(&local->team.segment, comm->size, comm->rank,
                                                      meeting->address)) {
        meeting->denied = 1;
    }
    status = r2_coll_local_exchange(local, meeting, r2_meeting_bytes(local));
    if (R2_OK == status) {
        second.denied = r2_coll_local_open(local, meeting) ? 0 : 1;
        second.deaf = 0 == second.denied && r2_coll_local_reads_all(local, meeting) ? 0 : 1;
        second.busy = local->has_cores ? 0 : 1;
        second.forced = local->forced;
        status = r2_coll_local_exchange(local, &second, sizeof(second));
    }
    if (R2_OK != status || 0 != second.denied) {
        r2_coll_local_give_up(local);
        return status;
    }
    r2_segment_settle(&local->team.segment);
    local->team.processes = 0 == second.deaf ? local->processes : NULL;
    local->has_cores = 0 == second.busy;
    local->forced = second.forced;
    local->stage = local->team.segment.grown ? R2_LOCAL_GROWN : R2_LOCAL_SHORT;
    return R2_OK;
}

static void r2_coll_local_take_place(struct r2_coll_local *local)
{
    __atomic_store_n(&local->comm->next_seq, local->comm->next_seq + 1, __ATOMIC_RELAXED);
}

r2_status_t r2_coll_local_meet(struct r2_coll_local *local)
{
    r2_meeting_t *meeting;
    r2_status_t status = r2_coll_local_sequence(local);

    if (R2_OK != status) {
        r2_coll_refuse(local->comm, status);
        return status;
    }
    r2_coll_local_take_place(local);
    meeting = calloc(1, r2_meeting_bytes(local));
    if (NULL == meeting) {
        r2_coll_refuse(local->comm, R2_ERR_NO_MEMORY);
        return R2_ERR_NO_MEMORY;
    }
    status = r2_coll_local_talk(local, meeting);
    free(meeting);
    return status;
}

r2_status_t r2_coll_local_grow(struct r2_coll_local *local)
{
    r2_meeting_t meeting = {.denied = 0};
    r2_status_t status;

    r2_coll_local_take_place(local);
    r2_team_elsewhere(&local->team, local->comm->next_seq);
    meeting.denied = R2_OK == r2_segment_grow(&local->team.segment) ? 0 : 1;
    status = r2_coll_local_exchange(local, &meeting, sizeof(meeting));
    if (R2_OK == status) {
        local->stage = 0 == meeting.denied ? R2_LOCAL_GROWN : R2_LOCAL_TIGHT;
    }
    return status;
}
