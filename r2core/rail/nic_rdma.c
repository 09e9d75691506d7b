/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * RDMA ports, from sysfs: which one a NIC lies on, and what is known of it.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define R2_GIDS_MAX 1024 /* of a port; hardware has up to 256 */

bool r2_file_line(const char *path, char *text_p, size_t text_bytes)
{
    FILE *stream = fopen(path, "re");
    bool ok;

    if (NULL == stream) {
        return false;
    }
    ok = NULL != fgets(text_p, (int) text_bytes, stream);
    fclose(stream);
    if (ok) {
        text_p[strcspn(text_p, "\n")] = '\0';
    }
    return ok && '\0' != text_p[0];
}

/* What a port has, below its folder. A file of sysfs ends in a newline; one that cannot be read
 * (an empty place in the table of GIDs) counts as empty. */
static bool r2_port_line(const char *root, const char *rdma, const char *file, char *text_p,
                         size_t text_bytes)
{
    const char *colon = strrchr(rdma, ':');
    char path[PATH_MAX];

    if (NULL == colon) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.*s/ports/%s/%s", root,
             (int) (colon - rdma), rdma, colon + 1, file);
    return r2_file_line(path, text_p, text_bytes);
}

/* "4: ACTIVE" */
static r2_port_state_t r2_port_state_parse(const char *text)
{
    const unsigned long number = strtoul(text, NULL, 10);

    return number > R2_PORT_DEFER ? R2_PORT_UNKNOWN : (r2_port_state_t) number;
}

static r2_port_link_t r2_port_link_parse(const char *text)
{
    return 0 == strcmp(text, "InfiniBand") ? R2_LINK_INFINIBAND
           : 0 == strcmp(text, "Ethernet") ? R2_LINK_ETHERNET
                                           : R2_LINK_UNKNOWN;
}

/* "100 Gb/sec (4X EDR)" */
static uint64_t r2_port_rate_parse(const char *text)
{
    double gbit_per_s;

    return 1 == sscanf(text, "%lf Gb/sec", &gbit_per_s) && gbit_per_s > 0 && gbit_per_s < 1e6
               ? (uint64_t) (gbit_per_s * 1e9 / 8)
               : 0;
}

/* ---- GIDs ---- */

/* "fe80:0000:0000:0000:0002:c903:0000:0001" */
static bool r2_gid_parse(const char *text, uint8_t *gid_p)
{
    static const uint8_t none[16];

    return 1 == inet_pton(AF_INET6, text, gid_p) && 0 != memcmp(gid_p, none, sizeof(none));
}

static r2_gid_kind_t r2_gid_kind_parse(const char *text, r2_port_link_t link)
{
    if (R2_LINK_INFINIBAND == link) {
        return R2_GID_INFINIBAND;
    }
    return 0 == strcmp(text, "RoCE v2") ? R2_GID_ROCE_V2 : R2_GID_ROCE_V1;
}

#define R2_GID_WORTH_MAX 4

/*
 * How good a GID is for a rail. RoCE v2 over IPv4 is what UCX takes first, too; the NIC's own
 * address says which, where a port serves several NICs (VLANs). @return 0: not to be used.
 */
static unsigned r2_gid_worth(const uint8_t *gid, r2_gid_kind_t kind, uint32_t ipv4)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (R2_GID_ROCE_V2 != kind) {
        return 1;
    }
    if (0 != memcmp(gid, mapped, sizeof(mapped))) {
        return 2;
    }
    return 0 != ipv4 && 0 == memcmp(gid + sizeof(mapped), &ipv4, sizeof(ipv4)) ? R2_GID_WORTH_MAX
                                                                               : 3;
}

/* A place of the table. @param nic or NULL: any. @return its worth, 0: empty, or another NIC's. */
static unsigned r2_gid_read(const char *root, const char *rdma, unsigned idx, const r2_nic_t *nic,
                            r2_rdma_port_t *port)
{
    char file[64], text[64];

    snprintf(file, sizeof(file), "gids/%u", idx);
    if (!r2_port_line(root, rdma, file, text, sizeof(text)) || !r2_gid_parse(text, port->gid)) {
        return 0;
    }
    snprintf(file, sizeof(file), "gid_attrs/ndevs/%u", idx);
    if (NULL != nic && r2_port_line(root, rdma, file, text, sizeof(text)) &&
        0 != strcmp(text, nic->name)) {
        return 0;
    }
    snprintf(file, sizeof(file), "gid_attrs/types/%u", idx);
    if (!r2_port_line(root, rdma, file, text, sizeof(text))) {
        text[0] = '\0';
    }
    port->gid_kind = r2_gid_kind_parse(text, port->link);
    port->gid_idx = (uint16_t) idx;
    return r2_gid_worth(port->gid, port->gid_kind, NULL == nic ? 0 : nic->ipv4);
}

