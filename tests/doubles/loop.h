/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Exchange driver for many ranks in one process: tests and simulation.
 */
#ifndef R2_DOUBLES_LOOP_H
#define R2_DOUBLES_LOOP_H

#include "oob/oob.h"

typedef struct r2_oob_loop r2_oob_loop_t;

/**
 * One job of `size` ranks.
 * @param key job key, R2_JOB_KEY_BYTES, copied.
 * @return NULL: out of memory.
 */
r2_oob_loop_t *r2_oob_loop_create(uint32_t size, const uint8_t *key);
void r2_oob_loop_destroy(r2_oob_loop_t *loop);

/** The driver of one rank. Valid until r2_oob_loop_destroy(). */
r2_oob_t r2_oob_loop_rank(r2_oob_loop_t *loop, uint32_t rank);

/** Bytes that the ranks published: in all, and the most of one. */
void r2_oob_loop_published(const r2_oob_loop_t *loop, uint64_t *all_p, uint64_t *most_p);

#endif
