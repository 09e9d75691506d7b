/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * An event as a line of JSON: fields of each type from events.def.
 */
#include "r2_config.h"

#include "telemetry/event_line.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "r2/json.h"

typedef enum r2_event_kind {
    R2_EVENT_KIND_U32,
    R2_EVENT_KIND_U64,
    R2_EVENT_KIND_STRING,
    R2_EVENT_KIND_BOOL,
    R2_EVENT_KIND_NICS,
    R2_EVENT_KIND_TOTALS
} r2_event_kind_t;

static const struct {
    const char *name;
    r2_event_kind_t kind;
    size_t offset; /* in r2_event_t */
} r2_event_fields[] = {
#define R2_EVENT_FIELD(name, kind, help) {#name, R2_EVENT_KIND_##kind, offsetof(r2_event_t, name)},
#include "telemetry/events.def"
#undef R2_EVENT_FIELD
};

enum {
#define R2_EVENT_FIELD(name, kind, help) R2_EVENT_FIELD_##name,
#include "telemetry/events.def"
#undef R2_EVENT_FIELD
    R2_EVENT_FIELDS
};
static_assert(R2_EVENT_FIELDS <= 32, "fields are bits of 32");

#define R2_EF(name) (1u << R2_EVENT_FIELD_##name)
static const struct {
    const char *name;
    uint32_t fields;
} r2_event_types[] = {
#define R2_EVENT(upper, lower, fields, help) {#lower, fields},
#include "telemetry/events.def"
#undef R2_EVENT
};

const char *r2_event_name(r2_event_type_t type)
{
    return r2_event_types[type].name;
}

r2_event_t r2_event(r2_event_type_t type, uint64_t time_ns)
{
    r2_event_t event;

    memset(&event, 0, sizeof(event));
    event.type = type;
    event.time_ns = time_ns;
    for (size_t i = 0; i < r2_array_count(r2_event_fields); ++i) {
        char *field = (char *) &event + r2_event_fields[i].offset;

        if (R2_EVENT_KIND_U32 == r2_event_fields[i].kind) {
            *(uint32_t *) (void *) field = UINT32_MAX;
        } else if (R2_EVENT_KIND_U64 == r2_event_fields[i].kind) {
            *(uint64_t *) (void *) field = UINT64_MAX;
        }
    }
    return event;
}

static void r2_event_print_nics(r2_json_t *json, const char *key, const r2_nic_t *nics,
                                uint32_t count)
{
    r2_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; ++i) {
        char address[INET_ADDRSTRLEN] = "";

        if (0 != nics[i].ipv4 && !r2_nic_is_bare(&nics[i])) {
            inet_ntop(AF_INET, &nics[i].ipv4, address, sizeof(address));
        }
        r2_json_open(json, NULL, '{');
        r2_json_string(json, "nic", nics[i].name);
        r2_json_string(json, "address", address);
        r2_json_string(json, "rdma", nics[i].rdma);
        r2_json_u64(json, "speed_bytes_per_s", nics[i].speed_bytes_per_s);
        r2_json_bool(json, "carrier", nics[i].carrier);
        r2_json_close(json, '}');
    }
    r2_json_close(json, ']');
}

static void r2_event_print_totals(r2_json_t *json, const char *key, const uint64_t *totals,
                                  uint32_t count)
{
    r2_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; ++i) {
        r2_json_u64(json, NULL, totals[i]);
    }
    r2_json_close(json, ']');
}

static void r2_event_print_field(r2_json_t *json, const r2_event_t *event, size_t idx)
{
    const char *key = r2_event_fields[idx].name;
    const void *field = (const char *) event + r2_event_fields[idx].offset;

    switch (r2_event_fields[idx].kind) {
    case R2_EVENT_KIND_U32:
        if (UINT32_MAX != *(const uint32_t *) field) {
            r2_json_u64(json, key, *(const uint32_t *) field);
        }
        break;
    case R2_EVENT_KIND_U64:
        if (UINT64_MAX != *(const uint64_t *) field) {
            r2_json_u64(json, key, *(const uint64_t *) field);
        }
        break;
    case R2_EVENT_KIND_STRING:
        if (NULL != *(const char *const *) field) {
            r2_json_string(json, key, *(const char *const *) field);
        }
        break;
    case R2_EVENT_KIND_BOOL:
        r2_json_bool(json, key, *(const bool *) field);
        break;
    case R2_EVENT_KIND_NICS:
        r2_event_print_nics(json, key, *(const r2_nic_t *const *) field, event->rail_count);
        break;
    case R2_EVENT_KIND_TOTALS:
        r2_event_print_totals(json, key, *(const uint64_t *const *) field, event->rail_count);
        break;
    }
}

/* ISO 8601, UTC. */
static void r2_event_print_time(r2_json_t *json, uint64_t wall_ns)
{
    time_t seconds = (time_t) (wall_ns / R2_NS_PER_S);
    struct tm parts;
    char day[48] = "", text[80];

    gmtime_r(&seconds, &parts);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof(text), "%s.%09uZ", day, (unsigned) (wall_ns % R2_NS_PER_S));
    r2_json_string(json, "time", text);
}

size_t r2_event_line(const r2_event_t *event, const r2_event_origin_t *origin, char *line_p)
{
    r2_json_t json;

    r2_json_init(&json, line_p, R2_EVENTS_LINE_BYTES - 1);
    r2_json_open(&json, NULL, '{');
    r2_json_u64(&json, "v", R2_EVENTS_VERSION);
    r2_event_print_time(&json, event->time_ns + (uint64_t) origin->wall_offset_ns);
    r2_json_u64(&json, "mono_ns", event->time_ns);
    r2_json_string(&json, "host", origin->host);
    r2_json_u64(&json, "rank", origin->rank);
    r2_json_string(&json, "event", r2_event_name(event->type));
    for (size_t i = 0; i < r2_array_count(r2_event_fields); ++i) {
        if (0 != (r2_event_types[event->type].fields & 1u << i)) {
            r2_event_print_field(&json, event, i);
        }
    }
    r2_json_close(&json, '}');
    if (json.overflow) {
        return 0;
    }
    line_p[json.used] = '\n';
    return json.used + 1;
}
