/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The benchmarks' table of collectives against collectives that are worked out by hand.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/osu/data.h"
#include "bench/osu/kinds.h"
#include "bench/osu/task.h"

enum {
    RANKS = 5,        /* at most */
    ELEMENTS = 1100,  /* more than one block */
    TURN = 3,
    ROOM = RANKS * ELEMENTS,
};

/* What all ranks send, and where one call takes place. */
typedef struct job {
    int sent[RANKS][ROOM]; /* every rank's, also where only the root sends */
    size_t elements;
    int ranks;
    int root;
    r2_bench_data_t data;
} job_t;

/* Sums of elements first .. first + count of the ranks below `to`. @return the end of the result */
static int *add(const job_t *job, int to, size_t first, size_t count, int *place)
{
    for (size_t e = first; e < first + count; ++e) {
        *place = 0;
        for (int r = 0; r < to; ++r) {
            *place += job->sent[r][e];
        }
        ++place;
    }
    return place;
}

static int *copy(const job_t *job, int rank, size_t first, int *place)
{
    memcpy(place, &job->sent[rank][first], job->elements * sizeof(int));
    return place + job->elements;
}

static int *copy_all(const job_t *job, size_t first, int *place)
{
    for (int r = 0; r < job->ranks; ++r) {
        place = copy(job, r, first, place);
    }
    return place;
}

/* MPI_Reduce_scatter: elements are dealt out one by one, so the first ranks may have one more. */
static int *add_share(const job_t *job, int rank, int *place)
{
    size_t counts[RANKS] = {0};
    size_t first = 0;

    for (size_t e = 0; e < job->elements; ++e) {
        ++counts[e % (size_t) job->ranks];
    }
    for (int r = 0; r < rank; ++r) {
        first += counts[r];
    }
    return add(job, job->ranks, first, counts[rank], place);
}

/* The whole message of the other rank of the pair; one way, the first half of the ranks sends. */
static int *of_peer(const job_t *job, int rank, bool both, int *place)
{
    int half = job->ranks / 2;

    if (rank >= half && rank < 2 * half) {
        return copy(job, rank - half, 0, place);
    }
    return both && rank < half ? copy(job, rank + half, 0, place) : place;
}

/* What MPI says that this rank gets. @return how many elements. */
static size_t by_hand(const job_t *job, r2_bench_kind_id_t id, int rank, int *result)
{
    size_t n = job->elements;
    size_t mine = n / (size_t) job->ranks > 0 ? n / (size_t) job->ranks : 1;
    int *end = result;

    switch (id) {
    case R2_BENCH_GATHER:
    case R2_BENCH_GATHERV:
        end = rank == job->root ? copy_all(job, 0, result) : result;
        break;
    case R2_BENCH_ALLGATHER:
    case R2_BENCH_ALLGATHERV:
        end = copy_all(job, 0, result);
        break;
    case R2_BENCH_ALLTOALL:
    case R2_BENCH_ALLTOALLV:
    case R2_BENCH_ALLTOALLW:
        end = copy_all(job, (size_t) rank * n, result);
        break;
    case R2_BENCH_BCAST:
        end = copy(job, job->root, 0, result);
        break;
    case R2_BENCH_SCATTER:
    case R2_BENCH_SCATTERV:
        end = copy(job, job->root, (size_t) rank * n, result);
        break;
    case R2_BENCH_REDUCE:
        end = rank == job->root ? add(job, job->ranks, 0, n, result) : result;
        break;
    case R2_BENCH_ALLREDUCE:
        end = add(job, job->ranks, 0, n, result);
        break;
    case R2_BENCH_SCAN:
        end = add(job, rank + 1, 0, n, result);
        break;
    case R2_BENCH_EXSCAN:
        end = rank > 0 ? add(job, rank, 0, n, result) : result;
        break;
    case R2_BENCH_REDUCE_SCATTER:
        end = add_share(job, rank, result);
        break;
    case R2_BENCH_REDUCE_SCATTER_BLOCK:
        end = add(job, job->ranks, (size_t) rank * mine, mine, result);
        break;
    case R2_BENCH_LATENCY:
    case R2_BENCH_BIBW:
    case R2_BENCH_BW:
    case R2_BENCH_MBW_MR:
        end = of_peer(job, rank, R2_BENCH_LATENCY == id || R2_BENCH_BIBW == id, result);
        break;
    case R2_BENCH_BARRIER:
    case R2_BENCH_KIND_COUNT:
        break;
    }
    return (size_t) (end - result);
}

static bool is_right(const job_t *job, const r2_bench_kind_t *kind, const r2_bench_shape_t *shape,
                     int rank, const int *result)
{
    r2_bench_wrong_t wrong;
    r2_bench_piece_t piece;
    size_t done = 0;
    bool right = true;

    for (size_t i = 0; i < shape->pieces; ++i) {
        r2_bench_kind_piece(kind, shape, job->ranks, rank, job->root, i, &piece);
        right =
            r2_bench_data_check(&job->data, result + done, &piece, TURN, false, &wrong) && right;
        done += piece.count;
    }
    assert_int_equal(done, shape->recv_count); /* every element is looked at */
    return right;
}

/* One rank: the right result passes, and each element that is another number does not. */
static void check_rank(const job_t *job, const r2_bench_kind_t *kind, int rank)
{
    static int result[ROOM];
    r2_bench_shape_t shape;
    size_t count = by_hand(job, kind->id, rank, result);
    size_t step = count > 100 ? 97 : 1;

    r2_bench_kind_shape(kind, job->elements, job->ranks, rank, job->root, &shape);
    assert_int_equal(count, shape.recv_count);
    assert_true(shape.recv_space >= count);
    assert_true(is_right(job, kind, &shape, rank, result));
    for (size_t i = 0; i < count; i += step) {
        size_t at = count - 1 - i;

        result[at] ^= 1;
        assert_false(is_right(job, kind, &shape, rank, result));
        result[at] ^= 1;
    }
}

