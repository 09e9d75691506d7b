/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Where a NIC sits and how fast it is, from sysfs.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define R2_BYTES_PER_MBIT 125000ull

/** First line of a file of a network device. */
static bool r2_sysfs_read(const char *root, const char *name, const char *file, char *text_p,
                          size_t text_bytes)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s/sys/class/net/%s/%s", root, name, file);
    return r2_file_line(path, text_p, text_bytes);
}

static long r2_sysfs_number(const char *root, const char *name, const char *file, long dflt)
{
    char text[64];
    char *end;
    long value;

    if (!r2_sysfs_read(root, name, file, text, sizeof(text))) {
        return dflt;
    }
    value = strtol(text, &end, 10);
    return end == text || '\0' != *end ? dflt : value;
}

/** "0000:3b:00.0", or with a longer domain "10000:e1:00.0". */
static bool r2_is_pci(const char *text, size_t bytes)
{
    static const char tail[] = ":xx:xx.x";
    const size_t domain = bytes - (sizeof(tail) - 1);

    if (bytes < sizeof(tail) - 1 + 4) {
        return false;
    }
    for (size_t i = 0; i < bytes; ++i) {
        const char wanted = i < domain ? 'x' : tail[i - domain];

        if ('x' == wanted ? !isxdigit((unsigned char) text[i]) : wanted != text[i]) {
            return false;
        }
    }
    return true;
}

/** The last PCI address in the path of the device: the function, not the bridges above it. */
static void r2_nic_pci(const char *path, char *pci_p, size_t pci_bytes)
{
    for (const char *at = strchr(path, '/'); NULL != at; at = strchr(at, '/')) {
        const size_t bytes = strcspn(++at, "/");

        if (bytes < pci_bytes && r2_is_pci(at, bytes)) {
            memcpy(pci_p, at, bytes);
            pci_p[bytes] = '\0';
        }
    }
}

/** NUMA node of the device, or of what it sits on (virtio sits on a PCI function). */
static int r2_nic_numa(const char *root, const char *name)
{
    const long own = r2_sysfs_number(root, name, "device/numa_node", -1);

    return (int) (own >= 0 ? own : r2_sysfs_number(root, name, "device/../numa_node", -1));
}

/** True if an RDMA device of the NIC's PCI function has this port. */
static bool r2_rdma_has_port(const char *root, const char *name, const char *device, long port)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/infiniband/%s/ports/%ld", root, name,
             device, port);
    return 0 == access(path, F_OK);
}

/**
 * RDMA device and port of the NIC's own PCI function. Where the function has several ports each NIC
 * says which is its own; where it has one, some drivers count the card's ports there all the same.
 */
static void r2_nic_rdma(const char *root, r2_nic_seen_t *seen)
{
    long port = r2_sysfs_number(root, seen->nic.name, "dev_port", 0) + 1;
    char path[PATH_MAX], first[R2_RDMA_DEVICE_MAX] = "";
    DIR *folder;

    snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/infiniband", root, seen->nic.name);
    folder = opendir(path);
    if (NULL == folder) {
        return;
    }
    for (const struct dirent *at = readdir(folder); NULL != at; at = readdir(folder)) {
        if ('.' != at->d_name[0] && strlen(at->d_name) < sizeof(first) &&
            ('\0' == first[0] || strverscmp(at->d_name, first) < 0)) {
            strcpy(first, at->d_name);
        }
    }
    closedir(folder);
    if (!r2_rdma_has_port(root, seen->nic.name, first, port) &&
        !r2_rdma_has_port(root, seen->nic.name, first, 2)) {
        port = 1;
    }
    if ('\0' != first[0] && port >= 1 && port <= R2_RDMA_NUMBER_MAX) {
        snprintf(seen->nic.rdma, sizeof(seen->nic.rdma), "%s:%d", first, (int) port);
    }
}

void r2_nic_place(const char *root, r2_nic_seen_t *seen)
{
    char path[PATH_MAX], real[PATH_MAX];
    long mbit_per_s;

    if (r2_sysfs_number(root, seen->nic.name, "ifindex", -1) != (long) seen->nic.ifindex) {
        return;
    }
    mbit_per_s = r2_sysfs_number(root, seen->nic.name, "speed", -1);
    if (mbit_per_s > 0 && mbit_per_s < 100000000) { /* drivers say 2^32 - 1 for unknown */
        seen->nic.speed_bytes_per_s = (uint64_t) mbit_per_s * R2_BYTES_PER_MBIT;
    }
    snprintf(path, sizeof(path), "%s/sys/class/net/%s/device", root, seen->nic.name);
    if (NULL == realpath(path, real)) {
        return;
    }
    seen->has_device = true;
    r2_nic_pci(real, seen->nic.pci, sizeof(seen->nic.pci));
    seen->nic.numa_node = r2_nic_numa(root, seen->nic.name);
    r2_nic_rdma(root, seen);
}

/* A bond has no place of its own: it is where its RDMA device is. */
void r2_nic_place_as(const char *root, r2_nic_t *nic)
{
    const int bytes = (int) strcspn(nic->rdma, ":");
    char path[PATH_MAX], real[PATH_MAX], text[16];

    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.*s/device", root, bytes, nic->rdma);
    if ('\0' == nic->pci[0] && NULL != realpath(path, real)) {
        r2_nic_pci(real, nic->pci, sizeof(nic->pci));
    }
    snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.*s/device/numa_node", root, bytes,
             nic->rdma);
    if (nic->numa_node < 0 && r2_file_line(path, text, sizeof(text))) {
        nic->numa_node = atoi(text);
    }
}

bool r2_nic_place_rdma(const char *root, r2_nic_t *nic)
{
    if (r2_sysfs_number(root, nic->name, "ifindex", -1) != (long) nic->ifindex ||
        ('\0' == nic->rdma[0] && !r2_rdma_below(root, nic))) {
        return false;
    }
    r2_nic_place_as(root, nic);
    r2_rdma_port_read(root, nic->rdma, nic, &nic->port);
    if (0 == nic->speed_bytes_per_s) {
        nic->speed_bytes_per_s = nic->port.speed_bytes_per_s;
    }
    return true;
}
