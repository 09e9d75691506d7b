/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One rank calls with arguments that do not fit those of the others, or another collective: every
 * rank gets MPI_ERR_COUNT, from this call or from a later one on the communicator, and none hangs.
 *
 * Usage: mismatch [--forced | CASE]; with --forced ranks run under different
 * coll_r2_allreduce_algorithm.
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RANKS 16
#define LATE_S    30.0 /* no error by then: it passed */
#define HANG_S    60   /* one case */
#define SHORT     25
#define LONG      60000
#define PART      8192 /* elements of the longest message with coll_r2_pack_bytes 65536 */

typedef enum kind {
    ALLREDUCE, REDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, BCAST, BARRIER,
    ALLGATHER, ALLGATHERV, GATHER, GATHERV, SCATTER, SCATTERV, ALLTOALL, ALLTOALLV, NEIGHBOR,
    NONBLOCKING, KIND_COUNT
} kind_t;

typedef enum op { SUM, MAX, MINE, MINE_IN_ORDER } op_t;

/** Arguments of one call. */
typedef struct plea {
    kind_t kind;
    int count; /* int or float elements: of the vector, or of each block */
    op_t op;
    bool floats;
    int root;
} plea_t;

/** What all but one call, and what that one calls. */
typedef struct clash {
    const char *name;
    plea_t usual, odd;
    bool at_once; /* nobody can have a result */
} clash_t;

static MPI_Op ops[4];
static int world_rank, world_size;
static char current[128];

