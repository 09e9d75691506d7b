/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives over datatypes, operations, lengths, communicators and threads, with exact results.
 *
 * datatypes [--long] [--threads] [--seed N] [GROUP ...]; prints TAP, one test per group.
 */
#include "datatypes_groups.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct group {
    const char *name;
    unsigned (*run)(const dt_env_t *env);
    bool threads; /* needs MPI_THREAD_MULTIPLE */
} group_t;

static unsigned run_arguments(const dt_env_t *env)
{
    return dt_errors_arguments(&env->comms[0]);
}

static unsigned run_mismatch(const dt_env_t *env)
{
    return dt_errors_mismatch(&env->comms[5]) + dt_errors_mismatch(&env->comms[0]);
}

static const group_t groups[] = {
    {"predefined", dt_group_predefined, false}, {"sizes", dt_group_sizes, false},
    {"movement", dt_group_movement, false},     {"user", dt_group_user, false},
    {"empty", dt_group_empty, false},           {"large", dt_group_large, false},
    {"memory", dt_group_memory, false},         {"late", dt_group_late, false},
    {"inflight", dt_group_inflight, false},     {"comms", dt_group_comms, false},
    {"freed", dt_group_freed, false},           {"threads", dt_group_threads, true},
    {"arguments", run_arguments, false},        {"mismatch", run_mismatch, false},
};

/* A call that does not end: say which, and stop the job. */
static void watchdog(int signal)
{
    static const char text[] = "# stuck in: ";

    (void) signal;
    (void) !write(2, text, sizeof(text) - 1);
    (void) !write(2, dt_last_call, strlen(dt_last_call));
    (void) !write(2, "\n", 1);
    abort();
}

void dt_comm_init(dt_comm_t *on, MPI_Comm comm, const char *name)
{
    memset(on, 0, sizeof(*on));
    on->comm = comm;
    on->name = name;
    MPI_Comm_rank(comm, &on->rank);
    MPI_Comm_size(comm, &on->size);
}

static void env_split(dt_env_t *env, const char *name, int color, int key)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    dt_comm_init(&env->comms[env->comm_count++], comm, name);
}

static void env_init(dt_env_t *env)
{
    MPI_Comm dup;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    dt_comm_init(&env->comms[0], MPI_COMM_WORLD, "WORLD");
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    dt_comm_init(&env->comms[1], dup, "dup");
    env->comm_count = 2;
    env_split(env, "reverse", 0, -rank);
    env_split(env, "parity", rank % 2, rank);
    env_split(env, "alone", rank, 0);
    env_split(env, "pairs", rank / 2, -rank);
    env_split(env, "threes", rank / 3, rank);
}

static void env_fini(dt_env_t *env)
{
    for (int i = 1; i < env->comm_count; ++i) {
        MPI_Comm_free(&env->comms[i].comm);
    }
}

static bool wanted(const group_t *group, char **names, int count)
{
    for (int i = 0; i < count; ++i) {
        if (0 == strcmp(group->name, names[i])) {
            return true;
        }
    }
    return 0 == count;
}

/* Runs a group and prints its TAP line. @return true if it passed on all ranks. */
static bool run(const dt_env_t *env, const group_t *group, int number)
{
    double start = MPI_Wtime();
    unsigned total = 0, failures;

    alarm(env->thorough ? 600 : 100);
    failures = group->run(env);
    MPI_Allreduce(&failures, &total, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    alarm(0);
    if (0 == env->comms[0].rank) {
        printf("%sok %d - %s (%.1f s)\n", 0 == total ? "" : "not ", number, group->name,
               MPI_Wtime() - start);
        fflush(stdout);
    }
    return 0 == total;
}

int main(int argc, char **argv)
{
    dt_env_t env = {.seed = 1};
    bool threads = false, passed = true;
    int number = 0, first = 1, level;
    size_t count;

    for (; first < argc && '-' == argv[first][0]; ++first) {
        if (0 == strcmp(argv[first], "--long")) {
            env.thorough = true;
        } else if (0 == strcmp(argv[first], "--threads")) {
            threads = true;
        } else if (0 == strcmp(argv[first], "--seed") && first + 1 < argc) {
            env.seed = (uint32_t) strtoul(argv[++first], NULL, 10);
        }
    }
    signal(SIGALRM, watchdog);
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    env_init(&env);
    (void) dt_predefined(&count); /* before there are threads */
    (void) dt_user(&count);
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); ++g) {
        if (wanted(&groups[g], argv + first, argc - first) && (threads || !groups[g].threads)) {
            passed = run(&env, &groups[g], ++number) && passed;
        }
    }
    if (0 == env.comms[0].rank) {
        printf("1..%d\n", number);
    }
    dt_user_free();
    dt_predefined_free();
    env_fini(&env);
    MPI_Finalize();
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
