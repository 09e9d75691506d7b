/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: hosts, rails, their paths and their faults.
 */
#include "r2_config.h"

#include "doubles/sim_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sim_or(uint64_t value, uint64_t otherwise)
{
    return 0 == value ? otherwise : value;
}

static uint64_t sim_clock_now_ns(void *arg)
{
    const r2_sim_node_t *node = arg;

    return node->sim->now_ns;
}

static uint64_t sim_clock_random_u64(void *arg)
{
    r2_sim_node_t *node = arg;

    return r2_prng_u64(&node->prng);
}

static bool sim_clock_cpu_time(void *arg, r2_cpu_time_t *time_p)
{
    const r2_sim_node_t *node = arg;
    const uint64_t waited_ppm = node->sim->config.crowded_ppm;

    time_p->thread = 1;
    time_p->waited_ns = node->sim->now_ns / 1000000 * waited_ppm;
    time_p->ran_ns = node->sim->now_ns - time_p->waited_ns;
    return true;
}

static void sim_defaults(r2_sim_config_t *config)
{
    config->rail_bytes_per_s = sim_or(config->rail_bytes_per_s, 1000000000);
    config->rail_latency_ns = sim_or(config->rail_latency_ns, 10 * R2_NS_PER_US);
    config->local_bytes_per_s = sim_or(config->local_bytes_per_s, 10000000000);
    config->local_latency_ns = sim_or(config->local_latency_ns, 500);
    config->socket_bytes = sim_or(config->socket_bytes, 256 << 10);
    config->receive_bytes = sim_or(config->receive_bytes, 256 << 10);
    config->quantum_bytes = sim_or(config->quantum_bytes, 9000);
    config->retry_max_ns = sim_or(config->retry_max_ns, 200 * R2_NS_PER_MS);
    config->carrier_delay_ns = sim_or(config->carrier_delay_ns, 300 * R2_NS_PER_US);
    config->batch = (uint32_t) sim_or(config->batch, 16);
}

static void sim_init_ports(r2_sim_t *sim)
{
    const r2_sim_config_t *config = &sim->config;
    uint32_t host, rail;
    r2_sim_port_t *port = sim->ports;

    for (host = 0; host < config->host_count; ++host) {
        for (rail = 0; rail <= config->rail_count; ++rail, ++port) {
            bool local = rail == config->rail_count;

            port->sim = sim;
            port->host = host;
            port->rail = local ? R2_SIM_LOCAL : rail;
            port->bytes_per_s = local ? config->local_bytes_per_s : config->rail_bytes_per_s;
            port->latency_ns = local ? config->local_latency_ns : config->rail_latency_ns;
            port->carrier = port->out = port->in = true;
        }
    }
}

static void sim_init_nodes(r2_sim_t *sim, const uint32_t *node_host)
{
    uint32_t i;

    for (i = 0; i < sim->config.node_count; ++i) {
        r2_sim_node_t *node = &sim->nodes[i];

        node->sim = sim;
        node->idx = i;
        node->host = NULL == node_host ? i % sim->config.host_count : node_host[i];
        node->clock = (r2_clock_t){.now_ns = sim_clock_now_ns,
                                   .random_u64 = sim_clock_random_u64,
                                   .arg = node,
                                   .cpu_time = sim_clock_cpu_time};
        r2_prng_seed(&node->prng, r2_prng_u64(&sim->prng));
    }
}

