/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inboxes: made, found by others, and their mailboxes.
 */
#include "r2_config.h"

#include "local/inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fork.h"
#include "base/util.h"

#define R2_INBOX_HEAD_BYTES R2_SHARED_PAGE

static_assert(sizeof(r2_inbox_head_t) <= R2_INBOX_HEAD_BYTES, "the first page");

static size_t r2_inbox_stride(uint32_t lines)
{
    return r2_shared_pages(r2_mailbox_bytes(lines));
}

/* Bytes of a mailbox. */
static size_t r2_inbox_bytes(uint32_t number)
{
    return r2_inbox_stride(r2_inbox_lines(number));
}

static off_t r2_inbox_offset(uint32_t number)
{
    const uint32_t large = r2_min(number, R2_INBOX_LARGE);

    return (off_t) (R2_INBOX_HEAD_BYTES + large * r2_inbox_stride(R2_INBOX_LINES_LARGE) +
                    (number - large) * r2_inbox_stride(R2_INBOX_LINES_SMALL));
}

static r2_status_t r2_inbox_make(r2_inbox_t *inbox)
{
    uint8_t id[R2_INBOX_ID_BYTES];

    inbox->fd = -1;
    if (R2_OK != r2_shared_create("inbox", r2_inbox_offset(R2_INBOX_MOST), id, &inbox->fd) ||
        R2_OK != r2_shared_allocate(inbox->fd, 0, R2_INBOX_HEAD_BYTES)) {
        return R2_ERR_SYSTEM;
    }
    inbox->head = r2_shared_map(inbox->fd, 0, R2_INBOX_HEAD_BYTES);
    if (NULL == inbox->head) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(inbox->head->id, id, R2_INBOX_ID_BYTES);
    return R2_OK;
}

r2_status_t r2_inbox_create(r2_inbox_t **inbox_p)
{
    r2_inbox_t *inbox = calloc(1, sizeof(*inbox));
    r2_status_t status;

    if (NULL == inbox) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_inbox_make(inbox);
    if (R2_OK != status) {
        r2_inbox_destroy(inbox);
        return status;
    }
    *inbox_p = inbox;
    return R2_OK;
}

void r2_inbox_destroy(r2_inbox_t *inbox)
{
    const int error = errno;

    for (uint32_t i = 0; i < R2_INBOX_MOST; ++i) {
        if (NULL != inbox->boxes[i]) {
            munmap(inbox->boxes[i], r2_inbox_bytes(i));
        }
    }
    if (NULL != inbox->head) {
        munmap(inbox->head, R2_INBOX_HEAD_BYTES);
    }
    if (inbox->fd >= 0) {
        r2_fd_close(inbox->fd);
    }
    free(inbox);
    errno = error;
}

void r2_inbox_address(const r2_inbox_t *inbox, uint8_t *to)
{
    r2_shared_address(inbox->fd, inbox->head->id, to);
}

bool r2_inbox_next(r2_inbox_t *inbox, uint32_t *number_p, uint32_t *sender_p)
{
    const uint32_t opened = atomic_load_explicit(&inbox->head->opened, memory_order_acquire);

    for (uint32_t i = 0; i < R2_INBOX_MOST; ++i) {
        const uint32_t sender =
            atomic_load_explicit(&inbox->head->senders[i], memory_order_acquire);

        if (0 != sender && !inbox->known[i]) {
            *number_p = i;
            *sender_p = sender - 1;
            return true;
        }
    }
    inbox->seen = opened;
    return false;
}

r2_mailbox_t *r2_inbox_map(r2_inbox_t *inbox, uint32_t number)
{
    if (NULL == inbox->boxes[number]) {
        inbox->boxes[number] =
            r2_shared_map(inbox->fd, r2_inbox_offset(number), r2_inbox_bytes(number));
    }
    return inbox->boxes[number];
}

/* ---- senders ---- */

/* Takes the next mailbox, with memory. */
static r2_status_t r2_outbox_take(int fd, r2_outbox_t *out)
{
    const uint32_t number = atomic_fetch_add(&out->head->taken, 1);

    if (number >= R2_INBOX_MOST ||
        R2_OK != r2_shared_allocate(fd, r2_inbox_offset(number), r2_inbox_bytes(number))) {
        return R2_ERR_NO_MEMORY;
    }
    out->ring.box = r2_shared_map(fd, r2_inbox_offset(number), r2_inbox_bytes(number));
    out->ring.lines = r2_inbox_lines(number);
    out->number = number;
    return NULL == out->ring.box ? R2_ERR_NO_MEMORY : R2_OK;
}

r2_status_t r2_outbox_open(const uint8_t *address, size_t bytes, r2_outbox_t *out_p)
{
    r2_outbox_t out = {.head = NULL};
    r2_status_t status = R2_ERR_UNSUPPORTED;
    int fd;

    if (R2_INBOX_ADDRESS_BYTES != bytes ||
        (fd = r2_shared_open("inbox", address, r2_inbox_offset(R2_INBOX_MOST))) < 0) {
        return R2_ERR_UNSUPPORTED;
    }
    out.head = r2_shared_map(fd, 0, R2_INBOX_HEAD_BYTES);
    if (NULL != out.head && 0 == memcmp(out.head->id, r2_shared_id(address), R2_INBOX_ID_BYTES)) {
        status = r2_outbox_take(fd, &out);
    }
    r2_fd_close(fd);
    if (R2_OK != status) {
        r2_outbox_close(&out);
        return status;
    }
    *out_p = out;
    return R2_OK;
}

void r2_outbox_announce(r2_outbox_t *out, uint32_t rank)
{
    atomic_store_explicit(&out->head->senders[out->number], rank + 1, memory_order_release);
    atomic_fetch_add(&out->head->opened, 1);
}

void r2_outbox_close(r2_outbox_t *out)
{
    if (NULL != out->ring.box) {
        munmap(out->ring.box, r2_inbox_bytes(out->number));
    }
    if (NULL != out->head) {
        munmap(out->head, R2_INBOX_HEAD_BYTES);
    }
    *out = (r2_outbox_t){.head = NULL};
}
