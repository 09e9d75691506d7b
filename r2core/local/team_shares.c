/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Long reductions of a team by shares: of each piece a member folds its share for all. Two members,
 * pieces p, q, r; > puts into its slot, + folds its share into its slot, < takes the shares of all:
 *
 *   >p >q +p >r +q <p +r <q <r
 */
#include "r2_config.h"

#include <string.h>

#include "local/team_long.h"

/* Where the share of a member begins in a piece: at a line, if elements do. */
static uint64_t r2_long_share(const r2_team_call_t *call, uint64_t bytes, int32_t member)
{
    const uint64_t element = call->args->element_bytes;
    const uint64_t unit = 0 == R2_SEGMENT_LINE % element ? (uint64_t) R2_SEGMENT_LINE : element;

    return member >= call->size ? bytes
                                : bytes / unit * (uint64_t) member / (uint64_t) call->size * unit;
}

static r2_status_t r2_long_fold(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const r2_coll_args_t *args = call->args;
    const uint64_t number = pieces->first + k;
    const r2_team_part_t part = r2_long_part(pieces, k);
    const uint64_t begin = r2_long_share(call, part.bytes, call->rank);
    const uint64_t end = r2_long_share(call, part.bytes, call->rank + 1);
    const r2_team_fold_t fold = {
        .last = call->size - 1,
        .number = number,
        .from = r2_long_from,
        .skip = begin,
        .own = (args->in_place ? (const char *) args->out : args->in) + part.at + begin,
    };
    const r2_status_t status = r2_long_hear_all(pieces, k);

    if (R2_OK == status) {
        r2_team_fold(call, &fold,
                     r2_segment_piece(&call->team->segment, call->rank, number) + begin,
                     end - begin);
        r2_team_say(pieces->own, &pieces->own->folded, number);
    }
    return status;
}

static r2_status_t r2_long_collect(const r2_long_t *pieces, uint32_t k)
{
    const r2_team_call_t *call = pieces->call;
    const uint64_t number = pieces->first + k;
    const r2_team_part_t part = r2_long_part(pieces, k);
    r2_status_t status = R2_OK;

    for (int32_t step = 0; step < call->size && call->takes && R2_OK == status; ++step) {
        const int32_t i = (call->rank + step) % call->size;
        const uint64_t begin = r2_long_share(call, part.bytes, i);
        const uint64_t end = r2_long_share(call, part.bytes, i + 1);

        status = 0 == step
                     ? R2_OK
                     : r2_team_reach(call->team, i,
                                     &r2_segment_member(&call->team->segment, i)->folded, number);
        if (R2_OK == status && end > begin) {
            memcpy((char *) call->args->out + part.at + begin,
                   r2_long_from(call, i, number) + begin, end - begin);
        }
    }
    if (R2_OK == status) {
        r2_long_end(pieces, k);
    }
    return status;
}

r2_status_t r2_long_shares(r2_long_t *pieces)
{
    r2_status_t status = R2_OK;

    for (uint32_t k = 0; k <= pieces->count && R2_OK == status; ++k) {
        status = r2_long_give(pieces, k + 1);
        if (R2_OK == status && k < pieces->count) {
            status = r2_long_fold(pieces, k);
        }
        if (R2_OK == status && k > 0) {
            status = r2_long_collect(pieces, k - 1);
        }
    }
    return status;
}
