/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement: whatever the order of completion, all ranks map sync before the same calls.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "health/agreement.h"
#include "r2/prng.h"

#define CALLS 400u

typedef struct program {
    bool carrying[CALLS], blocking[CALLS], is_long[CALLS], outcome[CALLS];
} program_t;

static void draw_program(r2_prng_t *prng, program_t *program)
{
    uint64_t kinds = r2_prng_below(prng, 3); /* all blocking, all nonblocking, both */
    uint64_t map_pending = 1 + r2_prng_below(prng, 30);

    for (uint32_t i = 0; i < CALLS; ++i) {
        program->carrying[i] = r2_prng_below(prng, 5) > 0;
        program->blocking[i] = 0 == kinds || (2 == kinds && r2_prng_below(prng, 2) > 0);
        program->is_long[i] = 0 == r2_prng_below(prng, 4);
        program->outcome[i] = program->carrying[i] && 0 == r2_prng_below(prng, map_pending);
    }
}

/* One rank: starts and completes calls in an order of its own, as far as MPI allows. */
static void run_rank(r2_prng_t *prng, const program_t *program, bool *syncs_p)
{
    r2_agreement_t agreement;
    bool open[CALLS] = {false};
    uint32_t next = 0, under_way = 0;

    memset(&agreement, 0, sizeof(agreement));
    memset(syncs_p, 0, CALLS * sizeof(*syncs_p));
    while (next < CALLS || under_way > 0) {
        bool must_wait = next > 0 && program->blocking[next - 1] && open[next - 1];
        uint32_t pick;

        if (next < CALLS && !must_wait && r2_agreement_ready(&agreement) &&
            r2_prng_below(prng, 2) > 0) {
            uint64_t number =
                r2_agreement_start(&agreement, program->carrying[next], program->blocking[next],
                                   program->is_long[next], &syncs_p[next]);

            assert_int_equal(number, next);
            open[next++] = true;
            ++under_way;
            continue;
        }
        if (0 == under_way) {
            assert_true(r2_agreement_ready(&agreement));
            continue;
        }
        do {
            pick = (uint32_t) r2_prng_below(prng, next);
        } while (!open[pick]);
        open[pick] = false;
        --under_way;
        r2_agreement_complete(&agreement, pick, program->outcome[pick]);
    }
}

static void all_ranks_sync_before_the_same_calls(void **state)
{
    r2_prng_t prng;
    program_t program;
    bool first[CALLS], other[CALLS];
    uint32_t syncs = 0;

    (void) state;
    r2_prng_seed(&prng, 20);
    for (uint32_t run = 0; run < 300; ++run) {
        draw_program(&prng, &program);
        run_rank(&prng, &program, first);
        for (uint32_t rank = 0; rank < 4; ++rank) {
            run_rank(&prng, &program, other);
            assert_memory_equal(first, other, sizeof(first));
        }
        for (uint32_t i = 0; i < CALLS; ++i) {
            syncs += first[i];
            assert_false(first[i] && !program.carrying[i]);
        }
    }
    assert_true(syncs > 1000);
}

/* ---- all interleavings of starting and completing, for programs of a few calls */

#define FEW      11u /* more than R2_AGREEMENT_AHEAD, so that outcomes leave the window */
#define COMPLETE (1u << FEW)

/** What a rank can have done: calls 0 .. next - 1 started, those of the mask complete. */
typedef struct few {
    bool carrying[FEW], blocking[FEW], outcome[FEW];
    bool seen[FEW + 1][COMPLETE];
    r2_agreement_t reached[FEW + 1][COMPLETE]; /* equal whichever way led there */
    int sync[FEW];                             /* -1: not started yet */
    uint32_t states, ends;
} few_t;

static void few_visit(few_t *few, uint32_t next, uint32_t mask, const r2_agreement_t *agreement)
{
    const bool must_wait = next > 0 && few->blocking[next - 1] && 0 == (mask >> (next - 1) & 1);
    bool moved = false;

    if (few->seen[next][mask]) {
        assert_memory_equal(&few->reached[next][mask], agreement, sizeof(*agreement));
        return;
    }
    few->seen[next][mask] = true;
    few->reached[next][mask] = *agreement;
    ++few->states;
    if (next < FEW && !must_wait && r2_agreement_ready(agreement)) {
        r2_agreement_t after = *agreement;
        bool sync;

        assert_int_equal(next, r2_agreement_start(&after, few->carrying[next], few->blocking[next],
                                                  0 == next % 3, &sync));
        assert_true(few->sync[next] < 0 || few->sync[next] == sync);
        few->sync[next] = sync;
        few_visit(few, next + 1, mask, &after);
        moved = true;
    }
    for (uint32_t i = 0; i < next; ++i) {
        if (0 == (mask >> i & 1)) {
            r2_agreement_t after = *agreement;

            r2_agreement_complete(&after, i, few->outcome[i]);
            few_visit(few, next, mask | 1u << i, &after);
            moved = true;
        }
    }
    few->ends += FEW == next && COMPLETE - 1 == mask;
    assert_true(moved || FEW == next); /* nobody waits for ever */
}

