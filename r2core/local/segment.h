/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Segments: memory that the members of a communicator on one host share for its collectives.
 *
 * A shared file (local/shared.h), made by one member and opened by the others. Its size grows with
 * the members and not with their square:
 *
 *   page 0          the id
 *   then, each      a member's page (r2_member_t) and its short slots
 *   then, each      a member's long slots, which get memory when there are long calls
 *
 * A member writes into its own part only. What it wrote there says by numbers how far it has come,
 * so that nobody waits for a lock. They have 64 bits: who never gives anything may be farther
 * behind than 32 bits tell.
 */
#ifndef R2_LOCAL_SEGMENT_H
#define R2_LOCAL_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/util.h"
#include "local/shared.h"

#define R2_SEGMENT_LINE       64u
#define R2_SEGMENT_LINES      16u /* slots of one line of a member, one for each call in turn */
#define R2_SEGMENT_LINE_BYTES 48u /* of data in one */
#define R2_SEGMENT_SLOTS      4u  /* short slots, the same */
#define R2_SEGMENT_LONG_SLOTS 4u  /* the same of long calls, one for each piece */
#define R2_SEGMENT_DIGESTS    32u /* more calls than a member can be ahead of another one */
#define R2_SEGMENT_WITHDRAWN  1u  /* for an address: the call has failed, its memory is in use */

/** A short slot, or a line. In shared memory. */
typedef struct r2_slot {
    _Alignas(16) _Atomic uint64_t number; /* of the call; written last */
    uint32_t digest;
    uint32_t unused; /* data is aligned to any element */
    unsigned char data[];
} r2_slot_t;

/** What a member says of itself. In shared memory: zeros at first. Each line has one writer but the
 * last one. */
typedef struct r2_member {
    /* calls of the communicator of any kind that it began << 32 | of these in the segment */
    _Alignas(R2_SEGMENT_LINE) _Atomic uint64_t begun;
    _Atomic uint64_t done; /* calls in the segment that it has finished */
    _Alignas(R2_SEGMENT_LINE) _Atomic uint32_t digests[R2_SEGMENT_DIGESTS]; /* by call */
    /* of exchanges, where its data is in its own memory; 0: in slots; or R2_SEGMENT_WITHDRAWN */
    _Alignas(R2_SEGMENT_LINE) _Atomic uint64_t sources[R2_SEGMENT_DIGESTS];
    _Alignas(R2_SEGMENT_LINE) _Atomic uint64_t given; /* pieces that it has put into its slots */
    _Atomic uint64_t given_again; /* the same, of what a member could not read from where it is */
    _Alignas(R2_SEGMENT_LINE) _Atomic uint64_t folded; /* pieces of which its share is reduced */
    _Alignas(R2_SEGMENT_LINE) _Atomic uint64_t taken;  /* pieces with which it has finished */
    _Atomic uint64_t refused; /* the newest exchange in which it could not read members' memory */
    _Alignas(R2_SEGMENT_LINE) _Atomic uint32_t sleepers; /* members that sleep until it writes */
    _Atomic uint32_t bell;                               /* on which they sleep */
    _Alignas(R2_SEGMENT_LINE) unsigned char lines[R2_SEGMENT_LINES * R2_SEGMENT_LINE];
} r2_member_t;

/** One process's view. One thread at a time. */
typedef struct r2_segment {
    char *memory; /* owned: a mapping of all of it */
    size_t bytes;
    int fd;                    /* owned: until all members have opened it */
    int32_t size, rank;        /* members, and which of them this is */
    size_t slot_bytes;         /* of data in a short slot */
    size_t slot_stride;        /* from one short slot to the next, bytes */
    size_t piece_bytes;        /* of a long slot */
    size_t stride, long_start; /* of a member's first part; of the first long slot, bytes */
    bool grown;                /* there is memory for this member's long slots */
    char *scratch;             /* owned: of two pieces, for this member alone; NULL: not grown */
} r2_segment_t;

/** Sizes of a segment that is not there yet. */
void r2_segment_lay_out(r2_segment_t *segment, int32_t size, int32_t rank);
/**
 * Makes a segment, with memory for this member's page and short slots.
 * @param address_p R2_SHARED_ADDRESS_BYTES, for the other members.
 * @return R2_OK, R2_ERR_SYSTEM (errno), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_segment_create(r2_segment_t *segment, int32_t size, int32_t rank,
                              uint8_t *address_p);
/** The same for one that another member made. @return R2_OK, R2_ERR_UNSUPPORTED (it cannot be
 * reached), R2_ERR_NO_MEMORY. */
r2_status_t r2_segment_open(r2_segment_t *segment, int32_t size, int32_t rank,
                            const uint8_t *address);
/** All members have opened it: gives the descriptor back. */
void r2_segment_settle(r2_segment_t *segment);
/** Gets memory for this member's long slots, if it has none. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_segment_grow(r2_segment_t *segment);
/** Also for one that is laid out only, or could not be opened. */
void r2_segment_close(r2_segment_t *segment);

static inline r2_member_t *r2_segment_member(const r2_segment_t *segment, int32_t member)
{
    return (r2_member_t *) (void *) (segment->memory + R2_SHARED_PAGE +
                                     (size_t) member * segment->stride);
}

/** The slot of a call: a line if that is enough for what each member gives. */
static inline r2_slot_t *r2_segment_slot(const r2_segment_t *segment, int32_t member, uint64_t call,
                                         bool line)
{
    r2_member_t *page = r2_segment_member(segment, member);
    unsigned char *slots = (unsigned char *) page + R2_SHARED_PAGE;

    return line ? (r2_slot_t *) (void *) &page->lines[call % R2_SEGMENT_LINES * R2_SEGMENT_LINE]
                : (r2_slot_t *) (void *) (slots + call % R2_SEGMENT_SLOTS * segment->slot_stride);
}

/** The long slot of a piece. */
static inline char *r2_segment_piece(const r2_segment_t *segment, int32_t member, uint64_t piece)
{
    return segment->memory + segment->long_start +
           ((size_t) member * R2_SEGMENT_LONG_SLOTS + piece % R2_SEGMENT_LONG_SLOTS) *
               segment->piece_bytes;
}

/** True if a member has come as far as a number, or farther. */
static inline bool r2_segment_has(const _Atomic uint64_t *at, uint64_t number)
{
    return atomic_load_explicit(at, memory_order_acquire) >= number;
}

#endif
