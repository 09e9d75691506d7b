/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be loaded before the PMIx library: the process is held up for R2_TEST_LATE_S seconds after
 * each PMIx_Connect(), when those that it connects with go on.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pmix.h>
#include <stdlib.h>
#include <time.h>

typedef pmix_status_t (*connect_fn_t)(const pmix_proc_t procs[], size_t nprocs,
                                      const pmix_info_t info[], size_t ninfo);

__attribute__((visibility("default"))) pmix_status_t
PMIx_Connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo)
{
    connect_fn_t next = (connect_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Connect");
    const pmix_status_t rc = next(procs, nprocs, info, ninfo);
    const char *seconds = getenv("R2_TEST_LATE_S");
    const struct timespec pause = {NULL == seconds ? 0 : atoi(seconds), 0};

    nanosleep(&pause, NULL);
    return rc;
}
