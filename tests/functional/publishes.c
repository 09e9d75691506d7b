/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be loaded before the PMIx library: the process publishes a value of its own, as a program that
 * uses PMIx may, together with what Open MPI publishes.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>

#define BYTES 600

typedef pmix_status_t (*commit_fn_t)(void);

static pmix_status_t publish(void)
{
    static char bytes[BYTES];
    pmix_value_t value;

    for (int i = 0; i < BYTES; ++i) {
        bytes[i] = (char) (i * 31 % 127);
    }
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = bytes;
    value.data.bo.size = BYTES;
    return PMIx_Put(PMIX_GLOBAL, "test.published", &value);
}

__attribute__((visibility("default"))) pmix_status_t PMIx_Commit(void)
{
    static bool done;
    commit_fn_t next = (commit_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Commit");
    pmix_status_t rc = PMIX_SUCCESS;

    if (!done) {
        done = true;
        rc = publish();
    }
    return PMIX_SUCCESS == rc ? next() : rc;
}
