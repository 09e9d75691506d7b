/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What NICs read and write by themselves: what becomes of its pieces.
 */
#include "r2_config.h"

#include "link/direct.h"

#include <stdlib.h>
#include <utlist.h>

void r2_piece_sent(r2_tp_send_t *op, r2_status_t status)
{
    r2_piece_t *piece = r2_container_of(op, r2_piece_t, op);

    piece->conn->direct_bytes -= piece->bytes;
    piece->conn = NULL;
    if (R2_OK != status) {
        piece->state = R2_PIECE_FAILED;
        if (NULL != piece->lane->conn) { /* no work request fails alone */
            piece->lane->failed = true;
            piece->lane->why = status;
        }
    } else if (piece->direct->args.writes && !piece->confirmed) {
        piece->state = R2_PIECE_UNSURE;
    } else {
        piece->state = R2_PIECE_OVER;
    }
    r2_link_activate(piece->direct->link);
}

/* Lanes keep order, and so does the peer's NIC: who got the packet has what was written before. */
static void r2_piece_acked(r2_piece_t *piece, uint32_t next)
{
    if (R2_PIECE_FLYING != piece->state && R2_PIECE_UNSURE != piece->state) {
        return;
    }
    piece->confirmed = piece->confirmed || r2_seq_lt(piece->seq, next);
    if (piece->confirmed && R2_PIECE_UNSURE == piece->state) {
        piece->state = R2_PIECE_OVER;
    }
}

void r2_direct_acked(const r2_lane_t *lane, uint32_t next)
{
    r2_direct_t *direct;
    uint32_t begun;

    R2_DIRECT_FOREACH(direct, lane->link, begun) {
        for (uint32_t i = 0; i < direct->count; ++i) {
            if (lane == direct->pieces[i].lane) {
                r2_piece_acked(&direct->pieces[i], next);
            }
        }
    }
}

static void r2_piece_closed(r2_piece_t *piece)
{
    r2_assert(R2_PIECE_FLYING != piece->state);
    if (R2_PIECE_FAILED == piece->state || R2_PIECE_UNSURE == piece->state) {
        piece->state =
            piece->direct->args.writes && piece->confirmed ? R2_PIECE_OVER : R2_PIECE_LOST;
    }
}

void r2_direct_closed(const r2_lane_t *lane)
{
    r2_direct_t *direct;
    uint32_t begun;

    R2_DIRECT_FOREACH(direct, lane->link, begun) {
        for (uint32_t i = 0; i < direct->count; ++i) {
            if (lane == direct->pieces[i].lane) {
                r2_piece_closed(&direct->pieces[i]);
            }
        }
    }
}

void r2_direct_free(r2_direct_t *direct)
{
    DL_DELETE(direct->link->directs, direct);
    free(direct);
}
