/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allgather(v) through one rank of each host: for short blocks where hosts have several ranks.
 *
 * The first rank of a host collects the blocks of all its ranks, the first ones exchange what their
 * hosts have, and give all of it to the others. Two hosts, ranks 0 1 2 and 3 4; (a-b) are the
 * blocks of ranks a to b:
 *
 *            to the first     between          from the first
 *   rank 0   1, 2 ->          (0-2) <-> 3      (0-4) -> 1, 2
 *   rank 1   (1) -> 0                          0 ->
 *   rank 2   (2) -> 0                          0 ->
 *   rank 3   4 ->             (3-4) <-> 0      (0-4) -> 4
 *   rank 4   (4) -> 3                          3 ->
 *
 * Few hosts send to all others at once, more of them in steps, by Bruck's algorithm
 * (allgather_bruck.c). What is collected lies by host, and goes round the circle of hosts without
 * being moved: what a step sends is in two messages where it passes the end of the last host.
 *
 * It is collected where the result belongs if blocks there lie by host one behind the other, and
 * else in staging memory. In place the block of a rank is replaced by itself, when it was read.
 *
 * Source: two-level allgather as in Open MPI coll/han. Deviation: steps between hosts.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/bcast_levels.h"
#include "plan/by_host.h"
#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/order.h"
#include "plan/thresholds.h"

enum { TAG_UP = 0, TAG_DOWN = 1, TAG_STEP = 2 };

typedef struct hosts {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_by_host_t by;
    r2_layout_t blocks;
    uint64_t *start; /* owned: [by host + 1], where blocks lie once collected */
    uint32_t *have;  /* owned: ops that collected something, so far */
    uint32_t have_count;
    r2_region_t all;      /* where they are collected */
    uint32_t host, count; /* of this rank, and hosts in all */
} hosts_t;

static r2_region_t r2_hosts_collected(const hosts_t *h, uint32_t i)
{
    return r2_at(h->all.buf, h->all.offset_bytes + h->start[i]);
}

static r2_region_t r2_hosts_place(const hosts_t *h, int32_t rank)
{
    return r2_at(R2_BUF_OUT, r2_layout_place(&h->blocks, h->input, rank));
}

static r2_region_t r2_hosts_own(const hosts_t *h)
{
    return h->input->in_place ? r2_hosts_place(h, h->input->rank) : r2_at(R2_BUF_IN, 0);
}

/** How many blocks from the i-th on, by host, lie as they are collected, where they belong. */
static uint32_t r2_hosts_run(const hosts_t *h, uint32_t i)
{
    const uint64_t place = r2_hosts_place(h, h->by.ranks[i]).offset_bytes;
    uint32_t end = i + 1;

    while (end < (uint32_t) h->input->size &&
           r2_hosts_place(h, h->by.ranks[end]).offset_bytes - place ==
               h->start[end] - h->start[i]) {
        ++end;
    }
    return end - i;
}

/** Copies all that was collected to where it belongs. In place but for this rank's own block. */
static void r2_hosts_deliver(const hosts_t *h, const uint32_t *deps, uint32_t dep_count)
{
    if (R2_BUF_OUT == h->all.buf) {
        return;
    }
    for (uint32_t i = 0, run; i < (uint32_t) h->input->size; i += run) {
        run = r2_hosts_run(h, i);
        r2_add_copy(h->schedule, r2_hosts_collected(h, i), r2_hosts_place(h, h->by.ranks[i]),
                    h->start[i + run] - h->start[i], deps, dep_count);
    }
}

/** A rank that is not the first of its host. */
static void r2_hosts_follow(const hosts_t *h, int32_t first)
{
    const r2_plan_input_t *input = h->input;
    const r2_msg_t up = {
        .peer = first, .tag = TAG_UP, .bytes = r2_layout_bytes(&h->blocks, input->rank)};
    const r2_msg_t down = {.peer = first, .tag = TAG_DOWN, .bytes = h->start[input->size]};
    const uint32_t sent = r2_add_send(h->schedule, up, r2_hosts_own(h), R2_AT_ONCE);
    const uint32_t read = input->in_place ? sent : R2_OP_NONE;
    const uint32_t arrived = r2_add_recv(h->schedule, down, h->all, R2_AFTER(read));

    r2_hosts_deliver(h, R2_AFTER(arrived));
}

