/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * With coll_r2_async_progress the service thread runs predefined operations; operations of the user
 * it never runs. Output: TAP, from rank 0.
 */
#include "job.h"
#include "pattern.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define COUNT   20000
#define TRIES   20
#define TRY_MS  2000
#define AWAY_MS 15

/** An affine map x -> m x + c, modulo 2^32: composition does not commute. */
typedef struct affine {
    uint32_t m, c;
} affine_t;

/** The same with a hole: reduced piece by piece, in dense copies. */
typedef struct holed {
    affine_t map;
    uint32_t hole;
} holed_t;

static int me, size, number;
static pid_t main_thread;
static unsigned calls, strangers; /* of operations */

static pid_t thread_id(void)
{
    return (pid_t) syscall(SYS_gettid);
}

static void away(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static void note_call(void)
{
    ++calls;
    strangers += thread_id() != main_thread;
}

/* inout = in after inout: that of the lower rank is applied last. */
static affine_t compose(affine_t in, affine_t inout)
{
    return (affine_t){in.m * inout.m, in.m * inout.c + in.c};
}

static void op_affine(void *in, void *inout, int *count, MPI_Datatype *type)
{
    affine_t *a = in, *b = inout;

    (void) type;
    note_call();
    for (int i = 0; i < *count; ++i) {
        b[i] = compose(a[i], b[i]);
    }
}

static void op_holed(void *in, void *inout, int *count, MPI_Datatype *type)
{
    holed_t *a = in, *b = inout;

    (void) type;
    note_call();
    for (int i = 0; i < *count; ++i) {
        b[i].map = compose(a[i].map, b[i].map);
    }
}

/* On a predefined type, and it commutes: still the user's. */
static void op_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    uint32_t *a = in, *b = inout;

    (void) type;
    note_call();
    for (int i = 0; i < *count; ++i) {
        b[i] += a[i];
    }
}

/** An operation with a type of `words` words per element. */
typedef struct kind {
    const char *name;
    MPI_User_function *function;
    int commutes, words;
    MPI_Datatype type;
    MPI_Op op;
} kind_t;

static void put(const kind_t *kind, uint32_t *data, int rank, int i)
{
    memset(data, 0, (size_t) kind->words * sizeof(*data));
    data[0] = (uint32_t) (rank * 7919 + i * 2 + 1);
    if (kind->words > 1) {
        data[1] = (uint32_t) (rank + 3 * i);
    }
}

/* Reduces element i over ranks [0, count). */
static void expect(const kind_t *kind, int count, int i, uint32_t *result)
{
    uint32_t lower[3];
    affine_t c;

    put(kind, result, count - 1, i);
    for (int rank = count - 2; rank >= 0; --rank) {
        put(kind, lower, rank, i);
        if (1 == kind->words) {
            result[0] += lower[0];
            continue;
        }
        c = compose((affine_t){lower[0], lower[1]}, (affine_t){result[0], result[1]});
        result[0] = c.m;
        result[1] = c.c;
    }
}

static int wrong(const kind_t *kind, const uint32_t *out, int ranks, int first, int count)
{
    uint32_t result[3];
    int errors = 0;

    for (int i = 0; i < count; ++i) {
        expect(kind, ranks, first + i, result);
        errors += 0 != memcmp(result, out + (size_t) i * (size_t) kind->words,
                              (size_t) (kind->words > 1 ? 2 : 1) * sizeof(*out));
    }
    return errors;
}

enum { ALLREDUCE, REDUCE, SCATTER_BLOCK, SCATTER, SCAN, EXSCAN, CALLS };

/* One nonblocking or persistent reduction, the program is away meanwhile. @return wrong
 * elements. */
static int reduce(const kind_t *kind, int which, int persistent, uint32_t *in, uint32_t *out)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info no = MPI_INFO_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    const int all = COUNT / size * size, block = all / size;
    int counts[JOB_MAX_RANKS];

    for (int i = 0; i < size; ++i) {
        counts[i] = block;
    }
