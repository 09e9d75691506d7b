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
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define R2_BYTES_PER_MBIT 125000ull

/** First line of a file, without newline. @return false: no such file, or empty. */
static bool r2_file_line(const char *path, char *text_p, size_t text_bytes)
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

/** The same of a network device. */
static bool r2_sysfs_read(const char *root, const char *name, const char *file, char *text_p,
                          size_t text_bytes)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s/class/net/%s/%s", root, name, file);
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

/** "mlx5_0" and "1" of "ROOT/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0". @return false: it
 * is no such path. */
static bool r2_nic_rdma_name(const char *path, const char *root, r2_nic_t *nic)
{
    char device[sizeof(nic->rdma)];
    int port;

    if (2 != sscanf(path + strlen(root), "/class/infiniband/%31[^/]/ports/%d/", device, &port)) {
        return false;
    }
    return snprintf(nic->rdma, sizeof(nic->rdma), "%.24s:%d", device, port) > 0;
}

void r2_nic_place_rdma(const char *root, r2_nic_t *nic)
{
    char pattern[PATH_MAX], text[R2_NIC_NAME_MAX + 1];
    glob_t found;

    if ('\0' != nic->rdma[0] ||
        r2_sysfs_number(root, nic->name, "ifindex", -1) != (long) nic->ifindex) {
        return;
    }
    snprintf(pattern, sizeof(pattern), "%s/class/infiniband/*/ports/*/gid_attrs/ndevs/*", root);
    if (0 != glob(pattern, 0, NULL, &found)) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; ++i) {
        if (r2_file_line(found.gl_pathv[i], text, sizeof(text)) && 0 == strcmp(text, nic->name) &&
            r2_nic_rdma_name(found.gl_pathv[i], root, nic)) {
            break;
        }
    }
    globfree(&found);
}
