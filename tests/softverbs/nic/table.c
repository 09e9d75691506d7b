/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Numbered objects.
 */
#include "softverbs/nic/nic.h"

#include <stdlib.h>
#include <string.h>

static bool grow(sv_table_t *table)
{
    uint32_t size = 0 == table->size ? 64 : 2 * table->size;
    void **at = realloc(table->at, size * sizeof(*at));

    if (NULL == at) {
        return false;
    }
    memset(at + table->size, 0, (size - table->size) * sizeof(*at));
    table->at = at;
    table->last = table->size;
    table->size = size;
    return true;
}

uint32_t sv_table_add(sv_table_t *table, void *object)
{
    uint32_t place;

    for (uint32_t tried = 0;; ++tried) {
        if (tried == table->size) {
            if (!grow(table)) {
                return 0;
            }
            tried = 0; /* the next place is the first new one */
        }
        place = (table->last + tried) % table->size;
        if (NULL == table->at[place]) {
            break;
        }
    }
    table->at[place] = object;
    table->last = place + 1;
    return place + 1;
}

void *sv_table_get(const sv_table_t *table, uint32_t number)
{
    return 0 == number || number > table->size ? NULL : table->at[number - 1];
}

void *sv_table_remove(sv_table_t *table, uint32_t number)
{
    void *object = sv_table_get(table, number);

    if (NULL != object) {
        table->at[number - 1] = NULL;
    }
    return object;
}

void sv_table_fini(sv_table_t *table)
{
    free(table->at);
    *table = (sv_table_t){.at = NULL};
}
