/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchange driver for many ranks in one process: a table of blobs.
 */
#include "r2_config.h"

#include "doubles/loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "rail/hello.h"

/** One rank's place. */
typedef struct loop_rank {
    struct r2_oob_loop *loop; /* borrowed */
    uint32_t rank;
    void *blob; /* owned; NULL: nothing published */
    size_t blob_bytes;
} loop_rank_t;

struct r2_oob_loop {
    uint32_t size;
    uint8_t key[R2_JOB_KEY_BYTES];
    loop_rank_t ranks[];
};

static r2_status_t loop_identity(void *oob, uint32_t *rank_p, uint32_t *size_p)
{
    const loop_rank_t *self = oob;

    *rank_p = self->rank;
    *size_p = self->loop->size;
    return R2_OK;
}

static r2_status_t loop_job_key(void *oob, uint8_t *key_p)
{
    const loop_rank_t *self = oob;

    memcpy(key_p, self->loop->key, R2_JOB_KEY_BYTES);
    return R2_OK;
}

static r2_status_t loop_publish(void *oob, const void *blob, size_t bytes)
{
    loop_rank_t *self = oob;
    void *copy;

    if (bytes > R2_OOB_BLOB_MAX) {
        return R2_ERR_PARAM;
    }
    copy = malloc(bytes + 1);
    if (NULL == copy) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(copy, blob, bytes);
    free(self->blob);
    self->blob = copy;
    self->blob_bytes = bytes;
    return R2_OK;
}

static r2_status_t loop_lookup(void *oob, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    const loop_rank_t *self = oob;
    const loop_rank_t *other;

    if (rank >= self->loop->size || NULL == self->loop->ranks[rank].blob) {
        return R2_ERR_NOT_FOUND;
    }
    other = &self->loop->ranks[rank];
    memcpy(blob_p, other->blob, other->blob_bytes);
    *bytes_p = other->blob_bytes;
    return R2_OK;
}

r2_oob_loop_t *r2_oob_loop_create(uint32_t size, const uint8_t *key)
{
    r2_oob_loop_t *loop = calloc(1, sizeof(*loop) + size * sizeof(loop->ranks[0]));
    uint32_t rank;

    if (NULL == loop) {
        return NULL;
    }
    loop->size = size;
    memcpy(loop->key, key, R2_JOB_KEY_BYTES);
    for (rank = 0; rank < size; ++rank) {
        loop->ranks[rank].loop = loop;
        loop->ranks[rank].rank = rank;
    }
    return loop;
}

void r2_oob_loop_destroy(r2_oob_loop_t *loop)
{
    uint32_t rank;

    if (NULL == loop) {
        return;
    }
    for (rank = 0; rank < loop->size; ++rank) {
        free(loop->ranks[rank].blob);
    }
    free(loop);
}

r2_oob_t r2_oob_loop_rank(r2_oob_loop_t *loop, uint32_t rank)
{
    static const r2_oob_ops_t ops = {
        .name = "loop",
        .identity = loop_identity,
        .job_key = loop_job_key,
        .publish = loop_publish,
        .lookup = loop_lookup,
    };

    return (r2_oob_t){&ops, &loop->ranks[rank]};
}

void r2_oob_loop_published(const r2_oob_loop_t *loop, uint64_t *all_p, uint64_t *most_p)
{
    uint64_t all = 0, most = 0;

    for (uint32_t rank = 0; rank < loop->size; ++rank) {
        all += loop->ranks[rank].blob_bytes;
        most = r2_max(most, (uint64_t) loop->ranks[rank].blob_bytes);
    }
    *all_p = all;
    *most_p = most;
}
