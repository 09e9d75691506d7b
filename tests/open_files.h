/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How many files this process has open.
 */
#ifndef R2_TESTS_OPEN_FILES_H
#define R2_TESTS_OPEN_FILES_H

#include <dirent.h>
#include <stdlib.h>

/** Descriptors of this process, without the one that it takes to count them; or its end. */
static inline unsigned open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned count = 0;

    if (NULL == folder) {
        abort();
    }
    while (NULL != (entry = readdir(folder))) {
        count += '.' != entry->d_name[0];
    }
    closedir(folder);
    return count - 1;
}

#endif
