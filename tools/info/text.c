/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info for people.
 */
#include "r2_config.h"

#include "info.h"

#include <inttypes.h>
#include <string.h>

void info_param_text(const r2_params_t *params, const r2_param_info_t *row, char *text_p,
                     size_t text_bytes)
{
    const void *field = (const char *) params + row->offset;

    switch (row->type) {
    case R2_PARAM_BOOL:
        snprintf(text_p, text_bytes, "%s", *(const bool *) field ? "true" : "false");
        break;
    case R2_PARAM_UINT:
        snprintf(text_p, text_bytes, "%" PRIu64, *(const uint64_t *) field);
        break;
    case R2_PARAM_SIZE:
        snprintf(text_p, text_bytes, "%zu", *(const size_t *) field);
        break;
    case R2_PARAM_STRING:
        snprintf(text_p, text_bytes, "%s", *(const char *const *) field);
        break;
    }
}

static void info_print_versions(const info_t *info, FILE *out)
{
    fprintf(out, "r2 %s\n", r2_version());
    fprintf(out, "  %-10s %s (r2 was built for %s)\n", "Open MPI",
            info->ompi_info ? info->ompi_version : "not found", info->ompi_built_for);
    fprintf(out, "  %-10s %s%s\n", "coll/r2", info->component ? "found, version " : "not found",
            info->component_version);
    fprintf(out, "  %-10s %s\n", "enabled",
            info->params.enable ? "yes: coll_r2_enable is set"
                                : "no: only jobs that name r2 (--mca coll r2) use it");
    for (size_t i = 0; i < info->library_count; ++i) {
        fprintf(out, "  %-10s %s\n", info->libraries[i].name, info->libraries[i].version);
    }
}

static void info_print_rail(const info_t *info, size_t idx, FILE *out)
{
    const r2_nic_t *nic = &info->nics[idx];
    char speed[32], address[32], numa[16] = "?", distance[16] = "?";

    info_speed_text(nic->speed_bytes_per_s, speed, sizeof(speed));
    info_address_text(nic, address, sizeof(address));
    if (nic->numa_node >= 0) {
        snprintf(numa, sizeof(numa), "%d", nic->numa_node);
        snprintf(distance, sizeof(distance), "%u", nic->distance);
    }
    fprintf(out, "  %3zu  %-12s %-18s %-12s %-7s %4s %8s  %-13s %-14s %s\n", idx, nic->name,
            address, speed, nic->carrier ? "up" : "DOWN", numa, distance,
            '\0' != nic->pci[0] ? nic->pci : "-", '\0' != nic->rdma[0] ? nic->rdma : "-",
            info_transport(nic));
}

/* The port as the rail on it has it: with the GID of its own NIC. */
static void info_print_port(const info_t *info, const r2_rdma_seen_t *seen, FILE *out)
{
    char speed[32], gid[64], lid[16] = "-", index[16] = "-", rail[16] = "-";
    const r2_rdma_port_t *port = &seen->port;
    size_t idx;

    if (info_rail_on(info, seen->name, &idx)) {
        port = &info->nics[idx].port;
        snprintf(rail, sizeof(rail), "%zu", idx);
    }
    info_speed_text(port->speed_bytes_per_s, speed, sizeof(speed));
    info_gid_text(port, gid, sizeof(gid));
    if (0 != port->lid) {
        snprintf(lid, sizeof(lid), "%u", port->lid);
    }
    if (R2_GID_NONE != port->gid_kind) {
        snprintf(index, sizeof(index), "%u", port->gid_idx);
    }
    fprintf(out, "  %4s  %-14s %-10s %-7s %-12s %5s  %5s %-10s %s%s\n", rail, seen->name,
            r2_port_link_name(port->link), r2_port_state_name(port->state), speed, lid, index,
            r2_gid_kind_name(port->gid_kind), '\0' != gid[0] ? gid : "-",
            port->openable ? "" : "  cannot be opened");
}

static void info_print_ports(const info_t *info, FILE *out)
{
    if (0 == info->port_count) {
        return;
    }
    fprintf(out, "\nRDMA ports (coll_r2_tls is \"%s\")\n", info->params.tls);
    fprintf(out, "  rail  %-14s %-10s %-7s %-12s %5s  %5s %-10s GID\n", "port", "link", "state",
            "speed", "LID", "index", "kind");
    for (size_t i = 0; i < info->port_count; ++i) {
        info_print_port(info, &info->ports[i], out);
    }
}

