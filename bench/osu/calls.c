/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The three forms of every collective, from one table.
 */
#include "r2_config.h"

#include "calls.h"

#ifdef OPEN_MPI
#    include <mpi-ext.h>
#endif

/* MPI-4's persistent collectives are an extension of Open MPI 4. */
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#    define INIT_OF(Name) MPI_##Name##_init
#else
#    define INIT_OF(Name) MPIX_##Name##_init
#endif

int r2_bench_call_blocking(r2_bench_kind_id_t id, const r2_bench_call_t *call)
{
    int rc = MPI_ERR_ARG;

    switch (id) {
#define R2_BENCH_CALL(Kind, Name, IName, ...) \
    case R2_BENCH_##Kind:                     \
        rc = MPI_##Name(__VA_ARGS__);         \
        break;
#define R2_BENCH_PAIRS(Kind) case R2_BENCH_##Kind:
#include "calls.def"
#undef R2_BENCH_CALL
#undef R2_BENCH_PAIRS
    case R2_BENCH_KIND_COUNT:
        break;
    }
    return rc;
}

int r2_bench_call_start(r2_bench_kind_id_t id, const r2_bench_call_t *call, MPI_Request *request_p)
{
    int rc = MPI_ERR_ARG;

    switch (id) {
#define R2_BENCH_CALL(Kind, Name, IName, ...)     \
    case R2_BENCH_##Kind:                         \
        rc = MPI_##IName(__VA_ARGS__, request_p); \
        break;
#define R2_BENCH_PAIRS(Kind) case R2_BENCH_##Kind:
#include "calls.def"
#undef R2_BENCH_CALL
#undef R2_BENCH_PAIRS
    case R2_BENCH_KIND_COUNT:
        break;
    }
    return rc;
}

int r2_bench_call_init(r2_bench_kind_id_t id, const r2_bench_call_t *call, MPI_Request *request_p)
{
    int rc = MPI_ERR_ARG;

    switch (id) {
#define R2_BENCH_CALL(Kind, Name, IName, ...)                      \
    case R2_BENCH_##Kind:                                          \
        rc = INIT_OF(Name)(__VA_ARGS__, MPI_INFO_NULL, request_p); \
        break;
#define R2_BENCH_PAIRS(Kind) case R2_BENCH_##Kind:
#include "calls.def"
#undef R2_BENCH_CALL
#undef R2_BENCH_PAIRS
    case R2_BENCH_KIND_COUNT:
        break;
    }
    return rc;
}
