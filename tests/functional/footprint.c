/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a package that is only installed must not change: threads, descriptors and sockets of each
 * process, and what it publishes for others. One line for each rank, in order.
 */
#include <mpi.h>
#include <pmix.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct footprint {
    int threads, descriptors, sockets, published;
} footprint_t;

static int count_entries(const char *path, const char *target)
{
    DIR *folder = opendir(path);
    int count = 0;

    for (const struct dirent *at; NULL != folder && NULL != (at = readdir(folder));) {
        char link[512], to[64] = "";

        snprintf(link, sizeof(link), "%s/%s", path, at->d_name);
        if ('.' != at->d_name[0] &&
            (NULL == target || (0 < readlink(link, to, sizeof(to) - 1) &&
                                0 == strncmp(to, target, strlen(target))))) {
            ++count;
        }
    }
    if (NULL != folder) {
        closedir(folder);
    }
    return count;
}

static int publishes(int rank)
{
    pmix_proc_t self, proc;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    bool yes = true;
    int found;

    if (PMIX_SUCCESS != PMIx_Init(&self, NULL, 0)) {
        return -1;
    }
    PMIX_LOAD_PROCID(&proc, self.nspace, (pmix_rank_t) rank);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    found = PMIX_SUCCESS == PMIx_Get(&proc, "r2.blob", &info, 1, &value);
    if (NULL != value) {
        PMIX_VALUE_RELEASE(value);
    }
    PMIx_Finalize(NULL, 0);
    return found;
}

int main(int argc, char **argv)
{
    footprint_t own, all[64];
    int rank, size, sum = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    own.threads = count_entries("/proc/self/task", NULL);
    own.descriptors = count_entries("/proc/self/fd", NULL);
    own.sockets = count_entries("/proc/self/fd", "socket:");
    own.published = publishes(rank);
    if (64 < size || sum != size) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Gather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; 0 == rank && i < size; ++i) {
        printf("rank %d: threads %d descriptors %d sockets %d published %d\n", i, all[i].threads,
               all[i].descriptors, all[i].sockets, all[i].published);
    }
    MPI_Finalize();
    return 0;
}
