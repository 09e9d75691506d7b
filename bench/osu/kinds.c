/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The table of collectives.
 */
#include "r2_config.h"

#include "kinds.h"

#include <assert.h>
#include <string.h>

static const r2_bench_kind_t kinds[] = {
    {.id = R2_BENCH_ALLGATHER,
     .name = "allgather",
     .title = "Allgather",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_CONCAT,
     .traffic = R2_BENCH_BUS_GATHER,
     .same_everywhere = true},
    {.id = R2_BENCH_ALLGATHERV,
     .name = "allgatherv",
     .title = "Allgatherv",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_CONCAT,
     .traffic = R2_BENCH_BUS_GATHER,
     .same_everywhere = true,
     .lists = true},
    {.id = R2_BENCH_ALLREDUCE,
     .name = "allreduce",
     .title = "Allreduce",
     .default_type = "mpi_float",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_SUM,
     .traffic = R2_BENCH_BUS_TWICE,
     .same_everywhere = true},
    {.id = R2_BENCH_ALLTOALL,
     .name = "alltoall",
     .title = "Alltoall",
     .default_type = "mpi_char",
     .send = R2_BENCH_ALL,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_PARTS,
     .traffic = R2_BENCH_BUS_PAIRS},
    {.id = R2_BENCH_ALLTOALLV,
     .name = "alltoallv",
     .title = "Alltoallv",
     .default_type = "mpi_char",
     .send = R2_BENCH_ALL,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_PARTS,
     .traffic = R2_BENCH_BUS_PAIRS,
     .lists = true},
    {.id = R2_BENCH_ALLTOALLW,
     .name = "alltoallw",
     .title = "Alltoallw",
     .default_type = "mpi_char",
     .send = R2_BENCH_ALL,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_PARTS,
     .traffic = R2_BENCH_BUS_PAIRS,
     .lists = true},
    {.id = R2_BENCH_BARRIER,
     .name = "barrier",
     .title = "Barrier",
     .default_type = "mpi_char"},
    {.id = R2_BENCH_BCAST,
     .name = "bcast",
     .title = "Bcast",
     .default_type = "mpi_char",
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_ROOT,
     .traffic = R2_BENCH_BUS_WHOLE,
     .rooted = true,
     .same_everywhere = true},
    {.id = R2_BENCH_EXSCAN,
     .name = "exscan",
     .title = "Exscan",
     .default_type = "mpi_float",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_BEFORE,
     .traffic = R2_BENCH_BUS_WHOLE},
    {.id = R2_BENCH_GATHER,
     .name = "gather",
     .title = "Gather",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_CONCAT,
     .traffic = R2_BENCH_BUS_GATHER,
     .rooted = true,
     .recv_at_root = true},
    {.id = R2_BENCH_GATHERV,
     .name = "gatherv",
     .title = "Gatherv",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ALL,
     .result = R2_BENCH_CONCAT,
     .traffic = R2_BENCH_BUS_GATHER,
     .rooted = true,
     .recv_at_root = true,
     .lists = true},
    {.id = R2_BENCH_REDUCE,
     .name = "reduce",
     .title = "Reduce",
     .default_type = "mpi_float",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_SUM,
     .traffic = R2_BENCH_BUS_WHOLE,
     .rooted = true,
     .recv_at_root = true},
    {.id = R2_BENCH_REDUCE_SCATTER,
     .name = "reduce_scatter",
     .title = "Reduce_scatter",
     .default_type = "mpi_float",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_SHARE,
     .result = R2_BENCH_SUM,
     .traffic = R2_BENCH_BUS_ONCE},
    {.id = R2_BENCH_REDUCE_SCATTER_BLOCK,
     .name = "reduce_scatter_block",
     .title = "Reduce_scatter_block",
     .default_type = "mpi_float",
     .send = R2_BENCH_EVENS,
     .recv = R2_BENCH_EVEN,
     .result = R2_BENCH_SUM,
     .traffic = R2_BENCH_BUS_ONCE},
    {.id = R2_BENCH_SCAN,
     .name = "scan",
     .title = "Scan",
     .default_type = "mpi_float",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_PREFIX,
     .traffic = R2_BENCH_BUS_WHOLE},
    {.id = R2_BENCH_SCATTER,
     .name = "scatter",
     .title = "Scatter",
     .default_type = "mpi_char",
     .send = R2_BENCH_ALL,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_ROOT,
     .traffic = R2_BENCH_BUS_GATHER,
     .rooted = true,
     .send_at_root = true},
    {.id = R2_BENCH_SCATTERV,
     .name = "scatterv",
     .title = "Scatterv",
     .default_type = "mpi_char",
     .send = R2_BENCH_ALL,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_ROOT,
     .traffic = R2_BENCH_BUS_GATHER,
     .rooted = true,
     .send_at_root = true,
     .lists = true},
    {.id = R2_BENCH_LATENCY,
     .name = "latency",
     .title = "Latency",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_PEER,
     .traffic = R2_BENCH_BUS_WHOLE,
     .way = R2_BENCH_PING_PONG},
    {.id = R2_BENCH_BW,
     .name = "bw",
     .title = "Bandwidth",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_PEER,
     .traffic = R2_BENCH_BUS_WHOLE,
     .way = R2_BENCH_ONE_WAY},
    {.id = R2_BENCH_BIBW,
     .name = "bibw",
     .title = "Bi-Directional Bandwidth",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_PEER,
     .traffic = R2_BENCH_BUS_WHOLE,
     .way = R2_BENCH_BOTH_WAYS},
    {.id = R2_BENCH_MBW_MR,
     .name = "mbw_mr",
     .title = "Multiple Bandwidth / Message Rate",
     .default_type = "mpi_char",
     .send = R2_BENCH_ONE,
     .recv = R2_BENCH_ONE,
     .result = R2_BENCH_OF_PEER,
     .traffic = R2_BENCH_BUS_WHOLE,
     .way = R2_BENCH_ONE_WAY,
     .many_pairs = true},
};

