/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Benchmark of MPI_Reduce_scatter: the sum of one vector per rank, a part on each rank.
 */
#include "r2_config.h"

#include "bench.h"

/* The first elements % ranks ranks get one element more than the others. */
static void shape(size_t elements, int ranks, int rank, r2_bench_shape_t *shape)
{
    size_t share = elements / (size_t) ranks;
    size_t more = elements % (size_t) ranks;

    shape->send_count = elements;
    shape->total = elements;
    shape->first = 0;
    for (int i = 0; i < ranks; ++i) {
        shape->counts[i] = (int) (share + ((size_t) i < more ? 1 : 0));
        if (i < rank) {
            shape->first += (size_t) shape->counts[i];
        }
    }
    shape->recv_count = (size_t) shape->counts[rank];
}

static int call(const void *send, void *recv, const r2_bench_shape_t *shape, MPI_Datatype type,
                MPI_Comm comm)
{
    return MPI_Reduce_scatter(send, recv, shape->counts, type, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    static const r2_bench_ops_t ops = {
        .program = "r2_reduce_scatter",
        .title = "Reduce_scatter",
        .default_type = "mpi_float",
        .passes = 1,
        .reduces = true,
        .same_everywhere = false,
        .result = R2_BENCH_SUM,
        .shape = shape,
        .call = call,
    };

    return r2_bench_main(argc, argv, &ops);
}
