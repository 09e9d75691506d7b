/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Shows the NIC's files in /sys/class/infiniband, and a device that may be opened in
 * /dev/infiniband: neither is there without the kernel's RDMA, and UCX has the paths built in.
 */
#include "softverbs/lib/lib.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#undef stat
#undef lstat
#undef open
#undef open64
#undef fopen64

enum { PLACE = 320 };

#define SYS  "/sys/class/infiniband"
#define DEV  "/dev/infiniband/softverbs_"
#define PEER "/sys/kernel/mm/memory_peers/nv_mem/version" /* what UCX looks for */

/* The path that a path stands for; itself for all others. */
static const char *shown(const char *path, char place[PLACE])
{
    const char *files;

    if (NULL == path || '/' != path[0]) {
        return path;
    }
    if (0 == strncmp(path, DEV, sizeof(DEV) - 1)) {
        return "/dev/null"; /* a character device */
    }
    if (0 == strcmp(path, PEER) && sv_lib_has_peer_memory()) {
        return "/dev/null";
    }
    if (0 == strncmp(path, SYS, sizeof(SYS) - 1) &&
        ('/' == path[sizeof(SYS) - 1] || '\0' == path[sizeof(SYS) - 1])) {
        files = sv_lib_files();
        if ('\0' != files[0]) {
            snprintf(place, PLACE, "%s%s", files, path + sizeof(SYS) - 1);
            return place;
        }
    }
    return path;
}

/* Sets a pointer to the function of that name which comes after this library's. */
static void find_next(void *next_p, const char *name)
{
    void *next;

    memcpy(&next, next_p, sizeof(next));
    if (NULL == next) {
        next = dlsym(RTLD_NEXT, name);
        memcpy(next_p, &next, sizeof(next));
    }
}

SV_EXPORT int stat(const char *path, struct stat *about)
{
    static int (*next)(const char *, struct stat *);
    char place[PLACE];

    find_next(&next, "stat");
    return next(shown(path, place), about);
}

SV_EXPORT int lstat(const char *path, struct stat *about)
{
    static int (*next)(const char *, struct stat *);
    char place[PLACE];

    find_next(&next, "lstat");
    return next(shown(path, place), about);
}

SV_EXPORT int access(const char *path, int mode)
{
    static int (*next)(const char *, int);
    char place[PLACE];

    find_next(&next, "access");
    return next(shown(path, place), mode);
}

SV_EXPORT FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);
    char place[PLACE];

    find_next(&next, "fopen");
    return next(shown(path, place), mode);
}

SV_EXPORT DIR *opendir(const char *path)
{
    static DIR *(*next)(const char *);
    char place[PLACE];

    find_next(&next, "opendir");
    return next(shown(path, place));
}

SV_EXPORT int open(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    char place[PLACE];
    va_list list;
    mode_t mode;

    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
    find_next(&next, "open");
    return next(shown(path, place), flags, mode);
}

SV_EXPORT int openat(int folder, const char *path, int flags, ...)
{
    static int (*next)(int, const char *, int, ...);
    char place[PLACE];
    va_list list;
    mode_t mode;

    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
    find_next(&next, "openat");
    return next(folder, shown(path, place), flags, mode);
}

/* Where files' offsets have 64 bits anyway, these are the same functions by other names. */
_Static_assert(sizeof(off_t) == sizeof(off64_t), "one function for both");
SV_EXPORT FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));
SV_EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));