static void r2_hosts_note(hosts_t *h, uint32_t op)
{
    h->have[h->have_count++] = op;
}

/** The first rank: blocks of its host. */
static void r2_hosts_collect(hosts_t *h)
{
    const uint32_t first = h->by.first[h->host], end = h->by.first[h->host + 1];

    for (uint32_t i = first + 1; i < end; ++i) {
        const int32_t mate = h->by.ranks[i];
        const r2_msg_t msg = {
            .peer = mate, .tag = TAG_UP, .bytes = r2_layout_bytes(&h->blocks, mate)};

        r2_hosts_note(h, r2_add_recv(h->schedule, msg, r2_hosts_collected(h, i), R2_AT_ONCE));
    }
    if (!h->input->in_place || R2_BUF_OUT != h->all.buf) {
        r2_hosts_note(h, r2_add_copy(h->schedule, r2_hosts_own(h), r2_hosts_collected(h, first),
                                     h->start[first + 1] - h->start[first], R2_AT_ONCE));
    }
}

/** What hosts [from, end) have, as message. */
static r2_msg_t r2_hosts_msg(const hosts_t *h, uint32_t peer, uint32_t tag, uint32_t from,
                             uint32_t end)
{
    return (r2_msg_t){.peer = h->by.ranks[h->by.first[peer]],
                      .tag = TAG_STEP + tag,
                      .bytes = h->start[h->by.first[end]] - h->start[h->by.first[from]]};
}

/** Sends what `count` hosts from this one on, around the circle, have. @param known the first so
 * many ops that collected something. */
static void r2_hosts_send(const hosts_t *h, uint32_t peer, uint32_t step, uint32_t count,
                          uint32_t known)
{
    const uint32_t end = r2_min(h->host + count, h->count);
    const uint32_t rest = h->host + count - end;

    r2_add_send(h->schedule, r2_hosts_msg(h, peer, 2 * step, h->host, end),
                r2_hosts_collected(h, h->by.first[h->host]), h->have, known);
    r2_add_send(h->schedule, r2_hosts_msg(h, peer, 2 * step + 1, 0, rest), r2_hosts_collected(h, 0),
                h->have, known);
}

/** Gets what `count` hosts from the peer on have. */
static void r2_hosts_get(hosts_t *h, uint32_t peer, uint32_t step, uint32_t count)
{
    const uint32_t end = r2_min(peer + count, h->count);
    const uint32_t rest = peer + count - end;

    r2_hosts_note(h, r2_add_recv(h->schedule, r2_hosts_msg(h, peer, 2 * step, peer, end),
                                 r2_hosts_collected(h, h->by.first[peer]), R2_AT_ONCE));
    r2_hosts_note(h, r2_add_recv(h->schedule, r2_hosts_msg(h, peer, 2 * step + 1, 0, rest),
                                 r2_hosts_collected(h, 0), R2_AT_ONCE));
}

/** Hosts send to all others what they have. */
static void r2_hosts_exchange(hosts_t *h)
{
    const uint32_t own = h->have_count;

    for (uint32_t step = 1; step < h->count; ++step) {
        r2_hosts_send(h, (h->host + step) % h->count, 0, 1, own);
        r2_hosts_get(h, (h->host + h->count - step) % h->count, 0, 1);
    }
}

/** In each step hosts have twice as many hosts' blocks as before. */
static void r2_hosts_double(hosts_t *h)
{
    uint32_t step = 0;

    for (uint64_t distance = 1; distance < h->count; distance *= 2) {
        const uint32_t count = (uint32_t) r2_min(distance, h->count - distance);
        const uint32_t known = h->have_count;

        r2_hosts_send(h, (uint32_t) ((h->host + h->count - distance) % h->count), step, count,
                      known);
        r2_hosts_get(h, (uint32_t) ((h->host + distance) % h->count), step, count);
        ++step;
    }
}

