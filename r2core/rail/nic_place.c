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

#define R2_BYTES_PER_MBIT 125000ull

/** First line of a file of a network device, without newline. @return false: no such file or empty.
 */
static bool r2_sysfs_read(const char *root, const char *name, const char *file, char *text_p,
                          size_t text_bytes)
{
    char path[PATH_MAX];
    FILE *stream;
    bool ok;

    snprintf(path, sizeof(path), "%s/class/net/%s/%s", root, name, file);
    stream = fopen(path, "re");
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

/** RDMA device and port that share the NIC, and their speed where the network device has none. */
static void r2_nic_rdma(const char *root, r2_nic_seen_t *seen)
{
    const long port = r2_sysfs_number(root, seen->nic.name, "dev_port", 0) + 1;
    char path[PATH_MAX], first[24] = "", file[PATH_MAX], text[64];
    double gbit_per_s;
    DIR *folder;

    snprintf(path, sizeof(path), "%s/class/net/%s/device/infiniband", root, seen->nic.name);
    folder = opendir(path);
    if (NULL == folder) {
        return;
    }
    for (const struct dirent *at = readdir(folder); NULL != at; at = readdir(folder)) {
        if ('.' != at->d_name[0] && strlen(at->d_name) < sizeof(first) &&
            ('\0' == first[0] || strcmp(at->d_name, first) < 0)) {
            strcpy(first, at->d_name);
        }
    }
    closedir(folder);
    if ('\0' == first[0] || port < 1 || port > 255) {
        return;
    }
    snprintf(seen->nic.rdma, sizeof(seen->nic.rdma), "%s:%d", first, (int) port);
    snprintf(file, sizeof(file), "device/infiniband/%s/ports/%d/rate", first, (int) port);
    if (0 == seen->nic.speed_bytes_per_s &&
        r2_sysfs_read(root, seen->nic.name, file, text, sizeof(text)) &&
        1 == sscanf(text, "%lf Gb/sec", &gbit_per_s) && gbit_per_s > 0 && gbit_per_s < 1e6) {
        seen->nic.speed_bytes_per_s = (uint64_t) (gbit_per_s * 1000 * R2_BYTES_PER_MBIT);
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
    snprintf(path, sizeof(path), "%s/class/net/%s/device", root, seen->nic.name);
    if (NULL == realpath(path, real)) {
        return;
    }
    seen->has_device = true;
    r2_nic_pci(real, seen->nic.pci, sizeof(seen->nic.pci));
    seen->nic.numa_node = r2_nic_numa(root, seen->nic.name);
    r2_nic_rdma(root, seen);
}
