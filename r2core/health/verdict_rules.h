/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The verdict table: what is broken, told from the answers of one investigation (docs/faults.md).
 */
#ifndef R2_HEALTH_VERDICT_RULES_H
#define R2_HEALTH_VERDICT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/verdict.h"

/** An answer to one query. */
typedef enum r2_answer {
    R2_ANSWER_UNKNOWN = 0, /* not asked, could not be asked, or no answer yet */
    R2_ANSWER_YES,
    R2_ANSWER_NO
} r2_answer_t;

/**
 * What was asked about one rail. All values r2_answer_t. "a_b": a probe of host a at the NIC of
 * host b on this rail was answered: both ways pass. Witness and second witness are hosts that have
 * the rail, too; they are asked to probe by notices.
 */
typedef struct r2_evidence {
    uint8_t carrier; /* our NIC has a carrier and an address */
    uint8_t gone;    /* the peer process is known to be gone */
    uint8_t self_peer;
    uint8_t self_witness;
    uint8_t witness_peer;
    uint8_t self_second;
    uint8_t second_peer;
    uint8_t witness_second;
    uint8_t others;  /* any other rail of the peer answers us */
    uint8_t process; /* the peer process answered a notice */
    uint8_t out;     /* the peer heard our beacon on this rail */
    uint8_t in;      /* we heard the peer's beacon on this rail */
} r2_evidence_t;

/** Whose part is broken; bits. PATH and AMBIGUOUS: both, as ends of what is broken. */
enum {
    R2_BLAME_NOBODY = 0,
    R2_BLAME_SELF = 1,
    R2_BLAME_PEER = 2,
    R2_BLAME_ENDS = R2_BLAME_SELF | R2_BLAME_PEER
};

/** What follows from the evidence. */
typedef struct r2_conclusion {
    r2_verdict_t verdict;
    uint32_t blame;
    r2_direction_t direction; /* seen from the blamed host; PATH and AMBIGUOUS: from ours */
} r2_conclusion_t;

/**
 * Looks the evidence up in the table.
 * @param final no more answers will come. Otherwise only those rows count that no further answer of
 * the same investigation could overrule.
 * @return true if the table has a row; always if final.
 */
bool r2_verdict_conclude(const r2_evidence_t *evidence, bool final, r2_conclusion_t *conclusion_p);

#endif
