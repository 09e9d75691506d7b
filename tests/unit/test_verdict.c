/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Verdict table: every world of 2 to 5 hosts with up to two faults, and what an investigation sees
 * there.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "health/verdict_rules.h"

#define HOSTS_MAX  5
#define RAILS      2 /* rail 0 is investigated, rail 1 is "the others" */
#define FAULTS_MAX 200

/* Host 0 investigates host 1; host 2 is the witness, host 3 the second one. */
enum { SELF, PEER, WITNESS, SECOND };

typedef enum kind { NIC_CARRIER, NIC_BOTH, NIC_OUT, NIC_IN, CUT, PLANE, STOPPED, GONE } kind_t;

typedef struct fault {
    kind_t kind;
    uint32_t a, b, rail;
} fault_t;

typedef struct world {
    uint32_t host_count;
    const fault_t *faults[2];
    uint32_t count;
    bool witnesses_asked; /* false: the notices to the witnesses got lost */
} world_t;

static bool fault_stops(const fault_t *fault, uint32_t from, uint32_t to, uint32_t rail)
{
    if (fault->rail != rail) {
        return false;
    }
    switch (fault->kind) {
    case NIC_CARRIER:
    case NIC_BOTH:
        return fault->a == from || fault->a == to;
    case NIC_OUT:
        return fault->a == from;
    case NIC_IN:
        return fault->a == to;
    case CUT:
        return (fault->a == from && fault->b == to) || (fault->a == to && fault->b == from);
    case PLANE:
        return true;
    case STOPPED:
    case GONE:
        return false;
    }
    return false;
}

/* One way. */
static bool passes(const world_t *world, uint32_t from, uint32_t to, uint32_t rail)
{
    uint32_t idx;

    for (idx = 0; idx < world->count; ++idx) {
        if (fault_stops(world->faults[idx], from, to, rail)) {
            return false;
        }
    }
    return true;
}

static bool has(const world_t *world, kind_t kind, uint32_t host)
{
    uint32_t idx;

    for (idx = 0; idx < world->count; ++idx) {
        if (kind == world->faults[idx]->kind && host == world->faults[idx]->a &&
            0 == world->faults[idx]->rail) {
            return true;
        }
    }
    return false;
}

static bool answers(const world_t *world, uint32_t from, uint32_t to, uint32_t rail)
{
    return passes(world, from, to, rail) && passes(world, to, from, rail);
}

static bool runs(const world_t *world, uint32_t host)
{
    return !has(world, STOPPED, host) && !has(world, GONE, host);
}

static uint8_t yes_no(bool yes)
{
    return yes ? R2_ANSWER_YES : R2_ANSWER_NO;
}

/* What the procedure of docs/faults.md sees in a world. Notices go out of band, too. */
static r2_evidence_t look(const world_t *world)
{
    r2_evidence_t evidence = {.carrier = yes_no(!has(world, NIC_CARRIER, SELF))};
    bool two = world->host_count > SECOND && world->witnesses_asked;

    evidence.gone = has(world, GONE, PEER) ? R2_ANSWER_YES : R2_ANSWER_UNKNOWN;
    evidence.self_peer = yes_no(answers(world, SELF, PEER, 0));
    evidence.others = yes_no(answers(world, SELF, PEER, 1));
    evidence.process = yes_no(runs(world, PEER));
    evidence.in = evidence.out = R2_ANSWER_UNKNOWN;
    if (runs(world, PEER)) {
        evidence.out = yes_no(passes(world, SELF, PEER, 0));
        evidence.in = yes_no(passes(world, PEER, SELF, 0));
    }
    if (world->host_count > WITNESS) {
        evidence.self_witness = yes_no(answers(world, SELF, WITNESS, 0));
        if (runs(world, WITNESS) && world->witnesses_asked) {
            evidence.witness_peer = yes_no(answers(world, WITNESS, PEER, 0));
            evidence.witness_second = two ? yes_no(answers(world, WITNESS, SECOND, 0)) : 0;
        }
    }
    if (world->host_count > SECOND) {
        evidence.self_second = yes_no(answers(world, SELF, SECOND, 0));
        if (runs(world, SECOND) && two) {
            evidence.second_peer = yes_no(answers(world, SECOND, PEER, 0));
        }
    }
    return evidence;
}

