/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages as PMIx events: queue, one event at a time, what arrives.
 */
#include "r2_config.h"

#include "oob/pmix_event.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "oob/pmix_port.h"
#include "rail/hello.h"

#define R2_EVENT_QUEUE_MAX 256           /* messages that wait; the oldest goes */
#define R2_EVENT_STALE_NS  (R2_NS_PER_S) /* who waits for so long was told by another path */
#define R2_EVENT_RANKS_MAX 64u           /* that one event is for */

/** A message that waits. */
typedef struct r2_event_message {
    struct r2_event_message *prev, *next;
    uint64_t since_ns;
    uint32_t rank;
    size_t bytes;
    uint8_t data[];
} r2_event_message_t;

/** The instance. Engine lock. */
typedef struct r2_pmix_event {
    r2_pmix_event_config_t config;
    r2_post_upcalls_t upcalls;
    uint8_t key[R2_JOB_KEY_BYTES];
    bool have_key;
    r2_event_message_t *queue; /* owned list, oldest first */
    uint32_t queued;
    r2_pmix_port_t *port; /* refcounted: PMIx has it, too */
    r2_bundle_t *bundle;  /* owned: to make one in */
    r2_pmix_event_counts_t counts;
} r2_pmix_event_t;

static void r2_event_drop(r2_pmix_event_t *event, r2_event_message_t *message)
{
    DL_DELETE(event->queue, message);
    --event->queued;
    free(message);
}

/** Takes what fits in one event out of the queue. @return number of ranks that it is for. */
static uint32_t r2_event_bundle(r2_pmix_event_t *event, uint64_t now_ns, uint32_t *ranks_p)
{
    r2_event_message_t *message, *next;
    uint32_t count = 0;

    r2_bundle_begin(event->bundle, event->config.rank);
    DL_FOREACH_SAFE(event->queue, message, next) {
        uint32_t at = 0;

        if (now_ns - message->since_ns >= R2_EVENT_STALE_NS) {
            ++event->counts.dropped;
            r2_event_drop(event, message);
            continue;
        }
        while (at < count && ranks_p[at] != message->rank) {
            ++at;
        }
        if (at == R2_EVENT_RANKS_MAX ||
            !r2_bundle_add(event->bundle, message->rank, message->data, message->bytes)) {
            break;
        }
        ranks_p[at] = message->rank;
        count = r2_max(count, at + 1);
        r2_event_drop(event, message);
    }
    return count;
}

/** Sends what waits, if nothing is under way. */
static void r2_event_progress(r2_pmix_event_t *event)
{
    uint32_t ranks[R2_EVENT_RANKS_MAX], count;
    r2_status_t status;

    if (!event->have_key || NULL == event->queue || r2_pmix_port_is_sending(event->port)) {
        return;
    }
    count = r2_event_bundle(event, r2_now_ns(event->config.clock), ranks);
    if (0 == count) {
        return;
    }
    r2_bundle_seal(event->bundle, event->key);
    status = r2_pmix_port_send(event->port, event->config.rank, ranks, count, event->bundle);
    if (R2_OK == status) {
        ++event->counts.sent_events;
        event->counts.sent_messages += event->bundle->count;
    } else {
        ++event->counts.refused;
        r2_debug(event->config.log, "events: %u messages not taken: %s", event->bundle->count,
                 r2_status_string(status));
    }
}

/* ---- the table ---- */

static void r2_event_bind(void *post, const r2_post_upcalls_t *upcalls)
{
    r2_pmix_event_t *event = post;

    event->upcalls = *upcalls;
}

static void r2_event_key(void *post, const uint8_t *key)
{
    r2_pmix_event_t *event = post;

    memcpy(event->key, key, sizeof(event->key));
    event->have_key = true;
    r2_event_progress(event);
}

