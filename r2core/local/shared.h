/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Files that processes of a host share as memory: made by one, found by the others.
 *
 * Each is a memfd: no name in any folder, no limit but that of memory, and gone with its last user,
 * however that ends. Others reach it through /proc/PID/fd/N, which the kernel allows where it
 * allows to read the process's memory.
 */
#ifndef R2_LOCAL_SHARED_H
#define R2_LOCAL_SHARED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "r2/status.h"

#define R2_SHARED_PAGE          4096u
#define R2_SHARED_ID_BYTES      16u
#define R2_SHARED_ADDRESS_BYTES (8u + R2_SHARED_ID_BYTES)

/**
 * Makes a file. Nobody can make it shorter or longer, and no page of it is there yet.
 * @param kind part of its name, shorter than 32. @param id_p random, R2_SHARED_ID_BYTES: this is
 * the one.
 * @param fd_p to be given to r2_fd_close(). @return R2_OK, R2_ERR_SYSTEM (errno).
 */
r2_status_t r2_shared_create(const char *kind, off_t bytes, uint8_t *id_p, int *fd_p);

/** Where others find it. @param to R2_SHARED_ADDRESS_BYTES bytes. */
void r2_shared_address(int fd, const uint8_t *id, uint8_t *to);

/**
 * Opens a file of another process.
 * @param address R2_SHARED_ADDRESS_BYTES. @param bytes what it has.
 * @return a descriptor for r2_fd_close(); -1: it is not there, or not for this process.
 */
int r2_shared_open(const char *kind, const uint8_t *address, off_t bytes);

/** The id in an address. */
static inline const uint8_t *r2_shared_id(const uint8_t *address)
{
    return address + 2 * sizeof(uint32_t);
}

/** Gives pages to a part of a file. @return R2_OK, R2_ERR_NO_MEMORY (errno). */
r2_status_t r2_shared_allocate(int fd, off_t offset, size_t bytes);

/** Maps a part of a file, of which children have nothing. @return NULL: no memory. */
void *r2_shared_map(int fd, off_t offset, size_t bytes);

/** Rounds up to whole pages. */
static inline size_t r2_shared_pages(size_t bytes)
{
    return (bytes + R2_SHARED_PAGE - 1) / R2_SHARED_PAGE * R2_SHARED_PAGE;
}

#endif
