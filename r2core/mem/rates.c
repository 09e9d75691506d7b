/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rates of a GPU, measured in a job: of each kind a short one and a long one, by the clock of the
 * host, until it knows that they have ended. Two points make a line: what starting takes, and what
 * each byte more does.
 */
#include "r2_config.h"

#include "mem/rates.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_sums.h"
#include "base/util.h"

enum {
    R2_RATES_SHORT_BYTES = 4096,
    R2_RATES_LONG_BYTES = 1 << 20, /* of one buffer */
    R2_RATES_TURNS = 3             /* the best counts: that of a quiet machine */
};

/** One of a kind that is measured. */
typedef struct r2_rates_one {
    const r2_kernels_t *kernels;
    r2_kernel_t kernel;
    r2_cu_at_t to, from; /* of copies */
} r2_rates_one_t;

typedef r2_status_t (*r2_rates_fn_t)(r2_mem_rates_t *run, const r2_rates_one_t *one, size_t bytes);

static r2_status_t r2_rates_copy(r2_mem_rates_t *run, const r2_rates_one_t *one, size_t bytes)
{
    return r2_mem_queue_copy(&run->queue, (void *) (uintptr_t) one->to,
                             (const void *) (uintptr_t) one->from, bytes);
}

/* As what has come is added to what the program has there, and sent on: out of pinned memory and
 * the device's into pinned memory. As many pieces as a launch takes, where they are long. */
static r2_status_t r2_rates_reduce(r2_mem_rates_t *run, const r2_rates_one_t *one, size_t bytes)
{
    const uint64_t pinned = (uintptr_t) run->pinned;
    const uint32_t count = bytes > R2_RATES_SHORT_BYTES ? R2_KERNEL_PIECES : 1;
    const size_t part = bytes / count;
    r2_kernel_pieces_t pieces = {.piece = {{.count = 0}}};

    for (uint32_t i = 0; i < count; ++i) {
        pieces.piece[i] = (r2_kernel_piece_t){.to = pinned + R2_RATES_LONG_BYTES + i * part,
                                              .in = pinned + i * part,
                                              .inout = run->buffers[0] + i * part,
                                              .count = part / r2_kernel_bytes(one->kernel)};
    }
    return r2_kernels_launch(one->kernels, &run->queue, one->kernel, &pieces, count);
}

static bool r2_rates_have_time(r2_mem_rates_t *run, uint64_t now_ns)
{
    run->measured_ns = now_ns - run->from_ns;
    return run->measured_ns < run->limit_ns;
}

/* @return R2_OK; R2_ERR_TIMEOUT: it is still under way; R2_ERR_GPU. */
static r2_status_t r2_rates_time(r2_mem_rates_t *run, r2_rates_fn_t fn, const r2_rates_one_t *one,
                                 size_t bytes, uint64_t *least_ns)
{
    const r2_clock_t *clock = r2_clock_system();
    const uint64_t from_ns = r2_now_ns(clock);
    uint64_t now_ns = from_ns, ticket;
    r2_status_t status = r2_rates_have_time(run, from_ns) ? fn(run, one, bytes) : R2_ERR_TIMEOUT;

    if (R2_OK == status) {
        status = r2_mem_queue_mark(&run->queue, &ticket);
    }
    if (R2_OK != status) {
        return status;
    }
    do {
        status = r2_mem_queue_test(&run->queue, ticket);
        now_ns = r2_now_ns(clock);
    } while (r2_rates_have_time(run, now_ns) && R2_IN_PROGRESS == status && 0 == sched_yield());
    *least_ns =
        R2_OK == status ? r2_min(*least_ns, r2_max(now_ns - from_ns, UINT64_C(1))) : *least_ns;
    return R2_IN_PROGRESS == status ? R2_ERR_TIMEOUT : status;
}

/* @param start_ns_p of one of no bytes @param rate_p bytes each second beyond that */
static r2_status_t r2_rates_line(r2_mem_rates_t *run, r2_rates_fn_t fn, const r2_rates_one_t *one,
                                 uint64_t *start_ns_p, uint64_t *rate_p)
{
    const uint64_t more = R2_RATES_LONG_BYTES - R2_RATES_SHORT_BYTES;
    uint64_t warm_ns = R2_NEVER_NS, short_ns = R2_NEVER_NS, long_ns = R2_NEVER_NS, slope_ns;
    r2_status_t status = r2_rates_time(run, fn, one, R2_RATES_LONG_BYTES, &warm_ns);

    for (int turn = 0; R2_OK == status && turn < R2_RATES_TURNS; ++turn) {
        status = r2_rates_time(run, fn, one, R2_RATES_SHORT_BYTES, &short_ns);
        if (R2_OK == status) {
            status = r2_rates_time(run, fn, one, R2_RATES_LONG_BYTES, &long_ns);
        }
    }
    if (R2_OK == status) {
        slope_ns = long_ns > short_ns ? long_ns - short_ns : 1;
        *rate_p = more * R2_NS_PER_S / slope_ns;
        *start_ns_p = r2_max(short_ns - r2_min(short_ns, slope_ns * R2_RATES_SHORT_BYTES / more),
                             UINT64_C(1));
    }
    return status;
}

