/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Event log: lines are queued where things happen, and written by whoever flushes.
 */
#include "r2_config.h"

#include "telemetry/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/util.h"
#include "r2/version.h"
#include "telemetry/event_line.h"
#include "telemetry/path.h"

struct r2_events {
    const r2_log_t *log;     /* borrowed: outlives the log */
    const r2_clock_t *clock; /* borrowed: outlives the log */
    char *path;              /* owned */
    r2_event_origin_t origin;
    int ready_fd; /* owned: eventfd, readable while lines are queued */
    pthread_mutex_t queue_lock;
    /* queue_lock */
    char *queue; /* owned: R2_EVENTS_QUEUE_BYTES */
    size_t queued_bytes;
    uint64_t queued_lines;
    uint64_t lost_lines; /* and not yet reported in the file */
    pthread_mutex_t file_lock;
    /* file_lock */
    char *batch; /* owned: the other R2_EVENTS_QUEUE_BYTES, being written */
    int fd;      /* owned */
    uint64_t written_lines;
    bool torn; /* the file ends in part of a line */
    bool warned;
    /* thread that samples */
    uint64_t sampled_ns;
    uint64_t tx_bytes[R2_RAILS_MAX], rx_bytes[R2_RAILS_MAX]; /* totals of the newest sample */
    bool quiet;                                              /* the newest sample was all zero */
};

/* ---- queue */

void r2_events_add(r2_events_t *events, const r2_event_t *event)
{
    char line[R2_EVENTS_LINE_BYTES];
    uint64_t one = 1;
    size_t bytes;
    bool first;

    if (NULL == events) {
        return;
    }
    bytes = r2_event_line(event, &events->origin, line);
    pthread_mutex_lock(&events->queue_lock);
    first = 0 == events->queued_bytes;
    if (0 == bytes || bytes > R2_EVENTS_QUEUE_BYTES - events->queued_bytes) {
        ++events->lost_lines;
    } else {
        memcpy(events->queue + events->queued_bytes, line, bytes);
        events->queued_bytes += bytes;
        ++events->queued_lines;
    }
    pthread_mutex_unlock(&events->queue_lock);
    if (first) {
        (void) !write(events->ready_fd, &one, sizeof(one));
    }
}

bool r2_events_sample_due(const r2_events_t *events, uint64_t now_ns)
{
    return NULL != events && now_ns - events->sampled_ns >= R2_EVENTS_SAMPLE_NS;
}

void r2_events_sample(r2_events_t *events, const uint64_t *tx_bytes, const uint64_t *rx_bytes,
                      uint32_t rail_count, uint64_t now_ns)
{
    uint64_t tx_delta[R2_RAILS_MAX], rx_delta[R2_RAILS_MAX], moved = 0;
    r2_event_t event = r2_event(R2_EVENT_THROUGHPUT, now_ns);

    if (NULL == events) {
        return;
    }
    r2_assert(rail_count <= R2_RAILS_MAX);
    for (uint32_t i = 0; i < rail_count; ++i) {
        tx_delta[i] = tx_bytes[i] - events->tx_bytes[i];
        rx_delta[i] = rx_bytes[i] - events->rx_bytes[i];
        moved |= tx_delta[i] | rx_delta[i];
        events->tx_bytes[i] = tx_bytes[i];
        events->rx_bytes[i] = rx_bytes[i];
    }
    event.interval_ns = now_ns - events->sampled_ns;
    event.tx_bytes = tx_delta;
    event.rx_bytes = rx_delta;
    event.rail_count = rail_count;
    events->sampled_ns = now_ns;
    if (0 != moved || !events->quiet) {
        r2_events_add(events, &event);
    }
    events->quiet = 0 == moved;
}

int r2_events_fd(const r2_events_t *events)
{
    return NULL == events ? -1 : events->ready_fd;
}

/* ---- file */

static uint64_t r2_count_lines(const char *text, size_t bytes)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < bytes; ++i) {
        lines += '\n' == text[i];
    }
    return lines;
}

/* @return bytes written; less than asked for: errno tells why. */
static size_t r2_write_all(int fd, const char *text, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t rc = write(fd, text + done, bytes - done);

        if (rc < 0 && EINTR == errno) {
            continue;
        }
        if (rc <= 0) {
            break;
        }
        done += (size_t) rc;
    }
    return done;
}

/* file_lock. @return lines that were lost. */
static uint64_t r2_events_write(r2_events_t *events, const char *text, size_t bytes)
{
    size_t done;
    uint64_t whole;

    if (events->torn && bytes > 0 && 1 == r2_write_all(events->fd, "\n", 1)) {
        events->torn = false; /* the next line starts afresh */
    }
    done = events->torn ? 0 : r2_write_all(events->fd, text, bytes);
    whole = r2_count_lines(text, done);
    events->written_lines += whole;
    if (done == bytes) {
        return 0;
    }
    events->torn = events->torn || (done > 0 && '\n' != text[done - 1]);
    if (!events->warned) {
        events->warned = true;
        r2_warn(events->log, "event file %s cannot be written: %s; events are lost until it can",
                events->path, strerror(errno));
    }
    return r2_count_lines(text, bytes) - whole;
}

