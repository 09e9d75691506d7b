/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce_scatter(_block) through one rank of each host: for short vectors where hosts have several
 * ranks.
 *
 * The first rank of a host folds what its host contributes, sends each other host the blocks of its
 * ranks in one message, folds what the others send, and gives each rank of its host its block. Two
 * hosts, ranks 0 1 2 and 3 4; [a-b] is the product of the contributions of ranks a to b, (c-d) the
 * blocks of ranks c to d:
 *
 *            within the host   between hosts                               back
 *   rank 0   1, 2 -> [0-2]     (3-4) of [0-2] -> 3, folds (0-2) of [0-4]   (1) -> 1, (2) -> 2
 *   rank 1   -> 0                                                          (1)
 *   rank 2   -> 0                                                          (2)
 *   rank 3   4 -> [3-4]        (0-2) of [3-4] -> 0, folds (3-4) of [0-4]   (4) -> 4
 *   rank 4   -> 3                                                          (4)
 *
 * A host sends each other one message, and who waits for its host waits without a system call.
 * Blocks of a host that do not follow one another are brought together before they are sent.
 *
 * The order of reduction is that of host_fold.c, whoever folds: contributions of a host first,
 * x0 OP (x1 OP (x2 OP ..)), then hosts in the same way. It depends on which ranks are on which
 * host, not on rails. An operation that does not commute needs hosts whose ranks follow one
 * another, in the order of hosts.
 *
 * Source: as allreduce_hosts.c, and direct exchange between hosts as in reduce_scatter_direct.c.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/bcast_levels.h"
#include "plan/host_fold.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_UP, TAG_BETWEEN, TAG_DOWN };

/** Bytes that are held somewhere. */
typedef struct held {
    r2_region_t place;
    uint32_t op;    /* after which they are there */
    bool is_staged; /* in staging memory: they may be written */
} held_t;

typedef struct through {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t blocks;
    r2_by_host_t by;
    uint32_t host;       /* of this rank */
    uint64_t used_bytes; /* of staging memory */
    uint32_t *readers;   /* owned: [hosts + 1], ops that read this rank's own contribution */
    uint32_t reader_count;
} through_t;

static uint64_t r2_through_largest(const r2_plan_input_t *input)
{
    uint64_t largest = NULL == input->counts ? input->count : 0;

    for (int32_t r = 0; NULL != input->counts && r < input->size; ++r) {
        largest = r2_max(largest, input->counts[r]);
    }
    return largest * input->element_bytes;
}

/* The others' contributions, what the hosts send, and all blocks brought together. */
static uint64_t r2_reduce_scatter_hosts_scratch(const r2_plan_input_t *input)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);
    const uint64_t total = r2_input_total_bytes(input);
    const uint64_t of_host = r2_min(total, hosts.most * r2_through_largest(input));

    return (hosts.most - 1) * r2_round_up(total, R2_SLOT_ALIGN) +
           (hosts.count - 1) * r2_round_up(of_host, R2_SLOT_ALIGN) + total +
           (uint64_t) hosts.count * R2_SLOT_ALIGN;
}

static r2_region_t r2_through_stage(through_t *t, uint64_t bytes)
{
    const r2_region_t place = r2_at(R2_BUF_SCRATCH, t->used_bytes);

    t->used_bytes += r2_round_up(bytes, R2_SLOT_ALIGN);
    return place;
}

static const int32_t *r2_through_ranks(const through_t *t, uint32_t host)
{
    return t->by.ranks + t->by.first[host];
}

static uint64_t r2_through_host_bytes(const through_t *t, uint32_t host)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < r2_by_host_count(&t->by, host); ++i) {
        bytes += r2_layout_bytes(&t->blocks, r2_through_ranks(t, host)[i]);
    }
    return bytes;
}

/** acc = from OP acc. The first that comes is what is held. */
static void r2_through_join(through_t *t, held_t *acc, const held_t *from, uint64_t bytes,
                            bool first)
{
    if (first) {
        *acc = *from;
    } else if (from->is_staged) {
        acc->op = r2_add_reduce_slot(t->schedule, from->place, acc->place, bytes,
                                     R2_AFTER(from->op, acc->op));
    } else {
        acc->op =
            r2_add_reduce(t->schedule, from->place, acc->place, bytes, R2_AFTER(from->op, acc->op));
    }
}

