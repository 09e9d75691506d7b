/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Debian 13: what a file of PMIx says of components goes to the processes of Open MPI 5.0, too.
 */
#include "r2_config.h"

#include "info.h"
#include "r2/params.h"

#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define INFO_BLANKS " \t"

/* The folder of the PMIx library that this program has loaded. */
static int info_pmix_folder(struct dl_phdr_info *object, size_t bytes, void *folder)
{
    char path[PATH_MAX];

    (void) bytes;
    if (NULL == strstr(object->dlpi_name, "/libpmix.so") ||
        NULL == realpath(object->dlpi_name, path)) {
        return 0;
    }
    *strrchr(path, '/') = '\0';
    *(char **) folder = strdup(path);
    return 1;
}

bool info_pmix_sets(const char *path, const char *name)
{
    FILE *file = fopen(path, "r");
    bool sets = false;
    char line[512];

    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        const char *at = line + strspn(line, INFO_BLANKS);
        const size_t length = strlen(name);

        if (0 == strncmp(at, name, length)) {
            at += length;
            sets = sets || '=' == at[strspn(at, INFO_BLANKS)];
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return sets;
}

void info_collect_pmix(info_t *info)
{
    char *folder = NULL, path[PATH_MAX];

    (void) dl_iterate_phdr(info_pmix_folder, &folder);
    if (NULL != folder && NULL == r2_params_component_path()) {
        snprintf(path, sizeof(path), "%s/../share/pmix-mca-params.conf", folder);
        if (info_pmix_sets(path, "mca_base_component_path")) {
            snprintf(info->pmix_file, sizeof(info->pmix_file), "%.255s", path);
        }
    }
    free(folder);
}
