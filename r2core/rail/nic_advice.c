/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What keeps rails from RDMA, or stands against it, and what to do: pure functions of what was
 * found.
 */
#include "r2_config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include "base/util.h"
#include "rail/nic_parts.h"

/* Of each rail: receive buffers and staging memory; what applications send from is more. */
#define R2_RDMA_MEMLOCK_BYTES (64ull << 20)

/* Fewer come from a link that was down once. */
#define R2_ROCE_LOSSES_MIN 1000u

#define R2_LIFT_MEMLOCK                                                    \
    "lift the limit (memlock unlimited in /etc/security/limits.conf, and " \
    "LimitMEMLOCK=infinity in the resource manager's service)"

typedef struct r2_advice_list {
    r2_rdma_advice_t *rows; /* borrowed: R2_RDMA_ADVICE_MAX */
    size_t count;
} r2_advice_list_t;

static void r2_advice_add(r2_advice_list_t *list, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void r2_advice_add(r2_advice_list_t *list, const char *remedy, const char *format, ...)
{
    r2_rdma_advice_t *row = &list->rows[list->count++];
    va_list args;

    va_start(args, format);
    vsnprintf(row->what, sizeof(row->what), format, args);
    va_end(args);
    row->remedy = remedy;
}

static const struct {
    const char *what, *remedy;
} r2_lacks[] = {
    [R2_RDMA_LACKS_FILE] = {"its file in /dev/infiniband is missing, or may not be opened",
                            "give the container or the user that device (docker run "
                            "--device=/dev/infiniband; modprobe ib_uverbs), or set coll_r2_tls = "
                            "tcp"},
    [R2_RDMA_LACKS_MODULE] = {"UCX does not know it",
                              "install UCX's module for InfiniBand (ucx_info -d lists what UCX "
                              "sees), or set coll_r2_tls = tcp"},
    [R2_RDMA_LACKS_MEMORY] = {"this process may not lock enough memory (ulimit -l)",
                              R2_LIFT_MEMLOCK ", or set coll_r2_tls = tcp"},
    [R2_RDMA_LACKS_DEVICE] = {"it cannot be opened",
                              "see what ibv_devinfo and UCX_LOG_LEVEL=debug say of it, or set "
                              "coll_r2_tls = tcp"},
};

/* One rail is enough to make the point. */
static void r2_advise_devices(const r2_nic_t *nics, size_t count, r2_advice_list_t *list)
{
    for (size_t i = 0; i < count; ++i) {
        const r2_nic_t *nic = &nics[i];

        if (R2_RDMA_LACKS_NOTHING != nic->lack) {
            r2_advice_add(list, r2_lacks[nic->lack].remedy,
                          r2_nic_is_bare(nic)
                              ? "rail %zu (%s) has no IP, and cannot go by its RDMA device %s: %s"
                              : "rail %zu (%s) goes by TCP, not by its RDMA device %s: %s",
                          i, nic->name, nic->rdma, r2_lacks[nic->lack].what);
            return;
        }
    }
}

static void r2_advise_memlock(const r2_rdma_setting_t *setting, size_t offered,
                              r2_advice_list_t *list)
{
    if (setting->memlock_bytes < offered * R2_RDMA_MEMLOCK_BYTES) {
        r2_advice_add(list, R2_LIFT_MEMLOCK,
                      "a process may lock %" PRIu64
                      " KiB of memory (ulimit -l), and RDMA over %zu rails locks %llu MiB and more",
                      setting->memlock_bytes >> 10, offered, offered * R2_RDMA_MEMLOCK_BYTES >> 20);
    }
}

/* True if UCX_TLS means to keep out what r2 uses: "rc_verbs", "ud_verbs". */
static bool r2_tls_excludes(const char *ucx_tls, const char *tls)
{
    const char kind[] = {tls[0], tls[1], '\0'};
    const bool named = NULL != strstr(ucx_tls, kind) || NULL != strstr(ucx_tls, "ib") ||
                       NULL != strstr(ucx_tls, "all");

    return named == ('^' == ucx_tls[0]);
}

static void r2_advise_ucx(const r2_rdma_setting_t *setting, const r2_nic_t *nics, size_t count,
                          r2_advice_list_t *list)
{
    const char *devices = setting->ucx_net_devices, *index = setting->ucx_gid_index;

    if (NULL != setting->ucx_tls && r2_tls_excludes(setting->ucx_tls, setting->tls)) {
        r2_advice_add(list, "set coll_r2_tls = tcp if r2 is to do without RDMA",
                      "UCX_TLS=%s does not apply to r2, which uses RDMA", setting->ucx_tls);
    }
    for (size_t i = 0; i < count; ++i) {
        const r2_nic_t *nic = &nics[i];

        if ('\0' == nic->tls[0]) {
            continue;
        }
        if (NULL != devices && 0 != strcmp("all", devices) && NULL == strstr(devices, nic->rdma)) {
            r2_advice_add(list, "name r2's rails in coll_r2_rails",
                          "UCX_NET_DEVICES=%s does not apply to r2, which uses %s for rail %zu",
                          devices, nic->rdma, i);
            devices = NULL;
        }
        if (NULL != index && 0 != strcmp("auto", index) && R2_GID_NONE != nic->port.gid_kind &&
            strtoul(index, NULL, 10) != nic->port.gid_idx) {
            r2_advice_add(list, "unset UCX_IB_GID_INDEX: r2 finds the index of each port",
                          "UCX_IB_GID_INDEX=%s is for all ports, and rail %zu (%s) has its address "
                          "at index %u of %s",
                          index, i, nic->name, nic->port.gid_idx, nic->rdma);
            index = NULL;
        }
    }
}

size_t r2_rdma_advise(const r2_rdma_setting_t *setting, const r2_nic_t *nics, size_t count,
                      r2_rdma_advice_t *advice_p)
{
    r2_advice_list_t list = {.rows = advice_p};
    size_t offered = 0;

    for (size_t i = 0; i < count; ++i) {
        offered += '\0' != nics[i].tls[0];
    }
    if ('\0' != setting->tls[0]) {
        r2_advise_devices(nics, count, &list);
        r2_advise_memlock(setting, offered, &list);
        r2_advise_ucx(setting, nics, count, &list);
    }
    return list.count;
}

size_t r2_rdma_hint(const r2_nic_t *nics, size_t count, r2_rdma_advice_t *advice_p)
{
    r2_advice_list_t list = {.rows = advice_p};

    for (size_t i = 0; i < count && 0 == list.count; ++i) {
        const r2_nic_t *nic = &nics[i];

        if ('\0' != nic->tls[0] && R2_LINK_ETHERNET == nic->port.link &&
            nic->port.losses >= R2_ROCE_LOSSES_MIN) {
            r2_advice_add(&list,
                          "have the switches and NICs carry RoCE in a class that loses nothing "
                          "(PFC, with ECN); cables that flapped count here, too",
                          "rail %zu (%s): RDMA port %s has counted %" PRIu64
                          " packets lost or out of order since it was started, each of which "
                          "stops a queue pair for a while",
                          i, nic->name, nic->rdma, nic->port.losses);
        }
    }
    return list.count;
}

void r2_rdma_refusal_advise(uint64_t memlock_bytes, uint32_t idx, const r2_nic_t *nic,
                            const r2_tp_refusal_t *refusal, r2_rdma_advice_t *advice_p)
{
    r2_advice_list_t list = {.rows = advice_p};
    char limit[64] = "all it has";
    const char *remedy = "what a device takes at most is told by ibv_devinfo -v (max_mr, "
                         "max_mr_size)";

    if (UINT64_MAX != memlock_bytes) {
        snprintf(limit, sizeof(limit), "%" PRIu64 " KiB", memlock_bytes >> 10);
        remedy = R2_LIFT_MEMLOCK;
    }
    if (ENOMEM != refusal->error) {
        remedy = "UCX_LOG_LEVEL=debug says more; memory that is not ordinary, such as that of "
                 "another device, may be of no use to this one";
    }
    r2_advice_add(&list, remedy,
                  "rail %u (%s): %zu KiB of memory cannot be registered with RDMA device %s beside "
                  "%zu KiB that are (%s), and what is sent from there is copied; this process may "
                  "lock %s (ulimit -l)",
                  idx, nic->name, refusal->bytes >> 10, nic->rdma, refusal->registered_bytes >> 10,
                  0 == refusal->error ? "UCX does not say why" : strerror(refusal->error), limit);
}

/* True if the limit on locked memory does not hold for this process. */
static bool r2_may_lock_all(void)
{
    char line[128];
    uint64_t effective = 0;
    FILE *stream = fopen("/proc/self/status", "re");

    while (NULL != stream && NULL != fgets(line, sizeof(line), stream)) {
        if (1 == sscanf(line, "CapEff: %" SCNx64, &effective)) {
            break;
        }
    }
    if (NULL != stream) {
        fclose(stream);
    }
    return 0 != (effective & UINT64_C(1) << CAP_IPC_LOCK);
}

uint64_t r2_memlock_bytes(void)
{
    struct rlimit limit;

    if (0 == getrlimit(RLIMIT_MEMLOCK, &limit) && RLIM_INFINITY != limit.rlim_cur &&
        !r2_may_lock_all()) {
        return limit.rlim_cur;
    }
    return UINT64_MAX;
}