/* Bits of the three numbers: what each call is. @return map syncs. */
static uint32_t few_run(few_t *few, uint32_t carrying, uint32_t blocking, uint32_t outcome)
{
    const r2_agreement_t fresh = {0};
    uint32_t syncs = 0, since = UINT32_MAX;

    memset(few->seen, 0, sizeof(few->seen));
    few->ends = 0;
    for (uint32_t i = 0; i < FEW; ++i) {
        few->carrying[i] = 0 != (carrying >> i & 1);
        few->blocking[i] = 0 != (blocking >> i & 1);
        few->outcome[i] = few->carrying[i] && 0 != (outcome >> i & 1);
        few->sync[i] = -1;
    }
    few_visit(few, 0, 0, &fresh);
    assert_int_equal(few->ends, 1);
    for (uint32_t i = 0; i < FEW; ++i) {
        assert_true(!few->sync[i] || few->carrying[i]);
        /* a map sync answers an outcome of a blocking call, or of one that left the window */
        for (uint32_t k = 0; 0 == syncs && few->sync[i] && k < i; ++k) {
            if (few->outcome[k] && (few->blocking[k] || k + R2_AGREEMENT_AHEAD <= i)) {
                since = r2_min(since, k);
            }
        }
        syncs += few->sync[i];
        assert_true(0 == syncs || since < i);
    }
    return syncs;
}

static void every_interleaving_syncs_before_the_same_calls(void **state)
{
    few_t *few = calloc(1, sizeof(*few));
    uint32_t syncs = 0;
    r2_prng_t prng;

    (void) state;
    assert_non_null(few);
    r2_prng_seed(&prng, 7);
    for (uint32_t outcome = 0; outcome < COMPLETE; outcome += 31) {
        syncs += few_run(few, COMPLETE - 1, 0, outcome);            /* all nonblocking */
        syncs += few_run(few, COMPLETE - 1, COMPLETE - 1, outcome); /* all blocking */
    }
    for (uint32_t run = 0; run < 150; ++run) {
        syncs += few_run(few, (uint32_t) r2_prng_below(&prng, COMPLETE),
                         (uint32_t) r2_prng_below(&prng, COMPLETE),
                         (uint32_t) r2_prng_below(&prng, COMPLETE));
    }
    assert_true(syncs > 200);
    assert_true(few->states > 50000);
    free(few);
}

static void a_blocking_outcome_counts_at_the_next_call(void **state)
{
    r2_agreement_t agreement = {0};
    bool sync = true;

    (void) state;
    assert_int_equal(r2_agreement_start(&agreement, true, true, false, &sync), 0);
    assert_false(sync);
    assert_false(r2_agreement_ready(&agreement));
    r2_agreement_complete(&agreement, 0, true);
    assert_true(r2_agreement_ready(&agreement));
    r2_agreement_start(&agreement, false, true, false, &sync);
    assert_false(sync); /* only a carrying call proves that all ranks are there */
    r2_agreement_start(&agreement, true, true, false, &sync);
    assert_true(sync);
}

static void a_nonblocking_outcome_counts_a_window_later(void **state)
{
    r2_agreement_t agreement = {0};
    bool sync;

    (void) state;
    for (uint32_t i = 0; i < R2_AGREEMENT_AHEAD; ++i) {
        assert_true(r2_agreement_ready(&agreement));
        r2_agreement_start(&agreement, true, false, false, &sync);
        assert_false(sync);
    }
    assert_false(r2_agreement_ready(&agreement)); /* posted further ahead: waits */
    r2_agreement_complete(&agreement, 1, true);
    assert_false(r2_agreement_ready(&agreement));
    r2_agreement_complete(&agreement, 0, false);
    assert_true(r2_agreement_ready(&agreement));
    r2_agreement_start(&agreement, true, false, false, &sync);
    assert_false(sync);
    r2_agreement_start(&agreement, true, false, false, &sync);
    assert_true(sync);
}

/* ---- persistent requests: each has an agreement of its own, and is started again when it is
 * over */

#define REQUESTS 5u
#define STARTS   60u

typedef struct request {
    bool carrying;
    bool outcome[STARTS];
} request_t;

