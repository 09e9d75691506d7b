/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The PMIx exchange under mpirun, without MPI: one key for all, every blob, and a rank that does
 * not take part.
 */
#include "r2_config.h"

#include <pmix.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "oob/oob.h"
#include "rail/hello.h"

static int t_rank = -1;

#define T_CHECK(cond)                                                          \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "rank %d line %d: %s\n", t_rank, __LINE__, #cond); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/** Content of a rank's blob: some are empty, some as long as allowed. */
static size_t t_fill(uint32_t rank, uint8_t *blob)
{
    const size_t bytes = 1 == rank ? R2_OOB_BLOB_MAX : 100 + rank;

    for (size_t i = 0; i < bytes; ++i) {
        blob[i] = (uint8_t) (i * 31 + rank * 7);
    }
    return bytes;
}

static uint64_t t_now(void)
{
    return r2_now_ns(r2_clock_system());
}

/** @param silent rank that does not run r2, or -1. */
static void t_lookups(const r2_oob_t *oob, int size, int silent)
{
    static uint8_t blob[R2_OOB_BLOB_MAX], wanted[R2_OOB_BLOB_MAX];

    for (int rank = 0; rank < size; ++rank) {
        const uint64_t start_ns = t_now();
        size_t bytes = 0;
        const r2_status_t status = oob->ops->lookup(oob->instance, (uint32_t) rank, blob, &bytes);
        const uint64_t took_ns = t_now() - start_ns;

        if (NULL != getenv("T_VERBOSE")) {
            fprintf(stderr, "rank %d: lookup of %d: %s in %lu us\n", t_rank, rank,
                    r2_status_name(status), (unsigned long) (took_ns / 1000));
        }
        if (rank == silent) {
            T_CHECK(R2_ERR_NOT_FOUND == status);
            T_CHECK(took_ns < 2 * R2_NS_PER_S);
        } else {
            T_CHECK(R2_OK == status);
            T_CHECK(bytes == t_fill((uint32_t) rank, wanted));
            T_CHECK(0 == memcmp(blob, wanted, bytes));
        }
    }
    T_CHECK(R2_ERR_NOT_FOUND ==
            oob->ops->lookup(oob->instance, (uint32_t) size, blob, &(size_t){0}));
}

/* All processes; what they have published is there for all who ask, on their hosts if `collect`. */
static void t_fence(bool collect)
{
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    T_CHECK(PMIX_SUCCESS == PMIx_Fence(NULL, 0, &info, 1));
}

/* Publishes a value that is not r2's. */
static void t_put(const char *name, const void *bytes, size_t count)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};

    value.data.bo.bytes = (char *) (uintptr_t) bytes;
    value.data.bo.size = count;
    T_CHECK(PMIX_SUCCESS == PMIx_Put(PMIX_GLOBAL, name, &value));
    T_CHECK(PMIX_SUCCESS == PMIx_Commit());
}

/* Every rank has the key that rank `from` has; who has none (NULL) only waits. */
static void t_same_key(const pmix_proc_t *self, uint32_t from, const uint8_t *key)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc;

    if (NULL != key) {
        t_put("test.key", key, R2_JOB_KEY_BYTES);
    }
    t_fence(false);
    if (NULL != key) {
        PMIX_LOAD_PROCID(&proc, self->nspace, from);
        T_CHECK(PMIX_SUCCESS == PMIx_Get(&proc, "test.key", NULL, 0, &value));
        T_CHECK(R2_JOB_KEY_BYTES == value->data.bo.size);
        T_CHECK(0 == memcmp(value->data.bo.bytes, key, R2_JOB_KEY_BYTES));
        PMIX_VALUE_RELEASE(value);
    }
    t_fence(false);
}

static int t_job_size(const pmix_proc_t *self)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;
    int size;

    PMIX_LOAD_PROCID(&job, self->nspace, PMIX_RANK_WILDCARD);
    T_CHECK(PMIX_SUCCESS == PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value));
    size = (int) value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

/** arguments: the rank that does not take part; "asks", if the fence brings no data along. */
int main(int argc, char **argv)
{
    const int silent = argc > 1 ? atoi(argv[1]) : -1;
    const bool collects = argc <= 2 || 0 != strcmp(argv[2], "asks");
    uint8_t key[R2_JOB_KEY_BYTES] = {0}, blob[R2_OOB_BLOB_MAX];
    uint32_t rank = 0, count = 0;
    r2_oob_t oob = {0};
    pmix_proc_t self;
    bool takes_part;
    int size;

    T_CHECK(PMIX_SUCCESS == PMIx_Init(&self, NULL, 0));
    t_rank = (int) self.rank;
    size = t_job_size(&self);
    takes_part = t_rank != silent;
    t_put("test.mpi", "", 1); /* MPI itself always publishes something */
    if (takes_part) {
        T_CHECK(R2_OK == r2_oob_pmix_create(&oob));
        T_CHECK(R2_OK == oob.ops->identity(oob.instance, &rank, &count));
        T_CHECK((int) rank == t_rank && (int) count == size);
        T_CHECK(R2_OK == oob.ops->publish(oob.instance, blob, t_fill(rank, blob)));
    }
    t_fence(collects);
    if (takes_part) {
        T_CHECK((0 == silent ? R2_ERR_NOT_FOUND : R2_OK) == oob.ops->job_key(oob.instance, key));
        t_lookups(&oob, size, silent);
    }
    t_same_key(&self, 1 == silent ? 2 : size > 1, takes_part ? key : NULL);
    if (takes_part && 0 == rank % 2) {
        r2_oob_pmix_destroy(&oob);
    }
    T_CHECK(PMIX_SUCCESS == PMIx_Finalize(NULL, 0));
    if (takes_part && 0 != rank % 2) {
        r2_oob_pmix_destroy(&oob); /* after the program's own */
    }
    if (0 == t_rank) {
        printf("oob_pmix: %d ranks, PMIx %s\n", size, r2_oob_pmix_version());
    }
    return 0;
}
