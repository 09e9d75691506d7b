/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Mailbox: a ring of records in shared memory, from one process to another. No lock, no system
 * call, no pointer inside.
 *
 * A record begins with a cache line, and its first word says how long it is and that it is there.
 * So a short record is one line, which travels between two caches once:
 *
 *   line   | length u32 | 0 u32 | bytes of the record ...                  |
 *   line   | 0, or bytes of the record                                     |
 *
 * The sender writes the length last. The receiver waits for it, and clears the first word of each
 * line of a record before it gives the lines back: what lies there was data, and must not be taken
 * for a length. A record that would reach beyond the end of the ring begins at its start; the lines
 * that are left over are one record that says so.
 */
#ifndef R2_LOCAL_MAILBOX_H
#define R2_LOCAL_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

#define R2_MAILBOX_LINE 64u

/** In shared memory: zeros at first, at a cache line. */
typedef struct r2_mailbox {
    _Alignas(R2_MAILBOX_LINE) _Atomic uint32_t released; /* lines that the receiver gave back */
    _Atomic uint32_t consumed; /* a count of the receiver's, for the sender */
    _Alignas(R2_MAILBOX_LINE) unsigned char lines[];
} r2_mailbox_t;

/** The sender's end. One thread at a time. */
typedef struct r2_mailbox_out {
    r2_mailbox_t *box; /* borrowed */
    uint32_t lines;    /* of the ring: a power of two */
    uint32_t at;       /* lines written, ever */
    uint32_t released; /* lines given back, as last seen */
    uint32_t reserved; /* bytes of the record that is being written */
} r2_mailbox_out_t;

/** The receiver's end. One thread at a time. */
typedef struct r2_mailbox_in {
    r2_mailbox_t *box; /* borrowed */
    uint32_t lines;
    uint32_t at;   /* lines read, ever */
    uint32_t held; /* lines of the record that is looked at */
} r2_mailbox_in_t;

/** True if there is nothing to be read. */
static inline bool r2_mailbox_is_empty(const r2_mailbox_in_t *in)
{
    const unsigned char *line =
        &in->box->lines[(size_t) (in->at & (in->lines - 1)) * R2_MAILBOX_LINE];

    return 0 == atomic_load_explicit((const _Atomic uint32_t *) (const void *) line,
                                     memory_order_acquire);
}

/** Bytes of a mailbox. @param lines a power of two, up to 2^20. */
size_t r2_mailbox_bytes(uint32_t lines);
/** The longest record: a quarter of the ring and a line, so that what is left over at the end of
 * the ring always leaves room. */
uint32_t r2_mailbox_record_max(uint32_t lines);

/**
 * Room for a record, to be written and committed.
 * @param bytes 1 .. r2_mailbox_record_max().
 * @return aligned to 8 bytes; NULL: there is none until the receiver reads.
 */
void *r2_mailbox_reserve(r2_mailbox_out_t *out, uint32_t bytes);
/** The record is complete: the receiver sees it. */
void r2_mailbox_commit(r2_mailbox_out_t *out);

/**
 * The next record; the same until it is released.
 * @param record_p of bytes_p bytes, in the ring. Never trusts the other end beyond that.
 * @return R2_OK, R2_IN_PROGRESS (there is none), R2_ERR_WIRE (what is there is no record).
 */
r2_status_t r2_mailbox_peek(r2_mailbox_in_t *in, const void **record_p, uint32_t *bytes_p);
/** Gives the record back that r2_mailbox_peek() gave. */
void r2_mailbox_release(r2_mailbox_in_t *in);

#endif
