/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Queue of events of a simulation.
 */
#include "r2_config.h"

#include "sim/events.h"

#include <stdlib.h>

enum { EVENTS_FIRST = 256 };

static bool before(const event_t *a, const event_t *b)
{
    return a->at_s < b->at_s || (!(b->at_s < a->at_s) && a->number < b->number);
}

r2_status_t events_add(events_t *events, event_t event)
{
    size_t at = events->count;

    if (events->count == events->room) {
        const size_t room = 0 == events->room ? EVENTS_FIRST : 2 * events->room;
        event_t *grown = realloc(events->heap, room * sizeof(*grown));

        if (NULL == grown) {
            return R2_ERR_NO_MEMORY;
        }
        events->heap = grown;
        events->room = room;
    }
    event.number = events->number++;
    ++events->count;
    while (at > 0 && before(&event, &events->heap[(at - 1) / 2])) {
        events->heap[at] = events->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    events->heap[at] = event;
    return R2_OK;
}

bool events_take(events_t *events, event_t *event_p)
{
    size_t at = 0, child;
    event_t last;

    if (0 == events->count) {
        return false;
    }
    *event_p = events->heap[0];
    last = events->heap[--events->count];
    while ((child = 2 * at + 1) < events->count) {
        if (child + 1 < events->count && before(&events->heap[child + 1], &events->heap[child])) {
            ++child;
        }
        if (!before(&events->heap[child], &last)) {
            break;
        }
        events->heap[at] = events->heap[child];
        at = child;
    }
    events->heap[at] = last;
    return true;
}

void events_fini(events_t *events)
{
    free(events->heap);
    *events = (events_t){.count = 0};
}