/* True if the port has this place in one of its tables: "gids", "gid_attrs/ndevs". */
static bool r2_gid_exists(const char *root, const char *rdma, const char *table, unsigned idx)
{
    const char *colon = strrchr(rdma, ':');
    char path[PATH_MAX];

    if (NULL == colon || idx >= R2_GIDS_MAX) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.*s/ports/%s/%s/%u", root,
             (int) (colon - rdma), rdma, colon + 1, table, idx);
    return 0 == access(path, F_OK);
}

/* The best GID, of equals the first. On InfiniBand the first: the others are aliases. */
static void r2_gid_find(const char *root, const char *rdma, const r2_nic_t *nic,
                        r2_rdma_port_t *port)
{
    const bool first = R2_LINK_INFINIBAND == port->link;
    r2_rdma_port_t best = *port;
    unsigned best_worth = 0;

    for (unsigned i = 0; best_worth < R2_GID_WORTH_MAX && (0 == i || !first) &&
                         r2_gid_exists(root, rdma, "gids", i);
         ++i) {
        const unsigned worth = r2_gid_read(root, rdma, i, nic, port);

        if (worth > best_worth) {
            best_worth = worth;
            best = *port;
        }
    }
    *port = best;
}

/* ---- ports ---- */

/*
 * UCX opens /dev/infiniband/uverbsN. A container may show the device in sysfs and lack that file.
 * Which file it is, sysfs says beside the device; where it does not, nothing is held against it.
 */
static bool r2_rdma_openable(const char *root, const char *rdma)
{
    const size_t bytes = strcspn(rdma, ":");
    char path[PATH_MAX];
    bool openable = true;
    DIR *folder;

    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.*s/device/infiniband_verbs", root,
             (int) bytes, rdma);
    folder = opendir(path);
    if (NULL == folder) {
        return true;
    }
    for (const struct dirent *at = readdir(folder); NULL != at; at = readdir(folder)) {
        if ('.' != at->d_name[0]) {
            snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, at->d_name);
            openable = 0 == access(path, R_OK | W_OK);
        }
    }
    closedir(folder);
    return openable;
}

