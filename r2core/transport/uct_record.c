/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sends of the UCT transport that are not done yet, and endpoints that failed: kept until progress
 * tells.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <stdlib.h>
#include <utlist.h>

#define RECORDS_GROW 64

/** Memory of records, freed with the worker. */
struct r2_uct_slab {
    r2_uct_slab_t *next; /* owned */
    r2_uct_record_t records[RECORDS_GROW];
};

r2_uct_record_t *r2_uct_record_get(r2_tp_worker_t *worker)
{
    r2_uct_record_t *record;

    if (NULL == worker->spare) {
        r2_uct_slab_t *slab = calloc(1, sizeof(*slab));

        if (NULL == slab) {
            return NULL;
        }
        LL_PREPEND(worker->slabs, slab);
        for (size_t i = 0; i < r2_array_count(slab->records); ++i) {
            slab->records[i].worker = worker;
            LL_PREPEND(worker->spare, &slab->records[i]);
        }
    }
    record = worker->spare;
    worker->spare = record->next;
    return record;
}

void r2_uct_record_put(r2_uct_record_t *record)
{
    if (NULL != record->region) {
        r2_uct_region_put(record->worker->device->memory, record->region);
        record->region = NULL;
    }
    LL_PREPEND(record->worker->spare, record);
}

void r2_uct_record_tell(r2_uct_record_t *record, r2_status_t status)
{
    r2_tp_send_t *op = record->op;

    r2_uct_record_put(record);
    op->transport_private = NULL;
    op->sent(op, status);
}

void r2_uct_records_free(r2_tp_worker_t *worker)
{
    r2_uct_slab_t *slab, *next;

    LL_FOREACH_SAFE(worker->slabs, slab, next) {
        free(slab);
    }
}

void r2_uct_ep_fail(r2_tp_ep_t *ep, r2_status_t status)
{
    if (R2_OK == ep->failure) {
        ep->failure = status;
        ep->worker->failures = true;
    }
}
