/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Error classes of collectives that are called with wrong arguments: every collective, in its three
 * forms, with everything that may be wrong with it. Prints one line per call, so that two stacks
 * can be compared.
 *
 * A call that is wrong on some ranks only is made by those alone: it has to return before anything
 * is sent.
 */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4, MAX_PEERS = 16, FORMS = 3 };

/* What a collective has, what a communicator is. */
enum {
    SEND = 1 << 0,
    SEND_V = 1 << 1,       /* counts and displacements */
    SEND_W = 1 << 2,       /* types, too */
    SEND_AT_ROOT = 1 << 3, /* counts at the root only */
    RECV = 1 << 4,
    RECV_V = 1 << 5,
    RECV_W = 1 << 6,
    RECV_AT_ROOT = 1 << 7,
    SINK = 1 << 8,   /* result of a reduction: a buffer with the sender's count and type */
    COUNTS = 1 << 9, /* of the blocks of a reduction */
    OP = 1 << 10,
    ROOT = 1 << 11,
    NO_INTER = 1 << 12,
    TOPOLOGY = 1 << 13,
    INTRA = 1 << 14,
    INTER = 1 << 15,
    CART = 1 << 16,
    OTHERS = 1 << 17, /* on an intracommunicator: made by all but the root */
    UNFIT = 1 << 18,  /* the communicator is none for this collective */
};

/** Arguments of all collectives. */
typedef struct call {
    void *send;
    int scount;
    int *scounts, *sdispls;
    MPI_Aint *sfar;
    MPI_Datatype stype, *stypes;
    void *recv;
    int rcount;
    int *rcounts, *rdispls;
    MPI_Aint *rfar;
    MPI_Datatype rtype, *rtypes;
    MPI_Op op;
    int root;
    MPI_Comm comm;
    MPI_Datatype uncommitted, derived;
    int peers, last;
} call_t;

typedef int (*form_fn_t)(const call_t *a, MPI_Request *request);

#define WRONG_CALL(Name, Iname, has, ...)                                \
    static int blocking_##Name(const call_t *a, MPI_Request *request)    \
    {                                                                    \
        (void) request;                                                  \
        return MPI_##Name(__VA_ARGS__);                                  \
    }                                                                    \
    static int nonblocking_##Name(const call_t *a, MPI_Request *request) \
    {                                                                    \
        return MPI_##Iname(__VA_ARGS__, request);                        \
    }                                                                    \
    static int persistent_##Name(const call_t *a, MPI_Request *request)  \
    {                                                                    \
        return JOB_INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, request);      \
    }
#include "wrong_calls.def"
#undef WRONG_CALL

