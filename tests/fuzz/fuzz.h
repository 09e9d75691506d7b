/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Fuzz targets: their common form and the reader of inputs.
 */
#ifndef R2_TESTS_FUZZ_H
#define R2_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The one function of a target (libFuzzer's name); linked with libFuzzer or with replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/** What is left of an input. Reading past the end gives zeros. */
typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input_t;

static inline void fuzz_take(fuzz_input_t *input, void *to, size_t bytes)
{
    size_t there = bytes < input->left ? bytes : input->left;

    memset(to, 0, bytes);
    if (there > 0) {
        memcpy(to, input->at, there);
    }
    input->at += there;
    input->left -= there;
}

static inline uint8_t fuzz_u8(fuzz_input_t *input)
{
    uint8_t value;

    fuzz_take(input, &value, sizeof(value));
    return value;
}

static inline uint32_t fuzz_u32(fuzz_input_t *input)
{
    uint32_t value;

    fuzz_take(input, &value, sizeof(value));
    return value;
}

static inline uint64_t fuzz_u64(fuzz_input_t *input)
{
    uint64_t value;

    fuzz_take(input, &value, sizeof(value));
    return value;
}

/** An invariant: ends the process with its text, which both libFuzzer and the replay report. */
#define fuzz_check(condition)                                                       \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

#endif
