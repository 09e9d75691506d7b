/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Event file: schema, escaping, full disk, full queue, bad names. Gaps after faults.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "telemetry/path.h"
#include "telemetry/events.h"
#include "telemetry/gap.h"

/** One test's folder, clock and log. */
typedef struct t_world {
    char folder[64];
    uint64_t now_ns;
    r2_clock_t clock;
    r2_log_t log;
    unsigned warnings;
    char text[512];
} t_world_t;

static uint64_t t_now_ns(void *arg)
{
    return ((t_world_t *) arg)->now_ns;
}

static void t_log(void *arg, int level, const char *line)
{
    t_world_t *world = arg;

    assert_int_equal(level, R2_LOG_WARN);
    assert_non_null(strstr(line, "cannot be written"));
    ++world->warnings;
}

static int t_setup(void **state)
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

static int t_teardown(void **state)
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

static r2_status_t t_create(t_world_t *world, const char *pattern, r2_events_t **events_p)
{
    return r2_events_create(pattern, "h1", 3, &world->log, &world->clock, events_p, world->text,
                            sizeof(world->text));
}

static r2_events_t *t_open(t_world_t *world, const char *name)
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
static json_t *t_read(const t_world_t *world, const char *name)
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

static const char *t_text(json_t *lines, size_t idx, const char *key)
{
    return json_string_value(json_object_get(json_array_get(lines, idx), key));
}

static json_int_t t_number(json_t *lines, size_t idx, const char *key)
{
    json_t *value = json_object_get(json_array_get(lines, idx), key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static bool t_has(json_t *lines, size_t idx, const char *key)
{
    return NULL != json_object_get(json_array_get(lines, idx), key);
}

/* ---- event file */

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

/* A pipe is refused: its reader could stop the job. */
static void pipes(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events;
    char path[128];
    FILE *reader;

    snprintf(path, sizeof(path), "%s/pipe", world->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(t_create(world, path, &events), R2_ERR_PARAM);
    reader = fopen(path, "r+");
    assert_int_equal(t_create(world, path, &events), R2_ERR_PARAM);
    assert_non_null(strstr(world->text, "no regular file"));
    fclose(reader);
}

/* One warning, however often writing fails. */
static void full_disk(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events;
    r2_event_t event = r2_event(R2_EVENT_LANE_DOWN, 1);

    assert_int_equal(t_create(world, "/dev/full", &events), R2_OK);
    for (unsigned i = 0; i < 3; ++i) {
        r2_events_add(events, &event);
        assert_int_equal(world->warnings, i > 0);
        r2_events_flush(events);
    }
    r2_events_destroy(events);
    assert_int_equal(world->warnings, 1);
}

/* The disk is full in the middle of a line and has room again: the other lines are whole. */
static void disk_full_for_a_while(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "limit");
    r2_event_t event = r2_event(R2_EVENT_LANE_UP, 1);
    struct rlimit was, tight;
    char path[128], line[R2_EVENTS_LINE_BYTES];
    unsigned whole = 0, broken = 0;
    json_int_t lost = 0;
    FILE *file;

    event.rail = 1;
    getrlimit(RLIMIT_FSIZE, &was);
    tight = was;
    tight.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    for (unsigned i = 0; i < 20; ++i) {
        r2_events_add(events, &event);
    }
    setrlimit(RLIMIT_FSIZE, &tight);
    r2_events_flush(events);
    r2_events_flush(events);
    setrlimit(RLIMIT_FSIZE, &was);
    r2_events_add(events, &event);
    r2_events_destroy(events);
    snprintf(path, sizeof(path), "%s/limit", world->folder);
    file = fopen(path, "r");
    while (NULL != fgets(line, sizeof(line), file)) {
        json_t *object = json_loads(line, 0, NULL);
        json_t *count = json_object_get(object, "lines");

        whole += NULL != object;
        broken += NULL == object;
        if (NULL != object &&
            0 == strcmp(json_string_value(json_object_get(object, "event")), "lost")) {
            lost += json_integer_value(count);
        }
        json_decref(object);
    }
    fclose(file);
    assert_int_equal(broken, 1);
    assert_int_equal(whole + lost, 20 + 1 + 1 + 1); /* lane_up, and lost and end */
    assert_int_equal(world->warnings, 1);
}

/* More than the queue holds is counted, never waited for. */
static void full_queue(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "queue");
    r2_event_t event = r2_event(R2_EVENT_LANE_UP, 1);
    size_t last;
    json_t *lines;

    for (unsigned i = 0; i < 10000; ++i) {
        event.peer = i;
        r2_events_add(events, &event);
    }
    r2_events_flush(events);
    r2_events_destroy(events);
    lines = t_read(world, "queue");
    last = json_array_size(lines) - 1;
    assert_true(last > 1000 && last < 10000);
    assert_string_equal(t_text(lines, last, "event"), "end");
    assert_int_equal(t_number(lines, last, "lines"), last);
    assert_string_equal(t_text(lines, last - 1, "event"), "lost");
    assert_int_equal(t_number(lines, last - 1, "lines") + (json_int_t) last - 1, 10000);
    for (size_t i = 0; i < last - 1; ++i) {
        assert_int_equal(t_number(lines, i, "peer"), i);
    }
    assert_int_equal(world->warnings, 0);
    json_decref(lines);
}

/* A line that is too long is lost; the next one is not. */
static void long_line(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "long");
    r2_event_t event = r2_event(R2_EVENT_VERDICT, 1);
    char *text = malloc(R2_EVENTS_LINE_BYTES);
    json_t *lines;

    memset(text, '"', R2_EVENTS_LINE_BYTES);
    text[R2_EVENTS_LINE_BYTES - 1] = '\0';
    event.evidence = text;
    r2_events_add(events, &event);
    event.evidence = "short";
    r2_events_add(events, &event);
    r2_events_destroy(events);
    lines = t_read(world, "long");
    assert_int_equal(json_array_size(lines), 3);
    assert_string_equal(t_text(lines, 0, "evidence"), "short");
    assert_int_equal(t_number(lines, 1, "lines"), 1);
    json_decref(lines);
    free(text);
}

