/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The mesh: queues, calls to one address after the other, the operations table.
 */
#include "r2_config.h"

#include "oob/mesh.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "oob/mesh_slot.h"

#define R2_MESH_TRY_NS     (300 * R2_NS_PER_MS) /* one address; a connection takes less than 1 ms */
#define R2_MESH_PENALTY_NS (5 * R2_NS_PER_S)    /* an address that failed comes last for so long */
#define R2_MESH_PAUSE_NS   (100 * R2_NS_PER_MS) /* when all addresses failed; doubles, up to */
#define R2_MESH_PAUSE_MAX  (2 * R2_NS_PER_S)

/** One message in a queue. */
typedef struct r2_mesh_message {
    struct r2_mesh_message *prev, *next;
    uint64_t since_ns;
    bool connecting; /* part of the call under way */
    size_t bytes;
    uint8_t data[];
} r2_mesh_message_t;

/** A process that we had something to say to. */
typedef struct r2_mesh_peer {
    struct r2_mesh_peer *prev, *next; /* in `busy` while its queue is not empty */
    uint32_t rank;
    r2_mesh_message_t *queue; /* owned list, oldest first */
    uint32_t queued;
    bool is_busy; /* in the list */
    bool connecting;
    size_t place;                            /* of the call under way */
    bool tried[1 + R2_MESH_PLACES_MAX];      /* in this round */
    uint64_t bad_ns[1 + R2_MESH_PLACES_MAX]; /* comes last until then */
    uint64_t next_ns;                        /* no call before */
    uint64_t pause_ns;                       /* before the next round */
    bool waiting;                            /* calling, and the process is stopped */
    uint64_t refused_ns; /* since when it is refused beside the rails; 0: it is not */
    r2_mesh_places_t places;
} r2_mesh_peer_t;

/** The instance. Engine lock. */
typedef struct r2_mesh {
    r2_mesh_config_t config; /* without what was borrowed for the call */
    r2_hello_t hello;        /* owned */
    r2_post_upcalls_t upcalls;
    r2_mesh_slots_t slots;
    uint32_t calls;         /* under way */
    r2_mesh_peer_t *busy;   /* borrowed: in peers */
    r2_mesh_peer_t **peers; /* owned array of owned, by rank; NULL: nothing said yet */
} r2_mesh_t;

/* ---- queues ---- */

static void r2_mesh_drop(r2_mesh_peer_t *peer, r2_mesh_message_t *message)
{
    DL_DELETE(peer->queue, message);
    --peer->queued;
    free(message);
}

/** Drops what is too old, or what was delivered. */
static void r2_mesh_reap(r2_mesh_t *mesh, r2_mesh_peer_t *peer, bool delivered, uint64_t now_ns)
{
    r2_mesh_message_t *message, *next;

    DL_FOREACH_SAFE(peer->queue, message, next) {
        if (message->connecting ? delivered
                                : now_ns - message->since_ns >= mesh->config.give_up_ns) {
            r2_mesh_drop(peer, message);
        }
    }
}

/** The place to try next in this round; places.count: all were tried. */
static size_t r2_mesh_next_place(const r2_mesh_peer_t *peer, uint64_t now_ns)
{
    size_t best = peer->places.count;

    for (size_t i = 0; i < peer->places.count; ++i) {
        if (peer->tried[i] || 0 == peer->places.places[i].bytes) {
            continue;
        }
        if (peer->bad_ns[i] <= now_ns) {
            return i;
        }
        best = best == peer->places.count ? i : best;
    }
    return best;
}

/** Bundles what waits. @return bytes of the request. */
static size_t r2_mesh_bundle(const r2_mesh_t *mesh, r2_mesh_peer_t *peer, uint8_t *request_p)
{
    size_t bytes = r2_mesh_request_begin(mesh->config.rank, request_p);
    r2_mesh_message_t *message;

    DL_FOREACH(peer->queue, message) {
        const size_t more = r2_mesh_request_add(request_p, bytes, message->data, message->bytes);

        if (0 == more) {
            break;
        }
        message->connecting = true;
        bytes = more;
    }
    return bytes;
}

/**
 * What the end of a call says of the process. Refusals count on management networks: within another
 * host there is no such name, and of rails others know more.
 */
