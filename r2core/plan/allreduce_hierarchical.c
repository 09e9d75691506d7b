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
 * order, then hosts in their order, X0 OP (X1 OP ...) on both levels. It depends on which ranks are
 * on which host, not on shares or rails.
 *
 * Staging memory is used in the order segment, share, piece on all ranks, and nothing in it waits
 * for what comes later in this order: no circle of ranks waits for each other.
 *
 * Source: two-level allreduce as in Open MPI coll/han; compare allreduce_direct.c. Deviation: every
 * rank takes part in the exchange between hosts, weighted shares.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/by_host.h"
#include "plan/forecast.h"
#include "plan/ops.h"
#include "plan/shares.h"
#include "plan/thresholds.h"

/* Part of staging memory for each kind of accumulator; the rest holds contributions. */
#define R2_ACC_PART 4u
/* A contribution, a partial result and a result: the least that makes progress. */
#define R2_STAGED_LEAST 3u

enum { TAG_CONTRIBUTE, TAG_PARTIAL, TAG_RESULT, TAG_DELIVER, TAG_KINDS };

/** Places of staging memory, used round robin. */
typedef struct pool {
    uint32_t first, count; /* slots */
    uint64_t next;
} pool_t;

typedef struct tiers {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint32_t host;                /* of this rank */
    uint32_t pieces;              /* of each share */
    r2_by_host_t by;
    r2_layout_t layout;     /* of all pieces */
    uint64_t segment_bytes; /* of the longest piece */
    uint32_t segments;
    uint64_t slot_bytes;
    uint32_t *slot_free; /* owned; the op that frees a slot */
    pool_t slots, partials, results;
} tiers_t;

/** One segment of one piece. */
typedef struct part {
    uint32_t owner, piece; /* host, index within its share */
    uint32_t segment;
    uint32_t tag; /* of the first kind */
    uint64_t offset_bytes, bytes;
} part_t;

/** What a fold takes in: a message, or memory of this rank. */
typedef struct source {
    int32_t peer; /* -1: own */
    r2_region_t own;
    uint32_t ready; /* own: op to wait for */
} source_t;

static int32_t r2_handler(const tiers_t *t, uint32_t host, uint32_t piece)
{
    return r2_by_host_handler(&t->by, host, piece, t->pieces);
}

static uint32_t r2_pool_take(pool_t *pool)
{
    return pool->first + (uint32_t) (pool->next++ % pool->count);
}

static r2_region_t r2_slot_region(const tiers_t *t, uint32_t slot)
{
    return r2_at(R2_BUF_SCRATCH, slot * t->slot_bytes);
}

static r2_msg_t r2_message(const part_t *part, int32_t peer, uint32_t kind)
{
    return (r2_msg_t){.peer = peer,
                      .tag = part->tag + kind,
                      .order = part->segment,
                      .bytes = part->bytes};
}

/** Joins one more source, left of what is in `acc`. */
static uint32_t r2_fold_source(tiers_t *t, const part_t *part, const source_t *source,
                               uint32_t kind, r2_region_t acc, uint32_t folded)
{
    uint32_t slot, arrived;

    if (source->peer < 0) {
        return r2_add_reduce(t->schedule, source->own, acc, part->bytes,
                             R2_AFTER(folded, source->ready));
    }
    slot = r2_pool_take(&t->slots);
    arrived = r2_add_recv(t->schedule, r2_message(part, source->peer, kind),
                          r2_slot_region(t, slot), R2_AFTER(t->slot_free[slot]));
    t->slot_free[slot] = r2_add_reduce_slot(t->schedule, r2_slot_region(t, slot), acc, part->bytes,
                                            R2_AFTER(folded, arrived));
    return t->slot_free[slot];
}

static uint32_t r2_fold_first(tiers_t *t, const part_t *part, const source_t *source, uint32_t kind,
                              r2_region_t acc, uint32_t acc_free)
{
    if (source->peer < 0) {
        return r2_add_copy(t->schedule, source->own, acc, part->bytes,
                           R2_AFTER(acc_free, source->ready));
    }
    return r2_add_recv(t->schedule, r2_message(part, source->peer, kind), acc, R2_AFTER(acc_free));
}

/** This host's contribution. @param partial_p own memory that holds it, and from which op on. */
static void r2_fold_host(tiers_t *t, const part_t *part, source_t *partial_p, uint32_t *slot_p)
{
    const uint32_t first = t->by.first[t->host];
    const uint32_t count = r2_by_host_count(&t->by, t->host);
    const r2_region_t own = r2_at(r2_input_buf(t->input), part->offset_bytes);
    uint32_t folded = R2_OP_NONE;

    *partial_p = (source_t){.peer = -1, .own = own, .ready = R2_OP_NONE};
    *slot_p = R2_OP_NONE;
    if (1 == count) {
        return;
    }
    *slot_p = r2_pool_take(&t->partials);
    partial_p->own = r2_slot_region(t, *slot_p);
    for (uint32_t i = count; i-- > 0;) {
        const int32_t rank = t->by.ranks[first + i];
        const source_t source = {
            .peer = rank == t->input->rank ? -1 : rank, .own = own, .ready = R2_OP_NONE};

        folded = count - 1 == i
                     ? r2_fold_first(t, part, &source, TAG_CONTRIBUTE, partial_p->own,
                                     t->slot_free[*slot_p])
                     : r2_fold_source(t, part, &source, TAG_CONTRIBUTE, partial_p->own, folded);
    }
    partial_p->ready = folded;
}

