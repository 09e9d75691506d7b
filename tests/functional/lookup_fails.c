/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be loaded before the PMIx library: the process of rank 1 does not get what rank 2 published
 * for r2, though it is there. With R2_TEST_PUBLISHES=N it publishes N times and not again, instead.
 * With R2_TEST_FAILS=N it publishes once, and each of the next N times, too, but is told an error,
 * instead.
 * With R2_TEST_PUBLISHES=pair no process can tell another job of itself, instead.
 * With R2_TEST_LATE_S=N the launcher does not answer within its limit, for N seconds from the first
 * question on, what the process asks of another job; then R2_TEST_ERRORS_S seconds by errors.
 * With R2_TEST_HELD_S=N the first question for what another job published is asked N seconds late.
 * With R2_TEST_MUTE nobody answers how large another job is.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* -1: none. */
static long number_of(const char *name)
{
    const char *value = getenv(name);

    return NULL == value ? -1 : atol(value);
}

static long now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static bool is_other_job(const pmix_proc_t *proc)
{
    const char *self = getenv("PMIX_NAMESPACE");

    return NULL != self && NULL != proc && 0 != strcmp(self, proc->nspace);
}

static void hold(const pmix_proc_t *proc, const char *key)
{
    static bool held;
    const long seconds = number_of("R2_TEST_HELD_S");

    if (seconds > 0 && !held && is_other_job(proc) && NULL != key && 0 == strcmp(key, "r2.blob")) {
        held = true;
        sleep((unsigned) seconds);
    }
}

static bool is_mute(const pmix_proc_t *proc, const char *key)
{
    return NULL != getenv("R2_TEST_MUTE") && is_other_job(proc) && NULL != key &&
           0 == strcmp(key, PMIX_JOB_SIZE);
}

/* PMIX_SUCCESS: it is asked. */
static pmix_status_t answer_of_other_job(const pmix_proc_t *proc, const char *key)
{
    static long first;
    const long late = number_of("R2_TEST_LATE_S"), errors = number_of("R2_TEST_ERRORS_S");
    long passed;

    if (0 != strncmp(key, "r2.", 3) || !is_other_job(proc)) {
        return PMIX_SUCCESS;
    }
    first = 0 == first ? now_s() : first;
    passed = now_s() - first;
    if (passed < late) {
        return PMIX_ERR_TIMEOUT;
    }
    return passed < late + errors ? PMIX_ERR_UNREACH : PMIX_SUCCESS;
}

static pmix_status_t answer(const pmix_proc_t *proc, const char *key)
{
    if (number_of("R2_TEST_LATE_S") >= 0) {
        return NULL == key ? PMIX_SUCCESS : answer_of_other_job(proc, key);
    }
    if (NULL == getenv("R2_TEST_PUBLISHES") && NULL == getenv("R2_TEST_FAILS") && is_ours(key) &&
        2 == proc->rank) {
        return PMIX_ERR_TIMEOUT;
    }
    return PMIX_SUCCESS;
}

__attribute__((visibility("default"))) pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[],
                                                              pmix_value_t *val)
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
    if (number_of("R2_TEST_FAILS") >= 0 && is_ours(key) && ++count > 1 &&
        count <= 1 + number_of("R2_TEST_FAILS")) {
        (void) next(scope, key, val);
        return PMIX_ERR_TIMEOUT;
    }
    return next(scope, key, val);
}

__attribute__((visibility("default"))) pmix_status_t PMIx_Get(const pmix_proc_t *proc,
                                                              const char key[],
                                                              const pmix_info_t info[],
                                                              size_t ninfo, pmix_value_t **val)
{
    get_fn_t next = (get_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Get");
    const pmix_status_t rc = answer(proc, key);

    while (is_mute(proc, key)) {
        pause();
    }
    hold(proc, key);
    return PMIX_SUCCESS == rc ? next(proc, key, info, ninfo, val) : rc;
}

__attribute__((visibility("default"))) pmix_status_t
PMIx_Get_nb(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t ninfo,
            pmix_value_cbfunc_t cbfunc, void *cbdata)
{
    get_nb_fn_t next = (get_nb_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Get_nb");
    const pmix_status_t rc = answer(proc, key);

    if (is_mute(proc, key)) {
        return PMIX_SUCCESS;
    }
    hold(proc, key);
    return PMIX_SUCCESS == rc ? next(proc, key, info, ninfo, cbfunc, cbdata) : rc;
}
