/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Audit: the CPU's touches of device memory go on, one instruction at a time, and the places they
 * come from are noted. So one run of a program finds all places that take device memory for host
 * memory. x86-64 only; elsewhere the first touch ends the program.
 */
#include "fakecuda/lib/fc.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum {
    SITES = 512,
    FRAMES = 14,
    HANDLER = 16,  /* frames of ours and of the kernel's, above that of the touch */
    OPEN = 4,      /* pages that one instruction touches */
    STEP = 0x100   /* of the flags: stop after one instruction */
};

typedef struct site {
    void *frames[FRAMES];
    int count;
    uint64_t touches, writes;
} site_t;

static site_t sites[SITES];
static int site_count;
static __thread uintptr_t open_pages[OPEN];
static __thread int open_count;

#ifdef __x86_64__
static void *object_of(void *at)
{
    Dl_info info;

    return 0 == dladdr(at, &info) ? NULL : info.dli_fbase;
}

/* In a library, as memcpy() is, any of many instructions touches: they do not tell sites apart. */
static bool is_site(const site_t *site, void *const *frames, int count)
{
    return site->count == count &&
           0 == memcmp(site->frames + 1, frames + 1, (size_t) (count - 1) * sizeof(*frames)) &&
           (site->frames[0] == frames[0] ||
            (count > 1 && object_of(frames[0]) != object_of(frames[1])));
}

static void note(const ucontext_t *context)
{
    void *stack[FRAMES + HANDLER];
    int count = backtrace(stack, FRAMES + HANDLER), skip = 0, i = 0;

    while (skip < count && stack[skip] != (void *) context->uc_mcontext.gregs[REG_RIP]) {
        ++skip;
    }
    skip = skip == count ? 0 : skip;
    count = count - skip > FRAMES ? FRAMES : count - skip;
    while (i < site_count && !is_site(&sites[i], stack + skip, count)) {
        ++i;
    }
    if (i == SITES || count < 1) {
        return;
    }
    if (i == site_count) {
        memcpy(sites[i].frames, stack + skip, (size_t) count * sizeof(*stack));
        sites[i].count = count;
        ++site_count;
    }
    ++sites[i].touches;
    sites[i].writes += 0 != (context->uc_mcontext.gregs[REG_ERR] & 2);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void) number, (void) info;
    for (int i = 0; i < open_count; ++i) {
        mprotect((void *) open_pages[i], FC_PAGE, PROT_NONE);
    }
    open_count = 0;
    ((ucontext_t *) context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t) STEP;
}

bool fc_audit_touch(fc_alloc_t *alloc, uintptr_t at, void *context)
{
    static bool is_ready;
    struct sigaction action;
    uintptr_t page = at / FC_PAGE * FC_PAGE;

    if (OPEN == open_count) {
        return false;
    }
    if (!is_ready) {
        is_ready = true;
        memset(&action, 0, sizeof(action));
        action.sa_sigaction = on_trap;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGTRAP, &action, NULL);
    }
    note(context);
    if (NULL == alloc->protection) { /* from now on the address leads to the memory */
        alloc->protection = calloc(1, 1);
        mmap((void *) alloc->base, alloc->mapped, PROT_NONE, MAP_SHARED | MAP_FIXED, alloc->fd, 0);
    }
    open_pages[open_count++] = page;
    mprotect((void *) page, FC_PAGE, PROT_READ | PROT_WRITE);
    ((ucontext_t *) context)->uc_mcontext.gregs[REG_EFL] |= STEP;
    return true;
}
#else
bool fc_audit_touch(fc_alloc_t *alloc, uintptr_t at, void *context)
{
    (void) alloc, (void) at, (void) context;
    return false;
}
#endif

/* A line for each site: touches, whether it writes, object+offset of each frame, for addr2line. */
void fc_audit_write(const char *path)
{
    char name[1024];
    FILE *file;

    snprintf(name, sizeof(name), "%s.%d", path, fc.pid);
    file = fopen(name, "w");
    for (int i = 0; NULL != file && i < site_count; ++i) {
        fprintf(file, "%llu %s", (unsigned long long) sites[i].touches,
                0 != sites[i].writes ? "w" : "r");
        for (int k = 0; k < sites[i].count; ++k) {
            uintptr_t at = (uintptr_t) sites[i].frames[k] - (k > 0 ? 1 : 0);
            Dl_info info;
            if (0 != dladdr((void *) at, &info) && NULL != info.dli_fname) {
                fprintf(file, " %s+0x%lx", info.dli_fname,
                        (unsigned long) (at - (uintptr_t) info.dli_fbase));
            }
        }
        fprintf(file, "\n");
    }
    if (NULL != file) {
        fclose(file);
    }
}
