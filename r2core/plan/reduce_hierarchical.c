/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce in two levels: within hosts, and between them.
 *
 * The vector is cut into a share for every host but the root's, or on two hosts for the root's
 * alone, and shares into pieces, as many as the host with most ranks has. On every host one rank
 * handles a piece: it folds what its host contributes. The owner's handler folds the hosts' partial
 * results and sends the result to the root. Five ranks, 0 1 on host A, 2 3 on B, 4 on C; root 0;
 * pieces B0 B1 C0 C1, handled on A by 0 1 0 1, on B by 2 3 2 3, on C all by 4:
 *
 *            within the host            between hosts                 results
 *   rank 0   B1 C1 -> 1, folds B0 C0    B0 -> 2, C0 -> 4              gets B0 B1 C0 C1
 *   rank 1   B0 C0 -> 0, folds B1 C1    B1 -> 3, C1 -> 4
 *   rank 2   B1 C1 -> 3, folds B0 C0    C0 -> 4, folds B0             B0 -> 0
 *   rank 3   B0 C0 -> 2, folds B1 C1    C1 -> 4, folds B1             B1 -> 0
 *   rank 4                              B0 -> 2, B1 -> 3, folds C0 C1   C0 C1 -> 0
 *
 * Every host sends the vector over its rails once. With shares of equal length every host takes it
 * in once, too, so D / min B is the bound whatever the root's rails and the others' are, and no
 * other shares end earlier. They are unequal where a pair of hosts shares fewer rails than others:
 * in proportion to the weakest pair that a host is in.
 *
 * The order of reduction is that of host_fold.c, whoever the root is. Parts stand in the order
 * segment, share, piece on all ranks.
 *
 * Source: as allreduce_hierarchical.c; shares as in reduce_direct.c.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/bcast_levels.h"
#include "plan/classes.h"
#include "plan/host_fold.h"

typedef struct levels {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t pieces;
    r2_host_fold_t fold;
} levels_t;

/** The owner's side. The result goes to the root. */
static void r2_levels_finish(levels_t *l, const r2_host_part_t *part,
                             const r2_host_partial_t *partial)
{
    const r2_plan_input_t *input = l->input;
    const bool root = input->rank == input->root;
    const r2_region_t out = r2_at(R2_BUF_OUT, part->own.offset_bytes);
    r2_host_fold_t *fold = &l->fold;
    r2_region_t acc;
    uint32_t slot, folded;

    if (root && !input->in_place) {
        r2_host_fold_all(fold, part, partial, out, R2_OP_NONE);
        return;
    }
    slot = r2_host_result_take(fold);
    acc = r2_host_slot(fold, slot);
    folded = r2_host_fold_all(fold, part, partial, acc, fold->slot_free[slot]);
    fold->slot_free[slot] =
        root ? r2_add_copy(l->schedule, acc, out, part->bytes, R2_AFTER(folded))
             : r2_add_send(l->schedule, r2_host_message(part, input->root, R2_TAG_RESULT), acc,
                           R2_AFTER(folded));
}

/** @param owner handler on the host that owns the part. */
static void r2_levels_part(levels_t *l, const r2_host_part_t *part, int32_t owner)
{
    const r2_plan_input_t *input = l->input;
    r2_host_fold_t *fold = &l->fold;
    uint32_t reader;

    if (r2_host_handler(fold, part, fold->host) == input->rank) {
        const r2_host_partial_t partial = r2_host_fold_own(fold, part);

        if (owner == input->rank) {
            r2_levels_finish(l, part, &partial);
            return;
        }
        reader = r2_host_pass(fold, part, &partial, owner);
    } else {
        reader = r2_host_contribute(fold, part);
    }
    if (input->rank == input->root) {
        r2_add_recv(l->schedule, r2_host_message(part, owner, R2_TAG_RESULT),
                    r2_at(R2_BUF_OUT, part->own.offset_bytes),
                    R2_AFTER(input->in_place ? reader : R2_OP_NONE));
    }
}

