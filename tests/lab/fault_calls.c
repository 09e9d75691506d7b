/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of the fault tests, each with an exact check of every byte it wrote or must not
 * write.
 */
#include "fault_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xa5

/* Memory that no NIC may write to, from now on and until it is taken: softverbs counts what NICs
 * write there all the same (tests/softverbs/lib/given.c). Elsewhere there is nobody to tell. */
static void give_back(job_t *job, const char *memory)
{
    int (*tell)(const void *, size_t) =
        (int (*)(const void *, size_t)) dlsym(RTLD_DEFAULT, "softverbs_give_back");

    if (NULL != tell && 0 == tell(memory, job->bytes + 2 * GUARD)) {
        wrong(job, 1, "the NIC cannot watch so many pieces of memory");
    }
}

static void take(const char *memory)
{
    void (*tell)(const void *) = (void (*)(const void *)) dlsym(RTLD_DEFAULT, "softverbs_take");

    if (NULL != tell) {
        tell(memory);
    }
}

const char *kind_name(kind_t kind)
{
    static const char *const names[] = {"float", "int",     "gather", "gatherv", "scatter",
                                        "bcast", "barrier", "mixed",  "comms"};

    return KIND_COUNT == kind ? "?" : names[kind];
}

/* ---- values: a function of rank, element and iteration */

static uint32_t value(int rank, size_t element, long iteration)
{
    uint32_t x = (uint32_t) element * 2654435761u;

    x ^= (uint32_t) rank * 0x9e3779b9u + (uint32_t) iteration * 0x85ebca6bu;
    x ^= x >> 15;
    return x * 0x2c1b3c6du;
}

/* Magnitudes over 5 decades: every order of addition gives another sum. */
static float float_value(int rank, size_t element, long iteration)
{
    static const float scales[16] = {1e-6f, 2e-6f, 1e-5f, 3e-5f, 1e-4f, 7e-4f, 1e-3f, 5e-3f,
                                     1e-2f, 2e-2f, 1e-1f, 3e-1f, 1.0f,  7.0f,  1e1f,  5e1f};
    uint32_t x = value(rank, element, iteration % VARIANTS);

    return (float) ((int32_t) (x & 0xffffff) - 0x800000) * scales[x >> 28];
}

static uint64_t digest(const void *data, size_t bytes)
{
    const char *at = data;
    uint64_t hash = 0x9e3779b97f4a7c15ull ^ bytes, word = 0;

    for (; bytes > 0; at += sizeof(word)) {
        size_t part = bytes < sizeof(word) ? bytes : sizeof(word);

        word = 0;
        memcpy(&word, at, part);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
        bytes -= part;
    }
    return hash;
}

/* ---- buffers */

void job_buffers(job_t *job)
{
    size_t all = job->bytes + 2 * GUARD;

    job->slot_count = (int) ((32u << 20) / job->bytes);
    job->slot_count = job->slot_count > SLOTS_MAX ? SLOTS_MAX
                      : job->slot_count < 2       ? 2
                                                  : job->slot_count;
    job->in = malloc(all);
    for (int i = 0; i < job->slot_count; ++i) {
        job->slots[i].data = malloc(all);
        if (NULL == job->in || NULL == job->slots[i].data) {
            fprintf(stderr, "out of memory\n");
            exit(2);
        }
        memset(job->slots[i].data, POISON, all);
        give_back(job, job->slots[i].data);
    }
    give_back(job, job->in);
}

void job_free(job_t *job)
{
    take(job->in);
    free(job->in);
    for (int i = 0; i < job->slot_count; ++i) {
        slot_t *slot = &job->slots[i];

        if (slot->bytes > 0 && digest(slot->data, job->bytes + 2 * GUARD) != slot->digest) {
            wrong(job, 1, "an earlier result was changed");
        }
        take(slot->data);
        free(slot->data);
    }
}

