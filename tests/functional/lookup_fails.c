/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be loaded before the PMIx library: the process of rank 1 does not get what rank 2 published
 * for r2, though it is there. With R2_TEST_PUBLISHES=N it publishes N times and not again, instead.
 * With R2_TEST_PUBLISHES=pair no process can tell another job of itself, instead.
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

typedef pmix_status_t (*put_fn_t)(pmix_scope_t scope, const char key[], pmix_value_t *val);

static bool is_ours(const char *key)
{
    const char *self = getenv("PMIX_RANK");

    return NULL != self && 0 == strcmp(self, "1") && NULL != key && 0 == strcmp(key, "r2.blob");
}

static bool fails(const pmix_proc_t *proc, const char *key)
{
    return NULL == getenv("R2_TEST_PUBLISHES") && is_ours(key) && 2 == proc->rank;
}

PMIX_EXPORT pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
    put_fn_t next = (put_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Put");
    const char *most = getenv("R2_TEST_PUBLISHES");
    static int count;

    if (NULL != most && 0 == strcmp(most, "pair")) {
        return 0 == strncmp(key, "r2.for.", 7) ? PMIX_ERR_OUT_OF_RESOURCE : next(scope, key, val);
    }
    if (NULL != most && is_ours(key) && ++count > atoi(most)) {
        return PMIX_ERR_OUT_OF_RESOURCE;
    }
    return next(scope, key, val);
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
