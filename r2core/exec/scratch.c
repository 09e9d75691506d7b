/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Staging memory of runs.
 */
#include "r2_config.h"

#include "exec/exec.h"

#include <stdlib.h>

#include "base/util.h"

/*
 * Staging memory is kept from one run to the next: fresh pages cost more than the copies into them,
 * and megabytes that come and go make the heap grow.
 */
char *r2_engine_scratch_get(r2_engine_t *engine, uint64_t *bytes_p)
{
    char *scratch = engine->spare;

    if (NULL != scratch && engine->spare_bytes >= *bytes_p) {
        engine->spare = NULL;
        *bytes_p = engine->spare_bytes;
        return scratch;
    }
    return aligned_alloc(64, r2_round_up(*bytes_p, 64));
}

void r2_engine_scratch_put(r2_engine_t *engine, char *scratch, uint64_t bytes)
{
    if (NULL != engine->spare && engine->spare_bytes >= bytes) {
        free(scratch);
        return;
    }
    free(engine->spare);
    engine->spare = scratch;
    engine->spare_bytes = bytes;
}
