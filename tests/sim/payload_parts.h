/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the files of payloads share.
 */
#ifndef TESTS_SIM_PAYLOAD_PARTS_H
#define TESTS_SIM_PAYLOAD_PARTS_H

#include "payload.h"

/* payload.c */
uint64_t payload_mix(uint64_t a, uint64_t b);
/** Elements `first` .. of a rank's contribution. */
void payload_put(const payload_call_t *call, int32_t rank, uint64_t first, uint64_t count,
                 uint8_t *at);
/** inout = in OP inout. */
void payload_reduce(const payload_call_t *call, const uint8_t *in, uint8_t *inout, uint64_t count);

/* payload_kinds.c: prefix sums, rooted and personalised collectives */
bool payload_by_edges(r2_coll_kind_t kind);
bool payload_edges_init(payload_call_t *call);
void payload_edges_fini(payload_call_t *call);
/** Elements, as if nothing were in place. */
payload_shape_t payload_kind_shape(const payload_call_t *call, int32_t rank);
/** Element of OUT where a contribution in place begins. */
uint64_t payload_kind_place(const payload_call_t *call, int32_t rank);
/**
 * Writes a rank's result over what was there before the call; not for sums of doubles.
 * @return false: out of memory.
 */
bool payload_kind_expect(const payload_call_t *call, int32_t rank, uint8_t *expected);

#endif
