/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Event files in a folder of their own: clock, log, what was written.
 */
#ifndef R2_TESTS_EVENTS_WORLD_H
#define R2_TESTS_EVENTS_WORLD_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "telemetry/events.h"

/** One test's folder, clock and log. */
typedef struct t_world {
    char folder[64];
    uint64_t now_ns;
    r2_clock_t clock;
    r2_log_t log;
    unsigned warnings;
    char text[512];
} t_world_t;

static inline uint64_t t_now_ns(void *arg)
{
    return ((t_world_t *) arg)->now_ns;
}

static inline void t_log(void *arg, int level, const char *line)
{
    t_world_t *world = arg;

    assert_int_equal(level, R2_LOG_WARN);
    assert_non_null(strstr(line, "cannot be written"));
    ++world->warnings;
}

static inline int t_setup(void **state)
{
    t_world_t *world = calloc(1, sizeof(*world));

    if (NULL == world) {
        return -1;
    }
    strcpy(world->folder, "/tmp/r2-telemetry-XXXXXX");
    world->now_ns = 5 * R2_NS_PER_S;
    world->clock = (r2_clock_t){.now_ns = t_now_ns, .arg = world};
    world->log = (r2_log_t){.level = R2_LOG_TRACE, .fn = t_log, .arg = world};
    *state = world;
    return NULL == mkdtemp(world->folder) ? -1 : 0;
}

static inline int t_teardown(void **state)
{
    t_world_t *world = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", world->folder);
    if (0 != system(command)) {
        return -1;
    }
    free(world);
    return 0;
}

static inline r2_status_t t_create(t_world_t *world, const char *pattern, r2_events_t **events_p)
{
    return r2_events_create(pattern, "h1", 3, &world->log, &world->clock, events_p, world->text,
                            sizeof(world->text));
}

static inline r2_events_t *t_open(t_world_t *world, const char *name)
{
    r2_events_t *events;
    char pattern[256];

    snprintf(pattern, sizeof(pattern), "%s/%s", world->folder, name);
    if (R2_OK != t_create(world, pattern, &events)) {
        fail_msg("%s", world->text);
    }
    return events;
}

/** All lines of a file as a JSON array; fails if one of them is no JSON object. */
static inline json_t *t_read(const t_world_t *world, const char *name)
{
    json_t *lines = json_array();
    char path[256], line[R2_EVENTS_LINE_BYTES + 2];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", world->folder, name);
    file = fopen(path, "r");
    assert_non_null(file);
    while (NULL != fgets(line, sizeof(line), file)) {
        json_error_t error;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);

        if (!json_is_object(object)) {
            fail_msg("%s: %s", error.text, line);
        }
        assert_int_equal(json_integer_value(json_object_get(object, "v")), R2_EVENTS_VERSION);
        json_array_append_new(lines, object);
    }
    fclose(file);
    return lines;
}

static inline const char *t_text(json_t *lines, size_t idx, const char *key)
{
    return json_string_value(json_object_get(json_array_get(lines, idx), key));
}

static inline json_int_t t_number(json_t *lines, size_t idx, const char *key)
{
    json_t *value = json_object_get(json_array_get(lines, idx), key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static inline bool t_has(json_t *lines, size_t idx, const char *key)
{
    return NULL != json_object_get(json_array_get(lines, idx), key);
}

#endif