/* A NIC may be blamed if it is broken, or if nothing passes between it and any other host. */
static bool nic_is_broken(const world_t *world, uint32_t host)
{
    uint32_t other;

    if (has(world, NIC_CARRIER, host) || has(world, NIC_BOTH, host) || has(world, NIC_OUT, host) ||
        has(world, NIC_IN, host)) {
        return true;
    }
    for (other = 0; other < world->host_count; ++other) {
        uint32_t idx;
        bool cut = other == host;

        for (idx = 0; idx < world->count; ++idx) {
            cut = cut || (CUT == world->faults[idx]->kind &&
                          fault_stops(world->faults[idx], host, other, 0));
        }
        if (!cut) {
            return false;
        }
    }
    return true;
}

static bool plane_is_broken(const world_t *world)
{
    return (world->count > 0 && PLANE == world->faults[0]->kind && 0 == world->faults[0]->rail) ||
           (world->count > 1 && PLANE == world->faults[1]->kind && 0 == world->faults[1]->rail);
}

static bool path_is_broken(const world_t *world)
{
    uint32_t idx;

    for (idx = 0; idx < world->count; ++idx) {
        if (CUT == world->faults[idx]->kind && fault_stops(world->faults[idx], SELF, PEER, 0)) {
            return true;
        }
    }
    return false;
}

/* No healthy part may be blamed. */
static bool is_fair(const world_t *world, const r2_conclusion_t *conclusion)
{
    switch (conclusion->verdict) {
    case R2_VERDICT_HEALTHY:
        return answers(world, SELF, PEER, 0);
    case R2_VERDICT_NIC:
        return (0 == (conclusion->blame & R2_BLAME_SELF) || nic_is_broken(world, SELF)) &&
               (0 == (conclusion->blame & R2_BLAME_PEER) || nic_is_broken(world, PEER)) &&
               0 != conclusion->blame;
    case R2_VERDICT_PATH:
        return path_is_broken(world);
    case R2_VERDICT_PLANE:
        return plane_is_broken(world);
    case R2_VERDICT_PEER_BUSY:
        return has(world, STOPPED, PEER) && answers(world, SELF, PEER, 0);
    case R2_VERDICT_PEER_GONE:
        return has(world, GONE, PEER);
    case R2_VERDICT_PEER_SILENT:
        return !answers(world, SELF, PEER, 0) && !answers(world, SELF, PEER, 1);
    case R2_VERDICT_AMBIGUOUS:
        return !answers(world, SELF, PEER, 0);
    case R2_VERDICT_SLOW:
    case R2_VERDICT_COUNT:
        break;
    }
    return false;
}

/* The exact verdict of a single fault, or of none. */
static bool is_exact(const world_t *world, const r2_conclusion_t *got)
{
    const fault_t *fault = world->faults[0];
    uint32_t nic[] = {R2_BLAME_SELF, R2_BLAME_PEER};
    r2_direction_t direction = R2_DIRECTION_BOTH;
    r2_verdict_t want = R2_VERDICT_HEALTHY;
    uint32_t blame = R2_BLAME_NOBODY;

    if (0 == world->count || 0 != fault->rail) {
        return R2_VERDICT_HEALTHY == got->verdict;
    }
    if (fault->kind <= NIC_IN && fault->a <= PEER) {
        want = R2_VERDICT_NIC;
        blame = nic[fault->a];
        direction = NIC_OUT == fault->kind  ? R2_DIRECTION_OUT
                    : NIC_IN == fault->kind ? R2_DIRECTION_IN
                                            : R2_DIRECTION_BOTH;
    } else if (CUT == fault->kind && SELF == fault->a && PEER == fault->b) {
        want = R2_VERDICT_PATH;
        blame = R2_BLAME_ENDS;
    } else if (PLANE == fault->kind) {
        want = world->host_count < 4 ? R2_VERDICT_AMBIGUOUS : R2_VERDICT_PLANE;
        blame = world->host_count < 4 ? R2_BLAME_ENDS : R2_BLAME_NOBODY;
    } else if (STOPPED == fault->kind && PEER == fault->a) {
        want = R2_VERDICT_PEER_BUSY;
        blame = R2_BLAME_PEER;
    } else if (GONE == fault->kind && PEER == fault->a) {
        want = R2_VERDICT_PEER_GONE;
        blame = R2_BLAME_PEER;
    }
    return want == got->verdict && blame == got->blame && direction == got->direction;
}

