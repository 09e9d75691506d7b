/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Telling observers, in the order in which they came.
 */
#include "r2_config.h"

#include "ctx/observer.h"

#include <stddef.h>

void r2_observe_app_drove(const r2_observer_t *list, uint64_t now_ns)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->app_drove) {
            list->app_drove(list->arg, now_ns);
        }
    }
}

void r2_observe_app_started(const r2_observer_t *list, uint64_t now_ns)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->app_started) {
            list->app_started(list->arg, now_ns);
        }
    }
}

void r2_observe_swept(const r2_observer_t *list, bool delivered)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->swept) {
            list->swept(list->arg, delivered);
        }
    }
}

void r2_observe_lane(const r2_observer_t *list, uint32_t rank, uint32_t rail, r2_lane_event_t event,
                     r2_status_t why)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->lane) {
            list->lane(list->arg, rank, rail, event, why);
        }
    }
}

void r2_observe_loaded(const r2_observer_t *list, uint32_t rail)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->loaded) {
            list->loaded(list->arg, rail);
        }
    }
}

void r2_observe_carrier(const r2_observer_t *list, uint32_t rail, bool carrier)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->carrier) {
            list->carrier(list->arg, rail, carrier);
        }
    }
}

void r2_observe_peer(const r2_observer_t *list, uint32_t rank, bool gone)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->peer) {
            list->peer(list->arg, rank, gone);
        }
    }
}

void r2_observe_verdict(const r2_observer_t *list, const struct r2_verdict_event *event)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->verdict) {
            list->verdict(list->arg, event);
        }
    }
}

void r2_observe_called(const r2_observer_t *list, const struct r2_schedule *schedule, int32_t size,
                       uint64_t begun_ns)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->called) {
            list->called(list->arg, schedule, size, begun_ns);
        }
    }
}

void r2_observe_plan(const r2_observer_t *list, const struct r2_plan_env *env, int32_t rank)
{
    for (; NULL != list; list = list->next) {
        if (NULL != list->plan) {
            list->plan(list->arg, env, rank);
        }
    }
}
