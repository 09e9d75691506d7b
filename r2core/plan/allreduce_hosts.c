/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce through one rank of each host: for short vectors where hosts have several ranks.
 *
 * The first rank of a host folds what its host contributes, doubles with those of the other hosts
 * (doubling.c), and gives the result to the others. Two hosts, ranks 0 1 2 and 3 4 5; [a-b] is the
 * ordered product of the contributions of ranks a to b:
 *
 *            within the host       between hosts        back
 *   rank 0   1, 2 ->  [0-2]        <-> 3  [0-5]         -> 1, 2
 *   rank 1   -> 0                                       0 ->
 *   rank 2   -> 0                                       0 ->
 *   rank 3   4, 5 ->  [3-5]        <-> 0  [0-5]         -> 4, 5
 *   rank 4   -> 3                                       3 ->
 *   rank 5   -> 3                                       3 ->
 *
 * Hosts send each other what one rank of each would, and who waits for its host waits without a
 * system call. Contributions of a host are folded first, x0 OP (x1 OP (x2 OP ..)), then hosts as
 * in doubling.c. That depends on which ranks are on which host, not on rails. An operation that
 * does not commute needs hosts whose ranks follow one another.
 *
 * Source: two-level allreduce as in Open MPI coll/han; compare allreduce_hierarchical.c, which cuts
 * the vector for all ranks of a host. Deviation: doubling as in doubling.c.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/bcast_levels.h"
#include "plan/by_host.h"
#include "plan/doubling.h"
#include "plan/host_fold.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { TAG_UP = R2_DOUBLING_TAG_END, TAG_DOWN };

static uint64_t r2_allreduce_hosts_scratch(const r2_plan_input_t *input)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);

    return (hosts.most - 1 + r2_doubling_slots((int32_t) hosts.count)) *
           r2_vector_slot_bytes(input);
}

/** The product of the host's contributions: the last one's memory takes in the others. */
static void r2_hosts_fold(r2_doubling_t *d, const int32_t *mates, uint32_t count)
{
    const r2_region_t own = d->acc;

    for (uint32_t i = count - 1; i >= 1; --i) {
        const r2_msg_t msg = {.peer = mates[i], .tag = TAG_UP, .bytes = d->bytes};
        const r2_region_t slot = r2_doubling_slot(d);
        const uint32_t arrived = r2_add_recv(d->schedule, msg, slot, R2_AT_ONCE);

        if (count - 1 == i) {
            d->acc = slot;
            d->acc_op = arrived;
        } else {
            d->acc_op =
                r2_add_reduce(d->schedule, slot, d->acc, d->bytes, R2_AFTER(arrived, d->acc_op));
        }
    }
    if (count > 1) {
        d->acc_op = r2_add_reduce(d->schedule, own, d->acc, d->bytes, R2_AFTER(d->acc_op));
        d->is_own = true;
    }
}

/** A rank that is not the first of its host. */
static void r2_hosts_follow(const r2_doubling_t *d, int32_t first)
{
    const r2_msg_t up = {.peer = first, .tag = TAG_UP, .bytes = d->bytes};
    const r2_msg_t down = {.peer = first, .tag = TAG_DOWN, .bytes = d->bytes};
    const uint32_t sent = r2_add_send(d->schedule, up, d->acc, R2_AT_ONCE);

    r2_add_recv(d->schedule, down, r2_at(R2_BUF_OUT, 0),
                R2_AFTER(d->input->in_place ? sent : R2_OP_NONE));
}

/** @param mates the ranks of this one's host. */
static void r2_hosts_add(r2_doubling_t *d, const int32_t *mates, uint32_t count)
{
    if (mates[0] != d->input->rank) {
        r2_hosts_follow(d, mates[0]);
        return;
    }
    r2_hosts_fold(d, mates, count);
    r2_doubling_run(d);
    for (uint32_t i = 1; i < count; ++i) {
        const r2_msg_t msg = {.peer = mates[i], .tag = TAG_DOWN, .bytes = d->bytes};

        r2_add_send(d->schedule, msg, d->acc, R2_AFTER(d->acc_op));
    }
}

static r2_status_t r2_allreduce_hosts_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const r2_topology_t *topology = input->topology;
    const uint32_t host = topology->host_of[input->rank];
    r2_doubling_t d =
        r2_doubling_of(input, schedule, (int32_t) topology->host_count, (int32_t) host);
    r2_by_host_t by;
    r2_status_t status = r2_by_host_init(&by, topology);

    if (R2_OK == status) {
        d.hosts = &by;
        r2_plan_note_message(schedule, d.bytes);
        r2_hosts_add(&d, by.ranks + by.first[host], r2_by_host_count(&by, host));
        schedule->scratch_bytes = d.slots * r2_vector_slot_bytes(input);
    }
    r2_by_host_fini(&by);
    return status;
}

/* Of ranks with a host each it is doubling among all. The first rank of a host takes in all that
 * the others have, one after the other. */
static bool r2_allreduce_hosts_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    r2_bcast_hosts_t hosts;

    if (!r2_doubling_pays(input, total_bytes)) {
        return false;
    }
    hosts = r2_bcast_hosts(input);
    return hosts.count > 1 && hosts.most > 1 && hosts.most <= r2_threshold_hosts_ranks &&
           total_bytes * (hosts.most - 1) <= r2_threshold_allreduce_hosts_bytes;
}

const r2_algorithm_t r2_allreduce_hosts = {.name = "hosts",
                                           .build = r2_allreduce_hosts_build,
                                           .scratch = r2_allreduce_hosts_scratch,
                                           .fits = r2_host_fold_fits,
                                           .pays = r2_allreduce_hosts_pays,
                                           .steps = r2_cost_doubling_steps,
                                           .steps_of_hosts = true};
