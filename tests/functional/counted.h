/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Counters of r2's, by MPI_T.
 */
#ifndef COUNTED_H
#define COUNTED_H

#include <mpi.h>

/* @return what has been counted so far; 0 also for a name that there is not. */
static inline unsigned long long counted(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int level, index, count;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    if (MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &index) &&
        MPI_SUCCESS == MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count)) {
        MPI_T_pvar_read(session, handle, &value);
        MPI_T_pvar_handle_free(session, &handle);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

#endif
