/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Telling all members that a communicator failed for good: each tells a few, who pass it on.
 */
/*
 * Members that wait for somebody who has given up would wait for ever, so every one must hear of
 * it, whoever is dead or cannot be reached. Member i of n tells i +- 1, 2, 4, .. (modulo n) and
 * everybody who hears it does the same, once: all know after log2(n) / 2 + 1 hops, nobody opens
 * more than 2 log2(n) links for it, and any 2 log2(n) - 2 members may be missing, since such
 * circulant graphs are as connected as their degree (Boesch, Felzer: A general class of
 * invulnerable graphs, Networks 2, 1972). Who knows of a death passes over it, and tells those whom
 * a neighbour of his would have told when that one is lost afterwards.
 */
#include "r2_config.h"

#include "ctx/comm.h"

#define R2_TELL_MAX 64 /* neighbours: two for each bit of a number of ranks */

static bool r2_tell_is_gone(const r2_comm_t *comm, int32_t position)
{
    const r2_core_t *core = comm->comms->core;
    const r2_net_upcalls_t *upcalls = &core->net.upcalls;
    const uint32_t rank = comm->ranks[position];
    const r2_link_t *link = r2_core_link(core, rank);

    return (NULL != link && R2_ERR_PEER_GONE == r2_link_broken(link)) ||
           upcalls->gone(upcalls->arg, rank);
}

/* The first one from a position on, in a direction, that is not known to be gone; -1: none but
 * `except`. */
static int32_t r2_tell_next(const r2_comm_t *comm, int32_t position, int32_t step, int32_t except)
{
    for (int32_t i = 0; i < comm->size && position != except; ++i) {
        if (!r2_tell_is_gone(comm, position)) {
            return position;
        }
        position = (position + step + comm->size) % comm->size;
    }
    return -1;
}

/* Adds a position once. */
static uint32_t r2_tell_add(int32_t *positions, uint32_t count, int32_t position)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (positions[i] == position) {
            return count;
        }
    }
    positions[count] = position;
    return count + 1;
}

/* Whom the member at a position tells. @param positions_p R2_TELL_MAX. @return how many. */
static uint32_t r2_tell_neighbors(const r2_comm_t *comm, int32_t position, int32_t *positions_p)
{
    uint32_t count = 0;

    for (int64_t distance = 1; distance < comm->size; distance *= 2) {
        const int32_t up = (int32_t) ((position + distance) % comm->size);
        const int32_t down = (int32_t) ((position - distance + comm->size) % comm->size);
        const int32_t after = r2_tell_next(comm, up, 1, position);
        const int32_t before = r2_tell_next(comm, down, -1, position);

        count = after < 0 ? count : r2_tell_add(positions_p, count, after);
        count = before < 0 ? count : r2_tell_add(positions_p, count, before);
    }
    return count;
}

/* @return false: no memory to tell one of them, and all after it. */
static bool r2_tell_neighbors_of(r2_comm_t *comm, int32_t position)
{
    r2_net_t *net = &comm->comms->core->net;
    int32_t positions[R2_TELL_MAX];
    const uint32_t count = r2_tell_neighbors(comm, position, positions);
    bool all = true;
    r2_link_t *link;

    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t rank = comm->ranks[positions[i]];
        const r2_status_t found = rank == net->rank ? R2_ERR_PARAM : r2_net_link(net, rank, &link);

        all = all && R2_ERR_NO_MEMORY != found &&
              (R2_OK != found || r2_link_abort(link, comm->key, comm->failed));
    }
    return all;
}

void r2_comm_tell(r2_comm_t *comm)
{
    comm->untold = !r2_tell_neighbors_of(comm, comm->rank);
    comm->comms->fresh_faults = comm->comms->fresh_faults || comm->untold;
}

void r2_comm_tell_rest(r2_comm_t *comm)
{
    r2_net_t *net = &comm->comms->core->net;
    int32_t positions[R2_TELL_MAX];
    const uint32_t count = r2_tell_neighbors(comm, comm->rank, positions);
    r2_link_t *link;

    for (uint32_t i = 0; i < count; ++i) {
        if (R2_ERR_NO_MEMORY == r2_net_link(net, comm->ranks[positions[i]], &link)) {
            comm->comms->fresh_faults = true;
            return;
        }
    }
    r2_comm_tell(comm);
}

/* Those who should pass it on may have freed the communicator: they were not waiting any more. */
void r2_comm_tell_asker(const r2_comms_t *comms, uint32_t rank, uint64_t comm_key,
                        r2_status_t status)
{
    r2_link_t *link = r2_core_link(comms->core, rank);

    if (NULL != link) {
        (void) r2_link_abort(link, comm_key, status); /* without memory: it asks again */
    }
}

void r2_comm_tell_around(r2_comm_t *comm, uint32_t rank)
{
    int32_t lost = 0, positions[R2_TELL_MAX];
    uint32_t count;

    while (lost < comm->size && comm->ranks[lost] != rank) {
        ++lost;
    }
    count = lost < comm->size ? r2_tell_neighbors(comm, lost, positions) : 0;
    for (uint32_t i = 0; i < count; ++i) {
        /* we told it, or would have: a neighbour's neighbours are ours now */
        if (positions[i] == comm->rank) {
            comm->untold = !r2_tell_neighbors_of(comm, lost) || comm->untold;
            comm->comms->fresh_faults = comm->comms->fresh_faults || comm->untold;
            return;
        }
    }
}