static void r2_hosts_add(hosts_t *h)
{
    const uint32_t first = h->by.first[h->host], end = h->by.first[h->host + 1];

    if (h->by.ranks[first] != h->input->rank) {
        r2_hosts_follow(h, h->by.ranks[first]);
        return;
    }
    r2_hosts_collect(h);
    if (h->count <= r2_threshold_allgather_bruck_ranks) {
        r2_hosts_exchange(h);
    } else {
        r2_hosts_double(h);
    }
    for (uint32_t i = first + 1; i < end; ++i) {
        const r2_msg_t msg = {
            .peer = h->by.ranks[i], .tag = TAG_DOWN, .bytes = h->start[h->input->size]};

        r2_add_send(h->schedule, msg, h->all, h->have, h->have_count);
    }
    r2_hosts_deliver(h, h->have, h->have_count);
}

/** @return R2_OK or R2_ERR_NO_MEMORY; r2_hosts_fini() in both cases. */
static r2_status_t r2_hosts_init(hosts_t *h)
{
    const size_t ranks = (size_t) h->input->size;
    r2_status_t status = r2_by_host_init(&h->by, h->input->topology);

    status = R2_OK == status ? r2_layout_blocks(&h->blocks, h->input) : status;
    if (R2_OK != status) {
        return status;
    }
    h->start = malloc((ranks + 1) * sizeof(*h->start));
    h->have = malloc((ranks + 2 * (size_t) h->count + 1) * sizeof(*h->have));
    if (NULL == h->start || NULL == h->have) {
        return R2_ERR_NO_MEMORY;
    }
    h->start[0] = 0;
    for (size_t i = 0; i < ranks; ++i) {
        h->start[i + 1] = h->start[i] + r2_layout_bytes(&h->blocks, h->by.ranks[i]);
    }
    h->all = r2_hosts_run(h, 0) == (uint32_t) ranks ? r2_hosts_place(h, h->by.ranks[0])
                                                    : r2_at(R2_BUF_SCRATCH, 0);
    return R2_OK;
}

static void r2_hosts_fini(hosts_t *h)
{
    free(h->start);
    free(h->have);
    r2_layout_fini(&h->blocks);
    r2_by_host_fini(&h->by);
}

static r2_status_t r2_allgather_hosts_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    hosts_t h = {.input = input,
                 .schedule = schedule,
                 .host = input->topology->host_of[input->rank],
                 .count = input->topology->host_count};
    const r2_status_t status = r2_hosts_init(&h);

    if (R2_OK == status) {
        r2_plan_note_message(schedule, h.start[input->size]);
        r2_hosts_add(&h);
        schedule->scratch_bytes = R2_BUF_SCRATCH == h.all.buf ? h.start[input->size] : 0;
    }
    r2_hosts_fini(&h);
    return status;
}

/** Several hosts; all blocks fit a message. */
static bool r2_allgather_hosts_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology && input->topology->host_count > 1 &&
           (0 == input->message_max_bytes ||
            r2_input_total_bytes(input) <= input->message_max_bytes);
}

/* Of many hosts only what takes several steps between them anyway, and where pairs of hosts share
 * no rail a ring goes round them. */
static bool r2_allgather_hosts_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);

    return r2_first_ranks_pay(input) && !r2_order_reaches_more(input->topology) &&
           (hosts.count <= r2_threshold_allgather_bruck_ranks ||
            r2_is_short(input, total_bytes, 0, r2_threshold_allgather_bruck_block_bytes)) &&
           total_bytes * (hosts.most - 1) <= r2_threshold_allgather_hosts_bytes;
}

const r2_algorithm_t r2_allgather_hosts = {.name = "hosts",
                                           .build = r2_allgather_hosts_build,
                                           .scratch = r2_input_total_bytes,
                                           .fits = r2_allgather_hosts_fits,
                                           .pays = r2_allgather_hosts_pays};