static held_t r2_through_take(through_t *t, r2_msg_t msg)
{
    const r2_region_t slot = r2_through_stage(t, msg.bytes);

    return (held_t){
        .place = slot, .op = r2_add_recv(t->schedule, msg, slot, R2_AT_ONCE), .is_staged = true};
}

/** The product of the host's contributions: the last one's memory takes in the others. */
static held_t r2_through_fold_host(through_t *t)
{
    const int32_t *mates = r2_through_ranks(t, t->host);
    const uint32_t count = r2_by_host_count(&t->by, t->host);
    const uint64_t bytes = t->blocks.start[t->input->size];
    held_t acc = {.place = r2_at(r2_input_buf(t->input), 0), .op = R2_OP_NONE};
    const held_t own = acc;

    for (uint32_t i = count - 1; i >= 1; --i) {
        const r2_msg_t msg = {.peer = mates[i], .tag = TAG_UP, .bytes = bytes};
        const held_t arrived = r2_through_take(t, msg);

        r2_through_join(t, &acc, &arrived, bytes, count - 1 == i);
    }
    if (count > 1) {
        r2_through_join(t, &acc, &own, bytes, false);
    }
    return acc;
}

/** Length of the run of blocks of a host that follow one another in the vector, from one of its
 * ranks on. @param i_p the rank; then the one behind the run. */
static uint64_t r2_through_run(const through_t *t, uint32_t host, uint32_t *i_p)
{
    const int32_t *ranks = r2_through_ranks(t, host);
    const uint64_t start = t->blocks.start[ranks[*i_p]];
    uint64_t end = start;

    while (*i_p < r2_by_host_count(&t->by, host) && t->blocks.start[ranks[*i_p]] == end) {
        end = t->blocks.start[ranks[*i_p] + 1];
        ++*i_p;
    }
    return end - start;
}

/** What a host gets, in one piece: where it is if it is one, or brought together. */
static held_t r2_through_part(through_t *t, const held_t *all, uint32_t host)
{
    const int32_t *ranks = r2_through_ranks(t, host);
    const uint64_t bytes = r2_through_host_bytes(t, host);
    held_t part = *all;
    uint64_t at = 0;

    for (uint32_t i = 0; i < r2_by_host_count(&t->by, host) && at < bytes;) {
        r2_region_t from = all->place;
        uint64_t run;

        from.offset_bytes += t->blocks.start[ranks[i]];
        run = r2_through_run(t, host, &i);
        if (0 < run && run == bytes) {
            part.place = from;
            return part;
        }
        if (0 < run && 0 == at) {
            part.place = r2_through_stage(t, bytes);
            part.is_staged = true;
        }
        if (0 < run) {
            part.op =
                r2_add_copy(t->schedule, from, r2_at(R2_BUF_SCRATCH, part.place.offset_bytes + at),
                            run, R2_AFTER(part.op));
        }
        at += run;
    }
    return part;
}

/** One message to each other host with its part, from the next one on around the circle. */
static void r2_through_send(through_t *t, const held_t *all)
{
    const uint32_t hosts = t->input->topology->host_count;

    for (uint32_t step = 1; step < hosts; ++step) {
        const uint32_t host = (t->host + step) % hosts;
        const held_t part = r2_through_part(t, all, host);
        const r2_msg_t msg = {.peer = r2_through_ranks(t, host)[0],
                              .tag = TAG_BETWEEN,
                              .bytes = r2_through_host_bytes(t, host)};
        const uint32_t sent = r2_add_send(t->schedule, msg, part.place, R2_AFTER(part.op));

        if (!all->is_staged) {
            t->readers[t->reader_count++] = part.is_staged ? part.op : sent;
        }
    }
}

/** Folds what the hosts have of as many bytes as this one's `own`. */
static held_t r2_through_fold(through_t *t, held_t own, uint64_t bytes)
{
    const uint32_t hosts = t->input->topology->host_count;
    held_t acc = own;

    for (uint32_t h = hosts; h-- > 0;) {
        held_t other;

        if (h == t->host) {
            if (hosts - 1 == h && !own.is_staged) { /* it takes in the others */
                const r2_region_t slot = r2_through_stage(t, bytes);

                own.op = r2_add_copy(t->schedule, own.place, slot, bytes, R2_AFTER(own.op));
                own.place = slot;
            }
            r2_through_join(t, &acc, &own, bytes, hosts - 1 == h);
            continue;
        }
        other = r2_through_take(
            t, (r2_msg_t){.peer = r2_through_ranks(t, h)[0], .tag = TAG_BETWEEN, .bytes = bytes});
        r2_through_join(t, &acc, &other, bytes, hosts - 1 == h);
    }
    return acc;
}