static void r2_mesh_weigh(r2_mesh_peer_t *peer, r2_status_t status, uint64_t now_ns)
{
    const bool manages =
        peer->place > 0 && 0 == (peer->places.places[peer->place].kind & R2_MESH_RAIL);

    if (manages && R2_ERR_REFUSED == status) {
        peer->refused_ns = 0 == peer->refused_ns ? now_ns : peer->refused_ns;
    } else if (R2_OK == status || R2_ERR_UNRESPONSIVE == status ||
               (manages && R2_ERR_TIMEOUT == status)) {
        peer->refused_ns = 0;
    }
}

/** A call ended: delivered, or one address did not do. */
static void r2_mesh_ended(r2_mesh_t *mesh, r2_mesh_peer_t *peer, r2_status_t status,
                          uint64_t now_ns)
{
    r2_mesh_message_t *message;

    peer->connecting = peer->waiting = false;
    r2_mesh_weigh(peer, status, now_ns);
    if (R2_OK == status) {
        r2_mesh_reap(mesh, peer, true, now_ns);
        peer->bad_ns[peer->place] = 0;
        peer->pause_ns = R2_MESH_PAUSE_NS;
        memset(peer->tried, 0, sizeof(peer->tried));
        return;
    }
    DL_FOREACH(peer->queue, message) {
        message->connecting = false;
    }
    if (peer->place > 0 &&
        r2_mesh_slot_follow(&mesh->slots, &mesh->hello,
                            r2_mesh_slot_for(&mesh->slots, &peer->places.places[peer->place]))) {
        return; /* it was our own address that did not do: once more */
    }
    peer->tried[peer->place] = true;
    peer->bad_ns[peer->place] = now_ns + R2_MESH_PENALTY_NS;
    r2_debug(mesh->config.log, "mesh: rank %u not reached at place %zu: %s", peer->rank,
             peer->place, r2_status_string(status));
}

/** All addresses failed: waits, then begins anew. */
static void r2_mesh_pause(r2_mesh_peer_t *peer, uint64_t now_ns)
{
    memset(peer->tried, 0, sizeof(peer->tried));
    peer->next_ns = now_ns + peer->pause_ns;
    peer->pause_ns = r2_min(2 * peer->pause_ns, R2_MESH_PAUSE_MAX);
}

/** Calls the next address. @return false: nothing to call now. */
static bool r2_mesh_call(r2_mesh_t *mesh, r2_mesh_peer_t *peer, uint64_t now_ns)
{
    uint8_t request[R2_HELLO_BYTES_MAX];
    const r2_mesh_place_t *place;
    r2_status_t status;
    size_t bytes, slot = R2_RAILS_MAX;

    peer->place = r2_mesh_next_place(peer, now_ns);
    if (peer->place == peer->places.count) {
        r2_mesh_pause(peer, now_ns);
        return false;
    }
    place = &peer->places.places[peer->place];
    if (peer->place > 0) {
        slot = r2_mesh_slot_for(&mesh->slots, place);
        if (slot == mesh->slots.count) {
            r2_mesh_ended(mesh, peer, R2_ERR_NO_DEVICE, now_ns);
            return true;
        }
    }
    bytes = r2_mesh_bundle(mesh, peer, request);
    status = mesh->hello.ops->call(mesh->hello.instance, (uint32_t) slot, place->address,
                                   place->bytes, request, bytes, R2_MESH_TRY_NS, peer->rank);
    if (R2_OK != status) {
        r2_mesh_ended(mesh, peer, status, now_ns);
        if (R2_ERR_AGAIN == status) {
            peer->bad_ns[peer->place] = 0; /* not the address's fault: no key yet, no descriptor */
            r2_mesh_pause(peer, now_ns);
            return false;
        }
        return true;
    }
    peer->connecting = true;
    ++mesh->calls;
    return true;
}

/** Gives a peer its turn. */
static void r2_mesh_progress(r2_mesh_t *mesh, r2_mesh_peer_t *peer, uint64_t now_ns)
{
    r2_mesh_reap(mesh, peer, false, now_ns);
    while (NULL != peer->queue && !peer->connecting && peer->next_ns <= now_ns &&
           mesh->calls < R2_MESH_CALLS_MAX && r2_mesh_call(mesh, peer, now_ns)) {
        /* one address after the other, as long as they fail at once */
    }
    if (NULL == peer->queue && !peer->connecting) {
        DL_DELETE(mesh->busy, peer);
        peer->is_busy = false;
        memset(peer->tried, 0, sizeof(peer->tried));
        peer->pause_ns = R2_MESH_PAUSE_NS;
        peer->next_ns = 0;
    }
}

