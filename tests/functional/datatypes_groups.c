/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Groups of calls that are made one at a time.
 */
#include "datatypes_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The forms of a reduction: blocking ones, then the nonblocking one. */
static const struct {
    dt_kind_t kind;
    bool nonblocking;
} reduction_forms[] = {{DT_ALLREDUCE, false},
                       {DT_ALLREDUCE, true},
                       {DT_REDUCE_SCATTER, false},
                       {DT_REDUCE_SCATTER_BLOCK, false}};

static const struct {
    dt_kind_t kind;
    bool nonblocking;
} movement_forms[] = {{DT_BCAST, false},
                      {DT_BCAST, true},
                      {DT_ALLGATHER, false},
                      {DT_ALLGATHER, true},
                      {DT_ALLGATHERV, false}};

/* All forms of a reduction, in place and not. */
static unsigned reduction_forms_run(const dt_comm_t *on, const dt_reduction_t *reduction, int count,
                                    uint32_t salt)
{
    unsigned failures = 0;

    for (size_t f = 0; f < COUNT_OF(reduction_forms); ++f) {
        for (int in_place = 0; in_place < 2; ++in_place) {
            dt_call_t call = {.kind = reduction_forms[f].kind,
                              .nonblocking = reduction_forms[f].nonblocking,
                              .in_place = 0 != in_place,
                              .on = on,
                              .reduction = reduction,
                              .count = count,
                              .salt = salt + (uint32_t) f};

            failures += dt_call_run(&call);
        }
    }
    return failures;
}

static unsigned movement_forms_run(const dt_comm_t *on, dt_class_t class, unsigned variant,
                                   bool plain, uint64_t units, uint32_t salt)
{
    unsigned failures = 0;

    for (size_t f = 0; f < COUNT_OF(movement_forms); ++f) {
        for (int in_place = 0; in_place < (DT_BCAST == movement_forms[f].kind ? 1 : 2);
             ++in_place) {
            dt_call_t call = {.kind = movement_forms[f].kind,
                              .nonblocking = movement_forms[f].nonblocking,
                              .in_place = 0 != in_place,
                              .on = on,
                              .root = (int) ((salt + f) % (uint32_t) on->size),
                              .units = units,
                              .class = class,
                              .variant = variant,
                              .plain = plain,
                              .salt = salt};

            failures += dt_call_run(&call);
        }
    }
    return failures;
}

/* Every predefined type with every operation that is valid for it. */
unsigned dt_group_predefined(const dt_env_t *env)
{
    static const int counts[] = {5, 1, 3, 31, 600};
    unsigned failures = 0;
    size_t count;
    const dt_reduction_t *all = dt_predefined(&count);

    for (size_t c = 0; c < (env->thorough ? COUNT_OF(counts) : 1); ++c) {
        for (size_t i = 0; i < count; ++i) {
            size_t on = (i + c) % (size_t) env->comm_count;

            failures += reduction_forms_run(&env->comms[on], &all[i], counts[c], (uint32_t) i);
        }
    }
    return failures;
}

/* Lengths in bytes at which something changes: copies, credit, eager data, chunks, segments. */
static const size_t size_edges[] = {0,     1024,  2048,   4096,   8192,    16384,
                                    32768, 65536, 131072, 262144, 1048576, 4194304};

unsigned dt_group_sizes(const dt_env_t *env)
{
    static const char *const names[] = {
        "MPI_INT MPI_SUM", "MPI_DOUBLE MPI_MAX", "MPI_SHORT_INT MPI_MINLOC",
        "MPI_C_LONG_DOUBLE_COMPLEX MPI_SUM", "MPI_UINT8_T MPI_BXOR"};
    size_t edges = COUNT_OF(size_edges) - (env->thorough ? 0 : 3);
    unsigned failures = 0;

    for (size_t e = 0; e < edges; ++e) {
        for (int shift = -1; shift < 2; ++shift) {
            size_t n = e * 3 + (size_t) (shift + 1);
            const dt_comm_t *on = &env->comms[n % (size_t) env->comm_count];
            const dt_reduction_t *reduction = dt_predefined_find(names[n % COUNT_OF(names)]);
            int64_t count = (int64_t) (size_edges[e] / (size_t) reduction->type->extent) + shift;
            int64_t bytes = (int64_t) size_edges[e] + shift;

            failures +=
                reduction_forms_run(on, reduction, count < 0 ? 3 : (int) count, (uint32_t) n);
            failures += movement_forms_run(on, DT_CLASS_CHAR, 0, true,
                                           (uint64_t) (bytes < 0 ? 3 : bytes), (uint32_t) n);
        }
    }
    return failures;
}

