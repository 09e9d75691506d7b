/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes under way, for ourselves and for others who ask; beacons.
 */
#include "r2_config.h"

#include "health/machine.h"

/**
 * True if a lane to a host got something acknowledged since then: both NICs pass, whatever probes
 * say. They are lost where a slow rail's queue is full.
 */
bool r2_probes_delivers(const r2_health_t *health, uint32_t host, uint32_t rail, uint64_t since_ns)
{
    return NULL != health->ports.delivered_ns && host < health->hosts->host_count &&
           health->ports.delivered_ns(health->ports.arg, host, rail) > since_ns;
}

/** Probes the NIC of a host. @return false: could not be asked. */
bool r2_probes_start(r2_health_t *health, uint32_t host, uint32_t rail, uint64_t timeout_ns,
                     const r2_pending_t *what)
{
    uint32_t idx, rank = r2_members_nth(health, host, 0);

    if (R2_NOBODY == rank) {
        rank = health->lowest[host]; /* its NIC answers without it */
    }
    for (idx = 0; idx < R2_PROBES_MAX; ++idx) {
        r2_pending_t *probe = &health->pending[idx];

        if (R2_PURPOSE_NONE == probe->purpose) {
            *probe = *what;
            probe->id = health->next_id++;
            health->ports.probe(health->ports.arg, rank, rail, timeout_ns, probe->id);
            return true;
        }
    }
    return false;
}

static void r2_probes_answer(r2_health_t *health, uint32_t rank, uint32_t rail, uint8_t kind,
                             uint64_t id, r2_answer_t answer)
{
    const r2_notice_t notice = {.kind = kind, .rail = rail, .id = id, .answer = (uint8_t) answer};

    r2_health_send(health, rank, &notice);
}

/** Another process asks us to probe a third host. */
void r2_probes_serve(r2_health_t *health, uint32_t from, const r2_notice_t *notice, uint64_t now_ns)
{
    r2_pending_t what = {.purpose = R2_PURPOSE_SERVE,
                         .query_id = notice->id,
                         .rank = from,
                         .rail = notice->rail,
                         .since_ns = now_ns};
    uint32_t host;

    if (!r2_members_host(health, notice->host_b, &host)) {
        return;
    }
    what.host = host;
    if (host == health->own_host || notice->rail >= r2_rails_of(health, health->own_host) ||
        notice->rail >= r2_rails_of(health, host) || !r2_health_has_carrier(health, notice->rail) ||
        !r2_probes_start(health, host, notice->rail,
                         r2_health_ms(health->params.failure_timeout_ms), &what)) {
        r2_probes_answer(health, from, notice->rail, R2_NOTICE_ANSWER_PROBE, notice->id,
                         R2_ANSWER_UNKNOWN);
    }
}

/** Another process asks whether we heard its beacon, and for one of ours. */
void r2_probes_beacon(r2_health_t *health, uint32_t from, const r2_notice_t *notice)
{
    r2_answer_t answer = R2_ANSWER_NO;
    uint32_t idx;

    if (notice->rail >= r2_rails_of(health, health->own_host)) {
        return;
    }
    for (idx = 0; idx < R2_BEACONS_MAX; ++idx) {
        const r2_beacon_t *beacon = &health->beacons[idx];

        if (beacon->id == notice->id && beacon->rank == from && beacon->rail == notice->rail) {
            answer = R2_ANSWER_YES;
        }
    }
    health->ports.beacon(health->ports.arg, from, notice->rail, notice->id);
    r2_probes_answer(health, from, notice->rail, R2_NOTICE_ANSWER_BEACON, notice->id, answer);
}

r2_pending_t r2_probes_take(r2_health_t *health, uint64_t id)
{
    r2_pending_t probe = {.purpose = R2_PURPOSE_NONE};
    uint32_t idx;

    for (idx = 0; idx < R2_PROBES_MAX; ++idx) {
        if (R2_PURPOSE_NONE != health->pending[idx].purpose && id == health->pending[idx].id) {
            probe = health->pending[idx];
            health->pending[idx].purpose = R2_PURPOSE_NONE;
            break;
        }
    }
    return probe;
}

/** One that somebody else asked for. */
void r2_probes_served(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer)
{
    if (R2_ANSWER_NO == answer &&
        r2_probes_delivers(health, probe->host, probe->rail, probe->since_ns)) {
        answer = R2_ANSWER_YES;
    }
    r2_probes_answer(health, probe->rank, probe->rail, R2_NOTICE_ANSWER_PROBE, probe->query_id,
                     answer);
}