/* ---- upcalls of the hello driver ---- */

static void r2_mesh_request(void *arg, uint32_t slot, uint64_t token, const void *request,
                            size_t bytes)
{
    r2_mesh_t *mesh = arg;

    (void) slot;
    if (R2_OK != r2_mesh_request_read(request, bytes, mesh->config.size, &mesh->upcalls)) {
        r2_warn(mesh->config.log, "mesh: malformed request of %zu bytes", bytes);
    }
    /* Malformed ones, too: sent again they would not be better. */
    mesh->hello.ops->reply(mesh->hello.instance, token, NULL, 0);
}

static void r2_mesh_result(void *arg, uint64_t rank, r2_status_t status, const void *reply,
                           size_t bytes)
{
    r2_mesh_t *mesh = arg;

    (void) reply;
    (void) bytes;
    mesh->calls -= mesh->peers[rank]->waiting ? 0 : 1;
    r2_mesh_ended(mesh, mesh->peers[rank], status, r2_now_ns(mesh->config.clock));
}

/** The process is stopped: each new call would take a place in its queue, and this one will do. */
static bool r2_mesh_waits(void *arg, uint64_t rank)
{
    r2_mesh_t *mesh = arg;
    r2_mesh_peer_t *peer = mesh->peers[rank];

    mesh->calls -= peer->waiting ? 0 : 1;
    peer->waiting = true;
    peer->refused_ns = 0;
    return true;
}

/* ---- the table ---- */

static uint64_t r2_mesh_refused_ns(void *post, uint32_t rank)
{
    const r2_mesh_t *mesh = post;

    return rank < mesh->config.size && NULL != mesh->peers[rank] ? mesh->peers[rank]->refused_ns
                                                                 : 0;
}

static void r2_mesh_bind(void *post, const r2_post_upcalls_t *upcalls)
{
    r2_mesh_t *mesh = post;

    mesh->upcalls = *upcalls;
}

/** The peer with its addresses as published now. */
static r2_status_t r2_mesh_peer(r2_mesh_t *mesh, uint32_t rank, r2_mesh_peer_t **peer_p)
{
    uint8_t blob[R2_MESH_ADDRESS_MAX];
    r2_mesh_places_t places;
    size_t bytes;

    if (NULL == mesh->peers[rank]) {
        if (R2_OK != mesh->config.lookup(mesh->config.lookup_arg, rank, blob, &bytes) ||
            R2_OK != r2_mesh_places_decode(blob, bytes, &places)) {
            return R2_ERR_NO_PATH;
        }
        mesh->peers[rank] = calloc(1, sizeof(*mesh->peers[rank]));
        if (NULL == mesh->peers[rank]) {
            return R2_ERR_NO_MEMORY;
        }
        mesh->peers[rank]->rank = rank;
        mesh->peers[rank]->places = places;
        mesh->peers[rank]->pause_ns = R2_MESH_PAUSE_NS;
    }
    *peer_p = mesh->peers[rank];
    return R2_OK;
}

static r2_status_t r2_mesh_send(void *post, uint32_t rank, const void *data, size_t bytes)
{
    r2_mesh_t *mesh = post;
    const uint64_t now_ns = r2_now_ns(mesh->config.clock);
    r2_mesh_message_t *message;
    r2_mesh_peer_t *peer;
    r2_status_t status;

    if (rank >= mesh->config.size || rank == mesh->config.rank || bytes > R2_POST_BYTES_MAX) {
        return R2_ERR_PARAM;
    }
    status = r2_mesh_peer(mesh, rank, &peer);
    if (R2_OK != status) {
        return status;
    }
    message = calloc(1, sizeof(*message) + bytes);
    if (NULL == message) {
        return R2_ERR_NO_MEMORY;
    }
    message->since_ns = now_ns;
    message->bytes = bytes;
    if (bytes > 0) {
        memcpy(message->data, data, bytes);
    }
    if (peer->queued == R2_MESH_QUEUE_MAX) {
        r2_mesh_drop(peer, peer->queue);
    }
    if (!peer->is_busy) {
        DL_APPEND(mesh->busy, peer);
        peer->is_busy = true;
    }
    DL_APPEND(peer->queue, message);
    ++peer->queued;
    r2_mesh_progress(mesh, peer, now_ns);
    return R2_OK;
}

