/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending over UCT: short, packed or zero-copy; what UCX has no room for waits in our queue.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

/* Up to here one copy into one buffer costs less than a vector. Measured over tcp. */
#define COPIED_BYTES 1024
/* From here on UCX refers to the data instead of copying what the socket does not take. */
#define ZCOPY_BYTES 16384
/* From here on memory is registered where it must be: looking it up, and a completion that is told,
 * cost no more than the copy. */
#define REGISTERED_BYTES 8192

/** One active message: a packet or a piece of one. */
typedef struct am {
    uint8_t id;
    bool is_gpus; /* data: UCX must refer to them */
    const void *header;
    size_t header_bytes;
    const void *data;
    size_t data_bytes;
} am_t;

static size_t r2_uct_am_bytes(const am_t *am)
{
    return sizeof(r2_uct_frame_t) + am->header_bytes + am->data_bytes;
}

void r2_uct_limits_init(r2_uct_limits_t *limits, const uct_iface_attr_t *attr,
                        const r2_tp_device_t *device)
{
    const uint64_t flags = attr->cap.flags;
    const bool needs_handles = device->domain.needs_handles;

    *limits = (r2_uct_limits_t){0};
    if (0 != (flags & UCT_IFACE_FLAG_AM_SHORT)) {
        limits->vector = attr->cap.am.max_short;
    }
    if (0 != (flags & UCT_IFACE_FLAG_AM_ZCOPY) && !device->kind->copies &&
        (!needs_handles || NULL != device->memory)) {
        limits->zcopy = attr->cap.am.max_zcopy;
        limits->zcopy_head = attr->cap.am.max_hdr;
        limits->zcopy_data = needs_handles ? REGISTERED_BYTES : 0;
        limits->vector = r2_min(limits->vector, (size_t) ZCOPY_BYTES);
    }
    if (0 != (flags & UCT_IFACE_FLAG_PUT_ZCOPY) && device->kind->puts && 0 != limits->zcopy &&
        0 != device->domain.key_bytes && device->domain.key_bytes <= R2_TP_KEY_MAX) {
        limits->put = attr->cap.put.max_zcopy;
        if (0 != (flags & UCT_IFACE_FLAG_GET_ZCOPY)) {
            limits->get = attr->cap.get.max_zcopy;
            limits->get_least = attr->cap.get.min_zcopy;
        }
    }
    limits->copied = r2_min(limits->vector, (size_t) COPIED_BYTES);
    limits->piece = limits->vector;
    if (0 != (flags & UCT_IFACE_FLAG_AM_BCOPY)) {
        limits->piece = r2_max(limits->piece, attr->cap.am.max_bcopy);
    }
}

/* ---- one active message ---- */

/** UCX's vectors have no const. */
static uct_iov_t r2_uct_iov_of(const void *from, size_t bytes)
{
    union {
        const void *from;
        void *buffer;
    } pointer = {.from = from};

    return (uct_iov_t){.buffer = pointer.buffer, .length = bytes, .count = 1};
}

static ucs_status_t r2_uct_send_vector(r2_tp_ep_t *ep, const am_t *am)
{
    const r2_uct_frame_t frame = {.header_bytes = (uint8_t) am->header_bytes};
    const uct_iov_t iov[] = {r2_uct_iov_of(&frame, sizeof(frame)),
                             r2_uct_iov_of(am->header, am->header_bytes),
                             r2_uct_iov_of(am->data, am->data_bytes)};

    return uct_ep_am_short_iov(ep->uct_ep, am->id, iov, 0 == am->data_bytes ? 2 : 3);
}

/** Writes frame and header. @param to sizeof(r2_uct_frame_t) and what a header may have. */
static size_t r2_uct_head_write(const am_t *am, char *to)
{
    const r2_uct_frame_t frame = {.header_bytes = (uint8_t) am->header_bytes};

    memcpy(to, &frame, sizeof(frame));
    memcpy(to + sizeof(frame), am->header, am->header_bytes);
    return sizeof(frame) + am->header_bytes;
}

/** UCX copies the header if it has to keep it, and keeps the data's address. */
static ucs_status_t r2_uct_send_zcopy(r2_tp_ep_t *ep, const am_t *am, r2_uct_record_t *record)
{
    char head[sizeof(r2_uct_frame_t) + R2_TP_HEADER_MAX];
    uct_iov_t iov = r2_uct_iov_of(am->data, am->data_bytes);

    record->done.count = 1;
    record->done.status = UCS_OK;
    record->status = R2_IN_PROGRESS;
    if (NULL != record->region) {
        iov.memh = r2_uct_region_handle(record->region);
    }
    return uct_ep_am_zcopy(ep->uct_ep, am->id, head, (unsigned) r2_uct_head_write(am, head), &iov,
                           1, 0, &record->done);
}

