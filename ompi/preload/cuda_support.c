/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be preloaded: MPIX_Query_cuda_support() says 1 where point-to-point and collectives take CUDA
 * memory through r2, although Open MPI was built without CUDA. Asks MPI's own tools interface, and
 * links with nothing of r2.
 */
#include "r2_config.h"

#include <dlfcn.h>
#include <mpi.h>
#include <mpi-ext.h>
#include <stddef.h>
#include <string.h>

/* The variable by which coll/r2 says that this process's point-to-point takes such memory: it is
 * set where all processes of the job use r2. */
#define VARIABLE "coll_r2_p2p_cuda"

typedef int (*query_fn_t)(void);

/* What MPI itself says. */
static int ask_mpi(void)
{
    void *symbol = dlsym(RTLD_NEXT, "MPIX_Query_cuda_support");
    query_fn_t query;

    memcpy(&query, &symbol, sizeof(query));
    return NULL == symbol ? 0 : query();
}

/* Within MPI_T_init_thread(). */
static int read_variable(void)
{
    MPI_T_cvar_handle handle;
    int index, count, value = 0;

    if (MPI_SUCCESS != MPI_T_cvar_get_index(VARIABLE, &index) ||
        MPI_SUCCESS != MPI_T_cvar_handle_alloc(index, NULL, &handle, &count)) {
        return 0;
    }
    if (1 != count || MPI_SUCCESS != MPI_T_cvar_read(handle, &value)) {
        value = 0;
    }
    (void) MPI_T_cvar_handle_free(&handle);
    return value;
}

static int ask_r2(void)
{
    int begun = 0, ended = 0, level, provided, value;

    /* Open MPI takes the level that is asked for here for that of the whole program. */
    if (MPI_SUCCESS != MPI_Initialized(&begun) || MPI_SUCCESS != MPI_Finalized(&ended) || !begun ||
        ended || MPI_SUCCESS != MPI_Query_thread(&level) ||
        MPI_SUCCESS != MPI_T_init_thread(level, &provided)) {
        return 0;
    }
    value = read_variable();
    (void) MPI_T_finalize();
    return 0 != value;
}

__attribute__((visibility("default"))) int MPIX_Query_cuda_support(void)
{
    return 0 != ask_mpi() || ask_r2();
}