/* What drivers count of a lossy path, as far as they do. */
static uint64_t r2_port_losses(const char *root, const char *rdma)
{
    static const char *const files[] = {"hw_counters/out_of_sequence",
                                        "hw_counters/packet_seq_err",
                                        "hw_counters/local_ack_timeout_err"};
    uint64_t sum = 0;
    char text[64];

    for (size_t i = 0; i < r2_array_count(files); ++i) {
        sum +=
            r2_port_line(root, rdma, files[i], text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
    }
    return sum;
}

void r2_rdma_port_read(const char *root, const char *rdma, const r2_nic_t *nic,
                       r2_rdma_port_t *port_p)
{
    r2_rdma_port_t port = {.openable = r2_rdma_openable(root, rdma),
                           .losses = r2_port_losses(root, rdma)};
    char text[64];

    if (r2_port_line(root, rdma, "state", text, sizeof(text))) {
        port.state = r2_port_state_parse(text);
    }
    if (r2_port_line(root, rdma, "link_layer", text, sizeof(text))) {
        port.link = r2_port_link_parse(text);
    }
    /* Without a link the slowest there is, whatever the port can do. */
    if (R2_PORT_DOWN != port.state && r2_port_line(root, rdma, "rate", text, sizeof(text))) {
        port.speed_bytes_per_s = r2_port_rate_parse(text);
    }
    if (R2_LINK_INFINIBAND == port.link && r2_port_line(root, rdma, "lid", text, sizeof(text))) {
        port.lid = (uint16_t) strtoul(text, NULL, 0);
        port.lid = UINT16_MAX == port.lid ? 0 : port.lid; /* not given out yet */
    }
    r2_gid_find(root, rdma, NULL != nic && r2_nic_is_bare(nic) ? NULL : nic, &port);
    *port_p = port;
}

static int r2_rdma_by_name(const void *a, const void *b)
{
    return strverscmp(((const r2_rdma_seen_t *) a)->name, ((const r2_rdma_seen_t *) b)->name);
}

/* Adds the ports of one device. */
static void r2_rdma_ports_of(const char *root, const char *device, r2_rdma_seen_t *ports_p,
                             size_t *count)
{
    char path[PATH_MAX];
    DIR *folder;

    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/ports", root, device);
    folder = opendir(path);
    if (NULL == folder) {
        return;
    }
    for (const struct dirent *at = readdir(folder); NULL != at; at = readdir(folder)) {
        const long number = strtol(at->d_name, NULL, 10);

        if (number > 0 && number <= R2_RDMA_NUMBER_MAX && *count < R2_RDMA_PORTS_MAX) {
            r2_rdma_seen_t *port = &ports_p[(*count)++];

            memset(port, 0, sizeof(*port));
            snprintf(port->name, sizeof(port->name), "%.*s:%ld", R2_RDMA_DEVICE_MAX - 1, device,
                     number);
        }
    }
    closedir(folder);
}

/* The names alone. */
static size_t r2_rdma_names(const char *root, r2_rdma_seen_t *ports_p)
{
    char path[PATH_MAX];
    size_t count = 0;
    DIR *folder;

    snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
    folder = opendir(path);
    if (NULL == folder) {
        return 0;
    }
    for (const struct dirent *at = readdir(folder); NULL != at; at = readdir(folder)) {
        if ('.' != at->d_name[0] && strlen(at->d_name) < R2_RDMA_DEVICE_MAX) {
            r2_rdma_ports_of(root, at->d_name, ports_p, &count);
        }
    }
    closedir(folder);
    qsort(ports_p, count, sizeof(*ports_p), r2_rdma_by_name);
    return count;
}

size_t r2_rdma_ports(const char *root, r2_rdma_seen_t *ports_p)
{
    const size_t count = r2_rdma_names(root, ports_p);

    for (size_t i = 0; i < count; ++i) {
        r2_rdma_port_read(root, ports_p[i].name, NULL, &ports_p[i].port);
    }
    return count;
}

/* True if a GID of the port is the NIC's. */
static bool r2_rdma_port_serves(const char *root, const char *rdma, const char *nic_name)
{
    char file[64], text[R2_NIC_NAME_MAX + 1];

    for (unsigned i = 0; r2_gid_exists(root, rdma, "gid_attrs/ndevs", i); ++i) {
        snprintf(file, sizeof(file), "gid_attrs/ndevs/%u", i);
        if (r2_port_line(root, rdma, file, text, sizeof(text)) && 0 == strcmp(text, nic_name)) {
            return true;
        }
    }
    return false;
}

bool r2_rdma_below(const char *root, r2_nic_t *nic)
{
    r2_rdma_seen_t *ports = malloc(R2_RDMA_PORTS_MAX * sizeof(*ports));
    const size_t count = NULL == ports ? 0 : r2_rdma_names(root, ports);

    for (size_t i = 0; i < count && '\0' == nic->rdma[0]; ++i) {
        if (r2_rdma_port_serves(root, ports[i].name, nic->name)) {
            memcpy(nic->rdma, ports[i].name, sizeof(nic->rdma));
        }
    }
    free(ports);
    return '\0' != nic->rdma[0];
}

/* ---- names ---- */

const char *r2_port_state_name(r2_port_state_t state)
{
    static const char *const names[] = {"-", "DOWN", "INIT", "ARMED", "ACTIVE", "DEFER"};

    return (size_t) state < r2_array_count(names) ? names[state] : names[0];
}

const char *r2_port_link_name(r2_port_link_t link)
{
    static const char *const names[] = {"-", "InfiniBand", "Ethernet"};

    return (size_t) link < r2_array_count(names) ? names[link] : names[0];
}

void r2_nic_outage_text(const r2_nic_t *nic, char *text_p, size_t text_bytes)
{
    const int device_bytes = (int) strcspn(nic->rdma, ":");

    switch (nic->outage) {
    case R2_NIC_PORT_DOWN:
        snprintf(text_p, text_bytes, "RDMA port %s is down", nic->rdma);
        return;
    case R2_NIC_DEVICE_DEAD:
        snprintf(text_p, text_bytes, "RDMA device %.*s had a fatal error", device_bytes, nic->rdma);
        return;
    case R2_NIC_WORKS:
    case R2_NIC_NO_LINK:
    case R2_NIC_NO_ADDRESS:
        break;
    }
    snprintf(text_p, text_bytes, "no carrier or no address");
}

const char *r2_gid_kind_name(r2_gid_kind_t kind)
{
    static const char *const names[] = {"-", "InfiniBand", "RoCE v1", "RoCE v2"};

    return (size_t) kind < r2_array_count(names) ? names[kind] : names[0];
}