static uint32_t all_faults(uint32_t host_count, fault_t *faults)
{
    uint32_t rail, a, b, count = 0;
    kind_t kind;

    for (a = 0; a < host_count; ++a) {
        faults[count++] = (fault_t){.kind = STOPPED, .a = a};
        faults[count++] = (fault_t){.kind = GONE, .a = a};
    }
    for (rail = 0; rail < RAILS; ++rail) {
        faults[count++] = (fault_t){.kind = PLANE, .rail = rail};
        for (a = 0; a < host_count; ++a) {
            for (kind = NIC_CARRIER; kind <= NIC_IN; ++kind) {
                faults[count++] = (fault_t){.kind = kind, .a = a, .rail = rail};
            }
            for (b = a + 1; b < host_count; ++b) {
                faults[count++] = (fault_t){.kind = CUT, .a = a, .b = b, .rail = rail};
            }
        }
    }
    assert_true(count <= FAULTS_MAX);
    return count;
}

/* Answers come one by one: a conclusion that is drawn before the last has to be fair as well. */
static void check_orders(const world_t *world, const r2_evidence_t *full, uint32_t seed)
{
    uint8_t all[sizeof(*full)], part[sizeof(*full)] = {0};
    r2_conclusion_t conclusion;
    r2_evidence_t evidence;
    uint32_t idx, at = seed;

    memcpy(all, full, sizeof(all));
    for (idx = 0; idx < sizeof(all); ++idx) {
        at = (at + 5 + 2 * (seed / 13 % 2)) % sizeof(all); /* 5 and 7: prime to 12 answers */
        part[at] = all[at];
        memcpy(&evidence, part, sizeof(evidence));
        if (r2_verdict_conclude(&evidence, false, &conclusion)) {
            assert_true(is_fair(world, &conclusion));
        }
    }
}

static void fail_world(const world_t *world, const r2_evidence_t *evidence,
                       const r2_conclusion_t *got)
{
    uint32_t idx;

    for (idx = 0; idx < world->count; ++idx) {
        printf("fault %d: %u %u rail %u; ", (int) world->faults[idx]->kind, world->faults[idx]->a,
               world->faults[idx]->b, world->faults[idx]->rail);
    }
    fail_msg("hosts %u: %s blame %u direction %s (peer %d witness %d,%d second %d,%d,%d others %d)",
             world->host_count, r2_verdict_name(got->verdict), got->blame,
             r2_direction_name(got->direction), evidence->self_peer, evidence->self_witness,
             evidence->witness_peer, evidence->self_second, evidence->second_peer,
             evidence->witness_second, evidence->others);
}

static void check_world(const world_t *world)
{
    r2_evidence_t evidence = look(world);
    r2_conclusion_t conclusion;
    uint32_t seed;

    assert_true(r2_verdict_conclude(&evidence, true, &conclusion));
    if (!is_fair(world, &conclusion)) {
        fail_world(world, &evidence, &conclusion);
    }
    if (world->count < 2 && world->host_count >= 3 && world->witnesses_asked &&
        !is_exact(world, &conclusion)) {
        fail_world(world, &evidence, &conclusion);
    }
    for (seed = 0; seed < 26; ++seed) {
        check_orders(world, &evidence, seed);
    }
}