static void test_results(void **state)
{
    static const size_t sizes[] = {1, 3, 7, ELEMENTS};
    static job_t job;

    (void) state;
    for (job.ranks = 1; job.ranks <= RANKS; ++job.ranks) {
        assert_true(r2_bench_data_init(&job.data, R2_BENCH_INT, job.ranks));
        for (int r = 0; r < job.ranks; ++r) {
            r2_bench_data_fill(&job.data, job.sent[r], ROOM, r, TURN, false);
        }
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            job.elements = sizes[i];
            for (job.root = 0; job.root < job.ranks; ++job.root) {
                for (int at = 0; at < R2_BENCH_KIND_COUNT * job.ranks; ++at) {
                    check_rank(&job, r2_bench_kind_at((unsigned) (at / job.ranks)), at % job.ranks);
                }
            }
        }
    }
}

/* The send buffer is as long as what the call reads. */
static void test_send_buffers(void **state)
{
    r2_bench_shape_t shape;

    (void) state;
    r2_bench_kind_shape(r2_bench_kind_find("alltoall"), 7, 3, 1, 0, &shape);
    assert_int_equal(shape.send_count, 21);
    r2_bench_kind_shape(r2_bench_kind_find("scatter"), 7, 3, 2, 2, &shape);
    assert_int_equal(shape.send_count, 21);
    r2_bench_kind_shape(r2_bench_kind_find("scatter"), 7, 3, 1, 2, &shape);
    assert_int_equal(shape.send_count, 0);
    r2_bench_kind_shape(r2_bench_kind_find("bcast"), 7, 3, 0, 0, &shape);
    assert_int_equal(shape.send_count, 0);
    r2_bench_kind_shape(r2_bench_kind_find("reduce_scatter_block"), 7, 3, 0, 0, &shape);
    assert_int_equal(shape.send_count, 6);
    r2_bench_kind_shape(r2_bench_kind_find("reduce_scatter_block"), 2, 3, 0, 0, &shape);
    assert_int_equal(shape.send_count, 3); /* at least one element for each rank */
    r2_bench_kind_shape(r2_bench_kind_find("mbw_mr"), 7, 4, 1, 0, &shape);
    assert_int_equal(shape.send_count, 7);
    r2_bench_kind_shape(r2_bench_kind_find("mbw_mr"), 7, 4, 2, 0, &shape);
    assert_int_equal(shape.send_count, 0);
}

static double bus(const char *name, int ranks, int hosts)
{
    return r2_bench_kind_bus_bytes(r2_bench_kind_find(name), ranks, hosts, 1200);
}

static void test_bus_bytes(void **state)
{
    (void) state;
    assert_true(bus("allreduce", 4, 4) == 1800); /* 2 x 3/4 of the vector */
    assert_true(bus("allreduce", 8, 4) == 1800); /* ranks of one host share */
    assert_true(bus("allreduce", 4, 1) == 1800); /* one host: each rank counts as one */
    assert_true(bus("allreduce", 1, 1) == 0);
    assert_true(bus("reduce_scatter", 4, 4) == 900);
    assert_true(bus("allgather", 4, 4) == 3600);        /* three vectors come in */
    assert_true(bus("alltoall", 4, 4) == 3600);         /* one for each of three peers */
    assert_true(bus("alltoall", 8, 4) == 2 * 6 * 1200); /* two ranks, six peers elsewhere */
    assert_true(bus("gather", 4, 4) == 3600);
    assert_true(bus("bcast", 4, 4) == 1200);
    assert_true(bus("bcast", 1, 1) == 0);
    assert_true(bus("barrier", 4, 4) == 0);
}

static void test_names(void **state)
{
    r2_bench_task_t task;

    (void) state;
    for (unsigned i = 0; i < R2_BENCH_KIND_COUNT; ++i) {
        const r2_bench_kind_t *kind = r2_bench_kind_at(i);

        assert_int_equal(kind->id, i);
        assert_ptr_equal(r2_bench_kind_find(kind->name), kind);
        assert_true(r2_bench_task_init(&task, NULL, kind->name));
        assert_ptr_equal(task.kind, kind);
        assert_int_equal(task.form, R2_BENCH_BLOCKING);
    }
    assert_true(r2_bench_task_init(&task, NULL, "reduce_scatter"));
    assert_string_equal(task.program, "r2_reduce_scatter");
    assert_true(r2_bench_task_init(&task, "r2_bench", "scan"));
    assert_string_equal(task.program, "r2_bench scan");
    assert_true(r2_bench_task_init(&task, "r2_bench", "ialltoallw"));
    assert_int_equal(task.kind->id, R2_BENCH_ALLTOALLW);
    assert_int_equal(task.form, R2_BENCH_NONBLOCKING);
    assert_true(r2_bench_task_init(&task, "r2_bench", "exscan_persistent"));
    assert_int_equal(task.kind->id, R2_BENCH_EXSCAN);
    assert_int_equal(task.form, R2_BENCH_PERSISTENT);
    assert_false(r2_bench_task_init(&task, NULL, "scans"));
    assert_false(r2_bench_task_init(&task, NULL, ""));
    assert_false(r2_bench_task_init(&task, NULL, "ilatency"));
    assert_false(r2_bench_task_init(&task, NULL, "bw_persistent"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_send_buffers),
        cmocka_unit_test(test_bus_bytes),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
