/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI one-sided: windows of every kind, all ways to synchronize, put, get and accumulate of lengths
 * around every limit, contention. Every byte is checked. Output: TAP, from rank 0. Argument:
 * rounds.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pattern.h"

#define SLOT (1 << 20) /* bytes of the window for each rank that writes */

static const int lengths[] = {1, 8, 4096, 8192, 16383, 16384, 16385, 65536, 300000, SLOT};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static int me, size;

typedef enum { ALLOCATED, CREATED, DYNAMIC, KINDS } window_kind_t;

/** A window of `size` slots at each rank. */
typedef struct window {
    window_kind_t kind;
    unsigned char *memory;
    MPI_Aint *at; /* of each rank: displacement of its memory */
    MPI_Win win;
} window_t;

static void window_open(window_t *window, window_kind_t kind)
{
    MPI_Aint bytes = (MPI_Aint) SLOT * size, mine = 0;

    window->kind = kind;
    window->at = pattern_alloc(sizeof(MPI_Aint) * (size_t) size);
    if (ALLOCATED == kind) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->memory, &window->win);
    } else {
        window->memory = pattern_alloc((size_t) bytes);
    }
    if (CREATED == kind) {
        MPI_Win_create(window->memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->win);
    }
    if (DYNAMIC == kind) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window->win);
        MPI_Win_attach(window->win, window->memory, bytes);
        MPI_Get_address(window->memory, &mine);
    }
    MPI_Allgather(&mine, 1, MPI_AINT, window->at, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void window_close(window_t *window)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (DYNAMIC == window->kind) {
        MPI_Win_detach(window->win, window->memory);
    }
    MPI_Win_free(&window->win);
    if (ALLOCATED != window->kind) {
        free(window->memory);
    }
    free(window->at);
}

/* Writes into the own slot of the rank to the right, reads the own slot of the one to the left. */
static void move(const window_t *window, int bytes, const void *out, void *in, int what)
{
    int right = (me + 1) % size, left = (me + size - 1) % size;

    if (0 != (what & 1)) {
        MPI_Put(out, bytes, MPI_BYTE, right, window->at[right] + (MPI_Aint) SLOT * me, bytes,
                MPI_BYTE, window->win);
    }
    if (0 != (what & 2)) {
        MPI_Get(in, bytes, MPI_BYTE, left, window->at[left] + (MPI_Aint) SLOT * left, bytes,
                MPI_BYTE, window->win);
    }
}

static void sync_fence(const window_t *window, int bytes, const void *out, void *in)
{
    MPI_Win_fence(0, window->win);
    move(window, bytes, out, in, 3);
    MPI_Win_fence(0, window->win);
}

static void sync_pscw(const window_t *window, int bytes, const void *out, void *in)
{
    int near[2] = {(me + 1) % size, (me + size - 1) % size};
    MPI_Group all, group;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, near[0] == near[1] ? 1 : 2, near, &group);
    MPI_Win_post(group, 0, window->win);
    MPI_Win_start(group, 0, window->win);
    move(window, bytes, out, in, 3);
    MPI_Win_complete(window->win);
    MPI_Win_wait(window->win);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
}

