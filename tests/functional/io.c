/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI-IO: collective and single reads and writes, views with holes, nonblocking, shared file
 * pointers. Every byte is checked. Output: TAP, from rank 0. Arguments: a file that all hosts see;
 * rounds.
 */
#include <string.h>

#include "pattern.h"

#define BLOCK (1 << 20) /* bytes of each rank */
#define PIECE 5000      /* of a view, ranks in turn */

static int me, size;
static unsigned char *out, *in;

static MPI_File opened(const char *path)
{
    MPI_File file;

    if (MPI_SUCCESS != MPI_File_open(MPI_COMM_WORLD, path,
                                     MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                                     MPI_INFO_NULL, &file)) {
        fprintf(stderr, "# %s cannot be opened\n", path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return file;
}

/* Each rank writes its block and reads that of the next. */
static int blocks(const char *path)
{
    MPI_File file = opened(path);
    int next = (me + 1) % size, errors;
    MPI_Request request;

    pattern_fill(out, me, 1, BLOCK);
    MPI_File_write_at_all(file, (MPI_Offset) BLOCK * me, out, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in, 0, BLOCK);
    MPI_File_read_at_all(file, (MPI_Offset) BLOCK * next, in, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    errors = pattern_wrong(in, next, 1, BLOCK);
    memset(in, 0, BLOCK);
    MPI_File_iread_at(file, (MPI_Offset) BLOCK * next, in, BLOCK, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    errors += pattern_wrong(in, next, 1, BLOCK);
    MPI_File_close(&file);
    return errors;
}

/* Pieces of all ranks in turn: two-phase writing exchanges nearly everything. */
static int views(const char *path)
{
    MPI_File file = opened(path);
    int pieces = BLOCK / PIECE, errors = 0;
    MPI_Datatype type;

    MPI_Type_vector(pieces, PIECE, PIECE * size, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    pattern_fill(out, me, 2, (long) pieces * PIECE);
    MPI_File_set_view(file, (MPI_Offset) PIECE * me, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, out, pieces * PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in, 0, (size_t) (pieces * PIECE));
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, in, pieces * PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    errors += pattern_wrong(in, me, 2, (long) pieces * PIECE);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, (MPI_Offset) PIECE * size, in, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int i = 0; i < PIECE; ++i) {
        errors += in[i] != pattern(0, 2, PIECE + i);
    }
    MPI_Type_free(&type);
    MPI_File_close(&file);
    return errors;
}

/* Ranks append in their order through the shared pointer. */
static int ordered(const char *path)
{
    MPI_File file = opened(path);
    int errors = 0;

    for (int i = 0; i < 5; ++i) {
        pattern_fill(out, me, i, PIECE);
        MPI_File_write_ordered(file, out, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int p = 0; p < 5 * size; ++p) {
        MPI_File_read_at(file, (MPI_Offset) PIECE * p, in, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
        errors += pattern_wrong(in, p % size, p / size, PIECE);
    }
    MPI_File_close(&file);
    return errors;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 1, errors = 0, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) {
        fprintf(stderr, "usage: io FILE [ROUNDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    out = pattern_alloc(BLOCK);
    in = pattern_alloc(BLOCK);
    for (int round = 0; round < rounds; ++round) {
        errors += pattern_verdict(++number, "blocks", blocks(argv[1]));
        errors += pattern_verdict(++number, "views with holes", views(argv[1]));
        errors += pattern_verdict(++number, "shared pointer", ordered(argv[1]));
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