static const clash_t clashes[] = {
    {.name = "operation", .usual = {.kind = ALLREDUCE, .count = SHORT},
     .odd = {.kind = ALLREDUCE, .count = SHORT, .op = MAX}, .at_once = true},
    {.name = "operation, long", .usual = {.kind = ALLREDUCE, .count = LONG},
     .odd = {.kind = ALLREDUCE, .count = LONG, .op = MAX}, .at_once = true},
    {.name = "operation of reduce_scatter_block", .usual = {.kind = REDUCE_SCATTER_BLOCK,
                                                            .count = LONG},
     .odd = {.kind = REDUCE_SCATTER_BLOCK, .count = LONG, .op = MAX}, .at_once = true},
    {.name = "operation of scan", .usual = {.kind = SCAN, .count = SHORT},
     .odd = {.kind = SCAN, .count = SHORT, .op = MAX}},
    {.name = "operation of the user's", .usual = {.kind = ALLREDUCE, .count = SHORT, .op = MINE},
     .odd = {.kind = ALLREDUCE, .count = SHORT}, .at_once = true},
    {.name = "order", .usual = {.kind = ALLREDUCE, .count = SHORT, .op = MINE},
     .odd = {.kind = ALLREDUCE, .count = SHORT, .op = MINE_IN_ORDER}, .at_once = true},
    {.name = "type", .usual = {.kind = ALLREDUCE, .count = SHORT},
     .odd = {.kind = ALLREDUCE, .count = SHORT, .floats = true}, .at_once = true},
    {.name = "type of reduce", .usual = {.kind = REDUCE, .count = LONG},
     .odd = {.kind = REDUCE, .count = LONG, .floats = true}},
    {.name = "count", .usual = {.kind = ALLREDUCE, .count = SHORT},
     .odd = {.kind = ALLREDUCE, .count = SHORT + 1}, .at_once = true},
    {.name = "count, long", .usual = {.kind = ALLREDUCE, .count = LONG},
     .odd = {.kind = ALLREDUCE, .count = LONG - 1}, .at_once = true},
    {.name = "count, short and long", .usual = {.kind = ALLREDUCE, .count = SHORT},
     .odd = {.kind = ALLREDUCE, .count = LONG}, .at_once = true},
    {.name = "count, long and short", .usual = {.kind = ALLREDUCE, .count = LONG},
     .odd = {.kind = ALLREDUCE, .count = SHORT}, .at_once = true},
    {.name = "nothing", .usual = {.kind = ALLREDUCE, .count = SHORT},
     .odd = {.kind = ALLREDUCE, .count = 0}},
    {.name = "nothing but one", .usual = {.kind = ALLREDUCE, .count = 0},
     .odd = {.kind = ALLREDUCE, .count = SHORT}},
    {.name = "nothing of bcast", .usual = {.kind = BCAST, .count = SHORT},
     .odd = {.kind = BCAST, .count = 0}},
    {.name = "nothing of bcast, long", .usual = {.kind = BCAST, .count = LONG},
     .odd = {.kind = BCAST, .count = 0}},
    {.name = "nothing but one of bcast", .usual = {.kind = BCAST, .count = 0},
     .odd = {.kind = BCAST, .count = SHORT}},
    {.name = "nothing of gather", .usual = {.kind = GATHER, .count = SHORT},
     .odd = {.kind = GATHER, .count = 0}},
    {.name = "nothing of scatter", .usual = {.kind = SCATTER, .count = LONG},
     .odd = {.kind = SCATTER, .count = 0}},
    {.name = "nothing of alltoall", .usual = {.kind = ALLTOALL, .count = SHORT},
     .odd = {.kind = ALLTOALL, .count = 0}},
    {.name = "nothing of allgatherv", .usual = {.kind = ALLGATHERV, .count = SHORT},
     .odd = {.kind = ALLGATHERV, .count = 0}},
    {.name = "bytes of bcast", .usual = {.kind = BCAST, .count = LONG},
     .odd = {.kind = BCAST, .count = SHORT}},
    {.name = "bytes of gather", .usual = {.kind = GATHER, .count = SHORT},
     .odd = {.kind = GATHER, .count = SHORT - 1}},
    {.name = "bytes of alltoall", .usual = {.kind = ALLTOALL, .count = LONG},
     .odd = {.kind = ALLTOALL, .count = SHORT}},
    {.name = "root of bcast", .usual = {.kind = BCAST, .count = SHORT},
     .odd = {.kind = BCAST, .count = SHORT, .root = 1}},
    {.name = "root of bcast, long", .usual = {.kind = BCAST, .count = LONG},
     .odd = {.kind = BCAST, .count = LONG, .root = 1}},
    {.name = "root of reduce", .usual = {.kind = REDUCE, .count = SHORT},
     .odd = {.kind = REDUCE, .count = SHORT, .root = 1}},
    {.name = "root of gather", .usual = {.kind = GATHER, .count = LONG},
     .odd = {.kind = GATHER, .count = LONG, .root = 1}},
    {.name = "root of gather, without room to park", .usual = {.kind = GATHER, .count = 6 * LONG},
     .odd = {.kind = GATHER, .count = 6 * LONG, .root = 1}},
    {.name = "root of scatter", .usual = {.kind = SCATTER, .count = SHORT},
     .odd = {.kind = SCATTER, .count = SHORT, .root = 1}},
    {.name = "gatherv's edge", .usual = {.kind = GATHERV, .count = SHORT},
     .odd = {.kind = GATHERV, .count = SHORT + 1}},
    {.name = "gatherv's empty edge", .usual = {.kind = GATHERV, .count = SHORT},
     .odd = {.kind = GATHERV, .count = 0}},
    {.name = "gatherv's parts", .usual = {.kind = GATHERV, .count = 2 * PART},
     .odd = {.kind = GATHERV, .count = 3 * PART}},
    {.name = "scatterv's edge", .usual = {.kind = SCATTERV, .count = LONG},
     .odd = {.kind = SCATTERV, .count = SHORT}},
    {.name = "scatterv's full edge", .usual = {.kind = SCATTERV, .count = 0},
     .odd = {.kind = SCATTERV, .count = SHORT}},
    {.name = "alltoallv's empty edges", .usual = {.kind = ALLTOALLV, .count = SHORT},
     .odd = {.kind = ALLTOALLV, .count = 0}},
    {.name = "alltoallv's full edges", .usual = {.kind = ALLTOALLV, .count = 0},
     .odd = {.kind = ALLTOALLV, .count = SHORT}},
    {.name = "alltoallv's full edges, long", .usual = {.kind = ALLTOALLV, .count = 0},
     .odd = {.kind = ALLTOALLV, .count = LONG}},
    {.name = "neighbour's edge", .usual = {.kind = NEIGHBOR, .count = SHORT},
     .odd = {.kind = NEIGHBOR, .count = LONG}},
    {.name = "neighbour's empty edge", .usual = {.kind = NEIGHBOR, .count = SHORT},
     .odd = {.kind = NEIGHBOR, .count = 0}},
    {.name = "blocking", .usual = {.kind = ALLREDUCE, .count = SHORT},
     .odd = {.kind = NONBLOCKING, .count = SHORT}, .at_once = true},
    {.name = "barrier, allreduce", .usual = {.kind = BARRIER, .count = 0},
     .odd = {.kind = ALLREDUCE, .count = SHORT}},
    {.name = "allreduce, barrier", .usual = {.kind = ALLREDUCE, .count = LONG},
     .odd = {.kind = BARRIER, .count = 0}},
    {.name = "allgather, alltoall", .usual = {.kind = ALLGATHER, .count = SHORT},
     .odd = {.kind = ALLTOALL, .count = SHORT}},
    {.name = "bcast, barrier", .usual = {.kind = BCAST, .count = SHORT},
     .odd = {.kind = BARRIER, .count = 0}},
    {.name = "bcast, reduce", .usual = {.kind = BCAST, .count = SHORT},
     .odd = {.kind = REDUCE, .count = SHORT}},
    {.name = "scan, exscan", .usual = {.kind = SCAN, .count = SHORT},
     .odd = {.kind = EXSCAN, .count = SHORT}},
    {.name = "scan, barrier", .usual = {.kind = SCAN, .count = LONG},
     .odd = {.kind = BARRIER, .count = 0}},
    {.name = "gather, scatter", .usual = {.kind = GATHER, .count = SHORT},
     .odd = {.kind = SCATTER, .count = SHORT}},
    {.name = "scatter, gatherv", .usual = {.kind = SCATTER, .count = LONG},
     .odd = {.kind = GATHERV, .count = LONG}},
    {.name = "alltoallv, alltoall", .usual = {.kind = ALLTOALLV, .count = SHORT},
     .odd = {.kind = ALLTOALL, .count = SHORT}},
    {.name = "neighbour, bcast", .usual = {.kind = NEIGHBOR, .count = SHORT},
     .odd = {.kind = BCAST, .count = SHORT, .root = 1}},
    {.name = "reduce_scatter, allgatherv", .usual = {.kind = REDUCE_SCATTER, .count = SHORT},
     .odd = {.kind = ALLGATHERV, .count = SHORT}},
};

