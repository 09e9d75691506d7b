/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Checks a barrier by the times at which ranks with one clock enter and leave it.
 */
#include "r2_config.h"

#include "clock.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"

/* What tells clocks apart: the kernel's boot, and the time namespace. */
static uint64_t clock_name(void)
{
    char boot[64] = "";
    char space[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (NULL != file) {
        if (NULL == fgets(boot, sizeof(boot), file)) {
            boot[0] = '\0';
        }
        fclose(file);
    }
    if (readlink("/proc/self/ns/time", space, sizeof(space) - 1) < 0) {
        space[0] = '\0'; /* a kernel without */
    }
    return r2_bench_data_hash(r2_bench_data_hash(0, boot, strlen(boot)), space, strlen(space));
}

bool r2_bench_clock_init(r2_bench_clock_t *clock, int ranks)
{
    uint64_t name = clock_name();

    clock->ranks = ranks;
    clock->names = calloc((size_t) ranks, sizeof(*clock->names));
    clock->entered_s = calloc((size_t) ranks, sizeof(*clock->entered_s));
    if (NULL == clock->names || NULL == clock->entered_s) {
        r2_bench_clock_fini(clock);
        return false;
    }
    MPI_Allgather(&name, 1, MPI_UINT64_T, clock->names, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    return true;
}

void r2_bench_clock_fini(r2_bench_clock_t *clock)
{
    free(clock->names);
    free(clock->entered_s);
    clock->names = NULL;
    clock->entered_s = NULL;
}

int r2_bench_clock_check(const r2_bench_clock_t *clock, int rank, double entered_s, double left_s)
{
    int last = -1;

    MPI_Allgather(&entered_s, 1, MPI_DOUBLE, clock->entered_s, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < clock->ranks; ++i) {
        if (i != rank && clock->names[i] == clock->names[rank] && clock->entered_s[i] > left_s) {
            last = i;
        }
    }
    return last;
}
