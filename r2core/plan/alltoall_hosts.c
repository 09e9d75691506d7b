/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Alltoall through one rank of each host: for short blocks where hosts have several ranks.
 *
 * Ranks of a host exchange their own blocks, and give the others to the first rank of the host. The
 * first ones exchange all that their hosts have for each other, and hand out what comes. Two hosts,
 * ranks 0 1 2 and 3 4; (a b) are the blocks from a to b:
 *
 *            within          to the first           between        from the first
 *   rank 0   <-> 1, 2                               <-> 3          (3-4 1) -> 1, (3-4 2) -> 2
 *   rank 1   <-> 0, 2        (1 3-4) -> 0                          0 ->
 *   rank 2   <-> 0, 1        (2 3-4) -> 0                          0 ->
 *   rank 3   <-> 4                                  <-> 0          (0-2 4) -> 4
 *   rank 4   <-> 3           (4 0-2) -> 3                          3 ->
 *
 * A host sends another one message, its blocks by source, then destination. A rank packs what it
 * has for other hosts into one message, and gets what comes from there in one.
 *
 * Receives within a host wait for nothing but, in place, for what reads the blocks that they
 * replace. Hosts meet in pairs and steps, as ranks do in exchange.c, whose argument holds for them.
 *
 * Source: two-level alltoall, as "node-aware" or "leader based" in the literature. Deviation: what
 * stays within a host does not pass its first rank.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "plan/bcast_levels.h"
#include "plan/by_host.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_MATE, TAG_BETWEEN, TAG_FIRST, WINDOW = r2_threshold_exchange_window };

typedef struct hosts {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_by_host_t by;
    uint32_t host, count; /* of this rank, and hosts in all */
    const int32_t *mates; /* borrowed: ranks of this host, the first one first */
    uint32_t mate_count;  /* this one is among them */
    int32_t *others;      /* owned: ranks of other hosts, by host */
    uint32_t other_count;
    uint64_t block_bytes;
    uint32_t *read;    /* owned: [rank], who reads the block for it, in place */
    uint32_t *ops;     /* owned: [rank], what an op waits for */
    uint32_t *up;      /* owned: [mate * count + host], which puts blocks to where they are sent */
    uint32_t *arrived; /* owned: [host], what came from its first rank */
    uint64_t out, in;  /* of the first rank: what its host sends to others, and gets from them */
    uint64_t top;      /* staging memory in use */
} hosts_t;

/** Staging memory for so many blocks. */
static uint64_t r2_hosts_stage(hosts_t *h, uint64_t blocks)
{
    const uint64_t place = h->top;

    h->top += blocks * h->block_bytes;
    return place;
}

/** Where host g begins among ranks of other hosts. */
static uint32_t r2_hosts_at(const hosts_t *h, uint32_t g)
{
    return h->by.first[g] - (g > h->host ? h->mate_count : 0);
}

static r2_msg_t r2_hosts_msg(const hosts_t *h, int32_t peer, uint32_t tag, uint64_t blocks)
{
    return (r2_msg_t){.peer = peer, .tag = tag, .bytes = blocks * h->block_bytes};
}

/** How many of the ranks follow one another, so that their blocks do. */
static uint32_t r2_hosts_run(const int32_t *ranks, uint32_t count)
{
    uint32_t run = 1;

    while (run < count && ranks[run] == ranks[0] + (int32_t) run) {
        ++run;
    }
    return run;
}

static r2_region_t r2_hosts_own(const hosts_t *h, int32_t rank)
{
    return r2_at(r2_input_buf(h->input), (uint64_t) rank * h->block_bytes);
}

static void r2_hosts_note(hosts_t *h, const int32_t *ranks, uint32_t count, uint32_t op)
{
    for (uint32_t i = 0; h->input->in_place && i < count; ++i) {
        h->read[ranks[i]] = op;
    }
}

/** Copies blocks for some ranks one behind the other. @return number of ops that do, in `ops`. */
static uint32_t r2_hosts_pack(hosts_t *h, const int32_t *ranks, uint32_t count, uint64_t to,
                              uint32_t *ops)
{
    uint32_t packed = 0;

    for (uint32_t i = 0, run; i < count; i += run) {
        run = r2_hosts_run(ranks + i, count - i);
        ops[packed] = r2_add_copy(h->schedule, r2_hosts_own(h, ranks[i]),
                                  r2_at(R2_BUF_SCRATCH, to + i * h->block_bytes),
                                  run * h->block_bytes, R2_AT_ONCE);
        r2_hosts_note(h, ranks + i, run, ops[packed++]);
    }
    return packed;
}