#define WRONG_CALL(Name, Iname, has, ...) \
    {#Name, has, {blocking_##Name, nonblocking_##Name, persistent_##Name}},
static const struct collective {
    const char *name;
    int has;
    form_fn_t forms[FORMS];
} collectives[] = {
#include "wrong_calls.def"
};
#undef WRONG_CALL

#define WRONG_CHANGE(what, must, must_not, change) \
    static void change_##what(call_t *a)           \
    {                                              \
        change;                                    \
    }
#include "wrong_changes.def"
#undef WRONG_CHANGE

#define WRONG_CHANGE(what, must, must_not, change) {#what, must, must_not, change_##what},
static const struct change {
    const char *name;
    int must, must_not;
    void (*make)(call_t *a);
} changes[] = {
#include "wrong_changes.def"
};
#undef WRONG_CHANGE

/* What Open MPI 4.1 dies of, or does not look for: collective and change. */
static const char *const unseen[][2] = {
    {"Allgather", "null_comm"},
    {"Neighbor_allgather", "null_comm"},
    {"Allgatherv", "negative_recv_counts"},
    {"Neighbor_allgatherv", "negative_recv_counts"},
    {"Allgatherv", "null_recv_counts"},
    {"Neighbor_allgatherv", "null_recv_counts"},
    {"Allgather", "uncommitted_recv_type"},
    {"Allgatherv", "uncommitted_recv_type"},
    {"Neighbor_allgather", "uncommitted_recv_type"},
    {"Neighbor_allgatherv", "uncommitted_recv_type"},
    {"Gather", "uncommitted_recv_type"},
    {"Gatherv", "uncommitted_recv_type"},
    {"Scatter", "uncommitted_recv_type"},
    {"Scatterv", "uncommitted_recv_type"},
    {"Scatter", "negative_send_count"},
    {"Scatter", "null_send_type"},
    {"Scatter", "uncommitted_send_type"},
    {"Exscan", "in_place_as_sink"},
    {"Exscan", "in_place_twice"},
    {"Exscan", "one_buffer"},
    {"Exscan", "comm_unfit"},
    {"Scan", "one_buffer"},
    {"Reduce_scatter", "one_buffer"},
    {"Reduce_scatter_block", "one_buffer"},
};

/** A communicator, and what this rank is in rooted collectives on it. */
typedef struct place {
    const char *name;
    MPI_Comm comm;
    int is, peers, root;
    bool at_root, idle; /* idle: MPI_PROC_NULL */
} place_t;

/* Memory that right arguments point to. */
static struct {
    double send[MAX_PEERS * COUNT * 2], recv[MAX_PEERS * COUNT * 2];
    int scounts[MAX_PEERS], rcounts[MAX_PEERS], displs[MAX_PEERS];
    MPI_Aint far[MAX_PEERS];
    MPI_Datatype stypes[MAX_PEERS], rtypes[MAX_PEERS];
} memory;

static call_t right_call(const place_t *on, MPI_Datatype uncommitted, MPI_Datatype derived)
{
    for (int i = 0; i < MAX_PEERS; ++i) {
        memory.scounts[i] = memory.rcounts[i] = COUNT;
        memory.displs[i] = COUNT * i;
        memory.far[i] = (MPI_Aint) sizeof(int) * COUNT * i;
        memory.stypes[i] = memory.rtypes[i] = MPI_INT;
    }
    return (call_t){.send = memory.send,
                    .scount = COUNT,
                    .scounts = memory.scounts,
                    .sdispls = memory.displs,
                    .sfar = memory.far,
                    .stype = MPI_INT,
                    .stypes = memory.stypes,
                    .recv = memory.recv,
                    .rcount = COUNT,
                    .rcounts = memory.rcounts,
                    .rdispls = memory.displs,
                    .rfar = memory.far,
                    .rtype = MPI_INT,
                    .rtypes = memory.rtypes,
                    .op = MPI_SUM,
                    .root = on->root,
                    .comm = on->comm,
                    .uncommitted = uncommitted,
                    .derived = derived,
                    .peers = on->peers};
}

/* Whether what is wrong counts on this rank. */
static bool counts_here(int has, const struct change *change, const place_t *on)
{
    const int receiver = RECV | SINK;

    if (0 == (has & ROOT) || 0 == (change->must & (SEND | receiver | OP))) {
        return true;
    }
    if (0 != (change->must & OTHERS)) {
        return !on->at_root;
    }
    if ((0 != (change->must & SEND) && 0 != (has & SEND_AT_ROOT)) ||
        (0 != (change->must & receiver) && 0 != (has & RECV_AT_ROOT))) {
        return on->at_root;
    }
    return 0 != (on->is & INTRA) || (!on->at_root && !on->idle);
}

static int error_class(form_fn_t form, int number, const call_t *call)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int class, rc = form(call, &request);

    if (MPI_SUCCESS == rc && 1 == number) {
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (MPI_SUCCESS == rc && 2 == number) {
        MPI_Request_free(&request);
    }
    MPI_Error_class(rc, &class);
    return class;
}

/* One line per form: class on each rank, - where the call was not made. */
static void run(const struct collective *collective, const struct change *change, const place_t *on,
                call_t *call)
{
    static const char *const forms[FORMS] = {"", "I", "_init "};
    const bool here = counts_here(collective->has, change, on);
    int rank, size, classes[MAX_PEERS];

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int form = 0; form < FORMS; ++form) {
        int class = here ? error_class(collective->forms[form], form, call) : -1;

        MPI_Gather(&class, 1, MPI_INT, classes, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (0 == rank) {
            printf("%s %s%s %s:", on->name, forms[form], collective->name, change->name);
            for (int r = 0; r < size; ++r) {
                printf(" %d", classes[r]);
            }
            printf("\n");
        }
    }
}

static bool seen(const char *collective, const char *change)
{
    for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); ++i) {
        if (0 == strcmp(unseen[i][0], collective) && 0 == strcmp(unseen[i][1], change)) {
            return false;
        }
    }
    return true;
}

