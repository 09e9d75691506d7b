/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is wrong with an installation, and what to do: pure functions of what was found.
 */
#include "r2_config.h"

#include "info.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "r2/fds.h"

#define INFO_FILES_OTHERS    100u  /* of Open MPI and the application */
#define INFO_FILES_RANKS     1024u /* below this a limit of open files is worth a hint */
#define INFO_FILES_RANKS_FEW 64u   /* and below this a warning */

typedef struct info_list {
    info_problem_t *rows; /* borrowed: INFO_PROBLEMS_MAX */
    size_t count;
} info_list_t;

/** Adds a problem; its remedy is set with info_remedy(). */
static void info_add(info_list_t *list, info_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Sets the remedy of the problem that was added last. */
static void info_remedy(info_list_t *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void info_add(info_list_t *list, info_level_t level, const char *format, ...)
{
    info_problem_t *row = &list->rows[list->count];
    va_list args;

    if (INFO_PROBLEMS_MAX - 1 == list->count) {
        return; /* more would not be read either */
    }
    ++list->count;
    row->level = level;
    row->remedy[0] = '\0';
    va_start(args, format);
    vsnprintf(row->what, sizeof(row->what), format, args);
    va_end(args);
}

static void info_remedy(info_list_t *list, const char *format, ...)
{
    info_problem_t *row = &list->rows[list->count - 1];
    va_list args;

    va_start(args, format);
    vsnprintf(row->remedy, sizeof(row->remedy), format, args);
    va_end(args);
}

const char *info_level_name(info_level_t level)
{
    static const char *const names[] = {"error", "warning", "hint"};

    return names[level];
}

void info_speed_text(uint64_t speed_bytes_per_s, char *text_p, size_t text_bytes)
{
    const double mbit_per_s = (double) speed_bytes_per_s * 8 / 1e6;

    if (0 == speed_bytes_per_s) {
        snprintf(text_p, text_bytes, "unknown");
    } else if (mbit_per_s >= 1000) {
        snprintf(text_p, text_bytes, "%g Gbit/s", mbit_per_s / 1000);
    } else {
        snprintf(text_p, text_bytes, "%g Mbit/s", mbit_per_s);
    }
}

void info_address_text(const r2_nic_t *nic, char *text_p, size_t text_bytes)
{
    char ip[INET_ADDRSTRLEN];

    if (r2_nic_is_bare(nic)) {
        snprintf(text_p, text_bytes, "by %s", nic->via);
    } else if (0 == nic->ipv4 || NULL == inet_ntop(AF_INET, &nic->ipv4, ip, sizeof(ip))) {
        snprintf(text_p, text_bytes, "none");
    } else {
        snprintf(text_p, text_bytes, "%s/%u", ip, nic->prefix_bits);
    }
}

void info_gid_text(const r2_rdma_port_t *port, char *text_p, size_t text_bytes)
{
    if (R2_GID_NONE == port->gid_kind ||
        NULL == inet_ntop(AF_INET6, port->gid, text_p, (socklen_t) text_bytes)) {
        text_p[0] = '\0';
    }
}

const char *info_transport(const r2_nic_t *nic)
{
    return '\0' != nic->tls[0] ? nic->tls : r2_nic_is_bare(nic) ? "none" : "tcp";
}

bool info_rail_on(const info_t *info, const char *rdma, size_t *idx_p)
{
    for (size_t i = 0; i < info->nic_count; ++i) {
        if (0 == strcmp(rdma, info->nics[i].rdma)) {
            *idx_p = i;
            return true;
        }
    }
    return false;
}

/** First number of a version text, "4.1.4" -> 4. */
static long info_major(const char *version)
{
    return strtol(version, NULL, 10);
}

static void info_check_ompi(const info_t *info, info_list_t *list)
{
    if (!info->ompi_info) {
        info_add(list, INFO_ERROR, "ompi_info was not found: is Open MPI installed?");
        info_remedy(list, "install Open MPI (Debian package openmpi-bin) or put its bin folder "
                          "on PATH");
        return;
    }
    if (info_major(info->ompi_version) != info_major(info->ompi_built_for)) {
        info_add(list, INFO_ERROR, "r2 was built for Open MPI %s, but the one on PATH is %s",
                 info->ompi_built_for, info->ompi_version);
        info_remedy(list, "configure and build r2 against this Open MPI (--with-openmpi=DIR), or "
                          "put the other one on PATH");
    }
    if (!info->component) {
        info_add(list, INFO_ERROR,
                 "Open MPI does not find the component coll/r2, or could not load it");
        info_remedy(list,
                    "run \"make install\" of r2, or tell Open MPI where it is: mpirun --mca "
                    "mca_base_component_path SYSTEM_DEFAULT:%s; \"ompi_info --mca "
                    "mca_base_component_show_load_errors 1\" says why a component was not loaded",
                    info->component_dir);
    } else if (0 != strcmp(info->component_version, r2_version())) {
        info_add(list, INFO_ERROR, "the component coll/r2 is version %s, libr2core is %s",
                 info->component_version, r2_version());
        info_remedy(list, "remove the old installation, then run \"make install\" of r2 again");
    }
}

/* ompi_info finds the component all the same: the file only reaches what mpirun starts. */
static void info_check_pmix(const info_t *info, info_list_t *list)
{
    if ('\0' == info->pmix_file[0] || 5 > info_major(info->ompi_version)) {
        return;
    }
    info_add(list, INFO_WARNING,
             "mpirun of Open MPI %s will not find coll/r2: %s sets mca_base_component_path, and "
             "mpirun hands that to Open MPI",
             info->ompi_version, info->pmix_file);
    info_remedy(list, "put a # before that line, or: export "
                      "OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT; mpirun --pmixmca "
                      "mca_base_component_path / ...");
}

static void info_check_carrier(const info_t *info, info_list_t *list)
{
    for (size_t i = 0; i < info->nic_count; ++i) {
        const r2_nic_t *nic = &info->nics[i];

        if (!nic->carrier) {
            info_add(list, INFO_WARNING, "rail %zu (%s) is down or has no carrier", i, nic->name);
            info_remedy(
                list,
                r2_nic_is_bare(nic)
                    ? "check cable, switch port and subnet manager (ibstat %.*s); a running "
                      "job takes the rail as soon as it is back"
                    : "check cable and switch port; \"ip link set %.*s up\"; a running job "
                      "takes the rail as soon as it is back",
                (int) strcspn(nic->name, ":"), nic->name);
        }
        if (0 == nic->ipv4) {
            info_add(list, INFO_WARNING, "rail %zu (%s) has no IPv4 address", i, nic->name);
            info_remedy(list,
                        "give it one (\"ip addr add ADDRESS/BITS dev %s\"), or leave it out "
                        "of coll_r2_rails",
                        nic->name);
        }
    }
}

static bool info_same_subnet(const r2_nic_t *a, const r2_nic_t *b)
{
    const unsigned bits = a->prefix_bits < b->prefix_bits ? a->prefix_bits : b->prefix_bits;
    const uint32_t mask = 0 == bits || bits > 32 ? 0 : htonl(~0u << (32 - bits));

    return 0 != a->ipv4 && 0 != b->ipv4 && (a->ipv4 & mask) == (b->ipv4 & mask) &&
           !r2_nic_is_bare(a) && !r2_nic_is_bare(b);
}

static void info_check_subnets(const info_t *info, info_list_t *list)
{
    for (size_t i = 0; i < info->nic_count; ++i) {
        for (size_t j = i + 1; j < info->nic_count; ++j) {
            const r2_nic_t *a = &info->nics[i], *b = &info->nics[j];

            if (!info_same_subnet(a, b)) {
                continue;
            }
            info_add(list, INFO_WARNING,
                     "rails %zu (%s) and %zu (%s) are in the same subnet: Linux may send and "
                     "answer through one of them what is meant for the other",
                     i, a->name, j, b->name);
            info_remedy(list, "use one subnet for each rail, or routes by source address and "
                              "net.ipv4.conf.all.arp_ignore=1, arp_announce=2");
            return; /* one is enough to make the point */
        }
    }
}

static void info_check_speeds(const info_t *info, info_list_t *list)
{
    const r2_nic_t *fast = NULL, *slow = NULL;
    char fast_text[32], slow_text[32];

    for (size_t i = 0; i < info->nic_count; ++i) {
        const r2_nic_t *nic = &info->nics[i];

        if (0 == nic->speed_bytes_per_s) {
            continue;
        }
        fast = NULL == fast || nic->speed_bytes_per_s > fast->speed_bytes_per_s ? nic : fast;
        slow = NULL == slow || nic->speed_bytes_per_s < slow->speed_bytes_per_s ? nic : slow;
    }
    if (NULL == fast || fast->speed_bytes_per_s == slow->speed_bytes_per_s) {
        return;
    }
    info_speed_text(fast->speed_bytes_per_s, fast_text, sizeof(fast_text));
    info_speed_text(slow->speed_bytes_per_s, slow_text, sizeof(slow_text));
    info_add(list,
             fast->speed_bytes_per_s >= 4 * slow->speed_bytes_per_s ? INFO_WARNING : INFO_HINT,
             "rails differ in speed: %s has %s, %s has %s; short messages may meet the slow one",
             fast->name, fast_text, slow->name, slow_text);
    info_remedy(list, "long messages are spread by speed; name only the fast NICs in coll_r2_rails "
                      "if latency matters more");
}

/* Hosts that r2 leaves to others. */
static void info_check_declined(const info_t *info, info_list_t *list)
{
    if ('\0' != info->gpu_objection[0]) {
        info_add(list, INFO_WARNING, "jobs with this host do without r2: %s", info->gpu_objection);
        info_remedy(list, "for jobs that never give such memory to MPI: coll_r2_gpu = ignore");
    }
}

/* What keeps rails from RDMA. */
static void info_check_rdma(const info_t *info, info_list_t *list)
{
    r2_rdma_advice_t advice[R2_RDMA_ADVICE_MAX];
    const size_t count = NULL == info->rdma.tls
                             ? 0
                             : r2_rdma_advise(&info->rdma, info->nics, info->nic_count, advice);

    for (size_t i = 0; i < count; ++i) {
        info_add(list, INFO_WARNING, "%s", advice[i].what);
        info_remedy(list, "%s", advice[i].remedy);
    }
    if (r2_rdma_hint(info->nics, info->nic_count, advice) > 0) {
        info_add(list, INFO_WARNING, "%s", advice[0].what);
        info_remedy(list, "%s", advice[0].remedy);
    }
}

/** The largest job in which a process has descriptors for lanes to all others over all rails. */
static uint32_t info_ranks_of(uint64_t files, uint32_t rails)
{
    uint32_t least = 1, most = 1u << 20;

    while (least < most) { /* fits with `least` ranks, or nothing fits */
        const uint32_t ranks = least + (most - least + 1) / 2;

        if (r2_fds_of_job(ranks, rails) + INFO_FILES_OTHERS <= files) {
            least = ranks;
        } else {
            most = ranks - 1;
        }
    }
    return least;
}

static void info_check_files(const info_t *info, info_list_t *list)
{
    const uint32_t rails = (uint32_t) info->nic_count;
    uint32_t ranks;

    if (0 == info->files_hard || 0 == rails) {
        return;
    }
    ranks = info_ranks_of(info->files_hard, rails);
    if (ranks >= INFO_FILES_RANKS) {
        return;
    }
    info_add(list, ranks < INFO_FILES_RANKS_FEW ? INFO_WARNING : INFO_HINT,
             "a process may open %" PRIu64
             " files (ulimit -Hn): that is enough for all lanes of jobs of up to %" PRIu32
             " ranks with %" PRIu32
             " rails; larger ones open and close lanes as they go, which takes time",
             info->files_hard, ranks, rails);
    info_remedy(list,
                "raise the hard limit to %zu for jobs of %u ranks (/etc/security/limits.conf, or "
                "LimitNOFILE in "
                "the resource manager's service)",
                r2_fds_of_job(INFO_FILES_RANKS, rails) + INFO_FILES_OTHERS, INFO_FILES_RANKS);
}

size_t info_problems(const info_t *info, info_problem_t *problems_p)
{
    info_list_t list = {.rows = problems_p};

    info_check_ompi(info, &list);
    info_check_pmix(info, &list);
    if ('\0' != info->params_text[0]) {
        info_add(&list, INFO_ERROR, "wrong parameter: %s", info->params_text);
        info_remedy(&list, "\"ompi_info --param coll r2 --level 9\" lists parameters with ranges; "
                           "they are set by mpirun --mca, the environment and "
                           "openmpi-mca-params.conf");
    }
    if ('\0' != info->nics_text[0]) {
        info_add(&list, INFO_ERROR, "no rails: %s", info->nics_text);
        info_remedy(&list, "set coll_r2_rails to NICs of this host (mpirun --mca coll_r2_rails "
                           "NAME,NAME), or give a NIC an IPv4 address");
    } else if (1 == info->nic_count) {
        info_add(&list, INFO_WARNING,
                 "there is only one rail (%s): a job cannot survive its failure",
                 info->nics[0].name);
        info_remedy(&list, "connect a second NIC, or name slower ones in coll_r2_rails too");
    }
    info_check_carrier(info, &list);
    info_check_subnets(info, &list);
    info_check_speeds(info, &list);
    info_check_declined(info, &list);
    info_check_rdma(info, &list);
    info_check_files(info, &list);
    return list.count;
}
