/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement in a sequence: map-pending bit, syncs of maps, calls that wait for them.
 */
#include "r2_config.h"

#include "ctx/agree.h"

#include <stdlib.h>
#include <utlist.h>

r2_plan_env_t *r2_agree_plan_env(const r2_agree_t *agree)
{
    return NULL != agree ? agree->env : NULL;
}

/* Does our map say more than the agreed one? Looked at again only when one of them has changed. */
bool r2_agree_map_pending(r2_agree_t *agree)
{
    const r2_agree_common_t *common = agree->common;

    if (r2_estimator_wanted(common->estimator, agree->env)) {
        return true;
    }
    if (agree->looked != common->core->counters.map_changes + 1) {
        agree->map_pending = r2_map_sync_matters(&agree->agreed->map, common->ours);
        agree->looked = common->core->counters.map_changes + 1;
    }
    return agree->map_pending;
}

/* ---- life ---- */

/* All is well to begin with; what this process knows is merged by the first calls. */
static r2_status_t r2_agree_begin_with(const r2_agree_group_t *group, r2_agree_t *agree)
{
    r2_agree_common_t *common = agree->common;
    const r2_health_map_t *ours = common->ours;
    r2_shared_map_t *map = r2_shared_map_create(ours->host_count, ours->rail_count);
    r2_plan_env_t *env;
    r2_status_t status = NULL == map ? R2_ERR_NO_MEMORY
                                     : r2_plan_env_create(common->hosts, group->ranks, group->size,
                                                          ours->rail_count, &env);

    if (R2_OK != status) {
        r2_shared_map_put(map);
        return status;
    }
    agree->agreed = r2_shared_map_share(&common->maps, map);
    agree->env = r2_plan_env_share(&common->envs, env);
    return R2_OK;
}

static void r2_agree_tell_job(const r2_agree_t *job)
{
    r2_observe_plan(job->common->core->observers, job->env, job->rank);
}

r2_status_t r2_agree_create(r2_agree_common_t *common, const r2_agree_group_t *group,
                            r2_agree_t **agree_p)
{
    r2_agree_t *agree;
    r2_status_t status;

    *agree_p = NULL;
    if (NULL == common->ours || group->size < 2) {
        return R2_OK;
    }
    agree = calloc(1, sizeof(*agree));
    if (NULL == agree) {
        return R2_ERR_NO_MEMORY;
    }
    agree->common = common;
    agree->root = agree;
    agree->owner = group->owner;
    agree->key = group->key;
    agree->rank = group->rank;
    status = r2_agree_begin_with(group, agree);
    if (R2_OK != status) {
        r2_agree_destroy(agree);
        return status;
    }
    if (NULL == common->job && (uint32_t) group->size == common->core->net.size) {
        common->job = agree;
        r2_agree_tell_job(agree);
    }
    *agree_p = agree;
    return R2_OK;
}

static void r2_agree_unlist(r2_agree_t *agree)
{
    if (agree->listed) {
        agree->listed = false;
        LL_DELETE(agree->common->ready, agree);
    }
}

static void r2_agree_list(r2_agree_t *agree)
{
    if (!agree->listed) {
        agree->listed = true;
        LL_PREPEND(agree->common->ready, agree);
    }
}

static void r2_agree_drop_sync(r2_agree_t *agree)
{
    if (agree->syncing) {
        agree->common->ops->end_sync(agree->owner);
        agree->syncing = false;
    }
}

/* Takes the place of a sequence out of the queue of its communicator. */
static void r2_agree_drop_opening(r2_agree_t *agree)
{
    if (NULL != agree->opening.opens) {
        DL_DELETE(agree->root->queue, &agree->opening);
        agree->opening.opens = NULL;
    }
}

static void r2_agree_drop_openings(r2_agree_t *agree)
{
    r2_agree_call_t *call, *next;

    DL_FOREACH_SAFE(agree->queue, call, next) {
        if (NULL != call->opens) {
            r2_agree_drop_opening(call->opens);
        }
    }
}

/* Whatever a rank has completed, all come here with the same calls of the communicator begun. */
static void r2_agree_opened(r2_agree_t *agree)
{
    agree->agreed = r2_shared_map_get(agree->root->agreed);
    agree->env = r2_plan_env_get(agree->root->env);
    if (NULL != agree->queue) {
        r2_agree_list(agree);
    }
}

r2_status_t r2_agree_open(r2_agree_t *root, void *owner, r2_agree_t **agree_p)
{
    r2_agree_t *agree = calloc(1, sizeof(*agree));

    if (NULL == agree) {
        return R2_ERR_NO_MEMORY;
    }
    agree->common = root->common;
    agree->root = root;
    agree->owner = owner;
    agree->key = root->key;
    agree->rank = root->rank;
    if (NULL == root->queue) {
        r2_agree_opened(agree);
    } else {
        agree->opening.opens = agree;
        DL_APPEND(root->queue, &agree->opening);
    }
    *agree_p = agree;
    return R2_OK;
}

void r2_agree_destroy(r2_agree_t *agree)
{
    if (NULL == agree) {
        return;
    }
    if (agree == agree->common->job) {
        agree->common->job = NULL;
        r2_observe_plan(agree->common->core->observers, NULL, 0);
    }
    r2_agree_unlist(agree);
    r2_agree_drop_sync(agree);
    r2_agree_drop_openings(agree);
    r2_agree_drop_opening(agree);
    r2_map_sync_destroy(agree->sync); /* links do not refer to it any more */
    r2_plan_env_put(agree->env);
    r2_shared_map_put(agree->agreed);
    free(agree);
}

/* ---- calls ---- */

