/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Looks into the contexts of a simulated job: what is left over, counters, state for a report.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "ctx/state.h"
#include "harness.h"
#include "link/state.h"

/* Links with more than so many packets in flight are looked at, in one of so many progress
 * passes. */
#define CONTROL_LEAST 32
#define CONTROL_LOOKS 16

static uint32_t count_messages(const r2_link_t *link)
{
    const r2_tx_message_t *message;
    uint32_t count = 0;

    DL_FOREACH2(link->tx.messages, message, all_next)
    {
        ++count;
    }
    return count;
}

static bool link_is_clean(const r2_link_t *link)
{
    return NULL == link->tx.messages && 0 == link->rx.matches.count &&
           0 == link->rx.arriving.count && 0 == link->tx.credits.count &&
           0 == link->tx.uncredited.count && 0 == link->rx.completed.count &&
           NULL == link->tx.retransmit && NULL == link->rx.deferred &&
           0 == link->rx.unexpected_bytes && 0 == link->tx.copied_bytes &&
           0 == link->tx.packed_bytes;
}

static void link_text(const r2_link_t *link, char *text_p, size_t text_bytes)
{
    snprintf(text_p, text_bytes,
             "rank %u to %u: %u messages, %u ops, %u arriving, %u credits, %u uncredited, "
             "%u complete above the watermark, kept as unexpected %" PRIu64 ", copied %" PRIu32
             "%s%s%s",
             link->net->rank, link->rank, count_messages(link), link->rx.matches.count,
             link->rx.arriving.count, link->tx.credits.count, link->tx.uncredited.count,
             (unsigned) link->rx.completed.count, link->rx.unexpected_bytes, link->tx.copied_bytes,
             NULL != link->tx.retransmit ? ", to be sent again" : "",
             NULL != link->tx.control ? ", control waits" : "",
             NULL != link->rx.deferred ? ", deferred" : "");
}

/* No rail leads from one to the other: what nobody waits for (notices) stays where it is. */
static bool pair_is_cut(const job_t *job, uint32_t a, uint32_t b)
{
    if (r2_sim_host_of(job->sim, a) == r2_sim_host_of(job->sim, b)) {
        return false;
    }
    for (uint32_t rail = 0; rail < job->scenario->sim.rail_count; ++rail) {
        if (r2_sim_passes(job->sim, a, b, rail) && r2_sim_passes(job->sim, b, a, rail)) {
            return false;
        }
    }
    return true;
}

bool job_is_clean(const job_t *job, char *text_p, size_t text_bytes)
{
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        const r2_net_t *net = &job->ranks[i].ctx->core.net;

        for (uint32_t peer = 0; peer < net->size && !job->ranks[i].dead; ++peer) {
            const r2_link_t *link = net->links[peer];

            if (NULL != link && !job->ranks[peer].dead && !link_is_clean(link) &&
                !(pair_is_cut(job, i, peer) && NULL == link->tx.messages)) {
                link_text(link, text_p, text_bytes);
                return false;
            }
        }
        if (0 != net->unexpected_bytes || NULL != job->ranks[i].ctx->core.engine.finished) {
            snprintf(text_p, text_bytes, "rank %u: kept as unexpected %" PRIu64, i,
                     net->unexpected_bytes);
            return false;
        }
    }
    return true;
}

/*
 * What is repeated to a peer, by timers or by other protocols, is bounded on each lane, however
 * long the peer does not read. Looked at now and then: it takes a walk over what is in flight.
 */
static void link_check_control(const job_rank_t *rank, const r2_link_t *link)
{
    static const r2_wire_kind_t repeated[] = {R2_WIRE_PING,   R2_WIRE_QUERY, R2_WIRE_DENIED,
                                              R2_WIRE_NOTICE, R2_WIRE_RTS,   R2_WIRE_LANE_DOWN,
                                              R2_WIRE_RELAY};

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        uint32_t counts[R2_WIRE_KIND_END] = {0};
        const r2_packet_t *packet;

        DL_FOREACH(link->lanes[i].tx.in_flight, packet) {
            const r2_tx_item_t *item = packet->item;

            counts[item->kind] +=
                !item->acked && (R2_WIRE_RELAY != item->kind || item->payload.relay.hello) ? 1 : 0;
        }
        for (size_t k = 0; k < r2_array_count(repeated); ++k) {
            uint32_t most = R2_WIRE_QUERY == repeated[k] ? 1 : r2_max(32u, rank->job->rank_count);

            if (counts[repeated[k]] > most) {
                job_fail(rank->job, "rank %u to %u: %u packets of kind %u in flight on lane %u",
                         rank->idx, link->rank, counts[repeated[k]], (unsigned) repeated[k], i);
            }
        }
    }
}

