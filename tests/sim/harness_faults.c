/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Faults of a simulated job.
 */
#include "r2_config.h"

#include <utlist.h>

#include "base/util.h"
#include "ctx/state.h"
#include "harness.h"
#include "link/state.h"

static void job_set_firewall(job_t *job, uint32_t host, uint32_t rail, bool refuse, bool probes)
{
    job->closed[host][rail] = refuse;
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        if (r2_sim_host_of(job->sim, i) == host) {
            r2_hello_sim_set_listener(job->hub, i, rail,
                                      refuse ? R2_HELLO_SIM_REFUSES : R2_HELLO_SIM_ACCEPTS);
            r2_probe_sim_set_shield(job->probe, i, rail, refuse && probes);
        }
    }
}

static void job_no_listener(job_t *job, uint32_t rank, uint32_t rail)
{
    if (rank < job->rank_count) {
        job->closed[r2_sim_host_of(job->sim, rank)][rail] = true;
        r2_hello_sim_set_listener(job->hub, rank, rail, R2_HELLO_SIM_BROKEN);
    } else {
        job_fail(job, "no rank %u", rank);
    }
}

static void job_heal(job_t *job)
{
    const r2_sim_config_t *sim = &job->scenario->sim;

    for (uint32_t h = 0; h < sim->host_count; ++h) {
        for (uint32_t r = 0; r < sim->rail_count; ++r) {
            r2_sim_set_pass(job->sim, h, r, true, true);
            r2_sim_set_port_down(job->sim, h, r, false);
            r2_sim_set_loss(job->sim, h, r, 0);
            r2_sim_set_rate(job->sim, h, r, 0);
            r2_sim_set_carrier(job->sim, h, r, true);
            job_set_firewall(job, h, r, false, false);
            for (uint32_t other = 0; other < h; ++other) {
                r2_sim_set_cut(job->sim, h, other, r, false);
            }
        }
    }
}

/* Lanes in doubt for their silence: others that found out about a rail make them unreachable. */
static uint32_t rank_doubts(const job_rank_t *rank)
{
    r2_links_t links = r2_core_links(&rank->ctx->core, 0);
    const r2_link_t *link;
    uint32_t doubts = 0;

    while (NULL != (link = r2_links_next(&links))) {
        for (uint32_t i = 0; i < link->lane_count; ++i) {
            const r2_lane_t *lane = &link->lanes[i];

            doubts += (R2_LANE_DOUBT == lane->state || R2_LANE_SUSPECT == lane->state) &&
                      !lane->unreachable;
        }
    }
    return doubts;
}

/* Its service thread comes first, before anybody reads a rail: all is late, nothing is proven. */
static void rank_go_on_woken(job_rank_t *rank)
{
    const uint32_t doubts = rank_doubts(rank);

    rank_wake_service(rank);
    if (rank_doubts(rank) > doubts) {
        job_fail(rank->job, "rank %u doubts lanes as soon as it goes on", rank->idx);
    }
}

/* @param woken by its service thread first. */
static void rank_stop(job_rank_t *rank, bool stop, bool woken)
{
    rank->stopped = stop;
    if (!stop && NULL != rank->ctx && !rank->dead) {
        rank->due_ns = R2_NEVER_NS;
        if (woken) {
            rank_go_on_woken(rank);
        }
        job_schedule(rank, r2_sim_now_ns(rank->job->sim)); /* what its NICs did is read then */
    }
}

static void apply_to_rank(job_t *job, const scenario_event_t *event)
{
    if (event->rank >= job->rank_count) {
        job_fail(job, "no rank %u", event->rank);
    } else if (VERB_SLOW == event->verb) {
        job->ranks[event->rank].slow_ns = event->value;
        job_schedule(&job->ranks[event->rank], r2_sim_now_ns(job->sim));
    } else if (VERB_DESCRIPTORS == event->verb) {
        r2_sim_set_descriptors(job->sim, event->rank, (uint32_t) event->value);
    } else if (VERB_MEMORY == event->verb) {
        sim_memory_limit(event->rank, (uint32_t) event->value, event->least);
    } else if (VERB_KILL == event->verb) {
        job->ranks[event->rank].dead = true;
        r2_sim_kill(job->sim, event->rank);
    } else {
        rank_stop(&job->ranks[event->rank], VERB_STOP == event->verb, 0 != event->value);
    }
}

