/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What stands in /sys/class/infiniband on a host with RDMA, in a folder of the NIC's own. The
 * library shows it to the application in that place.
 */
#include "softverbs/nic/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the folders on the way to a file below the NIC's. */
static void make_folders(char *path, size_t from)
{
    for (char *at = path + from; NULL != (at = strchr(at + 1, '/'));) {
        *at = '\0';
        mkdir(path, 0755);
        *at = '/';
    }
}

/* Writes a file of a device: the old or the new text is seen, never a part. */
__attribute__((format(printf, 3, 4))) static void put(const sv_dev_t *dev, const char *name,
                                                      const char *format, ...)
{
    char path[256], fresh[260];
    va_list list;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/%s", dev->nic->files, dev->about.name, name);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    make_folders(fresh, strlen(dev->nic->files));
    file = fopen(fresh, "we");
    if (NULL != file) {
        va_start(list, format);
        vfprintf(file, format, list);
        va_end(list);
        fclose(file);
        rename(fresh, path);
    }
}

static unsigned gbit(const sv_dev_t *dev)
{
    static const struct {
        uint32_t speed;
        unsigned tenths;
    } lanes[] = {{1, 25},   {2, 50},   {4, 100},  {8, 100},
                 {16, 140}, {32, 250}, {64, 500}, {128, 1000}};
    unsigned tenths = 0, width = dev->width < 16 ? dev->width : 2;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); ++i) {
        tenths = lanes[i].speed == dev->speed ? lanes[i].tenths : tenths;
    }
    return tenths * (1 == width ? 1 : 2 == width ? 4 : width) / 10;
}

static void put_gid(const sv_dev_t *dev, uint32_t index)
{
    uint8_t gid[16] = {0};
    const bool is_other = 0 != index && index == dev->other_index;
    bool has_address =
        !dev->about.is_ib && ((index == dev->gid_index && 0 != dev->about.ip) || is_other);
    char name[64], text[64];
    int at = 0;

    if (0 == index) {
        sv_link_local(&dev->about, gid);
    } else if (is_other) {
        sv_other_gid(gid);
    } else if (has_address) {
        gid[10] = gid[11] = 0xff;
        memcpy(gid + 12, &dev->about.ip, 4);
    }
    for (int i = 0; i < 16; i += 2) {
        at += snprintf(text + at, sizeof(text) - (size_t) at, "%s%02x%02x", 0 == i ? "" : ":",
                       gid[i], gid[i + 1]);
    }
    snprintf(name, sizeof(name), "ports/1/gids/%u", index);
    put(dev, name, "%s\n", text);
    if (dev->about.is_ib) { /* no netdev is known to it */
        return;
    }
    snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%u", index);
    put(dev, name, "%s", 0 == index ? "IB/RoCE v1\n" : has_address ? "RoCE v2\n" : "");
    snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%u", index);
    put(dev, name, "%s%s%s", 0 == index || has_address ? dev->about.netdev : "",
        is_other ? ".7" : "", 0 == index || has_address ? "\n" : "");
}

void sv_files_update(sv_dev_t *dev)
{
    if ('\0' == dev->nic->files[0]) {
        return;
    }
    put(dev, "node_type", "1: CA\n");
    put(dev, "fw_ver", "softverbs\n");
    put(dev, "ports/1/link_layer", "%s\n", dev->about.is_ib ? "InfiniBand" : "Ethernet");
    put(dev, "ports/1/lid", "0x%x\n", sv_is_up(dev) ? sv_lid(dev) : 0);
    put(dev, "ports/1/state", "%s\n", sv_is_up(dev) ? "4: ACTIVE" : "1: DOWN");
    put(dev, "ports/1/phys_state", "%s\n", sv_is_up(dev) ? "5: LinkUp" : "3: Disabled");
    put(dev, "ports/1/rate", "%u Gb/sec\n", gbit(dev));
    for (uint32_t i = 0; i < SV_GIDS; ++i) {
        put_gid(dev, i);
    }
}

int sv_files_create(sv_nic_t *nic)
{
    if ('\0' == nic->files[0]) {
        snprintf(nic->files, sizeof(nic->files), "/tmp/softverbs-XXXXXX");
        return NULL == mkdtemp(nic->files) || 0 != chmod(nic->files, 0755) ? -1 : 0;
    }
    return 0 == mkdir(nic->files, 0755) || EEXIST == errno ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void) about;
    (void) type;
    (void) where;
    return remove(path);
}

void sv_files_remove(sv_nic_t *nic)
{
    nftw(nic->files, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