void rank_check_bounds(const job_rank_t *rank)
{
    const r2_net_t *net = &rank->ctx->core.net;
    job_t *job = rank->job;
    /* posted ops of an absent application are filled from unexpected data, too, within their
     * credit */
    uint64_t eager = r2_net_unexpected_bytes(net), granted = job->params.credit_bytes;
    uint64_t least = 2 * job->params.chunk_max_bytes; /* that no other peer can take away */

    if (net->unexpected_bytes > (net->size - 1) * (eager + least) + granted) {
        job_fail(job, "rank %u: %" PRIu64 " bytes kept as unexpected of all peers", rank->idx,
                 net->unexpected_bytes);
    }
    for (uint32_t peer = 0; peer < net->size; ++peer) {
        const r2_link_t *link = net->links[peer];

        if (NULL == link) {
            continue;
        }
        if (R2_ERR_PEER_GONE == link->broken && !job->ranks[peer].dead) {
            job_fail(job, "rank %u takes rank %u, which lives, for gone", rank->idx, peer);
        }
        if (link->tx.in_flight_packets > CONTROL_LEAST && 0 == job->runs % CONTROL_LOOKS) {
            link_check_control(rank, link);
        }
        if (link->tx.copied_bytes > job->params.retransmit_bytes) {
            job_fail(job, "rank %u to %u: %" PRIu32 " bytes copied for replay", rank->idx, peer,
                     link->tx.copied_bytes);
        }
        if (link->rx.unexpected_bytes > eager + (rank->services > 0 ? granted / 4 + least : 0)) {
            job_fail(job, "rank %u to %u: %" PRIu64 " bytes kept as unexpected", rank->idx, peer,
                     link->rx.unexpected_bytes);
        }
    }
}

static bool is_maximum(const r2_counter_info_t *info)
{
    return NULL != strstr(info->name, "_max") || 0 == strncmp(info->name, "longest", 7);
}

void job_summarise(job_t *job)
{
    size_t count;
    const r2_counter_info_t *table = r2_counters_table(&count);

    job->result->time_ns = r2_sim_now_ns(job->sim) - R2_NS_PER_S;
    job->result->sim = *r2_sim_stats(job->sim);
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        const char *from = (const char *) r2_ctx_counters(job->ranks[i].ctx);
        char *to = (char *) &job->result->counters;

        job->result->errors += job->ranks[i].errors;
        for (uint32_t k = 0; k < R2_RAILS_MAX; ++k) {
            job->result->rail_bytes[k] += job->ranks[i].ctx->core.net.rails[k].tx_bytes;
        }
        for (size_t k = 0; k < count; ++k) {
            uint64_t a, b;

            memcpy(&a, from + table[k].offset, sizeof(a));
            memcpy(&b, to + table[k].offset, sizeof(b));
            b = is_maximum(&table[k]) ? (a > b ? a : b) : a + b;
            memcpy(to + table[k].offset, &b, sizeof(b));
        }
    }
}

static void dump_line(void *arg, const char *line)
{
    (void) arg;
    fprintf(stderr, "    %s\n", line);
}

static void dump_lane(const r2_lane_t *lane, uint64_t now_ns)
{
    const r2_packet_t *packet;
    uint32_t packets = 0;

    DL_FOREACH(lane->tx.in_flight, packet) {
        ++packets;
    }
    fprintf(stderr,
            "    lane %u %s for %.3f ms: in flight %u packets %" PRIu64 " of %" PRIu64
            " bytes, tx_seq %u rx_next %u, last heard %.3f ms ago, failures %u (%s)\n",
            lane->idx, r2_lane_state_name(lane->state), (double) (now_ns - lane->state_ns) / 1e6,
            packets, lane->tx.in_flight_bytes, lane->tx.window_bytes, lane->tx.seq, lane->rx.next,
            (double) (now_ns - lane->rx.last_ns) / 1e6, lane->connect.failures,
            r2_status_string(lane->why));
}

static void dump_rank(const job_rank_t *rank)
{
    const scenario_t *sc = rank->job->scenario;
    uint64_t now_ns = r2_sim_now_ns(rank->job->sim);
    const r2_net_t *net = &rank->ctx->core.net;
    const rank_op_t *op;
    char text[300];

    fprintf(stderr, "  rank %u: step %u of %u, iteration %u%s%s%s%s\n", rank->idx, rank->step,
            sc->step_count, rank->iteration, rank->finished ? ", finished" : "",
            rank->stopped ? ", stopped" : "", rank->dead ? ", dead" : "",
            now_ns < rank->compute_until_ns ? ", computing" : "");
    DL_FOREACH(rank->ops, op) {
        const r2_exec_t *exec = &op->coll->exec;
        const r2_schedule_t *schedule = exec->schedule;

        fprintf(stderr, "    under way: step %u.%u %s, %u of %u ops left\n", op->call->step,
                op->call->iteration, NULL == schedule ? "waits or is over" : schedule->algorithm,
                exec->ops_left, NULL == schedule ? 0 : schedule->op_count);
    }
    for (uint32_t peer = 0; peer < net->size; ++peer) {
        const r2_link_t *link = net->links[peer];

        if (NULL == link || (link_is_clean(link) && rank->finished)) {
            continue;
        }
        link_text(link, text, sizeof(text));
        fprintf(stderr, "   %s\n", text);
        for (uint32_t i = 0; i < link->lane_count; ++i) {
            dump_lane(&link->lanes[i], now_ns);
        }
    }
}

void job_dump(const job_t *job)
{
    fprintf(stderr, "state at %.6f ms, %" PRIu64 " sweeps:\n",
            (double) (r2_sim_now_ns(job->sim) - R2_NS_PER_S) / 1e6, job->runs);
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        if (NULL != job->ranks[i].ctx) {
            dump_rank(&job->ranks[i]);
        }
    }
    fprintf(stderr, "  connections:\n");
    r2_sim_dump(job->sim, dump_line, NULL);
}
