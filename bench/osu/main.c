/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Benchmarks of MPI: r2_bench NAME; a program that is called r2_NAME is the same without the word.
 */
#include "r2_config.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

static void usage(FILE *out)
{
    fprintf(out, "usage: mpirun [mpirun options] r2_bench NAME [options]\n"
                 "       r2_bench NAME -h    options\n"
                 "       r2_bench --list     all names\n");
}

/* Everything that has no NAME of a benchmark. Rank 0 speaks. @return exit status. */
static int answer(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    bool help = 0 == strcmp(word, "-h") || 0 == strcmp(word, "--help");
    bool version = 0 == strcmp(word, "-v") || 0 == strcmp(word, "--version");
    bool list = 0 == strcmp(word, "--list");
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 == rank && list) {
        r2_bench_task_list(stdout);
    } else if (0 == rank && version) {
        printf("r2_bench %s\n", R2_VERSION);
    } else if (0 == rank && help) {
        usage(stdout);
    } else if (0 == rank) {
        fprintf(stderr, "r2_bench: %s%s\n",
                '\0' == *word ? "no name given" : "no benchmark is called ", word);
        usage(stderr);
    }
    MPI_Finalize();
    return help || version || list ? 0 : 2;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *program = NULL == slash ? argv[0] : slash + 1;
    r2_bench_task_t task;

    if (0 == strncmp(program, "r2_", 3) && r2_bench_task_init(&task, NULL, program + 3)) {
        return r2_bench_main(argc, argv, &task);
    }
    if (argc > 1 && r2_bench_task_init(&task, "r2_bench", argv[1])) {
        return r2_bench_main(argc - 1, argv + 1, &task);
    }
    return answer(argc, argv);
}
