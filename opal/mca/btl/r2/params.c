/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parameters: those of coll/r2, wherever they are set, whether coll/r2 is there or not.
 *
 * The PML is chosen before coll/r2 registers its parameters, and that may not happen at all. So
 * they are registered here under the same names and types, read, and given up again: coll/r2 finds
 * them free.
 */
#include "btl_r2.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/r2/params.h"

/* Text belongs to Open MPI's variable: ours is a copy, which lives as long as the process. */
static r2_status_t r2_param_keep(const r2_param_info_t *row, void *field)
{
    char **text = field;

    if (R2_PARAM_STRING == row->type && NULL != *text) {
        *text = strdup(*text);
        return NULL == *text ? R2_ERR_NO_MEMORY : R2_OK;
    }
    return R2_OK;
}

/*
 * Other names of a row: the variable takes what they say. @return OPAL_SUCCESS or Open MPI's error.
 */
static int r2_param_read_synonyms(const r2_param_info_t *row, int var_idx)
{
    size_t count;
    const r2_param_synonym_t *synonyms = r2_params_synonyms(&count);

    for (size_t i = 0; i < count; ++i) {
        int synonym_idx;

        if (0 != strcmp(synonyms[i].stands_for, row->name)) {
            continue;
        }
        synonym_idx =
            mca_base_var_register_synonym(var_idx, "ompi", "coll", "r2", synonyms[i].name, 0);
        if (0 > synonym_idx) {
            return synonym_idx;
        }
        (void) mca_base_var_deregister(synonym_idx);
    }
    return OPAL_SUCCESS;
}

static r2_status_t r2_param_read(r2_params_t *params, const r2_param_info_t *row)
{
    union { /* storage that Open MPI may free */
        bool flag;
        unsigned long long number;
        size_t bytes;
        char *text;
    } value;
    size_t length = R2_PARAM_BOOL == row->type ? sizeof(value.flag) : sizeof(value.number);
    void *field = (char *) params + row->offset;
    r2_status_t status = R2_ERR_SYSTEM;
    int var_idx;

    memcpy(&value, field, length);
    /* The flags of the first registration stay: coll/r2's variables have to go with its
     * component. */
    var_idx = mca_base_var_register(
        "ompi", "coll", "r2", row->name, row->help, mca_common_r2_var_type(row->type), NULL, 0,
        MCA_BASE_VAR_FLAG_DWG, (mca_base_var_info_lvl_t) (row->level - 1),
        MCA_BASE_VAR_SCOPE_READONLY, &value);
    if (0 > var_idx) {
        return R2_ERR_SYSTEM;
    }
    if (OPAL_SUCCESS == r2_param_read_synonyms(row, var_idx)) {
        memcpy(field, &value, length);
        status = r2_param_keep(row, field);
    }
    (void) mca_base_var_deregister(var_idx);
    return status;
}

r2_status_t mca_btl_r2_params_read(r2_params_t *params, char *text_p, size_t text_bytes)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    r2_status_t status;

    /* Open MPI reads "10x" as 10: texts of the environment are checked by r2core. */
    r2_params_init(params);
    status = r2_params_from_env(params, text_p, text_bytes);
    if (R2_OK != status) {
        return status;
    }
    r2_params_init(params);
    for (size_t i = 0; i < count && R2_OK == status; ++i) {
        status = r2_param_read(params, &rows[i]);
    }
    return R2_OK == status ? r2_params_check(params, text_p, text_bytes) : status;
}