static void every_world(void **state)
{
    static fault_t faults[FAULTS_MAX];
    uint32_t worlds = 0, hosts, a, b, asked;

    (void) state;
    for (hosts = 2; hosts <= HOSTS_MAX; ++hosts) {
        uint32_t count = all_faults(hosts, faults);

        for (a = 0; a <= count; ++a) {
            for (b = a; b <= count; ++b) {
                world_t world = {.host_count = hosts};

                if (a < count) {
                    world.faults[world.count++] = &faults[a];
                }
                if (b < count && b != a) {
                    world.faults[world.count++] = &faults[b];
                }
                for (asked = 0; asked < 2; ++asked) {
                    world.witnesses_asked = 0 != asked;
                    check_world(&world);
                    ++worlds;
                }
            }
        }
    }
    printf("%u worlds\n", worlds);
    assert_true(worlds > 10000);
}

/* Whatever the answers are, also such that no world gives them, there is a conclusion. */
static void every_evidence(void **state)
{
    uint32_t number, rest, idx, numbers = 1;

    (void) state;
    for (idx = 0; idx < sizeof(r2_evidence_t); ++idx) {
        numbers *= 3;
    }
    for (number = 0; number < numbers; ++number) {
        uint8_t answers_given[sizeof(r2_evidence_t)];
        r2_conclusion_t conclusion = {.verdict = R2_VERDICT_COUNT};
        r2_evidence_t evidence;

        for (idx = 0, rest = number; idx < sizeof(answers_given); ++idx, rest /= 3) {
            answers_given[idx] = (uint8_t) (rest % 3);
        }
        memcpy(&evidence, answers_given, sizeof(evidence));
        assert_true(r2_verdict_conclude(&evidence, true, &conclusion));
        assert_true(conclusion.verdict < R2_VERDICT_COUNT);
        assert_true(conclusion.direction < R2_DIRECTION_COUNT);
    }
}

/* Carrier is certain at once; two hosts have nobody to ask. */
static void two_hosts(void **state)
{
    r2_evidence_t evidence = {.carrier = R2_ANSWER_NO};
    r2_conclusion_t conclusion;

    (void) state;
    assert_true(r2_verdict_conclude(&evidence, false, &conclusion));
    assert_int_equal(conclusion.verdict, R2_VERDICT_NIC);
    assert_int_equal(conclusion.blame, R2_BLAME_SELF);
    evidence = (r2_evidence_t){.carrier = R2_ANSWER_YES, .self_peer = R2_ANSWER_NO,
                               .others = R2_ANSWER_YES, .out = R2_ANSWER_NO, .in = R2_ANSWER_YES};
    assert_false(r2_verdict_conclude(&evidence, false, &conclusion));
    assert_true(r2_verdict_conclude(&evidence, true, &conclusion));
    assert_int_equal(conclusion.verdict, R2_VERDICT_AMBIGUOUS);
    assert_int_equal(conclusion.direction, R2_DIRECTION_OUT);
    evidence.others = R2_ANSWER_NO;
    assert_true(r2_verdict_conclude(&evidence, true, &conclusion));
    assert_int_equal(conclusion.verdict, R2_VERDICT_PEER_SILENT);
}

static void names(void **state)
{
    int value, other;

    (void) state;
    for (value = 0; value < R2_VERDICT_COUNT; ++value) {
        for (other = 0; other < value; ++other) {
            assert_string_not_equal(r2_verdict_name((r2_verdict_t) value),
                                    r2_verdict_name((r2_verdict_t) other));
        }
        assert_string_not_equal(r2_verdict_name((r2_verdict_t) value), "unknown");
    }
    assert_string_equal(r2_verdict_name(R2_VERDICT_COUNT), "unknown");
    assert_string_equal(r2_direction_name(R2_DIRECTION_OUT), "out");
    assert_string_equal(r2_direction_name(R2_DIRECTION_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_world),
        cmocka_unit_test(every_evidence),
        cmocka_unit_test(two_hosts),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
