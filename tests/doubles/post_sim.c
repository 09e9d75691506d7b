/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Post driver of the simulator: seeded loss, delay, duplicates, reordering, nodes that are cut off.
 */
#include "r2_config.h"

#include "doubles/post_sim.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"

#define POST_DELAY_NS (50 * R2_NS_PER_US) /* unless set otherwise */

/** A message: in one of the lists of the node that it goes to. */
typedef struct post_message {
    struct post_message *prev, *next;
    struct post_node *from, *to; /* borrowed */
    bool dropped;                /* made room for a newer one while it was on its way */
    size_t bytes;
    uint8_t data[];
} post_message_t;

typedef struct post_node {
    struct r2_post_sim *hub; /* borrowed */
    uint32_t idx;
    bool cut;
    bool polling;
    r2_post_upcalls_t upcalls;
    /* owned: by node, since when it refuses our messages; 0: it does not */
    uint64_t *refused_ns;
    post_message_t *coming;  /* owned list: on its way here */
    post_message_t *arrived; /* owned list: waits for poll() */
} post_node_t;

struct r2_post_sim {
    r2_sim_t *sim; /* borrowed */
    uint32_t node_count;
    uint32_t loss_ppm, duplicate_ppm;
    uint64_t delay_min_ns, delay_max_ns;
    post_node_t nodes[];
};

static bool post_chance(r2_post_sim_t *hub, uint32_t ppm)
{
    return 0 != ppm && r2_sim_random_u64(hub->sim) % 1000000 < ppm;
}

static bool post_passes(const post_node_t *from, const post_node_t *to)
{
    const r2_sim_t *sim = from->hub->sim;

    return r2_sim_host_of(sim, from->idx) == r2_sim_host_of(sim, to->idx) ||
           (!from->cut && !to->cut);
}

/** Oldest message from a node in a list, and how many there are; dropped ones do not count. */
static post_message_t *post_oldest(post_message_t *list, const post_node_t *from, uint32_t *count)
{
    post_message_t *message, *oldest = NULL;

    DL_FOREACH(list, message) {
        if (message->from == from && !message->dropped) {
            oldest = NULL == oldest ? message : oldest;
            ++*count;
        }
    }
    return oldest;
}

/** Makes room for one more message between two nodes. */
static void post_make_room(const post_node_t *from, post_node_t *to)
{
    uint32_t count = 0;
    post_message_t *arrived = post_oldest(to->arrived, from, &count);
    post_message_t *coming = post_oldest(to->coming, from, &count);

    if (count < R2_POST_SIM_QUEUE_MAX) {
        return;
    }
    if (NULL != arrived) {
        DL_DELETE(to->arrived, arrived);
        free(arrived);
    } else {
        coming->dropped = true; /* its event frees it */
    }
}

static void post_arrive(void *arg, uint64_t unused)
{
    post_message_t *message = arg;
    post_node_t *to = message->to;
    r2_sim_t *sim = to->hub->sim;

    (void) unused;
    DL_DELETE(to->coming, message);
    if (r2_sim_dead(sim, to->idx) && post_passes(message->from, to) &&
        0 == message->from->refused_ns[to->idx]) {
        message->from->refused_ns[to->idx] = r2_sim_now_ns(sim);
    }
    if (message->dropped || r2_sim_dead(sim, to->idx) || !post_passes(message->from, to)) {
        free(message);
        return;
    }
    DL_APPEND(to->arrived, message);
    r2_sim_wake(sim, to->idx);
}

/** Sends one copy. */
static r2_status_t post_copy(post_node_t *from, post_node_t *to, const void *data, size_t bytes)
{
    r2_post_sim_t *hub = from->hub;
    uint64_t delay_ns = hub->delay_min_ns;
    post_message_t *message = calloc(1, sizeof(*message) + bytes);

    if (NULL == message) {
        return R2_ERR_NO_MEMORY;
    }
    if (hub->delay_max_ns > hub->delay_min_ns) {
        delay_ns += r2_sim_random_u64(hub->sim) % (hub->delay_max_ns - hub->delay_min_ns + 1);
    }
    post_make_room(from, to);
    message->from = from;
    message->to = to;
    message->bytes = bytes;
    if (bytes > 0) {
        memcpy(message->data, data, bytes);
    }
    DL_APPEND(to->coming, message);
    if (!r2_sim_at(hub->sim, r2_sim_now_ns(hub->sim) + delay_ns, post_arrive, message, 0)) {
        DL_DELETE(to->coming, message);
        free(message);
        return R2_ERR_NO_MEMORY;
    }
    return R2_OK;
}

