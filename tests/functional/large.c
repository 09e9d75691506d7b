/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Counts up to 2^31 - 1 and messages of more than 4 GiB. Every byte of every result is checked, and
 * what the process takes beside the buffers is bounded.
 *
 * Usage: large [CASE]. Two ranks need up to 9 GiB together.
 */
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Memory of r2 and Open MPI beside the buffers: staging, parking, windows, shared memory of the
 * transport. */
#define BESIDE_MAX_BYTES (256ull << 20)

#define PIECE_BYTES (1ull << 20)

static int rank, size;
static uint64_t buffer_bytes; /* of this case */

/* Byte `i` of what `who` has: no period that a chunk or a word has. */
static unsigned char value(int who, uint64_t i)
{
    return (unsigned char) ((i * 2654435761u >> 13) + (i >> 32) * 31 + (uint64_t) who * 7);
}

static unsigned char *buffer(uint64_t bytes, int who)
{
    unsigned char *memory = malloc(bytes);

    if (NULL == memory) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    for (uint64_t i = 0; i < bytes; ++i) {
        memory[i] = who < 0 ? 0 : value(who, i);
    }
    buffer_bytes += bytes;
    return memory;
}

static unsigned differs(const char *what, uint64_t i)
{
    fprintf(stderr, "# %s: rank %d: byte %llu is wrong\n", what, rank, (unsigned long long) i);
    return 1;
}

static unsigned expect(const unsigned char *memory, uint64_t bytes, int who, uint64_t from,
                       const char *what)
{
    for (uint64_t i = 0; i < bytes; ++i) {
        if (memory[i] != value(who, from + i)) {
            return differs(what, i);
        }
    }
    return 0;
}

static unsigned run_bcast(const char *name)
{
    const uint64_t bytes = INT_MAX;
    unsigned char *memory = buffer(bytes, 0 == rank ? 0 : -1);
    unsigned failures;

    MPI_Bcast(memory, INT_MAX, MPI_BYTE, 0, MPI_COMM_WORLD);
    failures = expect(memory, bytes, 0, 0, name);
    free(memory);
    return failures;
}

static unsigned run_allreduce(const char *name)
{
    const uint64_t bytes = INT_MAX;
    unsigned char *memory = buffer(bytes, rank);
    unsigned failures = 0;

    /* not MPI_SUM: sums of bytes saturate in op/avx of Open MPI 4.1 */
    MPI_Allreduce(MPI_IN_PLACE, memory, INT_MAX, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < bytes && 0 == failures; ++i) {
        unsigned char all = 0;

        for (int r = 0; r < size; ++r) {
            all ^= value(r, i);
        }
        failures = memory[i] == all ? 0 : differs(name, i);
    }
    free(memory);
    return failures;
}

/* Bytes of a block may be 2^31 - 1, and the displacement of the last more than 2^31. */
static unsigned run_allgather(const char *name)
{
    const uint64_t bytes = INT_MAX;
    unsigned char *memory = buffer(bytes * (uint64_t) size, -1);
    unsigned failures = 0;

    for (uint64_t i = 0; i < bytes; ++i) {
        memory[bytes * (uint64_t) rank + i] = value(rank, i);
    }
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, INT_MAX, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) {
        failures += expect(memory + bytes * (uint64_t) r, bytes, r, 0, name);
    }
    free(memory);
    return failures;
}

/* In place: blocks of rank and peer change places. */
static unsigned run_alltoall(const char *name)
{
    const int count = INT_MAX / 2;
    const uint64_t bytes = (uint64_t) count;
    unsigned char *memory = buffer(bytes * (uint64_t) size, rank);
    unsigned failures = 0;

    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, count, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) {
        failures += expect(memory + bytes * (uint64_t) r, bytes, r, bytes * (uint64_t) rank, name);
    }
    free(memory);
    return failures;
}

/* A small count of a type that is long. */
static unsigned run_type(const char *name)
{
    const int count = 4200;
    const uint64_t bytes = (uint64_t) count * PIECE_BYTES;
    unsigned char *memory = buffer(bytes, 0 == rank ? 0 : -1);
    unsigned failures;
    MPI_Datatype type;

    MPI_Type_contiguous((int) PIECE_BYTES, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(memory, count, type, 0, MPI_COMM_WORLD);
    failures = expect(memory, bytes, 0, 0, name);
    MPI_Type_free(&type);
    free(memory);
    return failures;
}

/* Every other megabyte: extents of more than 4 GiB, packed. */
static unsigned run_holes(const char *name)
{
    const int count = 2100;
    const uint64_t bytes = (uint64_t) count * 2 * PIECE_BYTES;
    unsigned char *memory = buffer(bytes, 0 == rank ? 0 : -1);
    unsigned failures = 0;
    MPI_Datatype part, type;

    MPI_Type_contiguous((int) PIECE_BYTES, MPI_BYTE, &part);
    MPI_Type_create_resized(part, 0, 2 * (MPI_Aint) PIECE_BYTES, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(memory, count, type, 0, MPI_COMM_WORLD);
    for (int k = 0; k < count; ++k) {
        const uint64_t at = (uint64_t) k * 2 * PIECE_BYTES;

        failures += expect(memory + at, PIECE_BYTES, 0, at, name);
        for (uint64_t i = PIECE_BYTES; 0 != rank && i < 2 * PIECE_BYTES && 0 == failures; ++i) {
            failures += 0 == memory[at + i] ? 0 : differs(name, at + i);
        }
    }
    MPI_Type_free(&part);
    MPI_Type_free(&type);
    free(memory);
    return failures;
}

static const struct {
    const char *name;
    unsigned (*run)(const char *name);
} cases[] = {{"bcast", run_bcast},         {"allreduce", run_allreduce}, {"alltoall", run_alltoall},
             {"allgather", run_allgather}, {"type", run_type},           {"holes", run_holes}};

/* The most that this process has had in memory. */
static uint64_t peak_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t) usage.ru_maxrss * 1024;
}

int main(int argc, char **argv)
{
    unsigned failures = 0, runs = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const double start = MPI_Wtime();
        unsigned wrong;

        if (argc > 1 && 0 != strcmp(argv[1], cases[i].name)) {
            continue;
        }
        buffer_bytes = 0;
        wrong = cases[i].run(cases[i].name);
        /* cases are in ascending order of buffers */
        if (peak_bytes() > buffer_bytes + BESIDE_MAX_BYTES) {
            fprintf(stderr, "# %s: rank %d took %llu MiB beside its buffers\n", cases[i].name, rank,
                    (unsigned long long) ((peak_bytes() - buffer_bytes) >> 20));
            ++wrong;
        }
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
        failures += wrong;
        ++runs;
        if (0 == rank) {
            printf("%s %u - %s of %llu MiB (%.1f s, %llu MiB beside)\n",
                   0 == wrong ? "ok" : "not ok", runs, cases[i].name,
                   (unsigned long long) (buffer_bytes >> 20), MPI_Wtime() - start,
                   (unsigned long long) (peak_bytes() - buffer_bytes) >> 20);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0 == failures && runs > 0 ? 0 : 1;
}
