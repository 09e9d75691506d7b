/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whose allocations fail.
 */
#include "r2_config.h"

#include "sim_memory.h"

#include <string.h>

#include "r2/prng.h"
#include "scenario.h"

static struct {
    struct {
        uint32_t ppm;
        uint64_t least;
    } ranks[SCENARIO_RANKS_MAX];
    volatile bool inside; /* a rank's code runs */
    uint32_t rank;
    uint64_t failed;
    r2_prng_t prng;
} memory;

void sim_memory_begin(uint64_t seed)
{
    memset(&memory, 0, sizeof(memory));
    r2_prng_seed(&memory.prng, seed * 31 + 7);
}

void sim_memory_limit(uint32_t rank, uint32_t ppm, uint64_t least)
{
    memory.ranks[rank].ppm = ppm;
    memory.ranks[rank].least = least;
}

bool sim_memory_is_short(uint32_t rank)
{
    return memory.ranks[rank].ppm > 0;
}

void sim_memory_enter(uint32_t rank)
{
    memory.inside = true;
    memory.rank = rank;
}

void sim_memory_leave(void)
{
    memory.inside = false;
}

bool sim_memory_fails(size_t bytes)
{
    bool fails = memory.inside && !r2_sim_takes_memory &&
                 bytes >= memory.ranks[memory.rank].least &&
                 r2_prng_chance(&memory.prng, memory.ranks[memory.rank].ppm);

    memory.failed += fails;
    return fails;
}

uint64_t sim_memory_failed(void)
{
    return memory.failed;
}