static int r2_mesh_fd(void *post)
{
    r2_mesh_t *mesh = post;

    return mesh->hello.ops->fd(mesh->hello.instance);
}

static void r2_mesh_poll(void *post)
{
    r2_mesh_t *mesh = post;
    const uint64_t now_ns = r2_now_ns(mesh->config.clock);
    r2_mesh_peer_t *peer, *next;

    mesh->hello.ops->poll(mesh->hello.instance);
    DL_FOREACH_SAFE(mesh->busy, peer, next) {
        r2_mesh_progress(mesh, peer, now_ns);
    }
}

static uint64_t r2_mesh_deadline_ns(void *post)
{
    const r2_mesh_t *mesh = post;
    uint64_t deadline_ns = mesh->hello.ops->deadline_ns(mesh->hello.instance);
    const r2_mesh_peer_t *peer;

    DL_FOREACH(mesh->busy, peer) {
        if (!peer->connecting && mesh->calls < R2_MESH_CALLS_MAX) {
            deadline_ns = r2_min(deadline_ns, peer->next_ns);
        }
    }
    return deadline_ns;
}

static void r2_mesh_key(void *post, const uint8_t *key)
{
    r2_mesh_t *mesh = post;
    r2_mesh_peer_t *peer, *next;

    mesh->hello.ops->key(mesh->hello.instance, key);
    DL_FOREACH_SAFE(mesh->busy, peer, next) {
        peer->next_ns = 0;
        r2_mesh_progress(mesh, peer, r2_now_ns(mesh->config.clock));
    }
}

r2_status_t r2_mesh_address(r2_post_t *post, void *blob_p, size_t *bytes_p)
{
    const r2_mesh_t *mesh = post->instance;

    *bytes_p = r2_mesh_places_encode(&mesh->slots.own, blob_p);
    return R2_OK;
}

static void r2_mesh_nic(void *post, const r2_nic_t *nic)
{
    r2_mesh_t *mesh = post;

    r2_mesh_slots_nic(&mesh->slots, &mesh->hello, nic);
}

static const r2_post_ops_t r2_mesh_ops = {
    .name = "mesh",
    .bind = r2_mesh_bind,
    .key = r2_mesh_key,
    .send = r2_mesh_send,
    .refused_ns = r2_mesh_refused_ns,
    .nic = r2_mesh_nic,
    .fd = r2_mesh_fd,
    .poll = r2_mesh_poll,
    .deadline_ns = r2_mesh_deadline_ns,
};

r2_status_t r2_mesh_create(const r2_mesh_config_t *config, r2_post_t *post_p)
{
    r2_mesh_t *mesh = calloc(1, sizeof(*mesh));
    r2_post_t post = {&r2_mesh_ops, mesh};
    const r2_hello_upcalls_t upcalls = {.request = r2_mesh_request,
                                        .result = r2_mesh_result,
                                        .waits = r2_mesh_waits,
                                        .arg = mesh};
    r2_status_t status;

    if (NULL == mesh) {
        return R2_ERR_NO_MEMORY;
    }
    mesh->config = *config;
    mesh->config.nics = NULL;
    mesh->config.rails = NULL;
    mesh->config.rail_count = 0;
    mesh->peers = calloc(config->size, sizeof(mesh->peers[0]));
    status = NULL == mesh->peers ? R2_ERR_NO_MEMORY
                                 : r2_hello_tcp_create(config->clock, config->log, &mesh->hello);
    if (R2_OK != status) {
        free(mesh->peers);
        free(mesh);
        return status;
    }
    mesh->hello.ops->bind(mesh->hello.instance, &upcalls);
    status = r2_mesh_slots_open(&mesh->slots, &mesh->hello, config);
    if (R2_OK != status) {
        r2_mesh_destroy(&post);
        return status;
    }
    *post_p = post;
    return R2_OK;
}

void r2_mesh_destroy(r2_post_t *post)
{
    r2_mesh_t *mesh = post->instance;

    if (NULL == mesh) {
        return;
    }
    r2_hello_tcp_destroy(&mesh->hello);
    for (uint32_t rank = 0; rank < mesh->config.size; ++rank) {
        while (NULL != mesh->peers[rank] && NULL != mesh->peers[rank]->queue) {
            r2_mesh_drop(mesh->peers[rank], mesh->peers[rank]->queue);
        }
        free(mesh->peers[rank]);
    }
    free(mesh->peers);
    free(mesh);
    post->instance = NULL;
    post->ops = NULL;
}
