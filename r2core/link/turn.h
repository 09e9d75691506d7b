/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Turns: by which lane the short messages of a link go.
 */
/*
 * A short message goes by one lane, and who waits for it looks at that lane alone: so all of them
 * use the same one for a while. Not for ever: a NIC that is limited in bytes per second would limit
 * them, while others have nothing to do. So lanes have their turns, each for some bytes. Both ends
 * count what goes and comes, so that they go on to the next lane at about the same time; who does
 * so a message later follows the other. Where they do not agree which lane is next, one of them
 * follows. A lane in which nothing waits goes on when its turn is over (r2_turn_again()). Of
 * what comes by another lane:
 *
 *   end      | lane                | when                           | then
 *   ---------|---------------------|--------------------------------|-------------------------
 *   follows  | that had it before  | in the first quarter of a turn | is counted: sent before
 *   follows  | that had it before  | later                          | it is that lane's turn
 *   follows  | any other           | at any time                    | it is that lane's turn
 *   leads    | any                 | in the first half              | is counted: the peer follows
 *   leads    | any                 | later: the peer alone sends    | it is that lane's turn
 */
#ifndef R2_LINK_TURN_H
#define R2_LINK_TURN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bytes of a turn, both ways together: half of what shapers let through at once at the least (64
 * KiB, or a frame of the largest size could not pass), and so many that what a turn costs, one
 * acknowledgement each way and now and then a look at the wrong lane, counts for little.
 */
#define R2_TURN_BYTES 32768u

/* So many turns a lane may have beside its first, one after the other. Then others show that they
 * work: what is never used may be dead. */
#define R2_TURN_AGAIN 7u
#define R2_TURN_LANES 32u /* of a link, at most */

/** The turn of a lane. */
typedef struct r2_turn {
    uint8_t lane;       /* its index */
    uint8_t before : 5; /* of the lane that had the turn before */
    uint8_t again : 3;  /* turns in a row that it had before this one, R2_TURN_AGAIN at most */
    uint16_t bytes;     /* that went and came since it began, UINT16_MAX at most */
} r2_turn_t;

/** True if it is another lane's turn. */
static inline bool r2_turn_is_over(const r2_turn_t *turn)
{
    return turn->bytes >= R2_TURN_BYTES;
}

/** Counts what went or came by the lane. */
static inline void r2_turn_count(r2_turn_t *turn, uint32_t bytes)
{
    const uint32_t sum = turn->bytes + bytes;

    turn->bytes = (uint16_t) (sum < UINT16_MAX ? sum : UINT16_MAX);
}

/** The lane that has the turn gets another one. @return false: it had enough. */
bool r2_turn_again(r2_turn_t *turn);
/** Begins the turn of the next lane. @param lanes bit i: lane i may have one; 0: none may. */
void r2_turn_next(r2_turn_t *turn, uint32_t lanes);

/** So many bytes came by a lane. @param follows where both ends do not agree, this one follows. */
void r2_turn_heard(r2_turn_t *turn, uint32_t lane, uint32_t bytes, bool follows);

#endif