static bool t_readable(const r2_events_t *events)
{
    struct pollfd fd = {.fd = r2_events_fd(events), .events = POLLIN};

    return 1 == poll(&fd, 1, 0);
}

static void wakes_the_writer(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "wake");
    r2_event_t event = r2_event(R2_EVENT_LANE_UP, 1);

    assert_false(t_readable(events));
    r2_events_add(events, &event);
    r2_events_add(events, &event);
    assert_true(t_readable(events));
    r2_events_flush(events);
    assert_false(t_readable(events));
    r2_events_add(events, &event);
    assert_true(t_readable(events));
    r2_events_destroy(events);
}

/* Differences of totals, ten times per second at most, and one sample of zeros when traffic ends.
 */
static void throughput(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "rate");
    uint64_t tx[2] = {0, 0}, rx[2] = {0, 0};
    uint64_t start_ns = world->now_ns, samples = 0;
    json_t *lines, *numbers;

    for (uint64_t ms = 0; ms < 1000; ++ms) {
        if (ms < 450) {
            tx[0] += 10;
            rx[1] += 20;
        }
        if (r2_events_sample_due(events, start_ns + ms * R2_NS_PER_MS)) {
            ++samples;
            r2_events_sample(events, tx, rx, 2, start_ns + ms * R2_NS_PER_MS);
        }
    }
    r2_events_destroy(events);
    assert_int_equal(samples, 9);
    lines = t_read(world, "rate");
    assert_int_equal(json_array_size(lines), 5 + 1 + 1);
    for (size_t i = 0; i < 6; ++i) {
        static const json_int_t sent[] = {1010, 1000, 1000, 1000, 490, 0};

        assert_string_equal(t_text(lines, i, "event"), "throughput");
        assert_int_equal(t_number(lines, i, "interval_ns"), R2_EVENTS_SAMPLE_NS);
        numbers = json_object_get(json_array_get(lines, i), "tx_bytes");
        assert_int_equal(json_array_size(numbers), 2);
        assert_int_equal(json_integer_value(json_array_get(numbers, 0)), sent[i]);
        assert_int_equal(json_integer_value(json_array_get(numbers, 1)), 0);
        numbers = json_object_get(json_array_get(lines, i), "rx_bytes");
        assert_int_equal(json_integer_value(json_array_get(numbers, 1)), 2 * sent[i]);
    }
    json_decref(lines);
}

