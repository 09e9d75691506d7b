/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rates of a GPU's copies and of r2's kernels, by the clock of the host: as many of a kind one
 * behind the other as take milliseconds, and the best of several such rounds.
 */
#include "r2_config.h"

#include "r2/gpu_rates.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host_sums.h"
#include "base/util.h"
#include "mem/rates.h"

enum {
    R2_MEASURE_ROUNDS = 5,
    R2_MEASURE_TIMES = 10, /* in a round */
    R2_MEASURE_LOAD_MS = 20000, /* a kernel is compiled by then */
};

/* What measure.c calls beside r2_cuda_driver_t. */
typedef struct r2_measure_driver {
#define R2_CUDA_FN(field, symbol, params) r2_cu_result_t(*field) params;
#include "mem/cuda_start.def"
#undef R2_CUDA_FN
} r2_measure_driver_t;

typedef struct r2_measure {
    r2_mem_t mem;
    r2_measure_driver_t driver;
    r2_mem_at_t at;
    r2_mem_queue_t queue;
    r2_kernels_t kernels;
    r2_kernel_t kernel;    /* of the next launches */
    r2_cu_at_t buffers[2]; /* owned */
    void *pinned;          /* owned */
    size_t bytes;          /* of each */
} r2_measure_t;

/* ---- what is measured ---- */

static r2_status_t r2_measure_inside(r2_measure_t *run)
{
    return r2_mem_queue_copy(&run->queue, (void *) (uintptr_t) run->buffers[0],
                             (const void *) (uintptr_t) run->buffers[1], run->bytes);
}

static r2_status_t r2_measure_on(r2_measure_t *run)
{
    return r2_mem_queue_copy(&run->queue, (void *) (uintptr_t) run->buffers[0], run->pinned,
                             run->bytes);
}

static r2_status_t r2_measure_off(r2_measure_t *run)
{
    return r2_mem_queue_copy(&run->queue, run->pinned, (const void *) (uintptr_t) run->buffers[0],
                             run->bytes);
}

/* As many pieces as a launch takes, so that as much of the GPU works as ever does for r2. */
static r2_status_t r2_measure_sum(r2_measure_t *run)
{
    const size_t part = run->bytes / R2_KERNEL_PIECES;
    r2_kernel_pieces_t pieces;

    for (uint32_t i = 0; i < R2_KERNEL_PIECES; ++i) {
        pieces.piece[i] = (r2_kernel_piece_t){.to = run->buffers[0] + i * part,
                                              .in = run->buffers[1] + i * part,
                                              .inout = run->buffers[0] + i * part,
                                              .count = part / r2_kernel_bytes(run->kernel)};
    }
    return r2_kernels_launch(&run->kernels, &run->queue, run->kernel, &pieces, R2_KERNEL_PIECES);
}

/* @param bytes that one of them reads and writes */
static r2_status_t r2_measure_rate(r2_measure_t *run, r2_status_t (*one)(r2_measure_t *run),
                                   uint64_t bytes, uint64_t *rate_p)
{
    const r2_clock_t *clock = r2_clock_system();
    r2_status_t status = R2_OK;
    uint64_t best_ns = R2_NEVER_NS;

    for (int round = 0; R2_OK == status && round <= R2_MEASURE_ROUNDS; ++round) {
        const uint64_t from_ns = r2_now_ns(clock);

        for (int i = 0; R2_OK == status && i < R2_MEASURE_TIMES; ++i) {
            status = one(run);
        }
        status = R2_OK == status ? r2_mem_queue_drain(&run->queue) : status;
        if (round > 0) { /* the first one warms up */
            best_ns = r2_min(best_ns, r2_now_ns(clock) - from_ns);
        }
    }
    if (R2_OK == status) {
        *rate_p = (uint64_t) ((double) bytes * R2_MEASURE_TIMES * R2_NS_PER_S /
                              (double) r2_max(best_ns, UINT64_C(1)));
    }
    return status;
}

/* @return false: the driver does not take it, or r2 was built without kernels. */
static bool r2_measure_load(r2_measure_t *run, r2_kernel_t kernel)
{
    run->kernel = kernel;
    for (int ms = 0; ms < R2_MEASURE_LOAD_MS; ++ms) {
        if (r2_kernels_ask(&run->kernels, &run->mem, &run->at, kernel)) {
            return true;
        }
        if (R2_KERNEL_REFUSED == atomic_load(&run->kernels.states[kernel]) ||
            NULL == run->kernels.mem) {
            return false;
        }
        usleep(1000);
    }
    return false;
}

static r2_status_t r2_measure_kernel(r2_measure_t *run, r2_kernel_t kernel, uint64_t *rate_p,
                                     char *text_p, size_t text_bytes)
{
    if (!r2_measure_load(run, kernel)) {
        snprintf(text_p, text_bytes, "%s",
                 '\0' == run->mem.trouble[0] ? "r2 was built without kernels" : run->mem.trouble);
        return R2_OK;
    }
    return r2_measure_rate(run, r2_measure_sum, 3 * run->bytes, rate_p);
}

/* As in a job, but for as long as it takes, and what a job makes of it. Nothing, where there is no
 * kernel. */