/** Lists in `ops` what reads the blocks that those from some ranks replace. @return how many. */
static uint32_t r2_hosts_replaced(const hosts_t *h, const int32_t *ranks, uint32_t count)
{
    uint32_t waits = 0;

    for (uint32_t i = 0; i < count; ++i) {
        h->ops[waits++] = h->read[ranks[i]];
    }
    return waits;
}

static r2_region_t r2_hosts_place(const hosts_t *h, int32_t rank)
{
    return r2_at(R2_BUF_OUT, (uint64_t) rank * h->block_bytes);
}

/** A rank that is not the first of its host: gives that one its blocks for other hosts. */
static void r2_hosts_hand_in(hosts_t *h)
{
    const r2_msg_t msg = r2_hosts_msg(h, h->mates[0], TAG_FIRST, h->other_count);

    if (r2_hosts_run(h->others, h->other_count) == h->other_count) {
        r2_hosts_note(h, h->others, h->other_count,
                      r2_add_send(h->schedule, msg, r2_hosts_own(h, h->others[0]), R2_AT_ONCE));
    } else {
        const uint64_t from = r2_hosts_stage(h, h->other_count);
        const uint32_t packed = r2_hosts_pack(h, h->others, h->other_count, from, h->ops);

        r2_add_send(h->schedule, msg, r2_at(R2_BUF_SCRATCH, from), h->ops, packed);
    }
}

/** And gets theirs from it. */
static void r2_hosts_take_over(hosts_t *h)
{
    const r2_msg_t msg = r2_hosts_msg(h, h->mates[0], TAG_FIRST, h->other_count);
    uint64_t from;
    uint32_t arrived;

    if (r2_hosts_run(h->others, h->other_count) == h->other_count) {
        r2_add_recv(h->schedule, msg, r2_hosts_place(h, h->others[0]), h->ops,
                    r2_hosts_replaced(h, h->others, h->other_count));
        return;
    }
    from = r2_hosts_stage(h, h->other_count);
    arrived = r2_add_recv(h->schedule, msg, r2_at(R2_BUF_SCRATCH, from), R2_AT_ONCE);
    for (uint32_t i = 0, run; i < h->other_count; i += run) {
        uint32_t waits;

        run = r2_hosts_run(h->others + i, h->other_count - i);
        waits = r2_hosts_replaced(h, h->others + i, run);
        h->ops[waits++] = arrived;
        r2_add_copy(h->schedule, r2_at(R2_BUF_SCRATCH, from + i * h->block_bytes),
                    r2_hosts_place(h, h->others[i]), run * h->block_bytes, h->ops, waits);
    }
}

/** Blocks of all ranks of a host. */
static void r2_hosts_within(hosts_t *h)
{
    const int32_t rank = h->input->rank;

    for (uint32_t i = 0; i < h->mate_count; ++i) {
        const int32_t *mate = &h->mates[i];
        const r2_msg_t msg = r2_hosts_msg(h, *mate, TAG_MATE, 1);

        if (*mate == rank && !h->input->in_place) {
            r2_add_copy(h->schedule, r2_hosts_own(h, rank), r2_hosts_place(h, rank), h->block_bytes,
                        R2_AT_ONCE);
        } else if (*mate != rank && h->input->in_place) {
            const uint64_t from = r2_hosts_stage(h, 1);
            uint32_t copied;

            r2_hosts_pack(h, mate, 1, from, &copied);
            r2_add_send(h->schedule, msg, r2_at(R2_BUF_SCRATCH, from), R2_AFTER(copied));
        } else if (*mate != rank) {
            r2_add_send(h->schedule, msg, r2_hosts_own(h, *mate), R2_AT_ONCE);
        }
        if (*mate != rank) {
            r2_add_recv(h->schedule, msg, r2_hosts_place(h, *mate), R2_AFTER(h->read[*mate]));
        }
    }
}

/** Where the first rank has the blocks of a mate for host g. */
static r2_region_t r2_hosts_outgoing(const hosts_t *h, uint32_t mate, uint32_t g)
{
    const uint64_t blocks = (uint64_t) h->mate_count * r2_hosts_at(h, g) +
                            (uint64_t) mate * r2_by_host_count(&h->by, g);

    return r2_at(R2_BUF_SCRATCH, h->out + blocks * h->block_bytes);
}

/** And those from a rank of other hosts for a mate. @param other its place among them. */
static r2_region_t r2_hosts_incoming(const hosts_t *h, uint32_t other, uint32_t mate)
{
    return r2_at(R2_BUF_SCRATCH,
                 h->in + ((uint64_t) other * h->mate_count + mate) * h->block_bytes);
}

