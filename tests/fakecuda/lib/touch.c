/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What happens when the CPU touches memory that it may not: device memory always, pinned and
 * managed memory while an operation that nobody waited for uses it.
 */
#include "fakecuda/lib/fc.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct sigaction others; /* who had the signal before us */

static void touched_device(fc_alloc_t *alloc, uintptr_t at)
{
    if (NULL == alloc) {
        fc_mistake(FC_cpu_touches, "the CPU touches device memory %p: no allocation", (void *) at);
        return;
    }
    fc_mistake(FC_cpu_touches, "the CPU touches device memory %p: byte %zu of %s allocation %llu",
               (void *) at, (size_t) (at - alloc->base),
               alloc->is_freed ? "freed" : fc_kind_name(alloc->kind),
               (unsigned long long) alloc->id);
}

/* @return whether an operation uses the page: then the touch goes on, with whatever is there. */
static bool touched_early(fc_alloc_t *alloc, uintptr_t at)
{
    uintptr_t page = at / FC_PAGE * FC_PAGE;
    fc_walk_t walk = fc_walk(alloc, page, page + FC_PAGE);
    const fc_access_t *access;

    while (NULL != walk.access &&
           (page + FC_PAGE <= walk.access->from || page >= walk.access->to)) {
        fc_walk_on(&walk);
    }
    access = walk.access;
    if (NULL == alloc->protection || NULL == access) {
        return false;
    }
    fc_mistake(FC_early_touches,
               "the CPU touches %s memory %p (byte %zu of allocation %llu), which %s on stream %d "
               "(operation %llu) %s, and nobody waited for it",
               fc_kind_name(alloc->kind), (void *) at, (size_t) (at - alloc->base),
               (unsigned long long) alloc->id, access->name, access->place,
               (unsigned long long) access->seq, access->writes ? "writes" : "reads");
    mprotect((void *) page, FC_PAGE, PROT_READ | PROT_WRITE);
    alloc->protection[(at - alloc->base) / FC_PAGE] = PROT_READ | PROT_WRITE;
    return true;
}

/* @return whether the program goes on. */
static bool touched(uintptr_t at, void *context)
{
    fc_alloc_t *alloc = fc_find(at);

    if (!fc_in_arena(at)) {
        return NULL != alloc && touched_early(alloc, at);
    }
    touched_device(alloc, at);
    return NULL != fc.audit && NULL != alloc && !alloc->is_freed &&
           fc_audit_touch(alloc, at, context);
}

static void on_segv(int number, siginfo_t *info, void *context)
{
    static __thread bool is_inside;
    bool was_locked = fc_locked, goes_on = false;

    if (is_inside) { /* somebody who has the signal, too, handed it back */
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    is_inside = true;
    if (fc.pid == getpid()) {
        was_locked ? (void) 0 : fc_lock();
        goes_on = touched((uintptr_t) info->si_addr, context);
        was_locked ? (void) 0 : fc_unlock();
        goes_on ? (void) 0 : fc_write_stats(); /* no atexit() will come */
    }
    if (goes_on) {
        /* the touch is repeated */
    } else if (0 != (others.sa_flags & SA_SIGINFO)) {
        others.sa_sigaction(number, info, context);
    } else if (SIG_DFL != others.sa_handler && SIG_IGN != others.sa_handler) {
        others.sa_handler(number);
    } else {
        signal(SIGSEGV, SIG_DFL); /* the touch is repeated, and ends the process */
    }
    is_inside = false;
}

/* MPI_Init() and UCX set handlers of their own; ours has to be the first. */
void fc_guard(void)
{
    struct sigaction ours, now;

    memset(&ours, 0, sizeof(ours));
    ours.sa_sigaction = on_segv;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (0 == sigaction(SIGSEGV, NULL, &now) && now.sa_sigaction != on_segv) {
        others = now;
        sigaction(SIGSEGV, &ours, NULL);
    }
}
