/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of receives that peers write to: granted, and given back when nothing can land there.
 */
#include "r2_config.h"

#include "link/place.h"

#include <string.h>
#include <utlist.h>

static_assert(R2_WIRE_KEYS_MAX == R2_RAILS_MAX && R2_WIRE_KEY_BYTES == R2_TP_KEY_MAX,
              "a grant has a key for each lane");

/* A header that has not been read by then, times failure_timeout_ms, does not spare its lane. */
#define R2_PLACE_TIMES 2u

/* ---- granting ---- */

static bool r2_place_may(const r2_link_t *link, const r2_rx_match_t *match)
{
    return link->net->params->put && !link->same_host && match->posted && NULL == match->place &&
           (0 != match->gpu.gpu_id || (NULL != match->data && NULL == match->sink)) &&
           match->bytes > R2_CREDIT_MIN_BYTES && match->tag.comm_key < R2_LINK_OWN_KEYS &&
           r2_control_may(link, R2_WIRE_GRANT);
}

bool r2_place_wants(const r2_link_t *link, uint64_t bytes)
{
    bool wants = false;

    for (uint32_t i = 0; link->net->params->put && bytes > R2_CREDIT_MIN_BYTES &&
                         !link->same_host && i < link->lane_count;
         ++i) {
        wants = wants || link->lanes[i].is_rdma;
    }
    return wants;
}

/* Where what is put of a receive belongs. */
static void *r2_place_of(const r2_rx_match_t *match)
{
    return 0 == match->gpu.gpu_id ? match->data : match->gpu_data;
}

/* Grants to one lane. @return false: it has no puts, as relays have none, or is not to get any. */
static bool r2_place_grant(const r2_lane_t *lane, const r2_rx_match_t *match, r2_place_t *place,
                           r2_wire_key_t *key)
{
    const r2_tp_ops_t *ops = lane->rail->tp->ops;
    const r2_tp_memory_t *gpu = 0 == match->gpu.gpu_id ? NULL : &match->gpu;
    void **grant;
    size_t bytes = 0;

    if (lane->idx >= R2_RAILS_MAX || (NULL != gpu && !r2_lane_reads_gpus(lane))) {
        return false;
    }
    grant = &place->lanes[lane->idx].grant;
    if (!lane->is_rdma || !r2_lane_may_send(lane) || NULL == ops->grant ||
        R2_OK != ops->grant(lane->conn->worker->worker, r2_place_of(match), match->bytes, gpu,
                            key->key, &bytes, grant)) {
        *grant = NULL;
        return false;
    }
    key->connection = lane->connect.rx_connection;
    key->bytes = (uint32_t) bytes;
    return true;
}

/* What was granted to a lane is given back. */
static void r2_place_ungrant(const r2_lane_t *lane, r2_tp_worker_t *worker, r2_place_t *place)
{
    lane->rail->tp->ops->ungrant(worker, place->lanes[lane->idx].grant);
    place->lanes[lane->idx].grant = NULL;
    place->lanes[lane->idx].unsure = 0;
}

static bool r2_place_is_granted_to(const r2_lane_t *lane, const r2_place_t *place)
{
    return lane->idx < R2_RAILS_MAX && NULL != place->lanes[lane->idx].grant;
}

/* Gives back what was granted to the lanes of a link. */
static void r2_place_release(r2_link_t *link, r2_place_t *place)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (r2_place_is_granted_to(lane, place)) {
            r2_place_ungrant(lane, lane->conn->worker->worker, place);
        }
    }
}

static bool r2_place_is_free(const r2_place_t *place)
{
    for (uint32_t i = 0; i < R2_RAILS_MAX; ++i) {
        if (NULL != place->lanes[i].grant) {
            return false;
        }
    }
    return true;
}

void r2_place_free(r2_link_t *link, r2_place_t *place)
{
    DL_DELETE(link->rx.places, place);
    r2_pool_put(&link->net->places, place);
}

bool r2_place_offer(r2_link_t *link, r2_rx_match_t *match, const r2_wire_credit_t *credit)
{
    const uintptr_t address = (uintptr_t) r2_place_of(match);
    r2_wire_grant_t grant = {.credit = *credit,
                             .address = address,
                             .bytes = match->bytes,
                             .digest = match->digest};
    r2_place_t *place;

    if (!r2_place_may(link, match)) {
        return false;
    }
    place = r2_pool_get(&link->net->places);
    if (NULL == place) {
        return false;
    }
    memset(place, 0, sizeof(*place));
    DL_APPEND(link->rx.places, place);
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        grant.count +=
            r2_place_grant(&link->lanes[i], match, place, &grant.keys[grant.count]) ? 1 : 0;
    }
    if (0 == grant.count || !r2_tx_control(link, R2_WIRE_GRANT, &grant,
                                           (uint32_t) (offsetof(r2_wire_grant_t, keys) +
                                                       grant.count * sizeof(r2_wire_key_t)))) {
        r2_place_release(link, place);
        r2_place_free(link, place);
        return false;
    }
    place->comm_key = match->tag.comm_key;
    match->place = place;
    ++link->net->counters->grants;
    return true;
}

/* ---- what may still land ---- */

bool r2_place_is_granted(const r2_lane_t *lane, const r2_rx_match_t *match)
{
    return NULL != match->place && r2_place_is_granted_to(lane, match->place);
}

