/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Keys to registered memory, as they travel in handles of one-sided communication. Plain value.
 */
#ifndef R2_TP_KEY_H
#define R2_TP_KEY_H

#include <assert.h>
#include <stdint.h>

#define R2_TP_KEY_MAX 12 /* bytes of a key to granted memory */

/** A key to memory as others are told of it. Zeros are no key. */
typedef struct r2_tp_key {
    uint64_t domain; /* the device as it was opened once, by which process: random, not 0 */
    uint32_t bytes;  /* of the key */
    uint8_t key[R2_TP_KEY_MAX];
} r2_tp_key_t;
static_assert(24 == sizeof(r2_tp_key_t), "it travels in handles of one-sided communication");

#endif
