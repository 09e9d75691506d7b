/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What any thread unmaps, noted for the holder of the engine lock.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <string.h>
#include <ucm/api/ucm.h>

/* Of our handler among others that UCX calls: those of its own caches have 1000. */
#define PRIORITY 1000

static void unmaps_lock(r2_uct_unmaps_t *unmaps)
{
    while (atomic_flag_test_and_set_explicit(&unmaps->busy, memory_order_acquire)) {
        /* a few instructions */
    }
}

static void unmaps_unlock(r2_uct_unmaps_t *unmaps)
{
    atomic_flag_clear_explicit(&unmaps->busy, memory_order_release);
}

/** Called by UCX before pages are unmapped, in any thread, with any locks held: notes only. */
static void r2_uct_on_unmap(ucm_event_type_t type, ucm_event_t *event, void *arg)
{
    r2_uct_unmaps_t *unmaps = arg;
    const uintptr_t start = (uintptr_t) event->vm_unmapped.address;
    const uintptr_t end = start + event->vm_unmapped.size;

    (void) type;
    if (start >= atomic_load_explicit(&unmaps->high, memory_order_relaxed) ||
        end <= atomic_load_explicit(&unmaps->low, memory_order_relaxed)) {
        return;
    }
    unmaps_lock(unmaps);
    if (R2_UCT_UNMAPS_MAX == unmaps->count) {
        unmaps->all = true;
    } else {
        unmaps->rows[unmaps->count++] = (r2_uct_unmap_t){start, end};
    }
    atomic_store_explicit(&unmaps->any, true, memory_order_release);
    unmaps_unlock(unmaps);
}

bool r2_uct_unmaps_init(r2_uct_unmaps_t *unmaps)
{
    atomic_init(&unmaps->low, UINTPTR_MAX);
    return UCS_OK ==
           ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, PRIORITY, r2_uct_on_unmap, unmaps);
}

void r2_uct_unmaps_fini(r2_uct_unmaps_t *unmaps)
{
    ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, r2_uct_on_unmap, unmaps);
}

void r2_uct_unmaps_watch(r2_uct_unmaps_t *unmaps, uintptr_t start, uintptr_t end)
{
    if (start < atomic_load_explicit(&unmaps->low, memory_order_relaxed)) {
        atomic_store_explicit(&unmaps->low, start, memory_order_seq_cst);
    }
    if (end > atomic_load_explicit(&unmaps->high, memory_order_relaxed)) {
        atomic_store_explicit(&unmaps->high, end, memory_order_seq_cst);
    }
}

uint32_t r2_uct_unmaps_take(r2_uct_unmaps_t *unmaps, r2_uct_unmap_t rows_p[R2_UCT_UNMAPS_MAX])
{
    uint32_t count;

    if (!atomic_load_explicit(&unmaps->any, memory_order_acquire)) {
        return 0;
    }
    unmaps_lock(unmaps);
    count = unmaps->count;
    memcpy(rows_p, unmaps->rows, count * sizeof(rows_p[0]));
    if (unmaps->all) {
        rows_p[0] = (r2_uct_unmap_t){0, UINTPTR_MAX};
        count = 1;
    }
    unmaps->count = 0;
    unmaps->all = false;
    atomic_store_explicit(&unmaps->any, false, memory_order_relaxed);
    unmaps_unlock(unmaps);
    return count;
}