static r2_status_t r2_rates_all(r2_mem_rates_t *run, const r2_kernels_t *kernels,
                                r2_kernel_t kernel)
{
    const r2_cu_at_t pinned = (uintptr_t) run->pinned;
    const r2_rates_one_t on = {.to = run->buffers[0], .from = pinned};
    const r2_rates_one_t off = {.to = pinned + R2_RATES_LONG_BYTES, .from = run->buffers[0]};
    const r2_rates_one_t inside = {.to = run->buffers[1], .from = run->buffers[0]};
    const r2_rates_one_t reduce = {.kernels = kernels, .kernel = kernel};
    r2_device_rates_t *rates = &run->rates;
    uint64_t inside_ns;
    r2_status_t status;

    memset(run->pinned, 0, 2 * (size_t) R2_RATES_LONG_BYTES);
    status =
        r2_rates_line(run, r2_rates_copy, &on, &rates->copy_on_ns, &rates->copy_on_bytes_per_s);
    if (R2_OK == status) {
        status = r2_rates_line(run, r2_rates_copy, &off, &rates->copy_off_ns,
                               &rates->copy_off_bytes_per_s);
    }
    if (R2_OK == status) {
        status = r2_rates_line(run, r2_rates_reduce, &reduce, &rates->launch_ns,
                               &rates->reduce_bytes_per_s);
    }
    if (R2_OK == status) {
        status = r2_rates_line(run, r2_rates_copy, &inside, &inside_ns, &rates->inside_bytes_per_s);
    }
    if (R2_OK == status) { /* nothing is under way there any more */
        float *floats = run->pinned;

        rates->host_reduce_bytes_per_s =
            r2_host_sums_of(r2_clock_system(), floats, floats + R2_RATES_LONG_BYTES / sizeof(float),
                            R2_RATES_LONG_BYTES);
    }
    return status;
}

static r2_status_t r2_rates_take(r2_mem_rates_t *run, const r2_mem_at_t *at)
{
    r2_mem_t *mem = run->mem;
    r2_status_t status = r2_mem_enter(mem, at);

    if (R2_OK != status) {
        return status;
    }
    for (size_t i = 0; R2_OK == status && i < r2_array_count(run->buffers); ++i) {
        status = r2_mem_check(mem, mem->driver.device_alloc(&run->buffers[i], R2_RATES_LONG_BYTES),
                              "cuMemAlloc");
    }
    r2_mem_leave(mem);
    if (R2_OK == status) {
        status = r2_mem_pin(mem, at, 2 * (size_t) R2_RATES_LONG_BYTES, &run->pinned);
    }
    return R2_OK == status ? r2_mem_queue_init(&run->queue, mem, at) : status;
}

void r2_mem_rates_measure(void *arg, const r2_kernels_t *kernels, r2_kernel_t kernel)
{
    r2_mem_rates_t *run = arg;
    const uint64_t from_ns = r2_now_ns(r2_clock_system());
    r2_status_t status;

    if (atomic_load(&run->is_done)) {
        return;
    }
    run->mem = kernels->mem;
    run->queue.at = kernels->at;
    status = r2_rates_take(run, &kernels->at);
    if (R2_OK == status) {
        run->from_ns = r2_now_ns(r2_clock_system());
        status = r2_rates_all(run, kernels, kernel);
    }
    run->is_known = R2_OK == status;
    run->spent_ns = r2_now_ns(r2_clock_system()) - from_ns;
    atomic_store(&run->is_done, true);
}

void r2_mem_rates_fini(r2_mem_rates_t *run)
{
    const r2_mem_at_t at = run->queue.at;

    if (NULL != run->queue.stream) {
        r2_mem_queue_fini(&run->queue);
    }
    for (size_t i = 0; NULL != run->mem && i < r2_array_count(run->buffers); ++i) {
        if (0 != run->buffers[i] && R2_OK == r2_mem_enter(run->mem, &at)) {
            (void) run->mem->driver.device_free(run->buffers[i]);
            r2_mem_leave(run->mem);
        }
    }
    if (NULL != run->pinned) {
        r2_mem_unpin(run->mem, &at, run->pinned);
    }
    memset(run, 0, sizeof(*run));
}
