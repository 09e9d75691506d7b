/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info for programs: JSON.
 */
#include "r2_config.h"

#include "info.h"

#include "r2/json.h"

/** Texts that are not known are empty here and null there. */
static void info_json_text(r2_json_t *json, const char *key, const char *text)
{
    r2_json_string(json, key, '\0' == text[0] ? NULL : text);
}

static void info_json_open_mpi(r2_json_t *json, const info_t *info)
{
    r2_json_open(json, "open_mpi", '{');
    info_json_text(json, "version", info->ompi_version);
    r2_json_string(json, "built_for", info->ompi_built_for);
    r2_json_bool(json, "component_found", info->component);
    info_json_text(json, "component_version", info->component_version);
    r2_json_close(json, '}');
}

static void info_json_libraries(r2_json_t *json, const info_t *info)
{
    r2_json_open(json, "libraries", '{');
    for (size_t i = 0; i < info->library_count; ++i) {
        r2_json_string(json, info->libraries[i].name, info->libraries[i].version);
    }
    r2_json_close(json, '}');
}

/** What the kernel tells of a place; null: nothing. */
static void info_json_place(r2_json_t *json, const char *key, int place, bool known)
{
    if (known) {
        r2_json_u64(json, key, (uint64_t) place);
    } else {
        r2_json_null(json, key);
    }
}

static void info_json_rail(r2_json_t *json, const info_t *info, size_t idx)
{
    const r2_nic_t *nic = &info->nics[idx];
    char address[32] = "";

    if (0 != nic->ipv4 && !r2_nic_is_bare(nic)) {
        info_address_text(nic, address, sizeof(address));
    }
    r2_json_open(json, NULL, '{');
    r2_json_u64(json, "idx", idx);
    r2_json_string(json, "name", nic->name);
    info_json_text(json, "address", address);
    r2_json_u64(json, "speed_bytes_per_s", nic->speed_bytes_per_s);
    r2_json_bool(json, "carrier", nic->carrier);
    info_json_place(json, "numa_node", nic->numa_node, nic->numa_node >= 0);
    info_json_place(json, "distance", (int) nic->distance, nic->numa_node >= 0);
    info_json_text(json, "pci", nic->pci);
    info_json_text(json, "rdma", nic->rdma);
    r2_json_string(json, "transport", info_transport(nic));
    r2_json_close(json, '}');
}

static void info_json_port(r2_json_t *json, const info_t *info, const r2_rdma_seen_t *seen)
{
    const r2_rdma_port_t *port = &seen->port;
    bool on_rail, has_gid;
    char gid[64];
    size_t idx = 0;

    on_rail = info_rail_on(info, seen->name, &idx);
    port = on_rail ? &info->nics[idx].port : port;
    has_gid = R2_GID_NONE != port->gid_kind;
    info_gid_text(port, gid, sizeof(gid));
    r2_json_open(json, NULL, '{');
    r2_json_string(json, "port", seen->name);
    info_json_place(json, "rail", (int) idx, on_rail);
    r2_json_string(json, "link", r2_port_link_name(port->link));
    r2_json_string(json, "state", r2_port_state_name(port->state));
    r2_json_u64(json, "speed_bytes_per_s", port->speed_bytes_per_s);
    info_json_place(json, "lid", port->lid, 0 != port->lid);
    info_json_place(json, "gid_index", port->gid_idx, has_gid);
    info_json_text(json, "gid_kind", has_gid ? r2_gid_kind_name(port->gid_kind) : "");
    info_json_text(json, "gid", gid);
    r2_json_bool(json, "openable", port->openable);
    r2_json_close(json, '}');
}

/* Its NICs from the nearest on. */
static void info_json_gpu(r2_json_t *json, const info_t *info, const r2_gpu_place_t *gpu)
{
    r2_json_open(json, NULL, '{');
    r2_json_string(json, "pci", gpu->pci);
    r2_json_open(json, "rails", '[');
    for (size_t i = 0; i < info->nic_count; ++i) {
        r2_json_open(json, NULL, '{');
        r2_json_string(json, "name", info->nics[gpu->order[i]].name);
        r2_json_string(json, "by", r2_gpu_way_name(gpu->ways[gpu->order[i]]));
        r2_json_close(json, '}');
    }
    r2_json_close(json, ']');
    r2_json_close(json, '}');
}

