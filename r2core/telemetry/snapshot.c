/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Snapshot: a file that always holds the newest text, whole.
 */
#include "r2_config.h"

#include "telemetry/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fork.h"

#define R2_SNAPSHOT_SUFFIX ".new"

struct r2_snapshot {
    const r2_log_t *log; /* borrowed: outlives the snapshot */
    const char *name;    /* borrowed: static */
    char *path, *beside; /* owned: the file, and where the next one is written */
    int ready_fd;        /* owned: eventfd */
    bool warned;         /* who flushes */
    pthread_mutex_t lock;
    char *text; /* owned, lock: waits for being written; NULL: nothing does */
};

/* Readers see the old text or the new one. */
static bool r2_snapshot_write(const r2_snapshot_t *snapshot, const char *text)
{
    int fd = open(snapshot->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = NULL != file && fputs(text, file) >= 0;

    if (NULL != file) {
        ok = 0 == fclose(file) && ok;
    } else if (fd >= 0) {
        close(fd);
    }
    return ok && 0 == rename(snapshot->beside, snapshot->path);
}

void r2_snapshot_put(r2_snapshot_t *snapshot, char *text)
{
    uint64_t one = 1;

    if (NULL == snapshot || NULL == text) {
        free(text);
        return;
    }
    pthread_mutex_lock(&snapshot->lock);
    free(snapshot->text);
    snapshot->text = text;
    pthread_mutex_unlock(&snapshot->lock);
    (void) !write(snapshot->ready_fd, &one, sizeof(one));
}

int r2_snapshot_fd(const r2_snapshot_t *snapshot)
{
    return NULL == snapshot ? -1 : snapshot->ready_fd;
}

void r2_snapshot_flush(r2_snapshot_t *snapshot)
{
    uint64_t drained;
    char *text;

    if (NULL == snapshot) {
        return;
    }
    (void) !read(snapshot->ready_fd, &drained, sizeof(drained));
    pthread_mutex_lock(&snapshot->lock);
    text = snapshot->text;
    snapshot->text = NULL;
    pthread_mutex_unlock(&snapshot->lock);
    if (NULL != text && !r2_snapshot_write(snapshot, text) && !snapshot->warned) {
        snapshot->warned = true;
        r2_warn(snapshot->log, "%s: %s cannot be written: %s", snapshot->name, snapshot->path,
                strerror(errno));
    }
    free(text);
}

static void r2_snapshot_free(r2_snapshot_t *snapshot)
{
    if (snapshot->ready_fd >= 0) {
        r2_fd_close(snapshot->ready_fd);
    }
    pthread_mutex_destroy(&snapshot->lock);
    free(snapshot->text);
    free(snapshot->path);
    free(snapshot->beside);
    free(snapshot);
}

r2_status_t r2_snapshot_create(const char *name, const char *path, const r2_log_t *log,
                               r2_snapshot_t **snapshot_p, char *text_p, size_t text_bytes)
{
    const size_t beside_bytes = strlen(path) + sizeof(R2_SNAPSHOT_SUFFIX);
    r2_snapshot_t *snapshot;

    *snapshot_p = NULL;
    if ('\0' == path[0]) {
        return R2_OK;
    }
    snapshot = calloc(1, sizeof(*snapshot));
    if (NULL == snapshot) {
        return R2_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&snapshot->lock, NULL);
    snapshot->log = log;
    snapshot->name = name;
    snapshot->path = strdup(path);
    snapshot->beside = malloc(beside_bytes);
    snapshot->ready_fd = r2_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (NULL == snapshot->path || NULL == snapshot->beside || snapshot->ready_fd < 0) {
        r2_snapshot_free(snapshot);
        return R2_ERR_NO_MEMORY;
    }
    snprintf(snapshot->beside, beside_bytes, "%s%s", path, R2_SNAPSHOT_SUFFIX);
    if (!r2_snapshot_write(snapshot,
                           "# r2: no communicator of all processes has been made yet\n")) {
        snprintf(text_p, text_bytes, "%s: %s cannot be written: %s", name, path, strerror(errno));
        r2_snapshot_free(snapshot);
        return R2_ERR_PARAM;
    }
    *snapshot_p = snapshot;
    return R2_OK;
}

void r2_snapshot_destroy(r2_snapshot_t *snapshot)
{
    if (NULL != snapshot) {
        r2_snapshot_flush(snapshot);
        r2_snapshot_free(snapshot);
    }
}