/* Every class and variant, different types of one signature on different ranks. */
unsigned dt_group_movement(const dt_env_t *env)
{
    static const uint64_t steps[] = {1, 7, 43, 171, 342, 1366, 3001, 21846};
    size_t lengths = COUNT_OF(steps) - (env->thorough ? 0 : 1);
    unsigned failures = 0;
    size_t n = 0;

    for (int class = 0; class < DT_CLASS_COUNT; ++class) {
        for (unsigned variant = 0; variant < dt_variants((dt_class_t) class); ++variant) {
            for (size_t s = 0; s < lengths; ++s, ++n) {
                uint64_t units = steps[s] * (uint64_t) dt_unit_step((dt_class_t) class);

                if (!env->thorough && 0 != (n + s) % 3 && 1 < s) {
                    continue;
                }
                failures += movement_forms_run(&env->comms[n % (size_t) env->comm_count],
                                               (dt_class_t) class, variant, 0 == n % 5, units,
                                               (uint32_t) n);
            }
        }
    }
    return failures;
}

unsigned dt_group_user(const dt_env_t *env)
{
    static const int counts[] = {1, 3, 40, 171, 400, 1500, 6001};
    size_t lengths = COUNT_OF(counts) - (env->thorough ? 0 : 1);
    unsigned failures = 0;
    size_t count, n = 0;
    const dt_reduction_t *all = dt_user(&count);

    for (size_t i = 0; i < count; ++i) {
        for (size_t c = 0; c < lengths; ++c, ++n) {
            if (!env->thorough && 0 != (n + i) % 3) {
                continue;
            }
            failures += reduction_forms_run(&env->comms[n % (size_t) env->comm_count], &all[i],
                                            counts[c], (uint32_t) n);
        }
    }
    return failures;
}