/** Folds all hosts' partial results. @return the op after which the result is in OUT. */
static uint32_t r2_fold_all(tiers_t *t, const part_t *part, const source_t *partial,
                            uint32_t partial_slot)
{
    const uint32_t hosts = t->input->topology->host_count;
    const r2_region_t out = r2_at(R2_BUF_OUT, part->offset_bytes);
    const uint32_t slot = t->input->in_place ? r2_pool_take(&t->results) : R2_OP_NONE;
    const r2_region_t acc = t->input->in_place ? r2_slot_region(t, slot) : out;
    uint32_t folded = R2_OP_NONE;

    for (uint32_t h = hosts; h-- > 0;) {
        const source_t other = {.peer = r2_handler(t, h, part->piece)};
        const source_t *source = h == t->host ? partial : &other;

        folded = hosts - 1 == h
                     ? r2_fold_first(t, part, source, TAG_PARTIAL, acc,
                                     t->input->in_place ? t->slot_free[slot] : R2_OP_NONE)
                     : r2_fold_source(t, part, source, TAG_PARTIAL, acc, folded);
    }
    if (R2_OP_NONE != partial_slot) {
        t->slot_free[partial_slot] = folded;
    }
    if (t->input->in_place) {
        folded = r2_add_copy(t->schedule, acc, out, part->bytes, R2_AFTER(folded));
        t->slot_free[slot] = folded;
    }
    for (uint32_t h = 0; h < hosts; ++h) {
        if (h != t->host) {
            r2_add_send(t->schedule, r2_message(part, r2_handler(t, h, part->piece), TAG_RESULT),
                        out, R2_AFTER(folded));
        }
    }
    return folded;
}

/** Sends this host's part to the owner and gets the result. @return op of the result. */
static uint32_t r2_pass_partial(tiers_t *t, const part_t *part, const source_t *partial,
                                uint32_t partial_slot)
{
    const int32_t owner = r2_handler(t, part->owner, part->piece);
    const uint32_t sent = r2_add_send(t->schedule, r2_message(part, owner, TAG_PARTIAL),
                                      partial->own, R2_AFTER(partial->ready));
    uint32_t reader = sent;

    if (R2_OP_NONE != partial_slot) {
        t->slot_free[partial_slot] = sent;
        reader = partial->ready;
    }
    return r2_add_recv(t->schedule, r2_message(part, owner, TAG_RESULT),
                       r2_at(R2_BUF_OUT, part->offset_bytes),
                       R2_AFTER(t->input->in_place ? reader : R2_OP_NONE));
}

static void r2_handle(tiers_t *t, const part_t *part)
{
    source_t partial;
    uint32_t slot, result;

    r2_fold_host(t, part, &partial, &slot);
    result = part->owner == t->host ? r2_fold_all(t, part, &partial, slot)
                                    : r2_pass_partial(t, part, &partial, slot);
    for (uint32_t i = t->by.first[t->host]; i < t->by.first[t->host + 1]; ++i) {
        if (t->by.ranks[i] != t->input->rank) {
            r2_add_send(t->schedule, r2_message(part, t->by.ranks[i], TAG_DELIVER),
                        r2_at(R2_BUF_OUT, part->offset_bytes), R2_AFTER(result));
        }
    }
}

/** What a rank does for a piece that another rank of its host handles. */
static void r2_take_part(tiers_t *t, const part_t *part, int32_t peer)
{
    const uint32_t sent =
        r2_add_send(t->schedule, r2_message(part, peer, TAG_CONTRIBUTE),
                    r2_at(r2_input_buf(t->input), part->offset_bytes), R2_AT_ONCE);

    r2_add_recv(t->schedule, r2_message(part, peer, TAG_DELIVER),
                r2_at(R2_BUF_OUT, part->offset_bytes),
                R2_AFTER(t->input->in_place ? sent : R2_OP_NONE));
}

static void r2_tiers_ops(tiers_t *t)
{
    const uint32_t blocks = t->input->topology->host_count * t->pieces;

    for (uint32_t i = 0; i < t->segments * blocks; ++i) {
        const uint32_t k = i / blocks, block = i % blocks;
        const uint64_t piece_bytes = r2_layout_bytes(&t->layout, (int32_t) block);
        const uint64_t segment_bytes = r2_segment_bytes_among(
            t->input, piece_bytes, t->layout.largest_bytes, t->segment_bytes);
        const part_t part = {.owner = block / t->pieces,
                             .piece = block % t->pieces,
                             .segment = k,
                             .tag = i * TAG_KINDS,
                             .offset_bytes = t->layout.start[block] + k * segment_bytes,
                             .bytes = r2_segment_length(piece_bytes, segment_bytes, k)};
        const int32_t rank = r2_handler(t, t->host, part.piece);

        if (0 == part.bytes) {
            continue;
        }
        if (rank == t->input->rank) {
            r2_handle(t, &part);
        } else {
            r2_take_part(t, &part, rank);
        }
    }
}

