/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What writes the event file: full disk, full queue, long lines, many threads, its speed.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "events_world.h"

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

/* Differences of totals, ten times per second at most, and one sample of zeros when traffic
 * ends. */
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

/* ---- closing ---- */

int __real_close(int fd);
int __wrap_close(int fd);

static unsigned closed, held; /* files closed; with the lock that fork() takes */

static void *t_forks(void *arg)
{
    r2_fd_opening();
    (void) r2_fd_opened(-1);
    return arg;
}

/* As a file system of the network, which writes what it kept: others fork meanwhile. */
int __wrap_close(int fd)
{
    struct stat info;
    struct timespec end;
    pthread_t forks;

    if (0 == fstat(fd, &info) && S_ISREG(info.st_mode) &&
        0 == pthread_create(&forks, NULL, t_forks, NULL)) {
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 2;
        ++closed;
        if (0 != pthread_timedjoin_np(forks, NULL, &end)) {
            ++held;
            (void) pthread_detach(forks);
        }
    }
    return __real_close(fd);
}

/* Closing may take long, and nobody waits for it who forks. */
static void closed_without_the_lock_of_forks(void **state)
{
    t_world_t *world = *state;

    closed = held = 0;
    r2_events_destroy(t_open(world, "closed"));
    assert_int_equal(closed, 1);
    assert_int_equal(held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(closed_without_the_lock_of_forks, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(pipes, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(full_disk, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(disk_full_for_a_while, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(full_queue, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(long_line, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(wakes_the_writer, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(throughput, t_setup, t_teardown),
        cmocka_unit_test_setup_teardown(threads, t_setup, t_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
