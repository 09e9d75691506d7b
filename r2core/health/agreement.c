/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement: outcomes of calls, used in the order of calls.
 */
#include "r2_config.h"

#include "health/agreement.h"

#include "base/util.h"

static const r2_agreement_call_t *r2_agreement_oldest(const r2_agreement_t *agreement)
{
    return &agreement->calls[agreement->next % R2_AGREEMENT_AHEAD];
}

/* True of a call whose outcome the next one uses, and waits for. */
static bool r2_agreement_awaits(const r2_agreement_call_t *call)
{
    return call->carrying && call->blocking && !call->complete;
}

/* The ring holds the last AHEAD calls; the one that leaves it for the next is the newest that it
 * uses. */
bool r2_agreement_ready(const r2_agreement_t *agreement)
{
    const r2_agreement_call_t *oldest = r2_agreement_oldest(agreement);

    return 0 == agreement->awaited && (!oldest->carrying || oldest->complete);
}

static void r2_agreement_use(r2_agreement_t *agreement, r2_agreement_call_t *call)
{
    if (call->carrying && !call->used) {
        call->used = true;
        agreement->pending = agreement->pending || call->outcome;
    }
}

/* Deterministic: from numbers and lengths of calls only. */
static bool r2_agreement_sync(r2_agreement_t *agreement, uint64_t call, bool is_long)
{
    uint64_t since = call - agreement->sync_call;

    if (!agreement->pending || (agreement->synced && !is_long && since < agreement->pause)) {
        return false;
    }
    if (!is_long || !agreement->synced) {
        agreement->pause = agreement->synced && since < 4 * agreement->pause
                               ? r2_min(2 * agreement->pause, (uint64_t) R2_AGREEMENT_PAUSE_MAX)
                               : R2_AGREEMENT_PAUSE_MIN;
    }
    agreement->pending = false;
    agreement->synced = true;
    agreement->sync_call = call;
    return true;
}

uint64_t r2_agreement_start(r2_agreement_t *agreement, bool carrying, bool blocking, bool is_long,
                            bool *sync_p)
{
    uint64_t number = agreement->next;
    r2_agreement_call_t *slot = &agreement->calls[number % R2_AGREEMENT_AHEAD];

    r2_agreement_use(agreement, slot);
    *slot = (r2_agreement_call_t){.carrying = carrying, .blocking = blocking};
    agreement->awaited += r2_agreement_awaits(slot) ? 1 : 0;
    ++agreement->next;
    *sync_p = carrying && r2_agreement_sync(agreement, number, is_long);
    return number;
}

void r2_agreement_complete(r2_agreement_t *agreement, uint64_t call, bool map_pending)
{
    r2_agreement_call_t *slot = &agreement->calls[call % R2_AGREEMENT_AHEAD];

    if (call + R2_AGREEMENT_AHEAD >= agreement->next) {
        agreement->awaited -= r2_agreement_awaits(slot) ? 1 : 0;
        slot->complete = true;
        slot->outcome = map_pending;
        if (slot->blocking) { /* no call starts before: the next one uses it */
            r2_agreement_use(agreement, slot);
        }
    }
}
