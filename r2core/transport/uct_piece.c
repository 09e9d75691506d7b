/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Joins packets that travel in pieces because UCX does not take them whole (shared memory).
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/** A packet of which some pieces are there. The pieces of an endpoint arrive in order. */
struct r2_uct_join {
    r2_uct_stream_t stream; /* key */
    UT_hash_handle hh;
    r2_uct_join_t *next; /* in worker->spare_joins */
    size_t data_bytes;   /* of the whole packet */
    size_t got_bytes;
    char data[]; /* as long as the largest packet */
};

static r2_uct_join_t *r2_uct_join_get(r2_tp_worker_t *worker, const r2_uct_stream_t *stream)
{
    r2_uct_join_t *join = worker->spare_joins;

    if (NULL != join) {
        worker->spare_joins = join->next;
    } else {
        join = malloc(sizeof(*join) + worker->device->segment_bytes);
        if (NULL == join) {
            return NULL;
        }
    }
    join->stream = *stream;
    HASH_ADD(hh, worker->joins, stream, sizeof(join->stream), join);
    if (!r2_hash_has(&join->hh)) {
        free(join);
        return NULL; /* as if the piece had not come: the lane sends it again */
    }
    return join;
}

static void r2_uct_join_put(r2_tp_worker_t *worker, r2_uct_join_t *join)
{
    HASH_DEL(worker->joins, join);
    join->next = worker->spare_joins;
    worker->spare_joins = join;
}

/** Does the piece say of itself what can be true? */
static bool r2_uct_is_valid(const r2_tp_worker_t *worker, const r2_uct_piece_t *piece,
                            size_t head_bytes, size_t bytes)
{
    return head_bytes >= offsetof(r2_uct_piece_t, header) &&
           piece->header_bytes == head_bytes - offsetof(r2_uct_piece_t, header) &&
           piece->data_bytes <= worker->device->segment_bytes && 0 != bytes &&
           piece->offset < piece->data_bytes && bytes <= piece->data_bytes - piece->offset;
}

void r2_uct_piece_arrived(r2_tp_worker_t *worker, const void *head, size_t head_bytes,
                          const void *data, size_t bytes)
{
    r2_uct_piece_t piece = {.header_bytes = 0};
    r2_uct_join_t *join;

    memcpy(&piece, head, r2_min(head_bytes, sizeof(piece)));
    if (!r2_uct_is_valid(worker, &piece, head_bytes, bytes)) {
        return;
    }
    HASH_FIND(hh, worker->joins, &piece.stream, sizeof(piece.stream), join);
    if (0 == piece.offset) {
        join = NULL == join ? r2_uct_join_get(worker, &piece.stream) : join;
        if (NULL != join) {
            join->data_bytes = piece.data_bytes;
            join->got_bytes = 0;
        }
    }
    if (NULL == join || piece.offset != join->got_bytes || piece.data_bytes != join->data_bytes) {
        return;
    }
    memcpy(join->data + piece.offset, data, bytes);
    join->got_bytes += bytes;
    if (join->got_bytes == join->data_bytes) {
        worker->callbacks.received(worker->arg, piece.header, piece.header_bytes, join->data,
                                   join->data_bytes);
        r2_uct_join_put(worker, join);
    }
}

void r2_uct_pieces_free(r2_tp_worker_t *worker)
{
    r2_uct_join_t *join, *next;

    HASH_ITER(hh, worker->joins, join, next)
    {
        r2_uct_join_put(worker, join);
    }
    while (NULL != (join = worker->spare_joins)) {
        worker->spare_joins = join->next;
        free(join);
    }
}