/** Writes all of it. @param to r2_uct_am_bytes(). @return that. */
static size_t r2_uct_on_pack(void *to, void *arg)
{
    const am_t *am = arg;
    size_t head_bytes = r2_uct_head_write(am, to);

    if (0 != am->data_bytes) {
        memcpy((char *) to + head_bytes, am->data, am->data_bytes);
    }
    return head_bytes + am->data_bytes;
}

/** UCX takes the first 8 bytes apart from the others. */
static ucs_status_t r2_uct_send_copied(r2_tp_ep_t *ep, am_t *am)
{
    char bytes[COPIED_BYTES];
    uint64_t first;
    const size_t count = r2_uct_on_pack(bytes, am);

    memcpy(&first, bytes, sizeof(first));
    return uct_ep_am_short(ep->uct_ep, am->id, first, bytes + sizeof(first),
                           (unsigned) (count - sizeof(first)));
}

/**
 * UCX copies. It takes registered buffers for that, more of them when it needs them: where no more
 * memory may be locked, ours makes room.
 */
static ucs_status_t r2_uct_send_packed(r2_tp_ep_t *ep, am_t *am)
{
    const r2_tp_device_t *device = ep->worker->device;
    bool is_short;
    ssize_t sent;

    do {
        errno = 0;
        sent = uct_ep_am_bcopy(ep->uct_ep, am->id, r2_uct_on_pack, am, 0);
        is_short = UCS_ERR_NO_RESOURCE == sent && ENOMEM == errno && device->domain.needs_handles;
    } while (is_short && r2_uct_make_room(device->uct, R2_UCT_RC_GROW * device->segment_bytes));
    return sent < 0 ? (ucs_status_t) sent : UCS_OK;
}

/** True if UCX may refer to the data of an active message. */
static bool r2_uct_is_referred_to(const r2_uct_limits_t *limits, const am_t *am)
{
    const size_t bytes = r2_uct_am_bytes(am);

    return bytes <= limits->zcopy && bytes - am->data_bytes <= limits->zcopy_head &&
           (am->is_gpus || am->data_bytes >= limits->zcopy_data);
}

bool r2_uct_refer(r2_uct_record_t *record)
{
    const r2_tp_send_t *op = record->op;
    r2_uct_memory_t *memory = record->worker->device->memory;

    if (NULL != memory && NULL == record->region) {
        record->region = r2_uct_region_get(memory, op->data, op->data_bytes, op->memory);
    }
    return NULL == memory || NULL != record->region;
}

/** True if UCX is to refer to the data: what is in a GPU always, and what is too long to be copied
 * at once. */
static bool r2_uct_may_refer(const r2_uct_limits_t *limits, const am_t *am, r2_uct_record_t *record,
                             size_t bytes)
{
    if (NULL == record || am->is_gpus) {
        return NULL != record;
    }
    return bytes > r2_max(limits->copied, limits->vector) && r2_uct_is_referred_to(limits, am) &&
           r2_uct_refer(record);
}

/**
 * Hands one active message to UCX: of at most limits.piece bytes, or one that it may refer to.
 * @param record NULL, or what UCX may refer to until it is done.
 * @return R2_OK: gone; R2_IN_PROGRESS: in flight; R2_ERR_AGAIN: no room now; else broken.
 */
static r2_status_t r2_uct_hand_over(r2_tp_ep_t *ep, am_t *am, r2_uct_record_t *record)
{
    const r2_uct_limits_t *limits = &ep->worker->limits;
    const size_t bytes = r2_uct_am_bytes(am);
    ucs_status_t rc;

    if (r2_uct_may_refer(limits, am, record, bytes)) {
        rc = r2_uct_send_zcopy(ep, am, record);
    } else if (bytes <= limits->copied && bytes >= sizeof(uint64_t)) {
        rc = r2_uct_send_copied(ep, am);
    } else if (bytes <= limits->vector) {
        rc = r2_uct_send_vector(ep, am);
    } else {
        rc = r2_uct_send_packed(ep, am);
    }
    return UCS_INPROGRESS == rc        ? R2_IN_PROGRESS
           : UCS_ERR_NO_RESOURCE == rc ? R2_ERR_AGAIN
                                       : r2_uct_status(rc);
}

