/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gaps after faults.
 */
#include "r2_config.h"

#include "telemetry/gap.h"

#include <string.h>

#include "base/util.h"

void r2_gap_init(r2_gap_t *gap)
{
    memset(gap, 0, sizeof(*gap));
}

/* The part of a pause that lies in the fault's window. */
static void r2_gap_count(r2_gap_fault_t *fault, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t begin_ns = r2_max(from_ns, fault->since_ns);
    uint64_t end_ns = r2_min(to_ns, fault->since_ns + R2_GAP_WINDOW_NS);

    if (end_ns > begin_ns) {
        fault->longest_ns = r2_max(fault->longest_ns, end_ns - begin_ns);
    }
}

static void r2_gap_pause(r2_gap_t *gap, uint64_t from_ns, uint64_t to_ns)
{
    gap->pauses[gap->next_pause] = (r2_gap_pause_t){from_ns, to_ns};
    gap->next_pause = (gap->next_pause + 1) % R2_GAP_TIMES_MAX;
    for (uint32_t i = 0; i < gap->fault_count; ++i) {
        r2_gap_count(&gap->faults[i], from_ns, to_ns);
    }
}

void r2_gap_swept(r2_gap_t *gap, bool delivered, bool waiting, uint64_t now_ns)
{
    if (0 != gap->last_ns && (delivered || !waiting)) {
        r2_gap_pause(gap, gap->last_ns, now_ns);
    }
    if (!waiting) {
        gap->last_ns = 0;
    } else if (delivered || 0 == gap->last_ns) {
        gap->last_ns = now_ns;
    }
}

void r2_gap_fault(r2_gap_t *gap, uint32_t rail, uint64_t since_ns, uint64_t now_ns)
{
    r2_gap_fault_t *fault;

    since_ns = r2_min(since_ns, now_ns);
    for (uint32_t i = 0; i < gap->fault_count; ++i) {
        if (gap->faults[i].rail == rail && since_ns < gap->faults[i].since_ns + R2_GAP_WINDOW_NS) {
            return;
        }
    }
    if (R2_GAP_FAULTS_MAX == gap->fault_count) {
        ++gap->missed;
        return;
    }
    fault = &gap->faults[gap->fault_count++];
    *fault = (r2_gap_fault_t){.since_ns = since_ns, .rail = rail};
    for (uint32_t i = 0; i < R2_GAP_TIMES_MAX; ++i) {
        r2_gap_count(fault, gap->pauses[i].from_ns, gap->pauses[i].to_ns);
    }
}

bool r2_gap_take(r2_gap_t *gap, uint64_t now_ns, r2_gap_fault_t *fault_p)
{
    for (uint32_t i = 0; i < gap->fault_count; ++i) {
        r2_gap_fault_t *fault = &gap->faults[i];

        if (now_ns < fault->since_ns + R2_GAP_WINDOW_NS) {
            continue;
        }
        if (0 != gap->last_ns) {
            r2_gap_count(fault, gap->last_ns, now_ns); /* the pause that is not over yet */
        }
        gap->longest_ns = r2_max(gap->longest_ns, fault->longest_ns);
        *fault_p = *fault;
        *fault = gap->faults[--gap->fault_count];
        return true;
    }
    return false;
}

uint64_t r2_gap_deadline_ns(const r2_gap_t *gap)
{
    uint64_t deadline_ns = UINT64_MAX;

    for (uint32_t i = 0; i < gap->fault_count; ++i) {
        deadline_ns = r2_min(deadline_ns, gap->faults[i].since_ns + R2_GAP_WINDOW_NS);
    }
    return deadline_ns;
}
