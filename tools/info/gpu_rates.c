/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --gpu-rates: how fast a GPU copies, and reduces by r2's kernels.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "info/info.h"
#include "r2/gpu_rates.h"
#include "r2/json.h"

static double share_of(uint64_t rate, uint64_t of)
{
    return 0 == of ? 0 : (double) rate / (double) of;
}

/* @return false: it could not be measured. */
static bool job_is_known(const r2_gpu_rates_t *rates)
{
    return 0 != rates->job_ns;
}

static void print_job_json(const r2_gpu_rates_t *rates, r2_json_t *json)
{
    if (job_is_known(rates)) {
        r2_json_u64(json, "copy_on_ns", rates->job.copy_on_ns);
        r2_json_u64(json, "copy_off_ns", rates->job.copy_off_ns);
        r2_json_u64(json, "launch_ns", rates->job.launch_ns);
        r2_json_u64(json, "reduce_bytes_per_s", rates->job.reduce_bytes_per_s);
        r2_json_u64(json, "host_reduce_bytes_per_s", rates->job.host_reduce_bytes_per_s);
        r2_json_u64(json, "measured_ns", rates->job_ns);
    }
    if (0 != rates->job_from_bytes) {
        r2_json_u64(json, "gpu_reduces_from_bytes", rates->job_from_bytes);
    }
}

static void print_job_rates(const r2_gpu_rates_t *rates, FILE *out)
{
    const r2_device_rates_t *job = &rates->job;

    fprintf(out, "as a job measures it, in %.1f ms%s:\n", (double) rates->job_ns / 1e6,
            rates->job_ns > rates->job_limit_ns ? ", which a job does not wait for" : "");
    fprintf(out, "  %-36s %10.2f GB/s, and %.1f us\n", "copies onto it",
            (double) job->copy_on_bytes_per_s / 1e9, (double) job->copy_on_ns / 1e3);
    fprintf(out, "  %-36s %10.2f GB/s, and %.1f us\n", "copies off it",
            (double) job->copy_off_bytes_per_s / 1e9, (double) job->copy_off_ns / 1e3);
    fprintf(out, "  %-36s %10.2f GB/s, and %.1f us\n", "reductions into pinned memory",
            (double) job->reduce_bytes_per_s / 1e9, (double) job->launch_ns / 1e3);
    fprintf(out, "  %-36s %10.2f GB/s\n", "reductions by the processor",
            (double) job->host_reduce_bytes_per_s / 1e9);
}

static void print_job(const r2_gpu_rates_t *rates, FILE *out)
{
    if (job_is_known(rates)) {
        print_job_rates(rates, out);
    }
    if (0 == rates->job_from_bytes) {
        return;
    }
    if (rates->job_from_bytes < R2_DEVICE_NEVER_BYTES) {
        fprintf(out, "coll_r2_gpu_reduce_bytes=auto: by the GPU from %" PRIu64 " bytes on\n",
                rates->job_from_bytes);
    } else {
        fprintf(out, "coll_r2_gpu_reduce_bytes=auto: by the processor\n");
    }
}

static int print_json(const r2_gpu_rates_t *rates, int device, size_t bytes, const char *why,
                      FILE *out)
{
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_u64(&json, "device", (uint64_t) device);
    r2_json_u64(&json, "bytes", bytes);
    r2_json_u64(&json, "copy_inside", rates->copy_inside);
    r2_json_u64(&json, "copy_on", rates->copy_on);
    r2_json_u64(&json, "copy_off", rates->copy_off);
    r2_json_u64(&json, "sum_float", rates->sum_float);
    r2_json_u64(&json, "sum_bfloat16", rates->sum_bfloat16);
    print_job_json(rates, &json);
    r2_json_string(&json, "kernels", '\0' == *why ? NULL : why);
    r2_json_close(&json, '}');
    return R2_OK == r2_json_end_file(&json) ? 0 : -1;
}

static int print_text(const r2_gpu_rates_t *rates, int device, size_t bytes, const char *why,
                      FILE *out)
{
    const struct {
        const char *name;
        uint64_t rate;
        bool is_kernel;
    } rows[] = {{"copies inside the device", rates->copy_inside, false},
                {"copies onto it, from pinned memory", rates->copy_on, false},
                {"copies off it", rates->copy_off, false},
                {"sums of float", rates->sum_float, true},
                {"sums of bfloat16", rates->sum_bfloat16, true}};

    fprintf(out, "GPU %d, buffers of %zu bytes: bytes read and written per second\n", device,
            bytes);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fprintf(out, "  %-36s %10.2f GB/s", rows[i].name, (double) rows[i].rate / 1e9);
        if (rows[i].is_kernel) {
            fprintf(out, "  %.2f of copies inside", share_of(rows[i].rate, rates->copy_inside));
        }
        fputc('\n', out);
    }
    if ('\0' != *why) {
        fprintf(out, "kernels: %s\n", why);
    }
    print_job(rates, out);
    return 0;
}

int info_gpu_rates(int device, size_t bytes, bool json, FILE *out)
{
    r2_gpu_rates_t rates;
    char why[256];
    const r2_status_t status = r2_gpu_measure(device, bytes, &rates, why, sizeof(why));

    if (R2_OK != status) {
        fprintf(stderr, "r2_info: GPU %d cannot be measured: %s%s%s\n", device,
                r2_status_string(status), '\0' == *why ? "" : ": ", why);
        return -1;
    }
    return (json ? print_json : print_text)(&rates, device, bytes, why, out);
}