/* What passes a NIC, and nobody is told. */
static void apply_to_way(job_t *job, const scenario_event_t *event)
{
    const scenario_verb_t verb = event->verb;

    if (VERB_PORT_DOWN == verb || VERB_PORT_UP == verb) {
        r2_sim_set_port_down(job->sim, event->host, event->rail, VERB_PORT_DOWN == verb);
    } else {
        r2_sim_set_pass(job->sim, event->host, event->rail,
                        VERB_PASS == verb || VERB_DROP_IN == verb,
                        VERB_PASS == verb || VERB_DROP_OUT == verb);
    }
}

/** Out-of-band messages to and from a host's ranks get lost, or do so no more. */
static void job_cut_post(job_t *job, uint32_t host, bool cut)
{
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        if (r2_sim_host_of(job->sim, i) == host) {
            r2_post_sim_set_cut(job->post, i, cut);
        }
    }
}

/* Packets of a lane whose messages are not all there yet: they are staged, or passed on. What was
 * acknowledged on another lane may be of a message that is over. */
static uint32_t lane_filling(const r2_lane_t *lane)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    DL_FOREACH(lane->tx.in_flight, packet) {
        count += NULL != packet->item && R2_WIRE_DATA == packet->item->kind &&
                 !packet->item->acked &&
                 packet->item->message->ready_chunks < packet->item->message->chunk_count;
    }
    return count;
}

/* A rail of a host fails. */
static void job_count_filling(job_t *job, const scenario_event_t *event)
{
    const scenario_verb_t verb = event->verb;

    if (VERB_DOWN != verb && VERB_DROP != verb && VERB_DROP_IN != verb && VERB_DROP_OUT != verb &&
        VERB_PORT_DOWN != verb) {
        return;
    }
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        job_rank_t *rank = &job->ranks[i];
        r2_links_t links;
        const r2_link_t *link;

        if (r2_sim_host_of(job->sim, i) != event->host || NULL == rank->ctx || rank->dead) {
            continue;
        }
        links = r2_core_links(&rank->ctx->core, 0);
        while (NULL != (link = r2_links_next(&links))) {
            for (uint32_t lane = 0; lane < link->lane_count; ++lane) {
                if (link->lanes[lane].rail->idx == event->rail) {
                    job->result->filling_hit += lane_filling(&link->lanes[lane]);
                }
            }
        }
    }
}

static void job_apply(void *arg, uint64_t index)
{
    job_t *job = arg;
    const scenario_event_t *event = &job->scenario->events[index];
    uint32_t h = event->host, r = event->rail;

    job_note_fault(job, event);
    job_count_filling(job, event);
    switch (event->verb) {
    case VERB_DOWN:
    case VERB_UP:
        r2_sim_set_carrier(job->sim, h, r, VERB_UP == event->verb);
        break;
    case VERB_DROP:
    case VERB_DROP_IN:
    case VERB_DROP_OUT:
    case VERB_PASS:
    case VERB_PORT_DOWN:
    case VERB_PORT_UP:
        apply_to_way(job, event);
        break;
    case VERB_BREAK:
        r2_sim_break_endpoints(job->sim, h, r);
        break;
    case VERB_RATE:
        r2_sim_set_rate(job->sim, h, r, event->value);
        break;
    case VERB_LOSS:
        r2_sim_set_loss(job->sim, h, r, (uint32_t) event->value);
        break;
    case VERB_CUT:
    case VERB_JOIN:
        r2_sim_set_cut(job->sim, h, event->host_b, r, VERB_CUT == event->verb);
        break;
    case VERB_STOP:
    case VERB_CONT:
    case VERB_KILL:
    case VERB_SLOW:
    case VERB_DESCRIPTORS:
    case VERB_MEMORY:
        apply_to_rank(job, event);
        break;
    case VERB_POST_CUT:
    case VERB_POST_JOIN:
        job_cut_post(job, h, VERB_POST_CUT == event->verb);
        break;
    case VERB_HEAL:
        job_heal(job);
        break;
    case VERB_REFUSE:
    case VERB_ACCEPT:
        job_set_firewall(job, h, r, VERB_REFUSE == event->verb, 0 != event->value);
        break;
    case VERB_NO_LISTENER:
        job_no_listener(job, event->rank, r);
        break;
    case VERB_COUNT:
        break;
    }
}

void job_plan_faults(job_t *job)
{
    for (uint32_t i = 0; i < job->scenario->event_count; ++i) {
        uint64_t at_ns = job->scenario->events[i].at_ns;

        if (0 == at_ns) {
            job_apply(job, i);
        } else {
            r2_sim_at(job->sim, r2_sim_now_ns(job->sim) + at_ns, job_apply, job, i);
        }
    }
}
