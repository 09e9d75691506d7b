/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Queries of an investigation, and what their answers say.
 */
#include "r2_config.h"

#include "health/machine.h"

/* Host that a query of our own probes. */
static void r2_query_probe(r2_health_t *health, r2_investigation_t *investigation, r2_query_t query,
                           uint32_t host, uint32_t rail)
{
    const r2_pending_t what = {
        .purpose = R2_PURPOSE_QUERY, .query_id = investigation->id, .what = query};
    r2_tally_t *tally = &investigation->tally[query];

    ++tally->sent;
    /* all attempts have time until the last one is over: a slow rail's queues may delay them */
    if (!r2_probes_start(health, host, rail,
                         (R2_ATTEMPTS + 1 - investigation->attempts) * investigation->half_ns,
                         &what)) {
        ++tally->unable;
    }
}

static void r2_query_others(r2_health_t *health, r2_investigation_t *investigation)
{
    uint32_t rail, rails = r2_min(r2_rails_of(health, health->own_host),
                                  r2_rails_of(health, investigation->host));

    for (rail = 0; rail < rails; ++rail) {
        if (rail != investigation->rail) {
            r2_query_probe(health, investigation, R2_QUERY_OTHERS, investigation->host, rail);
        }
    }
}

/* Asks `host` to probe `target`. Each attempt asks another of its processes: one may be stopped. */
static void r2_query_witness(r2_health_t *health, const r2_investigation_t *investigation,
                             r2_query_t query, uint32_t host, uint32_t target)
{
    uint32_t rank = r2_members_nth(health, host, investigation->attempts);
    const r2_notice_t notice = {.kind = R2_NOTICE_WANT_PROBE,
                                .rail = investigation->rail,
                                .id = investigation->id +
                                      (uint64_t) investigation->attempts * R2_QUERY_COUNT + query,
                                .host_b = health->lowest[target]};

    if (R2_NOBODY != rank) {
        r2_health_send(health, rank, &notice);
    }
}

static void r2_query_beacon(r2_health_t *health, const r2_investigation_t *investigation)
{
    const r2_notice_t notice = {.kind = R2_NOTICE_WANT_BEACON,
                                .rail = investigation->rail,
                                .id = investigation->id + R2_QUERY_BEACON};

    health->ports.beacon(health->ports.arg, investigation->rank, investigation->rail, notice.id);
    r2_health_send(health, investigation->rank, &notice);
}

/** Puts each query that is still open once more. */
void r2_queries_put(r2_health_t *health, r2_investigation_t *at)
{
    uint32_t query;

    for (query = 0; query < R2_QUERY_COUNT; ++query) {
        /* asked again also after a beacon was not heard: it may have come after the query */
        if (!at->tally[query].open || at->tally[query].yes > 0) {
            continue;
        }
        switch ((r2_query_t) query) {
        case R2_QUERY_PEER:
            r2_query_probe(health, at, R2_QUERY_PEER, at->host, at->rail);
            break;
        case R2_QUERY_WITNESS:
            r2_query_probe(health, at, R2_QUERY_WITNESS, at->witness, at->rail);
            break;
        case R2_QUERY_SECOND:
            r2_query_probe(health, at, R2_QUERY_SECOND, at->second, at->rail);
            break;
        case R2_QUERY_OTHERS:
            r2_query_others(health, at);
            break;
        case R2_QUERY_WITNESS_PEER:
            r2_query_witness(health, at, R2_QUERY_WITNESS_PEER, at->witness, at->host);
            break;
        case R2_QUERY_SECOND_PEER:
            r2_query_witness(health, at, R2_QUERY_SECOND_PEER, at->second, at->host);
            break;
        case R2_QUERY_WITNESS_SECOND:
            r2_query_witness(health, at, R2_QUERY_WITNESS_SECOND, at->witness, at->second);
            break;
        case R2_QUERY_BEACON:
            r2_query_beacon(health, at);
            break;
        case R2_QUERY_COUNT:
            break;
        }
    }
    ++at->attempts;
}

static bool r2_query_is_own(uint32_t query)
{
    return query <= R2_QUERY_OTHERS;
}

/* No needs all attempts, so that one lost packet is no fault; of an other's attempts one is enough
 * at the end. */
static r2_answer_t r2_query_answer(const r2_investigation_t *at, uint32_t query, bool final)
{
    const r2_tally_t *tally = &at->tally[query];

    if (tally->yes > 0) {
        return R2_ANSWER_YES;
    }
    if (!tally->open || 0 == tally->no) {
        return R2_ANSWER_UNKNOWN;
    }
    if (final) {
        return R2_ANSWER_NO;
    }
    if (r2_query_is_own(query)) {
        return at->attempts >= R2_ATTEMPTS && tally->no + tally->unable == tally->sent
                   ? R2_ANSWER_NO
                   : R2_ANSWER_UNKNOWN;
    }
    return (1u << R2_ATTEMPTS) - 1 == tally->no_attempts ? R2_ANSWER_NO : R2_ANSWER_UNKNOWN;
}

/* The answer about a NIC that we probe ourselves: an acknowledgement is as good as that of a
 * probe. */
static uint8_t r2_query_own(const r2_health_t *health, const r2_investigation_t *at,
                            r2_query_t query, uint32_t host, bool final)
{
    return (uint8_t) (r2_probes_delivers(health, host, at->rail, at->begun_ns)
                          ? R2_ANSWER_YES
                          : r2_query_answer(at, query, final));
}

/** The answers so far. @param final those that came are all. */
void r2_queries_evidence(const r2_health_t *health, const r2_investigation_t *at, bool final,
                         r2_evidence_t *evidence_p)
{
    const r2_tally_t *beacon = &at->tally[R2_QUERY_BEACON];
    bool responsive = beacon->yes + beacon->no > 0;
    r2_evidence_t evidence = {
        .carrier = r2_health_has_carrier(health, at->rail) ? R2_ANSWER_YES : R2_ANSWER_NO,
        .gone = health->gone[at->rank] ? R2_ANSWER_YES : R2_ANSWER_UNKNOWN,
        .self_peer = r2_query_own(health, at, R2_QUERY_PEER, at->host, final),
        .self_witness = r2_query_own(health, at, R2_QUERY_WITNESS, at->witness, final),
        .witness_peer = (uint8_t) r2_query_answer(at, R2_QUERY_WITNESS_PEER, final),
        .self_second = r2_query_own(health, at, R2_QUERY_SECOND, at->second, final),
        .second_peer = (uint8_t) r2_query_answer(at, R2_QUERY_SECOND_PEER, final),
        .witness_second = (uint8_t) r2_query_answer(at, R2_QUERY_WITNESS_SECOND, final),
        .others = (uint8_t) r2_query_answer(at, R2_QUERY_OTHERS, final),
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
bool r2_queries_settled(const r2_investigation_t *at)
{
    uint32_t query;

    for (query = 0; query < R2_QUERY_BEACON; ++query) {
        const r2_tally_t *tally = &at->tally[query];
        bool unable =
            r2_query_is_own(query) && at->attempts >= R2_ATTEMPTS && tally->unable == tally->sent;

        if (tally->open && !unable && R2_ANSWER_UNKNOWN == r2_query_answer(at, query, false)) {
            return false;
        }
    }
    return at->tally[R2_QUERY_BEACON].yes > 0 && at->beacon_in;
}