/* One rank: which request is started or ends next is its own matter. */
static void run_requests(r2_prng_t *prng, const request_t *requests, bool (*syncs_p)[STARTS])
{
    r2_agreement_t agreement[REQUESTS];
    uint32_t next[REQUESTS] = {0}, left = REQUESTS * STARTS;
    bool open[REQUESTS] = {false};

    memset(agreement, 0, sizeof(agreement));
    while (left > 0) {
        const uint32_t i = (uint32_t) r2_prng_below(prng, REQUESTS);

        if (open[i]) {
            r2_agreement_complete(&agreement[i], next[i] - 1, requests[i].outcome[next[i] - 1]);
            open[i] = false;
            --left;
        } else if (next[i] < STARTS) {
            assert_true(r2_agreement_ready(&agreement[i])); /* whatever the others do */
            assert_int_equal(r2_agreement_start(&agreement[i], requests[i].carrying, true,
                                                0 == i % 2, &syncs_p[i][next[i]]),
                             next[i]);
            open[i] = true;
            ++next[i];
        }
    }
}

static void requests_sync_before_the_same_starts(void **state)
{
    request_t requests[REQUESTS];
    bool first[REQUESTS][STARTS], other[REQUESTS][STARTS];
    uint32_t syncs = 0;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 31);
    for (uint32_t run = 0; run < 200; ++run) {
        for (uint32_t i = 0; i < REQUESTS; ++i) {
            requests[i].carrying = r2_prng_below(&prng, 4) > 0;
            for (uint32_t k = 0; k < STARTS; ++k) {
                requests[i].outcome[k] = requests[i].carrying && 0 == r2_prng_below(&prng, 12);
            }
        }
        run_requests(&prng, requests, first);
        run_requests(&prng, requests, other);
        assert_memory_equal(first, other, sizeof(first));
        for (uint32_t i = 0; i < REQUESTS; ++i) {
            assert_false(first[i][0]); /* nothing is settled yet */
            for (uint32_t k = 1, seen = 0; k < STARTS; ++k) {
                syncs += first[i][k];
                assert_true(!first[i][k] || requests[i].carrying);
                /* the first outcome that is set is answered by the very next start */
                assert_true(seen > 0 || first[i][k] == requests[i].outcome[k - 1]);
                seen += requests[i].outcome[k - 1];
            }
        }
    }
    assert_true(syncs > 1000);
}

static void syncs_of_a_flapping_rail_grow_rare(void **state)
{
    r2_agreement_t agreement = {0};
    uint32_t early = 0, late = 0;
    bool sync;

    (void) state;
    for (uint32_t i = 0; i < 20000; ++i) {
        r2_agreement_start(&agreement, true, true, false, &sync);
        r2_agreement_complete(&agreement, i, true);
        early += sync && i < 1000;
        late += sync && i >= 19000;
    }
    assert_in_range(early, 5, 50);
    assert_in_range(late, 3, 5);
}

/* A long call does not wait for the pause; short ones before and after it do as ever. */
static void long_calls_do_not_pause(void **state)
{
    r2_agreement_t agreement = {0};
    uint32_t syncs = 0, number = 0;
    bool sync;

    (void) state;
    for (; number < 20; ++number) {
        r2_agreement_start(&agreement, true, true, true, &sync);
        assert_int_equal(sync, number > 0);
        r2_agreement_complete(&agreement, number, true);
    }
    assert_int_equal(agreement.pause, R2_AGREEMENT_PAUSE_MIN); /* they do not lengthen it */
    for (; number < 2000; ++number) {
        r2_agreement_start(&agreement, true, true, false, &sync);
        r2_agreement_complete(&agreement, number, true);
    }
    assert_int_equal(agreement.pause, R2_AGREEMENT_PAUSE_MAX);
    for (; number < 2020; ++number) {
        r2_agreement_start(&agreement, true, true, true, &sync);
        assert_true(sync);
        r2_agreement_complete(&agreement, number, true);
    }
    assert_int_equal(agreement.pause, R2_AGREEMENT_PAUSE_MAX);
    for (; number < 2020 + R2_AGREEMENT_PAUSE_MAX - 1; ++number) {
        r2_agreement_start(&agreement, true, true, false, &sync);
        syncs += sync;
        r2_agreement_complete(&agreement, number, true);
    }
    assert_int_equal(syncs, 0);
    r2_agreement_start(&agreement, true, true, true, &sync);
    assert_true(sync);
    r2_agreement_complete(&agreement, number, false);
    r2_agreement_start(&agreement, true, true, true, &sync);
    assert_false(sync); /* nothing is new */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_sync_before_the_same_calls),
        cmocka_unit_test(every_interleaving_syncs_before_the_same_calls),
        cmocka_unit_test(a_blocking_outcome_counts_at_the_next_call),
        cmocka_unit_test(a_nonblocking_outcome_counts_a_window_later),
        cmocka_unit_test(requests_sync_before_the_same_starts),
        cmocka_unit_test(syncs_of_a_flapping_rail_grow_rare),
        cmocka_unit_test(long_calls_do_not_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
