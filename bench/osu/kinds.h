/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The collectives: what each rank sends, what has to come out, what crosses the network.
 */
#ifndef R2_BENCH_KINDS_H
#define R2_BENCH_KINDS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum r2_bench_kind_id {
#define R2_BENCH_CALL(Kind, ...) R2_BENCH_##Kind,
#define R2_BENCH_PAIRS(Kind)     R2_BENCH_##Kind,
#include "calls.def"
#undef R2_BENCH_CALL
#undef R2_BENCH_PAIRS
    R2_BENCH_KIND_COUNT,
} r2_bench_kind_id_t;

/** Length of a buffer. */
typedef enum r2_bench_extent {
    R2_BENCH_NOTHING,
    R2_BENCH_ONE,   /* the message size */
    R2_BENCH_SHARE, /* a part of it for each rank; the first ranks have one element more */
    R2_BENCH_EVEN,  /* an equal part of it for each rank, at least one element */
    R2_BENCH_EVENS, /* all these parts */
    R2_BENCH_ALL,   /* the message size for each rank */
} r2_bench_extent_t;

/** What a collective leaves in the receive buffer. */
typedef enum r2_bench_result {
    R2_BENCH_NO_DATA, /* barrier */
    R2_BENCH_SUM,     /* element i is the sum over all ranks of their element first + i */
    R2_BENCH_PREFIX,  /* the sum over the ranks up to this one */
    R2_BENCH_BEFORE,  /* the sum over the ranks before this one; undefined on rank 0 */
    R2_BENCH_CONCAT,  /* the send buffers of all ranks, in rank order */
    R2_BENCH_PARTS,   /* this rank's part of the send buffers of all ranks, in rank order */
    R2_BENCH_OF_ROOT, /* the root's data, or this rank's part of them */
    R2_BENCH_OF_PEER, /* what the other rank of the pair sends */
} r2_bench_result_t;

/** Bytes that the busiest host has to send or to receive at the least. */
typedef enum r2_bench_traffic {
    R2_BENCH_BUS_NONE,
    R2_BENCH_BUS_WHOLE,  /* the vector, where there is another host */
    R2_BENCH_BUS_ONCE,   /* the other hosts' shares of the vector */
    R2_BENCH_BUS_TWICE,  /* reduce-scatter, then allgather: each element crosses twice */
    R2_BENCH_BUS_GATHER, /* the vectors of the ranks of the other hosts */
    R2_BENCH_BUS_PAIRS,  /* a vector for each pair of ranks on different hosts */
} r2_bench_traffic_t;

/** What the two ranks of a pair do. */
typedef enum r2_bench_way {
    R2_BENCH_NO_PAIRS,  /* a collective */
    R2_BENCH_PING_PONG, /* a message to the second, and one back */
    R2_BENCH_ONE_WAY,   /* a window of messages to the second */
    R2_BENCH_BOTH_WAYS, /* a window each way */
} r2_bench_way_t;

/** One collective, or benchmark of point-to-point. */
typedef struct r2_bench_kind {
    r2_bench_kind_id_t id;
    const char *name;         /* as in the name of OSU's program: reduce_scatter */
    const char *title;        /* Reduce_scatter */
    const char *default_type; /* value of -T */
    r2_bench_extent_t send;
    r2_bench_extent_t recv;
    r2_bench_result_t result;
    r2_bench_traffic_t traffic;
    r2_bench_way_t way;
    bool lists;           /* its call takes displacements of a part for each rank */
    bool many_pairs;      /* takes more than two ranks */
    bool rooted;          /* has a root */
    bool send_at_root;    /* only the root sends */
    bool recv_at_root;    /* only the root receives */
    bool same_everywhere; /* all ranks get the same bytes */
} r2_bench_kind_t;

/** One message size as one rank sees it. All numbers are elements. */
typedef struct r2_bench_shape {
    size_t send_count; /* of the send buffer */
    size_t recv_count; /* of the result; what follows it in the receive buffer is undefined */
    size_t recv_space; /* of the receive buffer */
    size_t count;      /* argument of the call */
    size_t first;      /* index of this rank's part in what the others send */
    size_t pieces;     /* that the result consists of */
} r2_bench_shape_t;

/** Elements of a result that come from one range of elements of some ranks, and are summed up. */
typedef struct r2_bench_piece {
    int from_rank;
    int to_rank;  /* the rank after the last */
    size_t first; /* element of their send buffers */
    size_t count;
} r2_bench_piece_t;

/** @return NULL if there is no such collective. */
const r2_bench_kind_t *r2_bench_kind_find(const char *name);

/** @param index below R2_BENCH_KIND_COUNT: in the order of the alphabet. */
const r2_bench_kind_t *r2_bench_kind_at(unsigned index);

/** Does it need a datatype with a sum? */
bool r2_bench_kind_reduces(const r2_bench_kind_t *kind);

/** Elements of the part of @p rank, for R2_BENCH_SHARE and R2_BENCH_EVEN; else the size. */
size_t r2_bench_kind_part(const r2_bench_kind_t *kind, size_t elements, int ranks, int rank);

/** Fills @p shape_p for @p elements of the message size as OSU counts it. */
void r2_bench_kind_shape(const r2_bench_kind_t *kind, size_t elements, int ranks, int rank,
                         int root, r2_bench_shape_t *shape_p);

/** Piece number @p index of the result on @p rank, in the order of the receive buffer. */
void r2_bench_kind_piece(const r2_bench_kind_t *kind, const r2_bench_shape_t *shape, int ranks,
                         int rank, int root, size_t index, r2_bench_piece_t *piece_p);

/**
 * Bytes that the busiest host has to send or to receive in one call, if ranks of one host share
 * what they can.
 * @param hosts among which the ranks are spread evenly; 1: each rank counts as a host.
 */
double r2_bench_kind_bus_bytes(const r2_bench_kind_t *kind, int ranks, int hosts, double bytes);

/** The same as a formula. */
const char *r2_bench_kind_bus_text(const r2_bench_kind_t *kind);

#endif
