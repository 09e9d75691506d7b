/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Barrier in two levels: within hosts, and between one rank of each.
 *
 * The ranks of a host tell its first one, up a tree; the first ones of all hosts disseminate
 * (barrier.c), and tell theirs, down the same tree. Two hosts, ranks 0 1 2 and 3 4 5:
 *
 *            up          between     down
 *   rank 0   1, 2 ->     <-> 3       -> 1, 2
 *   rank 1   -> 0                    0 ->
 *   rank 2   -> 0                    0 ->
 *   rank 3   4, 5 ->     <-> 0       -> 4, 5
 *   rank 4   -> 3                    3 ->
 *   rank 5   -> 3                    3 ->
 *
 * Hosts send h ceil(log2 h) messages to one another, where dissemination among all n ranks sends up
 * to n log2 n, and who waits for a word within its host waits without a system call.
 *
 * Messages are one byte long and nobody reads it: staging memory need not be set.
 *
 * Source: two-level barrier as in Open MPI coll/han; steps between hosts as in barrier.c.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/by_host.h"
#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_UP = 0, TAG_DOWN = 1, TAG_STEP = 2 };

typedef struct barrier {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    const int32_t *mates;         /* borrowed: ranks of this host */
    uint32_t mate_count, place;   /* this rank's among them */
    uint32_t *heard;              /* owned: receives so far; all that is sent on waits for them */
    uint32_t heard_count;
} barrier_t;

static void r2_barrier_hear(barrier_t *b, int32_t peer, uint32_t tag)
{
    const r2_msg_t msg = {.peer = peer, .tag = tag, .bytes = 1};

    /* byte 0 is sent */
    b->heard[b->heard_count] = r2_add_recv(
        b->schedule, msg, r2_at(R2_BUF_SCRATCH, 1 + (uint64_t) b->heard_count), R2_AT_ONCE);
    ++b->heard_count;
}

/* @param count it waits for the first so many receives. */
static void r2_barrier_tell(const barrier_t *b, int32_t peer, uint32_t tag, uint32_t count)
{
    const r2_msg_t msg = {.peer = peer, .tag = tag, .bytes = 1};

    r2_add_send(b->schedule, msg, r2_at(R2_BUF_SCRATCH, 0), b->heard, count);
}

/** Children of this rank in the tree of its host: from the first place on, up to the end. */
static uint32_t r2_barrier_children(const barrier_t *b, uint32_t *end_p)
{
    const uint32_t width = (uint32_t) r2_threshold_barrier_host_width;
    const uint64_t first = 1 + (uint64_t) b->place * width;

    *end_p = (uint32_t) r2_min(first + width, (uint64_t) b->mate_count);
    return (uint32_t) r2_min(first, (uint64_t) b->mate_count);
}

/** The first rank of a host, `distance` hosts further on around the circle. */
static int32_t r2_barrier_first(const r2_by_host_t *by, uint32_t hosts, uint32_t host,
                                int64_t distance)
{
    return by->ranks[by->first[(uint32_t) (((int64_t) host + distance + hosts) % hosts)]];
}

/** As barrier.c, between hosts: what a host has to say is what its ranks said. */
static void r2_barrier_between(barrier_t *b, const r2_by_host_t *by, uint32_t host)
{
    const uint32_t hosts = b->input->topology->host_count, own = b->heard_count;

    for (uint32_t step = 0; step < 31 && 1u << step < hosts; ++step) {
        const uint32_t distance = 1u << step;
        const uint32_t news = r2_steps_below((int32_t) r2_min(distance, hosts - distance));

        r2_barrier_tell(b, r2_barrier_first(by, hosts, host, distance), TAG_STEP + step,
                        own + news);
        r2_barrier_hear(b, r2_barrier_first(by, hosts, host, -(int64_t) distance), TAG_STEP + step);
    }
}

static void r2_barrier_add(barrier_t *b, const r2_by_host_t *by, uint32_t host)
{
    uint32_t end;
    const uint32_t first = r2_barrier_children(b, &end);

    for (uint32_t i = first; i < end; ++i) {
        r2_barrier_hear(b, b->mates[i], TAG_UP);
    }
    if (0 == b->place) {
        r2_barrier_between(b, by, host);
    } else {
        const int32_t parent =
            b->mates[(b->place - 1) / (uint32_t) r2_threshold_barrier_host_width];

        r2_barrier_tell(b, parent, TAG_UP, b->heard_count);
        r2_barrier_hear(b, parent, TAG_DOWN);
    }
    for (uint32_t i = first; i < end; ++i) {
        r2_barrier_tell(b, b->mates[i], TAG_DOWN, b->heard_count);
    }
}

static r2_status_t r2_barrier_hosts_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint32_t host = input->topology->host_of[input->rank];
    barrier_t b = {.input = input, .schedule = schedule};
    r2_by_host_t by;
    r2_status_t status = r2_by_host_init(&by, input->topology);

    if (R2_OK == status) {
        b.mates = by.ranks + by.first[host];
        b.mate_count = r2_by_host_count(&by, host);
        while (b.mates[b.place] != input->rank) {
            ++b.place;
        }
        b.heard = malloc((r2_threshold_barrier_host_width +
                          r2_steps_below((int32_t) input->topology->host_count) + 1) *
                         sizeof(*b.heard));
        status = NULL == b.heard ? R2_ERR_NO_MEMORY : R2_OK;
    }
    if (R2_OK == status) {
        r2_plan_note_message(schedule, 1);
        r2_barrier_add(&b, &by, host);
        schedule->scratch_bytes = 1 + (uint64_t) b.heard_count;
    }
    free(b.heard);
    r2_by_host_fini(&by);
    return status;
}

static bool r2_barrier_hosts_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology && input->topology->host_count > 1;
}

/* Of ranks with a host each there is nothing within hosts. */
static bool r2_barrier_hosts_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    (void) total_bytes;
    return r2_barrier_hosts_fits(input) && (uint32_t) input->size > input->topology->host_count;
}

const r2_algorithm_t r2_barrier_hosts = {.name = "hierarchical",
                                         .build = r2_barrier_hosts_build,
                                         .fits = r2_barrier_hosts_fits,
                                         .pays = r2_barrier_hosts_pays,
                                         .steps = r2_steps_below,
                                         .steps_of_hosts = true};