/* Nothing to move: counts of zero, types without data, blocks of some ranks only. */
unsigned dt_group_empty(const dt_env_t *env)
{
    unsigned failures = 0;
    MPI_Datatype nothing;
    char memory[4] = "abc";

    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    for (int c = 0; c < env->comm_count; ++c) {
        const dt_comm_t *on = &env->comms[c];
        MPI_Datatype type = 0 == on->rank % 2 ? nothing : MPI_INT;
        int count = 0 == on->rank % 2 ? 5 : 0;
        MPI_Request requests[3];
        int *counts = calloc((size_t) on->size, sizeof(int));

        failures += reduction_forms_run(on, dt_predefined_find("MPI_INT MPI_SUM"), 0, 1);
        failures += movement_forms_run(on, DT_CLASS_INT, 3, false, 0, 1);
        MPI_Bcast(memory, count, type, 0, on->comm);
        MPI_Ibcast(memory, count, type, 0, on->comm, &requests[0]);
        MPI_Allgather(memory, 5, nothing, memory, count, type, on->comm);
        MPI_Iallgather(memory, 5, nothing, memory, count, type, on->comm, &requests[1]);
        MPI_Allgatherv(memory, 0, MPI_INT, memory, counts, counts, type, on->comm);
        MPI_Gather(memory, count, type, memory, count, type, 0, on->comm);
        MPI_Scatter(memory, count, type, memory, count, type, 0, on->comm);
        MPI_Ibarrier(on->comm, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(on->comm);
        free(counts);
    }
    MPI_Type_free(&nothing);
    if ('a' != memory[0] || 'b' != memory[1] || 'c' != memory[2]) {
        fprintf(stderr, "# empty: memory was written\n");
        ++failures;
    }
    return failures;
}

/* Derived types of a few MiB: longer than staging memory may be. */
unsigned dt_group_large(const dt_env_t *env)
{
    const uint64_t bytes = env->thorough ? 4u << 20 : 1u << 19;
    unsigned failures = 0;
    size_t count;
    const dt_reduction_t *all = dt_user(&count);

    failures += movement_forms_run(&env->comms[0], DT_CLASS_INT, 5, false, bytes / 48 * 12, 1);
    failures += movement_forms_run(&env->comms[0], DT_CLASS_MIXED, 1, false, bytes / 23, 2);
    failures +=
        movement_forms_run(&env->comms[0], DT_CLASS_LONG_DOUBLE_COMPLEX, 1, false, bytes / 32, 3);
    for (size_t i = 7; i < count; i += env->thorough ? 3 : 9) {
        failures += reduction_forms_run(&env->comms[0], &all[i],
                                        (int) (bytes / all[i].type->bytes / 4), (uint32_t) i);
    }
    return failures;
}

/* Long calls that some ranks come to late, since they compute meanwhile. */
unsigned dt_group_late(const dt_env_t *env)
{
    const dt_comm_t *on = &env->comms[0];
    const dt_reduction_t *reduction = dt_predefined_find("MPI_INT MPI_SUM");
    unsigned failures = 0;

    for (uint64_t round = 0; round < (env->thorough ? 400u : 30u); ++round) {
        uint64_t hash = dt_hash(env->seed, round, (uint64_t) on->rank);
        bool alone = 9 == round % 10 && on->rank != (int) (round / 10) % on->size;
        double until = MPI_Wtime() + (alone ? 1.5 : (double) (hash % 40) / 1000);
        dt_call_t call = {.kind = (dt_kind_t) (round % 4),
                          .on = on,
                          .units = 1u << 20,
                          .class = DT_CLASS_CHAR,
                          .plain = true,
                          .reduction = reduction,
                          .count = 9 == round % 10 ? 1 << 20 : 1 << 18,
                          .salt = (uint32_t) round};

        while (MPI_Wtime() < until) {
        }
        failures += dt_call_run(&call);
    }
    return failures;
}

/* A line of this process's status, in KiB; 0: not known. */
static long status_kib(const char *key)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        if (0 == strncmp(line, key, strlen(key))) {
            kib = strtol(line + strlen(key) + 1, NULL, 10);
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return kib;
}

static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    if (NULL != file) {
        fputs("5", file);
        fclose(file);
    }
}

#define MEMORY_BLOCK_BYTES (24 << 20)
#define MEMORY_GROWTH_KIB  (12 << 10)

/* What the library needs for long blocks that are not contiguous does not grow with them. */
unsigned dt_group_memory(const dt_env_t *env)
{
    const dt_comm_t *on = &env->comms[0];
    const size_t count = MEMORY_BLOCK_BYTES / 32; /* 4 of 8 ints */
    char *send = malloc(count * 32), *recv = malloc(count * 32 * (size_t) on->size);
    MPI_Datatype half, spread;
    unsigned failures = 0;

    memset(send, on->rank + 1, count * 32);
    memset(recv, 99, count * 32 * (size_t) on->size);
    MPI_Type_contiguous(4, MPI_INT, &half);
    MPI_Type_create_resized(half, 0, 32, &spread);
    MPI_Type_commit(&spread);
    for (int bcast = 0; bcast < 2; ++bcast) {
        long before, growth;

        MPI_Barrier(on->comm);
        forget_peak();
        before = status_kib("VmRSS:");
        if (bcast) {
            MPI_Bcast(0 == on->rank ? send : recv, (int) count, spread, 0, on->comm);
        } else {
            MPI_Allgather(send, (int) count, spread, recv, (int) count, spread, on->comm);
        }
        growth = status_kib("VmHWM:") - before;
        if (growth > MEMORY_GROWTH_KIB) {
            fprintf(stderr, "# memory: %s took %ld KiB\n", bcast ? "bcast" : "allgather", growth);
            ++failures;
        }
    }
    for (size_t i = 0; i < count * 32 * (size_t) on->size; ++i) {
        size_t rank = i / 32 / count;
        char want = i % 32 >= 16 ? 99 : 0 == rank ? 1 : (char) (rank + 1);

        failures += recv[i] == want ? 0 : 1;
    }
    MPI_Type_free(&half);
    MPI_Type_free(&spread);
    free(send);
    free(recv);
    return failures;
}