r2_sim_t *r2_sim_create(const r2_sim_config_t *config, const r2_sim_hooks_t *hooks)
{
    r2_sim_t *sim;

    if (0 == config->host_count || 0 == config->node_count || config->rail_count > R2_RAILS_MAX) {
        return NULL;
    }
    sim = calloc(1, sizeof(*sim));
    if (NULL == sim) {
        return NULL;
    }
    r2_pool_init(&sim->pendings, sizeof(r2_sim_pending_t));
    sim->config = *config;
    sim->config.node_host = NULL;
    if (NULL != hooks) {
        sim->hooks = *hooks;
    }
    sim_defaults(&sim->config);
    r2_prng_seed(&sim->prng, config->seed);
    sim->now_ns = R2_NS_PER_S; /* zero would hide times that were never set */
    sim->nodes = calloc(config->node_count, sizeof(*sim->nodes));
    sim->ports =
        calloc((size_t) config->host_count * (config->rail_count + 1), sizeof(*sim->ports));
    if (NULL == sim->nodes || NULL == sim->ports) {
        r2_sim_destroy(sim);
        return NULL;
    }
    sim_init_ports(sim);
    sim_init_nodes(sim, config->node_host);
    return sim;
}

static void sim_queue_free(r2_sim_queue_t *queue)
{
    r2_sim_packet_t *packet, *next;

    LL_FOREACH_SAFE(queue->head, packet, next) {
        free(packet);
    }
    queue->head = queue->tail = NULL;
}

void r2_sim_destroy(r2_sim_t *sim)
{
    r2_tp_device_t *device, *device_next;
    r2_tp_worker_t *worker, *worker_next;
    r2_tp_ep_t *ep, *ep_next;
    r2_sim_pending_t *pending, *pending_next;

    if (NULL == sim) {
        return;
    }
    for (ep = sim->eps; NULL != ep; ep = ep_next) {
        ep_next = ep->all_next;
        sim_queue_free(&ep->socket);
        DL_FOREACH_SAFE(ep->pending, pending, pending_next) {
            r2_pool_put(&sim->pendings, pending);
        }
        free(ep);
    }
    for (worker = sim->workers; NULL != worker; worker = worker_next) {
        worker_next = worker->all_next;
        sim_queue_free(&worker->received);
        while (NULL != worker->offered) { /* of processes that died */
            ep = worker->offered;
            DL_DELETE(worker->offered, ep);
            free(ep);
        }
        free(worker);
    }
    for (device = sim->devices; NULL != device; device = device_next) {
        device_next = device->all_next;
        free(device);
    }
    r2_pool_fini(&sim->pendings);
    free(sim->grants);
    free(sim->heap);
    free(sim->nodes);
    free(sim->ports);
    free(sim);
}

/* ---- paths ---- */

r2_sim_port_t *r2_sim_port(const r2_sim_t *sim, uint32_t host, uint32_t rail)
{
    if (R2_SIM_LOCAL == rail) {
        rail = sim->config.rail_count;
    } else if (rail >= sim->config.rail_count) {
        return NULL;
    }
    return host >= sim->config.host_count
               ? NULL
               : &sim->ports[(size_t) host * (sim->config.rail_count + 1) + rail];
}

static bool sim_cut_matches(const r2_sim_cut_t *cut, uint32_t a, uint32_t b, uint32_t rail)
{
    return cut->rail == rail &&
           ((cut->host_a == a && cut->host_b == b) || (cut->host_a == b && cut->host_b == a));
}

/* Packets of the kernels; those of lanes need NICs that carry them, too. */
static bool sim_ports_reach(const r2_sim_port_t *from, const r2_sim_port_t *to)
{
    const r2_sim_t *sim = from->sim;
    uint32_t i;

    for (i = 0; i < sim->cut_count; ++i) {
        if (sim_cut_matches(&sim->cuts[i], from->host, to->host, from->rail)) {
            return false;
        }
    }
    return from->carrier && from->out && to->carrier && to->in;
}

bool r2_sim_ports_pass(const r2_sim_port_t *from, const r2_sim_port_t *to)
{
    return sim_ports_reach(from, to) && !from->port_down && !to->port_down;
}

