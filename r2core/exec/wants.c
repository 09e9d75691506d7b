/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory that a run to come takes.
 */
#include "r2_config.h"

#include <string.h>

#include "exec/exec.h"

static void r2_stage_want(r2_pins_wanted_t *wanted, uint64_t bytes)
{
    wanted->bytes[wanted->count++] = bytes;
}

void r2_stage_wants(r2_engine_t *engine, const r2_exec_args_t *args, r2_program_t *program,
                    r2_pins_wanted_t *wanted_p)
{
    r2_exec_t run = {
        .engine = engine, .args = *args, .program = program, .schedule = &program->schedule};
    const r2_staging_place_t *reducer = r2_stage_reducer(&run);
    const bool reduces = NULL != reducer;
    const r2_touch_t *touch = r2_stage_touch(program, reducer);

    memset(wanted_p, 0, sizeof(*wanted_p));
    if (NULL == touch) {
        return;
    }
    for (uint32_t i = 0; i < R2_TOUCH_SIDES; ++i) {
        const r2_touch_side_t *side = &touch->sides[i];

        if (!r2_mem_traits(args->at[i].kind)->is_cpus && side->count > 0) {
            r2_stage_want(wanted_p, side->places[side->count]);
        }
    }
    if ((reduces || engine->loans.enabled) && run.schedule->scratch_bytes > 0) {
        r2_stage_want(wanted_p, run.schedule->scratch_bytes);
    }
}
