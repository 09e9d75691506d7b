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

#define GENERATE_BYTES 16384

/** Kinds of peers that are healthy but unhelpful. */
typedef enum generate_axis {
    GENERATE_STOP,        /* stopped for long, also before the start */
    GENERATE_BACKLOG,     /* short accept queues */
    GENERATE_REFUSE,      /* firewalls on some rails, never on all */
    GENERATE_SLOW,        /* a process that does little */
    GENERATE_COMPUTE,     /* minutes without a call, with much on the way */
    GENERATE_DESCRIPTORS, /* not enough for all lanes */
    GENERATE_MEMORY,      /* allocations fail: errors, but an end */
    GENERATE_AXES
} generate_axis_t;

/** Beside the axes: lanes are reliable connections, and messages are put. */
#define GENERATE_PUTS (1u << GENERATE_AXES)

/** Names of the axes, as the campaign's --unhelpful takes them. */
extern const char *const generate_axis_names[GENERATE_AXES];

/**
 * Writes a scenario; the same arguments give the same text.
 * @param axes one bit for each kind of unhelpful peer that may be drawn; 0: none, and faults are
 * always drawn. Machine, parameters, program and faults are the same with and without. @param
 * text_p GENERATE_BYTES.
 */
void generate_scenario(uint64_t seed, uint32_t axes, char *text_p);

#endif