bool r2_sim_passes(const r2_sim_t *sim, uint32_t from, uint32_t to, uint32_t rail)
{
    const r2_sim_port_t *a = r2_sim_port(sim, sim->nodes[from].host, rail);
    const r2_sim_port_t *b = r2_sim_port(sim, sim->nodes[to].host, rail);

    return NULL != a && NULL != b && sim_ports_reach(a, b);
}

bool r2_sim_carrier(const r2_sim_t *sim, uint32_t node, uint32_t rail)
{
    const r2_sim_port_t *port = r2_sim_port(sim, sim->nodes[node].host, rail);

    return NULL != port && port->carrier;
}

uint64_t r2_sim_latency_ns(const r2_sim_t *sim, uint32_t rail)
{
    return R2_SIM_LOCAL == rail ? sim->config.local_latency_ns : sim->config.rail_latency_ns;
}

/* ---- faults ---- */

static r2_sim_port_t *sim_fault_port(r2_sim_t *sim, uint32_t host, uint32_t rail)
{
    r2_sim_port_t *port = r2_sim_port(sim, host, rail);

    if (NULL == port) {
        r2_sim_fail(sim, "fault on host %u rail %u, which does not exist", host, rail);
    }
    return port;
}

static void sim_tell_carrier(void *arg, uint64_t up)
{
    r2_sim_port_t *port = arg;

    if (NULL != port->sim->hooks.carrier && port->carrier == (0 != up)) {
        port->sim->hooks.carrier(port->sim->hooks.arg, port->host, port->rail, port->carrier);
    }
}

void r2_sim_set_carrier(r2_sim_t *sim, uint32_t host, uint32_t rail, bool up)
{
    r2_sim_port_t *port = sim_fault_port(sim, host, rail);

    if (NULL == port || port->carrier == up) {
        return;
    }
    port->carrier = up;
    r2_sim_at(sim, sim->now_ns + sim->config.carrier_delay_ns, sim_tell_carrier, port, up);
    r2_sim_conns_resume(sim);
}

void r2_sim_set_pass(r2_sim_t *sim, uint32_t host, uint32_t rail, bool out, bool in)
{
    r2_sim_port_t *port = sim_fault_port(sim, host, rail);

    if (NULL != port) {
        port->out = out;
        port->in = in;
        r2_sim_conns_resume(sim);
    }
}

void r2_sim_set_port_down(r2_sim_t *sim, uint32_t host, uint32_t rail, bool down)
{
    r2_sim_port_t *port = sim_fault_port(sim, host, rail);

    if (NULL != port) {
        port->port_down = down;
        r2_sim_conns_resume(sim);
    }
}

void r2_sim_set_rate(r2_sim_t *sim, uint32_t host, uint32_t rail, uint64_t bytes_per_s)
{
    r2_sim_port_t *port = sim_fault_port(sim, host, rail);
    uint64_t rate = sim_or(bytes_per_s, sim->config.rail_bytes_per_s);

    if (NULL == port) {
        return;
    }
    if (port->in_busy_ns > sim->now_ns) {
        unsigned __int128 left = port->in_busy_ns - sim->now_ns;

        port->in_busy_ns = sim->now_ns + (uint64_t) (left * port->bytes_per_s / rate);
    }
    port->bytes_per_s = rate;
}

void r2_sim_set_loss(r2_sim_t *sim, uint32_t host, uint32_t rail, uint32_t ppm)
{
    r2_sim_port_t *port = sim_fault_port(sim, host, rail);

    if (NULL != port) {
        port->loss_ppm = ppm;
    }
}

void r2_sim_set_cut(r2_sim_t *sim, uint32_t host_a, uint32_t host_b, uint32_t rail, bool cut)
{
    uint32_t i;

    for (i = 0; i < sim->cut_count; ++i) {
        if (sim_cut_matches(&sim->cuts[i], host_a, host_b, rail)) {
            break;
        }
    }
    if (cut && i == sim->cut_count) {
        if (R2_SIM_CUTS_MAX == sim->cut_count) {
            r2_sim_fail(sim, "more than %d cuts", R2_SIM_CUTS_MAX);
            return;
        }
        sim->cuts[sim->cut_count++] = (r2_sim_cut_t){host_a, host_b, rail};
    } else if (!cut && i < sim->cut_count) {
        sim->cuts[i] = sim->cuts[--sim->cut_count];
        r2_sim_conns_resume(sim);
    }
}