/* A poisoned receive buffer. What was received in it last must not have changed since. */
static slot_t *slot_get(job_t *job)
{
    slot_t *slot = &job->slots[job->next_slot];
    size_t all = job->bytes + 2 * GUARD;

    job->next_slot = (job->next_slot + 1) % job->slot_count;
    if (slot->bytes > 0 && digest(slot->data, all) != slot->digest) {
        wrong(job, 1, "an earlier result was changed");
    }
    memset(slot->data, POISON, all);
    take(slot->data);
    return slot;
}

/* Everything but `bytes` bytes from the start must still be poison. */
static void slot_put(job_t *job, slot_t *slot, size_t bytes)
{
    unsigned long bad = 0;

    give_back(job, slot->data);
    for (size_t i = 0; i < job->bytes + 2 * GUARD; ++i) {
        if (GUARD == i) {
            i += bytes;
        }
        bad += i < job->bytes + 2 * GUARD && POISON != (unsigned char) slot->data[i];
    }
    wrong(job, bad, "bytes written outside of the receive buffer");
    slot->bytes = job->bytes;
    slot->digest = digest(slot->data, job->bytes + 2 * GUARD);
}

static uint32_t *fill(job_t *job, void *to, size_t count, int rank, size_t first)
{
    uint32_t *data = to;

    for (size_t i = 0; i < count; ++i) {
        data[i] = value(rank, first + i, job->iteration);
    }
    return data;
}

static void unchanged(job_t *job, const void *from, size_t count, int rank, size_t first)
{
    const uint32_t *data = from;
    unsigned long bad = 0;

    for (size_t i = 0; i < count; ++i) {
        bad += data[i] != value(rank, first + i, job->iteration);
    }
    wrong(job, bad, "elements of the send buffer changed");
}

/* Integer sums over ranks 0 .. size-1, from element `first` on. */
static void sums(job_t *job, const uint32_t *data, size_t count, size_t first)
{
    unsigned long bad = 0;

    for (size_t i = 0; i < count; ++i) {
        uint32_t sum = 0;

        for (int rank = 0; rank < job->size; ++rank) {
            sum += value(rank, first + i, job->iteration);
        }
        bad += data[i] != sum;
    }
    wrong(job, bad, "integer sums");
}

/* ---- collectives */

static float *fill_floats(job_t *job)
{
    float *data = (float *) (void *) job->in;

    for (size_t i = 0; i < job->bytes / sizeof(*data); ++i) {
        data[i] = float_value(job->rank, i, job->iteration);
    }
    return data;
}

/* All ranks have the same bits, and those of the healthy run; the send buffer is as it was. */
static void floats(job_t *job, const float *result, int which)
{
    const float *data = (const float *) (const void *) job->in;
    uint64_t *seen = &job->seen[which][job->iteration % VARIANTS];
    unsigned long bad = 0;
    uint64_t now = digest(result, job->bytes);

    for (size_t i = 0; i < job->bytes / sizeof(*data); ++i) {
        float expected = float_value(job->rank, i, job->iteration);

        bad += 0 != memcmp(&data[i], &expected, sizeof(expected));
    }
    wrong(job, bad, "elements of the send buffer changed");
    if (NULL != job->expect && now != job->digests[which][job->iteration % VARIANTS]) {
        wrong(job, 1, "float sums: not the bits of the healthy run");
    }
    if (0 != *seen && *seen != now) {
        wrong(job, 1, "float sums: not the bits of the same sum before");
    }
    *seen = now;
}

