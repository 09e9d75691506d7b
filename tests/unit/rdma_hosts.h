/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hosts with RDMA devices, as netlink and sysfs show them.
 */
#ifndef RDMA_HOSTS_H
#define RDMA_HOSTS_H

#include <arpa/inet.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fake_sysfs.h"
#include "rail/nic_parts.h"

#define T_SEEN_MAX 12

/** A host: what netlink would list, and its sysfs. */
typedef struct t_host {
    char root[PATH_MAX];
    r2_nic_seen_t seen[T_SEEN_MAX];
    size_t count;
    char managers[32];
} t_host_t;

static void t_begin(t_host_t *host)
{
    memset(host, 0, sizeof(*host));
    fake_begin(host->root);
}

static void t_path(const t_host_t *host, const char *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** A file with a line of text. */
static void t_path(const t_host_t *host, const char *text, const char *format, ...)
{
    char name[PATH_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    fake_file(host->root, name, text);
}

/** A network device. @param pci its device, NULL: it has none. @param ip NULL: none. */
static r2_nic_seen_t *t_nic(t_host_t *host, const char *name, const char *kind, const char *pci,
                            const char *ip, bool carrier)
{
    r2_nic_seen_t *seen = &host->seen[host->count++];
    char target[256], link[256], text[16];

    snprintf(seen->nic.name, sizeof(seen->nic.name), "%s", name);
    snprintf(seen->kind, sizeof(seen->kind), "%s", kind);
    seen->nic.ifindex = (uint32_t) host->count;
    seen->nic.ipv4 = NULL == ip ? 0 : inet_addr(ip);
    seen->nic.prefix_bits = 24;
    seen->nic.carrier = carrier;
    seen->nic.numa_node = -1;
    snprintf(text, sizeof(text), "%u", seen->nic.ifindex);
    t_path(host, text, "sys/class/net/%s/ifindex", name);
    if (NULL != pci) {
        snprintf(target, sizeof(target), "sys/devices/pci0000:00/%s", pci);
        snprintf(link, sizeof(link), "sys/class/net/%s/device", name);
        fake_link(host->root, target, link);
    }
    return seen;
}

/** A NIC's speed, as its driver tells it. */
static void t_speed(const t_host_t *host, const char *name, const char *mbit)
{
    t_path(host, mbit, "sys/class/net/%s/speed", name);
}

/** An RDMA device on a PCI function. */
static void t_device(const t_host_t *host, const char *device, const char *pci, const char *node)
{
    char target[256], link[256];

    snprintf(target, sizeof(target), "sys/devices/pci0000:00/%s/infiniband/%s", pci, device);
    snprintf(link, sizeof(link), "sys/class/infiniband/%s", device);
    fake_link(host->root, target, link);
    snprintf(target, sizeof(target), "sys/devices/pci0000:00/%s", pci);
    snprintf(link, sizeof(link), "sys/class/infiniband/%s/device", device);
    fake_link(host->root, target, link);
    t_path(host, node, "sys/devices/pci0000:00/%s/numa_node", pci);
}

static void t_port(const t_host_t *host, const char *device, int port, const char *link,
                   const char *state, const char *rate, const char *lid)
{
    t_path(host, link, "sys/class/infiniband/%s/ports/%d/link_layer", device, port);
    t_path(host, state, "sys/class/infiniband/%s/ports/%d/state", device, port);
    t_path(host, rate, "sys/class/infiniband/%s/ports/%d/rate", device, port);
    t_path(host, lid, "sys/class/infiniband/%s/ports/%d/lid", device, port);
}

/** @param gid NULL: an empty place. */
static void t_gid(const t_host_t *host, const char *device, int port, int idx, const char *gid,
                  const char *type, const char *netdev)
{
    static const char none[] = "0000:0000:0000:0000:0000:0000:0000:0000";

    t_path(host, NULL == gid ? none : gid, "sys/class/infiniband/%s/ports/%d/gids/%d", device, port,
           idx);
    t_path(host, NULL == gid ? "" : type, "sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d",
           device, port, idx);
    t_path(host, NULL == gid ? "" : netdev, "sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d",
           device, port, idx);
}

#define T_MAPPED "0000:0000:0000:0000:0000:ffff:"
#define T_LOCAL  "fe80:0000:0000:0000:0a00:00ff:fe00:00"

/** A port of RoCE as drivers fill it: v1 and v2 of the link-local address, then of the NIC's. */
static void t_roce(const t_host_t *host, const char *device, int port, const char *netdev,
                   const char *local, const char *mapped)
{
    t_gid(host, device, port, 0, local, "IB/RoCE v1", netdev);
    t_gid(host, device, port, 1, local, "RoCE v2", netdev);
    t_gid(host, device, port, 2, mapped, "IB/RoCE v1", netdev);
    t_gid(host, device, port, 3, mapped, "RoCE v2", netdev);
}

#endif
