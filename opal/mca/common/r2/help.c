/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Help texts. Open MPI 6 has its own compiled in and no other; for it they are read here.
 */
#include "opal/mca/common/r2/help.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/show_help.h"

#if OPAL_MAJOR_VERSION >= 6

#    define R2_HELP_BYTES 8192 /* of one text, filled in */
#    define R2_HELP_DASHES \
        "--------------------------------------------------------------------------\n"

static char r2_help_beside[4096]; /* the component's folder; "": not known */

static void r2_help_add_dir(const char *dir)
{
    snprintf(r2_help_beside, sizeof(r2_help_beside), "%s", dir);
}

/* Reads the lines of a topic. @param text_p R2_HELP_BYTES bytes. */
static bool r2_help_read(const char *dir, const char *file, const char *topic, char *text_p)
{
    char path[sizeof(r2_help_beside) + 64], line[256], wanted[64];
    size_t used = 0;
    bool inside = false;
    FILE *from;

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    snprintf(wanted, sizeof(wanted), "[%s]\n", topic);
    from = fopen(path, "re");
    text_p[0] = '\0';
    while (NULL != from && NULL != fgets(line, sizeof(line), from)) {
        if ('[' == line[0]) {
            inside = 0 == strcmp(line, wanted);
        } else if (inside && '#' != line[0] && used + strlen(line) < R2_HELP_BYTES) {
            memcpy(text_p + used, line, strlen(line) + 1);
            used += strlen(line);
        }
    }
    if (NULL != from) {
        fclose(from);
    }
    return used > 0;
}

static void r2_help_show(const char *file, const char *topic, va_list values)
{
    char format[R2_HELP_BYTES], text[2 * R2_HELP_BYTES];

    if (!r2_help_read(R2_MCA_HELP_DIR, file, topic, format) &&
        !r2_help_read(r2_help_beside, file, topic, format)) {
        fprintf(stderr, "r2: there is no help text \"%s\": %s is missing in %s\n", topic, file,
                R2_MCA_HELP_DIR);
        return;
    }
    vsnprintf(text, sizeof(text), format, values);
    fprintf(stderr, R2_HELP_DASHES "%s" R2_HELP_DASHES, text); /* in one piece */
}

#else

static void r2_help_add_dir(const char *dir)
{
    opal_show_help_add_dir(dir);
}

static void r2_help_show(const char *file, const char *topic, va_list values)
{
    opal_show_vhelp(file, topic, true, values);
}

#endif

void mca_common_r2_help_init(const void *component)
{
    Dl_info info;
    char *dir = NULL, *slash;

#if OPAL_MAJOR_VERSION < 6
    r2_help_add_dir(R2_MCA_HELP_DIR);
#endif
    if (0 != dladdr(component, &info) && NULL != info.dli_fname) {
        dir = strdup(info.dli_fname);
    }
    slash = NULL == dir ? NULL : strrchr(dir, '/');
    if (NULL != slash) {
        *slash = '\0';
        r2_help_add_dir(dir);
    }
    free(dir);
}

void mca_common_r2_help(const char *file, const char *topic, ...)
{
    va_list values;

    va_start(values, topic);
    r2_help_show(file, topic, values);
    va_end(values);
}
