/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers and types of the random collectives.
 */
#include "mixed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 8 };

/** One element in memory: ints from its origin. */
static const struct {
    int units, extent, first, second;
} shapes[MIX_CLASS_COUNT] = {[MIX_DENSE] = {1, 1, 0, 0},
                             [MIX_HOLES] = {1, 3, 0, 0},
                             [MIX_BACKWARD] = {1, -2, 0, 0},
                             [MIX_SWAPPED] = {2, 4, 2, 0},
                             [MIX_PAIR] = {2, 2, 0, 1}};

static MPI_Datatype types[MIX_CLASS_COUNT];
static MPI_Op op;

void mix_compose(const int *left, int *right)
{
    const uint32_t a = (uint32_t) left[0], b = (uint32_t) left[1];

    right[1] = (int) (a * (uint32_t) right[1] + b);
    right[0] = (int) (a * (uint32_t) right[0]);
}

/* An operation with state: which types it was made for. */
static void compose_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const mix_class_t class = *type == types[MIX_SWAPPED] ? MIX_SWAPPED : MIX_PAIR;
    const int *from = in;
    int *to = inout;

    for (int i = 0; i < *count; ++i) {
        const int left[2] = {from[shapes[class].first], from[shapes[class].second]};
        int right[2] = {to[shapes[class].first], to[shapes[class].second]};

        mix_compose(left, right);
        to[shapes[class].first] = right[0];
        to[shapes[class].second] = right[1];
        from += shapes[class].extent;
        to += shapes[class].extent;
    }
}

void mix_types_init(void)
{
    for (int c = 0; c < MIX_CLASS_COUNT; ++c) {
        const int lengths[2] = {1, 1};
        const int displs[2] = {shapes[c].first, shapes[c].second};
        MPI_Datatype bare;

        MPI_Type_indexed(shapes[c].units, lengths, displs, MPI_INT, &bare);
        MPI_Type_create_resized(bare, 0, shapes[c].extent * (MPI_Aint) sizeof(int), &types[c]);
        MPI_Type_free(&bare);
        MPI_Type_commit(&types[c]);
    }
    MPI_Op_create(compose_all, 0, &op);
}

void mix_types_free(void)
{
    for (int c = 0; c < MIX_CLASS_COUNT; ++c) {
        MPI_Type_free(&types[c]);
    }
    MPI_Op_free(&op);
}

MPI_Datatype mix_type(mix_class_t class)
{
    return MIX_DENSE == class ? MPI_INT : types[class];
}

MPI_Op mix_op(void)
{
    return op;
}

int mix_class_units(mix_class_t class)
{
    return shapes[class].units;
}

void mix_side_init(mix_side_t *side, mix_class_t class, int block_count, const int *units,
                   bool apart)
{
    const int extent = shapes[class].extent;
    int *memory = side->memory, *expected = side->expected;
    int end = 0;

    memset(side, 0, sizeof(*side));
    side->class = class;
    side->block_count = block_count;
    for (int b = 0; b < block_count; ++b) {
        side->counts[b] = units[b] / shapes[class].units;
        side->displs[b] = end;
        side->byte_displs[b] = end * extent * (int) sizeof(int);
        end += side->counts[b] + (apart ? 1 + b % 2 : 0);
    }
    side->ints = (size_t) (end + 1) * (size_t) abs(extent) + 2 * MARGIN;
    side->origin = extent > 0 ? MARGIN : side->ints - MARGIN;
    side->memory = NULL == memory ? malloc(side->ints * sizeof(int)) : memory;
    side->expected = NULL == expected ? malloc(side->ints * sizeof(int)) : expected;
    if (NULL == side->memory || NULL == side->expected) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    for (size_t i = 0; i < side->ints; ++i) {
        side->memory[i] = side->expected[i] = -1000 - (int) i;
    }
}

void mix_side_fini(mix_side_t *side)
{
    free(side->memory);
    free(side->expected);
    memset(side, 0, sizeof(*side));
}

static size_t place_of(const mix_side_t *side, int block, int unit)
{
    const int units = shapes[side->class].units;
    const int element = side->displs[block] + unit / units;
    const int within = 0 == unit % units ? shapes[side->class].first : shapes[side->class].second;

    return (size_t) ((ptrdiff_t) side->origin + element * shapes[side->class].extent + within);
}

void mix_side_put(mix_side_t *side, int block, int unit, int value)
{
    side->memory[place_of(side, block, unit)] = value;
    side->expected[place_of(side, block, unit)] = value;
}

void mix_side_expect(mix_side_t *side, int block, int unit, int value)
{
    side->expected[place_of(side, block, unit)] = value;
}

void *mix_side_base(const mix_side_t *side)
{
    return NULL == side->memory ? NULL : side->memory + side->origin;
}

bool mix_side_right(const mix_side_t *side)
{
    return 0 == memcmp(side->memory, side->expected, side->ints * sizeof(int));
}
