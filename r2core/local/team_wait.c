/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Waiting for a member: look, pause, sleep.
 */
#include "r2_config.h"

#include "local/team_wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Longest sleep: what else the process has to do is looked at this often. */
#define R2_TEAM_SLEEP_NS 1000000

/* One thread of a core waits for what another one writes. */
static void r2_team_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

static void r2_team_futex(_Atomic uint32_t *word, int what, uint32_t value)
{
    const struct timespec most = {.tv_nsec = R2_TEAM_SLEEP_NS};

    (void) syscall(SYS_futex, word, what, value, FUTEX_WAIT == what ? &most : NULL, NULL, 0);
}

void r2_team_ring(r2_member_t *member)
{
    atomic_fetch_add(&member->bell, 1);
    r2_team_futex(&member->bell, FUTEX_WAKE, INT_MAX);
}

/*
 * Who writes does not wait until others can see it before it looks for sleepers: that would cost
 * every call a trip between two caches. So this may be missed, and ends by itself.
 * @param bell as it was before there was nothing else to do.
 */
static void r2_team_sleep(r2_member_t *member, uint32_t bell, const _Atomic uint64_t *at,
                          uint64_t number)
{
    atomic_fetch_add(&member->sleepers, 1);
    if (!r2_segment_has(at, number)) {
        r2_team_futex(&member->bell, FUTEX_WAIT, bell);
    }
    atomic_fetch_sub(&member->sleepers, 1);
}

bool r2_team_is_refused(const r2_team_t *team)
{
    for (int32_t i = 0; i < team->segment.size; ++i) {
        if (r2_segment_has(&r2_segment_member(&team->segment, i)->refused, team->exchanges)) {
            return true;
        }
    }
    return false;
}

r2_status_t r2_team_wait_long(r2_team_t *team, int32_t member, const _Atomic uint64_t *at,
                              uint64_t number)
{
    r2_member_t *page = r2_segment_member(&team->segment, member);
    r2_status_t status = R2_OK;

    for (uint32_t turn = 0; status >= 0; ++turn) {
        uint32_t bell;

        for (uint32_t i = 0; i < team->wait.looks; ++i) {
            if (r2_segment_has(at, number)) {
                return R2_OK;
            }
            r2_team_relax();
        }
        if (team->offers && r2_team_is_refused(team)) {
            return R2_ERR_AGAIN;
        }
        bell = atomic_load_explicit(&page->bell, memory_order_acquire);
        status = team->wait.pause(team->wait.arg, member, turn);
        if (R2_IN_PROGRESS == status) {
            r2_team_sleep(page, bell, at, number);
        }
        if (r2_segment_has(at, number)) {
            return R2_OK;
        }
    }
    return status;
}