/* file_lock. Says in the file what is missing there. */
static void r2_events_write_lost(r2_events_t *events, uint64_t lost_lines)
{
    r2_event_t event = r2_event(R2_EVENT_LOST, r2_now_ns(events->clock));
    char line[R2_EVENTS_LINE_BYTES];
    size_t bytes;

    event.lines = lost_lines;
    bytes = r2_event_line(&event, &events->origin, line);
    if (0 != r2_events_write(events, line, bytes)) {
        pthread_mutex_lock(&events->queue_lock);
        events->lost_lines += lost_lines;
        pthread_mutex_unlock(&events->queue_lock);
    }
}

void r2_events_flush(r2_events_t *events)
{
    uint64_t drained, lost_lines;
    size_t bytes;
    char *batch;

    if (NULL == events) {
        return;
    }
    pthread_mutex_lock(&events->file_lock);
    (void) !read(events->ready_fd, &drained, sizeof(drained));
    pthread_mutex_lock(&events->queue_lock);
    batch = events->queue;
    bytes = events->queued_bytes;
    lost_lines = events->lost_lines;
    events->queue = events->batch;
    events->queued_bytes = 0;
    events->lost_lines = 0;
    pthread_mutex_unlock(&events->queue_lock);
    events->batch = batch;
    lost_lines += r2_events_write(events, batch, bytes);
    if (0 != lost_lines) {
        r2_events_write_lost(events, lost_lines);
    }
    pthread_mutex_unlock(&events->file_lock);
}

/* ---- life */

/* May block, as opening may: a child that is forked meanwhile keeps it, which hides no death. */
static void r2_events_close(int fd)
{
    r2_fd_closing(fd);
    r2_fd_closed();
    close(fd);
}

/* @return the descriptor, or -1 with errno. Pipes are refused: who reads them could stop us. */
static int r2_events_open(const char *path)
{
    /* may block, on a file system of the network: no fork waits for that */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    struct stat info;

    (void) r2_fd_keep(fd);
    if (fd >= 0 && (0 != fstat(fd, &info) || !(S_ISREG(info.st_mode) || S_ISCHR(info.st_mode)))) {
        r2_events_close(fd);
        errno = ESPIPE;
        return -1;
    }
    return fd;
}

static void r2_events_free(r2_events_t *events)
{
    if (events->fd >= 0) {
        r2_events_close(events->fd);
    }
    if (events->ready_fd >= 0) {
        r2_fd_close(events->ready_fd);
    }
    pthread_mutex_destroy(&events->queue_lock);
    pthread_mutex_destroy(&events->file_lock);
    free(events->queue);
    free(events->batch);
    free(events->path);
    free(events);
}

static r2_events_t *r2_events_alloc(const char *host, uint32_t rank, const r2_log_t *log,
                                    const r2_clock_t *clock)
{
    r2_events_t *events = calloc(1, sizeof(*events));
    struct timespec wall;

    if (NULL == events) {
        return NULL;
    }
    clock_gettime(CLOCK_REALTIME, &wall);
    events->log = log;
    events->clock = clock;
    events->origin.rank = rank;
    events->sampled_ns = r2_now_ns(clock);
    events->origin.wall_offset_ns = (int64_t) ((uint64_t) wall.tv_sec * R2_NS_PER_S +
                                               (uint64_t) wall.tv_nsec - events->sampled_ns);
    events->quiet = true;
    events->fd = -1;
    events->ready_fd = r2_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    events->queue = malloc(R2_EVENTS_QUEUE_BYTES);
    events->batch = malloc(R2_EVENTS_QUEUE_BYTES);
    snprintf(events->origin.host, sizeof(events->origin.host), "%s", host);
    pthread_mutex_init(&events->queue_lock, NULL);
    pthread_mutex_init(&events->file_lock, NULL);
    if (NULL == events->queue || NULL == events->batch || events->ready_fd < 0) {
        r2_events_free(events);
        return NULL;
    }
    return events;
}

r2_status_t r2_events_create(const char *pattern, const char *host, uint32_t rank,
                             const r2_log_t *log, const r2_clock_t *clock, r2_events_t **events_p,
                             char *text_p, size_t text_bytes)
{
    char path[4096];
    r2_events_t *events;
    r2_status_t status;

    *events_p = NULL;
    if ('\0' == pattern[0]) {
        return R2_OK;
    }
    status =
        r2_path_expand("event_file", pattern, host, rank, path, sizeof(path), text_p, text_bytes);
    if (R2_OK != status) {
        return status;
    }
    events = r2_events_alloc(host, rank, log, clock);
    if (NULL == events) {
        snprintf(text_p, text_bytes, "no memory for the event log of event_file");
        return R2_ERR_NO_MEMORY;
    }
    events->path = strdup(path);
    events->fd = NULL == events->path ? -1 : r2_events_open(path);
    if (events->fd < 0) {
        snprintf(text_p, text_bytes,
                 "event_file = \"%s\": %s cannot be opened for writing on %s: %s", pattern, path,
                 host, ESPIPE == errno ? "it is no regular file" : strerror(errno));
        r2_events_free(events);
        return R2_ERR_PARAM;
    }
    *events_p = events;
    return R2_OK;
}

void r2_events_destroy(r2_events_t *events)
{
    r2_event_t event;

    if (NULL == events) {
        return;
    }
    r2_events_flush(events);
    event = r2_event(R2_EVENT_END, r2_now_ns(events->clock));
    event.lines = events->written_lines;
    r2_events_add(events, &event);
    r2_events_flush(events);
    r2_events_free(events);
}
