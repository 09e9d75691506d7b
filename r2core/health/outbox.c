/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Outbox: notices that are sent again, with growing pauses, until they are acknowledged.
 */
#include "r2_config.h"

#include "health/machine.h"

#include <stdlib.h>
#include <string.h>

/** Sends once. */
void r2_health_send(r2_health_t *health, uint32_t rank, const r2_notice_t *notice)
{
    r2_notice_t sent = *notice;

    sent.version = R2_NOTICE_VERSION;
    health->ports.notify(health->ports.arg, rank, &sent, sizeof(sent));
}

static void r2_outbox_remove(r2_health_t *health, r2_outbox_item_t *item)
{
    HASH_DEL(health->outbox, item);
    free(item);
}

/* Who gets it this time: the owner, or after some sendings without an answer the next rank. */
static uint32_t r2_outbox_target(const r2_health_t *health, const r2_outbox_item_t *item)
{
    if (R2_NOBODY != item->key.to_rank) {
        return item->key.to_rank;
    }
    return r2_members_nth(health, item->key.to_host, item->attempts / R2_SUCCESSION);
}

/*
 * Sends what waits here once more: with the age that its evidence has by now. The map's, if it says
 * the same; what we accuse somebody of, else. Nothing else has an age.
 */
static void r2_outbox_send(r2_health_t *health, uint32_t rank, const r2_notice_t *notice,
                           uint64_t now_ns)
{
    r2_notice_t sent = *notice;
    uint64_t since_ns = 0;
    uint32_t host;

    if ((R2_NOTICE_CHANGE == notice->kind || R2_NOTICE_CLAIM == notice->kind) &&
        r2_members_host(health, notice->host_a, &host)) {
        since_ns = (R2_NOTICE_CHANGE == notice->kind
                        ? health->since_ns
                        : health->accused_ns)[r2_health_at(health, host, notice->rail)];
    }
    if (0 != since_ns) {
        sent.age = r2_notice_age(now_ns - r2_min(since_ns, now_ns));
    }
    r2_health_send(health, rank, &sent);
}

static void r2_outbox_put(r2_health_t *health, const r2_outbox_key_t *key,
                          const r2_notice_t *notice, uint64_t now_ns)
{
    r2_outbox_item_t *item = NULL;
    r2_notice_t ageless = *notice;

    ageless.age = 0; /* set when it is sent */
    HASH_FIND(hh, health->outbox, key, sizeof(*key), item);
    if (NULL == item) {
        item = HASH_COUNT(health->outbox) < health->outbox_max ? calloc(1, sizeof(*item)) : NULL;
        if (NULL != item) {
            item->key = *key;
            HASH_ADD(hh, health->outbox, key, sizeof(item->key), item);
        }
        if (NULL != item && !r2_hash_has(&item->hh)) {
            free(item);
            item = NULL;
        }
        /* all of it is in our tables: told from there when there is room again */
        if (NULL == item) {
            health->retell_at = 0;
            health->retell_ns =
                r2_min(health->retell_ns, now_ns + r2_health_ms(health->params.failure_timeout_ms));
            return;
        }
    } else if (0 ==
               memcmp(&item->notice.entry_version, &ageless.entry_version, 2 * sizeof(uint32_t))) {
        return; /* the same is on its way */
    }
    item->notice = ageless;
    item->notice.id = health->next_id++;
    item->pause_ns = r2_health_ms(health->params.failure_timeout_ms);
    item->next_ns = now_ns;
    item->attempts = 0;
    health->outbox_ns = r2_min(health->outbox_ns, now_ns);
}

void r2_outbox_rank(r2_health_t *health, uint32_t rank, const r2_notice_t *notice, uint64_t now_ns)
{
    const r2_outbox_key_t key = {R2_NOBODY,      rank,           notice->kind,
                                 notice->host_a, notice->host_b, notice->rail};

    if (rank == health->self.rank || rank >= health->hosts->rank_count ||
        health->hosts->host_of[rank] >= health->hosts->host_count || health->gone[rank]) {
        return;
    }
    r2_outbox_put(health, &key, notice, now_ns);
}

void r2_outbox_host(r2_health_t *health, uint32_t host, const r2_notice_t *notice, uint64_t now_ns)
{
    const r2_outbox_key_t key = {host,           R2_NOBODY,      notice->kind,
                                 notice->host_a, notice->host_b, notice->rail};
    r2_notice_t acting = *notice;

    acting.flags = R2_NOTICE_ACT;
    r2_outbox_put(health, &key, &acting, now_ns);
}

/** Whoever of the host answers: the host has it. */
void r2_outbox_acknowledged(r2_health_t *health, uint32_t rank, uint64_t id)
{
    r2_outbox_item_t *item, *next;

    HASH_ITER(hh, health->outbox, item, next)
    {
        if (item->notice.id == id &&
            (item->key.to_rank == rank || item->key.to_host == health->hosts->host_of[rank])) {
            r2_outbox_remove(health, item);
            return;
        }
    }
}

void r2_outbox_gone(r2_health_t *health, uint32_t rank)
{
    uint32_t host = health->hosts->host_of[rank];
    bool empty = R2_NOBODY == r2_members_nth(health, host, 0);
    r2_outbox_item_t *item, *next;

    HASH_ITER(hh, health->outbox, item, next)
    {
        if (item->key.to_rank == rank || (empty && item->key.to_host == host)) {
            r2_outbox_remove(health, item);
        }
    }
}

bool r2_outbox_has_room(r2_health_t *health, uint64_t now_ns)
{
    if (now_ns < health->retell_ns) {
        return false;
    }
    health->retell_ns = R2_NEVER_NS;
    if (2 * HASH_COUNT(health->outbox) <= health->outbox_max) {
        return true;
    }
    health->retell_ns = now_ns + r2_health_ms(health->params.failure_timeout_ms);
    return false;
}

uint32_t r2_outbox_tick(r2_health_t *health, r2_notice_t own_p[R2_OUTBOX_OWN_MAX], uint64_t now_ns)
{
    r2_outbox_item_t *item, *next;
    uint32_t own_count = 0;

    if (now_ns < health->outbox_ns) {
        return 0;
    }
    health->outbox_ns = R2_NEVER_NS;
    HASH_ITER(hh, health->outbox, item, next)
    {
        uint32_t rank = r2_outbox_target(health, item);

        if (R2_NOBODY == rank) { /* no process of that host is left */
            r2_outbox_remove(health, item);
            continue;
        }
        if (now_ns >= item->next_ns && rank == health->self.rank) {
            if (own_count < R2_OUTBOX_OWN_MAX) {
                own_p[own_count++] = item->notice; /* nobody before us answers: we act */
                r2_outbox_remove(health, item);
                continue;
            }
        } else if (now_ns >= item->next_ns) {
            r2_outbox_send(health, rank, &item->notice, now_ns);
            ++item->attempts;
            item->next_ns = now_ns + item->pause_ns;
            item->pause_ns = r2_min(2 * item->pause_ns, r2_health_ms(health->params.heal_max_ms));
        }
        health->outbox_ns = r2_min(health->outbox_ns, item->next_ns);
    }
    return own_count;
}

void r2_outbox_fini(r2_health_t *health)
{
    r2_outbox_item_t *item, *next;

    HASH_ITER(hh, health->outbox, item, next)
    {
        r2_outbox_remove(health, item);
    }
}
