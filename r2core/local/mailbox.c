/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Mailbox: a ring of records in shared memory.
 */
#include "r2_config.h"

#include "local/mailbox.h"

#include "base/util.h"

#define R2_MAILBOX_SKIP UINT32_MAX /* in place of a length: the next record is at the start */
#define R2_MAILBOX_HEAD 8u         /* the length, and what aligns the record */

static unsigned char *r2_mailbox_line(r2_mailbox_t *box, uint32_t lines, uint32_t number)
{
    return &box->lines[(size_t) (number & (lines - 1)) * R2_MAILBOX_LINE];
}

/* The first word of a line. */
static _Atomic uint32_t *r2_mailbox_word(r2_mailbox_t *box, uint32_t lines, uint32_t number)
{
    return (_Atomic uint32_t *) (void *) r2_mailbox_line(box, lines, number);
}

static uint32_t r2_mailbox_lines_of(uint32_t bytes)
{
    return (bytes + R2_MAILBOX_HEAD + R2_MAILBOX_LINE - 1) / R2_MAILBOX_LINE;
}

/* Lines from this one to the end of the ring. */
static uint32_t r2_mailbox_to_end(uint32_t lines, uint32_t number)
{
    return lines - (number & (lines - 1));
}

size_t r2_mailbox_bytes(uint32_t lines)
{
    return sizeof(r2_mailbox_t) + (size_t) lines * R2_MAILBOX_LINE;
}

uint32_t r2_mailbox_record_max(uint32_t lines)
{
    return (lines / 4 + 1) * R2_MAILBOX_LINE - R2_MAILBOX_HEAD;
}

static bool r2_mailbox_has_room(r2_mailbox_out_t *out, uint32_t wanted)
{
    if (out->lines - (out->at - out->released) >= wanted) {
        return true;
    }
    out->released = atomic_load_explicit(&out->box->released, memory_order_acquire);
    return out->lines - (out->at - out->released) >= wanted;
}

void *r2_mailbox_reserve(r2_mailbox_out_t *out, uint32_t bytes)
{
    const uint32_t wanted = r2_mailbox_lines_of(bytes);
    const uint32_t left = r2_mailbox_to_end(out->lines, out->at);

    r2_assert(0 < bytes && bytes <= r2_mailbox_record_max(out->lines));
    if (!r2_mailbox_has_room(out, wanted <= left ? wanted : left + wanted)) {
        return NULL;
    }
    if (wanted > left) {
        atomic_store_explicit(r2_mailbox_word(out->box, out->lines, out->at), R2_MAILBOX_SKIP,
                              memory_order_release);
        out->at += left;
    }
    out->reserved = bytes;
    return r2_mailbox_line(out->box, out->lines, out->at) + R2_MAILBOX_HEAD;
}

void r2_mailbox_commit(r2_mailbox_out_t *out)
{
    atomic_store_explicit(r2_mailbox_word(out->box, out->lines, out->at), out->reserved,
                          memory_order_release);
    out->at += r2_mailbox_lines_of(out->reserved);
}

/* Nothing that is left in these lines can be taken for a length. */
static void r2_mailbox_give_back(r2_mailbox_in_t *in, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        atomic_store_explicit(r2_mailbox_word(in->box, in->lines, in->at + i), 0,
                              memory_order_relaxed);
    }
    in->at += count;
    atomic_store_explicit(&in->box->released, in->at, memory_order_release);
}

r2_status_t r2_mailbox_peek(r2_mailbox_in_t *in, const void **record_p, uint32_t *bytes_p)
{
    const uint32_t left = r2_mailbox_to_end(in->lines, in->at);
    _Atomic uint32_t *word = r2_mailbox_word(in->box, in->lines, in->at);
    uint32_t bytes = atomic_load_explicit(word, memory_order_acquire);

    if (R2_MAILBOX_SKIP == bytes && left < in->lines) {
        r2_mailbox_give_back(in, left);
        word = r2_mailbox_word(in->box, in->lines, in->at);
        bytes = atomic_load_explicit(word, memory_order_acquire);
    }
    if (0 == bytes) {
        return R2_IN_PROGRESS;
    }
    if (bytes > r2_mailbox_record_max(in->lines) ||
        r2_mailbox_lines_of(bytes) > r2_mailbox_to_end(in->lines, in->at)) {
        return R2_ERR_WIRE;
    }
    in->held = r2_mailbox_lines_of(bytes);
    *record_p = r2_mailbox_line(in->box, in->lines, in->at) + R2_MAILBOX_HEAD;
    *bytes_p = bytes;
    return R2_OK;
}

void r2_mailbox_release(r2_mailbox_in_t *in)
{
    r2_mailbox_give_back(in, in->held);
    in->held = 0;
}
