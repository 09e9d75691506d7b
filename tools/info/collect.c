/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Looks at this host and installation.
 */
#include "r2_config.h"

#include "info.h"
#include "r2/gpu.h"
#include "r2/params.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* One line of ompi_info --parsable: "mca:coll:r2:param:coll_r2_NAME:value:TEXT". */
#define INFO_PARAM_PREFIX   "mca:coll:r2:param:coll_r2_"
#define INFO_VERSION_PREFIX "mca:coll:r2:version:\"component:"

/** The table row of a name that ends at a ':'. @return its index, or -1. */
static int info_row_of(const char *name, size_t bytes)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);

    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX; ++i) {
        if (strlen(rows[i].name) == bytes && 0 == strncmp(rows[i].name, name, bytes)) {
            return (int) i;
        }
    }
    return -1;
}

static void info_param_line(info_t *info, const char *line)
{
    const char *name = line + strlen(INFO_PARAM_PREFIX);
    const char *rest = strchr(name, ':');
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    int row;

    if (NULL == rest) {
        return;
    }
    row = info_row_of(name, (size_t) (rest - name));
    if (row < 0) {
        return;
    }
    if (0 == strncmp(rest, ":value:", 7)) {
        free(info->values[row]);
        info->values[row] = strdup(rest + 7);
        if (NULL == info->values[row] ||
            R2_OK != r2_params_set(&info->params, rows[row].name, info->values[row])) {
            snprintf(info->params_text, sizeof(info->params_text), "%s=%.300s is not a valid value",
                     rows[row].name, rest + 7);
        }
    } else if (0 == strncmp(rest, ":source:", 8)) {
        snprintf(info->sources[row], sizeof(info->sources[row]), "%.63s", rest + 8);
    }
}

/** Reads what a command prints, line by line. @return false if it does not run or says nothing. */
static bool info_read_command(info_t *info, const char *command,
                              void (*line_fn)(info_t *info, const char *line))
{
    FILE *stream = popen(command, "re");
    char line[4096];
    bool any = false;

    if (NULL == stream) {
        return false;
    }
    while (NULL != fgets(line, sizeof(line), stream)) {
        line[strcspn(line, "\n")] = '\0';
        line_fn(info, line);
        any = true;
    }
    return 0 == pclose(stream) && any;
}

static void info_component_line(info_t *info, const char *line)
{
    if (0 == strncmp(line, INFO_VERSION_PREFIX, strlen(INFO_VERSION_PREFIX))) {
        info->component = true;
        snprintf(info->component_version, sizeof(info->component_version), "%.31s",
                 line + strlen(INFO_VERSION_PREFIX));
        info->component_version[strcspn(info->component_version, "\"")] = '\0';
    } else if (0 == strncmp(line, INFO_PARAM_PREFIX, strlen(INFO_PARAM_PREFIX))) {
        info_param_line(info, line);
    }
}

static void info_version_line(info_t *info, const char *line)
{
    if (1 == sscanf(line, "Open MPI v%31s", info->ompi_version)) {
        info->ompi_info = true;
    }
}

/** The Open MPI that is found first, and whether it finds coll/r2. */
static void info_collect_ompi(info_t *info)
{
    const char *programs[] = {"ompi_info", R2_OMPI_INFO};
    char command[512];

    info->ompi_built_for = R2_OMPI_VERSION;
    info->component_dir = R2_MCA_DIR;
    for (size_t i = 0; i < 2 && !info->ompi_info; ++i) {
        snprintf(command, sizeof(command), "%s --version 2>/dev/null", programs[i]);
        info_read_command(info, command, info_version_line);
        if (info->ompi_info) {
            snprintf(command, sizeof(command),
                     "%s --param coll r2 --level 9 --parsable 2>/dev/null", programs[i]);
            info_read_command(info, command, info_component_line);
        }
    }
}

/** Parameters without Open MPI's help: from the environment. */
static void info_params_from_env(info_t *info)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    r2_params_t defaults = info->params;
    char value[256], dflt[256];

    r2_params_from_env(&info->params, info->params_text, sizeof(info->params_text));
    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX; ++i) {
        info_param_text(&info->params, &rows[i], value, sizeof(value));
        info_param_text(&defaults, &rows[i], dflt, sizeof(dflt));
        if (0 != strcmp(value, dflt)) {
            strcpy(info->sources[i], "environment");
        }
    }
}

/** A parameter that Open MPI does not tell was refused by the component: the environment may say
 * why. */
static void info_params_refused(info_t *info)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    r2_params_t scratch = info->params;

    r2_params_from_env(&scratch, info->params_text, sizeof(info->params_text));
    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX && '\0' == info->params_text[0]; ++i) {
        if (NULL == info->values[i]) {
            snprintf(info->params_text, sizeof(info->params_text),
                     "coll_r2_%s has a value that is out of range", rows[i].name);
        }
    }
    if ('\0' == info->params_text[0]) {
        r2_params_check(&info->params, info->params_text, sizeof(info->params_text));
    }
}

static void info_collect_params(info_t *info)
{
    size_t count;

    r2_params_table(&count);
    r2_params_init(&info->params);
    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX; ++i) {
        strcpy(info->sources[i], "default");
    }
    info_collect_ompi(info);
    if (!info->component) {
        info_params_from_env(info);
    } else if ('\0' == info->params_text[0]) {
        info_params_refused(info);
    }
}

void info_collect(info_t *info)
{
    struct rlimit limit;

    memset(info, 0, sizeof(*info));
    info->libraries = r2_libraries(&info->library_count);
    if (0 != gethostname(info->host_name, sizeof(info->host_name) - 1)) {
        strcpy(info->host_name, "this host");
    }
    info_collect_params(info);
    info_collect_pmix(info);
    if (R2_OK != r2_nics_find_rails(&info->params, info->nics, &info->nic_count, info->nics_text,
                                    sizeof(info->nics_text))) {
        info->nic_count = 0;
    } else {
        info->nics_text[0] = '\0';
    }
    r2_rdma_setting_read(info->params.tls, 0, &info->rdma);
    r2_nics_offer(&info->rdma, info->nics, info->nic_count);
    r2_nics_chain(info->nics, info->nic_count, info->chain);
    info->port_count = r2_rdma_ports("", info->ports);
    info->gpu_count = r2_gpus_find(info->nics, info->nic_count, info->gpus);
    info->gpu = r2_gpu_device();
    info->gpu_reduces[0] = '\0';
    if (R2_OK == r2_gpu_describe(info->gpu_driver, sizeof(info->gpu_driver))) {
        (void) r2_gpu_reduces(info->gpu_reduces, sizeof(info->gpu_reduces));
    }
    (void) r2_gpu_objection(info->params.gpu, info->gpu_objection, sizeof(info->gpu_objection));
    if (0 == getrlimit(RLIMIT_NOFILE, &limit)) {
        info->files_hard = RLIM_INFINITY == limit.rlim_max ? UINT64_MAX : limit.rlim_max;
    }
}

void info_free(info_t *info)
{
    for (size_t i = 0; i < INFO_PARAMS_MAX; ++i) {
        free(info->values[i]);
        info->values[i] = NULL;
    }
}