static void run_all(const place_t *on, MPI_Datatype uncommitted, MPI_Datatype derived)
{
    for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); ++c) {
        const int has = collectives[c].has;
        const bool unfit = (0 != (has & NO_INTER) && 0 != (on->is & INTER)) ||
                           (0 != (has & TOPOLOGY) && 0 == (on->is & CART));
        const bool deadly = 0 != (has & TOPOLOGY) && 0 != (on->is & INTER); /* to Open MPI 4.1 */
        const int all = has | on->is | (unfit ? UNFIT : 0);

        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]) && !deadly; ++i) {
            call_t call = right_call(on, uncommitted, derived);

            if (changes[i].must == (all & changes[i].must) && 0 == (all & changes[i].must_not) &&
                unfit == (0 != (changes[i].must & UNFIT)) &&
                seen(collectives[c].name, changes[i].name)) {
                call.last = 0 == (has & TOPOLOGY) ? on->peers - 1 : 1; /* neighbours: two */
                changes[i].make(&call);
                run(&collectives[c], &changes[i], on, &call);
            }
        }
    }
}

/* The communicator is as good as before. */
static int broken(const place_t *on)
{
    int one = 1, sum = 0, rc = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, on->comm);

    if (MPI_SUCCESS != rc || on->peers != sum) {
        printf("%s: broken: sum %d of %d\n", on->name, sum, on->peers);
        return 1;
    }
    return 0;
}

static place_t place_intra(const char *name, MPI_Comm comm, int is)
{
    place_t on = {.name = name, .comm = comm, .is = is | INTRA | OTHERS};
    int rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &on.peers);
    on.at_root = 0 == rank;
    return on;
}

/* Rank 0 of the first half is the root. */
static place_t place_inter(int rank, int size)
{
    place_t on = {.name = "inter", .is = INTER};
    const bool first = rank < size / 2;
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, first, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first ? size / 2 : 0, 1, &on.comm);
    MPI_Comm_free(&half);
    MPI_Comm_remote_size(on.comm, &on.peers);
    on.at_root = 0 == rank;
    on.idle = first && !on.at_root;
    on.root = on.at_root ? MPI_ROOT : on.idle ? MPI_PROC_NULL : 0;
    return on;
}

int main(int argc, char **argv)
{
    int rank, size, failures = 0, once = 1;
    MPI_Datatype uncommitted, derived;
    MPI_Comm dup, cart;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 4 || 0 != size % 2 || size > MAX_PEERS) {
        printf("an even number of ranks, 4 to %d\n", MAX_PEERS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &once, 0, &cart);
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    MPI_Type_contiguous(2, MPI_INT, &derived);
    MPI_Type_commit(&derived);

    const place_t places[] = {place_intra("intra", dup, 0), place_intra("self", MPI_COMM_SELF, 0),
                              place_intra("cart", cart, CART), place_inter(rank, size)};
    const int count = (int) (sizeof(places) / sizeof(places[0]));

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where there is no communicator */
    for (int i = 0; i < count; ++i) {
        MPI_Comm comm = places[i].comm;

        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        run_all(&places[i], uncommitted, derived);
        failures += broken(&places[i]);
        if (MPI_COMM_SELF != comm) {
            MPI_Comm_free(&comm);
        }
    }
    MPI_Type_free(&derived);
    MPI_Type_free(&uncommitted);
    MPI_Finalize();
    return 0 == failures ? 0 : 1;
}
