/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Data races within a rank: only dependencies order ops, and a send reads until it is complete.
 *
 * Buffers are cut at all ends of regions. Ops are taken in their order; every piece keeps its last
 * writer and the readers since. A reader must wait for the writer, a writer for it and those
 * readers: by transitivity, all pairs of ops are then ordered.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "checker_parts.h"

typedef struct piece {
    uint64_t start;
    uint32_t writer;  /* R2_OP_NONE: none yet */
    uint32_t readers; /* head of a list in race_t.links; R2_OP_NONE: none */
} piece_t;

typedef struct link {
    uint32_t op, next;
} link_t;

typedef struct race {
    const r2_schedule_t *schedule; /* borrowed */
    int32_t rank;
    uint64_t *before;              /* owned; bit matrix: op i waits, directly or not, for op j */
    size_t words;                  /* per op */
    piece_t *pieces[R2_BUF_KINDS]; /* owned */
    size_t piece_count[R2_BUF_KINDS];
    link_t *links; /* owned */
    uint32_t link_count, link_room;
} race_t;

static bool waits_for(const race_t *race, uint32_t op, uint32_t other)
{
    return op == other || 0 != (race->before[op * race->words + other / 64] >> other % 64 & 1);
}

static void order_ops(race_t *race)
{
    const r2_schedule_t *schedule = race->schedule;

    race->words = schedule->op_count / 64 + 1;
    race->before = calloc((size_t) schedule->op_count + 1, race->words * sizeof(uint64_t));
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];
        uint64_t *mine = &race->before[i * race->words];

        for (uint32_t d = 0; d < op->dep_count; ++d) {
            uint32_t dep = schedule->deps[op->first_dep + d];
            const uint64_t *theirs = &race->before[dep * race->words];

            for (size_t w = 0; w <= dep / 64; ++w) {
                mine[w] |= theirs[w];
            }
            mine[dep / 64] |= (uint64_t) 1 << dep % 64;
        }
    }
}

static int compare_pieces(const void *a, const void *b)
{
    uint64_t left = ((const piece_t *) a)->start, right = ((const piece_t *) b)->start;

    return (left > right) - (left < right);
}

static void cut_at(race_t *race, r2_region_t region, uint64_t bytes)
{
    piece_t *pieces = race->pieces[region.buf];
    const uint64_t ends[2] = {region.offset_bytes, region.offset_bytes + bytes};

    for (size_t e = 0; e < 2; ++e) {
        pieces[race->piece_count[region.buf]++] =
            (piece_t){.start = ends[e], .writer = R2_OP_NONE, .readers = R2_OP_NONE};
    }
}

static void cut_buffers(race_t *race)
{
    const r2_schedule_t *schedule = race->schedule;

    for (int b = 0; b < R2_BUF_KINDS; ++b) {
        race->pieces[b] = calloc((size_t) schedule->op_count * 4 + 1, sizeof(piece_t));
    }
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        if (R2_OP_RECV != op->kind) {
            cut_at(race, op->src, op->bytes);
        }
        if (R2_OP_SEND != op->kind) {
            cut_at(race, op->dst, op->bytes);
        }
    }
    for (int b = 0; b < R2_BUF_KINDS; ++b) {
        size_t kept = 0;

        qsort(race->pieces[b], race->piece_count[b], sizeof(piece_t), compare_pieces);
        for (size_t p = 0; p < race->piece_count[b]; ++p) {
            if (0 == kept || race->pieces[b][kept - 1].start != race->pieces[b][p].start) {
                race->pieces[b][kept++] = race->pieces[b][p];
            }
        }
        race->piece_count[b] = kept;
    }
}

static void add_reader(race_t *race, piece_t *piece, uint32_t op)
{
    if (race->link_count == race->link_room) {
        race->link_room = race->link_room * 2 + 256;
        race->links = realloc(race->links, race->link_room * sizeof(*race->links));
    }
    race->links[race->link_count] = (link_t){.op = op, .next = piece->readers};
    piece->readers = race->link_count++;
}

static bool touch(race_t *race, uint32_t op, r2_region_t region, bool writes,
                  r2_check_report_t *report)
{
    const uint64_t end = region.offset_bytes + race->schedule->ops[op].bytes;
    const piece_t key = {.start = region.offset_bytes};
    piece_t *last = race->pieces[region.buf] + race->piece_count[region.buf];
    piece_t *piece = bsearch(&key, race->pieces[region.buf], race->piece_count[region.buf],
                             sizeof(key), compare_pieces);

    for (; piece < last && piece->start < end; ++piece) {
        uint32_t culprit = R2_OP_NONE;

        if (R2_OP_NONE != piece->writer && !waits_for(race, op, piece->writer)) {
            culprit = piece->writer;
        }
        for (uint32_t l = piece->readers; writes && R2_OP_NONE != l; l = race->links[l].next) {
            culprit = waits_for(race, op, race->links[l].op) ? culprit : race->links[l].op;
        }
        if (R2_OP_NONE != culprit) {
            return r2_check_fail(report, R2_FLAW_RACE, "rank %d ops %u and %u, buffer %d at %lu",
                                 race->rank, culprit, op, (int) region.buf,
                                 (unsigned long) piece->start);
        }
        if (writes) {
            piece->writer = op;
            piece->readers = R2_OP_NONE;
        } else {
            add_reader(race, piece, op);
        }
    }
    return true;
}

bool r2_check_races(const r2_check_job_t *job, int32_t rank, r2_check_report_t *report)
{
    race_t race = {.schedule = &job->schedules[rank], .rank = rank};
    bool good = true;

    order_ops(&race);
    cut_buffers(&race);
    for (uint32_t i = 0; good && i < race.schedule->op_count; ++i) {
        const r2_op_t *op = &race.schedule->ops[i];

        /* nobody writes IN: readers of it need no list */
        if (R2_OP_RECV != op->kind && R2_BUF_IN != op->src.buf) {
            good = touch(&race, i, op->src, false, report);
        }
        if (good && R2_OP_SEND != op->kind) {
            good = touch(&race, i, op->dst, true, report);
        }
    }
    free(race.before);
    free(race.links);
    for (int b = 0; b < R2_BUF_KINDS; ++b) {
        free(race.pieces[b]);
    }
    return good;
}
