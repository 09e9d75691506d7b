/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rates of a GPU, measured in a job: once for a process and a context, in milliseconds, on a stream
 * and memory of r2's own. What choices are made from (r2/device_cost.h).
 *
 * The thread that loads kernels measures, when the first one that reduces is there, and before it
 * is used. It waits for nothing without a limit: where the application fills the GPU until MPI has
 * answered, nothing is known afterwards. The memory stays until the end, since a driver may wait
 * for all work of the context before it takes some back.
 */
#ifndef R2_MEM_RATES_H
#define R2_MEM_RATES_H

#include <stdatomic.h>

#include "mem/kernels.h"
#include "r2/device_cost.h"

/* All of it takes no longer, but for one call of the driver, and for what it sets up before:
 * streams, events and memory, of which some drivers need milliseconds. */
#define R2_MEM_RATES_NS UINT64_C(5000000)

/** Zeros: nothing is measured yet. */
typedef struct r2_mem_rates {
    uint64_t limit_ns;   /* R2_MEM_RATES_NS */
    atomic_bool is_done; /* what follows does not change any more */
    bool is_known;       /* all that can be measured was */
    /* of copies, kernels, and the processor's sums in pinned memory; zeros are the rest */
    r2_device_rates_t rates;
    uint64_t from_ns;     /* all is set up */
    uint64_t measured_ns; /* from then on, until the newest was known to have ended */
    uint64_t spent_ns;    /* of the thread, all together */
    r2_mem_t *mem;        /* borrowed: outlives this; NULL: there is nothing to give back */
    r2_mem_queue_t queue;
    r2_cu_at_t buffers[2]; /* owned */
    void *pinned;          /* owned: two buffers' length */
} r2_mem_rates_t;

/** Measures, if nothing did so before: as r2_kernels_t.loaded. Whatever the driver does, `is_done`
 * is true afterwards. @param arg r2_mem_rates_t */
void r2_mem_rates_measure(void *arg, const r2_kernels_t *kernels, r2_kernel_t kernel);

/** Waits for what was not done in time. Also for zeros. */
void r2_mem_rates_fini(r2_mem_rates_t *run);

#endif