static_assert(sizeof(kinds) / sizeof(kinds[0]) == R2_BENCH_KIND_COUNT, "a row for each collective");

const r2_bench_kind_t *r2_bench_kind_at(unsigned index)
{
    return &kinds[index];
}

const r2_bench_kind_t *r2_bench_kind_find(const char *name)
{
    for (unsigned i = 0; i < R2_BENCH_KIND_COUNT; ++i) {
        if (0 == strcmp(name, kinds[i].name)) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool r2_bench_kind_reduces(const r2_bench_kind_t *kind)
{
    return R2_BENCH_SUM == kind->result || R2_BENCH_PREFIX == kind->result ||
           R2_BENCH_BEFORE == kind->result;
}

/* ---- shapes ---- */

size_t r2_bench_kind_part(const r2_bench_kind_t *kind, size_t elements, int ranks, int rank)
{
    size_t share = elements / (size_t) ranks;

    switch (kind->recv) {
    case R2_BENCH_SHARE:
        return share + ((size_t) rank < elements % (size_t) ranks ? 1 : 0);
    case R2_BENCH_EVEN:
        return share > 0 ? share : 1;
    case R2_BENCH_NOTHING:
    case R2_BENCH_ONE:
    case R2_BENCH_EVENS:
    case R2_BENCH_ALL:
        break;
    }
    return elements;
}

/* Elements of a buffer. @param part of this rank. */
static size_t extent_count(r2_bench_extent_t extent, size_t elements, int ranks, size_t part)
{
    switch (extent) {
    case R2_BENCH_NOTHING:
        return 0;
    case R2_BENCH_ONE:
        return elements;
    case R2_BENCH_SHARE:
    case R2_BENCH_EVEN:
        return part;
    case R2_BENCH_EVENS:
        return part * (size_t) ranks;
    case R2_BENCH_ALL:
        return elements * (size_t) ranks;
    }
    return 0;
}

/* Where the part of a rank begins in a buffer that holds a part for each. */
static size_t part_first(const r2_bench_kind_t *kind, size_t elements, int ranks, int rank)
{
    size_t share = elements / (size_t) ranks;
    size_t more = elements % (size_t) ranks;
    size_t before = (size_t) rank;

    if (R2_BENCH_SHARE == kind->recv) {
        return before * share + (before < more ? before : more);
    }
    if (R2_BENCH_ALL != kind->send && R2_BENCH_EVENS != kind->send) {
        return 0; /* all ranks want the whole */
    }
    return before * r2_bench_kind_part(kind, elements, ranks, rank);
}

/* Does this rank send to the other one of a pair, or receive from it? */
static bool in_pair(const r2_bench_kind_t *kind, int ranks, int rank, bool sends)
{
    int half = ranks / 2;

    if (R2_BENCH_NO_PAIRS == kind->way) {
        return true;
    }
    return rank < 2 * half && (R2_BENCH_ONE_WAY != kind->way || sends == (rank < half));
}

void r2_bench_kind_shape(const r2_bench_kind_t *kind, size_t elements, int ranks, int rank,
                         int root, r2_bench_shape_t *shape_p)
{
    size_t part = r2_bench_kind_part(kind, elements, ranks, rank);
    bool sends = (!kind->send_at_root || rank == root) && in_pair(kind, ranks, rank, true);
    bool receives = (!kind->recv_at_root || rank == root) && in_pair(kind, ranks, rank, false);
    bool in_pieces = R2_BENCH_CONCAT == kind->result || R2_BENCH_PARTS == kind->result;

    shape_p->count = part;
    shape_p->first = part_first(kind, elements, ranks, rank);
    shape_p->send_count = sends ? extent_count(kind->send, elements, ranks, part) : 0;
    shape_p->recv_space = receives ? extent_count(kind->recv, elements, ranks, part) : 0;
    shape_p->recv_count = R2_BENCH_BEFORE == kind->result && 0 == rank ? 0 : shape_p->recv_space;
    shape_p->pieces = 0 == shape_p->recv_count ? 0 : in_pieces ? (size_t) ranks : 1;
}

void r2_bench_kind_piece(const r2_bench_kind_t *kind, const r2_bench_shape_t *shape, int ranks,
                         int rank, int root, size_t index, r2_bench_piece_t *piece_p)
{
    r2_bench_piece_t piece = {.from_rank = 0,
                              .to_rank = ranks,
                              .first = shape->first,
                              .count = shape->recv_count / shape->pieces};

    switch (kind->result) {
    case R2_BENCH_NO_DATA:
    case R2_BENCH_SUM:
        break;
    case R2_BENCH_PREFIX:
        piece.to_rank = rank + 1;
        break;
    case R2_BENCH_BEFORE:
        piece.to_rank = rank;
        break;
    case R2_BENCH_CONCAT:
    case R2_BENCH_PARTS:
        piece.from_rank = (int) index;
        piece.to_rank = piece.from_rank + 1;
        break;
    case R2_BENCH_OF_ROOT:
        piece.from_rank = root;
        piece.to_rank = root + 1;
        break;
    case R2_BENCH_OF_PEER:
        piece.from_rank = rank < ranks / 2 ? rank + ranks / 2 : rank - ranks / 2;
        piece.to_rank = piece.from_rank + 1;
        break;
    }
    *piece_p = piece;
}

/* ---- bus bandwidth ---- */

const char *r2_bench_kind_bus_text(const r2_bench_kind_t *kind)
{
    static const char *const texts[] = {
        [R2_BENCH_BUS_NONE] = "0",
        [R2_BENCH_BUS_WHOLE] = "size",
        [R2_BENCH_BUS_ONCE] = "(h - 1) / h * size",
        [R2_BENCH_BUS_TWICE] = "2 * (h - 1) / h * size",
        [R2_BENCH_BUS_GATHER] = "(h - 1) / h * ranks * size",
        [R2_BENCH_BUS_PAIRS] = "(h - 1) / h * ranks^2 / h * size",
    };

    return texts[kind->traffic];
}

double r2_bench_kind_bus_bytes(const r2_bench_kind_t *kind, int ranks, int hosts, double bytes)
{
    double h = hosts > 1 ? hosts : ranks;
    double others = (h - 1) / h;

    switch (kind->traffic) {
    case R2_BENCH_BUS_NONE:
        break;
    case R2_BENCH_BUS_WHOLE:
        return h > 1 ? bytes : 0;
    case R2_BENCH_BUS_ONCE:
        return others * bytes;
    case R2_BENCH_BUS_TWICE:
        return 2 * others * bytes;
    case R2_BENCH_BUS_GATHER:
        return others * ranks * bytes;
    case R2_BENCH_BUS_PAIRS:
        return others * ranks * ranks / h * bytes;
    }
    return 0;
}
