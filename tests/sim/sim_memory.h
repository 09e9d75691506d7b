/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes of a simulated job that have too little memory.
 */
#ifndef TESTS_SIM_MEMORY_H
#define TESTS_SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Only programs that are linked with memory_wrap.c and -Wl,--wrap= of malloc, calloc, realloc and
 * aligned_alloc see it; elsewhere memory never runs out. One job at a time.
 */

/** Forgets all limits. */
void sim_memory_begin(uint64_t seed);
/** Of the allocations of a rank, of `least` bytes or more, `ppm` parts per million fail; 0:
 * none. */
void sim_memory_limit(uint32_t rank, uint32_t ppm, uint64_t least);
/** @return some allocations of this rank fail. */
bool sim_memory_is_short(uint32_t rank);
/** What is allocated from now on is this rank's; until sim_memory_leave(). */
void sim_memory_enter(uint32_t rank);
void sim_memory_leave(void);
/** For memory_wrap.c. @return true: the allocation fails. */
bool sim_memory_fails(size_t bytes);
/** Allocations that failed since sim_memory_begin(). */
uint64_t sim_memory_failed(void);

#endif