static void *t_adder(void *arg)
{
    for (unsigned i = 0; i < 500; ++i) {
        r2_event_t event = r2_event(R2_EVENT_LANE_UP, i);

        event.peer = i;
        r2_events_add(arg, &event);
        if (0 == i % 7) {
            r2_events_flush(arg);
        }
    }
    return NULL;
}

/* Threads add and flush at the same time: no line is lost or torn, and each thread's lines are in
 * order. */
static void threads(void **state)
{
    t_world_t *world = *state;
    r2_events_t *events = t_open(world, "threads");
    pthread_t adders[4];
    json_int_t sum = 0;
    json_t *lines;

    for (size_t i = 0; i < r2_array_count(adders); ++i) {
        assert_int_equal(pthread_create(&adders[i], NULL, t_adder, events), 0);
    }
    for (size_t i = 0; i < r2_array_count(adders); ++i) {
        pthread_join(adders[i], NULL);
    }
    r2_events_destroy(events);
    lines = t_read(world, "threads");
    assert_int_equal(json_array_size(lines), 4 * 500 + 1);
    for (size_t i = 0; i < 4 * 500; ++i) {
        sum += t_number(lines, i, "peer");
    }
    assert_int_equal(sum, 4 * (499 * 500 / 2));
    json_decref(lines);
}

/* ---- gaps */

#define T_MS R2_NS_PER_MS

/* Deliveries every step within [from, to). */
static void t_deliver(r2_gap_t *gap, uint64_t from_ms, uint64_t to_ms, uint64_t step_ms)
{
    for (uint64_t ms = from_ms; ms < to_ms; ms += step_ms) {
        r2_gap_swept(gap, true, true, ms * T_MS);
    }
}

static r2_gap_fault_t t_take(r2_gap_t *gap, uint64_t at_ms)
{
    r2_gap_fault_t fault;

    assert_int_equal(r2_gap_deadline_ns(gap), at_ms * T_MS);
    assert_false(r2_gap_take(gap, at_ms * T_MS - 1, &fault));
    assert_true(r2_gap_take(gap, at_ms * T_MS, &fault));
    assert_int_equal(r2_gap_deadline_ns(gap), UINT64_MAX);
    return fault;
}

/* Only pauses after the fault count, and of those that span its begin or end only the part inside.
 */
static void gap_in_window(void **state)
{
    static const struct {
        uint64_t pause_from_ms, pause_to_ms, evidence_ms, expect_ms;
    } rows[] = {
        {3000, 3200, 3500, 2},   /* before the fault */
        {3400, 3600, 3500, 100}, /* spans it, and evidence came in the middle */
        {3600, 3700, 3500, 100},  {4450, 4700, 3500, 50}, /* spans the end of the window */
        {4600, 4900, 3500, 2},                            /* behind it */
        {3500, 4600, 3500, 1000},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        uint64_t from_ms = rows[i].pause_from_ms, to_ms = rows[i].pause_to_ms;
        uint64_t since_ms = rows[i].evidence_ms;
        r2_gap_t gap;
        bool told = false;

        r2_gap_init(&gap);
        for (uint64_t ms = 1000; ms <= 4500; ++ms) {
            r2_gap_swept(&gap, 0 == ms % 2 && (ms <= from_ms || ms >= to_ms), true, ms * T_MS);
            if (since_ms == ms && !told) {
                r2_gap_fault(&gap, 7, since_ms * T_MS, ms * T_MS);
                told = true;
            }
        }
        assert_int_equal(t_take(&gap, since_ms + 1000).longest_ns, rows[i].expect_ms * T_MS);
        assert_int_equal(gap.longest_ns, rows[i].expect_ms * T_MS);
    }
}

