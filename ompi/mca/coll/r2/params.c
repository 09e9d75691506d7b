/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MCA parameters of coll/r2: the component's own two and every row of r2core's table.
 */
#include "coll_r2.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/r2/help.h"
#include "opal/mca/common/r2/params.h"

static_assert(sizeof(unsigned long long) == sizeof(uint64_t), "UINT parameters are registered so");

/* Writes the description that ompi_info shows: help, unit and range. */
static void r2_param_describe(const r2_param_info_t *row, char *text_p, size_t text_bytes)
{
    switch (row->type) {
    case R2_PARAM_UINT:
    case R2_PARAM_SIZE:
        snprintf(text_p, text_bytes, "%s Unit: %s. Range: %" PRIu64 " .. %" PRIu64 ".", row->help,
                 row->unit, row->min, row->max);
        break;
    case R2_PARAM_STRING:
        if (0 != row->max) {
            snprintf(text_p, text_bytes, "%s Unit: %s. Range: auto, %" PRIu64 " .. %" PRIu64 ".",
                     row->help, row->unit, row->min, row->max);
            break;
        }
        snprintf(text_p, text_bytes, "%s Unit: %s.", row->help, row->unit);
        break;
    case R2_PARAM_BOOL:
        snprintf(text_p, text_bytes, "%s Unit: %s.", row->help, row->unit);
        break;
    }
}

/* The text of a value in force that came from a parameter file. @return NULL if it did not. */
static const char *r2_param_file_text(int var_idx)
{
    const mca_base_var_t *var;
    const mca_base_var_file_value_t *file;

    if (OPAL_SUCCESS != mca_base_var_get(var_idx, &var) ||
        (MCA_BASE_VAR_SOURCE_FILE != var->mbv_source &&
         MCA_BASE_VAR_SOURCE_OVERRIDE != var->mbv_source)) {
        return NULL;
    }
    file = var->mbv_file_value;
    return NULL == file ? NULL : file->mbvfv_value;
}

/* Where r2 was not asked for by name, a wrong value ends no job: why_not tells of the first. */
static void r2_param_report(const char *name, const char *value, const char *unit,
                            const char *range)
{
    char *text = mca_coll_r2_component.why_not;

    if ('\0' == text[0]) {
        snprintf(text, sizeof(mca_coll_r2_component.why_not),
                 "coll_r2_%s=%s is not in the range %s (%s)", name, value, range, unit);
    }
    if (!mca_coll_r2_component.named) {
        return;
    }
    /* 4.1's mpirun loses help messages that reach it together: one process per host says it too. */
    if (0 == opal_process_info.my_local_rank) {
        opal_output(0, "coll:r2: coll_r2_%s=%s is not in the range %s (%s)", name, value, range,
                    unit);
    }
    mca_common_r2_help("help-coll-r2.txt", "bad parameter", name, value, unit, range, name);
}

/*
 * Open MPI reads "abc" as 0, "10x" as 10 and "-1" as a huge number: the text itself is checked,
 * with r2core's parser. No text is a good text.
 */
static int r2_param_check_text(const r2_param_info_t *row, const char *name, const char *text)
{
    char range[64] = "true, false";
    r2_params_t scratch;

    if (NULL == text || R2_OK == r2_params_set(&scratch, row->name, text)) {
        return OMPI_SUCCESS;
    }
    if (R2_PARAM_BOOL != row->type) {
        snprintf(range, sizeof(range), "%" PRIu64 " .. %" PRIu64, row->min, row->max);
    }
    r2_param_report(name, text, row->unit, range);
    return OMPI_ERR_BAD_PARAM;
}

