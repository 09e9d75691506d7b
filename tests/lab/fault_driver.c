/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The job of the fault tests: collectives with exact checks, marks that tell the test where the job
 * is, gates where the job waits for the test, and a verdict.
 */
/*
 * Lines that the test reads (times are CLOCK_MONOTONIC, which all hosts of a lab share):
 *   rank R pid P          before MPI_Init
 *   gate NAME             rank 0 waits until the file NAME is in the folder of --gates
 *   init R FROM TO        MPI_Init, each rank
 *   begin I KIND AT       rank 0 enters collective KIND of iteration I
 *   done I AT NAME=SUM... after iteration I: r2's counters, summed over all ranks (_ns, _max: the
 *                         largest)
 *   error R KIND CALL SECONDS TEXT     an MPI call failed (--errors return)
 *   learned               --learn has written its file: bits of sums that nothing disturbed
 *   poisoned R SECONDS    the next call on the communicator failed as well, after so long
 *   wrong R I KIND COUNT WHAT
 *   verdict R WRONG ITERATIONS         after MPI_Finalize
 */
#include "fault_driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const counters[] = {
    "lanes_up",       "lanes_failed",    "lanes_closed",  "lanes_healed",   "ack_timeouts",
    "carrier_losses", "hellos_sent",     "hellos_failed", "resent_chunks",  "resent_bytes",
    "hedged_chunks",  "rx_duplicates",   "rx_stale",      "rx_malformed",   "unexpected_bytes_max",
    "collectives",    "tx_bytes",        "rx_bytes",      "longest_gap_ns", "service_takeovers",
    "relay_lanes",    "relayed_packets", "relayed_bytes", "put_bytes",      "placed_bytes",
    "held_back"};

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static MPI_T_pvar_session pvars;
static MPI_T_pvar_handle handles[COUNTERS];

void say(const char *format, ...)
{
    char line[2048];
    va_list args;
    int used;

    va_start(args, format);
    used = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    used = used < (int) sizeof(line) - 1 ? used : (int) sizeof(line) - 2;
    line[used] = '\n';
    if (write(STDOUT_FILENO, line, (size_t) used + 1) < 0) {
        _exit(2);
    }
}

double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

void wrong(job_t *job, unsigned long count, const char *what)
{
    if (count > 0) {
        job->wrong += count;
        say("wrong %d %ld %s %lu %s", job->rank, job->iteration, kind_name(job->kind), count, what);
    }
}

static bool is_open(const job_t *job, const char *gate)
{
    char path[512];
    struct stat found;

    snprintf(path, sizeof(path), "%s/%s", job->gates, gate);
    return 0 == stat(path, &found);
}

/* Waits for the test, outside of MPI. */
static void wait_at(const job_t *job, const char *gate)
{
    if (NULL == job->gates) {
        return;
    }
    if (0 == job->rank) {
        say("gate %s", gate);
    }
    while (!is_open(job, gate)) {
        usleep(2000);
    }
}

static void counters_close(void)
{
    MPI_T_pvar_session_free(&pvars);
    MPI_T_finalize();
}

static double started_s;

/* One more call must fail at once; then the job waits to be ended or finalizes. */
void must(job_t *job, int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, again;

    if (MPI_SUCCESS == rc) {
        return;
    }
    MPI_Error_string(rc, text, &length);
    say("error %d %s %s %.3f %s", job->rank, kind_name(job->kind), what, now_s() - started_s, text);
    started_s = now_s();
    again = MPI_Barrier(MPI_COMM_WORLD);
    if (MPI_SUCCESS != again) {
        say("poisoned %d %.3f", job->rank, now_s() - started_s);
    }
    wait_at(job, "after-error");
    counters_close();
    MPI_Finalize();
    say("verdict %d %lu %ld", job->rank, job->wrong, job->iteration);
    exit(0);
}

/* ---- counters */

