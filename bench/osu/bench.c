/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The program around a collective: starts, runs all sizes, ends.
 */
#include "r2_config.h"

#include "bench.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* Number of different processor names. */
static int count_hosts(int ranks)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    uint64_t *all = calloc((size_t) ranks, sizeof(*all));
    uint64_t mine;
    int length;
    int hosts = 0;

    if (NULL == all) {
        r2_bench_give_up("not enough memory");
    }
    MPI_Get_processor_name(name, &length);
    mine = r2_bench_data_hash(0, name, strlen(name));
    MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; ++i) {
        int k = 0;

        while (all[k] != all[i]) {
            ++k;
        }
        hosts += k == i ? 1 : 0;
    }
    free(all);
    return hosts;
}

/* All message sizes; a barrier has none. */
static void run_sizes(r2_bench_run_t *run)
{
    const r2_bench_options_t *options = run->options;

    if (R2_BENCH_NO_DATA == run->task->kind->result) {
        r2_bench_run_size(run, 0);
        return;
    }
    for (size_t bytes = r2_bench_options_first(options); 0 != bytes;
         bytes = r2_bench_options_next(options, bytes)) {
        size_t need_bytes = r2_bench_payload_bytes(run->task->kind, options, run->ranks, bytes);

        if (need_bytes > options->mem_limit_bytes) {
            if (0 == run->rank) {
                fprintf(stderr,
                        "%s: sizes from %zu bytes on are left out: their buffers are %zu "
                        "bytes, more than -M\n",
                        run->task->program, bytes, need_bytes);
            }
            break;
        }
        r2_bench_run_size(run, bytes);
    }
}

/* A table for each type that was asked for. */
static void run_types(r2_bench_run_t *run)
{
    r2_bench_options_t *options = run->options;

    for (unsigned i = 0; i < options->types_count; ++i) {
        options->type = options->types[i];
        r2_bench_data_init(&run->data, options->type, run->ranks);
        if (0 == run->rank) {
            r2_bench_report_head(&run->report);
        }
        run_sizes(run);
    }
}

/* What only the number of ranks shows. @return false if it was told. */
static bool check_ranks(r2_bench_run_t *run)
{
    const r2_bench_options_t *options = run->options;
    const char *problem = NULL;

    if (!r2_bench_data_init(&run->data, options->type, run->ranks) && options->validate) {
        problem = "-c works for up to 4096 ranks";
    } else if (R2_BENCH_NO_PAIRS != run->task->kind->way &&
               (run->task->kind->many_pairs ? 0 != run->ranks % 2 : 2 != run->ranks)) {
        problem = run->task->kind->many_pairs ? "an even number of ranks is needed"
                                              : "two ranks are needed";
    } else if (options->root >= run->ranks) {
        problem = "-k: there is no such rank";
    }
    if (NULL != problem && 0 == run->rank) {
        fprintf(stderr, "%s: %s\n", run->task->program, problem);
    }
    return NULL == problem;
}

/* What rank 0 has to say in the end. @return exit status. */
static int sum_up(r2_bench_run_t *run)
{
    const r2_bench_options_t *options = run->options;
    int status = 0 != run->wrong ? 1 : 0;

    if (options->validate || 0 != run->wrong) {
        r2_bench_report_validation(&run->report, run->turn, run->wrong);
    }
    if (0 != r2_bench_report_failed_faults(&run->report, run->injector->effects)) {
        status = 1;
    }
    if (!r2_bench_report_fini(&run->report)) {
        fprintf(stderr, "%s: %s could not be written\n", run->task->program, options->csv);
        status = 1;
    }
    return status;
}

/* The GPU of this process, if buffers are to be in its memory. Ranks that have none say why.
 * @return true if all ranks have theirs. */
static bool open_place(const r2_bench_run_t *run)
{
    char text[256] = "";
    int ready, local_rank;
    MPI_Comm host;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local_rank);
    MPI_Comm_free(&host);
    ready = r2_bench_place_open(run->options->place, local_rank, text, sizeof(text));
    if (!ready) {
        fprintf(stderr, "%s: -d %s: rank %d: %s\n", run->task->program,
                r2_bench_place_name(run->options->place), run->rank, text);
    }
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return ready;
}

/* Everything between MPI_Init and MPI_Finalize. @return exit status, the same on all ranks. */
static int run_all(r2_bench_run_t *run)
{
    const r2_bench_options_t *options = run->options;
    int ready = 1;
    int status = 0;

    if (!check_ranks(run)) {
        return 2;
    }
    if (R2_BENCH_IN_HOST != options->place && !open_place(run)) {
        return 1;
    }
    run->hosts = count_hosts(run->ranks);
    if (0 == run->rank) {
        ready = r2_bench_report_init(&run->report, run->task, options, run->ranks, run->hosts);
        if (!ready) {
            fprintf(stderr, "%s: %s: %s\n", run->task->program, options->csv, strerror(errno));
        }
    }
    MPI_Bcast(&ready, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!ready) {
        return 1;
    }
    r2_bench_pvars_init(&run->pvars);
    if (options->validate && !r2_bench_clock_init(&run->clock, run->ranks)) {
        r2_bench_give_up("not enough memory");
    }
    run_types(run);
    r2_bench_clock_fini(&run->clock);
    r2_bench_pvars_fini(&run->pvars);
    if (0 == run->rank) {
        status = sum_up(run);
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return status;
}

/* -h, -v and bad arguments: rank 0 speaks, all ranks end with the same status. */
static int answer(const r2_bench_task_t *task, r2_bench_request_t request, const char *error,
                  int rank)
{
    if (0 == rank && R2_BENCH_BAD == request) {
        fprintf(stderr, "%s: %s\n", task->program, error);
        r2_bench_options_usage(task, stderr);
    } else if (0 == rank && R2_BENCH_HELP == request) {
        r2_bench_options_usage(task, stdout);
    } else if (0 == rank) {
        printf("%s %s\n", task->program, R2_VERSION);
    }
    return R2_BENCH_BAD == request ? 2 : 0;
}

/* Rank before MPI_Init, from the launcher: Open MPI, PMIx, Slurm. A program on its own is rank
 * 0. */
static bool will_be_rank_0(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const char *value = getenv(names[i]);

        if (NULL != value) {
            return 0 == strcmp(value, "0");
        }
    }
    return true;
}

int r2_bench_main(int argc, char **argv, const r2_bench_task_t *task)
{
    r2_bench_options_t options;
    r2_bench_injector_t injector;
    r2_bench_run_t run = {.task = task, .options = &options, .injector = &injector};
    char error[256] = "";
    r2_bench_request_t request = r2_bench_options_init(&options, argc, argv, task, error);
    int status;

    memset(&injector, 0, sizeof(injector));
    if (R2_BENCH_RUN == request && will_be_rank_0() &&
        !r2_bench_injector_init(&injector, &options)) {
        fprintf(stderr, "%s: no helper process for --fault: %s\n", task->program, strerror(errno));
        return 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    if (R2_BENCH_RUN != request) {
        status = answer(task, request, error, run.rank);
    } else {
        if (0 == run.rank && 0 != options.faults_count && NULL == injector.effects) {
            r2_bench_give_up("--fault: the launcher does not tell the ranks before MPI_Init");
        }
        status = run_all(&run);
        r2_bench_place_close();
    }
    r2_bench_injector_fini(&injector);
    r2_bench_options_fini(&options);
    MPI_Finalize();
    return status;
}
