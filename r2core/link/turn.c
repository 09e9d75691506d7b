/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Turns: by which lane the short messages of a link go.
 */
#include "r2_config.h"

#include "link/turn.h"

#define R2_TURN_LANES 32u /* bits of a set of lanes */

static void r2_turn_begin(r2_turn_t *turn, uint32_t lane)
{
    *turn = (r2_turn_t){.lane = (uint8_t) lane, .before = turn->lane};
}

void r2_turn_next(r2_turn_t *turn, uint32_t lanes)
{
    uint32_t lane = turn->lane;

    if (0 == lanes) {
        return;
    }
    do {
        lane = (lane + 1) % R2_TURN_LANES;
    } while (0 == (lanes >> lane & 1u));
    r2_turn_begin(turn, lane);
}

/* What comes by another lane changes nothing in so many bytes of a turn. */
static uint32_t r2_turn_patience(const r2_turn_t *turn, uint32_t lane, bool follows)
{
    if (!follows) {
        return R2_TURN_BYTES / 2;
    }
    return lane == turn->before ? R2_TURN_BYTES / 4 : 0;
}

void r2_turn_heard(r2_turn_t *turn, uint32_t lane, uint32_t bytes, bool follows)
{
    if (lane != turn->lane && turn->bytes >= r2_turn_patience(turn, lane, follows)) {
        r2_turn_begin(turn, lane);
        r2_turn_count(turn, bytes); /* for ours that crossed it: the peer counts that */
    }
    r2_turn_count(turn, bytes);
}