static void call_float(job_t *job)
{
    slot_t *slot = slot_get(job);
    float *data = fill_floats(job), *result = (float *) (void *) (slot->data + GUARD);
    int count = (int) (job->bytes / sizeof(*data));

    must(job, MPI_Allreduce(data, result, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
         "MPI_Allreduce");
    floats(job, result, 0);
    slot_put(job, slot, (size_t) count * sizeof(*data));
}

static void call_int(job_t *job)
{
    slot_t *slot = slot_get(job);
    size_t count = job->bytes / 4 - (size_t) (job->iteration % 5); /* odd ends */
    uint32_t *data = fill(job, job->in, count, job->rank, 0);
    uint32_t *result = (uint32_t *) (void *) (slot->data + GUARD);

    must(job, MPI_Allreduce(data, result, (int) count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD),
         "MPI_Allreduce");
    sums(job, result, count, 0);
    unchanged(job, data, count, job->rank, 0);
    slot_put(job, slot, count * 4);
}

static void call_gather(job_t *job)
{
    slot_t *slot = slot_get(job);
    size_t count = job->bytes / 4 / (size_t) job->size;
    uint32_t *data = fill(job, job->in, count, job->rank, 0);
    uint32_t *result = (uint32_t *) (void *) (slot->data + GUARD);

    must(job,
         MPI_Allgather(data, (int) count, MPI_UINT32_T, result, (int) count, MPI_UINT32_T,
                       MPI_COMM_WORLD),
         "MPI_Allgather");
    for (int rank = 0; rank < job->size; ++rank) {
        unchanged(job, result + (size_t) rank * count, count, rank, 0);
    }
    unchanged(job, data, count, job->rank, 0);
    slot_put(job, slot, count * 4 * (size_t) job->size);
}

/* Uneven shares of the vector: rank r has r + 1 parts; one rank in turn has none. */
static void shares(const job_t *job, int *counts, int *displs)
{
    int parts = job->size * (job->size + 1) / 2, at = 0;

    for (int rank = 0; rank < job->size; ++rank) {
        counts[rank] = (int) (job->bytes / 4) / parts * (rank + 1);
        if (job->iteration % (2 * job->size) == rank) {
            counts[rank] = 0;
        }
        displs[rank] = at;
        at += counts[rank];
    }
}

static void call_gatherv(job_t *job)
{
    int *counts = calloc(2 * (size_t) job->size, sizeof(int)), *displs = counts + job->size;
    slot_t *slot = slot_get(job);
    uint32_t *result = (uint32_t *) (void *) (slot->data + GUARD), *data;
    size_t all;

    shares(job, counts, displs);
    data = fill(job, job->in, (size_t) counts[job->rank], job->rank, 0);
    must(job,
         MPI_Allgatherv(data, counts[job->rank], MPI_UINT32_T, result, counts, displs, MPI_UINT32_T,
                        MPI_COMM_WORLD),
         "MPI_Allgatherv");
    for (int rank = 0; rank < job->size; ++rank) {
        unchanged(job, result + displs[rank], (size_t) counts[rank], rank, 0);
    }
    unchanged(job, data, (size_t) counts[job->rank], job->rank, 0);
    all = (size_t) (displs[job->size - 1] + counts[job->size - 1]);
    slot_put(job, slot, all * 4);
    free(counts);
}

static void call_scatter(job_t *job)
{
    int *counts = calloc(2 * (size_t) job->size, sizeof(int)), *displs = counts + job->size;
    slot_t *slot = slot_get(job);
    uint32_t *result = (uint32_t *) (void *) (slot->data + GUARD), *data;
    size_t all, mine;

    shares(job, counts, displs);
    all = (size_t) (displs[job->size - 1] + counts[job->size - 1]);
    mine = (size_t) counts[job->rank];
    data = fill(job, job->in, all, job->rank, 0);
    must(job, MPI_Reduce_scatter(data, result, counts, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD),
         "MPI_Reduce_scatter");
    sums(job, result, mine, (size_t) displs[job->rank]);
    unchanged(job, data, all, job->rank, 0);
    slot_put(job, slot, mine * 4);
    free(counts);
}

static void call_bcast(job_t *job)
{
    slot_t *slot = slot_get(job);
    int root = (int) (job->iteration % job->size);
    size_t count = job->bytes / 4;
    uint32_t *data = (uint32_t *) (void *) (slot->data + GUARD);

    if (root == job->rank) {
        fill(job, data, count, root, 0);
    }
    must(job, MPI_Bcast(data, (int) count, MPI_UINT32_T, root, MPI_COMM_WORLD), "MPI_Bcast");
    unchanged(job, data, count, root, 0);
    slot_put(job, slot, count * 4);
}

/* Nobody leaves before the last has come: all hosts of a lab have one clock. */
static void call_barrier(job_t *job)
{
    double times[2], *all = calloc(2 * (size_t) job->size, sizeof(double));
    double last_in = 0, first_out = 1e300;

    times[0] = now_s();
    must(job, MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    times[1] = now_s();
    must(job, MPI_Allgather(times, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, MPI_COMM_WORLD),
         "MPI_Allgather");
    for (int rank = 0; rank < job->size; ++rank) {
        last_in = all[2 * rank] > last_in ? all[2 * rank] : last_in;
        first_out = all[2 * rank + 1] < first_out ? all[2 * rank + 1] : first_out;
    }
    wrong(job, last_in > first_out, "a rank left the barrier before another came");
    free(all);
}

static void call_mixed(job_t *job)
{
    slot_t *slot = slot_get(job), *other = slot_get(job);
    float *data = fill_floats(job), *result = (float *) (void *) (slot->data + GUARD);
    uint32_t *sum = (uint32_t *) (void *) (other->data + GUARD);
    size_t count = job->bytes / 16;
    uint32_t *small = malloc(count * 4);
    MPI_Request request;

    fill(job, small, count, job->rank, 0);
    must(job,
         MPI_Iallreduce(data, result, (int) (job->bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                        &request),
         "MPI_Iallreduce");
    must(job, MPI_Allreduce(small, sum, (int) count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD),
         "MPI_Allreduce");
    must(job, MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    sums(job, sum, count, 0);
    unchanged(job, small, count, job->rank, 0);
    floats(job, result, 1);
    slot_put(job, slot, job->bytes / 4 * 4);
    slot_put(job, other, count * 4);
    free(small);
}

/* Sum of one integer for each rank of a communicator, and a longer vector on it. */
static void check_comm(job_t *job, MPI_Comm comm, const char *what)
{
    int size, rank, one = job->rank + 1, sum = -1, world[64], expected = 0;
    size_t count = 3000;
    uint32_t *data = malloc(count * 8), bad = 0;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    must(job, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), what);
    must(job, MPI_Allgather(&job->rank, 1, MPI_INT, world, 1, MPI_INT, comm), what);
    fill(job, data, count, job->rank, 0);
    must(job, MPI_Allreduce(data, data + count, (int) count, MPI_UINT32_T, MPI_SUM, comm), what);
    for (int i = 0; i < size; ++i) {
        expected += world[i] + 1;
    }
    for (size_t i = 0; i < count; ++i) {
        uint32_t exact = 0;

        for (int k = 0; k < size; ++k) {
            exact += value(world[k], i, job->iteration);
        }
        bad += data[count + i] != exact;
    }
    wrong(job, bad + (sum != expected), what);
    free(data);
}

/* Context ids are used again at once, by communicators with the same and with other members. */
static void call_comms(job_t *job)
{
    MPI_Comm copy, part, reversed;

    for (int round = 0; round < 3; ++round) {
        must(job, MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
        must(job, MPI_Comm_split(MPI_COMM_WORLD, (job->rank + round) % 2, job->rank, &part),
             "MPI_Comm_split");
        check_comm(job, copy, "calls on a duplicate");
        check_comm(job, part, "calls on a half");
        must(job, MPI_Comm_free(&part), "MPI_Comm_free");
        must(job, MPI_Comm_split(copy, 0, -job->rank, &reversed), "MPI_Comm_split");
        must(job, MPI_Comm_free(&copy), "MPI_Comm_free");
        check_comm(job, reversed, "calls on reversed ranks");
        must(job, MPI_Comm_free(&reversed), "MPI_Comm_free");
    }
}

void job_collective(job_t *job, kind_t kind)
{
    static void (*const calls[])(job_t *) = {call_float,   call_int,   call_gather,
                                             call_gatherv, call_scatter, call_bcast,
                                             call_barrier, call_mixed, call_comms};

    job->kind = kind;
    calls[kind](job);
}
