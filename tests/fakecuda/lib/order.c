/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Who comes after whom. Everything is a clock: how far each stream is. An operation carries the
 * clock that it comes after; an event is the clock of its record; waiting merges clocks. So it
 * shows without luck, when the second one is enqueued, that two operations use the same memory and
 * nothing orders them.
 */
#include "fakecuda/lib/fc.h"

#include <stdlib.h>
#include <string.h>

void fc_merge(fc_clock_t *into, const fc_clock_t *from)
{
    for (int i = 0; i < FC_STREAMS; ++i) {
        into->seq[i] = from->seq[i] > into->seq[i] ? from->seq[i] : into->seq[i];
    }
}

bool fc_reached(const fc_clock_t *clock)
{
    for (int i = 0; i < FC_STREAMS; ++i) {
        if (fc.done[i] < clock->seq[i]) {
            return false;
        }
    }
    return true;
}

/* ---- accesses: there may be thousands of pieces */

/* @return in which part of an allocation an access is looked for */
static int part_of(const fc_alloc_t *alloc, uintptr_t from, uintptr_t to)
{
    const size_t bytes = alloc->bytes / (FC_PARTS - 1) + 1;
    const size_t first = (from - alloc->base) / bytes, last = (to - 1 - alloc->base) / bytes;

    return from >= alloc->base && first == last && last < FC_PARTS - 1 ? (int) first : FC_PARTS - 1;
}

static void walk_to_access(fc_walk_t *walk)
{
    while (NULL == walk->access && walk->part < FC_PARTS - 1) {
        walk->part = walk->part < walk->last ? walk->part + 1 : FC_PARTS - 1;
        walk->access = walk->alloc->accesses[walk->part];
    }
}

fc_walk_t fc_walk(const fc_alloc_t *alloc, uintptr_t from, uintptr_t to)
{
    const int first = part_of(alloc, from, from + 1), last = part_of(alloc, to - 1, to);
    const bool is_inside = first < FC_PARTS - 1 && last < FC_PARTS - 1;
    fc_walk_t walk = {.alloc = alloc,
                      .part = is_inside ? first : 0,
                      .last = is_inside ? last : FC_PARTS - 1};

    walk.access = alloc->accesses[walk.part];
    walk_to_access(&walk);
    return walk;
}

void fc_walk_on(fc_walk_t *walk)
{
    walk->access = walk->access->next;
    walk_to_access(walk);
}

/* Accesses that the host has waited for matter no more: what is enqueued later comes after them. */
static void forget_old(fc_alloc_t *alloc)
{
    uintptr_t from = UINTPTR_MAX, to = 0;

    for (int part = 0; part < FC_PARTS && alloc->access_count > 0; ++part) {
        fc_access_t **link = &alloc->accesses[part];

        while (NULL != *link) {
            fc_access_t *access = *link;
            if (fc.host.seq[access->place] >= access->seq) {
                *link = access->next;
                from = access->from < from ? access->from : from;
                to = access->to > to ? access->to : to;
                --alloc->access_count;
                free(access);
            } else {
                link = &access->next;
            }
        }
    }
    if (from < to) {
        fc_protect(alloc, from, to);
    }
}

static void leave_busy(fc_alloc_t *alloc)
{
    fc_alloc_t **link = &fc.busy;

    while (NULL != *link && *link != alloc) {
        link = &(*link)->next_busy;
    }
    if (NULL != *link) {
        *link = alloc->next_busy;
    }
}

void fc_forget_accesses(fc_alloc_t *alloc)
{
    for (int part = 0; part < FC_PARTS; ++part) {
        while (NULL != alloc->accesses[part]) {
            fc_access_t *access = alloc->accesses[part];
            alloc->accesses[part] = access->next;
            free(access);
        }
    }
    alloc->access_count = 0;
    leave_busy(alloc);
}

void fc_host_knows(const fc_clock_t *clock)
{
    fc_alloc_t **link = &fc.busy;

    fc_merge(&fc.host, clock);
    while (NULL != *link) {
        forget_old(*link);
        if (0 == (*link)->access_count) {
            *link = (*link)->next_busy;
        } else {
            link = &(*link)->next_busy;
        }
    }
}