void info_json_rails(r2_json_t *json, const info_t *info)
{
    r2_json_open(json, "rails", '[');
    for (size_t i = 0; i < info->nic_count; ++i) {
        info_json_rail(json, info, i);
    }
    r2_json_close(json, ']');
    r2_json_open(json, "failover_chain", '[');
    for (size_t i = 0; i < info->nic_count; ++i) {
        r2_json_string(json, NULL, info->nics[info->chain[i]].name);
    }
    r2_json_close(json, ']');
    r2_json_open(json, "gpus", '[');
    for (size_t i = 0; i < info->gpu_count; ++i) {
        info_json_gpu(json, info, &info->gpus[i]);
    }
    r2_json_close(json, ']');
    r2_json_open(json, "rdma_ports", '[');
    for (size_t i = 0; i < info->port_count; ++i) {
        info_json_port(json, info, &info->ports[i]);
    }
    r2_json_close(json, ']');
}

static void info_json_value(r2_json_t *json, const char *key, const r2_params_t *params,
                            const r2_param_info_t *row)
{
    const void *field = (const char *) params + row->offset;

    switch (row->type) {
    case R2_PARAM_BOOL:
        r2_json_bool(json, key, *(const bool *) field);
        break;
    case R2_PARAM_UINT:
        r2_json_u64(json, key, *(const uint64_t *) field);
        break;
    case R2_PARAM_SIZE:
        r2_json_u64(json, key, *(const size_t *) field);
        break;
    case R2_PARAM_STRING:
        r2_json_string(json, key, *(const char *const *) field);
        break;
    }
}

static void info_json_limit(r2_json_t *json, const char *key, const r2_param_info_t *row,
                            uint64_t limit)
{
    if (R2_PARAM_UINT == row->type || R2_PARAM_SIZE == row->type) {
        r2_json_u64(json, key, limit);
    } else {
        r2_json_null(json, key);
    }
}

static void info_json_params(r2_json_t *json, const info_t *info)
{
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    r2_params_t defaults;

    r2_params_init(&defaults);
    r2_json_open(json, "parameters", '[');
    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX; ++i) {
        r2_json_open(json, NULL, '{');
        r2_json_string(json, "name", rows[i].name);
        info_json_value(json, "value", &info->params, &rows[i]);
        info_json_value(json, "default", &defaults, &rows[i]);
        info_json_limit(json, "min", &rows[i], rows[i].min);
        info_json_limit(json, "max", &rows[i], rows[i].max);
        r2_json_string(json, "unit", rows[i].unit);
        r2_json_string(json, "source", info->sources[i]);
        r2_json_u64(json, "level", (uint64_t) rows[i].level);
        r2_json_string(json, "help", rows[i].help);
        r2_json_close(json, '}');
    }
    r2_json_close(json, ']');
}

int info_print_json(const info_t *info, const info_problem_t *problems, size_t count, FILE *out)
{
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_string(&json, "r2", r2_version());
    r2_json_string(&json, "host", info->host_name);
    info_json_open_mpi(&json, info);
    info_json_libraries(&json, info);
    info_json_rails(&json, info);
    info_json_params(&json, info);
    r2_json_open(&json, "problems", '[');
    for (size_t i = 0; i < count; ++i) {
        r2_json_open(&json, NULL, '{');
        r2_json_string(&json, "level", info_level_name(problems[i].level));
        r2_json_string(&json, "what", problems[i].what);
        r2_json_string(&json, "remedy", problems[i].remedy);
        r2_json_close(&json, '}');
    }
    r2_json_close(&json, ']');
    r2_json_close(&json, '}');
    return R2_OK == r2_json_end_file(&json) ? 0 : -1;
}
