/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the ways of data in a GPU's memory cost, and from which length on one is the cheapest.
 *
 * Plain arithmetic: it knows neither driver nor network, and measures nothing.
 */
#ifndef R2_DEVICE_COST_H
#define R2_DEVICE_COST_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Of one process, its GPU and its rails. Zeros: not known, but for what says something else.
 * Times are those from a call until the host knows that what it started has ended, for a few bytes;
 * rates are what each byte more takes.
 */
typedef struct r2_device_rates {
    uint64_t copy_on_ns, copy_off_ns; /* from pinned memory onto the device, and off it */
    uint64_t copy_on_bytes_per_s, copy_off_bytes_per_s;
    uint64_t inside_bytes_per_s; /* within the device's memory: bytes that are copied */
    uint64_t launch_ns;          /* of a kernel that reduces */
    /* bytes of one operand, by such a kernel: the other one comes from pinned memory, and the
     * result goes there */
    uint64_t reduce_bytes_per_s;
    uint64_t host_reduce_bytes_per_s; /* bytes of one operand, by one thread of the processor */
    uint64_t host_copy_bytes_per_s;   /* from one process to another on the host */
    uint64_t message_ns;              /* of a message of a few bytes there */
    uint64_t open_ns;                 /* of memory of a peer's GPU (CUDA IPC); 0: it is open */
    uint64_t peer_bytes_per_s;        /* out of that memory into that of our GPU */
    uint64_t rails_bytes_per_s;       /* of all rails together, as plans have it */
    uint64_t nic_bytes_per_s; /* that NICs read of the GPU's memory: the way between; 0: no bound */
} r2_device_rates_t;

/** Ways of a message's data, or of a piece of a reduction. */
typedef enum r2_device_way {
    R2_DEVICE_REDUCE_HOST,  /* the processor reduces, the GPU's copy engine loads */
    R2_DEVICE_REDUCE_GPU,   /* a kernel does */
    R2_DEVICE_STAGED_HOST,  /* to a process of the same host: off, across, and onto the other GPU */
    R2_DEVICE_PEER,         /* the receiver reads the sender's GPU (CUDA IPC) */
    R2_DEVICE_STAGED_RAILS, /* to another host: off, over the rails, and onto the other GPU */
    R2_DEVICE_NIC,          /* NICs read and write the GPUs' memory */
    R2_DEVICE_WAY_COUNT
} r2_device_way_t;

/**
 * The time of a way. Copies, rails and kernels of different pieces overlap, and so do pieces of one
 * message where it is staged in pieces (r2_device_piece()): then the slowest part counts for all
 * pieces but the first, which passes through all of them.
 * @param bytes of the message, or of one operand of the piece
 * @return seconds; INFINITY: a rate that it needs is not known.
 */
double r2_device_cost_s(const r2_device_rates_t *rates, r2_device_way_t way, uint64_t bytes);

/**
 * From which length on a way is cheaper than another one, at that length and at all longer ones.
 * Looked at are powers of two up to R2_DEVICE_NEVER_BYTES: what is measured is no more exact, and
 * processes of one machine come to one answer.
 * @param from_p R2_DEVICE_NEVER_BYTES: the other one is as cheap at any length
 * @return false: a rate is not known that one of them needs.
 */
bool r2_device_from(const r2_device_rates_t *rates, r2_device_way_t way, r2_device_way_t other,
                    uint64_t *from_p);

#define R2_DEVICE_NEVER_BYTES (UINT64_C(1) << 40)

/**
 * From which length on pieces of reductions are the GPU's, by what was measured of it.
 * @param rates       NULL: not all was measured
 * @param measured_ns it took so long
 * @param limit_ns    a job gives up after that, and knows nothing
 * @return at least R2_DEVICE_REDUCE_LEAST_BYTES; R2_DEVICE_REDUCE_USUAL_BYTES where a job does not
 * know it; R2_DEVICE_NEVER_BYTES: none are.
 */
uint64_t r2_device_reduces_from(const r2_device_rates_t *rates, uint64_t measured_ns,
                                uint64_t limit_ns);

enum {
    R2_DEVICE_REDUCE_LEAST_BYTES = 1024, /* shorter ones are the processor's whatever is measured */
    R2_DEVICE_REDUCE_USUAL_BYTES = 32768
};

/**
 * How messages are staged: whole up to R2_DEVICE_WHOLE_BYTES, longer ones in pieces of a sixteenth,
 * within limits.
 * @param align pieces are multiples of it: a power of two of at most R2_DEVICE_LEAST_BYTES
 * @return bytes of a piece; not more than the message.
 */
uint64_t r2_device_piece(uint64_t bytes, uint64_t align);

enum {
    R2_DEVICE_WHOLE_BYTES = 131072,
    R2_DEVICE_PARTS = 16, /* or as many as these allow: */
    R2_DEVICE_LEAST_BYTES = 65536,
    R2_DEVICE_MOST_BYTES = 262144
};

#endif
