/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls that must fail: arguments that are wrong in themselves, and ranks that do not agree.
 */
#include "datatypes.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned expect_class(const char *what, int rc, int class)
{
    int got = MPI_SUCCESS;

    MPI_Error_class(rc, &got);
    if (got == class) {
        return 0;
    }
    fprintf(stderr, "# %s: error class %d, expected %d\n", what, got, class);
    return 1;
}

unsigned dt_errors_arguments(const dt_comm_t *on)
{
    int in[4] = {0}, out[4 * DT_MAX_RANKS] = {0};
    unsigned failures = 0;
    MPI_Request request;
    MPI_Datatype pair;
    MPI_Comm comm;

    MPI_Comm_dup(on->comm, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_INT, &pair); /* not committed */
    failures +=
        expect_class("count", MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT);
    failures +=
        expect_class("op", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BXOR, comm), MPI_ERR_OP);
    failures +=
        expect_class("null op", MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP);
    failures += expect_class(
        "op of i", MPI_Iallreduce(in, out, 1, MPI_FLOAT, MPI_BAND, comm, &request), MPI_ERR_OP);
    failures += expect_class("type", MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    failures += expect_class("not committed", MPI_Bcast(in, 1, pair, 0, comm), MPI_ERR_TYPE);
    failures += expect_class("root", MPI_Bcast(in, 1, MPI_INT, on->size, comm), MPI_ERR_ROOT);
    failures +=
        expect_class("root of i", MPI_Ibcast(in, 1, MPI_INT, -5, comm, &request), MPI_ERR_ROOT);
    failures += expect_class(
        "buffer", MPI_Allgather(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm), MPI_ERR_ARG);
    /* The communicator is as good as before. */
    in[0] = on->rank;
    MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    for (int r = 0; r < on->size; ++r) {
        failures += out[r] == r ? 0 : 1;
    }
    MPI_Type_free(&pair);
    MPI_Comm_free(&comm);
    return failures;
}

/* Rank 0 has other arguments than the rest: at least one gets an error, and none hangs. */
static unsigned mismatch(const dt_comm_t *on, const char *what, int which, int scale)
{
    int n = 0 == on->rank ? 100 * scale : 77 * scale;
    int *in = calloc((size_t) n, sizeof(int));
    int *out = calloc((size_t) (100 * scale * on->size), sizeof(int));
    int failed, rc = MPI_SUCCESS, class = MPI_SUCCESS, total = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;

    MPI_Comm_dup(on->comm, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    switch (which) {
    case 0:
        rc = MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
        break;
    case 1:
        rc = MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
        break;
    case 2:
        rc = MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, &request);
        rc = MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
        break;
    case 3: /* more on one rank's side of its own block */
        rc = MPI_Allgather(in, 0 == on->rank ? 60 * scale : 77 * scale, MPI_INT, out, 77 * scale,
                           MPI_INT, comm);
        break;
    default:
        rc = MPI_Allgather(in, 0 == on->rank ? 90 * scale : 77 * scale, MPI_INT, out, 77 * scale,
                           MPI_INT, comm);
        break;
    }
    MPI_Error_class(rc, &class);
    failed = MPI_SUCCESS != rc;
    MPI_Allreduce(&failed, &total, 1, MPI_INT, MPI_SUM, on->comm);
    MPI_Comm_free(&comm);
    free(in);
    free(out);
    if (0 == total ||
        (failed && MPI_ERR_COUNT != class && MPI_ERR_OTHER != class && MPI_ERR_TRUNCATE != class)) {
        fprintf(stderr, "# mismatch %s x %d: %d ranks noticed, error class %d\n", what, scale,
                total, class);
        return 1;
    }
    return 0;
}

unsigned dt_errors_mismatch(const dt_comm_t *on)
{
    static const char *const names[] = {"allreduce", "allgather", "iallreduce",
                                        "allgather's own block", "allgather's longer own block"};
    unsigned failures = 0;

    /* Open MPI 4 takes errors of nonblocking collectives to MPI_COMM_WORLD. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int which = 0; 1 < on->size && which < 5; ++which) {
        failures += mismatch(on, names[which], which, 1);
        failures += mismatch(on, names[which], which, 1000);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return failures;
}