static void sync_lock(const window_t *window, int bytes, const void *out, void *in)
{
    int right = (me + 1) % size, left = (me + size - 1) % size;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window->win);
    move(window, bytes, out, in, 1);
    MPI_Win_unlock(right, window->win);
    MPI_Win_lock(MPI_LOCK_SHARED, left, 0, window->win);
    move(window, bytes, out, in, 2);
    MPI_Win_unlock(left, window->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sync_flush(const window_t *window, int bytes, const void *out, void *in)
{
    MPI_Request requests[2];
    int right = (me + 1) % size, left = (me + size - 1) % size;

    MPI_Win_lock_all(0, window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rput(out, bytes, MPI_BYTE, right, window->at[right] + (MPI_Aint) SLOT * me, bytes, MPI_BYTE,
             window->win, &requests[0]);
    MPI_Rget(in, bytes, MPI_BYTE, left, window->at[left] + (MPI_Aint) SLOT * left, bytes, MPI_BYTE,
             window->win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(window->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window->win);
}

typedef void (*sync_fn_t)(const window_t *window, int bytes, const void *out, void *in);

/* Puts and gets of every length with one way to synchronize. */
static int moves(window_kind_t kind, sync_fn_t sync)
{
    int left = (me + size - 1) % size, errors = 0;
    unsigned char *out = pattern_alloc(SLOT), *in = pattern_alloc(SLOT + 1);
    window_t window;

    window_open(&window, kind);
    for (unsigned i = 0; i < LENGTHS; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, window.win);
        pattern_fill(window.memory + (long) SLOT * me, me, 90 + (int) i, lengths[i]);
        memset(window.memory + (long) SLOT * left, 0x55, SLOT);
        MPI_Win_unlock(me, window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        pattern_fill(out, me, (int) i, lengths[i]);
        memset(in, 0xa5, (size_t) lengths[i] + 1);
        sync(&window, lengths[i], out, in);
        MPI_Win_lock(MPI_LOCK_SHARED, me, 0, window.win);
        errors += pattern_wrong(window.memory + (long) SLOT * left, left, (int) i, lengths[i]);
        errors += lengths[i] < SLOT && 0x55 != window.memory[(long) SLOT * left + lengths[i]];
        MPI_Win_unlock(me, window.win);
        errors += pattern_wrong(in, left, 90 + (int) i, lengths[i]) + (0xa5 != in[lengths[i]]);
        memset(out, 0x5a, (size_t) lengths[i]); /* the buffer is ours again */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    window_close(&window);
    free(out);
    free(in);
    return errors;
}

/* A column of a matrix at the right neighbour. */
static int types(void)
{
    enum { ROWS = 20000 };
    int right = (me + 1) % size, left = (me + size - 1) % size, errors = 0;
    int *values = pattern_alloc(sizeof(int) * ROWS), *matrix;
    MPI_Datatype column;
    MPI_Win win;

    MPI_Win_allocate(sizeof(int) * 3 * ROWS, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &matrix,
                     &win);
    MPI_Type_vector(ROWS, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROWS; ++i) {
        values[i] = me * 1000003 + i;
    }
    memset(matrix, 0, sizeof(int) * 3 * ROWS);
    MPI_Win_fence(0, win);
    MPI_Put(values, ROWS, MPI_INT, right, 1, 1, column, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 3 * ROWS; ++i) {
        errors += matrix[i] != (1 == i % 3 ? left * 1000003 + i / 3 : 0);
    }
    MPI_Win_fence(0, win);
    MPI_Type_free(&column);
    MPI_Win_free(&win);
    free(values);
    return errors;
}

/* Everybody adds to everybody: short and long vectors, integers and doubles. */
static int accumulates(void)
{
    enum { COUNT = 30000 };
    int errors = 0;
    int64_t *sums;
    double *ones = pattern_alloc(sizeof(double) * COUNT), *floats;
    int64_t *mine = pattern_alloc(sizeof(int64_t) * COUNT);
    MPI_Win win, float_win;

    MPI_Win_allocate(sizeof(int64_t) * COUNT, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &sums,
                     &win);
    MPI_Win_allocate(sizeof(double) * COUNT, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &floats,
                     &float_win);
    for (int i = 0; i < COUNT; ++i) {
        mine[i] = (int64_t) me * i + 1;
        ones[i] = i;
        sums[i] = 0;
        floats[i] = 0.5;
    }
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, float_win);
    for (int p = 0; p < size; ++p) {
        MPI_Accumulate(mine, COUNT, MPI_INT64_T, p, 0, COUNT, MPI_INT64_T, MPI_SUM, win);
        MPI_Accumulate(ones, COUNT, MPI_DOUBLE, p, 0, COUNT, MPI_DOUBLE, MPI_SUM, float_win);
        MPI_Accumulate(ones, 1, MPI_DOUBLE, p, 1, 1, MPI_DOUBLE, MPI_MAX, float_win);
    }
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, float_win);
    for (int i = 0; i < COUNT; ++i) {
        errors += sums[i] != (int64_t) size * (size - 1) / 2 * i + size;
        errors += 1 != i && floats[i] != 0.5 + (double) i * size;
    }
    MPI_Win_free(&win);
    MPI_Win_free(&float_win);
    free(mine);
    free(ones);
    return errors;
}

/* One operation on `count` elements of every rank by every rank, in memory that was there before
 * the window. */
static int operation(MPI_Datatype type, MPI_Op op, const char *name, int count)
{
    int64_t here[4] = {0}, mine[4] = {0}, wanted[4] = {0};
    int bytes, wrong;
    MPI_Win win;

    MPI_Type_size(type, &bytes);
    memset(here, 1, sizeof(here));
    for (int i = 0; i < count * bytes; ++i) {
        ((unsigned char *) mine)[i] = (unsigned char) (me % 3 + i % 2);
    }
    MPI_Allreduce(mine, wanted, count, type, op, MPI_COMM_WORLD);
    MPI_Reduce_local(here, wanted, count, type, op);
    MPI_Win_create(here, sizeof(here), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    for (int p = 0; p < size; ++p) {
        MPI_Accumulate(mine, count, type, p, 0, count, type, op, win);
    }
    MPI_Win_fence(0, win);
    wrong = 0 != memcmp(here, wanted, (size_t) (count * bytes));
    if (wrong) {
        fprintf(stderr, "# %s, %d bytes, %d elements: wrong\n", name, bytes, count);
    }
    MPI_Win_free(&win);
    return wrong;
}

/* Also what no transport has as an atomic operation, on one element: osc/rdma has to find another
 * way. */
static int operations(void)
{
    const MPI_Datatype types[] = {MPI_INT16_T, MPI_INT32_T, MPI_INT64_T};
    const struct {
        MPI_Op op;
        const char *name;
    } ops[] = {{MPI_SUM, "sum"},   {MPI_PROD, "prod"}, {MPI_MAX, "max"},   {MPI_MIN, "min"},
               {MPI_BAND, "band"}, {MPI_BOR, "bor"},   {MPI_BXOR, "bxor"}, {MPI_LAND, "land"},
               {MPI_LOR, "lor"},   {MPI_LXOR, "lxor"}};
    int errors = 0;

    for (unsigned t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        for (unsigned o = 0; o < sizeof(ops) / sizeof(ops[0]); ++o) {
            errors += operation(types[t], ops[o].op, ops[o].name, 1);
            errors += operation(types[t], ops[o].op, ops[o].name, 3);
        }
    }
    return errors;
}

/* Counters of all widths that everybody increments: each value is handed out once. */
static int counters(void)
{
    enum { TURNS = 100 };
    int errors = 0, one = 1;
    int64_t *shared, got, big = 1ll << 33, seen = 0, sum, swapped, compare;
    int *narrow, last = -1, old;
    MPI_Win win, narrow_win;

    MPI_Win_allocate(2 * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &shared,
                     &win);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &narrow, &narrow_win);
    shared[0] = shared[1] = 0;
    *narrow = 0;
    MPI_Win_lock_all(0, win);
    MPI_Win_lock_all(0, narrow_win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TURNS; ++i) {
        MPI_Fetch_and_op(&big, &got, MPI_INT64_T, 0, 0, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &old, MPI_INT, size - 1, 0, MPI_SUM, narrow_win);
        MPI_Win_flush(0, win);
        MPI_Win_flush(size - 1, narrow_win);
        errors += 0 != got % big || old <= last;
        seen += got / big;
        last = old;
        do { /* a counter made of compare and swap */
            MPI_Fetch_and_op(NULL, &compare, MPI_INT64_T, 0, 1, MPI_NO_OP, win);
            MPI_Win_flush(0, win);
            got = compare + 1;
            MPI_Compare_and_swap(&got, &compare, &swapped, MPI_INT64_T, 0, 1, win);
            MPI_Win_flush(0, win);
        } while (swapped != compare);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_unlock_all(narrow_win);
    MPI_Allreduce(&seen, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    errors += sum != (int64_t) TURNS * size * (TURNS * size - 1) / 2;
    MPI_Win_lock_all(0, win);
    errors += 0 == me && (shared[0] != big * TURNS * size || shared[1] != TURNS * size);
    MPI_Win_unlock_all(win);
    errors += size - 1 == me && *narrow != TURNS * size;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Win_free(&narrow_win);
    return errors;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        window_kind_t kind;
        sync_fn_t sync;
    } cases[] = {
        {"allocated window, fence", ALLOCATED, sync_fence},
        {"allocated window, post and start", ALLOCATED, sync_pscw},
        {"allocated window, lock", ALLOCATED, sync_lock},
        {"allocated window, flush", ALLOCATED, sync_flush},
        {"created window, fence", CREATED, sync_fence},
        {"created window, lock", CREATED, sync_lock},
        {"dynamic window, flush", DYNAMIC, sync_flush},
    };
    int rounds = argc > 1 ? atoi(argv[1]) : 1, errors = 0, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; ++round) {
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
            errors += pattern_verdict(++number, cases[i].name, moves(cases[i].kind, cases[i].sync));
        }
        errors += pattern_verdict(++number, "derived datatypes", types());
        errors += pattern_verdict(++number, "accumulate", accumulates());
        errors += pattern_verdict(++number, "operations", operations());
        errors += pattern_verdict(++number, "counters", counters());
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