static void r2_measure_as_job(r2_measure_t *run, r2_gpu_rates_t *rates_p)
{
    r2_mem_rates_t rates = {.limit_ns = R2_MEASURE_LOAD_MS * R2_NS_PER_MS};

    if (!r2_kernels_ask(&run->kernels, &run->mem, &run->at, R2_KERNEL_sum_f32)) {
        return;
    }
    r2_mem_rates_measure(&rates, &run->kernels, R2_KERNEL_sum_f32);
    if (rates.is_known) {
        rates_p->job = rates.rates;
        rates_p->job.host_reduce_bytes_per_s =
            r2_min(rates_p->job.host_reduce_bytes_per_s, r2_host_sums(r2_clock_system()));
        rates_p->job_ns = rates.measured_ns;
    }
    rates_p->job_from_bytes = r2_device_reduces_from(rates.is_known ? &rates_p->job : NULL,
                                                     rates.measured_ns, R2_MEM_RATES_NS);
    rates_p->job_limit_ns = R2_MEM_RATES_NS;
    r2_mem_rates_fini(&rates);
}

static r2_status_t r2_measure_all(r2_measure_t *run, r2_gpu_rates_t *rates_p, char *text_p,
                                  size_t text_bytes)
{
    r2_status_t status =
        r2_measure_rate(run, r2_measure_inside, 2 * run->bytes, &rates_p->copy_inside);

    if (R2_OK == status) {
        status = r2_measure_rate(run, r2_measure_on, run->bytes, &rates_p->copy_on);
    }
    if (R2_OK == status) {
        status = r2_measure_rate(run, r2_measure_off, run->bytes, &rates_p->copy_off);
    }
    if (R2_OK == status) {
        status = r2_measure_kernel(run, R2_KERNEL_sum_f32, &rates_p->sum_float, text_p, text_bytes);
    }
    if (R2_OK == status) {
        status =
            r2_measure_kernel(run, R2_KERNEL_sum_bf16, &rates_p->sum_bfloat16, text_p, text_bytes);
    }
    if (R2_OK == status) {
        r2_measure_as_job(run, rates_p);
    }
    return status;
}

/* ---- start and end ---- */

static r2_status_t r2_measure_start_driver(r2_measure_t *run, int device)
{
    static const struct {
        const char *name;
        size_t offset_bytes;
    } symbols[] = {
#define R2_CUDA_FN(field, symbol, params) {#symbol, offsetof(r2_measure_driver_t, field)},
#include "mem/cuda_start.def"
#undef R2_CUDA_FN
    };

    for (size_t i = 0; i < r2_array_count(symbols); ++i) {
        void *symbol = dlsym(run->mem.driver.library, symbols[i].name);

        if (NULL == symbol) {
            return R2_ERR_UNSUPPORTED;
        }
        memcpy((char *) &run->driver + symbols[i].offset_bytes, &symbol, sizeof(symbol));
    }
    run->at = (r2_mem_at_t){R2_MEM_DEVICE, device, NULL};
    return r2_mem_check(&run->mem, run->driver.init(0), "cuInit");
}

static r2_status_t r2_measure_take(r2_measure_t *run)
{
    r2_status_t status = r2_mem_enter(&run->mem, &run->at);

    if (R2_OK != status) {
        return status;
    }
    for (size_t i = 0; R2_OK == status && i < r2_array_count(run->buffers); ++i) {
        status = r2_mem_check(&run->mem, run->mem.driver.device_alloc(&run->buffers[i], run->bytes),
                              "cuMemAlloc");
        if (R2_OK == status) {
            status = r2_mem_check(&run->mem, run->driver.fill(run->buffers[i], 0, run->bytes),
                                  "cuMemsetD8");
        }
    }
    r2_mem_leave(&run->mem);
    if (R2_OK == status) {
        status = r2_mem_pin(&run->mem, &run->at, run->bytes, &run->pinned);
    }
    if (R2_OK == status) {
        status = r2_mem_queue_init(&run->queue, &run->mem, &run->at);
    }
    return R2_OK == status ? r2_mem_queue_follow(&run->queue) : status;
}

static void r2_measure_end(r2_measure_t *run)
{
    if (NULL != run->queue.stream) {
        r2_mem_queue_fini(&run->queue);
    }
    r2_kernels_fini(&run->kernels);
    if (NULL != run->pinned) {
        r2_mem_unpin(&run->mem, &run->at, run->pinned);
    }
    for (size_t i = 0; i < r2_array_count(run->buffers); ++i) {
        if (0 != run->buffers[i] && R2_OK == r2_mem_enter(&run->mem, &run->at)) {
            (void) run->mem.driver.device_free(run->buffers[i]);
            r2_mem_leave(&run->mem);
        }
    }
}

r2_status_t r2_gpu_measure(int device, size_t bytes, r2_gpu_rates_t *rates_p, char *text_p,
                           size_t text_bytes)
{
    r2_measure_t run = {.bytes = bytes};
    r2_status_t status = R2_ERR_NOT_FOUND;

    memset(rates_p, 0, sizeof(*rates_p));
    *text_p = '\0';
    r2_mem_init(&run.mem, "libcuda.so.1");
    if (NULL != run.mem.driver.library) {
        status = r2_measure_start_driver(&run, device);
        if (R2_OK == status) {
            status = r2_measure_take(&run);
        }
        if (R2_OK == status) {
            status = r2_measure_all(&run, rates_p, text_p, text_bytes);
        }
        r2_measure_end(&run);
    }
    if (R2_OK != status) {
        snprintf(text_p, text_bytes, "%s", run.mem.trouble);
    }
    r2_mem_fini(&run.mem);
    return status;
}
