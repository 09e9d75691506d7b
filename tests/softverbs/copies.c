/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Counts what a process copies by memcpy() and memmove(), for LD_PRELOAD: the bytes of all copies
 * of 4 KiB and more so far, for a program that asks.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define LEAST 4096u /* headers and short messages are not what is asked for */

#define EXPORT __attribute__((visibility("default")))

EXPORT void *memcpy(void *to, const void *from, size_t bytes);
EXPORT void *memmove(void *to, const void *from, size_t bytes);
EXPORT void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room);
EXPORT void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room);
EXPORT unsigned long long copies_counted(void);

static atomic_ullong copied;

/* No loop that the compiler could make a call of memcpy() of. */
static void copy_up(char *to, const char *from, size_t bytes)
{
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    for (volatile size_t i = 0; i < bytes; ++i) {
        to[i] = from[i];
    }
#endif
}

static void copy_down(char *to, const char *from, size_t bytes)
{
    for (volatile size_t i = bytes; i > 0; --i) {
        to[i - 1] = from[i - 1];
    }
}

void *memmove(void *to, const void *from, size_t bytes)
{
    if (bytes >= LEAST) {
        atomic_fetch_add_explicit(&copied, bytes, memory_order_relaxed);
    }
    if ((uintptr_t) to - (uintptr_t) from >= bytes) {
        copy_up(to, from, bytes);
    } else {
        copy_down(to, from, bytes);
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    return memmove(to, from, bytes);
}

void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
    if (bytes > room) {
        abort();
    }
    return memmove(to, from, bytes);
}

void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room)
{
    return __memcpy_chk(to, from, bytes, room);
}

unsigned long long copies_counted(void)
{
    return atomic_load(&copied);
}
