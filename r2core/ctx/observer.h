/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Observers: who is told what happens in a process.
 */
#ifndef R2_CTX_OBSERVER_H
#define R2_CTX_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/status.h"
#include "r2/verdict.h"

struct r2_plan_env;
struct r2_verdict_event;
struct r2_schedule;

/**
 * What it wants to be told; NULL: not that. Called under the engine lock, some of it inside of
 * callbacks: to be noted or written, never to send, or to end anything.
 */
typedef struct r2_observer {
    /** The application drove the engine. */
    void (*app_drove)(void *arg, uint64_t now_ns);
    /** The application started something, and read nothing. */
    void (*app_started)(void *arg, uint64_t now_ns);
    /** The engine was driven. @param delivered payload arrived. */
    void (*swept)(void *arg, bool delivered);
    /** A lane changed; not of lanes within the host. */
    void (*lane)(void *arg, uint32_t rank, uint32_t rail, r2_lane_event_t event, r2_status_t why);
    /** A lane over this rail of ours has been loaded for some time: as often as links tell so. */
    void (*loaded)(void *arg, uint32_t rail);
    /** A NIC of this host lost or got carrier. */
    void (*carrier)(void *arg, uint32_t rail, bool carrier);
    /** No lane to a peer is up though one is wanted, or (gone) it was given up for good. */
    void (*peer)(void *arg, uint32_t rank, bool gone);
    /** The detector decided, or heard what others decided. @param event valid during the call. */
    void (*verdict)(void *arg, const struct r2_verdict_event *event);
    /**
     * A call of a communicator of `size` ranks is complete without error.
     * @param begun_ns 0: how long it took says nothing of its steps.
     */
    void (*called)(void *arg, const struct r2_schedule *schedule, int32_t size, uint64_t begun_ns);
    /**
     * What plans of the job are made from has changed, or what this process knows of its cost.
     * @param env valid until the next one is told; NULL: all processes agree on nothing now.
     * @param rank  this process in the communicator of all processes that agrees.
     */
    void (*plan)(void *arg, const struct r2_plan_env *env, int32_t rank);
    void *arg; /* borrowed: outlives the observer */
    struct r2_observer *next;
} r2_observer_t;

/* Tells all of a list in turn. */
void r2_observe_app_drove(const r2_observer_t *list, uint64_t now_ns);
void r2_observe_app_started(const r2_observer_t *list, uint64_t now_ns);
void r2_observe_swept(const r2_observer_t *list, bool delivered);
void r2_observe_lane(const r2_observer_t *list, uint32_t rank, uint32_t rail, r2_lane_event_t event,
                     r2_status_t why);
void r2_observe_loaded(const r2_observer_t *list, uint32_t rail);
void r2_observe_carrier(const r2_observer_t *list, uint32_t rail, bool carrier);
void r2_observe_peer(const r2_observer_t *list, uint32_t rank, bool gone);
void r2_observe_verdict(const r2_observer_t *list, const struct r2_verdict_event *event);
void r2_observe_called(const r2_observer_t *list, const struct r2_schedule *schedule, int32_t size,
                       uint64_t begun_ns);
void r2_observe_plan(const r2_observer_t *list, const struct r2_plan_env *env, int32_t rank);

#endif
