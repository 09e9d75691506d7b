/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The usage text of the benchmarks.
 */
#include "r2_config.h"

#include "options.h"

static const char as_osu[] =
    "as in the OSU micro-benchmarks:\n"
    "  -m, --message-size [MIN:]MAX  sizes in bytes, doubled from MIN to MAX, or A,B,C: those;\n"
    "                                K, M, G work\n"
    "                                (default: one element to 1M)\n"
    "  -i, --iterations N            measured iterations of each size\n"
    "                                (default: 1000, above 8K 100)\n"
    "  -x, --warmup N                iterations before them (default: 200, above 8K 10)\n"
    "  -f, --full                    also minimum, maximum and number of iterations; nonblocking:\n"
    "                                also start, tests and wait\n"
    "  -z, --tail-lat                also the percentiles 50, 90 and 99 over iterations\n"
    "  -c, --validation              check every result, exactly\n"
    "  -u, --validation-warmup N     as -x, with -c (default: as -x)\n"
    "  -M, --mem-limit SIZE          leave out sizes whose buffers are larger (default: none)\n"
    "  -d, --accelerator PLACE       where the buffers are: host, cuda (device memory) or managed\n"
    "                                (default: host)\n";

static const char of_this_suite[] =
    "of this suite:\n"
    "  --seconds S                   run each size for S seconds instead of -i\n"
    "  --line-rate R                 MB/s of all NICs of one host: adds a column\n"
    "  --fault 'AT KIND[=V] HOST RAIL'  break or heal a rail during the run; repeatable;\n"
    "                                AT is an iteration (100) or a time (2.5s)\n"
    "  --fault-cmd CMD               carries it out: called as CMD KIND[=V] HOST RAIL\n"
    "  --csv FILE                    one line per iteration\n"
    "  --digest                      hash of all results, from data whose sum depends\n"
    "                                on the order of the additions\n"
    "  --progress                    a line on stderr each second\n";

void r2_bench_options_usage(const r2_bench_task_t *task, FILE *out)
{
    fprintf(out, "usage: mpirun [mpirun options] %s [options]\n\n%s", task->program, as_osu);
    fprintf(out,
            "  -T, --type TYPE               %smpi_int, mpi_float, mpi_double, or all of them\n"
            "                                (default: %s)\n",
            r2_bench_kind_reduces(task->kind) ? "" : "mpi_char, ", task->kind->default_type);
    if (task->kind->rooted) {
        fprintf(out, "  -k, --root-rank ROOT          fixed:RANK, or rotate (default: fixed:0)\n");
    }
    if (R2_BENCH_ONE_WAY == task->kind->way || R2_BENCH_BOTH_WAYS == task->kind->way) {
        fprintf(out,
                "  -W, --window-size N           messages under way at a time (default: 64)\n");
    }
    if (R2_BENCH_NONBLOCKING == task->form) {
        fprintf(out, "  -t, --num-test-calls N        MPI_Test calls during the computation\n"
                     "                                (default: 0)\n");
    }
    fprintf(out, "  -h, --help    -v, --version\n\n%s", of_this_suite);
}
