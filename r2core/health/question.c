/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Questions of an investigation, and what their answers say.
 */
#include "r2_config.h"

#include "health/machine.h"

/* Host that a question of our own probes. */
static void r2_question_probe(r2_health_t *health, r2_investigation_t *investigation,
                              r2_question_t question, uint32_t host, uint32_t rail)
{
    const r2_pending_t what = {.purpose = R2_PURPOSE_ASK, .asked_id = investigation->id,
                               .what = question};
    r2_asked_t *asked = &investigation->asked[question];

    ++asked->sent;
    /* all attempts have time until the last one is over: a slow rail's queues may delay them */
    if (!r2_probes_start(health, host, rail, (R2_ATTEMPTS + 1 - investigation->attempts) * investigation->half_ns,
                         &what)) {
        ++asked->unable;
    }
}

static void r2_question_others(r2_health_t *health, r2_investigation_t *investigation)
{
    uint32_t rail, rails = r2_min(r2_rails_of(health, health->own_host),
                                  r2_rails_of(health, investigation->host));

    for (rail = 0; rail < rails; ++rail) {
        if (rail != investigation->rail) {
            r2_question_probe(health, investigation, R2_QUESTION_OTHERS, investigation->host, rail);
        }
    }
}

/* Asks `host` to probe `target`. Each attempt asks another of its processes: one may be stopped. */
static void r2_question_ask(r2_health_t *health, const r2_investigation_t *investigation,
                            r2_question_t question, uint32_t host, uint32_t target)
{
    uint32_t rank = r2_members_nth(health, host, investigation->attempts);
    const r2_notice_t notice = {
        .kind = R2_NOTICE_ASK_PROBE,
        .rail = investigation->rail,
        .id = investigation->id + (uint64_t) investigation->attempts * R2_QUESTION_COUNT + question,
        .host_b = health->lowest[target]};

    if (R2_NOBODY != rank) {
        r2_health_send(health, rank, &notice);
    }
}

static void r2_question_beacon(r2_health_t *health, const r2_investigation_t *investigation)
{
    const r2_notice_t notice = {.kind = R2_NOTICE_ASK_BEACON,
                                .rail = investigation->rail,
                                .id = investigation->id + R2_QUESTION_BEACON};

    health->ports.beacon(health->ports.arg, investigation->rank, investigation->rail, notice.id);
    r2_health_send(health, investigation->rank, &notice);
}

/** Puts each question that is still open once more. */
void r2_questions_put(r2_health_t *health, r2_investigation_t *at)
{
    uint32_t question;

    for (question = 0; question < R2_QUESTION_COUNT; ++question) {
        /* asked again also after a beacon was not heard: it may have come after the question */
        if (!at->asked[question].open || at->asked[question].yes > 0) {
            continue;
        }
        switch ((r2_question_t) question) {
        case R2_QUESTION_PEER:
            r2_question_probe(health, at, R2_QUESTION_PEER, at->host, at->rail);
            break;
        case R2_QUESTION_WITNESS:
            r2_question_probe(health, at, R2_QUESTION_WITNESS, at->witness, at->rail);
            break;
        case R2_QUESTION_SECOND:
            r2_question_probe(health, at, R2_QUESTION_SECOND, at->second, at->rail);
            break;
        case R2_QUESTION_OTHERS:
            r2_question_others(health, at);
            break;
        case R2_QUESTION_WITNESS_PEER:
            r2_question_ask(health, at, R2_QUESTION_WITNESS_PEER, at->witness, at->host);
            break;
        case R2_QUESTION_SECOND_PEER:
            r2_question_ask(health, at, R2_QUESTION_SECOND_PEER, at->second, at->host);
            break;
        case R2_QUESTION_WITNESS_SECOND:
            r2_question_ask(health, at, R2_QUESTION_WITNESS_SECOND, at->witness, at->second);
            break;
        case R2_QUESTION_BEACON:
            r2_question_beacon(health, at);
            break;
        case R2_QUESTION_COUNT:
            break;
        }
    }
    ++at->attempts;
}

