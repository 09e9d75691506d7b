/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Requests come from a list. MPI_Iallreduce notes in a request what it will release when that is
 * over; where another thread completes it meanwhile, the note stays. The next call that gets the
 * request must find none, or it releases what is not its own.
 * Usage: request_reuse; exit code 0: as it has to be.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ompi/mca/coll/base/coll_base_util.h"

#if OMPI_MAJOR_VERSION < 5
#    define NOTES(request) (&(request)->data)
#else
#    define NOTES(request) (&(request)->data.refcounted)
#endif

enum { CALLS = 8 };

static int noted, found;

/* In Open MPI's place: leaves notes of operation and type. */
__attribute__((visibility("default"))) int
ompi_coll_base_retain_op(ompi_request_t *request, ompi_op_t *op, ompi_datatype_t *type)
{
    ompi_coll_base_nbc_request_t *nbc = (ompi_coll_base_nbc_request_t *) request;

    if (request != &ompi_request_empty) {
        found += NULL != nbc->cb.req_complete_cb || NULL != nbc->req_complete_cb_data ||
                 NULL != NOTES(nbc)->objs.objs[0] || NULL != NOTES(nbc)->objs.objs[1];
        nbc->cb.req_complete_cb = (ompi_request_complete_fn_t) (uintptr_t) nbc;
        nbc->req_complete_cb_data = nbc;
        NOTES(nbc)->op.op = op;
        NOTES(nbc)->op.datatype = type;
        ++noted;
    }
    return OMPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int one = 1, sum, rank, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < CALLS; ++i) {
        MPI_Request request;

        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    wrong = found > 0 || CALLS != noted;
    if (wrong) {
        printf("# rank %d: %d requests noted in, %d with older notes\n", rank, noted, found);
    }
    MPI_Finalize();
    return wrong;
}
