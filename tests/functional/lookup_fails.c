/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be loaded before the PMIx library: the process of rank 1 does not get what rank 2 published
 * for r2, though it is there.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef pmix_status_t (*get_fn_t)(const pmix_proc_t *proc, const char key[],
                                  const pmix_info_t info[], size_t ninfo, pmix_value_t **val);
typedef pmix_status_t (*get_nb_fn_t)(const pmix_proc_t *proc, const char key[],
                                     const pmix_info_t info[], size_t ninfo,
                                     pmix_value_cbfunc_t cbfunc, void *cbdata);

static bool fails(const pmix_proc_t *proc, const char *key)
{
    const char *self = getenv("PMIX_RANK");

    return NULL != self && 0 == strcmp(self, "1") && 2 == proc->rank && NULL != key &&
           0 == strcmp(key, "r2.blob");
}

PMIX_EXPORT pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[],
                                   const pmix_info_t info[], size_t ninfo, pmix_value_t **val)
{
    get_fn_t next = (get_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Get");

    return fails(proc, key) ? PMIX_ERR_TIMEOUT : next(proc, key, info, ninfo, val);
}

PMIX_EXPORT pmix_status_t PMIx_Get_nb(const pmix_proc_t *proc, const char key[],
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_value_cbfunc_t cbfunc, void *cbdata)
{
    get_nb_fn_t next = (get_nb_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Get_nb");

    return fails(proc, key) ? PMIX_ERR_TIMEOUT : next(proc, key, info, ninfo, cbfunc, cbdata);
}
