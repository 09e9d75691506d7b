/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The PMIx exchange under mpirun: one key for all, every blob, and a rank that does not take part.
 * Run without coll/r2, which publishes too.
 */
#include "r2_config.h"

#include <mpi.h>
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
            MPI_Abort(MPI_COMM_WORLD, 1);                                      \
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

#if OMPI_MAJOR_VERSION >= 5
/* All processes; what they have published is there for all. */
static void t_fence(void)
{
    bool collect = true;
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    T_CHECK(PMIX_SUCCESS == PMIx_Fence(NULL, 0, &info, 1));
}
#endif

/** argument: the rank that does not take part. */
int main(int argc, char **argv)
{
    const int silent = argc > 1 ? atoi(argv[1]) : -1;
    const char *text = getenv("OMPI_COMM_WORLD_RANK");
    const bool takes_part = NULL == text || atoi(text) != silent;
    uint8_t key[R2_JOB_KEY_BYTES] = {0}, all[R2_JOB_KEY_BYTES], blob[R2_OOB_BLOB_MAX];
    r2_oob_t oob = {0};
    uint32_t rank = 0, count = 0;
    int size;

    /* As in a component of MPI: before the fence in MPI_Init(). But 5.0 starts only where nobody
     * has started PMIx before: there with a fence of our own. */
#if OMPI_MAJOR_VERSION >= 5
    MPI_Init(&argc, &argv);
#endif
    if (takes_part) {
        T_CHECK(R2_OK == r2_oob_pmix_create(&oob));
        T_CHECK(R2_OK == oob.ops->identity(oob.instance, &rank, &count));
        T_CHECK(R2_OK == oob.ops->publish(oob.instance, blob, t_fill(rank, blob)));
    }
#if OMPI_MAJOR_VERSION >= 5
    t_fence();
#else
    MPI_Init(&argc, &argv);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (takes_part) {
        T_CHECK((int) rank == t_rank && (int) count == size);
        T_CHECK((0 == silent ? R2_ERR_NOT_FOUND : R2_OK) == oob.ops->job_key(oob.instance, key));
        t_lookups(&oob, size, silent);
    }
    memcpy(all, key, sizeof(all));
    MPI_Bcast(all, sizeof(all), MPI_BYTE, 1 == silent ? 2 : size > 1, MPI_COMM_WORLD);
    T_CHECK(!takes_part || 0 == memcmp(all, key, sizeof(all)));
    if (takes_part && 0 == rank % 2) {
        r2_oob_pmix_destroy(&oob);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (takes_part && 0 != rank % 2) {
        r2_oob_pmix_destroy(&oob); /* after MPI's own */
    }
    if (0 == t_rank) {
        printf("oob_pmix: %d ranks, PMIx %s\n", size, r2_oob_pmix_version());
    }
    return 0;
}