/* Ranks run under different algorithms, on MPI_COMM_WORLD: making another communicator would take
 * an allreduce. */
static const clash_t forced[] = {
    {.name = "algorithm", .usual = {.kind = ALLREDUCE, .count = LONG},
     .odd = {.kind = ALLREDUCE, .count = LONG}, .at_once = true},
};

static void fold(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; ++i) {
        ((int *) inout)[i] += ((int *) in)[i];
    }
}

/** Arguments as MPI takes them. */
typedef struct call {
    void *in, *out;
    int n, root;
    int counts[MAX_RANKS], displs[MAX_RANKS];
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
} call_t;

/** The call of a kind. */
#define CALLER(name, ...)                   \
    static int call_##name(const call_t *c) \
    {                                       \
        const int n = c->n;                 \
                                            \
        (void) n;                           \
        return __VA_ARGS__;                 \
    }
CALLER(allreduce, MPI_Allreduce(c->in, c->out, n, c->type, c->op, c->comm))
CALLER(reduce, MPI_Reduce(c->in, c->out, n, c->type, c->op, c->root, c->comm))
CALLER(scan, MPI_Scan(c->in, c->out, n, c->type, c->op, c->comm))
CALLER(exscan, MPI_Exscan(c->in, c->out, n, c->type, c->op, c->comm))
CALLER(reduce_scatter, MPI_Reduce_scatter(c->in, c->out, c->counts, c->type, c->op, c->comm))
CALLER(reduce_scatter_block, MPI_Reduce_scatter_block(c->in, c->out, n, c->type, c->op, c->comm))
CALLER(bcast, MPI_Bcast(c->out, n, c->type, c->root, c->comm))
CALLER(barrier, MPI_Barrier(c->comm))
CALLER(allgather, MPI_Allgather(c->in, n, c->type, c->out, n, c->type, c->comm))
CALLER(allgatherv,
       MPI_Allgatherv(c->in, n, c->type, c->out, c->counts, c->displs, c->type, c->comm))
CALLER(gather, MPI_Gather(c->in, n, c->type, c->out, n, c->type, c->root, c->comm))
CALLER(gatherv,
       MPI_Gatherv(c->in, n, c->type, c->out, c->counts, c->displs, c->type, c->root, c->comm))
CALLER(scatter, MPI_Scatter(c->in, n, c->type, c->out, n, c->type, c->root, c->comm))
CALLER(scatterv,
       MPI_Scatterv(c->in, c->counts, c->displs, c->type, c->out, n, c->type, c->root, c->comm))
CALLER(alltoall, MPI_Alltoall(c->in, n, c->type, c->out, n, c->type, c->comm))
CALLER(alltoallv, MPI_Alltoallv(c->in, c->counts, c->displs, c->type, c->out, c->counts, c->displs,
                                c->type, c->comm))
CALLER(neighbor, MPI_Neighbor_alltoall(c->in, n, c->type, c->out, n, c->type, c->comm))