void fc_stall(const fc_clock_t *clock)
{
    const fc_clock_t copy = *clock;

    while (!fc_reached(&copy)) {
        pthread_cond_wait(&fc.changed, &fc.lock);
    }
}

void fc_wait(const fc_clock_t *clock)
{
    const fc_clock_t copy = *clock;

    ++fc.counters[FC_host_waits];
    fc_stall(&copy);
    fc_host_knows(&copy);
}

void fc_clock_all(fc_clock_t *clock_p, const fc_ctx_t *ctx)
{
    memset(clock_p, 0, sizeof(*clock_p));
    for (int i = 0; i < FC_STREAMS; ++i) {
        const fc_stream_t *stream = fc.streams[i];
        if (NULL == stream) {
            clock_p->seq[i] = fc.last_seq[i];
        } else if (NULL == ctx || stream->ctx == ctx) {
            fc_merge(clock_p, &stream->clock);
        }
    }
}

/* ---- rows of memory */

static uintptr_t end_of(const fc_span_t *span)
{
    return span->at + (span->rows > 1 ? (span->rows - 1) * span->pitch : 0) + span->bytes;
}

/* @return the first row of an access that ends behind `at`, or the number of its rows. */
static size_t row_behind(const fc_access_t *access, uintptr_t at)
{
    const size_t row = at < access->from + access->bytes
                           ? 0
                           : (at - access->from - access->bytes) / access->pitch + 1;

    return row < access->rows ? row : access->rows;
}

static bool meets_piece(const fc_access_t *access, uintptr_t from, uintptr_t to)
{
    size_t row;

    if (to <= access->from || access->to <= from || 1 == access->rows) {
        return from < access->to && access->from < to;
    }
    row = row_behind(access, from);
    return row < access->rows && access->from + row * access->pitch < to;
}

static bool meets(const fc_access_t *access, const fc_span_t *span)
{
    bool is_met = false;

    if (access->to <= span->at || end_of(span) <= access->from) {
        return false;
    }
    for (size_t row = 0; !is_met && row < (span->rows > 1 ? span->rows : 1); ++row) {
        const uintptr_t at = span->at + row * span->pitch;

        is_met = meets_piece(access, at, at + span->bytes);
    }
    return is_met;
}

bool fc_covers(const fc_access_t *access, uintptr_t from, uintptr_t to)
{
    uintptr_t at = access->from;

    if (access->rows > 1) {
        at += row_behind(access, from) * access->pitch;
    }
    return at <= from && to <= at + access->bytes && to <= access->to;
}

/* Another stream's access of the same bytes, one of both writes, and `op` does not come after. */
static bool is_missed(const fc_access_t *access, const fc_span_t *span, int place,
                      const fc_op_t *op)
{
    return access->place != place && (access->writes || span->writes) &&
           op->after.seq[access->place] < access->seq && meets(access, span);
}

void fc_note_nic(fc_alloc_t *alloc, const fc_span_t *span)
{
    const bool is_new = alloc->nic_from == alloc->nic_to || alloc->nic_flushes != fc.flushes;
    const uintptr_t end = span->at + span->bytes;

    alloc->nic_from = is_new || span->at < alloc->nic_from ? span->at : alloc->nic_from;
    alloc->nic_to = is_new || end > alloc->nic_to ? end : alloc->nic_to;
    alloc->nic_flushes = fc.flushes;
}

static void check_flushed(const fc_alloc_t *alloc, const fc_span_t *span, const fc_op_t *op)
{
    if (alloc->nic_from < alloc->nic_to && alloc->nic_flushes == fc.flushes &&
        span->at < alloc->nic_to && span->at + span->bytes > alloc->nic_from) {
        fc_mistake(FC_missing_waits,
                   "missing flush: %s %s %p..+%zu (byte %zu of allocation %llu), and what a NIC "
                   "has written there is not flushed",
                   op->name, span->writes ? "writes" : "reads", (void *) span->at, span->bytes,
                   (size_t) (span->at - alloc->base), (unsigned long long) alloc->id);
    }
}

