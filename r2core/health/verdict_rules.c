/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The verdict table and its lookup.
 */
#include "r2_config.h"

#include "health/verdict_rules.h"

#include <stddef.h>

#include "base/util.h"

/* What a row asks of one answer: a set of r2_answer_t. */
enum {
    U = 1 << R2_ANSWER_UNKNOWN,
    Y = 1 << R2_ANSWER_YES,
    N = 1 << R2_ANSWER_NO,
    NU = N | U,
    YU = Y | U,
    X = Y | N | U
};

/** One row: sets of answers, and what follows if all match. The first row that matches counts. */
typedef struct r2_verdict_row {
    uint8_t carrier, gone, self_peer, self_witness, witness_peer;
    uint8_t self_second, second_peer, witness_second, others, process;
    bool final; /* counts only when no more answers will come */
    r2_verdict_t verdict;
    uint32_t blame;
} r2_verdict_row_t;

/*
 * Rows are justified by the smallest number of faults that explains the answers: each is right in
 * every world with up to two faults (tests/unit/test_verdict.c goes through all of them). A host
 * all of whose paths on a rail are cut counts as one whose NIC is broken: nothing in the network
 * could tell.
 */
static const r2_verdict_row_t r2_verdict_rows[] = {
    /* carrier gone peer | wit. wit-peer | 2nd 2nd-peer wit-2nd | others process | final */
    /* our own carrier is certain; a process that is gone needs no rail */
    {N, X, X, X, X, X, X, X, X, X, false, R2_VERDICT_NIC, R2_BLAME_SELF},
    {YU, Y, X, X, X, X, X, X, X, X, false, R2_VERDICT_PEER_GONE, R2_BLAME_PEER},
    /* the peer's NIC answers */
    {YU, NU, Y, X, X, X, X, X, X, Y, false, R2_VERDICT_HEALTHY, R2_BLAME_NOBODY},
    {YU, NU, Y, X, X, X, X, X, X, N, true, R2_VERDICT_PEER_BUSY, R2_BLAME_PEER},
    {YU, NU, Y, X, X, X, X, X, X, U, true, R2_VERDICT_HEALTHY, R2_BLAME_NOBODY},
    /* we reach a host that reaches the peer, but not the peer */
    {YU, NU, N, Y, Y, X, X, X, X, X, false, R2_VERDICT_PATH, R2_BLAME_ENDS},
    {YU, NU, N, X, X, Y, Y, X, X, X, false, R2_VERDICT_PATH, R2_BLAME_ENDS},
    {YU, NU, N, Y, X, X, Y, X, X, X, false, R2_VERDICT_PATH, R2_BLAME_ENDS},
    {YU, NU, N, X, Y, Y, X, X, X, X, false, R2_VERDICT_PATH, R2_BLAME_ENDS},
    /* we reach nobody, others reach the peer */
    {YU, NU, N, N, Y, N, X, X, X, X, false, R2_VERDICT_NIC, R2_BLAME_SELF},
    {YU, NU, N, N, X, N, Y, X, X, X, false, R2_VERDICT_NIC, R2_BLAME_SELF},
    {YU, NU, N, N, Y, U, X, X, X, X, true, R2_VERDICT_NIC, R2_BLAME_SELF},
    /* we reach others, nobody reaches the peer: this rail of it, or all of it */
    {YU, NU, N, Y, N, X, N, X, Y, X, false, R2_VERDICT_NIC, R2_BLAME_PEER},
    {YU, NU, N, Y, N, X, N, X, N, X, true, R2_VERDICT_PEER_SILENT, R2_BLAME_PEER},
    {YU, NU, N, Y, N, X, NU, X, YU, X, true, R2_VERDICT_NIC, R2_BLAME_PEER},
    {YU, NU, N, X, N, Y, N, X, YU, X, true, R2_VERDICT_NIC, R2_BLAME_PEER},
    {YU, NU, N, Y, U, Y, N, X, YU, X, true, R2_VERDICT_NIC, R2_BLAME_PEER},
    /* nobody of the four reaches anybody; or only the two witnesses reach each other */
    {YU, NU, N, N, N, N, N, N, X, X, true, R2_VERDICT_PLANE, R2_BLAME_NOBODY},
    {YU, NU, N, N, N, N, N, Y, X, X, true, R2_VERDICT_NIC, R2_BLAME_ENDS},
    /* nobody is left to ask */
    {YU, NU, N, X, X, X, X, X, N, X, true, R2_VERDICT_PEER_SILENT, R2_BLAME_PEER},
    {YU, NU, N, X, X, X, X, X, YU, X, true, R2_VERDICT_AMBIGUOUS, R2_BLAME_ENDS},
    /* we could not even ask: nothing is known */
    {X, X, U, X, X, X, X, X, X, X, true, R2_VERDICT_HEALTHY, R2_BLAME_NOBODY},
};

static bool r2_row_matches(const r2_verdict_row_t *row, const r2_evidence_t *evidence)
{
    const uint8_t sets[] = {row->carrier,     row->gone,        row->self_peer,
                            row->self_witness, row->witness_peer, row->self_second,
                            row->second_peer, row->witness_second, row->others, row->process};
    const uint8_t answers[] = {evidence->carrier,      evidence->gone,
                               evidence->self_peer,    evidence->self_witness,
                               evidence->witness_peer, evidence->self_second,
                               evidence->second_peer,  evidence->witness_second,
                               evidence->others,       evidence->process};
    size_t idx;

    for (idx = 0; idx < r2_array_count(sets); ++idx) {
        if (0 == (sets[idx] & 1u << answers[idx])) {
            return false;
        }
    }
    return true;
}

/* One way is named only when the other is known to pass. */
static r2_direction_t r2_verdict_direction(const r2_evidence_t *evidence,
                                           const r2_verdict_row_t *row)
{
    bool from_peer = R2_VERDICT_NIC == row->verdict && R2_BLAME_PEER == row->blame;

    if (R2_VERDICT_NIC != row->verdict && R2_VERDICT_PATH != row->verdict &&
        R2_VERDICT_AMBIGUOUS != row->verdict) {
        return R2_DIRECTION_BOTH;
    }
    if (R2_BLAME_ENDS == row->blame && R2_VERDICT_NIC == row->verdict) {
        return R2_DIRECTION_BOTH;
    }
    if (R2_ANSWER_YES == evidence->out && R2_ANSWER_NO == evidence->in) {
        return from_peer ? R2_DIRECTION_OUT : R2_DIRECTION_IN;
    }
    if (R2_ANSWER_NO == evidence->out && R2_ANSWER_YES == evidence->in) {
        return from_peer ? R2_DIRECTION_IN : R2_DIRECTION_OUT;
    }
    return R2_DIRECTION_BOTH;
}

bool r2_verdict_conclude(const r2_evidence_t *evidence, bool final, r2_conclusion_t *conclusion_p)
{
    size_t idx;

    for (idx = 0; idx < r2_array_count(r2_verdict_rows); ++idx) {
        const r2_verdict_row_t *row = &r2_verdict_rows[idx];

        if ((!final && row->final) || !r2_row_matches(row, evidence)) {
            continue;
        }
        *conclusion_p = (r2_conclusion_t){.verdict = row->verdict,
                                          .blame = row->blame,
                                          .direction = r2_verdict_direction(evidence, row)};
        return true;
    }
    r2_assert(!final);
    return false;
}
