/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of collectives: from a free list and back, and those that their callers have released.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "ctx/comm.h"

struct r2_coll *r2_coll_new(r2_comm_t *comm)
{
    r2_comms_t *comms = comm->comms;
    struct r2_coll *coll;

    r2_coll_reap(comms);
    coll = r2_pool_get(&comms->colls);
    if (NULL != coll) {
        memset(coll, 0, sizeof(*coll));
        coll->comm = comm;
        atomic_store_explicit(&coll->status, R2_IN_PROGRESS, memory_order_relaxed);
    }
    return coll;
}

void r2_coll_free(r2_comms_t *comms, struct r2_coll *coll)
{
    r2_exec_fini(&coll->exec);
    r2_coll_ahead_drop(&coll->ahead);
    free(coll->lists);
    r2_pool_put(&comms->colls, coll);
}

/* One after the other: who releases does not wait for the lock. */
void r2_coll_reap(r2_comms_t *comms)
{
    struct r2_coll *list = NULL;

    if (NULL != atomic_load_explicit(&comms->released, memory_order_relaxed)) {
        list = atomic_exchange(&comms->released, NULL);
    }
    while (NULL != list) {
        struct r2_coll *coll = list;

        list = coll->next_done;
        r2_coll_free(comms, coll);
    }
}
