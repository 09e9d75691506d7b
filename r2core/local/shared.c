/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Shared files: made, found, mapped.
 */
#include "r2_config.h"

#include "local/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/util.h"

#define R2_SHARED_NAME_BYTES 80u /* "r2-", the kind, "-", the id in hexadecimal */

#define R2_SHARED_PART_BYTES (128u << 10)

#ifndef MFD_NOEXEC_SEAL
#    define MFD_NOEXEC_SEAL 8u
#endif

/* A limit on the size of files (`ulimit -f`) counts here, too, and kills who exceeds it. */
static bool r2_shared_is_allowed(off_t bytes)
{
    struct rlimit limit;

    if (0 == getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < (rlim_t) bytes) {
        errno = EFBIG;
        return false;
    }
    return true;
}

static void r2_shared_name(const char *kind, const uint8_t *id, char *name_p)
{
    char hex[2 * R2_SHARED_ID_BYTES + 1];

    sodium_bin2hex(hex, sizeof(hex), id, R2_SHARED_ID_BYTES);
    snprintf(name_p, R2_SHARED_NAME_BYTES, "r2-%s-%s", kind, hex);
}

static int r2_shared_file(const char *name)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL); /* sysctl vm.memfd_noexec may want it */

    if (fd < 0 && EINVAL == errno) {
        fd = memfd_create(name, flags); /* before Linux 6.3 */
    }
    return fd;
}

/* Nobody can make it shorter: who reads beyond the end would be killed. */
r2_status_t r2_shared_create(const char *kind, off_t bytes, uint8_t *id_p, int *fd_p)
{
    char name[R2_SHARED_NAME_BYTES];
    int fd;

    randombytes_buf(id_p, R2_SHARED_ID_BYTES);
    r2_shared_name(kind, id_p, name);
    fd = r2_shared_is_allowed(bytes) ? r2_fd_keep(r2_shared_file(name)) : -1;
    if (fd < 0) {
        return R2_ERR_SYSTEM;
    }
    if (0 != ftruncate(fd, bytes) ||
        0 != fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        r2_fd_close(fd);
        return R2_ERR_SYSTEM;
    }
    *fd_p = fd;
    return R2_OK;
}

void r2_shared_address(int fd, const uint8_t *id, uint8_t *to)
{
    const uint32_t numbers[] = {(uint32_t) getpid(), (uint32_t) fd};

    memcpy(to, numbers, sizeof(numbers));
    memcpy(to + sizeof(numbers), id, R2_SHARED_ID_BYTES);
}

/* What has this number may be anything of any process, if it is of another namespace: its name
 * tells, before it is opened. */
int r2_shared_open(const char *kind, const uint8_t *address, off_t bytes)
{
    char path[64], name[128], wanted[R2_SHARED_NAME_BYTES + 8] = "/memfd:";
    uint32_t numbers[2];
    ssize_t length;

    memcpy(numbers, address, sizeof(numbers));
    r2_shared_name(kind, r2_shared_id(address), wanted + strlen(wanted));
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", numbers[0], numbers[1]);
    length = readlink(path, name, sizeof(name) - 1);
    if (length < (ssize_t) strlen(wanted) || 0 != strncmp(name, wanted, strlen(wanted)) ||
        !r2_shared_is_allowed(bytes)) {
        return -1;
    }
    return r2_fd_keep(open(path, O_RDWR | O_CLOEXEC));
}

/* A signal interrupts it, and what is there of this part is given back: so in parts that are there
 * before the next signal of a program that is profiled. */
r2_status_t r2_shared_allocate(int fd, off_t offset, size_t bytes)
{
    const off_t end = offset + (off_t) bytes;
    int error = 0;

    while (offset < end && 0 == error) {
        const off_t part = r2_min(end - offset, (off_t) R2_SHARED_PART_BYTES);

        error = posix_fallocate(fd, offset, part);
        if (0 == error) {
            offset += part;
        } else if (EINTR == error) {
            error = 0;
        }
    }
    errno = error;
    return 0 == error ? R2_OK : R2_ERR_NO_MEMORY;
}

void *r2_shared_map(int fd, off_t offset, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

    if (MAP_FAILED == memory) {
        return NULL;
    }
    (void) madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}