/** The first rank: what a mate hands in. On two hosts it is what is sent on as it is. */
static void r2_hosts_collect(hosts_t *h, uint32_t mate)
{
    const r2_msg_t msg = r2_hosts_msg(h, h->mates[mate], TAG_FIRST, h->other_count);
    uint32_t *up = h->up + (size_t) mate * h->count;
    uint64_t from;
    uint32_t arrived;

    if (2 == h->count) {
        const uint32_t other = 1 - h->host;

        up[other] = r2_add_recv(h->schedule, msg, r2_hosts_outgoing(h, mate, other), R2_AT_ONCE);
        return;
    }
    from = r2_hosts_stage(h, h->other_count);
    arrived = r2_add_recv(h->schedule, msg, r2_at(R2_BUF_SCRATCH, from), R2_AT_ONCE);
    for (uint32_t g = 0; g < h->count; ++g) {
        const uint32_t blocks = g == h->host ? 0 : r2_by_host_count(&h->by, g);

        up[g] = r2_add_copy(
            h->schedule, r2_at(R2_BUF_SCRATCH, from + r2_hosts_at(h, g) * h->block_bytes),
            r2_hosts_outgoing(h, mate, g), blocks * h->block_bytes, R2_AFTER(arrived));
    }
}

/** What the hosts have for each other: one step, one host. */
static void r2_hosts_meet(hosts_t *h, uint32_t g, uint32_t *sent, uint32_t *got)
{
    const uint64_t blocks = (uint64_t) h->mate_count * r2_by_host_count(&h->by, g);
    const r2_msg_t msg = r2_hosts_msg(h, h->by.ranks[h->by.first[g]], TAG_BETWEEN, blocks);
    const r2_region_t from = r2_hosts_outgoing(h, 0, g);
    uint32_t waits = r2_hosts_pack(h, h->others + r2_hosts_at(h, g), r2_by_host_count(&h->by, g),
                                   from.offset_bytes, h->ops);

    for (uint32_t mate = 1; mate < h->mate_count; ++mate) {
        h->ops[waits++] = h->up[(size_t) mate * h->count + g];
    }
    h->ops[waits++] = *sent;
    *got = h->arrived[g] =
        r2_add_recv(h->schedule, msg, r2_hosts_incoming(h, r2_hosts_at(h, g), 0), R2_AFTER(*got));
    *sent = r2_add_send(h->schedule, msg, from, h->ops, waits);
}

static void r2_hosts_between(hosts_t *h)
{
    uint32_t sent[WINDOW], got[WINDOW];

    for (uint32_t i = 0; i < WINDOW; ++i) {
        sent[i] = got[i] = R2_OP_NONE;
    }
    for (uint32_t step = 0; step < h->count; ++step) {
        const uint32_t g = (step + h->count - h->host) % h->count;

        if (g != h->host) {
            r2_hosts_meet(h, g, &sent[step % WINDOW], &got[step % WINDOW]);
        }
    }
}

/** The first rank: what came for itself, */
static void r2_hosts_keep(hosts_t *h)
{
    for (uint32_t i = 0; i < h->other_count; ++i) {
        const int32_t other = h->others[i];

        r2_add_copy(h->schedule, r2_hosts_incoming(h, i, 0), r2_hosts_place(h, other),
                    h->block_bytes,
                    R2_AFTER(h->arrived[h->input->topology->host_of[other]], h->read[other]));
    }
}

/** and for a mate. */
static void r2_hosts_hand_out(hosts_t *h, uint32_t mate)
{
    const r2_msg_t msg = r2_hosts_msg(h, h->mates[mate], TAG_FIRST, h->other_count);
    const uint64_t from = r2_hosts_stage(h, h->other_count);

    for (uint32_t i = 0; i < h->other_count; ++i) {
        const uint32_t arrived = h->arrived[h->input->topology->host_of[h->others[i]]];

        h->ops[i] = r2_add_copy(h->schedule, r2_hosts_incoming(h, i, mate),
                                r2_at(R2_BUF_SCRATCH, from + i * h->block_bytes), h->block_bytes,
                                R2_AFTER(arrived));
    }
    r2_add_send(h->schedule, msg, r2_at(R2_BUF_SCRATCH, from), h->ops, h->other_count);
}

static void r2_hosts_add(hosts_t *h)
{
    if (h->mates[0] != h->input->rank) {
        r2_hosts_hand_in(h);
        r2_hosts_within(h);
        r2_hosts_take_over(h);
        return;
    }
    h->out = r2_hosts_stage(h, (uint64_t) h->mate_count * h->other_count);
    h->in = r2_hosts_stage(h, (uint64_t) h->mate_count * h->other_count);
    for (uint32_t mate = 1; mate < h->mate_count; ++mate) {
        r2_hosts_collect(h, mate);
    }
    r2_hosts_between(h);
    r2_hosts_within(h);
    for (uint32_t mate = 1; mate < h->mate_count; ++mate) {
        r2_hosts_hand_out(h, mate);
    }
    r2_hosts_keep(h);
}

