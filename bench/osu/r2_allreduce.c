/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Benchmark of MPI_Allreduce: the sum of one vector per rank, on every rank.
 */
#include "r2_config.h"

#include "bench.h"

static void shape(size_t elements, int ranks, int rank, r2_bench_shape_t *shape)
{
    (void) ranks;
    (void) rank;
    shape->send_count = elements;
    shape->recv_count = elements;
    shape->first = 0;
    shape->total = elements;
}

static int call(const void *send, void *recv, const r2_bench_shape_t *shape, MPI_Datatype type,
                MPI_Comm comm)
{
    return MPI_Allreduce(send, recv, (int) shape->send_count, type, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    /* Reduce-scatter, then allgather: each element crosses twice. */
    static const r2_bench_ops_t ops = {
        .program = "r2_allreduce",
        .title = "Allreduce",
        .default_type = "mpi_float",
        .passes = 2,
        .reduces = true,
        .same_everywhere = true,
        .result = R2_BENCH_SUM,
        .shape = shape,
        .call = call,
    };

    return r2_bench_main(argc, argv, &ops);
}
