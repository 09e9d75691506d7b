/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Neighbourhood collectives, on a graph in which rank r sends to r + 1 .. r + k (modulo the size).
 */
#include "job.h"

#define GRAPH_MAX_DEGREE 2

/* The graph's communicator, and the source of each incoming edge. */
typedef struct graph {
    MPI_Comm comm;
    int degree;
    int sources[GRAPH_MAX_DEGREE];
} graph_t;

static void graph_create(const job_t *job, graph_t *graph)
{
    const job_comm_t *on = job->on;
    int targets[GRAPH_MAX_DEGREE];
    int weights[GRAPH_MAX_DEGREE] = {
        1, 1}; /* gcc takes MPI_UNWEIGHTED for an array that is too short */

    graph->degree = on->size > GRAPH_MAX_DEGREE ? GRAPH_MAX_DEGREE : 1;
    for (int k = 0; k < graph->degree; ++k) {
        targets[k] = (on->rank + k + 1) % on->size;
        graph->sources[k] = (on->rank + on->size - k - 1) % on->size;
    }
    MPI_Dist_graph_create_adjacent(on->comm, graph->degree, graph->sources, weights, graph->degree,
                                   targets, weights, MPI_INFO_NULL, 0, &graph->comm);
}

static void run_neighbor_allgather(job_t *job)
{
    graph_t graph;
    size_t count = (size_t) job->count;

    graph_create(job, &graph);
    job_alloc(job, count, count * (size_t) graph.degree);
    JOB_CALL(job, Neighbor_allgather, neighbor_allgather, job->send, job->count, MPI_INT, job->recv,
             job->count, MPI_INT, graph.comm);
    for (int k = 0; k < graph.degree; ++k) {
        job_expect_block(job, (size_t) k * count, graph.sources[k], 0, count);
    }
    job_free(job);
    MPI_Comm_free(&graph.comm);
}

static void run_neighbor_allgatherv(job_t *job)
{
    graph_t graph;
    int counts[GRAPH_MAX_DEGREE];
    int displs[GRAPH_MAX_DEGREE];
    int stride = job->count + 3;
    int mine = job->count + job->on->rank % 3;

    graph_create(job, &graph);
    for (int k = 0; k < graph.degree; ++k) {
        counts[k] = job->count + graph.sources[k] % 3;
        displs[k] = k * stride;
    }
    job_alloc(job, (size_t) mine, (size_t) (stride * graph.degree));
    JOB_CALL(job, Neighbor_allgatherv, neighbor_allgatherv, job->send, mine, MPI_INT, job->recv,
             counts, displs, MPI_INT, graph.comm);
    for (int k = 0; k < graph.degree; ++k) {
        job_expect_block(job, (size_t) displs[k], graph.sources[k], 0, (size_t) counts[k]);
        job_expect_untouched(job, (size_t) (displs[k] + counts[k]), (size_t) (stride - counts[k]));
    }
    job_free(job);
    MPI_Comm_free(&graph.comm);
}

/* Edge k carries block k of its source: source and target count their edges in the same order. */
static void run_neighbor_alltoall(job_t *job)
{
    graph_t graph;
    size_t count = (size_t) job->count;

    graph_create(job, &graph);
    job_alloc(job, count * (size_t) graph.degree, count * (size_t) graph.degree);
    JOB_CALL(job, Neighbor_alltoall, neighbor_alltoall, job->send, job->count, MPI_INT, job->recv,
             job->count, MPI_INT, graph.comm);
    for (int k = 0; k < graph.degree; ++k) {
        job_expect_block(job, (size_t) k * count, graph.sources[k], (size_t) k * count, count);
    }
    job_free(job);
    MPI_Comm_free(&graph.comm);
}

static void run_neighbor_alltoallv(job_t *job)
{
    graph_t graph;
    int counts[GRAPH_MAX_DEGREE];
    int displs[GRAPH_MAX_DEGREE];
    int stride = job->count + 3;

    graph_create(job, &graph);
    for (int k = 0; k < graph.degree; ++k) {
        counts[k] = job->count + k;
        displs[k] = k * stride;
    }
    job_alloc(job, (size_t) (stride * graph.degree), (size_t) (stride * graph.degree));
    JOB_CALL(job, Neighbor_alltoallv, neighbor_alltoallv, job->send, counts, displs, MPI_INT,
             job->recv, counts, displs, MPI_INT, graph.comm);
    for (int k = 0; k < graph.degree; ++k) {
        job_expect_block(job, (size_t) displs[k], graph.sources[k], (size_t) displs[k],
                         (size_t) counts[k]);
        job_expect_untouched(job, (size_t) (displs[k] + counts[k]), (size_t) (stride - counts[k]));
    }
    job_free(job);
    MPI_Comm_free(&graph.comm);
}

static void run_neighbor_alltoallw(job_t *job)
{
    graph_t graph;
    int counts[GRAPH_MAX_DEGREE];
    MPI_Aint displs_bytes[GRAPH_MAX_DEGREE];
    MPI_Datatype types[GRAPH_MAX_DEGREE];
    int stride = job->count + 3;

    graph_create(job, &graph);
    for (int k = 0; k < graph.degree; ++k) {
        counts[k] = job->count + k;
        displs_bytes[k] = (MPI_Aint) sizeof(int) * k * stride;
        types[k] = MPI_INT;
    }
    job_alloc(job, (size_t) (stride * graph.degree), (size_t) (stride * graph.degree));
    JOB_CALL(job, Neighbor_alltoallw, neighbor_alltoallw, job->send, counts, displs_bytes, types,
             job->recv, counts, displs_bytes, types, graph.comm);
    for (int k = 0; k < graph.degree; ++k) {
        job_expect_block(job, (size_t) (k * stride), graph.sources[k], (size_t) (k * stride),
                         (size_t) counts[k]);
        job_expect_untouched(job, (size_t) (k * stride + counts[k]), (size_t) (stride - counts[k]));
    }
    job_free(job);
    MPI_Comm_free(&graph.comm);
}

const job_case_t job_cases_neighbor[] = {
    {"neighbor_allgather", run_neighbor_allgather, false, false, true},
    {"neighbor_allgatherv", run_neighbor_allgatherv, false, false, true},
    {"neighbor_alltoall", run_neighbor_alltoall, false, false, true},
    {"neighbor_alltoallv", run_neighbor_alltoallv, false, false, true},
    {"neighbor_alltoallw", run_neighbor_alltoallw, false, false, true},
    {NULL, NULL, false, false, false},
};