/** @return R2_OK or R2_ERR_NO_MEMORY; r2_hosts_fini() in both cases. */
static r2_status_t r2_hosts_init(hosts_t *h)
{
    const r2_topology_t *topology = h->input->topology;
    const size_t ranks = (size_t) h->input->size;
    const r2_status_t status = r2_by_host_init(&h->by, topology);
    uint32_t before, behind;

    if (R2_OK != status) {
        return status;
    }
    before = h->by.first[h->host];
    behind = h->by.first[h->host + 1];
    h->count = topology->host_count;
    h->mates = h->by.ranks + before;
    h->mate_count = behind - before;
    h->other_count = (uint32_t) ranks - h->mate_count;
    h->others = malloc(ranks * sizeof(*h->others));
    h->read = malloc(ranks * sizeof(*h->read));
    h->ops = malloc((ranks + 2) * sizeof(*h->ops));
    h->up = malloc((size_t) h->mate_count * h->count * sizeof(*h->up));
    h->arrived = malloc(h->count * sizeof(*h->arrived));
    if (NULL == h->others || NULL == h->read || NULL == h->ops || NULL == h->up ||
        NULL == h->arrived) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(h->others, h->by.ranks, before * sizeof(*h->others));
    memcpy(h->others + before, h->by.ranks + behind, (ranks - behind) * sizeof(*h->others));
    for (size_t r = 0; r < ranks; ++r) {
        h->read[r] = R2_OP_NONE;
    }
    return R2_OK;
}

static void r2_hosts_fini(hosts_t *h)
{
    free(h->others);
    free(h->read);
    free(h->ops);
    free(h->up);
    free(h->arrived);
    r2_by_host_fini(&h->by);
}

/** Pairs of a rank of one host and one of another, at most: the blocks that the first rank of a
 * host takes apart. 0: no memory to count them. */
static uint64_t r2_hosts_pairs(const r2_plan_input_t *input)
{
    r2_topology_placement_t placement;

    return R2_OK == r2_topology_placement(input->topology, &placement) ? placement.pairs : 0;
}

/** What the two hosts with most ranks send each other, or a rank its host's first one. */
static uint64_t r2_hosts_longest(const hosts_t *h)
{
    uint64_t most = 0, second = 0;

    for (uint32_t g = 0; g < h->count; ++g) {
        const uint64_t ranks = r2_by_host_count(&h->by, g);

        second = r2_max(second, r2_min(ranks, most));
        most = r2_max(most, ranks);
    }
    return r2_max(most * second, (uint64_t) h->input->size) * h->block_bytes;
}

static r2_status_t r2_alltoall_hosts_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    hosts_t h = {.input = input,
                 .schedule = schedule,
                 .host = input->topology->host_of[input->rank],
                 .block_bytes = input->count * input->element_bytes};
    const r2_status_t status = r2_hosts_init(&h);

    if (R2_OK == status) {
        r2_plan_note_message(schedule, r2_hosts_longest(&h));
        r2_hosts_add(&h);
        schedule->scratch_bytes = h.top;
    }
    r2_hosts_fini(&h);
    return status;
}

/** What goes out and comes in, both once more as mates pack it, and blocks that are replaced. */
static uint64_t r2_alltoall_hosts_scratch(const r2_plan_input_t *input)
{
    const uint64_t pairs = r2_hosts_pairs(input);

    return 0 == pairs ? UINT64_MAX
                      : (4 * pairs + (uint64_t) input->size) * input->count * input->element_bytes;
}

/** Several hosts; all that a rank has fits a message: what is longer lies in staging memory. */
static bool r2_alltoall_hosts_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology && input->topology->host_count > 1 &&
           (0 == input->message_max_bytes ||
            r2_input_total_bytes(input) <= input->message_max_bytes);
}

/* Of more hosts Bruck's algorithm takes fewer steps. */
static bool r2_alltoall_hosts_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const uint64_t pairs = r2_alltoall_hosts_fits(input) ? r2_hosts_pairs(input) : 0;

    return 0 < pairs && r2_first_ranks_pay(input) &&
           input->topology->host_count <= r2_threshold_alltoall_bruck_ranks &&
           pairs <= r2_threshold_alltoall_hosts_blocks &&
           pairs * (total_bytes / (uint64_t) input->size) <= r2_threshold_alltoall_hosts_bytes;
}

const r2_algorithm_t r2_alltoall_hosts = {.name = "hosts",
                                          .build = r2_alltoall_hosts_build,
                                          .scratch = r2_alltoall_hosts_scratch,
                                          .fits = r2_alltoall_hosts_fits,
                                          .pays = r2_alltoall_hosts_pays};