static bool r2_question_is_own(uint32_t question)
{
    return question <= R2_QUESTION_OTHERS;
}

/* No needs all attempts, so that one lost packet is no fault; of an other's attempts one is enough at
 * the end. */
static r2_answer_t r2_question_answer(const r2_investigation_t *at, uint32_t question, bool final)
{
    const r2_asked_t *asked = &at->asked[question];

    if (asked->yes > 0) {
        return R2_ANSWER_YES;
    }
    if (!asked->open || 0 == asked->no) {
        return R2_ANSWER_UNKNOWN;
    }
    if (final) {
        return R2_ANSWER_NO;
    }
    if (r2_question_is_own(question)) {
        return at->attempts >= R2_ATTEMPTS && asked->no + asked->unable == asked->sent
                   ? R2_ANSWER_NO
                   : R2_ANSWER_UNKNOWN;
    }
    return (1u << R2_ATTEMPTS) - 1 == asked->no_attempts ? R2_ANSWER_NO : R2_ANSWER_UNKNOWN;
}

/* The answer about a NIC that we probe ourselves: an acknowledgement is as good as that of a probe. */
static uint8_t r2_question_own(const r2_health_t *health, const r2_investigation_t *at,
                               r2_question_t question, uint32_t host, bool final)
{
    return (uint8_t) (r2_probes_delivers(health, host, at->rail, at->begun_ns)
                          ? R2_ANSWER_YES
                          : r2_question_answer(at, question, final));
}

/** The answers so far. @param final those that came are all. */
void r2_questions_evidence(const r2_health_t *health, const r2_investigation_t *at, bool final,
                           r2_evidence_t *evidence_p)
{
    const r2_asked_t *beacon = &at->asked[R2_QUESTION_BEACON];
    bool responsive = beacon->yes + beacon->no > 0;
    r2_evidence_t evidence = {
        .carrier = r2_health_has_carrier(health, at->rail) ? R2_ANSWER_YES : R2_ANSWER_NO,
        .gone = health->gone[at->rank] ? R2_ANSWER_YES : R2_ANSWER_UNKNOWN,
        .self_peer = r2_question_own(health, at, R2_QUESTION_PEER, at->host, final),
        .self_witness = r2_question_own(health, at, R2_QUESTION_WITNESS, at->witness, final),
        .witness_peer = (uint8_t) r2_question_answer(at, R2_QUESTION_WITNESS_PEER, final),
        .self_second = r2_question_own(health, at, R2_QUESTION_SECOND, at->second, final),
        .second_peer = (uint8_t) r2_question_answer(at, R2_QUESTION_SECOND_PEER, final),
        .witness_second = (uint8_t) r2_question_answer(at, R2_QUESTION_WITNESS_SECOND, final),
        .others = (uint8_t) r2_question_answer(at, R2_QUESTION_OTHERS, final),
    };

    if (responsive) {
        evidence.process = R2_ANSWER_YES;
        evidence.in = at->beacon_in ? R2_ANSWER_YES : R2_ANSWER_NO;
        evidence.out = beacon->yes > 0 ? R2_ANSWER_YES : R2_ANSWER_NO;
    } else if (r2_probes_delivers(health, at->host, at->rail, at->begun_ns)) {
        evidence.process = R2_ANSWER_YES; /* it acknowledges */
    } else if (final) {
        evidence.process = R2_ANSWER_NO;
    }
    *evidence_p = evidence;
}

/** True if no answer is missing any more. */
bool r2_questions_settled(const r2_investigation_t *at)
{
    uint32_t question;

    for (question = 0; question < R2_QUESTION_BEACON; ++question) {
        const r2_asked_t *asked = &at->asked[question];
        bool unable = r2_question_is_own(question) && at->attempts >= R2_ATTEMPTS &&
                      asked->unable == asked->sent;

        if (asked->open && !unable && R2_ANSWER_UNKNOWN == r2_question_answer(at, question, false)) {
            return false;
        }
    }
    return at->asked[R2_QUESTION_BEACON].yes > 0 && at->beacon_in;
}
