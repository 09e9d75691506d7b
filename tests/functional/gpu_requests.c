/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whose requests those for buffers of gpu_alloc.h are, and how the PML's table starts requests of
 * all kinds together, as parts of Open MPI do. Line of rank 0:
 *   contiguous: OBJECT, rows: OBJECT, started: N wrong
 * OBJECT is the file that starts them.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

#include "gpu_alloc.h"
#include "pattern.h"

#include <mpi-ext.h>

#if OMPI_MAJOR_VERSION >= 5
#    define BARRIER_INIT MPI_Barrier_init
#else
#    define BARRIER_INIT MPIX_Barrier_init
#endif

enum { BYTES = 3000, REQUESTS = 6 };

static int me;
static unsigned char *out, *in;

/* The name of the file with the function that starts a request. */
static void starter(MPI_Request request, char *name_p, size_t room)
{
    ompi_request_start_fn_t start = request->req_start;
    const char *slash;
    Dl_info info;
    void *at;

    memcpy(&at, &start, sizeof(at));
    if (0 == dladdr(at, &info)) {
        info.dli_fname = "nobody";
    }
    slash = strrchr(info.dli_fname, '/');
    snprintf(name_p, room, "%s", NULL == slash ? info.dli_fname : slash + 1);
}

static void whose(MPI_Datatype type, int count, char *name_p, size_t room)
{
    MPI_Request request;

    MPI_Send_init(out, count, type, me, 1, MPI_COMM_WORLD, &request);
    starter(request, name_p, room);
    MPI_Request_free(&request);
}

/* Of the PML those are started that are the PML's: of r2 on device memory, and of the host's. */
static int started_together(void)
{
    static char host_out[BYTES], host_in[BYTES];
    MPI_Request requests[REQUESTS];
    int errors = 0;

    pattern_fill(out, me, 1, BYTES);
    pattern_fill((unsigned char *) host_out, me, 2, BYTES);
    memset(in, 0xa5, BYTES);
    requests[0] = NULL;
    requests[1] = MPI_REQUEST_NULL;
    MPI_Recv_init(in, BYTES, MPI_BYTE, me, 1, MPI_COMM_WORLD, &requests[2]);
    BARRIER_INIT(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
    MPI_Recv_init(host_in, BYTES, MPI_BYTE, me, 2, MPI_COMM_WORLD, &requests[4]);
    MPI_Send_init(host_out, BYTES, MPI_BYTE, me, 2, MPI_COMM_WORLD, &requests[5]);
    errors += OMPI_SUCCESS != MCA_PML_CALL(start(REQUESTS, requests));
    MPI_Send(out, BYTES, MPI_BYTE, me, 1, MPI_COMM_WORLD);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    MPI_Waitall(2, &requests[4], MPI_STATUSES_IGNORE);
    errors += pattern_wrong(in, me, 1, BYTES) +
              pattern_wrong((unsigned char *) host_in, me, 2, BYTES) +
              (OMPI_REQUEST_INACTIVE != requests[3]->req_state);
    for (int i = 2; i < REQUESTS; ++i) {
        MPI_Request_free(&requests[i]);
    }
    return errors;
}

int main(int argc, char **argv)
{
    char contiguous[256], rows[256];
    MPI_Datatype vector;
    int errors;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    out = buffer_alloc(BYTES);
    in = buffer_alloc(BYTES);
    MPI_Type_vector(10, 1, 2, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    whose(MPI_BYTE, BYTES, contiguous, sizeof(contiguous));
    whose(vector, 2, rows, sizeof(rows));
    errors = argc > 1 ? 0 : started_together();
    if (0 == me || 0 != errors) {
        printf("contiguous: %s, rows: %s, started: %d wrong\n", contiguous, rows, errors);
        fflush(stdout);
    }
    MPI_Type_free(&vector);
    buffer_free(out);
    buffer_free(in);
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
