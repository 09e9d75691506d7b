/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The parameter table: defaults, parsing, range checks, the environment.
 */
#include "r2_config.h"

#include "r2/params.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "r2/units.h"

/* Open MPI's name for a parameter of coll/r2 in the environment, where mpirun puts those of the
 * command line. */
#define R2_PARAM_ENV "OMPI_MCA_coll_r2_"

#define R2_ROW_BOOL(n, d, lo, hi, u, l, h) \
    {#n, R2_PARAM_BOOL, offsetof(r2_params_t, n), d, lo, hi, NULL, u, l, h},
#define R2_ROW_UINT(n, d, lo, hi, u, l, h) \
    {#n, R2_PARAM_UINT, offsetof(r2_params_t, n), d, lo, hi, NULL, u, l, h},
#define R2_ROW_SIZE(n, d, lo, hi, u, l, h) \
    {#n, R2_PARAM_SIZE, offsetof(r2_params_t, n), d, lo, hi, NULL, u, l, h},
#define R2_ROW_STRING(n, d, lo, hi, u, l, h) \
    {#n, R2_PARAM_STRING, offsetof(r2_params_t, n), 0, lo, hi, d, u, l, h},

static const r2_param_info_t r2_param_rows[] = {
#define R2_PARAM(name, type, dflt, min, max, unit, level, help) \
    R2_ROW_##type(name, dflt, min, max, unit, level, help)
#include "base/params.def"
#undef R2_PARAM
};

const r2_param_info_t *r2_params_table(size_t *count_p)
{
    *count_p = r2_array_count(r2_param_rows);
    return r2_param_rows;
}

static const r2_param_synonym_t r2_param_synonym_rows[] = {
#define R2_PARAM(name, type, dflt, min, max, unit, level, help)
#define R2_PARAM_SYNONYM(name, stands_for) {#name, #stands_for},
#include "base/params.def"
#undef R2_PARAM
};

const r2_param_synonym_t *r2_params_synonyms(size_t *count_p)
{
    *count_p = r2_array_count(r2_param_synonym_rows);
    return r2_param_synonym_rows;
}

/* The name in the parameter table. */
static const char *r2_param_full_name(const char *name)
{
    for (size_t i = 0; i < r2_array_count(r2_param_synonym_rows); ++i) {
        if (0 == strcmp(r2_param_synonym_rows[i].name, name)) {
            return r2_param_synonym_rows[i].stands_for;
        }
    }
    return name;
}

static uint64_t r2_param_get(const r2_params_t *params, const r2_param_info_t *row)
{
    const char *field = (const char *) params + row->offset;

    switch (row->type) {
    case R2_PARAM_BOOL:
        return *(const bool *) field ? 1 : 0;
    case R2_PARAM_UINT:
        return *(const uint64_t *) (const void *) field;
    case R2_PARAM_SIZE:
        return *(const size_t *) (const void *) field;
    case R2_PARAM_STRING:
        break;
    }
    return 0;
}

static void r2_param_put(r2_params_t *params, const r2_param_info_t *row, uint64_t value)
{
    char *field = (char *) params + row->offset;

    switch (row->type) {
    case R2_PARAM_BOOL:
        *(bool *) field = 0 != value;
        break;
    case R2_PARAM_UINT:
        *(uint64_t *) (void *) field = value;
        break;
    case R2_PARAM_SIZE:
        *(size_t *) (void *) field = (size_t) value;
        break;
    case R2_PARAM_STRING:
        break;
    }
}

static void r2_param_put_string(r2_params_t *params, const r2_param_info_t *row, const char *text)
{
    *(const char **) (void *) ((char *) params + row->offset) = text;
}

void r2_params_init(r2_params_t *params)
{
    for (size_t i = 0; i < r2_array_count(r2_param_rows); ++i) {
        const r2_param_info_t *row = &r2_param_rows[i];

        if (R2_PARAM_STRING == row->type) {
            r2_param_put_string(params, row, row->dflt_string);
        } else {
            r2_param_put(params, row, row->dflt);
        }
    }
}

r2_status_t r2_params_size(const char *text, uint64_t most, uint64_t *bytes_p)
{
    if (0 == strcmp(text, "auto")) {
        *bytes_p = R2_PARAM_AUTO;
        return R2_OK;
    }
    return r2_unit_whole(text, R2_UNIT_BYTES, 0, most, bytes_p);
}

/* Strings with a range are sizes, or "auto". */
static r2_status_t r2_params_check_sizes(const r2_params_t *params, char *text_p, size_t text_bytes)
{
    for (size_t i = 0; i < r2_array_count(r2_param_rows); ++i) {
        const r2_param_info_t *row = &r2_param_rows[i];
        const char *text;
        uint64_t bytes;

        if (R2_PARAM_STRING != row->type || 0 == row->max) {
            continue;
        }
        text = *(const char *const *) (const void *) ((const char *) params + row->offset);
        if (R2_OK != r2_params_size(text, row->max, &bytes)) {
            snprintf(text_p, text_bytes, "%s = %s is neither auto nor in the range 0 .. %" PRIu64,
                     row->name, text, row->max);
            return R2_ERR_PARAM;
        }
    }
    return R2_OK;
}

/** Words that a parameter may be, comma separated. */
static r2_status_t r2_param_check_word(const char *name, const char *word, const char *words,
                                       char *text_p, size_t text_bytes)
{
    const size_t bytes = strlen(word);

    for (const char *at = words; NULL != at; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (bytes == strcspn(at, ",") && 0 == strncmp(at, word, bytes)) {
            return R2_OK;
        }
    }
    snprintf(text_p, text_bytes, "%s (%s) is none of %s", name, word, words);
    return R2_ERR_PARAM;
}

static r2_status_t r2_params_check_words(const r2_params_t *params, char *text_p, size_t text_bytes)
{
    const struct {
        const char *name, *word, *words;
    } rows[] = {
        {"probe", params->probe, "auto, connect, put"},
        {"oob", params->oob, "auto, mesh, pmix"},
        {"gpu", params->gpu, "auto, decline, ignore"},
        {"gpu_p2p", params->gpu_p2p, "auto, pml, r2"},
        {"tls", params->tls, "auto, tcp, rc, ud"},
        {"single_host", params->single_host, "stock, blocking, r2"},
    };
    r2_status_t status = R2_OK;

    for (size_t i = 0; R2_OK == status && i < r2_array_count(rows); ++i) {
        status = r2_param_check_word(rows[i].name, rows[i].word, rows[i].words, text_p, text_bytes);
    }
    return status;
}

static r2_status_t r2_params_check_relations(const r2_params_t *params, char *text_p,
                                             size_t text_bytes)
{
    if (params->chunk_min_bytes > params->chunk_max_bytes) {
        snprintf(text_p, text_bytes, "chunk_min_bytes (%zu) is above chunk_max_bytes (%zu)",
                 params->chunk_min_bytes, params->chunk_max_bytes);
        return R2_ERR_PARAM;
    }
    if (params->window_min_bytes > params->window_max_bytes) {
        snprintf(text_p, text_bytes, "window_min_bytes (%zu) is above window_max_bytes (%zu)",
                 params->window_min_bytes, params->window_max_bytes);
        return R2_ERR_PARAM;
    }
    if (params->failure_timeout_ms * 1000 <= 2 * params->ack_delay_us) {
        snprintf(text_p, text_bytes,
                 "failure_timeout_ms (%" PRIu64 ") must be more than twice ack_delay_us (%" PRIu64
                 "), or late acknowledgements look like failures",
                 params->failure_timeout_ms, params->ack_delay_us);
        return R2_ERR_PARAM;
    }
    if (params->heal_min_ms > params->heal_max_ms) {
        snprintf(text_p, text_bytes, "heal_min_ms (%" PRIu64 ") is above heal_max_ms (%" PRIu64 ")",
                 params->heal_min_ms, params->heal_max_ms);
        return R2_ERR_PARAM;
    }
    return R2_OK == r2_params_check_sizes(params, text_p, text_bytes)
               ? r2_params_check_words(params, text_p, text_bytes)
               : R2_ERR_PARAM;
}

r2_status_t r2_params_check(const r2_params_t *params, char *text_p, size_t text_bytes)
{
    for (size_t i = 0; i < r2_array_count(r2_param_rows); ++i) {
        const r2_param_info_t *row = &r2_param_rows[i];
        uint64_t value = r2_param_get(params, row);

        if (R2_PARAM_STRING != row->type && (value < row->min || value > row->max)) {
            snprintf(text_p, text_bytes,
                     "%s = %" PRIu64 " %s is out of range %" PRIu64 " .. %" PRIu64, row->name,
                     value, row->unit, row->min, row->max);
            return R2_ERR_PARAM;
        }
    }
    return r2_params_check_relations(params, text_p, text_bytes);
}

static r2_status_t r2_param_parse(const r2_param_info_t *row, const char *text, uint64_t *value_p)
{
    if (R2_PARAM_BOOL == row->type && (0 == strcmp(text, "true") || 0 == strcmp(text, "false"))) {
        *value_p = 't' == text[0];
        return R2_OK;
    }
    return r2_unit_whole(text, R2_PARAM_SIZE == row->type ? R2_UNIT_BYTES : R2_UNIT_NUMBER,
                         row->min, row->max, value_p);
}

r2_status_t r2_params_set(r2_params_t *params, const char *name, const char *text)
{
    const char *full_name = r2_param_full_name(name);

    for (size_t i = 0; i < r2_array_count(r2_param_rows); ++i) {
        const r2_param_info_t *row = &r2_param_rows[i];
        uint64_t value = 0;

        if (0 != strcmp(row->name, full_name)) {
            continue;
        }
        if (R2_PARAM_STRING == row->type) {
            r2_param_put_string(params, row, text);
            return R2_OK;
        }
        if (R2_OK != r2_param_parse(row, text, &value)) {
            return R2_ERR_PARAM;
        }
        r2_param_put(params, row, value);
        return R2_OK;
    }
    return R2_ERR_NOT_FOUND;
}

const char *r2_params_env_text(const char *name)
{
    char variable[96];

    snprintf(variable, sizeof(variable), R2_PARAM_ENV "%s", name);
    return getenv(variable);
}

bool r2_params_first_of_host(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

    rank = NULL == rank ? getenv("SLURM_LOCALID") : rank;
    return NULL == rank || 0 == strcmp("0", rank);
}

bool r2_params_names_r2(const char *framework)
{
    char variable[32];
    const char *selected;

    snprintf(variable, sizeof(variable), "OMPI_MCA_%s", framework);
    selected = getenv(variable);
    return NULL != selected && '^' != selected[0] && NULL != strstr(selected, "r2") &&
           r2_params_first_of_host();
}

const char *r2_params_ucx(const char *name)
{
    char variable[64];

    snprintf(variable, sizeof(variable), "UCX_%s", name);
    return getenv(variable);
}

const char *r2_params_component_path(void)
{
    return getenv("OMPI_MCA_mca_base_component_path");
}

unsigned r2_params_lone_tasks(void)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS"), *task = getenv("SLURM_PROCID");

    if (NULL == tasks || NULL == task || 0 != strcmp("0", task) ||
        NULL != getenv("OMPI_COMM_WORLD_SIZE")) {
        return 0; /* no step, not its first task, or started by mpirun within one */
    }
    return (unsigned) strtoul(tasks, NULL, 10) > 1 ? (unsigned) strtoul(tasks, NULL, 10) : 0;
}

/* One variable of the environment. @param row what it stands for. */
static r2_status_t r2_param_from_env(r2_params_t *params, const char *name,
                                     const r2_param_info_t *row, char *text_p, size_t text_bytes)
{
    const char *text = r2_params_env_text(name);

    if (NULL != text && R2_OK != r2_params_set(params, name, text)) {
        snprintf(text_p, text_bytes,
                 R2_PARAM_ENV "%s=%s is not a value in %" PRIu64 " .. %" PRIu64 " (%s)", name, text,
                 row->min, row->max, row->unit);
        return R2_ERR_PARAM;
    }
    return R2_OK;
}

r2_status_t r2_params_from_env(r2_params_t *params, char *text_p, size_t text_bytes)
{
    r2_status_t status = R2_OK;

    for (size_t i = 0; i < r2_array_count(r2_param_rows) && R2_OK == status; ++i) {
        const r2_param_info_t *row = &r2_param_rows[i];

        for (size_t k = 0; k < r2_array_count(r2_param_synonym_rows) && R2_OK == status; ++k) {
            if (0 == strcmp(r2_param_synonym_rows[k].stands_for, row->name)) {
                status = r2_param_from_env(params, r2_param_synonym_rows[k].name, row, text_p,
                                           text_bytes);
            }
        }
        if (R2_OK == status) {
            status = r2_param_from_env(params, row->name, row, text_p, text_bytes);
        }
    }
    return R2_OK == status ? r2_params_check(params, text_p, text_bytes) : status;
}
