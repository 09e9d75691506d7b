/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: virtual time, a binary heap of events ordered by (time, order of creation).
 */
#include "r2_config.h"

#include "doubles/sim_state.h"

#include <stdlib.h>

static bool sim_event_lt(const r2_sim_event_t *a, const r2_sim_event_t *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void sim_heap_up(r2_sim_event_t *heap, size_t i)
{
    r2_sim_event_t event = heap[i];

    while (i > 0 && sim_event_lt(&event, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
}

static void sim_heap_down(r2_sim_event_t *heap, size_t count, size_t i)
{
    r2_sim_event_t event = heap[i];
    size_t child;

    for (child = 2 * i + 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && sim_event_lt(&heap[child + 1], &heap[child])) {
            ++child;
        }
        if (!sim_event_lt(&heap[child], &event)) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = event;
}

volatile bool r2_sim_takes_memory;

bool r2_sim_at(r2_sim_t *sim, uint64_t time_ns, void (*fn)(void *arg, uint64_t value), void *arg,
               uint64_t value)
{
    if (sim->event_count == sim->event_room) {
        size_t room = 0 == sim->event_room ? 256 : 2 * sim->event_room;
        r2_sim_event_t *heap;

        r2_sim_takes_memory = true;
        heap = realloc(sim->heap, room * sizeof(*heap));
        r2_sim_takes_memory = false;
        if (NULL == heap) {
            r2_sim_fail(sim, "out of memory for events");
            return false;
        }
        sim->heap = heap;
        sim->event_room = room;
    }
    sim->heap[sim->event_count] =
        (r2_sim_event_t){r2_max(time_ns, sim->now_ns), sim->next_order++, fn, arg, value};
    sim_heap_up(sim->heap, sim->event_count++);
    return true;
}

uint64_t r2_sim_now_ns(const r2_sim_t *sim)
{
    return sim->now_ns;
}

uint64_t r2_sim_next_ns(const r2_sim_t *sim)
{
    return 0 == sim->event_count ? R2_NEVER_NS : sim->heap[0].time_ns;
}

bool r2_sim_step(r2_sim_t *sim)
{
    r2_sim_event_t event;

    if (0 == sim->event_count) {
        return false;
    }
    event = sim->heap[0];
    sim->heap[0] = sim->heap[--sim->event_count];
    if (sim->event_count > 0) {
        sim_heap_down(sim->heap, sim->event_count, 0);
    }
    sim->now_ns = r2_max(sim->now_ns, event.time_ns);
    event.fn(event.arg, event.value);
    return true;
}

void r2_sim_run_until(r2_sim_t *sim, uint64_t time_ns)
{
    while (r2_sim_next_ns(sim) <= time_ns && r2_sim_step(sim)) {
    }
    sim->now_ns = r2_max(sim->now_ns, time_ns);
}
