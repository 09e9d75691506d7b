/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce in two levels: within hosts, and between them with weighted shares.
 *
 * Each host owns a share of the vector (shares.c), cut into pieces, as many as the host with most
 * ranks has. On every host one rank handles a piece: it folds what its host contributes; the
 * owner's handler folds the hosts' partial results and sends the result back the same way. Three
 * ranks, 0 and 1 on host A, 2 on host B; pieces A0 A1 B0 B1, handled on A by 0 1 0 1, on B all by
 * 2:
 *
 *            within the host       between hosts        back
 *   rank 0   A1 B1 -> 1            B0 -> 2, folds A0     A0 -> 2, A0 B0 -> 1
 *   rank 1   A0 B0 -> 0            B1 -> 2, folds A1     A1 -> 2, A1 B1 -> 0
 *   rank 2                        A0 -> 0, A1 -> 1      B0 -> 0, B1 -> 1
 *
 * The columns overlap, segment by segment. A host sends over its rails what one rank would,
 * D (1 + (n - 2) s), not as much for each of its ranks.
 *
 * The order of reduction is not that of `direct`: contributions of a host are folded first, in rank
 * order, then hosts in their order, X0 OP (X1 OP ...) on both levels (host_fold.c). It depends on
 * which ranks are on which host, not on shares or rails. Parts stand in the order segment, share,
 * piece on all ranks.
 *
 * Source: two-level allreduce as in Open MPI coll/han; compare allreduce_direct.c. Deviation: every
 * rank takes part in the exchange between hosts, weighted shares.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/bcast_levels.h"
#include "plan/forecast.h"
#include "plan/host_fold.h"
#include "plan/ops.h"
#include "plan/shares.h"
#include "plan/thresholds.h"

typedef struct tiers {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t layout;           /* of all pieces */
    r2_host_fold_t fold;
} tiers_t;

static r2_region_t r2_tiers_out(const r2_host_part_t *part)
{
    return r2_at(R2_BUF_OUT, part->own.offset_bytes);
}

/** Folds all hosts' partial results. @return the op after which the result is in OUT. */
static uint32_t r2_fold_all(tiers_t *t, const r2_host_part_t *part,
                            const r2_host_partial_t *partial)
{
    r2_host_fold_t *fold = &t->fold;
    const uint32_t hosts = t->input->topology->host_count;
    const r2_region_t out = r2_tiers_out(part);
    uint32_t folded;

    if (t->input->in_place) {
        const uint32_t slot = r2_host_result_take(fold);
        const r2_region_t acc = r2_host_slot(fold, slot);

        folded = r2_host_fold_all(fold, part, partial, acc, fold->slot_free[slot]);
        folded = r2_add_copy(t->schedule, acc, out, part->bytes, R2_AFTER(folded));
        fold->slot_free[slot] = folded;
    } else {
        folded = r2_host_fold_all(fold, part, partial, out, R2_OP_NONE);
    }
    for (uint32_t h = 0; h < hosts; ++h) {
        if (h != fold->host) {
            r2_add_send(t->schedule,
                        r2_host_message(part, r2_host_handler(fold, part, h), R2_TAG_RESULT), out,
                        R2_AFTER(folded));
        }
    }
    return folded;
}

/** Sends this host's part to the owner and gets the result. @return op of the result. */
static uint32_t r2_pass_partial(tiers_t *t, const r2_host_part_t *part,
                                const r2_host_partial_t *partial, int32_t owner)
{
    const uint32_t reader = r2_host_pass(&t->fold, part, partial, owner);

    return r2_add_recv(t->schedule, r2_host_message(part, owner, R2_TAG_RESULT), r2_tiers_out(part),
                       R2_AFTER(t->input->in_place ? reader : R2_OP_NONE));
}

static void r2_handle(tiers_t *t, const r2_host_part_t *part, uint32_t owner)
{
    r2_host_fold_t *fold = &t->fold;
    const r2_host_partial_t partial = r2_host_fold_own(fold, part);
    const uint32_t result =
        owner == fold->host
            ? r2_fold_all(t, part, &partial)
            : r2_pass_partial(t, part, &partial, r2_host_handler(fold, part, owner));

    for (uint32_t i = fold->by.first[fold->host]; i < fold->by.first[fold->host + 1]; ++i) {
        if (fold->by.ranks[i] != t->input->rank) {
            r2_add_send(t->schedule, r2_host_message(part, fold->by.ranks[i], R2_TAG_DELIVER),
                        r2_tiers_out(part), R2_AFTER(result));
        }
    }
}

