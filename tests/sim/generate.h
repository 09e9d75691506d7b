/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Draws scenarios from a seed.
 */
#ifndef TESTS_SIM_GENERATE_H
#define TESTS_SIM_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#define GENERATE_BYTES 8192

/** Writes a scenario; the same seed gives the same text. @param text_p GENERATE_BYTES. */
void generate_scenario(uint64_t seed, char *text_p);

#endif
