/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Event file: schema, fields, times, names, bad names.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events_world.h"
#include "telemetry/path.h"

static void no_file(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events;
    r2_event_t event = r2_event(R2_EVENT_LANE_UP, 1);
    uint64_t none[1] = {0};

    assert_int_equal(t_create(world, "", &events), R2_OK);
    assert_null(events);
    r2_events_add(events, &event);
    assert_false(r2_events_sample_due(events, UINT64_MAX));
    r2_events_sample(events, none, none, 1, 1);
    assert_int_equal(r2_events_fd(events), -1);
    r2_events_flush(events);
    r2_events_destroy(events);
}

static void start_line(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "start");
    r2_event_t event = r2_event(R2_EVENT_START, world->now_ns);
    r2_nic_t nics[2] = {{.name = "rail0",
                         .ipv4 = htonl(0x0a4d0002),
                         .carrier = true,
                         .speed_bytes_per_s = 12500000},
                        {.name = "rail1", .rdma = "mlx5_0:1"}};
    json_t *lines, *rail;

    event.version = "1.2.3";
    event.ranks = 4;
    event.rails = nics;
    event.rail_count = 2;
    r2_events_add(events, &event);
    r2_events_destroy(events);
    lines = t_read(world, "start");
    assert_int_equal(json_array_size(lines), 2);
    assert_string_equal(t_text(lines, 0, "event"), "start");
    assert_string_equal(t_text(lines, 0, "host"), "h1");
    assert_string_equal(t_text(lines, 0, "version"), "1.2.3");
    assert_int_equal(t_number(lines, 0, "rank"), 3);
    assert_int_equal(t_number(lines, 0, "ranks"), 4);
    assert_int_equal(t_number(lines, 0, "mono_ns"), 5 * R2_NS_PER_S);
    rail = json_array_get(json_object_get(json_array_get(lines, 0), "rails"), 0);
    assert_string_equal(json_string_value(json_object_get(rail, "nic")), "rail0");
    assert_string_equal(json_string_value(json_object_get(rail, "address")), "10.77.0.2");
    assert_int_equal(json_integer_value(json_object_get(rail, "speed_bytes_per_s")), 12500000);
    assert_true(json_is_true(json_object_get(rail, "carrier")));
    rail = json_array_get(json_object_get(json_array_get(lines, 0), "rails"), 1);
    assert_string_equal(json_string_value(json_object_get(rail, "address")), "");
    assert_string_equal(json_string_value(json_object_get(rail, "rdma")), "mlx5_0:1");
    assert_true(json_is_false(json_object_get(rail, "carrier")));
    assert_string_equal(t_text(lines, 1, "event"), "end");
    assert_int_equal(t_number(lines, 1, "lines"), 1);
    json_decref(lines);
}

/* Each type of event has its own fields and no others; what is not known is left out. */
static void fields_of_types(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "types");
    json_t *lines;

    for (int type = 0; type < R2_EVENT_COUNT; ++type) {
        r2_event_t event = r2_event((r2_event_type_t) type, world->now_ns + (uint64_t) type);

        event.rail = 2;
        event.evidence = "h0 rail2: refused; h2 rail2: answers";
        r2_events_add(events, &event);
    }
    r2_events_destroy(events);
    lines = t_read(world, "types");
    assert_int_equal(json_array_size(lines), R2_EVENT_COUNT + 1);
    for (size_t type = 0; type < R2_EVENT_COUNT; ++type) {
        assert_string_equal(t_text(lines, type, "event"), r2_event_name((r2_event_type_t) type));
        assert_int_equal(t_number(lines, type, "mono_ns"), 5 * R2_NS_PER_S + type);
        assert_int_equal(t_has(lines, type, "evidence"), R2_EVENT_VERDICT == type);
        assert_false(t_has(lines, type, "nic") || t_has(lines, type, "since_ns"));
    }
    assert_int_equal(t_number(lines, R2_EVENT_SUSPECT, "rail"), 2);
    assert_false(t_has(lines, R2_EVENT_NO_PATH, "rail"));
    json_decref(lines);
}