/* Starts the map sync before a call. @return R2_OK: under way. */
static r2_status_t r2_agree_start_sync(r2_agree_t *agree)
{
    const r2_agree_common_t *common = agree->common;
    r2_status_t status;

    r2_estimator_look(common->estimator);
    status = r2_map_sync_create(agree->agreed, agree->env, common->ours, common->estimator->version,
                                &common->estimator->cost, &agree->sync);
    if (R2_OK != status) {
        return status;
    }
    agree->synced = false;
    agree->syncing = true;
    ++common->core->counters.map_syncs;
    status = common->ops->start_sync(agree->owner, agree->sync);
    /* over at once, and with an error: the call must not wait for it */
    return R2_OK == status ? agree->failed : status;
}

/*
 * Numbers a call and begins its map sync if it has one.
 * @return R2_OK: the call itself may begin; R2_IN_PROGRESS: not yet.
 */
static r2_status_t r2_agree_begin(r2_agree_t *agree, r2_agree_call_t *call)
{
    const bool alone = agree != agree->root; /* the call before it is over when it is posted */
    r2_status_t status = R2_OK;
    bool wants_sync;

    call->number = r2_agreement_start(&agree->calls, call->carrying, call->blocking || alone,
                                      call->is_long, &wants_sync);
    call->numbered = true;
    if (wants_sync) {
        status = r2_agree_start_sync(agree);
        status = R2_OK == status ? R2_IN_PROGRESS : status;
    }
    return status;
}

r2_status_t r2_agree_enter(r2_agree_t *agree, r2_agree_call_t *call)
{
    if (NULL != agree->env && NULL == agree->queue && !agree->syncing &&
        r2_agreement_ready(&agree->calls)) {
        return r2_agree_begin(agree, call);
    }
    return R2_IN_PROGRESS;
}

void r2_agree_wait(r2_agree_t *agree, r2_agree_call_t *call)
{
    DL_APPEND(agree->queue, call);
    r2_agree_list(agree);
}

void r2_agree_synced(r2_agree_t *agree)
{
    agree->synced = true;
    r2_agree_list(agree);
}

void r2_agree_left(r2_agree_t *agree, const r2_agree_call_t *call, bool map_pending)
{
    if (!call->numbered) {
        return;
    }
    r2_agreement_complete(&agree->calls, call->number, map_pending);
    if (NULL != agree->queue) {
        r2_agree_list(agree);
    }
}

/* All ranks hold the same maps now. */
static void r2_agree_take(r2_agree_t *agree)
{
    r2_agree_common_t *common = agree->common;
    r2_map_sync_t *sync = agree->sync;
    uint64_t before = r2_health_map_digest(&agree->agreed->map);

    if (r2_map_sync_take(sync)) {
        r2_estimator_heard(common->estimator, sync->env->cost_version, &sync->env->cost);
    }
    r2_shared_map_put(agree->agreed);
    r2_plan_env_put(agree->env);
    agree->agreed = r2_shared_map_share(&common->maps, sync->next);
    agree->env = r2_plan_env_share(&common->envs, sync->env);
    sync->next = NULL;
    sync->env = NULL;
    r2_agree_drop_sync(agree);
    r2_map_sync_destroy(sync);
    agree->sync = NULL;
    agree->looked = 0;
    if (agree == common->job) {
        r2_agree_tell_job(agree);
    }
    if (before != r2_health_map_digest(&agree->agreed->map)) {
        ++common->core->counters.epochs;
        r2_debug(&common->core->log, "communicator %016llx: all ranks agree on a new map (%s)",
                 (unsigned long long) agree->key, agree->env->even ? "even" : "uneven");
    }
}

/* @return R2_OK: the first call that waits has begun; R2_IN_PROGRESS: it goes on waiting. */
static r2_status_t r2_agree_begin_first(r2_agree_t *agree)
{
    r2_agree_call_t *call = agree->queue;
    r2_status_t status = R2_OK;

    if (NULL != call->opens) {
        r2_agree_t *opens = call->opens;

        r2_agree_drop_opening(opens);
        r2_agree_opened(opens);
        return R2_OK;
    }
    if (!call->numbered) {
        status = r2_agreement_ready(&agree->calls) ? r2_agree_begin(agree, call) : R2_IN_PROGRESS;
    }
    if (R2_OK != status) {
        return status;
    }
    DL_DELETE(agree->queue, call);
    return agree->common->ops->begin(call);
}

static void r2_agree_go_on(r2_agree_t *agree)
{
    r2_status_t status = R2_OK;

    if (agree->syncing) {
        if (!agree->synced || R2_OK != agree->failed) {
            return;
        }
        r2_agree_take(agree);
    }
    while (R2_OK == status && NULL != agree->queue && !agree->syncing && NULL != agree->env &&
           R2_OK == agree->failed) {
        status = r2_agree_begin_first(agree);
    }
    if (status < 0) {
        agree->common->ops->fail_all(agree->owner, status);
    }
}

void r2_agree_run(r2_agree_common_t *common)
{
    while (NULL != common->ready) {
        r2_agree_t *agree = common->ready;

        r2_agree_unlist(agree);
        r2_agree_go_on(agree);
    }
}

void r2_agree_abort(r2_agree_t *agree, r2_status_t status)
{
    r2_agree_call_t *call, *next;

    if (NULL == agree) {
        return;
    }
    agree->failed = status;
    r2_agree_drop_openings(agree);
    DL_FOREACH_SAFE(agree->queue, call, next) {
        DL_DELETE(agree->queue, call);
        agree->common->ops->fail(call, status);
    }
    r2_agree_unlist(agree);
}