static int call_nonblocking(const call_t *c)
{
    MPI_Request request;
    int rc = MPI_Iallreduce(c->in, c->out, c->n, c->type, c->op, c->comm, &request);

    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static int (*const callers[KIND_COUNT])(const call_t *c) = {
    [ALLREDUCE] = call_allreduce,
    [REDUCE] = call_reduce,
    [SCAN] = call_scan,
    [EXSCAN] = call_exscan,
    [REDUCE_SCATTER] = call_reduce_scatter,
    [REDUCE_SCATTER_BLOCK] = call_reduce_scatter_block,
    [BCAST] = call_bcast,
    [BARRIER] = call_barrier,
    [ALLGATHER] = call_allgather,
    [ALLGATHERV] = call_allgatherv,
    [GATHER] = call_gather,
    [GATHERV] = call_gatherv,
    [SCATTER] = call_scatter,
    [SCATTERV] = call_scatterv,
    [ALLTOALL] = call_alltoall,
    [ALLTOALLV] = call_alltoallv,
    [NEIGHBOR] = call_neighbor,
    [NONBLOCKING] = call_nonblocking,
};

static int call(const plea_t *plea, void *in, void *out, MPI_Comm comm)
{
    call_t c = {.in = in,
                .out = out,
                .n = plea->count,
                .root = plea->root,
                .type = plea->floats ? MPI_FLOAT : MPI_INT,
                .op = ops[plea->op],
                .comm = comm};

    for (int i = 0; i < MAX_RANKS; ++i) {
        c.counts[i] = plea->count;
        c.displs[i] = i * plea->count;
    }
    return callers[plea->kind](&c);
}

static unsigned play(const clash_t *clash, int odd)
{
    const bool differs = world_rank == odd;
    const size_t bytes = (size_t) 6 * LONG * (size_t) world_size * sizeof(int);
    const int dims[1] = {world_size}, periods[1] = {1};
    const double start = MPI_Wtime();
    void *in = calloc(1, bytes), *out = calloc(1, bytes);
    int class = MPI_SUCCESS, calls = 1, rc;
    unsigned failures = 0;
    MPI_Comm comm = MPI_COMM_WORLD;

    snprintf(current, sizeof(current), "%s, rank %d differs", clash->name, odd);
    alarm(HANG_S);
    if (clash != forced) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    rc = call(differs ? &clash->odd : &clash->usual, in, out, comm);
    while (MPI_SUCCESS == rc && MPI_Wtime() - start < LATE_S) {
        rc = MPI_Barrier(comm);
        ++calls;
    }
    MPI_Error_class(rc, &class);
    if (MPI_ERR_COUNT != class || (clash->at_once && 1 != calls)) {
        fprintf(stderr, "# %s: rank %d has error class %d at call %d\n", current, world_rank, class,
                calls);
        failures = 1;
    }
    if (clash != forced) {
        MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_free(&comm);
    }
    if (0 == world_rank) {
        printf("# %s: %.2f s, %d calls\n", current, MPI_Wtime() - start, calls);
        fflush(stdout);
    }
    free(in);
    free(out);
    return failures;
}

static void hung(int signal)
{
    static const char text[] = " hangs\n";

    (void) signal;
    (void) !write(STDERR_FILENO, current, strlen(current));
    (void) !write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(2);
}

static void force(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    setenv("OMPI_MCA_coll_r2_allreduce_algorithm",
           NULL != rank && 0 == strcmp(rank, "0") ? "recursive-doubling" : "direct", 1);
}

int main(int argc, char **argv)
{
    const bool by_force = argc > 1 && 0 == strcmp(argv[1], "--forced");
    const clash_t *list = by_force ? forced : clashes;
    const size_t count =
        by_force ? sizeof(forced) / sizeof(forced[0]) : sizeof(clashes) / sizeof(clashes[0]);
    const char *only = argc > 1 && !by_force ? argv[1] : NULL;
    unsigned failures = 0, plays = 0;

    if (by_force) {
        force();
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    /* Open MPI 4 takes errors of nonblocking collectives to MPI_COMM_WORLD. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    signal(SIGALRM, hung);
    ops[SUM] = MPI_SUM;
    ops[MAX] = MPI_MAX;
    MPI_Op_create(fold, 1, &ops[MINE]);
    MPI_Op_create(fold, 0, &ops[MINE_IN_ORDER]);
    for (size_t i = 0; i < count; ++i) {
        for (int odd = 0; odd < world_size && (!by_force || 0 == odd); odd += world_size - 1) {
            if (NULL == only || 0 == strcmp(only, list[i].name)) {
                failures += play(&list[i], odd);
                ++plays;
            }
        }
    }
    MPI_Op_free(&ops[MINE]);
    MPI_Op_free(&ops[MINE_IN_ORDER]);
    if (0 == world_rank) {
        printf("mismatch: %u cases, %u failures\n", plays, failures);
    }
    MPI_Finalize();
    return 0 == failures && plays > 0 ? 0 : 1;
}
