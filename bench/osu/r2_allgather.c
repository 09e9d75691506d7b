/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Benchmark of MPI_Allgather: the vectors of all ranks, on every rank.
 */
#include "r2_config.h"

#include "bench.h"

static void shape(size_t elements, int ranks, int rank, r2_bench_shape_t *shape)
{
    (void) rank;
    shape->send_count = elements;
    shape->recv_count = elements * (size_t) ranks;
    shape->first = 0;
    shape->total = shape->recv_count;
}

static int call(const void *send, void *recv, const r2_bench_shape_t *shape, MPI_Datatype type,
                MPI_Comm comm)
{
    return MPI_Allgather(send, (int) shape->send_count, type, recv, (int) shape->send_count, type,
                         comm);
}

int main(int argc, char **argv)
{
    static const r2_bench_ops_t ops = {
        .program = "r2_allgather",
        .title = "Allgather",
        .default_type = "mpi_char",
        .passes = 1,
        .reduces = false,
        .same_everywhere = true,
        .result = R2_BENCH_CONCAT,
        .shape = shape,
        .call = call,
    };

    return r2_bench_main(argc, argv, &ops);
}
