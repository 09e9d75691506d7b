/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Owners: one process of each host raises the versions of that host's entries.
 */
#include "r2_config.h"

#include "health/machine.h"

/* Decides about a claim for our host. @return true if the entry was changed. */
static bool r2_owner_decide(r2_health_t *health, uint32_t rail, const r2_health_entry_t *claimed,
                            const r2_verdict_event_t *event, uint64_t since_ns, uint64_t now_ns)
{
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, health->own_host, rail);
    r2_health_entry_t next = *claimed;

    /* Evidence from before the last change says nothing about the state since then. */
    if (claimed->version < entry->version || claimed->version >= R2_HEALTH_VERSION_MAX ||
        claimed->capacity == entry->capacity) {
        return false;
    }
    next.version = claimed->version + 1;
    r2_disseminate_entry(health, rail, &next, event, since_ns, now_ns);
    return true;
}

/**
 * Something is to be changed about a rail.
 * @param entry new state; its version is the one that the evidence is newer than.
 */
void r2_owner_claim(r2_health_t *health, uint32_t host, uint32_t rail,
                    const r2_health_entry_t *entry, const r2_verdict_event_t *event,
                    uint64_t now_ns)
{
    const r2_notice_t notice = {.kind = R2_NOTICE_CLAIM,
                                .host_a = health->lowest[host],
                                .rail = rail,
                                .entry_version = entry->version,
                                .capacity = entry->capacity,
                                .verdict = entry->verdict,
                                .direction = entry->direction};

    if (host == health->own_host && r2_members_is_owner(health)) {
        (void) r2_owner_decide(health, rail, entry, event, event->since_ns, now_ns);
        return;
    }
    r2_outbox_host(health, host, &notice, now_ns);
}

/** Another process claims something about our host. Strangers may only call a rail dead. */
void r2_owner_claimed(r2_health_t *health, uint32_t from, const r2_notice_t *notice,
                      uint64_t now_ns)
{
    const r2_health_entry_t claimed = {.version = notice->entry_version,
                                       .capacity = notice->capacity,
                                       .verdict = notice->verdict,
                                       .direction = notice->direction};
    uint32_t host, from_host = health->hosts->host_of[from];
    uint64_t age_ns = r2_notice_age_ns(notice->age);
    r2_notice_t answer;

    if (!r2_members_host(health, notice->host_a, &host) || host != health->own_host ||
        notice->rail >= r2_rails_of(health, host)) {
        return;
    }
    if (0 == claimed.capacity || from_host == health->own_host) {
        (void) r2_owner_decide(health, notice->rail, &claimed, NULL,
                               now_ns - r2_min(age_ns, now_ns), now_ns);
    }
    if (from != health->self.rank) { /* at once, also when nothing changed */
        answer = r2_disseminate_change(health, host, notice->rail);
        r2_outbox_rank(health, from, &answer, now_ns);
    }
}