/** Rate of the weakest pair of hosts that each host is in. Where pairs are too many to be looked
 * at, hosts are alike. */
static void r2_levels_weigh(const r2_classes_t *classes, uint64_t *weight)
{
    for (uint32_t h = 0; h < classes->host_count; ++h) {
        const uint32_t k = classes->class_of[h];
        uint64_t least = UINT32_MAX;

        for (uint32_t l = 0; NULL != classes->pairs && l < classes->count; ++l) {
            if (r2_classes_paired(classes, k, l)) {
                least = r2_min(least, classes->pairs[k * classes->count + l]);
            }
        }
        /* a fraction of it is given to each piece */
        weight[h] = least << 16;
    }
}

/** Where ranks wait for processors, one rank of each host handles all, and the root's host folds
 * it. */
static r2_status_t r2_levels_layout(levels_t *l)
{
    const r2_topology_t *topology = l->input->topology;
    const uint32_t root_host = topology->host_of[l->input->root];
    const uint64_t bytes = l->input->count * l->input->element_bytes;
    const bool whole = r2_crowded_pays(l->input, bytes, topology->host_count - 1);
    uint64_t *weight = calloc(topology->host_count, sizeof(*weight));
    r2_classes_t classes;
    r2_status_t status = r2_classes_init(&classes, topology, R2_MEMBERS_HOSTS);

    status = NULL == weight ? R2_ERR_NO_MEMORY : status;
    if (R2_OK == status) {
        r2_levels_weigh(&classes, weight);
        for (uint32_t h = 0; h < topology->host_count; ++h) {
            if (whole) {
                weight[h] = h == root_host;
            } else if ((h == root_host) == (2 < topology->host_count)) {
                weight[h] = 0;
            }
        }
        status = r2_host_layout(&l->fold, weight, whole, &l->pieces);
    }
    r2_classes_fini(&classes);
    free(weight);
    return status;
}

static r2_status_t r2_reduce_hierarchical_build(const r2_plan_input_t *input,
                                                r2_schedule_t *schedule)
{
    levels_t l = {.input = input, .schedule = schedule};
    r2_host_fold_t *fold = &l.fold;
    r2_status_t status = r2_host_fold_init(fold, input, schedule);

    status = R2_OK == status ? r2_levels_layout(&l) : status;
    if (R2_OK == status) {
        status = r2_host_fold_stage(fold, l.pieces.largest_bytes, (uint32_t) l.pieces.size);
    }
    for (uint32_t i = 0; R2_OK == status && i < fold->segments * (uint32_t) l.pieces.size; ++i) {
        const r2_host_part_t part = r2_host_part(fold, &l.pieces, i);
        const uint32_t host = i % (uint32_t) l.pieces.size / part.pieces;

        if (0 < part.bytes) {
            r2_levels_part(&l, &part, r2_host_handler(fold, &part, host));
        }
    }
    r2_layout_fini(&l.pieces);
    r2_host_fold_fini(fold);
    return status;
}

/** A rank of the host with most of them, where another has few: it handles several pieces. */
static r2_cost_shape_t r2_levels_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement)
{
    const uint64_t hosts = topology->host_count, most = placement->most;
    const uint64_t pieces = (most + placement->least - 1) / placement->least;

    return (r2_cost_shape_t){.steps = 2,
                             .messages = hosts * pieces,
                             .local_steps = 1,
                             .local_messages = hosts * (most - 1),
                             .part = 1,
                             .whole = 1};
}

static bool r2_reduce_hierarchical_beats(const r2_plan_input_t *input, uint64_t total_bytes,
                                         const r2_algorithm_t *usual)
{
    return NULL != input->topology && NULL != usual->shape &&
           r2_cost_levels_pay(input->topology, total_bytes, r2_levels_shape, usual->shape);
}

const r2_algorithm_t r2_reduce_hierarchical = {.name = "hierarchical",
                                               .build = r2_reduce_hierarchical_build,
                                               .scratch = r2_host_fold_scratch,
                                               .fits = r2_host_fold_fits,
                                               .beats = r2_reduce_hierarchical_beats};