/** Each rank of this host gets its block. This one's may lie over its contribution. */
static void r2_through_give(through_t *t, const held_t *result)
{
    const int32_t *mates = r2_through_ranks(t, t->host);
    r2_region_t block = result->place;

    for (uint32_t i = 0; i < r2_by_host_count(&t->by, t->host); ++i) {
        const r2_msg_t msg = {
            .peer = mates[i], .tag = TAG_DOWN, .bytes = r2_layout_bytes(&t->blocks, mates[i])};

        if (0 < i) {
            r2_add_send(t->schedule, msg, block, R2_AFTER(result->op));
        } else {
            t->readers[t->reader_count++] = result->op;
            r2_add_copy(t->schedule, block, r2_at(R2_BUF_OUT, 0), msg.bytes, t->readers,
                        t->reader_count);
        }
        block.offset_bytes += msg.bytes;
    }
}

/** A rank that is not the first of its host. */
static void r2_through_follow(const through_t *t)
{
    const int32_t first = r2_through_ranks(t, t->host)[0];
    const r2_msg_t up = {.peer = first, .tag = TAG_UP, .bytes = t->blocks.start[t->input->size]};
    const r2_msg_t down = {
        .peer = first, .tag = TAG_DOWN, .bytes = r2_layout_bytes(&t->blocks, t->input->rank)};
    const uint32_t sent =
        r2_add_send(t->schedule, up, r2_at(r2_input_buf(t->input), 0), R2_AT_ONCE);

    r2_add_recv(t->schedule, down, r2_at(R2_BUF_OUT, 0),
                R2_AFTER(t->input->in_place ? sent : R2_OP_NONE));
}

static void r2_through_add(through_t *t)
{
    held_t all, result;

    r2_plan_note_message(t->schedule, t->blocks.start[t->input->size]);
    if (r2_through_ranks(t, t->host)[0] != t->input->rank) {
        r2_through_follow(t);
        return;
    }
    all = r2_through_fold_host(t);
    r2_through_send(t, &all);
    result =
        r2_through_fold(t, r2_through_part(t, &all, t->host), r2_through_host_bytes(t, t->host));
    r2_through_give(t, &result);
    t->schedule->scratch_bytes = t->used_bytes;
}

static r2_status_t r2_reduce_scatter_hosts_build(const r2_plan_input_t *input,
                                                 r2_schedule_t *schedule)
{
    const r2_topology_t *topology = input->topology;
    through_t t = {.input = input, .schedule = schedule, .host = topology->host_of[input->rank]};
    r2_status_t status = r2_by_host_init(&t.by, topology);

    status = R2_OK == status ? r2_layout_blocks(&t.blocks, input) : status;
    t.readers = malloc(((size_t) topology->host_count + 1) * sizeof(*t.readers));
    status = NULL == t.readers ? R2_ERR_NO_MEMORY : status;
    if (R2_OK == status) {
        r2_through_add(&t);
    }
    free(t.readers);
    r2_layout_fini(&t.blocks);
    r2_by_host_fini(&t.by);
    return status;
}

/* The first rank of a host takes in all that the others have, one after the other. Looks at where
 * ranks are and at the length: another order of reduction would take its place. */
static bool r2_reduce_scatter_hosts_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);

    return r2_first_ranks_pay(input) && total_bytes <= r2_threshold_reduce_scatter_hosts_bytes &&
           total_bytes * (hosts.most - 1) <= r2_threshold_reduce_scatter_hosts_taken_bytes;
}

const r2_algorithm_t r2_reduce_scatter_hosts = {.name = "hosts",
                                                .build = r2_reduce_scatter_hosts_build,
                                                .scratch = r2_reduce_scatter_hosts_scratch,
                                                .fits = r2_host_fold_fits,
                                                .pays = r2_reduce_scatter_hosts_pays};
