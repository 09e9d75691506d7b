/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers of one message size: filled before each iteration and checked after it.
 */
#ifndef R2_BENCH_PAYLOAD_H
#define R2_BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "calls.h"
#include "data.h"
#include "options.h"
#include "task.h"

/** Memory with a guard on both sides. That of a GPU has a copy in the host's, which is filled and
 * checked. */
typedef struct r2_bench_buffer {
    unsigned char *memory; /* owned */
    unsigned char *data;   /* borrowed: inside memory */
    unsigned char *given;  /* borrowed: what MPI gets for data */
    void *gpus;            /* owned: as long as memory, or NULL */
    size_t bytes;          /* of data */
} r2_bench_buffer_t;

/** One message size on one rank. */
typedef struct r2_bench_payload {
    const r2_bench_task_t *task;       /* borrowed: static */
    const r2_bench_options_t *options; /* borrowed: outlives the payload */
    const r2_bench_data_t *data;       /* borrowed: outlives the payload */
    r2_bench_buffer_t send;
    r2_bench_buffer_t recv;
    r2_bench_call_t call; /* arguments of this iteration */
    r2_bench_shape_t shape;
    int *numbers;        /* owned: counts, displacements and offsets of call */
    MPI_Datatype *types; /* owned: of call */
    size_t slots;      /* buffers of messages that are under way at a time: all that are checked */
    size_t elements;   /* of the message size, in all slots */
    size_t size_bytes; /* message size as OSU counts it */
    int rank;
    int complaints;  /* wrong results described so far */
    uint64_t wrong;  /* iterations with a wrong result on this rank */
    uint64_t digest; /* of the results on this rank */
} r2_bench_payload_t;

/**
 * Allocates for @p bytes of the message size.
 * @return NULL, or what is wrong: no memory, or more elements than MPI can count.
 */
const char *r2_bench_payload_init(r2_bench_payload_t *payload, const r2_bench_task_t *task,
                                  const r2_bench_options_t *options, const r2_bench_data_t *data,
                                  int rank, size_t bytes);

/** Bytes of the buffers of the process that has the most. */
size_t r2_bench_payload_bytes(const r2_bench_kind_t *kind, const r2_bench_options_t *options,
                              int ranks, size_t bytes);

/** Releases what init allocated. */
void r2_bench_payload_fini(r2_bench_payload_t *payload);

/** Before iteration @p turn: sets the arguments of the call. */
void r2_bench_payload_turn(r2_bench_payload_t *payload, uint64_t turn);

/** Before iteration @p turn that is checked: fills the send buffer, poisons the receive buffer. */
void r2_bench_payload_prepare(r2_bench_payload_t *payload, uint64_t turn);

/** After iteration @p turn: checks (-c) and hashes (--digest) the result; describes what is
 * wrong. */
void r2_bench_payload_check(r2_bench_payload_t *payload, uint64_t turn);

/** Something is wrong with iteration @p turn: says so. The caller counts it. */
void r2_bench_payload_complain(r2_bench_payload_t *payload, uint64_t turn, const char *text);

#endif