/* ---- packets ---- */

static am_t r2_uct_am_of(const r2_tp_send_t *op)
{
    return (am_t){.id = R2_UCT_AM_PACKET,
                  .is_gpus = r2_uct_is_gpus(op),
                  .header = op->header,
                  .header_bytes = op->header_bytes,
                  .data = op->data,
                  .data_bytes = op->data_bytes};
}

/** True if the packet is one active message. */
static bool r2_uct_is_whole(const r2_tp_ep_t *ep, const r2_tp_send_t *op)
{
    const r2_uct_limits_t *limits = &ep->worker->limits;
    const am_t am = r2_uct_am_of(op);

    return r2_uct_am_bytes(&am) <= limits->piece || r2_uct_is_referred_to(limits, &am);
}

static r2_status_t r2_uct_send_whole(r2_tp_ep_t *ep, r2_uct_record_t *record,
                                     const r2_tp_send_t *op)
{
    am_t am = r2_uct_am_of(op);

    return r2_uct_hand_over(ep, &am, record);
}

/** Sends the pieces that are left of a packet. @return as hand_over(), but never R2_IN_PROGRESS. */
static r2_status_t r2_uct_send_pieces(r2_tp_ep_t *ep, r2_uct_record_t *record)
{
    const r2_tp_send_t *op = record->op;
    r2_status_t status = R2_OK;

    while (R2_OK == status && record->sent_bytes < op->data_bytes) {
        r2_uct_piece_t piece = {.stream = ep->stream,
                                .data_bytes = op->data_bytes,
                                .offset = record->sent_bytes,
                                .header_bytes = op->header_bytes};
        size_t head_bytes = offsetof(r2_uct_piece_t, header) + op->header_bytes;
        size_t room = ep->worker->limits.piece - sizeof(r2_uct_frame_t) - head_bytes;
        am_t am = {.id = R2_UCT_AM_PIECE,
                   .header = &piece,
                   .header_bytes = head_bytes,
                   .data = (const char *) op->data + record->sent_bytes,
                   .data_bytes = r2_min(room, op->data_bytes - record->sent_bytes)};

        memcpy(piece.header, op->header, op->header_bytes);
        status = r2_uct_hand_over(ep, &am, NULL);
        if (R2_OK == status) {
            record->sent_bytes += am.data_bytes;
        }
    }
    return status;
}

r2_status_t r2_uct_send_header(r2_tp_ep_t *ep, const r2_tp_send_t *op)
{
    am_t am = {.id = R2_UCT_AM_PACKET, .header = op->header, .header_bytes = op->header_bytes};

    return r2_uct_hand_over(ep, &am, NULL);
}

static r2_status_t r2_uct_send_packet(r2_tp_ep_t *ep, r2_uct_record_t *record)
{
    return r2_uct_is_whole(ep, record->op) ? r2_uct_send_whole(ep, record, record->op)
                                           : r2_uct_send_pieces(ep, record);
}

/** Goes on with a record that is in no list, and puts it into one, unless it must wait. */
static r2_status_t r2_uct_record_send(r2_tp_ep_t *ep, r2_uct_record_t *record)
{
    r2_status_t status = record->send(ep, record);

    record->waits = record->posted && R2_ERR_AGAIN == status;
    if (R2_IN_PROGRESS == status) {
        DL_APPEND(ep->in_flight, record);
        ++ep->worker->in_flight;
    }
    return status;
}

void r2_uct_send_waiting(r2_tp_ep_t *ep)
{
    r2_uct_record_t *record;
    r2_status_t status = R2_OK;

    while (R2_OK == ep->failure && NULL != (record = ep->waiting)) {
        DL_DELETE(ep->waiting, record);
        status = r2_uct_record_send(ep, record);
        if (status < 0) {
            DL_PREPEND(ep->waiting, record);
            break;
        }
        if (R2_OK == status) {
            record->status = R2_OK;
            DL_APPEND(ep->worker->completed, record);
        }
    }
    if (status < 0 && R2_ERR_AGAIN != status) {
        r2_uct_ep_fail(ep, status);
    }
    if (NULL == ep->waiting) {
        DL_DELETE2(ep->worker->waiting, ep, waiting_prev, waiting_next);
    }
}

void r2_uct_send_withdraw(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;

    if (NULL != ep->waiting) {
        DL_DELETE2(worker->waiting, ep, waiting_prev, waiting_next);
        DL_CONCAT(worker->completed, ep->waiting);
        ep->waiting = NULL;
    }
}

