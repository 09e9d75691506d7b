/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * InfiniBand ports without IP: which there are, and which network device stands in for theirs.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The first of the devices that are fit, by natural order of names. @param pattern NULL: any that
 * is no bridge of containers. */
static const r2_nic_t *r2_bare_first(const r2_nic_seen_t *seen, size_t count, const char *pattern,
                                     bool carrier)
{
    const r2_nic_t *best = NULL;

    for (size_t i = 0; i < count; ++i) {
        const r2_nic_t *nic = &seen[i].nic;
        const bool named = NULL != pattern ? 0 == fnmatch(pattern, nic->name, 0)
                                           : 0 != strcmp("bridge", seen[i].kind) &&
                                                 0xa9fe != ntohl(nic->ipv4) >> 16;

        if (named && 0 != nic->ipv4 && !seen[i].loopback && (nic->carrier || !carrier) &&
            (NULL == best || strverscmp(nic->name, best->name) < 0)) {
            best = nic;
        }
    }
    return best;
}

/* The first that the words name, in their order, as the out-of-band network takes them. */
static const r2_nic_t *r2_bare_named(const r2_nic_seen_t *seen, size_t count, const char *words,
                                     bool carrier)
{
    const r2_nic_t *found = NULL;

    for (const char *at = words + strspn(words, ", \t"); NULL == found && '\0' != *at;
         at += strspn(at, ", \t")) {
        const size_t bytes = strcspn(at, ", \t");
        char word[R2_NIC_NAME_MAX];

        if (bytes < sizeof(word)) {
            memcpy(word, at, bytes);
            word[bytes] = '\0';
            found = r2_bare_first(seen, count, word, carrier);
        }
        at += bytes;
    }
    return found;
}

/* The network device that connect requests take: of those without carrier only if it is named, and
 * no other is. */
static const r2_nic_t *r2_bare_manager(const r2_nic_seen_t *seen, size_t count,
                                       const char *managers)
{
    const r2_nic_t *best;

    if ('\0' == managers[0]) {
        return r2_bare_first(seen, count, NULL, true);
    }
    best = r2_bare_named(seen, count, managers, true);
    return NULL != best ? best : r2_bare_named(seen, count, managers, false);
}

/* True if a network device with an address lies on the port: then that is the rail. */
static bool r2_port_has_ip(const r2_nic_seen_t *seen, size_t count, const char *rdma)
{
    for (size_t i = 0; i < count; ++i) {
        if (0 != seen[i].nic.ipv4 && 0 == strcmp(seen[i].nic.rdma, rdma)) {
            return true;
        }
    }
    return false;
}

static void r2_bare_fill(const char *root, const r2_rdma_seen_t *port, const r2_nic_t *manager,
                         r2_nic_seen_t *seen_p)
{
    r2_nic_t *nic = &seen_p->nic;

    memset(seen_p, 0, sizeof(*seen_p));
    memcpy(nic->name, port->name, sizeof(nic->name));
    memcpy(nic->rdma, port->name, sizeof(nic->rdma));
    memcpy(nic->via, manager->name, sizeof(nic->via));
    nic->ifindex = manager->ifindex;
    nic->ipv4 = manager->ipv4;
    nic->prefix_bits = manager->prefix_bits;
    nic->port = port->port;
    nic->speed_bytes_per_s = port->port.speed_bytes_per_s;
    nic->carrier = R2_PORT_ACTIVE == nic->port.state || R2_PORT_DEFER == nic->port.state;
    nic->numa_node = -1;
    r2_nic_place_as(root, nic);
    seen_p->has_device = true;
}

r2_status_t r2_nics_add_bare(const char *root, const char *managers, r2_nic_seen_t **seen_p,
                             size_t *count_p)
{
    r2_rdma_seen_t *ports = malloc(R2_RDMA_PORTS_MAX * sizeof(*ports));
    const size_t port_count = NULL == ports ? 0 : r2_rdma_ports(root, ports);
    const size_t count = *count_p;
    r2_nic_seen_t *seen =
        NULL == ports ? NULL : realloc(*seen_p, (count + port_count + 1) * sizeof(*seen));
    const r2_nic_t *manager;

    if (NULL == seen) {
        free(ports);
        return R2_ERR_NO_MEMORY;
    }
    *seen_p = seen;
    manager = r2_bare_manager(seen, count, managers);
    for (size_t i = 0; i < port_count && NULL != manager; ++i) {
        if (R2_LINK_INFINIBAND == ports[i].port.link &&
            !r2_port_has_ip(seen, count, ports[i].name)) {
            r2_bare_fill(root, &ports[i], manager, &seen[(*count_p)++]);
        }
    }
    free(ports);
    return R2_OK;
}