/* Evidence that comes after the pause is over: the pause is remembered. */
static void gap_late_evidence(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 2000, 10);
    t_deliver(&gap, 2140, 2400, 10);
    r2_gap_fault(&gap, 0, 2030 * T_MS, 2400 * T_MS);
    t_deliver(&gap, 2400, 3100, 10);
    assert_int_equal(t_take(&gap, 3030).longest_ns, 110 * T_MS);
}

/* While nobody waits there is no gap. */
static void gap_nobody_waits(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 1100, 10);
    r2_gap_fault(&gap, 0, 1100 * T_MS, 1100 * T_MS);
    r2_gap_swept(&gap, false, false, 1105 * T_MS);
    r2_gap_swept(&gap, false, false, 1700 * T_MS);
    r2_gap_swept(&gap, false, true, 1800 * T_MS);
    t_deliver(&gap, 1830, 2200, 10);
    assert_int_equal(t_take(&gap, 2100).longest_ns, 30 * T_MS);
}

/* The window ends while everybody still waits. */
static void gap_without_end(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 1100, 10);
    r2_gap_fault(&gap, 0, 1200 * T_MS, 1200 * T_MS);
    assert_int_equal(t_take(&gap, 2200).longest_ns, 1000 * T_MS);
}

/* More evidence of the same fault is no second fault; another rail is; a later one is. */
static void gap_which_fault(void **state)
{
    r2_gap_t gap;
    r2_gap_fault_t fault;
    unsigned taken = 0;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 2000, 10);
    r2_gap_fault(&gap, 1, 2000 * T_MS, 2000 * T_MS);
    r2_gap_fault(&gap, 1, 2100 * T_MS, 2100 * T_MS);
    r2_gap_fault(&gap, 2, 2300 * T_MS, 2300 * T_MS);
    t_deliver(&gap, 2400, 3100, 10);
    while (r2_gap_take(&gap, 3400 * T_MS, &fault)) {
        ++taken; /* what is left of the pause from 1990 to 2400; what lies behind 3090 is longer for
                    rail 2 */
        assert_int_equal(fault.longest_ns, (1 == fault.rail ? 400 : 210) * T_MS);
    }
    assert_int_equal(taken, 2);
    r2_gap_fault(&gap, 1, 3400 * T_MS, 3400 * T_MS);
    assert_int_equal(r2_gap_deadline_ns(&gap), 4400 * T_MS);
}

static void gap_too_many(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    for (uint32_t i = 0; i < R2_GAP_FAULTS_MAX + 3; ++i) {
        r2_gap_fault(&gap, i, 1000, 1000);
    }
    assert_int_equal(gap.missed, 3);
    assert_int_equal(gap.fault_count, R2_GAP_FAULTS_MAX);
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
        cmocka_unit_test_setup_teardown(pipes, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(full_disk, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(disk_full_for_a_while, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(full_queue, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(long_line, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(wakes_the_writer, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(throughput, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(threads, t_setup, t_teardown),
        cmocka_unit_test(gap_in_window),
        cmocka_unit_test(gap_late_evidence),
        cmocka_unit_test(gap_nobody_waits),
        cmocka_unit_test(gap_without_end),
        cmocka_unit_test(gap_which_fault),
        cmocka_unit_test(gap_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
