/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Turns: by which lane the short messages of a link go.
 */
#include "r2_config.h"

#include "link/turn.h"

static void r2_turn_begin(r2_turn_t *turn, uint32_t lane)
{
    *turn = (r2_turn_t){.lane = (uint8_t) lane, .before = turn->lane % R2_TURN_LANES};
}

bool r2_turn_again(r2_turn_t *turn)
{
    const bool may = turn->again < R2_TURN_AGAIN;

    if (may) {
        *turn = (r2_turn_t){.lane = turn->lane,
                            .before = turn->lane % R2_TURN_LANES,
                            .again = (turn->again + 1) % (R2_TURN_AGAIN + 1)};
    }
    return may;
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