/**
 * UCX is done with a send. Called by UCX: notes, and nothing else. When a send fails inside of
 * UCX's progress, tcp says so twice in one call, and ends the process if the count is not positive.
 */
static void r2_uct_on_done(uct_completion_t *done)
{
    r2_uct_record_t *record = r2_container_of(done, r2_uct_record_t, done);

    done->count = 1;
    if (R2_IN_PROGRESS != record->status) {
        return;
    }
    record->status = r2_uct_status(done->status);
    if (record->waits) {
        return; /* the header of a put is not sent yet */
    }
    DL_DELETE(record->ep->in_flight, record);
    --record->worker->in_flight;
    DL_APPEND(record->worker->completed, record);
}

r2_uct_record_t *r2_uct_record_of(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    r2_uct_record_t *record = r2_uct_record_get(ep->worker);

    if (NULL != record) {
        record->ep = ep;
        record->op = op;
        record->done.func = r2_uct_on_done;
        record->sent_bytes = 0;
        record->send = r2_uct_send_packet;
        record->posted = record->waits = record->reads = false;
        op->transport_private = record;
    }
    return record;
}

r2_status_t r2_uct_record_begin(r2_tp_ep_t *ep, r2_uct_record_t *record, bool may_send)
{
    r2_tp_send_t *op = record->op;
    r2_status_t status = R2_ERR_AGAIN;

    if (may_send) {
        status = r2_uct_record_send(ep, record);
    }
    if (R2_ERR_AGAIN == status) {
        if (NULL == ep->waiting) {
            DL_APPEND2(ep->worker->waiting, ep, waiting_prev, waiting_next);
        }
        DL_APPEND(ep->waiting, record);
        return R2_IN_PROGRESS;
    }
    if (R2_IN_PROGRESS != status) {
        op->transport_private = NULL;
        r2_uct_record_put(record);
    }
    return status;
}

/** Through a record: what UCX refers to, what goes in pieces, and what waits. */
static r2_status_t r2_uct_send_recorded(r2_tp_ep_t *ep, r2_tp_send_t *op, bool may_send)
{
    r2_uct_record_t *record = r2_uct_record_of(ep, op);

    return NULL == record ? R2_ERR_NO_MEMORY : r2_uct_record_begin(ep, record, may_send);
}

bool r2_uct_ep_reads_gpus(const r2_tp_ep_t *ep)
{
    const r2_tp_device_t *device = ep->worker->device;

    return device->domain.takes_gpus && NULL != device->memory && 0 != ep->worker->limits.zcopy &&
           !r2_uct_memory_refuses_gpus(device->memory);
}

/** Memory of a GPU is registered before all else: nobody can copy it if that fails later. */
static r2_status_t r2_uct_send_gpus(r2_tp_ep_t *ep, r2_tp_send_t *op, bool may_send)
{
    const am_t am = r2_uct_am_of(op);
    r2_uct_record_t *record;

    if (!r2_uct_ep_reads_gpus(ep) || !r2_uct_is_referred_to(&ep->worker->limits, &am)) {
        return R2_ERR_UNSUPPORTED;
    }
    record = r2_uct_record_of(ep, op);
    if (NULL == record) {
        return R2_ERR_NO_MEMORY;
    }
    if (!r2_uct_refer(record)) {
        op->transport_private = NULL;
        r2_uct_record_put(record);
        return R2_ERR_UNSUPPORTED;
    }
    return r2_uct_record_begin(ep, record, may_send);
}

r2_status_t r2_uct_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    const size_t bytes = sizeof(r2_uct_frame_t) + op->header_bytes + op->data_bytes;
    bool may_send = NULL == ep->waiting;
    r2_status_t status = R2_ERR_AGAIN;

    r2_assert(op->header_bytes <= R2_TP_HEADER_MAX && ep->connected);
    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN;
    }
    r2_ucx_enter();
    if (r2_uct_is_gpus(op)) {
        status = r2_uct_send_gpus(ep, op, may_send);
    } else if (may_send && bytes <= ep->worker->limits.vector) {
        status = r2_uct_send_whole(ep, NULL, op);
        may_send = false;
    }
    if (R2_ERR_AGAIN == status && !r2_uct_is_gpus(op)) {
        status = r2_uct_send_recorded(ep, op, may_send);
    }
    r2_ucx_leave();
    return status;
}
