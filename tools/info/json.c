/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info for programs: JSON.
 */
#include "r2_config.h"

#include "info.h"

#include <jansson.h>

static json_t *info_json_text(const char *text)
{
    return '\0' == text[0] ? json_null() : json_string(text);
}

static json_t *info_json_open_mpi(const info_t *info)
{
    return json_pack("{s:o, s:s, s:b, s:o}", "version", info_json_text(info->ompi_version),
                     "built_for", info->ompi_built_for, "component_found", (int) info->component,
                     "component_version", info_json_text(info->component_version));
}

static json_t *info_json_libraries(const info_t *info)
{
    json_t *object = json_object();

    for (size_t i = 0; i < info->library_count; ++i) {
        json_object_set_new(object, info->libraries[i].name,
                            json_string(info->libraries[i].version));
    }
    return object;
}

static json_t *info_json_rail(const info_t *info, size_t idx)
{
    const r2_nic_t *nic = &info->nics[idx];
    char address[32] = "";

    if (0 != nic->ipv4) {
        info_address_text(nic, address, sizeof(address));
    }
    return json_pack("{s:i, s:s, s:o, s:I, s:b, s:o, s:o, s:o, s:o}", "idx", (int) idx, "name",
                     nic->name, "address", info_json_text(address), "speed_bytes_per_s",
                     (json_int_t) nic->speed_bytes_per_s, "carrier", (int) nic->carrier,
                     "numa_node", nic->numa_node < 0 ? json_null() : json_integer(nic->numa_node),
                     "distance", nic->numa_node < 0 ? json_null() : json_integer(nic->distance),
                     "pci", info_json_text(nic->pci), "rdma", info_json_text(nic->rdma));
}

static json_t *info_json_value(const r2_params_t *params, const r2_param_info_t *row)
{
    const void *field = (const char *) params + row->offset;

    switch (row->type) {
    case R2_PARAM_BOOL:
        return json_boolean(*(const bool *) field);
    case R2_PARAM_UINT:
        return json_integer((json_int_t) * (const uint64_t *) field);
    case R2_PARAM_SIZE:
        return json_integer((json_int_t) * (const size_t *) field);
    case R2_PARAM_STRING:
        break;
    }
    return json_string(*(const char *const *) field);
}

static json_t *info_json_params(const info_t *info)
{
    json_t *array = json_array();
    size_t count;
    const r2_param_info_t *rows = r2_params_table(&count);
    r2_params_t defaults;

    r2_params_init(&defaults);
    for (size_t i = 0; i < count && i < INFO_PARAMS_MAX; ++i) {
        const bool ranged = R2_PARAM_UINT == rows[i].type || R2_PARAM_SIZE == rows[i].type;

        json_array_append_new(
            array, json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:i, s:s}", "name", rows[i].name,
                             "value", info_json_value(&info->params, &rows[i]), "default",
                             info_json_value(&defaults, &rows[i]), "min",
                             ranged ? json_integer((json_int_t) rows[i].min) : json_null(), "max",
                             ranged ? json_integer((json_int_t) rows[i].max) : json_null(), "unit",
                             rows[i].unit, "source", info->sources[i], "level", rows[i].level,
                             "help", rows[i].help));
    }
    return array;
}

int info_print_json(const info_t *info, const info_problem_t *problems, size_t count, FILE *out)
{
    json_t *rails = json_array(), *chain = json_array(), *list = json_array(), *all;
    int rc;

    for (size_t i = 0; i < info->nic_count; ++i) {
        json_array_append_new(rails, info_json_rail(info, i));
        json_array_append_new(chain, json_string(info->nics[info->chain[i]].name));
    }
    for (size_t i = 0; i < count; ++i) {
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "level",
                                              info_level_name(problems[i].level), "what",
                                              problems[i].what, "remedy", problems[i].remedy));
    }
    all = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "r2", r2_version(), "host",
                    info->host_name, "open_mpi", info_json_open_mpi(info), "libraries",
                    info_json_libraries(info), "rails", rails, "failover_chain", chain,
                    "parameters", info_json_params(info), "problems", list);
    if (NULL == all) {
        return -1;
    }
    rc = json_dumpf(all, out, JSON_INDENT(2));
    fprintf(out, "\n");
    json_decref(all);
    return 0 == rc && 0 == fflush(out) && !ferror(out) ? 0 : -1;
}