/* Registers the other names of a row. @param var_idx Open MPI's number of the row's variable. */
static int r2_param_register_synonyms(const r2_param_info_t *row, int var_idx)
{
    size_t count;
    const r2_param_synonym_t *synonyms = r2_params_synonyms(&count);
    int rc;

    for (size_t i = 0; i < count; ++i) {
        const char *name = synonyms[i].name;

        if (0 != strcmp(synonyms[i].stands_for, row->name)) {
            continue;
        }
        rc = r2_param_check_text(row, name, r2_params_env_text(name));
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        rc = mca_base_var_register_synonym(var_idx, "ompi", "coll", "r2", name, 0);
        if (0 > rc) {
            return rc;
        }
        rc = r2_param_check_text(row, name, r2_param_file_text(rc));
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}

static int r2_param_register(r2_params_t *params, const r2_param_info_t *row)
{
    char text[1024];
    int rc = r2_param_check_text(row, row->name, r2_params_env_text(row->name));
    int var_idx;

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    r2_param_describe(row, text, sizeof(text));
    var_idx = mca_base_component_var_register(
        &mca_coll_r2_component.super.collm_version, row->name, text,
        mca_common_r2_var_type(row->type), NULL, 0, 0, (mca_base_var_info_lvl_t) (row->level - 1),
        MCA_BASE_VAR_SCOPE_READONLY, (char *) params + row->offset);
    if (0 > var_idx) {
        return var_idx;
    }
    rc = r2_param_check_text(row, row->name, r2_param_file_text(var_idx));
    return OMPI_SUCCESS != rc ? rc : r2_param_register_synonyms(row, var_idx);
}

static int r2_priority_check_text(const char *text)
{
    char *end;
    long value;

    if (NULL == text) {
        return OMPI_SUCCESS;
    }
    value = strtol(text, &end, 10);
    if (end == text || '\0' != *end || 0 > value || 100 < value) {
        r2_param_report("priority", text, "none", "0 .. 100");
        return OMPI_ERR_BAD_PARAM;
    }
    return OMPI_SUCCESS;
}

static int r2_priority_register(void)
{
    int rc = r2_priority_check_text(r2_params_env_text("priority"));

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    mca_coll_r2_component.priority = MCA_COLL_R2_PRIORITY;
    rc = mca_base_component_var_register(
        &mca_coll_r2_component.super.collm_version, "priority",
        "Priority of r2 among the collective components: the highest is called first. 0 turns r2 "
        "off. Range: 0 .. 100.",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY,
        &mca_coll_r2_component.priority);
    return 0 > rc ? rc : r2_priority_check_text(r2_param_file_text(rc));
}

static int r2_fallback_register(void)
{
    int rc;

    /* self, because basic's MPI_Exscan fails on COMM_SELF; ftagree exists from 5.0 on. */
    mca_coll_r2_component.fallback = (char *) (uintptr_t) "basic,libnbc,self,inter,tuned,ftagree";
    rc = mca_base_component_var_register(
        &mca_coll_r2_component.super.collm_version, "fallback",
        "Comma separated components that are selected too when coll is selected by a list that "
        "names r2, as in \"--mca coll r2\": they run what r2 does not take. Those that are not "
        "installed are left out. Empty: none.",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY,
        &mca_coll_r2_component.fallback);
    return 0 > rc ? rc : OMPI_SUCCESS;
}

/* For who asks whether MPI is CUDA-aware (docs/gpu.md). Nobody can set it. */
static int r2_p2p_cuda_register(void)
{
    const int rc = mca_base_component_var_register(
        &mca_coll_r2_component.super.collm_version, "p2p_cuda",
        "Whether point-to-point takes CUDA memory through r2; set by r2 in MPI_Init.",
        MCA_BASE_VAR_TYPE_BOOL, NULL, 0, MCA_BASE_VAR_FLAG_DEFAULT_ONLY, OPAL_INFO_LVL_5,
        MCA_BASE_VAR_SCOPE_READONLY, &mca_coll_r2_component.p2p_cuda);

    return 0 > rc ? rc : OMPI_SUCCESS;
}

/* Registers r2core's table. All bad values are reported, not only the first. */
static int r2_table_register(r2_params_t *params)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    int result = OMPI_SUCCESS;

    r2_params_init(params);
    for (size_t i = 0; i < count; ++i) {
        int rc = r2_param_register(params, &rows[i]);

        if (OMPI_SUCCESS != rc && OMPI_ERR_BAD_PARAM != rc) {
            return rc;
        }
        result = OMPI_SUCCESS != rc ? rc : result;
    }
    return result;
}

int mca_coll_r2_params_register(void)
{
    r2_params_t *params = &mca_coll_r2_component.params;
    char *text = mca_coll_r2_component.why_not;
    size_t text_bytes = sizeof(mca_coll_r2_component.why_not);
    int priority_rc = r2_priority_register();
    int fallback_rc = r2_fallback_register();
    int p2p_cuda_rc = r2_p2p_cuda_register();
    int table_rc = r2_table_register(params);

    if (OMPI_SUCCESS != fallback_rc || OMPI_SUCCESS != p2p_cuda_rc) {
        return OMPI_SUCCESS != fallback_rc ? fallback_rc : p2p_cuda_rc;
    }
    if (OMPI_SUCCESS != priority_rc || OMPI_SUCCESS != table_rc) {
        return OMPI_SUCCESS != priority_rc ? priority_rc : table_rc;
    }
    if (R2_OK == r2_params_check(params, text, text_bytes) &&
        R2_OK == r2_coll_params_check(params, text, text_bytes)) {
        return OMPI_SUCCESS;
    }
    if (mca_coll_r2_component.named) {
        if (0 == opal_process_info.my_local_rank) {
            opal_output(0, "coll:r2: %s", text);
        }
        mca_common_r2_help("help-coll-r2.txt", "bad parameters", text);
    }
    return OMPI_ERR_BAD_PARAM;
}
