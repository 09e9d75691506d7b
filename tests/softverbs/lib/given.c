/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory that an application has got back from whoever let NICs write to it: no NIC may write there
 * any more. The NIC reads this table out of the process, and counts what it writes all the same.
 */
#include "softverbs/lib/lib.h"

static sv_given_t given;

const sv_given_t *sv_lib_given(void)
{
    return &given;
}

/* From now on until it is taken: what a NIC writes there is a late write. A place whose length is 0
 * is free. Called by one thread. Returns whether there was a place. */
int softverbs_give_back(const void *memory, size_t bytes)
{
    for (int i = 0; i < SV_GIVEN; ++i) {
        if (0 == given.of[i].length) {
            given.of[i].addr = (uintptr_t) memory;
            __atomic_store_n(&given.of[i].length, bytes, __ATOMIC_RELEASE);
            return 1;
        }
    }
    return 0;
}

/* NICs may write to memory that begins there. */
void softverbs_take(const void *memory)
{
    for (int i = 0; i < SV_GIVEN; ++i) {
        if (given.of[i].addr == (uintptr_t) memory) {
            __atomic_store_n(&given.of[i].length, 0, __ATOMIC_RELEASE);
        }
    }
}