#define START(Name, name, ...)                                       \
    (persistent ? JOB_INIT(Name)(in, out, __VA_ARGS__, no, &request) \
                : MPI_I##name(in, out, __VA_ARGS__, &request))
    switch (which) {
    case ALLREDUCE:
        START(Allreduce, allreduce, all, kind->type, kind->op, comm);
        break;
    case REDUCE:
        START(Reduce, reduce, all, kind->type, kind->op, 0, comm);
        break;
    case SCATTER_BLOCK:
        START(Reduce_scatter_block, reduce_scatter_block, block, kind->type, kind->op, comm);
        break;
    case SCATTER:
        START(Reduce_scatter, reduce_scatter, counts, kind->type, kind->op, comm);
        break;
    case SCAN:
        START(Scan, scan, all, kind->type, kind->op, comm);
        break;
    default:
        START(Exscan, exscan, all, kind->type, kind->op, comm);
        break;
    }
#undef START
    if (persistent) {
        MPI_Start(&request);
    }
    away(AWAY_MS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent) {
        MPI_Request_free(&request);
    }
    switch (which) {
    case ALLREDUCE:
        return wrong(kind, out, size, 0, all);
    case REDUCE:
        return 0 == me ? wrong(kind, out, size, 0, all) : 0;
    case SCATTER_BLOCK:
    case SCATTER:
        return wrong(kind, out, size, me * block, block);
    case SCAN:
        return wrong(kind, out, me + 1, 0, all);
    default:
        return 0 == me ? 0 : wrong(kind, out, me, 0, all);
    }
}

static int users(const kind_t *kind)
{
    uint32_t *in = malloc(COUNT * 3 * sizeof(*in)), *out = malloc(COUNT * 3 * sizeof(*out));
    int errors = 0;

    calls = strangers = 0;
    for (int i = 0; i < COUNT; ++i) {
        put(kind, in + (size_t) i * (size_t) kind->words, me, i);
    }
    for (int which = 0; which < CALLS; ++which) {
        for (int persistent = 0; persistent < 2; ++persistent) {
            errors += reduce(kind, which, persistent, in, out);
        }
    }
    if (0 != strangers) {
        printf("# rank %d: %s: %u of %u calls by another thread\n", me, kind->name, strangers,
               calls);
    }
    free(in);
    free(out);
    return pattern_verdict(++number, kind->name, errors + (int) strangers);
}

/* The result of a sum is in memory although the program calls nothing of MPI; in one of the
 * tries. */
static int predefined(void)
{
    static int in[COUNT];
    static volatile int out[COUNT];
    int seen = 0, all = 0, errors = 0;

    for (int i = 0; i < COUNT; ++i) {
        in[i] = me + i;
    }
    for (int try = 0; try < TRIES && !all; ++try) {
        MPI_Request request;

        memset((void *) (uintptr_t) out, 0xff, sizeof(out));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iallreduce(in, (void *) (uintptr_t) out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
        for (int ms = 0; ms < TRY_MS && !seen; ++ms) {
            away(1);
            seen = out[COUNT - 1] == size * (size - 1) / 2 + size * (COUNT - 1);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; ++i) {
            errors += out[i] != size * (size - 1) / 2 + size * i;
        }
        MPI_Allreduce(&seen, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    return pattern_verdict(++number,
                           "a predefined operation goes on while the program calls nothing of MPI",
                           errors + !all);
}

/* Signals that a thread of this process blocks, a bit for each. */
static uint64_t blocked_by(const char *task)
{
    char path[300], line[256];
    unsigned long long mask = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
    file = fopen(path, "r");
    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        if (1 == sscanf(line, "SigBlk: %llx", &mask)) {
            break;
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return mask;
}

/* The service thread leaves the application its signals, and a fault of its own its handler. */
static int signals(void)
{
    const uint64_t user = UINT64_C(1) << (SIGUSR1 - 1), fault = UINT64_C(1) << (SIGSEGV - 1);
    int leaves = 0, hides = 0;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;

    while (NULL != tasks && NULL != (task = readdir(tasks))) {
        uint64_t blocked = blocked_by(task->d_name);
        leaves += 0 != (blocked & user);
        hides += 0 != (blocked & fault);
    }
    if (NULL != tasks) {
        closedir(tasks);
    }
    return pattern_verdict(++number, "no thread blocks the signals of its own faults",
                           hides + (0 == leaves));
}

int main(int argc, char **argv)
{
    kind_t kinds[] = {
        {.name = "a user's operation that commutes, on a predefined type", op_sum, 1, 1},
        {.name = "a user's operation that does not commute", op_affine, 0, 2},
        {.name = "a user's operation on a type with holes", op_holed, 0, 3},
    };
    int failures = 0;

    MPI_Init(&argc, &argv);
    main_thread = thread_id();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    failures += predefined();
    failures += signals();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        kind_t *kind = &kinds[i];
        MPI_Datatype pair;

        MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
        MPI_Type_create_resized(pair, 0, (MPI_Aint) sizeof(uint32_t) * kind->words, &kind->type);
        MPI_Type_commit(&kind->type);
        MPI_Type_free(&pair);
        if (1 == kind->words) {
            MPI_Type_free(&kind->type);
            kind->type = MPI_UINT32_T;
        }
        MPI_Op_create(kind->function, kind->commutes, &kind->op);
        failures += users(kind);
        MPI_Op_free(&kind->op);
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 != failures;
}
