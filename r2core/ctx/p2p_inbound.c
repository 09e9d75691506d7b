/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of messages that arrive. Long ones are blocks of the net: malloc() gives the pages of such
 * back to the system when they are freed, and new pages cost as much as what is written to them.
 *
 * The user has messages outside of the engine lock. What he has had goes on a stack that anybody
 * pushes to, and that who holds the lock takes as a whole.
 */
#include "r2_config.h"

#include <stdlib.h>

#include "ctx/p2p_state.h"

/* Shorter ones: malloc() has them at hand, and without a lock. */
#define R2_P2P_LONG_BYTES 8192u

static bool r2_p2p_inbound_is_long(uint64_t bytes)
{
    return bytes > R2_P2P_LONG_BYTES;
}

void r2_p2p_inbound_put(r2_p2p_inbound_t *inbound)
{
    if (r2_p2p_inbound_is_long(inbound->bytes)) {
        r2_blocks_put(&inbound->p2p->core->net.blocks, inbound, sizeof(*inbound) + inbound->bytes);
    } else {
        free(inbound);
    }
}

void r2_p2p_inbound_take_back(r2_p2p_t *p2p)
{
    r2_p2p_inbound_t *told = atomic_exchange(&p2p->told, NULL), *next;

    for (; NULL != told; told = next) {
        next = told->next;
        r2_p2p_inbound_put(told);
    }
}

r2_p2p_inbound_t *r2_p2p_inbound_new(r2_p2p_t *p2p, uint32_t rank, uint32_t am_id, uint64_t bytes)
{
    r2_p2p_inbound_t *inbound;

    if (r2_p2p_inbound_is_long(bytes)) {
        r2_p2p_inbound_take_back(p2p);
        inbound = r2_blocks_get(&p2p->core->net.blocks, sizeof(*inbound) + bytes);
    } else {
        inbound = malloc(sizeof(*inbound) + bytes);
    }
    if (NULL != inbound) {
        *inbound = (r2_p2p_inbound_t){.p2p = p2p, .rank = rank, .am_id = am_id, .bytes = bytes};
    }
    return inbound;
}

void r2_p2p_inbound_told(r2_p2p_inbound_t *inbound)
{
    r2_p2p_t *p2p = inbound->p2p;

    if (!r2_p2p_inbound_is_long(inbound->bytes)) {
        free(inbound);
        return;
    }
    inbound->next = atomic_load(&p2p->told);
    while (!atomic_compare_exchange_weak(&p2p->told, &inbound->next, inbound)) {
    }
}
