/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inboxes: made, found by others, and their mailboxes.
 */
#include "r2_config.h"

#include "local/inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/util.h"

#define R2_INBOX_HEAD_BYTES 4096u
#define R2_INBOX_NAME_BYTES (2 * R2_INBOX_ID_BYTES + 1)

#ifndef MFD_NOEXEC_SEAL
#    define MFD_NOEXEC_SEAL 8u
#endif

static_assert(sizeof(r2_inbox_head_t) <= R2_INBOX_HEAD_BYTES, "the first page");

static size_t r2_inbox_stride(uint32_t lines)
{
    const size_t bytes = r2_mailbox_bytes(lines);

    return (bytes + R2_INBOX_HEAD_BYTES - 1) / R2_INBOX_HEAD_BYTES * R2_INBOX_HEAD_BYTES;
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

/* A limit on the size of files (`ulimit -f`) counts here, too, and kills who exceeds it. */
static bool r2_inbox_is_allowed(void)
{
    struct rlimit limit;

    if (0 == getrlimit(RLIMIT_FSIZE, &limit) &&
        limit.rlim_cur < (rlim_t) r2_inbox_offset(R2_INBOX_MOST)) {
        errno = EFBIG;
        return false;
    }
    return true;
}

static int r2_inbox_file(const char *name)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL); /* sysctl vm.memfd_noexec may want it */

    if (fd < 0 && EINVAL == errno) {
        fd = memfd_create(name, flags); /* before Linux 6.3 */
    }
    return fd;
}

/* Children have none of it. @return NULL: no memory. */
static void *r2_inbox_mapping(int fd, off_t offset, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

    if (MAP_FAILED == memory) {
        return NULL;
    }
    (void) madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

static void r2_inbox_name(const uint8_t *id, char *name_p)
{
    sodium_bin2hex(name_p, R2_INBOX_NAME_BYTES, id, R2_INBOX_ID_BYTES);
}

/* Nobody can make it shorter: who reads beyond the end would be killed. */
static r2_status_t r2_inbox_make(r2_inbox_t *inbox, const uint8_t *id)
{
    char name[sizeof("r2-inbox-") + R2_INBOX_NAME_BYTES] = "r2-inbox-";

    r2_inbox_name(id, name + strlen(name));
    inbox->fd = r2_inbox_is_allowed() ? r2_fd_keep(r2_inbox_file(name)) : -1;
    if (inbox->fd < 0 || 0 != ftruncate(inbox->fd, r2_inbox_offset(R2_INBOX_MOST)) ||
        0 != fcntl(inbox->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        return R2_ERR_SYSTEM;
    }
    errno = posix_fallocate(inbox->fd, 0, R2_INBOX_HEAD_BYTES);
    if (0 != errno) {
        return R2_ERR_SYSTEM;
    }
    inbox->head = r2_inbox_mapping(inbox->fd, 0, R2_INBOX_HEAD_BYTES);
    if (NULL == inbox->head) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(inbox->head->id, id, R2_INBOX_ID_BYTES);
    return R2_OK;
}

r2_status_t r2_inbox_create(r2_inbox_t **inbox_p)
{
    r2_inbox_t *inbox = calloc(1, sizeof(*inbox));
    uint8_t id[R2_INBOX_ID_BYTES];
    r2_status_t status;

    if (NULL == inbox) {
        return R2_ERR_NO_MEMORY;
    }
    randombytes_buf(id, sizeof(id));
    status = r2_inbox_make(inbox, id);
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
    const uint32_t numbers[] = {(uint32_t) getpid(), (uint32_t) inbox->fd};

    memcpy(to, numbers, sizeof(numbers));
    memcpy(to + sizeof(numbers), inbox->head->id, R2_INBOX_ID_BYTES);
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
            r2_inbox_mapping(inbox->fd, r2_inbox_offset(number), r2_inbox_bytes(number));
    }
    return inbox->boxes[number];
}

/* ---- senders ---- */

/* What has this number may be anything of any process, if it is of another namespace: its name
 * tells, before it is opened. @return -1: it is not there. */
static int r2_outbox_find(const uint8_t *address)
{
    char path[64], name[128], wanted[128] = "/memfd:r2-inbox-";
    uint32_t numbers[2];
    ssize_t length;

    memcpy(numbers, address, sizeof(numbers));
    r2_inbox_name(address + sizeof(numbers), wanted + strlen(wanted));
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", numbers[0], numbers[1]);
    length = readlink(path, name, sizeof(name) - 1);
    if (length < (ssize_t) strlen(wanted) || 0 != strncmp(name, wanted, strlen(wanted))) {
        return -1;
    }
    return r2_fd_keep(open(path, O_RDWR | O_CLOEXEC));
}

/* Takes the next mailbox, with memory. */
static r2_status_t r2_outbox_take(int fd, r2_outbox_t *out)
{
    const uint32_t number = atomic_fetch_add(&out->head->taken, 1);

    if (number >= R2_INBOX_MOST ||
        0 != posix_fallocate(fd, r2_inbox_offset(number), (off_t) r2_inbox_bytes(number))) {
        return R2_ERR_NO_MEMORY;
    }
    out->ring.box = r2_inbox_mapping(fd, r2_inbox_offset(number), r2_inbox_bytes(number));
    out->ring.lines = r2_inbox_lines(number);
    out->number = number;
    return NULL == out->ring.box ? R2_ERR_NO_MEMORY : R2_OK;
}

r2_status_t r2_outbox_open(const uint8_t *address, size_t bytes, r2_outbox_t *out_p)
{
    r2_outbox_t out = {.head = NULL};
    r2_status_t status = R2_ERR_UNSUPPORTED;
    int fd;

    if (R2_INBOX_ADDRESS_BYTES != bytes || !r2_inbox_is_allowed() ||
        (fd = r2_outbox_find(address)) < 0) {
        return R2_ERR_UNSUPPORTED;
    }
    out.head = r2_inbox_mapping(fd, 0, R2_INBOX_HEAD_BYTES);
    if (NULL != out.head &&
        0 == memcmp(out.head->id, address + 2 * sizeof(uint32_t), R2_INBOX_ID_BYTES)) {
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