/* ---- the table ---- */

static void post_bind(void *post, const r2_post_upcalls_t *upcalls)
{
    post_node_t *node = post;

    node->upcalls = *upcalls;
}

static r2_status_t post_send(void *post, uint32_t rank, const void *data, size_t bytes)
{
    post_node_t *node = post;
    r2_post_sim_t *hub = node->hub;
    r2_status_t status = R2_OK;

    if (rank >= hub->node_count || rank == node->idx || bytes > R2_POST_BYTES_MAX) {
        return R2_ERR_PARAM;
    }
    if (!post_passes(node, &hub->nodes[rank]) || post_chance(hub, hub->loss_ppm)) {
        return R2_OK; /* lost without a word */
    }
    if (post_chance(hub, hub->duplicate_ppm)) {
        status = post_copy(node, &hub->nodes[rank], data, bytes);
    }
    return R2_OK == status ? post_copy(node, &hub->nodes[rank], data, bytes) : status;
}

static uint64_t post_refused_ns(void *post, uint32_t rank)
{
    const post_node_t *node = post;

    return node->refused_ns[rank];
}

static int post_fd(void *post)
{
    (void) post;
    return -1;
}

static void post_poll(void *post)
{
    post_node_t *node = post;
    post_message_t *message;

    if (node->polling) {
        r2_sim_fail(node->hub->sim, "node %u: post poll inside an upcall", node->idx);
        return;
    }
    node->polling = true;
    while (NULL != (message = node->arrived)) {
        DL_DELETE(node->arrived, message);
        node->upcalls.received(node->upcalls.arg, message->from->idx, message->data,
                               message->bytes);
        free(message);
    }
    node->polling = false;
}

static uint64_t post_deadline_ns(void *post)
{
    (void) post;
    return R2_NEVER_NS;
}

r2_post_t r2_post_sim_node(r2_post_sim_t *hub, uint32_t node)
{
    static const r2_post_ops_t ops = {
        .name = "sim",
        .bind = post_bind,
        .send = post_send,
        .refused_ns = post_refused_ns,
        .fd = post_fd,
        .poll = post_poll,
        .deadline_ns = post_deadline_ns,
    };

    return (r2_post_t){&ops, &hub->nodes[node]};
}

/* ---- the hub ---- */

r2_post_sim_t *r2_post_sim_create(r2_sim_t *sim, uint32_t node_count)
{
    r2_post_sim_t *hub = calloc(1, sizeof(*hub) + node_count * sizeof(hub->nodes[0]));
    uint32_t i;

    if (NULL == hub) {
        return NULL;
    }
    hub->sim = sim;
    hub->node_count = node_count;
    hub->delay_min_ns = hub->delay_max_ns = POST_DELAY_NS;
    for (i = 0; i < node_count; ++i) {
        hub->nodes[i].hub = hub;
        hub->nodes[i].idx = i;
        hub->nodes[i].refused_ns = calloc(node_count, sizeof(hub->nodes[i].refused_ns[0]));
        if (NULL == hub->nodes[i].refused_ns) {
            r2_post_sim_destroy(hub);
            return NULL;
        }
    }
    return hub;
}

static void post_free(post_message_t *list)
{
    post_message_t *message, *next;

    DL_FOREACH_SAFE(list, message, next) {
        free(message);
    }
}

void r2_post_sim_destroy(r2_post_sim_t *hub)
{
    uint32_t i;

    if (NULL == hub) {
        return;
    }
    for (i = 0; i < hub->node_count; ++i) {
        free(hub->nodes[i].refused_ns);
        post_free(hub->nodes[i].coming);
        post_free(hub->nodes[i].arrived);
    }
    free(hub);
}

void r2_post_sim_set_loss(r2_post_sim_t *hub, uint32_t ppm)
{
    hub->loss_ppm = ppm;
}

void r2_post_sim_set_duplicates(r2_post_sim_t *hub, uint32_t ppm)
{
    hub->duplicate_ppm = ppm;
}

void r2_post_sim_set_delay(r2_post_sim_t *hub, uint64_t min_ns, uint64_t max_ns)
{
    hub->delay_min_ns = min_ns;
    hub->delay_max_ns = r2_max(min_ns, max_ns);
}

void r2_post_sim_set_cut(r2_post_sim_t *hub, uint32_t node, bool cut)
{
    hub->nodes[node].cut = cut;
}