void r2_sim_break_endpoints(r2_sim_t *sim, uint32_t host, uint32_t rail)
{
    r2_sim_port_t *port = sim_fault_port(sim, host, rail);
    r2_tp_ep_t *ep;

    for (ep = sim->eps; NULL != ep; ep = ep->all_next) {
        if (ep->port == port && !ep->closed) {
            r2_sim_conn_reset(ep);
        }
    }
}

void r2_sim_kill(r2_sim_t *sim, uint32_t node)
{
    r2_tp_worker_t *worker;

    sim->nodes[node].dead = true;
    for (worker = sim->workers; NULL != worker; worker = worker->all_next) {
        if (worker->device->node == node && !worker->destroyed) {
            r2_sim_worker_end(worker);
        }
    }
}

/* ---- nodes ---- */

r2_tp_t r2_sim_transport(r2_sim_t *sim, uint32_t node)
{
    return (r2_tp_t){&r2_sim_tp_ops, &sim->nodes[node]};
}

const r2_clock_t *r2_sim_clock(r2_sim_t *sim, uint32_t node)
{
    return &sim->nodes[node].clock;
}

void r2_sim_nics(const r2_sim_t *sim, uint32_t node, r2_nic_t *nics_p, size_t *count_p)
{
    const size_t first = (size_t) sim->nodes[node].host * (sim->config.rail_count + 1);

    for (uint32_t rail = 0; rail < sim->config.rail_count; ++rail) {
        const r2_sim_port_t *port = &sim->ports[first + rail];
        r2_nic_t *nic = &nics_p[rail];

        memset(nic, 0, sizeof(*nic));
        snprintf(nic->name, sizeof(nic->name), "rail%u", rail);
        nic->ifindex = rail + 1;
        nic->ipv4 = 10u | (rail & 0xff) << 8 | (port->host & 0xff) << 24 | (port->host >> 8) << 16;
        nic->prefix_bits = 16;
        nic->carrier = port->carrier;
        nic->speed_bytes_per_s = sim_or(sim->config.told_bytes_per_s, port->bytes_per_s);
        nic->numa_node = -1;
    }
    *count_p = sim->config.rail_count;
}

uint32_t r2_sim_host_of(const r2_sim_t *sim, uint32_t node)
{
    return sim->nodes[node].host;
}

bool r2_sim_dead(const r2_sim_t *sim, uint32_t node)
{
    return sim->nodes[node].dead;
}

uint64_t r2_sim_random_u64(r2_sim_t *sim)
{
    return r2_prng_u64(&sim->prng);
}

void r2_sim_wake(r2_sim_t *sim, uint32_t node)
{
    if (NULL != sim->hooks.wake && !sim->nodes[node].dead) {
        sim->hooks.wake(sim->hooks.arg, node);
    }
}

const r2_sim_stats_t *r2_sim_stats(const r2_sim_t *sim)
{
    return &sim->stats;
}

void r2_sim_fail(r2_sim_t *sim, const char *format, ...)
{
    va_list args;

    if ('\0' == sim->failure[0]) {
        int n = snprintf(sim->failure, sizeof(sim->failure),
                         "at %.6f ms: ", (double) (sim->now_ns - R2_NS_PER_S) / 1e6);

        va_start(args, format);
        vsnprintf(sim->failure + n, sizeof(sim->failure) - (size_t) n, format, args);
        va_end(args);
    }
}

const char *r2_sim_failure(const r2_sim_t *sim)
{
    return '\0' == sim->failure[0] ? NULL : sim->failure;
}
