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
 *
 * Usage: wrong_args [unseen | unchecked], both under r2 only and for any number of ranks: what Open
 * MPI does not look for, or, for mpi_param_check 0, all that r2 looks for itself. Classes are then
 * checked here.
 */
#include "job.h"
#include "wrong_types.h"

#include <limits.h>
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
    MPI_Datatype uncommitted, derived, huge, far;
    int peers, last;
} call_t;

/** Which calls are made. */
typedef enum mode { COMPARED, UNSEEN, UNCHECKED } selection_t;

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

/* More bytes than there are addresses, on both sides alike. */
static void make_huge(call_t *a)
{
    const int count = 16;

    a->scount = a->rcount = count;
    a->scounts[a->last] = a->rcounts[a->last] = count;
    a->stype = a->rtype = a->huge;
    a->stypes[a->last] = a->rtypes[a->last] = a->huge;
}

#define WRONG_CHANGE(what, must, must_not, class, change) \
    static void change_##what(call_t *a)                  \
    {                                                     \
        change;                                           \
    }
#include "wrong_changes.def"
#undef WRONG_CHANGE

#define WRONG_CHANGE(what, must, must_not, class, change) \
    {#what, must, must_not, class, change_##what},
static const struct change {
    const char *name;
    int must, must_not;
    int class; /* that r2 finds by itself */
    void (*make)(call_t *a);
} changes[] = {
#include "wrong_changes.def"
};
#undef WRONG_CHANGE

/*
 * What Open MPI 4.1 does not look for, or dies of: collective (NULL: any) and change, and the first
 * of the three forms of which more than Open MPI's own code gets to see it.
 */
static const struct unseen {
    const char *collective, *change;
    int first_form;
    bool unchecked; /* with mpi_param_check 0 only */
} unseen[] = {
    /* Its MPI layer tells the error handler and goes on. */
    {"Allgather", "null_comm", FORMS, false},
    {"Neighbor_allgather", "null_comm", FORMS, false},
    /* There is no function to call on intercommunicators, and it is called. */
    {"Exscan", "comm_unfit", FORMS, false},
    /* It takes the size of the remote group for the length of the list: 0 on intracommunicators. */
    {"Allgatherv", "negative_recv_counts", 0, false},
    {"Neighbor_allgatherv", "negative_recv_counts", 0, false},
    /* Blocking forms read the list before they look at it, the others as above. */
    {"Allgatherv", "null_recv_counts", 1, false},
    {"Neighbor_allgatherv", "null_recv_counts", 1, false},
    /* What the root sends is looked at only where the root gives MPI_IN_PLACE for what it
     * receives. */
    {"Scatter", "negative_send_count", 0, false},
    {"Scatter", "null_send_type", 0, false},
    /* It looks whether a type is committed on one side only, and moves the data all the same: so
       does r2. */
    {"Scatter", "uncommitted_send_type", FORMS, false},
    {"Scatter", "uncommitted_recv_type", FORMS, false},
    {"Scatterv", "uncommitted_recv_type", FORMS, false},
    {"Gather", "uncommitted_recv_type", FORMS, false},
    {"Gatherv", "uncommitted_recv_type", FORMS, false},
    {"Allgather", "uncommitted_recv_type", FORMS, false},
    {"Allgatherv", "uncommitted_recv_type", FORMS, false},
    {"Neighbor_allgather", "uncommitted_recv_type", FORMS, false},
    {"Neighbor_allgatherv", "uncommitted_recv_type", FORMS, false},
    /* Nobody asks whether there is memory for the result. */
    {"Exscan", "in_place_as_sink", 0, false},
    {"Exscan", "in_place_twice", 0, false},
    /* It takes one buffer for MPI_IN_PLACE, and so does r2: one_buffer_is_in_place(). */
    {"Exscan", "one_buffer", FORMS, false},
    {"Scan", "one_buffer", FORMS, false},
    {"Reduce_scatter", "one_buffer", FORMS, false},
    {"Reduce_scatter_block", "one_buffer", FORMS, false},
    /* Open MPI's own code asks for the size of the type first and finds nothing to do. */
    {"Alltoall", "null_recv_type", 1, true},
    /* Nobody but r2 looks at these. */
    {NULL, "too_many_bytes", 0, false},
    {NULL, "send_displs_beyond", 0, false},
    {NULL, "recv_displs_beyond", 0, false},
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

static call_t right_call(const place_t *on, const types_t *types)
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
                    .uncommitted = types->uncommitted,
                    .derived = types->derived,
                    .huge = types->huge,
                    .far = types->far,
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

/* A line: class on each rank, -1 where the call was not made. Where a class is `wanted`, only if
 * there is another. */
static int tell(const char *form, const struct collective *collective, const struct change *change,
                const place_t *on, const int *classes, int size, int rank, int wanted)
{
    int wrong = 0;

    for (int r = 0; r < size; ++r) {
        wrong += MPI_SUCCESS != wanted && -1 != classes[r * FORMS] && wanted != classes[r * FORMS];
    }
    if (0 == rank && (MPI_SUCCESS == wanted || 0 != wrong)) {
        printf("%s %s%s %s:", on->name, form, collective->name, change->name);
        for (int r = 0; r < size; ++r) {
            printf(" %d", classes[r * FORMS]);
        }
        printf("\n");
    }
    return wrong;
}

/* All forms of a call, from the first on. @return classes that are not the one that is wanted. */
static int run(const struct collective *collective, const struct change *change, const place_t *on,
               call_t *call, int first_form, int wanted)
{
    static const char *const forms[FORMS] = {"", "I", "_init "};
    const bool here = counts_here(collective->has, change, on);
    int rank, size, failures = 0, mine[FORMS], classes[MAX_PEERS * FORMS];

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int form = 0; form < FORMS; ++form) {
        mine[form] =
            here && form >= first_form ? error_class(collective->forms[form], form, call) : -1;
    }
    MPI_Allgather(mine, FORMS, MPI_INT, classes, FORMS, MPI_INT, MPI_COMM_WORLD);
    for (int form = first_form; form < FORMS; ++form) {
        failures += tell(forms[form], collective, change, on, classes + form, size, rank, wanted);
    }
    return failures;
}

static const struct unseen *unseen_find(const char *collective, const char *change)
{
    for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); ++i) {
        if ((NULL == unseen[i].collective || 0 == strcmp(unseen[i].collective, collective)) &&
            0 == strcmp(unseen[i].change, change)) {
            return &unseen[i];
        }
    }
    return NULL;
}