/* Where r2 has none of them it does not run, but one that it does not know is a mistake here. */
static void counters_open(void)
{
    size_t found = 0;
    int level;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&pvars);
    for (size_t i = 0; i < COUNTERS; ++i) {
        char name[64];
        int idx, count;

        snprintf(name, sizeof(name), "coll_r2_%s", counters[i]);
        handles[i] = MPI_T_PVAR_HANDLE_NULL;
        if (MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &idx)) {
            MPI_T_pvar_handle_alloc(pvars, idx, NULL, &handles[i], &count);
            ++found;
        } else if (found > 0) {
            fprintf(stderr, "fault_driver: r2 has no counter %s\n", name);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

/* Rank 0 hears the counters of all ranks through what is not r2, and tells the test. */
static void tell(job_t *job)
{
    unsigned long long mine[COUNTERS] = {0}, sum, *all = NULL;
    char line[1500];
    size_t used = 0;

    for (size_t i = 0; i < COUNTERS; ++i) {
        if (MPI_T_PVAR_HANDLE_NULL != handles[i]) {
            MPI_T_pvar_read(pvars, handles[i], &mine[i]);
        }
    }
    all = calloc((size_t) job->size, sizeof(mine));
    must(job,
         MPI_Gather(mine, COUNTERS, MPI_UNSIGNED_LONG_LONG, all, COUNTERS, MPI_UNSIGNED_LONG_LONG,
                    0, MPI_COMM_WORLD),
         "MPI_Gather");
    for (size_t i = 0; 0 == job->rank && i < COUNTERS; ++i) {
        bool largest = NULL != strstr(counters[i], "_ns") || NULL != strstr(counters[i], "_max");

        sum = 0;
        for (int rank = 0; rank < job->size; ++rank) {
            unsigned long long each = all[(size_t) rank * COUNTERS + i];

            sum = largest ? (each > sum ? each : sum) : sum + each;
        }
        used += (size_t) snprintf(line + used, sizeof(line) - used, " %s=%llu", counters[i], sum);
    }
    if (0 == job->rank) {
        say("done %ld %.6f%s", job->iteration, now_s(), line);
    }
    free(all);
}

/* ---- digests of the healthy run */

static void digests_load(job_t *job)
{
    FILE *file = NULL == job->expect ? NULL : fopen(job->expect, "rb");

    if (NULL != job->expect &&
        (NULL == file || 1 != fread(job->digests, sizeof(job->digests), 1, file))) {
        fprintf(stderr, "cannot read %s\n", job->expect);
        exit(2);
    }
    if (NULL != file) {
        fclose(file);
    }
}

/* All ranks have the same bits. */
static void digests_compare(job_t *job)
{
    uint64_t first[2][VARIANTS];

    memcpy(first, job->seen, sizeof(first));
    MPI_Bcast(first, sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
    wrong(job, 0 != memcmp(first, job->seen, sizeof(first)), "ranks have different bits");
}

/* The first iterations of a job that learns are calls with floats only. */
static bool is_learning(const job_t *job)
{
    return NULL != job->learn && job->iteration < VARIANTS;
}

static void digests_save(job_t *job)
{
    FILE *file;

    digests_compare(job);
    if (0 != job->rank) {
        return;
    }
    file = fopen(job->learn, "wb");
    if (NULL == file || 1 != fwrite(job->seen, sizeof(job->seen), 1, file) || 0 != fclose(file)) {
        fprintf(stderr, "cannot write %s\n", job->learn);
        exit(2);
    }
    say("learned");
}

/* ---- the run */

static void compute(const job_t *job)
{
    double end = now_s() + job->busy_s;

    if (1 == job->iteration && job->rank == job->busy_rank) {
        say("busy %d", job->rank);
        while (now_s() < end) {
        }
    }
}

/* Rank 0 decides for all whether there is a next iteration, and where it starts with a gate. */
static bool goes_on(job_t *job)
{
    int go = job->iterations < 0 || job->iteration < job->iterations;

    if (0 == job->rank && NULL != job->gates) {
        go = go && !is_open(job, "stop") ? 1 : 0;
        go = go && is_open(job, "pause") ? 2 : go;
    }
    job->kind = KIND_BCAST;
    must(job, MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
    if (2 == go) {
        wait_at(job, "go");
    }
    if (now_s() - started_s > job->limit_s) {
        fprintf(stderr, "the job was not told to end within %.0f s\n", job->limit_s);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return 0 != go;
}

static void run(job_t *job)
{
    started_s = now_s();
    for (job->iteration = 0; goes_on(job); ++job->iteration) {
        compute(job);
        for (int kind = 0; kind < KIND_COUNT; ++kind) {
            if (!job->mix[kind] || (is_learning(job) && KIND_FLOAT != kind && KIND_MIXED != kind)) {
                continue;
            }
            if (0 == job->rank) {
                say("begin %ld %s %.6f", job->iteration, kind_name((kind_t) kind), now_s());
            }
            job_collective(job, (kind_t) kind);
        }
        tell(job);
        if (is_learning(job) && VARIANTS == job->iteration + 1) {
            digests_save(job);
        }
    }
    digests_compare(job);
}

static void choose_mix(job_t *job, const char *list)
{
    for (int kind = 0; kind < KIND_COUNT; ++kind) {
        job->mix[kind] = NULL != strstr(list, kind_name((kind_t) kind));
    }
    job->mix[KIND_GATHER] = NULL != strstr(list, "gather,");
}

static void arguments(job_t *job, int argc, char **argv)
{
    *job = (job_t){.bytes = 1 << 20, .iterations = -1, .limit_s = 120, .busy_rank = -1};
    choose_mix(job, "float,int,gather,gatherv,scatter,bcast,barrier,mixed");
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *text = argv[i + 1];

        if (0 == strcmp(name, "--bytes")) {
            job->bytes = (size_t) atol(text) / 64 * 64;
        } else if (0 == strcmp(name, "--iterations")) {
            job->iterations = atol(text);
        } else if (0 == strcmp(name, "--limit")) {
            job->limit_s = atof(text);
        } else if (0 == strcmp(name, "--gates")) {
            job->gates = text;
        } else if (0 == strcmp(name, "--learn")) {
            job->learn = text;
        } else if (0 == strcmp(name, "--expect")) {
            job->expect = text;
        } else if (0 == strcmp(name, "--mix")) {
            choose_mix(job, text);
        } else if (0 == strcmp(name, "--errors")) {
            job->errors_return = 0 == strcmp(text, "return");
        } else if (0 == strcmp(name, "--busy")) {
            job->busy_rank = atoi(text);
            job->busy_s = NULL == strchr(text, ':') ? 3 : atof(strchr(text, ':') + 1);
        } else {
            fprintf(stderr, "fault_driver: unknown option %s\n", name);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK");
    job_t job;
    double from;

    arguments(&job, argc, argv);
    job.rank = NULL == rank ? 0 : atoi(rank);
    say("rank %d pid %d", job.rank, (int) getpid());
    wait_at(&job, "init");
    from = now_s();
    MPI_Init(&argc, &argv);
    say("init %d %.6f %.6f", job.rank, from, now_s());
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    if (job.errors_return) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    counters_open();
    digests_load(&job);
    job_buffers(&job);
    wait_at(&job, "first");
    run(&job);
    job_free(&job);
    wait_at(&job, "finalize");
    counters_close();
    MPI_Finalize();
    say("verdict %d %lu %ld", job.rank, job.wrong, job.iteration);
    return 0 == job.wrong ? 0 : 1;
}