static bool r2_place_may_land(const r2_lane_t *lane, const r2_place_t *place, uint32_t rails)
{
    return r2_place_is_granted_to(lane, place) && 0 != (rails >> lane->rail->idx & 1);
}

bool r2_place_doubts(const r2_link_t *link, const r2_rx_match_t *match, uint32_t rails)
{
    for (uint32_t i = 0; NULL != match->place && i < link->lane_count; ++i) {
        if (r2_place_may_land(&link->lanes[i], match->place, rails)) {
            return true;
        }
    }
    return false;
}

static bool r2_place_has_unsure(const r2_place_t *place)
{
    for (uint32_t i = 0; i < R2_RAILS_MAX; ++i) {
        if (place->lanes[i].unsure > 0) {
            return true;
        }
    }
    return false;
}

void r2_place_unsure(r2_link_t *link, const r2_rx_match_t *match, uint32_t rails)
{
    r2_place_t *place = match->place;

    if (!r2_place_has_unsure(place)) {
        ++link->net->counters->held_back;
    }
    place->number = match->message->number; /* it may be complete before it is given */
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_place_may_land(&link->lanes[i], place, rails)) { /* never a relay lane */
            if (0 == place->lanes[i].unsure++) {
                place->lanes[i].since_ns = link->net->now_ns;
            }
        }
    }
    r2_link_activate(link);
}

bool r2_place_is_sure(const r2_rx_match_t *match)
{
    return NULL == match->place || !r2_place_has_unsure(match->place);
}

/* Tells the owner of a receive that was held back, if that is over. */
static void r2_place_settle(r2_link_t *link, r2_place_t *place)
{
    const r2_link_done_fn_t done = place->done;
    const r2_status_t status = place->status;
    void *arg = place->arg;

    if (!place->held_back || !r2_place_is_free(place)) {
        return;
    }
    r2_place_free(link, place);
    if (NULL != done) {
        done(arg, status);
    }
}

static bool r2_place_is_unsure_of(const r2_lane_t *lane, const r2_place_t *place)
{
    return r2_place_is_granted_to(lane, place) && place->lanes[lane->idx].unsure > 0;
}

void r2_place_sure(const r2_lane_t *lane, const r2_rx_match_t *match, uint64_t number)
{
    r2_place_t *place = NULL == match ? NULL : match->place;

    if (NULL == match) { /* others have no number yet, and any may be a message's */
        DL_FOREACH(lane->link->rx.places, place) {
            if (number == place->number && r2_place_is_unsure_of(lane, place)) {
                break;
            }
        }
    }
    if (NULL != place && r2_place_is_unsure_of(lane, place)) {
        --place->lanes[lane->idx].unsure;
        place->lanes[lane->idx].since_ns = lane->link->net->now_ns; /* what is left is younger */
    }
}

bool r2_place_hold_back(r2_link_t *link, r2_rx_match_t *match, r2_status_t status)
{
    r2_place_t *place = match->place;

    if (NULL == place) {
        return false;
    }
    match->place = NULL;
    if (R2_OK == status) {
        r2_assert(!r2_place_has_unsure(place));
        r2_place_release(link, place); /* all of it has come, each chunk once */
    }
    if (r2_place_is_free(place)) {
        r2_place_free(link, place);
        return false;
    }
    place->held_back = true;
    place->status = status;
    place->done = match->done;
    place->arg = match->arg;
    place->since_ns = link->net->now_ns;
    link->net->counters->held_back += r2_place_has_unsure(place) ? 0 : 1; /* counted already */
    r2_link_activate(link);
    return true;
}

void r2_place_closed(r2_lane_t *lane, r2_tp_worker_t *worker)
{
    r2_place_t *place, *next;

    DL_FOREACH_SAFE(lane->link->rx.places, place, next) {
        if (r2_place_is_granted_to(lane, place)) {
            r2_place_ungrant(lane, worker, place);
            r2_place_settle(lane->link, place);
        }
    }
}

/*
 * The header that would spare the lane may lie unread: all of it where this process was away, and
 * behind what each look at the rail has found since.
 */
static uint64_t r2_place_lane_due_ns(const r2_lane_t *lane, const r2_place_t *place)
{
    r2_net_t *net = lane->link->net;
    const uint64_t unread_ns = lane->conn->worker->unread_ns;
    const uint64_t since_ns =
        place->lanes[lane->idx].unsure > 0 ? place->lanes[lane->idx].since_ns : place->since_ns;
    const bool may_lie = (0 != unread_ns && unread_ns <= since_ns) || r2_net_reads_on(net);

    return since_ns + (may_lie ? r2_scaled_timeout_ns(net, R2_PLACE_TIMES) : 0);
}

uint64_t r2_place_due_ns(const r2_lane_t *lane)
{
    uint64_t due_ns = R2_NEVER_NS;
    const r2_place_t *place;

    DL_FOREACH(lane->link->rx.places, place) {
        if (r2_place_is_granted_to(lane, place) &&
            (place->held_back || place->lanes[lane->idx].unsure > 0)) {
            due_ns = r2_min(due_ns, r2_place_lane_due_ns(lane, place));
        }
    }
    return due_ns;
}

void r2_place_forget(r2_link_t *link)
{
    r2_place_t *place;

    DL_FOREACH(link->rx.places, place) {
        place->done = NULL;
    }
}
