/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Who runs the collectives of which communicators: by_host ALL HOST, each r2, stock, or blocking:
 * r2 the blocking calls that memory makes, when some were made before, and stock the rest. ALL is
 * for communicators with processes of several hosts, HOST for those of one. Calls every collective
 * on both sorts, with exact checks, and reads r2's count of calls before and after. Prints TAP.
 *
 * Hosts are told apart by their UTS namespace, which is part of what r2 tells them apart by.
 */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_COMMS   8
#define EARLY_CALLS 16 /* which are not worth memory of their own */

static const int counts[] = {5, 1000};

/* What members of one host make by memory, whether or not they share cores. Scatters of these
 * lengths only if they do not, reduce_scatters only of equal blocks. */
static const char *const by_memory[] = {"allgather", "allreduce", "alltoall", "barrier",
                                        "exscan", "gather", "reduce", "reduce_scatter_block",
                                        "scan", "bcast"};

/** A communicator, and whether all its processes are on one host. */
typedef struct sort {
    job_comm_t on;
    bool one_host;
} sort_t;

static sort_t sorts[MAX_COMMS];
static int sort_count;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle calls_of_r2;
static bool
    counted; /* false: Open MPI has unloaded r2, which told in MPI_Init that it has no part */

static void open_count(void)
{
    int provided, index, count;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    counted = MPI_SUCCESS == MPI_T_pvar_get_index("coll_r2_collectives", MPI_T_PVAR_CLASS_GENERIC,
                                                  &index) &&
              MPI_SUCCESS == MPI_T_pvar_handle_alloc(session, index, NULL, &calls_of_r2, &count);
}

static void close_count(void)
{
    if (counted) {
        MPI_T_pvar_handle_free(session, &calls_of_r2);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static unsigned long long r2_calls(void)
{
    unsigned long long count = 0;

    if (counted) {
        MPI_T_pvar_read(session, calls_of_r2, &count);
    }
    return count;
}

/* One process alone has nobody to exchange with, and no NIC either. */
static void add(const char *name, MPI_Comm comm, int host)
{
    sort_t *sort = &sorts[sort_count];
    int least, most;

    MPI_Allreduce(&host, &least, 1, MPI_INT, MPI_MIN, comm);
    MPI_Allreduce(&host, &most, 1, MPI_INT, MPI_MAX, comm);
    MPI_Comm_rank(comm, &sort->on.rank);
    MPI_Comm_size(comm, &sort->on.size);
    sort->on.name = name;
    sort->on.comm = comm;
    sort->on.peers = sort->on.size;
    sort->one_host = least == most;
    ++sort_count;
}

/* The lowest rank on the host of each process. */
static int find_host(int rank, int size)
{
    unsigned long own = 0;
    unsigned long *all = calloc((size_t) size, sizeof(*all));
    struct stat info;
    int host = 0;

    if (NULL == all || 0 != stat("/proc/self/ns/uts", &info)) {
        MPI_Abort(MPI_COMM_WORLD, 2);
        abort();
    }
    own = (unsigned long) info.st_ino;
    MPI_Allgather(&own, 1, MPI_UNSIGNED_LONG, all, 1, MPI_UNSIGNED_LONG, MPI_COMM_WORLD);
    while (host < rank && all[host] != own) {
        ++host;
    }
    free(all);
    return host;
}

/* All, those of one host in several ways, and one of each host. */
static void make_comms(int rank, int size)
{
    const int host = find_host(rank, size);
    MPI_Comm comm, of_host;
    MPI_Request request;
    MPI_Group group;
    int place;

    add("WORLD", MPI_COMM_WORLD, host);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    add("reverse", comm, host);
    MPI_Comm_split(MPI_COMM_WORLD, host, rank, &of_host);
    add("host", of_host, host);
    MPI_Comm_dup(of_host, &comm);
    add("dup of host", comm, host);
    MPI_Comm_idup(of_host, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    add("idup of host", comm, host);
    MPI_Comm_group(of_host, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &comm);
    MPI_Group_free(&group);
    add("group of host", comm, host);
    MPI_Comm_rank(of_host, &place);
    MPI_Comm_split(MPI_COMM_WORLD, place, rank, &comm);
    add("one of each host", comm, host);
}

static void free_comms(void)
{
    for (int i = 0; i < sort_count; ++i) {
        if (MPI_COMM_WORLD != sorts[i].on.comm) {
            MPI_Comm_free(&sorts[i].on.comm);
        }
    }
}

/* @param made by r2. @return false: it should not have, or should. */
static bool is_as_expected(const char *who, const job_case_t *test, int mode, bool made)
{
    if (0 != strcmp(who, "blocking")) {
        return made == (0 == strcmp(who, "r2"));
    }
    if (JOB_BLOCKING != mode) {
        return !made;
    }
    for (size_t i = 0; i < sizeof(by_memory) / sizeof(by_memory[0]); ++i) {
        if (0 == strcmp(test->name, by_memory[i])) {
            return made;
        }
    }
    return true; /* Open MPI's own may be made of others */
}

/* A collective in all forms on one communicator, by who is expected. @return failures here. */
static unsigned run_on(const job_case_t *test, const sort_t *sort, const char *who)
{
    unsigned failures = 0;

    for (int mode = 0; mode < JOB_MODE_COUNT; ++mode) {
        const unsigned long long before = r2_calls();
        unsigned long long calls;

        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); ++c) {
            job_t job = {
                .on = &sort->on, .mode = (job_mode_t) mode, .count = counts[c], .name = test->name};

            test->run(&job);
            failures += job.failures;
        }
        calls = r2_calls() - before;
        if (!is_as_expected(who, test, mode, 0 != calls)) {
            printf("# rank %d: %s on %s, form %d: r2 ran %llu calls\n", sort->on.rank, test->name,
                   sort->on.name, mode, calls);
            ++failures;
        }
    }
    return failures;
}

static unsigned run(const job_case_t *test, const char *all, const char *host)
{
    unsigned failures = 0, total = 0;

    for (int i = 0; i < sort_count; ++i) {
        const sort_t *sort = &sorts[i];

        failures +=
            run_on(test, sort, 1 == sort->on.size ? "stock" : (sort->one_host ? host : all));
    }
    MPI_Allreduce(&failures, &total, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    const job_case_t *const tables[] = {job_cases_unrooted, job_cases_rooted, job_cases_neighbor};
    int rank, size, number = 0;
    unsigned wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (3 != argc) {
        fprintf(stderr, "usage: by_host r2|stock|blocking r2|stock|blocking\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    open_count();
    make_comms(rank, size);
    if (0 == strcmp(argv[1], "blocking") && 0 != r2_calls()) {
        printf("# rank %d: early calls by r2: %llu\n", rank, r2_calls());
        ++wrong;
    }
    for (int i = 0; i < sort_count; ++i) {
        for (int call = 0; call < EARLY_CALLS; ++call) {
            MPI_Barrier(sorts[i].on.comm);
        }
    }
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); ++t) {
        for (const job_case_t *test = tables[t]; NULL != test->name; ++test) {
            const unsigned failures = run(test, argv[1], argv[2]);

            wrong += failures;
            if (0 == rank) {
                printf("%sok %d - %s\n", 0 == failures ? "" : "not ", ++number, test->name);
            }
        }
    }
    free_comms();
    close_count();
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
