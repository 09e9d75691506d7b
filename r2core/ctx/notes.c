/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Notes: evidence for the detector, taken down in callbacks and handed over outside of them.
 */
#include "r2_config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ctx/detector.h"

static bool r2_note_recurs(r2_note_kind_t kind)
{
    return R2_NOTE_RATE == kind || R2_NOTE_HEARD == kind || R2_NOTE_NOTICE == kind;
}

/* @return false: no memory. */
static bool r2_note_room(r2_ctx_health_t *health)
{
    r2_note_t *more;

    if (health->queued < health->room) {
        return true;
    }
    more = realloc(health->queue, 2 * health->room * sizeof(*more));
    if (NULL == more) {
        return false;
    }
    health->queue = more;
    health->room *= 2;
    return true;
}

static r2_note_t *r2_note_new(r2_ctx_health_t *health, r2_note_kind_t kind, uint32_t rank)
{
    r2_note_t *note;

    if (NULL == health) {
        return NULL;
    }
    if (r2_note_recurs(kind) && health->queued >= R2_NOTE_MAX) {
        ++health->core->counters.evidence_dropped;
        return NULL;
    }
    if (!r2_note_room(health)) {
        health->missed = r2_min(health->missed, rank);
        return NULL;
    }
    note = &health->queue[health->queued++];
    memset(note, 0, offsetof(r2_note_t, data));
    note->kind = kind;
    note->rank = rank;
    return note;
}

void r2_note_lane(r2_ctx_health_t *health, uint32_t rank, uint32_t rail, uint32_t peer_rail,
                  r2_lane_event_t event, r2_status_t why)
{
    r2_note_t *note = r2_note_new(health, R2_NOTE_LANE, rank);

    if (NULL != note) {
        note->rail = rail;
        note->peer_rail = peer_rail;
        note->event = event;
        note->why = why;
    }
}

void r2_note_peer(r2_ctx_health_t *health, uint32_t rank, bool silent)
{
    r2_note_t *note = r2_note_new(health, R2_NOTE_PEER, rank);

    if (NULL != note) {
        note->flag = silent;
    }
}

void r2_note_notice(r2_ctx_health_t *health, uint32_t rank, const void *data, size_t bytes)
{
    r2_note_t *note;

    if (bytes > R2_NOTICE_BYTES_MAX) {
        return;
    }
    note = r2_note_new(health, R2_NOTE_NOTICE, rank);
    if (NULL != note) {
        memcpy(note->data, data, bytes);
        note->data_bytes = (uint32_t) bytes;
    }
}

void r2_note_rate(r2_ctx_health_t *health, uint32_t rank, uint32_t rail, bool outbound,
                  uint64_t bytes, uint64_t interval_ns)
{
    r2_note_t *note = r2_note_new(health, R2_NOTE_RATE, rank);

    if (NULL != note) {
        note->rail = rail;
        note->flag = outbound;
        note->bytes = bytes;
        note->interval_ns = interval_ns;
    }
}

void r2_note_probed(r2_ctx_health_t *health, uint64_t id, r2_probe_answer_t answer)
{
    r2_note_t *note = r2_note_new(health, R2_NOTE_PROBED, 0);

    if (NULL != note) {
        note->id = id;
        note->flag = R2_PROBE_ALIVE == answer;
        note->unable = R2_PROBE_UNABLE == answer;
    }
}

void r2_note_heard(r2_ctx_health_t *health, uint32_t rank, uint32_t rail, uint64_t id)
{
    r2_note_t *note = r2_note_new(health, R2_NOTE_HEARD, rank);

    if (NULL != note) {
        note->rail = rail;
        note->id = id;
    }
}

void r2_note_gone(r2_ctx_health_t *health, uint32_t rank)
{
    (void) r2_note_new(health, R2_NOTE_GONE, rank);
}

static void r2_note_give(r2_ctx_health_t *health, const r2_note_t *what, uint64_t now_ns)
{
    r2_health_t *machine = health->machine;

    switch (what->kind) {
    case R2_NOTE_LANE:
        r2_health_lane(machine, what->rank, what->rail, what->peer_rail, what->event, what->why,
                       now_ns);
        break;
    case R2_NOTE_PEER:
        r2_health_peer(machine, what->rank, what->flag, false, now_ns);
        break;
    case R2_NOTE_GONE:
        r2_health_peer(machine, what->rank, true, true, now_ns);
        break;
    case R2_NOTE_NOTICE:
        health->unanswered[what->rank] = 0;
        ++health->core->counters.notices_received;
        if (R2_OK != r2_health_noticed(machine, what->rank, what->data, what->data_bytes, now_ns)) {
            ++health->core->counters.rx_malformed;
        }
        break;
    case R2_NOTE_RATE:
        r2_health_rate(machine, what->rank, what->rail, what->flag, what->bytes, what->interval_ns,
                       now_ns);
        break;
    case R2_NOTE_PROBED:
        r2_health_probed(machine, what->id, what->flag, what->unable, now_ns);
        break;
    case R2_NOTE_HEARD:
        r2_health_heard(machine, what->rank, what->rail, what->id, now_ns);
        break;
    }
}

/* What there was no memory to note. */
static void r2_notes_make_up(r2_ctx_health_t *health)
{
    const uint32_t from = health->missed;
    r2_links_t links = r2_core_links(health->core, from);
    const r2_link_t *link;

    health->missed = UINT32_MAX;
    r2_net_tell_states(&health->core->net, from);
    while (NULL != (link = r2_links_next(&links))) {
        if (R2_ERR_PEER_GONE == r2_link_broken(link)) {
            r2_note_gone(health, r2_link_peer(link)); /* once more, or at last */
        }
    }
}

void r2_notes_give(r2_ctx_health_t *health, uint64_t now_ns)
{
    /* what is added meanwhile (a probe that cannot be sent) is handed over, too */
    for (uint32_t i = 0; i < health->queued; ++i) {
        r2_note_t note = health->queue[i];

        r2_note_give(health, &note, now_ns);
    }
    health->queued = 0;
    if (UINT32_MAX != health->missed) {
        r2_notes_make_up(health);
    }
}
