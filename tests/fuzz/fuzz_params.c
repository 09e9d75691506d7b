/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parameters from text: what is accepted is in range, what is refused changes nothing.
 */
#include "r2_config.h"

#include "fuzz.h"
#include "r2/params.h"

static uint64_t number(const r2_params_t *params, const r2_param_info_t *row)
{
    const char *field = (const char *) params + row->offset;
    size_t size;

    if (R2_PARAM_BOOL == row->type) {
        bool value;

        memcpy(&value, field, sizeof(value));
        return value ? 1 : 0;
    }
    if (R2_PARAM_UINT == row->type) {
        uint64_t value;

        memcpy(&value, field, sizeof(value));
        return value;
    }
    memcpy(&size, field, sizeof(size));
    return size;
}

/* Input: lines "row number (1 byte), text". */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t count;
    const r2_param_info_t *table = r2_params_table(&count);
    char *text = malloc(bytes + 1), *line, *next;
    char problem[32];
    r2_params_t params, before;

    if (NULL == text) {
        return 0;
    }
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    memset(&params, 0, sizeof(params));
    r2_params_init(&params);
    for (line = text; line < text + bytes; line = next) {
        size_t length = strcspn(line, "\n");
        const r2_param_info_t *row = &table[(uint8_t) line[0] % count];
        r2_status_t status;

        next = line + length + 1;
        line[length] = '\0';
        before = params;
        status = r2_params_set(&params, row->name, length > 0 ? line + 1 : "");
        fuzz_check(R2_OK == status || R2_ERR_PARAM == status);
        if (R2_OK != status) {
            fuzz_check(0 == memcmp(&params, &before, sizeof(params)));
        } else if (R2_PARAM_STRING != row->type) {
            fuzz_check(number(&params, row) >= row->min && number(&params, row) <= row->max);
        }
        fuzz_check(R2_ERR_NOT_FOUND == r2_params_set(&params, line, "1") || length > 0);
        (void) r2_params_check(&params, problem, sizeof(problem));
    }
    free(text);
    return 0;
}