/* docs/events.md describes every event and every field. */
static void documented(void **state)
{
    static const char *const words[] = {
#define R2_EVENT_FIELD(name, kind, help)     "`" #name "`",
#define R2_EVENT(upper, lower, fields, help) "| `" #lower "` |",
#include "telemetry/events.def"
#undef R2_EVENT
#undef R2_EVENT_FIELD
    };
    const char *source = getenv("R2_SRCDIR");
    char path[512], text[16384];
    size_t bytes;
    FILE *file;

    (void) state;
    snprintf(path, sizeof(path), "%s/docs/events.md", NULL == source ? ".." : source);
    file = fopen(path, "r");
    if (NULL == file) {
        fail_msg("%s cannot be opened; R2_SRCDIR names the sources", path);
    }
    bytes = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[bytes] = '\0';
    for (size_t i = 0; i < r2_array_count(words); ++i) {
        if (NULL == strstr(text, words[i])) {
            fail_msg("%s says nothing of %s", path, words[i]);
        }
    }
}

/* The time of day has nine decimals and moves with the clock. */
static void time_of_day(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "time");
    int second[2], part[2];
    json_t *lines;

    for (int i = 0; i < 2; ++i) {
        r2_event_t event = r2_event(R2_EVENT_CARRIER, world->now_ns + (uint64_t) i * 1000000007ull);

        r2_events_add(events, &event);
    }
    r2_events_destroy(events);
    lines = t_read(world, "time");
    for (size_t i = 0; i < 2; ++i) {
        const char *text = t_text(lines, i, "time");
        int year, month, day, hour, minute, used = 0;

        assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%9dZ%n", &year, &month, &day, &hour,
                                &minute, &second[i], &part[i], &used),
                         7);
        assert_int_equal(used, strlen("2026-11-21T06:25:58.123456789Z"));
        assert_true(year >= 2026 && month >= 1 && month <= 12 && hour < 24 && minute < 60);
    }
    assert_int_equal((part[0] + 7) % 1000000000, part[1]);
    assert_int_equal((second[0] + 1 + (part[0] + 7) / 1000000000) % 60, second[1]);
    json_decref(lines);
}

static void names(void **state)
{
    t_world_t *world = *state;
    char name[64];

    snprintf(name, sizeof(name), "ev.h1.3.%ld%%.json", (long) getpid());
    r2_events_destroy(t_open(world, "ev.%h.%r.%p%%.json"));
    json_decref(t_read(world, name));
}

/* A second run appends. */
static void appends(void **state)
{
    t_world_t *world = *state;
    json_t *lines;

    r2_events_destroy(t_open(world, "x"));
    r2_events_destroy(t_open(world, "x"));
    lines = t_read(world, "x");
    assert_int_equal(json_array_size(lines), 2);
    json_decref(lines);
}

static void bad_names(void **state)
{
    t_world_t *world = *state;
    char long_name[5000];
    const struct {
        const char *pattern, *says;
    } rows[] = {
        {"/tmp/%x", "%h (host)"},
        {"/tmp/%", "%h (host)"},
        {long_name, "%h (host)"},
        {"/nonexistent/r2/%r",
         "/nonexistent/r2/3 cannot be opened for writing on h1: No such file"},
        {"/tmp", "Is a directory"},
        {world->folder, "Is a directory"},
    };
    r2_events_t *events;

    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        assert_int_equal(t_create(world, rows[i].pattern, &events), R2_ERR_PARAM);
        assert_null(events);
        assert_non_null(strstr(world->text, "event_file"));
        if (rows[i].pattern != long_name && NULL == strstr(world->text, rows[i].says)) {
            fail_msg("%s", world->text);
        }
    }
}

/* No name is no name, whatever the memory held. */
static void empty_name(void **state)
{
    char path[16], text[64];

    (void) state;
    memset(path, 'x', sizeof(path));
    assert_int_equal(R2_OK,
                     r2_path_expand("name", "", "h", 0, path, sizeof(path), text, sizeof(text)));
    assert_string_equal("", path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_name),
        cmocka_unit_test_setup_teardown(no_file, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(start_line, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(fields_of_types, t_setup, t_teardown),
        cmocka_unit_test(documented),
        cmocka_unit_test_setup_teardown(time_of_day, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(names, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(appends, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(bad_names, t_setup, t_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
