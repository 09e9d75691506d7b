/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Detector of this process: its life, and when it acts.
 */
#include "r2_config.h"

#include "ctx/detector.h"

#include <stdlib.h>
#include <time.h>

static void r2_ctx_health_free(r2_ctx_health_t *health)
{
    if (NULL != health->rails) {
        r2_rail_log_destroy(health->rails, health->core->net.now_ns);
    }
    if (NULL != health->machine) {
        r2_health_destroy(health->machine);
    }
    free(health->unanswered);
    free(health->queue);
    free(health);
}

/* What the clock lacks to the time of day. */
static int64_t r2_ctx_health_wall_ns(const r2_core_t *core)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t) ((uint64_t) wall.tv_sec * R2_NS_PER_S + (uint64_t) wall.tv_nsec -
                      r2_now_ns(core->clock));
}

static r2_status_t r2_ctx_health_tables(r2_ctx_health_t *health)
{
    health->unanswered = calloc(health->hosts->rank_count, sizeof(*health->unanswered));
    health->queue = calloc(health->room, sizeof(*health->queue));
    health->rails = r2_rail_log_create(&health->core->log, r2_ctx_health_wall_ns(health->core));
    return NULL == health->rails || NULL == health->unanswered || NULL == health->queue
               ? R2_ERR_NO_MEMORY
               : R2_OK;
}

/* Probes of all processes of a host leave by the same NICs. */
static void r2_ctx_health_share(const r2_ctx_health_t *health)
{
    const r2_hosts_t *hosts = health->hosts;
    const r2_net_t *net = &health->core->net;
    uint32_t processes = 0;

    for (uint32_t rank = 0; rank < hosts->rank_count; ++rank) {
        processes += hosts->host_of[rank] == hosts->host_of[net->rank];
    }
    if (NULL != net->probe.ops) {
        net->probe.ops->share(net->probe.instance, processes);
    }
}

r2_status_t r2_ctx_health_create(r2_core_t *core, const r2_hosts_t *hosts, const r2_post_t *post,
                                 r2_ctx_health_t **health_p)
{
    r2_ctx_health_t *health = calloc(1, sizeof(*health));
    r2_health_ports_t ports;
    r2_health_self_t self = {.rank = core->net.rank};
    r2_status_t status;

    if (NULL == health) {
        return R2_ERR_NO_MEMORY;
    }
    health->core = core;
    health->hosts = hosts;
    health->post = post;
    health->room = R2_NOTE_MAX;
    health->missed = UINT32_MAX;
    r2_ctx_health_ports(health, &ports);
    status = r2_ctx_health_tables(health);
    if (R2_OK == status) {
        for (uint32_t i = 0; i < core->net.rail_count; ++i) {
            self.rail_speed[i] = core->net.rails[i].nic.speed_bytes_per_s;
        }
        status = r2_health_create(health->hosts, &self, &core->params, &ports,
                                  r2_now_ns(core->clock), &health->machine);
    }
    if (R2_OK != status) {
        r2_ctx_health_free(health);
        return status;
    }
    *health_p = health;
    r2_ctx_health_share(health);
    return R2_OK;
}

void r2_ctx_health_destroy(r2_ctx_health_t *health)
{
    if (NULL != health) {
        r2_ctx_health_free(health);
    }
}

void r2_ctx_health_carrier(r2_ctx_health_t *health, uint32_t rail, bool carrier)
{
    char evidence[R2_NIC_OUTAGE_TEXT_MAX];

    if (NULL != health) {
        r2_nic_outage_text(&health->core->net.rails[rail].nic, evidence, sizeof(evidence));
        r2_health_carrier(health->machine, rail, carrier, evidence, health->core->net.now_ns);
    }
}

void r2_ctx_health_run(r2_ctx_health_t *health)
{
    r2_probe_answer_t answer;
    uint64_t now_ns, ask_id;

    if (NULL == health || health->core->net.ending) {
        return;
    }
    now_ns = health->core->net.now_ns;
    while (r2_lane_asks_next(&health->asks, &health->core->net, &ask_id, &answer)) {
        r2_note_probed(health, ask_id, answer);
    }
    r2_notes_give(health, now_ns);
    if (now_ns >= r2_health_deadline_ns(health->machine)) {
        r2_health_tick(health->machine, now_ns);
    }
    if (now_ns >= r2_rail_log_deadline_ns(health->rails)) {
        r2_rail_log_tick(health->rails, now_ns);
    }
}

uint64_t r2_ctx_health_deadline_ns(const r2_ctx_health_t *health)
{
    if (NULL == health) {
        return R2_NEVER_NS;
    }
    return r2_min(0 < health->queued ? health->core->net.now_ns
                                     : r2_health_deadline_ns(health->machine),
                  r2_min(r2_lane_asks_deadline_ns(&health->asks, &health->core->net),
                         r2_rail_log_deadline_ns(health->rails)));
}

bool r2_ctx_health_says_gone(const r2_ctx_health_t *health, uint32_t rank)
{
    return NULL != health && r2_health_gone(health->machine, rank);
}

const r2_health_map_t *r2_ctx_health_known(const r2_ctx_health_t *health)
{
    return NULL == health ? NULL : r2_health_map(health->machine);
}
