/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce_scatter(_block) in two levels: within hosts, and between them.
 *
 * Every rank owns its block, cut into segments. On its host it folds what the ranks there
 * contribute; on every other host one rank does, and sends the partial result to the owner, who
 * folds the hosts'. Three ranks, 0 and 1 on host A, 2 on host B; (b) is the block of rank b:
 *
 *            within the host                     between hosts
 *   rank 0   (1) -> 1, folds (0) and half of (2)   half of (2) -> 2, folds (0)
 *   rank 1   (0) -> 0, folds (1) and half of (2)   half of (2) -> 2, folds (1)
 *   rank 2                                       (0) -> 0, (1) -> 1, folds (2)
 *
 * The halves are every other segment: where a host has more ranks than the owner's, they take turns
 * (host_fold.h: pieces). So a host sends each block of other hosts once, and not what each of its
 * ranks contributes, and all of its ranks send over the rails.
 *
 * In place, the result goes to the start of the buffer, over contributions that are still read: it
 * is folded in staging memory and copied out when nobody reads what it overwrites (readers.c).
 * Parts stand in the order segment, block on all ranks.
 *
 * Source: as allreduce_hierarchical.c, first half; shares are the blocks.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/host_fold.h"
#include "plan/readers.h"
#include "plan/thresholds.h"

typedef struct levels {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t blocks;
    r2_host_fold_t fold;
    r2_readers_t readers;
    uint32_t *place;       /* owned; of each rank among those of its host */
    uint32_t slot, folded; /* the own segment: in place, where it is; op after which it is there */
} levels_t;

/** Segment k of a block. Its owner is the handler on its own host. */
static r2_host_part_t r2_levels_part(const levels_t *l, int32_t block, uint32_t k)
{
    const r2_host_fold_t *fold = &l->fold;
    const uint32_t count = r2_by_host_count(&fold->by, l->input->topology->host_of[block]);
    const uint32_t turns = (fold->by.most + count - 1) / count;

    return (r2_host_part_t){
        .piece = l->place[block] * turns + k % turns,
        .pieces = count * turns,
        .segment = k,
        .tag = (k * (uint32_t) l->input->size + (uint32_t) block) * R2_HOST_TAGS,
        .bytes = r2_segment_length(r2_layout_bytes(&l->blocks, block), fold->segment_bytes, k),
        .own = r2_at(r2_input_buf(l->input), l->blocks.start[block] + k * fold->segment_bytes)};
}

/** Folds a segment of this rank's own block. @return the op after which it is complete. */
static uint32_t r2_levels_own(levels_t *l, const r2_host_part_t *part)
{
    r2_host_fold_t *fold = &l->fold;
    const r2_host_partial_t partial = r2_host_fold_own(fold, part);

    if (l->input->in_place) {
        l->slot = r2_host_result_take(fold);
        return r2_host_fold_all(fold, part, &partial, r2_host_slot(fold, l->slot),
                                fold->slot_free[l->slot]);
    }
    return r2_host_fold_all(fold, part, &partial,
                            r2_at(R2_BUF_OUT, part->segment * fold->segment_bytes), R2_OP_NONE);
}

/** Segment of a block of another rank. @return the op that reads this rank's contribution last. */
static uint32_t r2_levels_other(levels_t *l, const r2_host_part_t *part, int32_t owner)
{
    r2_host_partial_t partial;

    if (r2_host_handler(&l->fold, part, l->fold.host) != l->input->rank) {
        return r2_host_contribute(&l->fold, part);
    }
    partial = r2_host_fold_own(&l->fold, part);
    return r2_host_pass(&l->fold, part, &partial, owner);
}

/** Brings a segment of the result to its place, when all that it overwrites has its readers. */
static void r2_levels_finish(levels_t *l, uint32_t k)
{
    const int32_t rank = l->input->rank;
    const uint64_t segment_bytes = l->fold.segment_bytes;
    const uint64_t bytes = r2_segment_length(r2_layout_bytes(&l->blocks, rank), segment_bytes, k);
    uint32_t count;

    if (0 < bytes) {
        count = r2_readers_overwritten(&l->readers, rank, k, bytes, l->folded);
        l->fold.slot_free[l->slot] =
            r2_add_copy(l->schedule, r2_host_slot(&l->fold, l->slot),
                        r2_at(R2_BUF_OUT, k * segment_bytes), bytes, l->readers.waits, count);
    }
}

