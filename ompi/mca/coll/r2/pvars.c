/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2core's counters as MPI_T performance variables coll_r2_<name>.
 */
#include "coll_r2.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"

static int r2_pvar_read(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    const r2_counter_info_t *row = pvar->ctx;
    const char *counters;
    unsigned long long count = 0;

    (void) object;
    if (NULL != mca_coll_r2_component.ctx) {
        counters = (const char *) r2_ctx_counters(mca_coll_r2_component.ctx);
        count = *(const uint64_t *) (const void *) (counters + row->offset);
    }
    memcpy(value, &count, sizeof(count));
    return OMPI_SUCCESS;
}

static int r2_pvar_register(const char *name, const char *help, const r2_counter_info_t *row)
{
    return mca_base_component_pvar_register(
        &mca_coll_r2_component.super.collm_version, name, help, OPAL_INFO_LVL_4,
        MPI_T_PVAR_CLASS_GENERIC, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MPI_T_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, r2_pvar_read, NULL, NULL,
        (void *) (uintptr_t) row);
}

/* Open MPI has no synonyms of these: a deprecated name is another variable of the same value. */
static int r2_pvar_register_synonyms(const r2_counter_info_t *row)
{
    size_t count;
    const r2_counter_synonym_t *synonyms = r2_counters_synonyms(&count);

    for (size_t i = 0; i < count; ++i) {
        char text[256];
        int rc;

        if (0 != strcmp(synonyms[i].stands_for, row->name)) {
            continue;
        }
        snprintf(text, sizeof(text), "Deprecated name of coll_r2_%s", row->name);
        rc = r2_pvar_register(synonyms[i].name, text, row);
        if (0 > rc) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_r2_pvars_register(void)
{
    size_t count;
    const r2_counter_info_t *rows = r2_counters_table(&count);

    for (size_t i = 0; i < count; ++i) {
        char text[256];
        int rc;

        snprintf(text, sizeof(text), "%s (%s)", rows[i].help, rows[i].unit);
        rc = r2_pvar_register(rows[i].name, text, &rows[i]);
        rc = 0 > rc ? rc : r2_pvar_register_synonyms(&rows[i]);
        if (0 > rc) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}
