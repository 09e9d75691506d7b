/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Segments: made, opened, grown.
 */
#include "r2_config.h"

#include "local/segment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fork.h"
#include "base/util.h"

/* Short slots of all members together have so much: few members may say more at once. */
#define R2_SEGMENT_SHORT_BYTES (1u << 20)
#define R2_SLOT_BYTES_MAX      8192u
#define R2_SLOT_BYTES_MIN      1024u

/* The same of long slots, of which few members have the longest. */
#define R2_SEGMENT_LONG_BYTES (2u << 20)
#define R2_PIECE_BYTES_MAX    (128u << 10)
#define R2_PIECE_BYTES_MIN    (16u << 10)

#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_WRITE 23
#endif

static_assert(sizeof(r2_member_t) <= R2_SHARED_PAGE, "a page for each");
static_assert(R2_SEGMENT_LONG_SLOTS > 2, "while one is written two are read");
static_assert(R2_SEGMENT_LINE_BYTES + offsetof(r2_slot_t, data) == R2_SEGMENT_LINE, "a line");
static_assert(R2_SEGMENT_DIGESTS > R2_SEGMENT_LINES + R2_SEGMENT_SLOTS + R2_SEGMENT_LONG_SLOTS,
              "whatever calls a member makes before others have begun them");

/* Of all long slots of a member. */
static size_t r2_segment_long_bytes(const r2_segment_t *segment)
{
    return R2_SEGMENT_LONG_SLOTS * segment->piece_bytes;
}

void r2_segment_lay_out(r2_segment_t *segment, int32_t size, int32_t rank)
{
    const uint64_t each = R2_SEGMENT_SHORT_BYTES / ((uint32_t) size * R2_SEGMENT_SLOTS);

    memset(segment, 0, sizeof(*segment));
    segment->fd = -1;
    segment->size = size;
    segment->rank = rank;
    segment->slot_stride = r2_clamp_u64(each, R2_SLOT_BYTES_MIN, R2_SLOT_BYTES_MAX) /
                           R2_SLOT_BYTES_MIN * R2_SLOT_BYTES_MIN;
    segment->slot_bytes = segment->slot_stride - offsetof(r2_slot_t, data);
    segment->piece_bytes =
        r2_clamp_u64(R2_SEGMENT_LONG_BYTES / ((uint32_t) size * R2_SEGMENT_LONG_SLOTS) /
                         R2_PIECE_BYTES_MIN * R2_PIECE_BYTES_MIN,
                     R2_PIECE_BYTES_MIN, R2_PIECE_BYTES_MAX);
    segment->stride = R2_SHARED_PAGE + R2_SEGMENT_SLOTS * segment->slot_stride;
    segment->long_start = R2_SHARED_PAGE + (size_t) size * segment->stride;
    segment->bytes = segment->long_start + (size_t) size * r2_segment_long_bytes(segment);
}

/* Before Linux 5.14 a mapping cannot be told to have memory, or an error. */
static bool r2_segment_grows_later(void)
{
    return 0 == madvise(NULL, 0, MADV_POPULATE_WRITE);
}

static size_t r2_segment_long_offset(const r2_segment_t *segment)
{
    return segment->long_start + (size_t) segment->rank * r2_segment_long_bytes(segment);
}

static r2_status_t r2_segment_get_scratch(r2_segment_t *segment)
{
    if (NULL == segment->scratch) {
        segment->scratch = aligned_alloc(R2_SEGMENT_LINE, 2 * segment->piece_bytes);
    }
    return NULL == segment->scratch ? R2_ERR_NO_MEMORY : R2_OK;
}

static r2_status_t r2_segment_enter(r2_segment_t *segment)
{
    const size_t own = R2_SHARED_PAGE + (size_t) segment->rank * segment->stride;

    if (R2_OK != r2_shared_allocate(segment->fd, (off_t) own, segment->stride)) {
        return R2_ERR_NO_MEMORY;
    }
    if (!r2_segment_grows_later()) {
        segment->grown = true;
        if (R2_OK != r2_shared_allocate(segment->fd, (off_t) r2_segment_long_offset(segment),
                                        r2_segment_long_bytes(segment)) ||
            R2_OK != r2_segment_get_scratch(segment)) {
            return R2_ERR_NO_MEMORY;
        }
    }
    segment->memory = r2_shared_map(segment->fd, 0, segment->bytes);
    return NULL == segment->memory ? R2_ERR_NO_MEMORY : R2_OK;
}

r2_status_t r2_segment_create(r2_segment_t *segment, int32_t size, int32_t rank, uint8_t *address_p)
{
    uint8_t id[R2_SHARED_ID_BYTES];
    r2_status_t status;

    r2_segment_lay_out(segment, size, rank);
    status = r2_shared_create("segment", (off_t) segment->bytes, id, &segment->fd);
    if (R2_OK == status) {
        status = r2_shared_allocate(segment->fd, 0, R2_SHARED_PAGE);
    }
    if (R2_OK == status) {
        status = r2_segment_enter(segment);
    }
    if (R2_OK != status) {
        r2_segment_close(segment);
        return status;
    }
    memcpy(segment->memory, id, sizeof(id));
    r2_shared_address(segment->fd, id, address_p);
    return R2_OK;
}

r2_status_t r2_segment_open(r2_segment_t *segment, int32_t size, int32_t rank,
                            const uint8_t *address)
{
    r2_status_t status;

    r2_segment_lay_out(segment, size, rank);
    segment->fd = r2_shared_open("segment", address, (off_t) segment->bytes);
    if (segment->fd < 0) {
        return R2_ERR_UNSUPPORTED;
    }
    status = r2_segment_enter(segment);
    if (R2_OK == status &&
        0 != memcmp(segment->memory, r2_shared_id(address), R2_SHARED_ID_BYTES)) {
        status = R2_ERR_UNSUPPORTED;
    }
    if (R2_OK != status) {
        r2_segment_close(segment);
    }
    return status;
}

void r2_segment_settle(r2_segment_t *segment)
{
    if (segment->fd >= 0) {
        r2_fd_close(segment->fd);
        segment->fd = -1;
    }
}

r2_status_t r2_segment_grow(r2_segment_t *segment)
{
    if (R2_OK != r2_segment_get_scratch(segment) ||
        (!segment->grown && 0 != madvise(segment->memory + r2_segment_long_offset(segment),
                                         r2_segment_long_bytes(segment), MADV_POPULATE_WRITE))) {
        return R2_ERR_NO_MEMORY;
    }
    segment->grown = true;
    return R2_OK;
}

void r2_segment_close(r2_segment_t *segment)
{
    r2_segment_settle(segment);
    free(segment->scratch);
    segment->scratch = NULL;
    if (NULL != segment->memory) {
        munmap(segment->memory, segment->bytes);
        segment->memory = NULL;
    }
}
