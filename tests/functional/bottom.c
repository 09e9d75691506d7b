/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_BOTTOM: datatypes of absolute addresses, in two pieces, the later one first (MPI-3.1 4.1.12).
 * Output: TAP, from rank 0.
 */
#include <string.h>

#include "pattern.h"

enum { HEAD = 1000, TAIL = 3001, BYTES = HEAD + TAIL };

/** A block of BYTES bytes: its first HEAD bytes at `head`, the rest at `tail`. */
typedef struct block {
    char tail[TAIL], gap[7], head[HEAD];
    MPI_Datatype type;
} block_t;

static int me, size;

static void block_init(block_t *block)
{
    int lengths[] = {HEAD, TAIL};
    MPI_Aint where[2];

    MPI_Get_address(block->head, &where[0]);
    MPI_Get_address(block->tail, &where[1]);
    MPI_Type_create_hindexed(2, lengths, where, MPI_BYTE, &block->type);
    MPI_Type_commit(&block->type);
    memset(block->gap, 0x5a, sizeof(block->gap));
}

static void block_fill(block_t *block, int from, int tag)
{
    char bytes[BYTES];

    pattern_fill(bytes, from, tag, BYTES);
    memcpy(block->head, bytes, HEAD);
    memcpy(block->tail, bytes + HEAD, TAIL);
}

static int block_wrong(const block_t *block, int from, int tag)
{
    char bytes[BYTES];
    int wrong = 0;

    memcpy(bytes, block->head, HEAD);
    memcpy(bytes + HEAD, block->tail, TAIL);
    for (size_t i = 0; i < sizeof(block->gap); ++i) {
        wrong |= 0x5a != block->gap[i];
    }
    return wrong | pattern_wrong(bytes, from, tag, BYTES);
}

static int bcasts(block_t *block)
{
    MPI_Request request;
    int errors = 0;

    for (int root = 0; root < size; ++root) {
        block_fill(block, me, root);
        MPI_Bcast(MPI_BOTTOM, 1, block->type, root, MPI_COMM_WORLD);
        errors += block_wrong(block, root, root);
        block_fill(block, me, root + 50);
        MPI_Ibcast(MPI_BOTTOM, 1, block->type, root, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        errors += block_wrong(block, root, root + 50);
    }
    return errors;
}

/* From scattered bytes to plain ones, and back. */
static int gathers(block_t *block)
{
    char *all = pattern_alloc((size_t) size * BYTES);
    int errors = 0;

    for (int root = 0; root < size; ++root) {
        block_fill(block, me, 1);
        MPI_Gather(MPI_BOTTOM, 1, block->type, all, BYTES, MPI_BYTE, root, MPI_COMM_WORLD);
        for (int from = 0; me == root && from < size; ++from) {
            errors += pattern_wrong(all + (size_t) from * BYTES, from, 1, BYTES);
        }
        for (int to = 0; to < size; ++to) {
            pattern_fill(all + (size_t) to * BYTES, to, 2, BYTES);
        }
        MPI_Scatter(all, BYTES, MPI_BYTE, MPI_BOTTOM, 1, block->type, root, MPI_COMM_WORLD);
        errors += block_wrong(block, me, 2);
    }
    block_fill(block, me, 3);
    MPI_Allgather(MPI_BOTTOM, 1, block->type, all, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < size; ++from) {
        errors += pattern_wrong(all + (size_t) from * BYTES, from, 3, BYTES);
    }
    free(all);
    return errors;
}

/* Each peer has a type of its own: what MPI_Alltoallw is for. */
static int exchanges(void)
{
    block_t *out = pattern_alloc((size_t) size * sizeof(*out));
    block_t *in = pattern_alloc((size_t) size * sizeof(*in));
    int *counts = pattern_alloc((size_t) size * sizeof(*counts));
    int *offsets = pattern_alloc((size_t) size * sizeof(*offsets));
    MPI_Datatype *out_types = pattern_alloc((size_t) size * sizeof(MPI_Datatype));
    MPI_Datatype *in_types = pattern_alloc((size_t) size * sizeof(MPI_Datatype));
    int errors = 0;

    for (int peer = 0; peer < size; ++peer) {
        block_init(&out[peer]);
        block_init(&in[peer]);
        block_fill(&out[peer], me, peer);
        out_types[peer] = out[peer].type;
        in_types[peer] = in[peer].type;
        counts[peer] = 1;
        offsets[peer] = 0;
    }
    MPI_Alltoallw(MPI_BOTTOM, counts, offsets, out_types, MPI_BOTTOM, counts, offsets, in_types,
                  MPI_COMM_WORLD);
    for (int peer = 0; peer < size; ++peer) {
        errors += block_wrong(&in[peer], peer, me) + block_wrong(&out[peer], me, peer);
        MPI_Type_free(&out[peer].type);
        MPI_Type_free(&in[peer].type);
    }
    free(in_types);
    free(out_types);
    free(offsets);
    free(counts);
    free(in);
    free(out);
    return errors;
}

int main(int argc, char **argv)
{
    int errors = 0;
    block_t block;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    block_init(&block);
    errors += pattern_verdict(1, "bcast", bcasts(&block));
    errors += pattern_verdict(2, "gather, scatter, allgather", gathers(&block));
    errors += pattern_verdict(3, "alltoallw", exchanges());
    MPI_Type_free(&block.type);
    if (0 == me) {
        printf("1..3\n");
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
