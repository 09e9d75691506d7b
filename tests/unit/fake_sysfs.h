/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A made-up /sys and /dev below a folder.
 */
#ifndef R2_TESTS_FAKE_SYSFS_H
#define R2_TESTS_FAKE_SYSFS_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Makes the folders on the way to a path. */
static inline void fake_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); NULL != at; at = strchr(at + 1, '/')) {
        *at = '\0';
        assert_true(0 == mkdir(path, 0755) || EEXIST == errno);
        *at = '/';
    }
}

/** A file with a line of text. */
static inline void fake_file(const char *root, const char *name, const char *text)
{
    char path[2 * PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    fake_folders(path);
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "%s%s", text, '\0' == text[0] ? "" : "\n");
    assert_int_equal(fclose(file), 0);
}

/** A link to a folder, which is made, too. */
static inline void fake_link(const char *root, const char *target, const char *name)
{
    char path[2 * PATH_MAX], real[2 * PATH_MAX];

    snprintf(real, sizeof(real), "%s/%s/", root, target);
    fake_folders(real);
    snprintf(path, sizeof(path), "%s/%s", root, name);
    fake_folders(path);
    assert_int_equal(symlink(real, path), 0);
}

/** A folder for it. @param root_p PATH_MAX bytes. */
static inline void fake_begin(char *root_p)
{
    strcpy(root_p, "/tmp/r2-test-sysfs-XXXXXX");
    assert_non_null(mkdtemp(root_p));
}

static inline void fake_end(const char *root)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

#endif
