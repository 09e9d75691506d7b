/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parts of the generator of scenarios.
 */
#ifndef TESTS_SIM_GENERATE_PARTS_H
#define TESTS_SIM_GENERATE_PARTS_H

#include <stdbool.h>

#include "base/util.h"
#include "generate.h"
#include "r2/prng.h"

typedef struct draw {
    uint64_t seed;
    r2_prng_t prng;
    /* a stream for each kind of unhelpful peer: draws of others stay */
    r2_prng_t axis[GENERATE_AXES];
    uint32_t active; /* axes that this scenario has: bits */
    bool sound;      /* nothing is broken */
    bool lossy;      /* calls get lost and come seconds later */
    char *text;
    size_t used;
    uint32_t hosts, ppn, rails, rails_least; /* that every host has */
    uint64_t span_ns;                        /* faults happen within it */
    uint64_t last_ns;                        /* of the faults so far */
    uint32_t axes;                           /* GENERATE_*: unhelpful peers that may be drawn */
    bool free_order; /* an algorithm whose order of reduction depends on hosts and their rails */
} draw_t;

/* generate.c: one statement */
void draw_say(draw_t *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** A number in [low, high]. */
static inline uint64_t draw_pick(draw_t *d, uint64_t low, uint64_t high)
{
    return r2_prng_between(&d->prng, low, high);
}

static inline bool draw_chance(draw_t *d, uint32_t percent)
{
    return r2_prng_chance(&d->prng, percent * 10000);
}

/** A number between low and high with equal chances for each power of two. */
static inline uint64_t draw_pick_wide(draw_t *d, uint64_t low, uint64_t high)
{
    uint64_t top = high;

    while (top / 2 >= low && 0 != top && draw_chance(d, 70)) {
        top /= 2;
    }
    return draw_pick(d, low, r2_max(low, top));
}

/* generate_unhelpful.c */
/** What holds from the start; decides whether anything is broken, too. */
void draw_unhelpful_begin(draw_t *d);
/** Between two collectives of the program. */
void draw_unhelpful_steps(draw_t *d);
/** What happens to processes and listeners, and what is expected. */
void draw_unhelpful_end(draw_t *d);

#endif
