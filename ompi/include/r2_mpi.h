/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What MPI programs can know of r2. No library is needed, and no r2 either: a program that includes
 * this runs on any Open MPI.
 */
#ifndef R2_MPI_H
#define R2_MPI_H

#include <mpi.h>
#include <string.h>

/** How the text of the error class begins that r2 adds where MPI has none. */
#define R2_MPI_PROC_FAILED "MPI_ERR_PROC_FAILED:"

/**
 * The error class of collectives that end because a process of the communicator has died. Of the
 * communicator no call works any more; others that the dead process is not in go on. Open MPI 5.0
 * has such a class (MPI_ERR_PROC_FAILED); for 4.1 r2 adds one in MPI_Init, with the same number on
 * all ranks. Call it after MPI_Init.
 * @return the class; MPI_ERR_LASTCODE, which no error has, without r2 on 4.1.
 */
static inline int r2_mpi_err_proc_failed(void)
{
#ifdef MPI_ERR_PROC_FAILED
    return MPI_ERR_PROC_FAILED;
#else
    char text[MPI_MAX_ERROR_STRING];
    int *last, found, length;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
    for (int code = MPI_ERR_LASTCODE + 1; found && code <= *last; ++code) {
        if (MPI_SUCCESS == MPI_Error_string(code, text, &length) &&
            0 == strncmp(text, R2_MPI_PROC_FAILED, strlen(R2_MPI_PROC_FAILED))) {
            return code;
        }
    }
    return MPI_ERR_LASTCODE;
#endif
}

#endif
