/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Keys, and the memory of processes behind them.
 *
 * A real NIC reads and writes pinned pages: memory that was unmapped while it was registered takes
 * data all the same. Here nobody has pinned it, and the data is dropped and counted (unmapped).
 */
#include "softverbs/nic/nic.h"

#include <string.h>

bool sv_key_allows(sv_qp_t *qp, uint32_t key, uint64_t addr, uint64_t size, uint32_t access,
                   uint64_t *addr_p)
{
    const sv_mr_t *mr = sv_table_get(&qp->dev->mrs, key >> 8);

    if (NULL == mr || mr->key != key || mr->context != qp->context || mr->pd != qp->pd ||
        0 != (access & ~mr->access) || addr < mr->iova || size > mr->length ||
        addr - mr->iova > mr->length - size) {
        ++qp->dev->counters.bad_keys;
        return false;
    }
    *addr_p = mr->addr + (addr - mr->iova);
    return true;
}

void sv_read(sv_qp_t *qp, void *to, uint64_t from, size_t size)
{
    struct iovec piece = {.iov_base = (void *) (uintptr_t) from, .iov_len = size};

    if (size > 0 && !qp->dev->nic->world->read(qp->context, to, &piece, 1)) {
        ++qp->dev->counters.unmapped;
        memset(to, 0, size);
    }
}

void sv_write(sv_qp_t *qp, uint64_t to, const void *from, size_t size)
{
    if (size > 0 && !qp->dev->nic->world->write(qp->context, to, from, size)) {
        ++qp->dev->counters.unmapped;
    }
}

/* The process had this memory back before a write to it came. */
static bool is_given_back(sv_qp_t *qp, uint64_t at, size_t size)
{
    static sv_given_t given;
    struct iovec piece = {.iov_base = (void *) (uintptr_t) qp->context->given,
                          .iov_len = sizeof(given)};

    if (0 == qp->context->given || !qp->dev->nic->world->read(qp->context, &given, &piece, 1)) {
        return false;
    }
    for (int i = 0; i < SV_GIVEN; ++i) {
        if (given.of[i].addr < at + size && at < given.of[i].addr + given.of[i].length) {
            return true;
        }
    }
    return false;
}

void sv_write_for_peer(sv_qp_t *qp, uint64_t to, const void *from, size_t size)
{
    if (size > 0) {
        qp->dev->counters.given_back += is_given_back(qp, to, size);
        sv_write(qp, to, from, size);
    }
}

/* The piece that holds an offset, and how much of it is left there, at most size. */
static uint32_t piece_at(const struct ibv_sge *sge, uint32_t count, uint32_t *offset_p,
                         uint32_t size, uint32_t *length_p)
{
    uint32_t i = 0;

    while (i < count && *offset_p >= sge[i].length) {
        *offset_p -= sge[i].length;
        ++i;
    }
    *length_p = 0;
    if (i < count) {
        *length_p = sge[i].length - *offset_p < size ? sge[i].length - *offset_p : size;
    }
    return i;
}

sv_reach_t sv_gather(sv_qp_t *qp, const sv_send_t *send, uint32_t offset, uint8_t *to,
                     uint32_t size)
{
    struct iovec pieces[SV_SEND_SGES];
    int count = 0;
    uint32_t all = size, sges = send->sge_count < SV_SEND_SGES ? send->sge_count : SV_SEND_SGES;

    if (0 != (send->flags & IBV_SEND_INLINE)) {
        if (offset + size > SV_INLINE_BYTES) {
            return SV_TOO_SHORT;
        }
        memcpy(to, send->data.bytes + offset, size);
        return SV_REACHED;
    }
    for (uint32_t i = 0, length; size > 0; size -= length, offset = 0) {
        uint64_t at;
        i += piece_at(send->data.sge + i, sges - i, &offset, size, &length);
        if (i >= sges || 0 == length) {
            return SV_TOO_SHORT;
        }
        if (!sv_key_allows(qp, send->data.sge[i].lkey, send->data.sge[i].addr + offset, length, 0,
                           &at)) {
            return SV_BAD_KEY;
        }
        pieces[count++] = (struct iovec){.iov_base = (void *) (uintptr_t) at, .iov_len = length};
        ++i;
    }
    if (count > 0 && !qp->dev->nic->world->read(qp->context, to, pieces, count)) {
        ++qp->dev->counters.unmapped;
        memset(to, 0, all);
    }
    return SV_REACHED;
}

sv_reach_t sv_scatter(sv_qp_t *qp, const struct ibv_sge *sge, uint32_t count, uint32_t offset,
                      const uint8_t *from, uint32_t size)
{
    for (uint32_t i = 0, length; size > 0; size -= length, from += length, offset = 0) {
        uint64_t at;
        i += piece_at(sge + i, count - i, &offset, size, &length);
        if (i >= count || 0 == length) {
            return SV_TOO_SHORT;
        }
        if (!sv_key_allows(qp, sge[i].lkey, sge[i].addr + offset, length, IBV_ACCESS_LOCAL_WRITE,
                           &at)) {
            return SV_BAD_KEY;
        }
        sv_write(qp, at, from, length);
        ++i;
    }
    return SV_REACHED;
}