static r2_status_t r2_event_send(void *post, uint32_t rank, const void *data, size_t bytes)
{
    r2_pmix_event_t *event = post;
    r2_event_message_t *message;

    if (rank >= event->config.size || rank == event->config.rank || bytes > R2_POST_BYTES_MAX) {
        return R2_ERR_PARAM;
    }
    message = calloc(1, sizeof(*message) + bytes);
    if (NULL == message) {
        return R2_ERR_NO_MEMORY;
    }
    message->since_ns = r2_now_ns(event->config.clock);
    message->rank = rank;
    message->bytes = bytes;
    if (bytes > 0) {
        memcpy(message->data, data, bytes);
    }
    if (event->queued == R2_EVENT_QUEUE_MAX) {
        ++event->counts.dropped;
        r2_event_drop(event, event->queue);
    }
    DL_APPEND(event->queue, message);
    ++event->queued;
    r2_event_progress(event);
    return R2_OK;
}

static int r2_event_fd(void *post)
{
    const r2_pmix_event_t *event = post;

    return r2_pmix_port_fd(event->port);
}

static void r2_event_take(r2_pmix_event_t *event, const r2_pmix_parcel_t *parcel)
{
    const r2_pmix_event_config_t *config = &event->config;

    if (parcel->is_death) {
        if (NULL != event->upcalls.died && parcel->rank < config->size &&
            parcel->rank != config->rank) {
            r2_debug(config->log, "events: the launcher says that rank %u is dead", parcel->rank);
            event->upcalls.died(event->upcalls.arg, parcel->rank);
        }
        return;
    }
    if (!event->have_key || R2_OK != r2_bundle_read(parcel->data, parcel->bytes, event->key,
                                                    config->rank, config->size, &event->upcalls)) {
        ++event->counts.dropped;
        r2_debug(config->log, "events: %zu bytes that are not of this job", parcel->bytes);
        return;
    }
    ++event->counts.received;
}

static void r2_event_poll(void *post)
{
    r2_pmix_event_t *event = post;
    r2_pmix_parcel_t *parcel, *next, *parcels = r2_pmix_port_empty(event->port);

    DL_FOREACH_SAFE(parcels, parcel, next) {
        r2_event_take(event, parcel);
        DL_DELETE(parcels, parcel);
        free(parcel);
    }
    r2_event_progress(event);
}

static uint64_t r2_event_deadline_ns(void *post)
{
    (void) post;
    return R2_NEVER_NS; /* everything that happens wakes by the descriptor */
}

static const r2_post_ops_t r2_event_ops = {
    .name = "events",
    .bind = r2_event_bind,
    .key = r2_event_key,
    .send = r2_event_send,
    .fd = r2_event_fd,
    .poll = r2_event_poll,
    .deadline_ns = r2_event_deadline_ns,
};

static void r2_event_free(r2_pmix_event_t *event)
{
    while (NULL != event->queue) {
        r2_event_drop(event, event->queue);
    }
    if (NULL != event->port) {
        r2_pmix_port_close(event->port);
    }
    free(event->bundle);
    sodium_memzero(event->key, sizeof(event->key));
    free(event);
}

r2_status_t r2_pmix_event_create(const r2_pmix_event_config_t *config, r2_post_t *post_p)
{
    r2_pmix_event_t *event = calloc(1, sizeof(*event));
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL == event) {
        return status;
    }
    event->config = *config;
    event->bundle = calloc(1, sizeof(*event->bundle));
    if (NULL != event->bundle) {
        status = r2_pmix_port_open(&event->port);
    }
    if (R2_OK != status) {
        r2_event_free(event);
        return status;
    }
    post_p->ops = &r2_event_ops;
    post_p->instance = event;
    return R2_OK;
}

void r2_pmix_event_destroy(r2_post_t *post)
{
    r2_pmix_event_t *event = post->instance;

    if (NULL == event) {
        return;
    }
    r2_debug(event->config.log,
             "events: %llu with %llu messages sent, %llu refused, %llu received, %llu dropped",
             (unsigned long long) event->counts.sent_events,
             (unsigned long long) event->counts.sent_messages,
             (unsigned long long) event->counts.refused,
             (unsigned long long) event->counts.received,
             (unsigned long long) event->counts.dropped);
    r2_event_free(event);
    post->instance = NULL;
    post->ops = NULL;
}

void r2_pmix_event_counts(const r2_post_t *post, r2_pmix_event_counts_t *counts_p)
{
    *counts_p = ((const r2_pmix_event_t *) post->instance)->counts;
}