/* @return the first form that is called, FORMS: none. */
static int first_form(selection_t selection, const char *collective, const struct change *change)
{
    const struct unseen *entry = unseen_find(collective, change->name);
    const bool mine = COMPARED == selection ? NULL == entry || entry->unchecked
                                            : MPI_SUCCESS != change->class &&
                                                  (UNCHECKED == selection || NULL != entry);

    return !mine ? FORMS : COMPARED == selection || NULL == entry ? 0 : entry->first_form;
}

static int run_all(const place_t *on, const types_t *types, selection_t selection)
{
    const size_t count = sizeof(changes) / sizeof(changes[0]);
    int failures = 0;

    for (size_t i = 0; i < count * sizeof(collectives) / sizeof(collectives[0]); ++i) {
        const struct collective *collective = &collectives[i / count];
        const struct change *change = &changes[i % count];
        const int form = first_form(selection, collective->name, change), has = collective->has;
        const bool unfit = (0 != (has & NO_INTER) && 0 != (on->is & INTER)) ||
                           (0 != (has & TOPOLOGY) && 0 == (on->is & CART));
        const bool deadly = 0 != (has & TOPOLOGY) && 0 != (on->is & INTER); /* to Open MPI 4.1 */
        const int all = has | on->is | (unfit ? UNFIT : 0);
        call_t call = right_call(on, types);

        if (FORMS > form && !deadly && change->must == (all & change->must) &&
            0 == (all & change->must_not) && unfit == (0 != (change->must & UNFIT))) {
            call.last = 0 == (has & TOPOLOGY) ? on->peers - 1 : 1; /* neighbours: two */
            change->make(&call);
            failures += run(collective, change, on, &call, form,
                            COMPARED == selection ? MPI_SUCCESS : change->class);
        }
    }
    return failures;
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

/* Reductions that Open MPI does not refuse one buffer for both sides. @return wrong results. */
static int one_buffer_is_in_place(const place_t *on)
{
    enum { LONG = 5000 };
    static int data[LONG * MAX_PEERS], counts[MAX_PEERS];
    const int peers = on->peers;
    int rank, failures = 0;

    MPI_Comm_rank(on->comm, &rank);
    for (int kind = 0; kind < 4; ++kind) {
        for (int i = 0; i < LONG * peers; ++i) {
            data[i] = i + rank;
            counts[i % peers] = LONG;
        }
        if (0 == kind) {
            MPI_Scan(data, data, LONG, MPI_INT, MPI_SUM, on->comm);
        } else if (1 == kind) {
            MPI_Exscan(data, data, LONG, MPI_INT, MPI_SUM, on->comm);
        } else if (2 == kind) {
            MPI_Reduce_scatter(data, data, counts, MPI_INT, MPI_SUM, on->comm);
        } else {
            MPI_Reduce_scatter_block(data, data, LONG, MPI_INT, MPI_SUM, on->comm);
        }
        for (int i = 0; i < LONG && (1 != kind || 0 < rank); ++i) {
            const int terms = 0 == kind ? rank + 1 : 1 == kind ? rank : peers;
            const int at = kind < 2 ? i : i + LONG * rank;

            failures += data[i] != at * terms + terms * (terms - 1) / 2;
        }
    }
    printf("%s: one buffer: %d wrong results\n", on->name, failures);
    return failures;
}

/* @return failures. */
static int run_places(const types_t *types, selection_t selection, int rank, int size)
{
    int failures = 0, once = 1;
    MPI_Comm dup, cart;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &once, 0, &cart);

    place_t places[] = {place_intra("intra", dup, 0), place_intra("cart", cart, CART),
                        place_intra("self", MPI_COMM_SELF, 0), {.name = NULL}};
    int count = 2; /* those that r2 takes */

    if (COMPARED == selection) {
        places[3] = place_inter(rank, size);
        count = 4;
    }
    for (int i = 0; i < count; ++i) {
        MPI_Comm_set_errhandler(places[i].comm, MPI_ERRORS_RETURN);
        failures += run_all(&places[i], types, selection) + broken(&places[i]);
        failures += COMPARED == selection ? 0 : one_buffer_is_in_place(&places[i]);
    }
    for (int i = 0; i < count; ++i) {
        if (MPI_COMM_SELF != places[i].comm) {
            MPI_Comm_free(&places[i].comm);
        }
    }
    return failures;
}

int main(int argc, char **argv)
{
    const selection_t selection = argc < 2                         ? COMPARED
                                  : 0 == strcmp(argv[1], "unseen") ? UNSEEN
                                                                   : UNCHECKED;
    int rank, size, failures;
    types_t types;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size > MAX_PEERS || (COMPARED == selection && (size < 4 || 0 != size % 2))) {
        printf("%d ranks: 2 to %d, an even number of at least 4 where stacks are compared\n", size,
               MAX_PEERS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where there is no communicator */
    types = types_make();
    failures = run_places(&types, selection, rank, size);
    types_free(&types);
    MPI_Finalize();
    return 0 == failures ? 0 : 1;
}