/** Pieces of all hosts' shares; their lengths are part of the plan. */
static r2_status_t r2_tiers_layout(tiers_t *t)
{
    const r2_topology_t *topology = t->input->topology;
    const uint32_t blocks = topology->host_count * t->pieces;
    uint64_t *weights = malloc(blocks * sizeof(*weights));
    r2_classes_t classes;
    r2_shares_t shares = {.weight = NULL};
    r2_status_t status = r2_classes_init(&classes, topology, R2_MEMBERS_HOSTS);

    if (R2_OK == status) {
        status = NULL == weights ? R2_ERR_NO_MEMORY : r2_shares_solve(&shares, &classes);
    }
    if (R2_OK == status) {
        for (uint32_t b = 0; b < blocks; ++b) {
            weights[b] = shares.weight[b / t->pieces] / t->pieces;
        }
        status = r2_layout_weighted(&t->layout, (int32_t) blocks, weights, t->input->count,
                                    t->input->element_bytes);
    }
    for (uint32_t b = 0; R2_OK == status && b < blocks; ++b) {
        t->schedule->digest =
            r2_digest_fold(t->schedule->digest, r2_layout_bytes(&t->layout, (int32_t) b));
    }
    r2_shares_fini(&shares);
    r2_classes_fini(&classes);
    free(weights);
    return status;
}

static r2_status_t r2_tiers_staging(tiers_t *t)
{
    const uint64_t unit = t->input->element_bytes;
    const uint64_t most = t->input->scratch_bytes / R2_STAGED_LEAST / R2_SLOT_ALIGN * R2_SLOT_ALIGN;
    uint64_t segment = r2_segment_bytes_exchanged(t->input, t->layout.largest_bytes);
    uint32_t total, part;

    segment = r2_max(r2_min(segment, most / unit * unit), unit);
    t->segment_bytes = segment;
    t->segments = r2_segment_count(t->layout.largest_bytes, segment);
    t->slot_bytes = r2_round_up(segment, R2_SLOT_ALIGN);
    /* no more than all segments can use */
    total = (uint32_t) r2_min(t->input->scratch_bytes / t->slot_bytes,
                              (uint64_t) t->segments * t->layout.size *
                                      ((uint32_t) t->input->size + 2) +
                                  R2_STAGED_LEAST);
    total = r2_max(total, R2_STAGED_LEAST);
    part = r2_max(total / R2_ACC_PART, 1u);
    t->partials = (pool_t){.first = 0, .count = part};
    t->results = (pool_t){.first = part, .count = part};
    t->slots = (pool_t){.first = 2 * part, .count = total - 2 * part};
    t->slot_free = malloc(total * sizeof(*t->slot_free));
    for (uint32_t i = 0; NULL != t->slot_free && i < total; ++i) {
        t->slot_free[i] = R2_OP_NONE;
    }
    t->schedule->scratch_bytes = total * t->slot_bytes;
    r2_plan_note_message(t->schedule, segment);
    return NULL == t->slot_free ? R2_ERR_NO_MEMORY : R2_OK;
}

static uint64_t r2_allreduce_hierarchical_scratch(const r2_plan_input_t *input)
{
    return R2_STAGED_LEAST * r2_round_up(input->element_bytes, R2_SLOT_ALIGN);
}

bool r2_allreduce_hierarchical_ordered(const r2_plan_input_t *input)
{
    for (int32_t r = 1; r < input->size; ++r) {
        if (input->topology->host_of[r] < input->topology->host_of[r - 1]) {
            return false;
        }
    }
    return true;
}

static r2_status_t r2_allreduce_hierarchical_build(const r2_plan_input_t *input,
                                                   r2_schedule_t *schedule)
{
    tiers_t t = {.input = input, .schedule = schedule};
    r2_status_t status = r2_by_host_init(&t.by, input->topology);

    t.host = input->topology->host_of[input->rank];
    t.pieces = t.by.most;
    status = R2_OK == status ? r2_tiers_layout(&t) : status;
    status = R2_OK == status ? r2_tiers_staging(&t) : status;
    if (R2_OK == status) {
        r2_tiers_ops(&t);
    }
    r2_layout_fini(&t.layout);
    free(t.slot_free);
    r2_by_host_fini(&t.by);
    return status;
}

static bool r2_allreduce_hierarchical_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology &&
           (input->commutative || r2_allreduce_hierarchical_ordered(input));
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
                                                  .scratch = r2_allreduce_hierarchical_scratch,
                                                  .fits = r2_allreduce_hierarchical_fits,
                                                  .beats = r2_beats,
                                                  .forecast = r2_allreduce_hierarchical_forecast};
