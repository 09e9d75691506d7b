/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be loaded before the PMIx library: nobody in the process hears of the death of another from
 * the launcher, whose word may be late on a busy machine. Handlers of events that tell of it, and
 * the default one, are registered for an event that never comes. With R2_UNHEARD_STARVED set the
 * clock that r2 waits for that word by stands still between jumps, as it does for who is not
 * scheduled.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { JUMP_MS = 600 }; /* more than a word is waited for (R2_ULFM_WORD_US) */

typedef int (*gettime_fn_t)(clockid_t clock, struct timespec *now);
typedef pmix_status_t (*register_fn_t)(pmix_status_t codes[], size_t ncodes, pmix_info_t info[],
                                       size_t ninfo, pmix_notification_fn_t handler,
                                       pmix_hdlr_reg_cbfunc_t done, void *arg);

static bool tells_of_deaths(const pmix_status_t *codes, size_t count)
{
    const pmix_status_t deaths[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_ABORTED_BY_SIG,
                                    PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_EXIT_NONZERO_TERM};

    for (size_t i = 0; i < count; ++i) {
        for (size_t d = 0; d < sizeof(deaths) / sizeof(deaths[0]); ++d) {
            if (codes[i] == deaths[d]) {
                return true;
            }
        }
    }
    return 0 == count;
}

__attribute__((visibility("default"))) pmix_status_t
PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes, pmix_info_t info[], size_t ninfo,
                            pmix_notification_fn_t handler, pmix_hdlr_reg_cbfunc_t done, void *arg)
{
    register_fn_t next =
        (register_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "PMIx_Register_event_handler");
    static pmix_status_t never[1] = {PMIX_EXTERNAL_ERR_BASE - 0x7ead};
    const bool hide = tells_of_deaths(codes, NULL == codes ? 0 : ncodes);

    return next(hide ? never : codes, hide ? 1 : ncodes, info, ninfo, handler, done, arg);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    static gettime_fn_t next;
    int rc;

    if (NULL == next) {
        next = (gettime_fn_t) (uintptr_t) dlsym(RTLD_NEXT, "clock_gettime");
    }
    rc = next(clock, now);
    if (CLOCK_MONOTONIC_COARSE == clock && NULL != getenv("R2_UNHEARD_STARVED")) {
        const int64_t ms = now->tv_sec * INT64_C(1000) + now->tv_nsec / 1000000;

        now->tv_sec = ms / JUMP_MS * JUMP_MS / 1000;
        now->tv_nsec = ms / JUMP_MS * JUMP_MS % 1000 * 1000000;
    }
    return rc;
}