/** What a rank does for a piece that another rank of its host handles. */
static void r2_take_part(tiers_t *t, const r2_host_part_t *part, int32_t peer)
{
    const uint32_t sent = r2_host_contribute(&t->fold, part);

    r2_add_recv(t->schedule, r2_host_message(part, peer, R2_TAG_DELIVER), r2_tiers_out(part),
                R2_AFTER(t->input->in_place ? sent : R2_OP_NONE));
}

static void r2_tiers_ops(tiers_t *t)
{
    const r2_host_fold_t *fold = &t->fold;
    const uint32_t blocks = (uint32_t) t->layout.size;

    for (uint32_t i = 0; i < fold->segments * blocks; ++i) {
        const r2_host_part_t part = r2_host_part(fold, &t->layout, i);
        const int32_t rank = r2_host_handler(fold, &part, fold->host);

        if (0 == part.bytes) {
            continue;
        }
        if (rank == t->input->rank) {
            r2_handle(t, &part, i % blocks / part.pieces);
        } else {
            r2_take_part(t, &part, rank);
        }
    }
}

/** Shares of hosts by what is left of their rails; where ranks wait for processors, all of it is
 * the first host's, and one rank's of each. */
static r2_status_t r2_tiers_layout(tiers_t *t)
{
    const r2_plan_input_t *input = t->input;
    const uint32_t hosts = input->topology->host_count;
    const uint64_t bytes = input->count * input->element_bytes;
    const bool whole =
        bytes <= r2_threshold_crowded_levels_bytes && r2_crowded_pays(input, bytes, hosts - 1);
    r2_classes_t classes;
    r2_shares_t shares = {.weight = NULL};
    r2_status_t status = r2_classes_init(&classes, input->topology, R2_MEMBERS_HOSTS);

    status = R2_OK == status ? r2_shares_solve(&shares, &classes) : status;
    for (uint32_t h = 0; R2_OK == status && whole && h < hosts; ++h) {
        shares.weight[h] = 0 == h ? R2_SHARE_ONE : 0;
    }
    status = R2_OK == status ? r2_host_layout(&t->fold, shares.weight, whole, &t->layout) : status;
    r2_shares_fini(&shares);
    r2_classes_fini(&classes);
    return status;
}

static r2_status_t r2_allreduce_hierarchical_build(const r2_plan_input_t *input,
                                                   r2_schedule_t *schedule)
{
    tiers_t t = {.input = input, .schedule = schedule};
    r2_status_t status = r2_host_fold_init(&t.fold, input, schedule);

    status = R2_OK == status ? r2_tiers_layout(&t) : status;
    if (R2_OK == status) {
        status = r2_host_fold_stage(&t.fold, t.layout.largest_bytes, (uint32_t) t.layout.size);
    }
    if (R2_OK == status) {
        r2_tiers_ops(&t);
    }
    r2_layout_fini(&t.layout);
    r2_host_fold_fini(&t.fold);
    return status;
}

/** First within hosts, then between them. Not where an exchange between all hosts is too much. */
static bool r2_beats(const r2_plan_input_t *input, uint64_t total_bytes,
                     const r2_algorithm_t *usual)
{
    const r2_topology_t *topology = input->topology;

    return NULL != topology && NULL != usual->shape &&
           !(usual == &r2_allreduce_ring && topology->host_count > r2_threshold_ring_ranks) &&
           r2_cost_folding_pays(topology, total_bytes, usual->shape);
}

/** Between hosts as `weighted` with one rank each; copies within a host are hidden behind that. */
static r2_status_t r2_allreduce_hierarchical_forecast(const r2_forecast_input_t *of,
                                                      r2_prediction_t *prediction_p)
{
    const r2_topology_t *topology = of->topology;
    const bool folds = (uint32_t) topology->rank_count > topology->host_count;
    r2_topology_placement_t placement;
    r2_shares_t shares;
    r2_status_t status = r2_topology_placement(topology, &placement);

    status = R2_OK == status ? r2_shares_solve(&shares, &of->hosts) : status;
    if (R2_OK == status) {
        prediction_p->ns = r2_cost_exchange_ns(&of->hosts, &shares, &of->params, of->bytes);
        if (folds && R2_COST_NEVER != prediction_p->ns) {
            prediction_p->ns += r2_cost_folding_ns(topology, &placement, &of->params);
        }
        r2_shares_fini(&shares);
    }
    return status;
}

const r2_algorithm_t r2_allreduce_hierarchical = {.name = "hierarchical",
                                                  .build = r2_allreduce_hierarchical_build,
                                                  .scratch = r2_host_fold_scratch,
                                                  .fits = r2_host_fold_fits,
                                                  .beats = r2_beats,
                                                  .forecast = r2_allreduce_hierarchical_forecast};
