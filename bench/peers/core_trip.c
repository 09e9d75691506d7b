/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Nanoseconds that a cache line takes from one core to another and back: core_trip CORE CORE. On a
 * virtual machine this changes with where the host has put the cores, and every figure with it.
 */
#include "r2_config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TRIES = 8,   /* the shortest counts: others may be at work on these cores */
    TRIPS = 100, /* of each: a job that comes to its end is not to be held up */
};

typedef struct table {
    _Alignas(128) atomic_uint ball; /* odd: the partner's turn */
    _Alignas(128) atomic_bool over;
    atomic_int status; /* of the partner's pinning; -1: not known yet */
    int core;          /* the partner's */
} table_t;

static int pin(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *partner(void *arg)
{
    table_t *table = arg;

    atomic_store(&table->status, pin(table->core));
    while (!atomic_load(&table->over)) {
        unsigned ball = atomic_load(&table->ball);

        if (1 == ball % 2) {
            atomic_store(&table->ball, ball + 1);
        }
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

static double trip_ns(table_t *table)
{
    double begin_ns = now_ns();

    for (int i = 0; i < TRIPS; ++i) {
        unsigned ball = atomic_load(&table->ball);

        atomic_store(&table->ball, ball + 1);
        while (atomic_load(&table->ball) != ball + 2) {
        }
    }
    return (now_ns() - begin_ns) / TRIPS;
}

static bool parse_core(const char *text, int *core)
{
    char *end;
    long value = strtol(text, &end, 10);

    *core = (int) value;
    return end != text && '\0' == *end && value >= 0 && value < CPU_SETSIZE;
}

int main(int argc, char **argv)
{
    table_t table = {.status = -1};
    double best_ns = 0;
    pthread_t thread;
    int core, status;

    if (3 != argc || !parse_core(argv[1], &core) || !parse_core(argv[2], &table.core) ||
        core == table.core) {
        fprintf(stderr, "usage: core_trip CORE CORE: two numbers of cores\n");
        return 2;
    }
    status = pin(core);
    if (0 == status) {
        status = pthread_create(&thread, NULL, partner, &table);
    }
    if (0 != status) {
        fprintf(stderr, "core_trip: core %d: %s\n", core, strerror(status));
        return 1;
    }
    while (-1 == atomic_load(&table.status)) {
    }
    for (int i = 0; i < TRIES && 0 == table.status; ++i) {
        double ns = trip_ns(&table);

        best_ns = 0 == i || ns < best_ns ? ns : best_ns;
    }
    atomic_store(&table.over, true);
    pthread_join(thread, NULL);
    if (0 != table.status) {
        fprintf(stderr, "core_trip: core %d: %s\n", table.core, strerror(table.status));
        return 1;
    }
    printf("%.0f\n", best_ns);
    return 0;
}
