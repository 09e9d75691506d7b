/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A process is stopped or killed at a moment that has nothing to do with its calls.
 */
#ifndef STRIKE_H
#define STRIKE_H

#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS      1000u
#define ERROR_S 10.0

/* "stopped": three times for 0.3 s. "killed". "stopped-killed": 0.5 s after it is stopped. Others:
 * nothing. A child does that to its parent. */
static inline void strike(const char *what)
{
    const pid_t parent = getpid();
    const bool stops = 0 == strncmp(what, "stopped", strlen("stopped"));
    const bool kills = NULL != strstr(what, "killed");

    if ((!stops && !kills) || 0 != fork()) {
        return;
    }
    usleep(300 * MS);
    for (int i = 0; stops && i < (kills ? 1 : 3); ++i) {
        kill(parent, SIGSTOP);
        usleep((kills ? 500 : 300) * MS);
        kill(parent, kills ? SIGKILL : SIGCONT);
        usleep(100 * MS);
    }
    if (kills) {
        kill(parent, SIGKILL);
    }
    _exit(0);
}

/* Of who goes on. @param silent_s since its newest call began. @return 0: told in time who is
 * gone. */
static inline int survived(int rank, int rc, double silent_s)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MPI_Error_string(rc, text, &length);
    printf("rank %d: %s after %.1f s\n", rank, text, silent_s);
    fflush(stdout);
    return MPI_SUCCESS == rc || silent_s > ERROR_S;
}

#endif