/* "0000:07:00.0: rail0 > rail1 (switch), rail2 (far)" */
static void info_print_gpu_place(const info_t *info, const r2_gpu_place_t *gpu, FILE *out)
{
    fprintf(out, "  %s:", gpu->pci);
    for (size_t i = 0; i < info->nic_count; ++i) {
        const uint32_t nic = gpu->order[i];
        const bool last =
            i + 1 == info->nic_count || gpu->ways[nic] != gpu->ways[gpu->order[i + 1]];

        fprintf(out, " %s", info->nics[nic].name);
        if (last) {
            fprintf(out, " (%s)%s", r2_gpu_way_name(gpu->ways[nic]),
                    i + 1 < info->nic_count ? "," : "");
        }
    }
    fprintf(out, "\n");
}

void info_print_gpus(const info_t *info, FILE *out)
{
    if (info->gpu_count > 0 && info->nic_count > 0) {
        fprintf(out, "\nGPUs, and the NICs from the nearest on (what lies between)\n");
    }
    for (size_t i = 0; info->nic_count > 0 && i < info->gpu_count; ++i) {
        info_print_gpu_place(info, &info->gpus[i], out);
    }
}

static void info_print_gpu(const info_t *info, FILE *out)
{
    if (NULL != info->gpu) {
        fprintf(out, "\nMemory of GPUs (coll_r2_gpu is \"%s\")\n  %s: %s\n", info->params.gpu,
                info->gpu, info->gpu_driver);
        if ('\0' != info->gpu_reduces[0]) {
            fprintf(out, "  reductions: %s\n", info->gpu_reduces);
        }
    }
}

void info_print_rails(const info_t *info, FILE *out)
{
    fprintf(out, "\nRails of %s (coll_r2_rails is \"%s\")\n", info->host_name, info->params.rails);
    if (0 == info->nic_count) {
        fprintf(out, "  none\n");
        info_print_ports(info, out);
        info_print_gpu(info, out);
        return;
    }
    fprintf(out, "  idx  %-12s %-18s %-12s %-7s NUMA distance  %-13s %-14s transport\n", "name",
            "address", "speed", "carrier", "PCI", "RDMA");
    for (size_t i = 0; i < info->nic_count; ++i) {
        info_print_rail(info, i, out);
    }
    fprintf(out, "  distance is from the cores this program may run on\n\nFailover chain\n  ");
    for (size_t i = 0; i < info->nic_count; ++i) {
        fprintf(out, "%s%s", i > 0 ? " > " : "", info->nics[info->chain[i]].name);
    }
    fprintf(out, "\n");
    info_print_ports(info, out);
    info_print_gpu(info, out);
    info_print_gpus(info, out);
}

static void info_print_params(const info_t *info, FILE *out)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    r2_params_t defaults;

    r2_params_init(&defaults);
    fprintf(out, "\nParameters (mpirun --mca coll_r2_NAME VALUE)\n");
    fprintf(out, "  %-22s %-12s %-8s %-12s %-24s %s\n", "name", "value", "unit", "default", "range",
            "set by");
    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX; ++i) {
        const bool ranged = R2_PARAM_UINT == rows[i].type || R2_PARAM_SIZE == rows[i].type;
        char value[256], dflt[256], range[64] = "-";

        info_param_text(&info->params, &rows[i], value, sizeof(value));
        info_param_text(&defaults, &rows[i], dflt, sizeof(dflt));
        if (ranged) {
            snprintf(range, sizeof(range), "%" PRIu64 " .. %" PRIu64, rows[i].min, rows[i].max);
        }
        fprintf(out, "  %-22s %-12s %-8s %-12s %-24s %s\n", rows[i].name,
                '\0' != value[0] ? value : "\"\"", rows[i].unit, '\0' != dflt[0] ? dflt : "\"\"",
                range, info->sources[i]);
    }
}

int info_print_text(const info_t *info, const info_problem_t *problems, size_t count, FILE *out)
{
    info_print_versions(info, out);
    info_print_rails(info, out);
    info_print_params(info, out);
    fprintf(out, "\nProblems\n");
    for (size_t i = 0; i < count; ++i) {
        fprintf(out, "  %s: %s\n    remedy: %s\n", info_level_name(problems[i].level),
                problems[i].what, problems[i].remedy);
    }
    if (0 == count) {
        fprintf(out, "  none\n");
    }
    return 0 == fflush(out) && !ferror(out) ? 0 : -1;
}