static void r2_levels_segment(levels_t *l, uint32_t k)
{
    for (int32_t block = 0; block < l->input->size; ++block) {
        const r2_host_part_t part = r2_levels_part(l, block, k);

        if (0 == part.bytes) {
            continue;
        }
        if (block == l->input->rank) {
            l->folded = r2_levels_own(l, &part);
            r2_readers_note(&l->readers, block, k, l->folded);
        } else {
            r2_readers_note(&l->readers, block, k, r2_levels_other(l, &part, block));
        }
    }
    if (l->input->in_place) {
        r2_levels_finish(l, k);
    }
}

static r2_status_t r2_levels_places(levels_t *l)
{
    const r2_by_host_t *by = &l->fold.by;

    l->place = malloc((size_t) l->input->size * sizeof(*l->place));
    for (uint32_t h = 0; NULL != l->place && h < l->input->topology->host_count; ++h) {
        for (uint32_t i = by->first[h]; i < by->first[h + 1]; ++i) {
            l->place[by->ranks[i]] = i - by->first[h];
        }
    }
    return NULL == l->place ? R2_ERR_NO_MEMORY : R2_OK;
}

static r2_status_t r2_reduce_scatter_hierarchical_build(const r2_plan_input_t *input,
                                                        r2_schedule_t *schedule)
{
    levels_t l = {.input = input, .schedule = schedule};
    r2_status_t status = r2_host_fold_init(&l.fold, input, schedule);

    status = R2_OK == status ? r2_layout_blocks(&l.blocks, input) : status;
    status = R2_OK == status ? r2_levels_places(&l) : status;
    if (R2_OK == status) {
        status = r2_host_fold_stage(&l.fold, l.blocks.largest_bytes, (uint32_t) input->size);
    }
    if (R2_OK == status) {
        status = r2_readers_init(&l.readers, &l.blocks, l.fold.segment_bytes, l.fold.segments);
    }
    for (uint32_t k = 0; R2_OK == status && k < l.fold.segments; ++k) {
        r2_levels_segment(&l, k);
    }
    r2_readers_fini(&l.readers);
    r2_layout_fini(&l.blocks);
    r2_host_fold_fini(&l.fold);
    free(l.place);
    return status;
}

/** A rank of the host with most of them: handles as many blocks as the others there. */
static r2_cost_shape_t r2_levels_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement)
{
    const uint64_t ranks = (uint64_t) topology->rank_count, most = placement->most;

    return (r2_cost_shape_t){.steps = 1,
                             .messages = (ranks - placement->least + most - 1) / most,
                             .local_steps = 1,
                             .local_messages = ranks * (most - 1) / most,
                             .part = ranks - placement->least,
                             .whole = ranks};
}

/** Decides between two reduction trees: by layout and length alone. */
static bool r2_reduce_scatter_hierarchical_beats(const r2_plan_input_t *input, uint64_t total_bytes,
                                                 const r2_algorithm_t *usual)
{
    const r2_topology_t *topology = input->topology;
    r2_topology_placement_t placement;
    uint64_t spared; /* blocks that do not cross the rails of a host */

    if (NULL == topology || NULL == usual->shape ||
        R2_OK != r2_topology_placement(topology, &placement)) {
        return false;
    }
    spared = placement.pairs - ((uint64_t) topology->rank_count - placement.least);
    return total_bytes / (uint64_t) input->size * spared >
               r2_threshold_reduce_scatter_spared_bytes &&
           r2_cost_levels_pay(topology, total_bytes, r2_levels_shape, usual->shape);
}

const r2_algorithm_t r2_reduce_scatter_hierarchical = {
    .name = "hierarchical",
    .build = r2_reduce_scatter_hierarchical_build,
    .scratch = r2_host_fold_scratch,
    .fits = r2_host_fold_fits,
    .beats = r2_reduce_scatter_hierarchical_beats};