static void check(const fc_alloc_t *alloc, const fc_span_t *span, int place, const fc_op_t *op)
{
    fc_walk_t walk = fc_walk(alloc, span->at, end_of(span));
    const fc_access_t *access;

    check_flushed(alloc, span, op);
    while (NULL != walk.access && !is_missed(walk.access, span, place, op)) {
        fc_walk_on(&walk);
    }
    access = walk.access;
    if (NULL != access) {
        fc_mistake(FC_missing_waits,
                   "missing wait: %s on stream %d %s %p..+%zu (byte %zu of %s allocation %llu), "
                   "%s on stream %d (operation %llu) %s it, and no event or wait orders them",
                   op->name, place, span->writes ? "writes" : "reads", (void *) span->at,
                   span->bytes, (size_t) (span->at - alloc->base), fc_kind_name(alloc->kind),
                   (unsigned long long) alloc->id, access->name, access->place,
                   (unsigned long long) access->seq, access->writes ? "writes" : "reads");
    }
}

void fc_check_nic(const fc_alloc_t *alloc, const fc_span_t *span)
{
    fc_walk_t walk = fc_walk(alloc, span->at, end_of(span));
    const fc_access_t *access = walk.access;

    while (NULL != access && !((access->writes || span->writes) &&
                               fc.host.seq[access->place] < access->seq && meets(access, span))) {
        fc_walk_on(&walk);
        access = walk.access;
    }
    if (NULL != access) {
        fc_mistake(FC_missing_waits,
                   "missing wait: a NIC %s %p..+%zu (byte %zu of allocation %llu), %s on stream %d "
                   "(operation %llu) %s it, and nobody waited for it",
                   span->writes ? "writes" : "reads", (void *) span->at, span->bytes,
                   (size_t) (span->at - alloc->base), (unsigned long long) alloc->id, access->name,
                   access->place, (unsigned long long) access->seq,
                   access->writes ? "writes" : "reads");
    }
}

/* The newest access of a stream stands for older ones of the same bytes. */
static void note(fc_alloc_t *alloc, const fc_span_t *span, int place, const fc_op_t *op)
{
    const size_t rows = span->rows > 1 ? span->rows : 1;
    const int part = part_of(alloc, span->at, end_of(span));
    fc_access_t *access = alloc->accesses[part];

    while (NULL != access && !(access->place == place && access->writes == span->writes &&
                               access->from == span->at && access->bytes == span->bytes &&
                               access->rows == rows && access->pitch == span->pitch)) {
        access = access->next;
    }
    if (NULL == access) {
        access = calloc(1, sizeof(*access));
        if (0 == alloc->access_count++) {
            leave_busy(alloc);
            alloc->next_busy = fc.busy;
            fc.busy = alloc;
        }
        access->next = alloc->accesses[part];
        alloc->accesses[part] = access;
    }
    *access = (fc_access_t){.next = access->next, .from = span->at, .to = end_of(span),
                            .bytes = span->bytes, .rows = rows, .pitch = span->pitch,
                            .place = place, .seq = op->seq, .name = op->name,
                            .writes = span->writes};
    fc_protect(alloc, access->from, access->to);
}

/* One row, in one allocation or several side by side. */
static void note_row(const fc_span_t *span, int place, const fc_op_t *op)
{
    uintptr_t at = span->at, end = span->at + span->bytes;

    while (at < end) {
        fc_alloc_t *alloc = fc_find(at);
        fc_span_t part = {at, end - at, span->writes, 0, 0};
        if (NULL == alloc) {
            return; /* pageable */
        }
        if (alloc->base + alloc->bytes < end) {
            part.bytes = alloc->base + alloc->bytes - at;
        }
        check(alloc, &part, place, op);
        note(alloc, &part, place, op);
        at += part.bytes;
    }
}

void fc_note_span(const fc_span_t *span, int place, const fc_op_t *op)
{
    fc_alloc_t *alloc = fc_find(span->at);

    if (span->rows > 1 && NULL != alloc && end_of(span) <= alloc->base + alloc->bytes) {
        check(alloc, span, place, op);
        note(alloc, span, place, op);
        return;
    }
    for (size_t row = 0; row < (span->rows > 1 ? span->rows : 1); ++row) {
        const fc_span_t part = {span->at + row * span->pitch, span->bytes, span->writes, 0, 0};

        note_row(&part, place, op);
    }
}
